"""The folders show the flow of data: who may import whom (docs/architecture.md), and what is imported late."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import spectralz

ROOT = Path(spectralz.__file__).parent
MAY_IMPORT = {
    "start": set(),
    "errors": set(),
    "progress": set(),
    "threads": set(),
    "options": {"errors"},
    "model": {"errors"},
    "result": {"errors"},
    "kernels": {"errors", "kernels"},
    "sdp": {"errors", "options", "progress", "model", "result", "kernels"},
    "methods": {"errors", "options", "progress", "threads", "model", "result", "kernels", "sdp", "methods"},
    "plots": {"errors", "result"},
    "terminal": set(),
    "inference": {"errors", "model", "result", "kernels", "methods"},
    "generators": {"errors", "model"},
    "io": {"errors", "model", "io"},
    "paper": {
        "errors",
        "options",
        "progress",
        "model",
        "result",
        "sdp",
        "methods",
        "inference",
        "generators",
        "io",
        "paper",
        "spectralz",
    },
    "cli": {
        "errors",
        "options",
        "paper",
        "plots",
        "progress",
        "model",
        "result",
        "methods",
        "inference",
        "generators",
        "io",
        "terminal",
        "spectralz",
    },
    "__main__": {"cli"},
}
HEAVY = ("numba", "matplotlib", "llvmlite", "rich", "typer")


def parts():
    for path in sorted(ROOT.rglob("*.py")):
        part = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if part != "__init__":
            yield pytest.param(path, part, id=str(path.relative_to(ROOT)))


@pytest.mark.parametrize(("path", "part"), list(parts()))
def test_imports_go_one_way(path, part):
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [node.module]
        for name in names:
            if name.split(".")[0] == "spectralz":
                target = [*name.split("."), "spectralz"][1]
                assert target in MAY_IMPORT[part], f"{part} may not import {name}"


def imported_by(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint('MODULES', *sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split("MODULES")[-1].split())


def test_importing_the_package_is_light():
    assert not imported_by("import spectralz") & set(HEAVY)


@pytest.mark.parametrize("arguments", [["--help"], ["solve", "--help"], ["generate", "grid", "--help"], ["methods"]])
def test_help_imports_neither_numba_nor_matplotlib(arguments):
    code = f"from spectralz.cli import main\ntry:\n main({arguments!r})\nexcept SystemExit as e:\n assert not e.code"
    assert not imported_by(code) & {"numba", "llvmlite", "matplotlib", "scipy.optimize"}
