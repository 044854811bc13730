"""The folders show the flow of data: who may import whom (docs/architecture.md), and what is imported late."""

from __future__ import annotations

import ast
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import spectralz as sz

ROOT = Path(sz.__file__).parent
PAGE = ROOT.parents[1] / "docs" / "architecture.md"
HEAVY = ("numba", "matplotlib", "llvmlite", "rich", "typer", "pandas", "jax")


def allowed() -> dict[str, tuple[set[str], set[str]]]:
    """Read from the page what each place may import, at the top of a file and inside functions."""
    rows = [line.strip("| \n").split("|") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in row] for row in rows if len(row) >= 3]
    names = {
        row[0].strip("`"): [set(cell.replace("nothing", "").split(", ")) - {""} for cell in row[2:]] for row in cells
    }
    return {place: (top | {place}, top.union(*rest, {place})) for place, (top, *rest) in names.items()}


MAY_IMPORT = allowed()


def place_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


FILES = [pytest.param(path, id=str(path.relative_to(ROOT))) for path in sorted(ROOT.rglob("*.py"))]


def imported_places(tree: ast.AST, inside: bool = False):
    """Yield each place of ours that is imported, and whether that happens inside a function."""
    for node in ast.iter_child_nodes(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            # ``from spectralz import generators`` is an import of that place, other names are of the package itself
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "spectralz" else [node.module]
            )
        for name in names:
            if name.split(".")[0] == "spectralz":
                place = [*name.split("."), "spectralz"][1]
                yield place if place in MAY_IMPORT else "spectralz", inside
        yield from imported_places(node, inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("path", FILES)
def test_imports_go_one_way(path):
    if path == ROOT / "__init__.py":
        return  # what is public
    at_top, in_functions = MAY_IMPORT[place_of(path)]
    for place, inside in imported_places(ast.parse(path.read_text())):
        assert place in (in_functions if inside else at_top), f"{path.name} may not import {place} there"


def test_the_page_names_every_place_and_no_other():
    assert set(MAY_IMPORT) == {place_of(path) for path in ROOT.rglob("*.py")} - {"__init__"}


def test_the_page_allows_no_circle():
    """Take away what imports nothing that is left, again and again: nothing may remain."""
    left = {place: top - {place, "spectralz"} for place, (top, _) in MAY_IMPORT.items()}
    while ready := [place for place, imports in left.items() if not imports & set(left)]:
        for place in ready:
            del left[place]
    assert not left


def test_a_forbidden_import_is_seen():
    source = (
        "from spectralz.methods import Exact\ndef f():\n    import spectralz.show.plots\n"
        "from spectralz import io, Ising"
    )
    assert sorted(imported_places(ast.parse(source))) == [
        ("io", False),
        ("methods", False),
        ("show", True),
        ("spectralz", False),
    ]


def test_a_folder_has_at_most_25_files():
    assert max(len(list(folder.glob("*.py"))) for folder in {path.parent for path in ROOT.rglob("*.py")}) <= 25


def solve_a_glass():
    """Answer for a glass with so little work that it cannot be trusted."""
    with pytest.warns(sz.errors.InaccurateWarning):
        return sz.log_z(sz.generators.sk(100, 1.0, 0), exclude=["exact"], work=2e7, threads=1)


def test_a_glass_is_twelve_calls_into_other_files_away_from_its_kernel(monkeypatch):
    from spectralz.kernels.sampling import lanes

    kernel, ways = lanes.sweep_dense, set()

    def seen(*arguments):
        files = [Path(frame.filename) for frame in traceback.extract_stack()]
        inside = [file for file in files if ROOT in file.parents]
        ways.add(tuple(file for file, before in zip(inside, [None, *inside], strict=False) if file != before))
        return kernel(*arguments)

    monkeypatch.setattr(lanes, "sweep_dense", seen)
    solve_a_glass()
    assert any("population.py" in {file.name for file in way} for way in ways)
    # The first file is that of log_z, and the last call is that of the kernel.
    assert max(len(way) for way in ways) <= 12


def test_a_glass_runs_functions_of_few_files():
    files, before = set(), sys.getprofile()

    def seen(frame, event, _):
        file = Path(frame.f_code.co_filename)
        if event == "call" and ROOT in file.parents:
            files.add(str(file.relative_to(ROOT)))

    model, options = sz.generators.sk(100, 1.0, 0), {"exclude": ["exact"], "work": 1e9, "threads": 1}
    assert sz.log_z(model, **options).trusted  # imports and compiles
    sys.setprofile(seen)
    try:
        sz.log_z(model, **options)
    finally:
        sys.setprofile(before)
    assert len(files) <= 67, f"{len(files)} files: {', '.join(sorted(files))}"


def imported_by(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint('MODULES', *sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split("MODULES")[-1].split())


def test_folders_of_the_package_are_found_and_nothing_else_is():
    code = "import spectralz as sz\nassert sz.result.Estimate is sz.Estimate\nassert not hasattr(sz, 'spectralz')"
    assert "spectralz.result.estimate" in imported_by(code)
    with pytest.raises(AttributeError, match="zlog"):
        sz.zlog  # noqa: B018


def test_importing_the_package_is_light():
    imported = imported_by("import spectralz")
    assert not imported & {"numpy", "scipy", *HEAVY}
    assert not any(name.startswith("spectralz.methods") for name in imported_by("import spectralz\nspectralz.Ising"))
    imported = imported_by("import spectralz\nspectralz.log_z")
    assert not imported & set(HEAVY)
    assert not any(name.startswith(("spectralz.show", "spectralz.cli", "spectralz.paper")) for name in imported)
    assert "spectralz.show.plots" in imported_by("import spectralz\nspectralz.plots.estimate")
    assert "spectralz.show.plots" in imported_by("from spectralz.plots import bracket_picture")


def test_help_imports_neither_numba_nor_matplotlib():
    code = "from spectralz.cli import main\n"
    for arguments in (["--help"], ["solve", "--help"], ["generate", "grid", "--help"], ["methods"]):
        code += f"try:\n main({arguments!r})\nexcept SystemExit as e:\n assert not e.code\n"
    assert not imported_by(code) & {"numba", "llvmlite", "matplotlib", "scipy.optimize"}
