"""Version, changelog and citation say the same; pages lead somewhere; packages, hooks and workflow do what they say."""

from __future__ import annotations

import ast
import email
import importlib.util
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import textwrap
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import spectralz as sz
from spectralz.paper import FIGURES
from tests.helpers import with_slow

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_one_version():
    changelog = re.findall(r"^## \[?([0-9][^\]\s]*)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    citation = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), flags=re.MULTILINE)
    assert PROJECT["version"] == sz.__version__ == changelog[0] == citation[1].strip('"')


def pages():
    """Return all pages in Markdown, but for those that the site generates."""
    top = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG", "CODE_OF_CONDUCT")]
    generated = {ROOT / "docs" / "gallery", ROOT / "docs" / "api" / "generated"}
    return [*top, *(page for page in sorted((ROOT / "docs").rglob("*.md")) if not generated & {*page.parents})]


def path_of(page):
    return page.relative_to(ROOT).as_posix()


def wide_lines(text, width=100):
    """Return lines of prose that are wider. Code, formulas, rows of tables and single long words are left out."""
    code, found = False, []
    for line in text.splitlines():
        words = re.sub(r"^\s*([-*:]|\d+\.)\s", "", line).split()
        if line.lstrip().startswith("```"):
            code = not code
        elif not code and len(line) > width and not line.startswith(("|", "    ")) and len(words) > 1:
            found.append(line)
    return found


def test_wide_lines_are_found():
    wide = "word " * 25
    assert wide_lines(f"{wide}\nshort\n- {wide}") == [wide, f"- {wide}"]
    assert wide_lines(f"| {wide} |\n```\n{wide}\n```\n  ```python\n{wide}\n  ```\n- {'w' * 120}") == []


@pytest.mark.parametrize("page", pages(), ids=path_of)
def test_prose_is_wrapped(page):
    assert wide_lines(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", pages(), ids=path_of)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} points to {target}"


SLOW_PAGES = (
    "README",
    "docs/after-log-z",
    "docs/annealing",
    "docs/auto",
    "docs/bounds",
    "docs/compressed",
    "docs/get-started",
    "docs/gradients",
    "docs/learning",
    "docs/sampling",
    "docs/sweeps",
    "docs/trust",
)


# What a page asks for in little time may be in doubt on a busy machine, and then warns.
@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
@pytest.mark.parametrize("page", with_slow(pages(), [ROOT / f"{name}.md" for name in SLOW_PAGES]), ids=path_of)
def test_python_blocks_of_the_pages_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL):
        code = textwrap.dedent(block)
        if all(importlib.util.find_spec(package) for package in optional_packages(code)):
            exec(compile(code, str(page), "exec"), names)


def optional_packages(code):
    """The packages that a block imports and that need not be installed."""
    imports = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom)]
    found = {name.name for node in imports if isinstance(node, ast.Import) for name in node.names}
    found |= {node.module for node in imports if isinstance(node, ast.ImportFrom)}
    return {name.split(".")[0] for name in found} & {"dimod", "networkx", "pandas", "sklearn", "torch", "jax"}


def test_blocks_are_left_out_by_what_they_import():
    assert optional_packages("import numpy, torch.nn as nn\nfrom sklearn.svm import SVC") == {"torch", "sklearn"}
    assert optional_packages("import spectralz") == set()


def test_every_method_is_in_the_table_of_the_readme():
    rows = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == set(sz.METHODS) - {"auto"}  # which chooses among them


def test_claims_of_the_paper_are_shown_as_they_are_checked():
    """Each has its row in docs/measurements/results.md, and says in which section of the paper it stands."""
    table = (ROOT / "docs" / "measurements" / "results.md").read_text(encoding="utf-8")
    for figure in FIGURES.values():
        for claim in figure.claims:
            assert f"| {figure.name.removeprefix('fig')} | {claim.sentence} |" in table
            assert re.search(r"\(Section \d\.\d\)\.$", claim.sentence)


def load(path):
    """Run a file that is no module of ours, and return what it defines."""
    return runpy.run_path(str(ROOT / path))


def recipe(target):
    """Return the commands of a make target, without the folder of the environment that they run in."""
    rule = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    return [line.strip().removeprefix("$(BIN)/") for line in rule[1].splitlines()]


def workflow():
    return yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())


def commands(job):
    return [step["run"] for step in workflow()["jobs"][job]["steps"] if "run" in step]


def classified_pythons():
    found = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text())
    return sorted(found, key=lambda version: int(version.removeprefix("3.")))


def test_the_changelog_has_a_place_for_what_comes():
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert headings[0] == "Unreleased"


def test_the_hook_before_a_commit_is_make_lint():
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    (hook,) = repository["hooks"]
    assert (repository["repo"], hook["language"], hook["entry"]) == ("local", "system", "make lint")
    assert not hook["pass_filenames"]  # all files are checked, as make does
    assert recipe("lint") == ["ruff format --check .", "ruff check .", "mypy"]
    assert hook["name"] == "ruff format --check, ruff check, mypy (make lint)"


def test_continuous_integration_runs_make_and_nothing_else():
    targets = set()
    for job in workflow()["jobs"]:
        for command in commands(job):
            program, target, *settings = re.sub(r"\$\{\{.*?\}\}", "expression", command).split()
            assert program == "make"
            assert all(re.fullmatch(r"[A-Z_]+=.*", setting) for setting in settings)
            assert recipe(target) is not None
            targets.add(target)
    assert targets == {"lint", "test", "test-all", "test-oldest", "dist"}


def test_the_slow_tests_run_once_a_week():
    (job,) = (name for name in workflow()["jobs"] if any("test-all" in command for command in commands(name)))
    assert workflow()["jobs"][job]["if"] == " || ".join(
        f"github.event_name == '{event}'" for event in ("schedule", "workflow_dispatch")
    )
    assert workflow()["jobs"][job]["timeout-minutes"] == 120
    ((_, hour, day, month, weekday),) = (each["cron"].split() for each in workflow()[True]["schedule"])  # "on" is True
    assert weekday in "0123456"
    assert (day, month) == ("*", "*")
    assert hour != "*"


def test_continuous_integration_may_only_read_and_stops_what_is_out_of_date():
    assert workflow()["permissions"] == {"contents": "read"}
    assert workflow()["concurrency"]["cancel-in-progress"] is True
    assert not any("permissions" in job for job in workflow()["jobs"].values())


def test_oldest_and_newest_python_are_those_of_the_classifiers():
    oldest, *_, newest = classified_pythons()
    jobs = workflow()["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == [oldest, newest]
    assert PROJECT["requires-python"] == f">={oldest}"
    makefile = (ROOT / "Makefile").read_text()
    assert f"OLDEST_PYTHON ?= python{oldest}\n" in makefile
    assert f"NEWEST_PYTHON ?= python{newest}\n" in makefile
    for job in jobs.values():  # a command that names a Python names the one that was set up
        (asked,) = [step["with"]["python-version"] for step in job["steps"] if "python-version" in step.get("with", {})]
        (command,) = [step["run"] for step in job["steps"] if "run" in step]
        assert command.endswith(f"PYTHON=python{asked}")


def test_the_oldest_releases_are_the_lower_bounds():
    oldest = load("tools/oldest.py")["oldest"]
    project = {
        "name": "it",
        "dependencies": ["numpy>=1.26", "rich >= 13, <15"],
        "optional-dependencies": {"test": ["pytest>=8; python_version<'4'"], "dev": ["it[test,dev]", "x[y]>=2.1"]},
    }
    assert oldest(project) == {"numpy": "1.26", "rich": "13"}
    assert oldest(project, ["dev"]) == {"numpy": "1.26", "rich": "13", "pytest": "8", "x": "2.1"}
    with pytest.raises(ValueError, match="no extra is called 'docs'; known: dev, test"):
        oldest(project, ["docs"])
    with pytest.raises(ValueError, match="has no lower bound: write jax>=version"):
        oldest(project | {"dependencies": ["jax<0.4"]})
    with pytest.raises(ValueError, match="numpy has two lower bounds, 1 and 2"):
        oldest(project | {"dependencies": ["numpy>=1", "numpy>=2"]})


def test_everything_that_is_tested_with_its_oldest_release_has_one():
    extras = re.search(r"^TESTED_EXTRAS := (.*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)[1].split()
    found = load("tools/oldest.py")["oldest"](PROJECT, extras)
    assert len(found) >= len(PROJECT["dependencies"]) + len(extras)
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert [f"hatchling>={found['hatchling']}"] == build  # the build and its test ask for the same


@pytest.fixture
def hook():
    pytest.importorskip("hatchling", reason="comes with the extra test")
    return load("tools/metadata_hook.py")


ADDRESS = "https://forge.example/owner/it"


@pytest.mark.parametrize(
    ("text", "there", "nowhere"),
    [
        ("[a page](docs/a.md), said", f"[a page]({ADDRESS}/blob/v1.2/docs/a.md), said", "a page, said"),
        ("[`a` b](./docs/a.md#part)", f"[`a` b]({ADDRESS}/blob/v1.2/docs/a.md#part)", "`a` b"),
        ('[a](b.md "words")', f'[a]({ADDRESS}/blob/v1.2/b.md "words")', "a"),
        ("![a plot](docs/a.png)", f"![a plot]({ADDRESS}/raw/v1.2/docs/a.png)", ""),
        ("[![a](a.png)](b.md)", f"[![a]({ADDRESS}/raw/v1.2/a.png)]({ADDRESS}/blob/v1.2/b.md)", ""),
        ("[![a](a.png)](https://b.org)", f"[![a]({ADDRESS}/raw/v1.2/a.png)](https://b.org)", ""),
        *((same, same, same) for same in ("[a](https://b.org/c)", "![a](https://b.org/c.png)", "[a](#part)")),
        *((same, same, same) for same in ("[a](mailto:b@c.org)", "`[a](b.md)`", "x[0]", "means[a] (b)")),
        *((same, same, same) for same in ("```python\n[a](b.md)\n```", "```\n![a](b.png)\n\n\n```")),
        ("one\n\n![a](b.png)\n\ntwo", f"one\n\n![a]({ADDRESS}/raw/v1.2/b.png)\n\ntwo", "one\n\ntwo"),
    ],
)
def test_links_of_the_readme_outside_the_repository(hook, text, there, nowhere):
    assert hook["readme"](text, ADDRESS, "1.2") == there
    assert hook["readme"](text, "", "1.2") == nowhere


def relative_targets(text):
    return [target for target in re.findall(r"\]\(([^)#\s]+)", text) if not target.startswith("https://")]


def test_the_packaged_readme_has_no_broken_links(hook):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert relative_targets(text)
    assert not re.search(r"^ {0,3}\[[^\]]+\]:|<(img|a)\b", text, flags=re.MULTILINE)  # kinds of links it cannot read
    plain, linked = hook["readme"](text, "", sz.__version__), hook["readme"](text, ADDRESS, sz.__version__)
    assert not relative_targets(plain)
    assert not relative_targets(linked)
    assert len(re.findall(re.escape(ADDRESS), linked)) == len(relative_targets(text))
    assert re.findall(r"```.*?```", plain, flags=re.DOTALL) == re.findall(r"```.*?```", text, flags=re.DOTALL)
    for page in relative_targets(linked):
        assert (ROOT / page.removeprefix(f"{ADDRESS}/blob/v{sz.__version__}/")).exists()


def test_the_hook_fills_in_addresses_only_where_there_is_one(hook):
    def metadata(**config):
        found = {"version": "1.2"}
        hook["MetadataHook"](str(ROOT), config).update(found)
        return found

    for config in ({}, {"repository": ""}):
        found = metadata(**config)
        assert not found["urls"]
        assert found["readme"]["content-type"] == "text/markdown"
    found = metadata(repository=f"{ADDRESS}/")
    assert list(found["urls"]) == ["Homepage", "Documentation", "Changelog", "Issues", "Source"]
    assert all(url.startswith(ADDRESS) and "//" not in url.removeprefix("https://") for url in found["urls"].values())
    assert f"{ADDRESS}/blob/v1.2/docs/auto.md" in found["readme"]["text"]
    with pytest.raises(ValueError, match="begins with https://"):
        metadata(repository="forge.example/owner/it")


@pytest.mark.slow
@pytest.mark.parametrize("repository", ["", ADDRESS])
def test_the_packages_have_what_they_say(repository, tmp_path):
    """Builds both packages with the hatchling that is installed, from a copy with this address in its settings."""
    pytest.importorskip("hatchling", reason="comes with the extra test")
    pytest.importorskip("build", reason="comes with the extra test")
    copy = tmp_path / "project"
    copy.mkdir()
    for name in ("src", "tools"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("LICENSE", "README.md"):
        shutil.copy(ROOT / name, copy)
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert settings.count('\nrepository = ""\n') == 1
    (copy / "pyproject.toml").write_text(
        settings.replace('\nrepository = ""\n', f'\nrepository = "{repository}"\n'), encoding="utf-8"
    )
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path / "dist"), str(copy)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,), (sdist,) = (tmp_path / "dist").glob("*.whl"), (tmp_path / "dist").glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as packed:
        files = packed.namelist()
        (name,) = [name for name in files if name.endswith("/METADATA")]
        found = email.message_from_bytes(packed.read(name))
    assert "spectralz/py.typed" in files
    assert all(name.startswith(("spectralz/", f"spectralz-{sz.__version__}.dist-info/")) for name in files)
    assert "Typing :: Typed" in found.get_all("Classifier")
    assert found["License-Expression"] == PROJECT["license"]
    text = found.get_payload(decode=True).decode("utf-8")
    assert text.startswith("# spectralz")
    assert not relative_targets(text)
    addresses = dict(line.split(", ") for line in found.get_all("Project-URL", []))
    assert len(addresses) == (5 if repository else 0)
    with tarfile.open(sdist) as packed:
        names = {name.split("/", 1)[-1] for name in packed.getnames()}
    assert {"tools/metadata_hook.py", "README.md", "pyproject.toml", "src/spectralz/py.typed"} <= names


def test_python_and_the_license_are_named_once():
    """An index refuses a classifier of the license beside its expression."""
    assert not any(name.startswith("License ::") for name in PROJECT["classifiers"])
    assert len(set(PROJECT["classifiers"])) == len(PROJECT["classifiers"])
    assert (ROOT / "src" / "spectralz" / "py.typed").exists()


@pytest.mark.parametrize(
    "form", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[0-9]*.yml")), ids=lambda form: form.stem
)
def test_forms_for_issues_can_be_read(form):
    found = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert found["name"]
    assert found["description"]
    fields = [field for field in found["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_the_list_for_a_release_names_targets_that_exist():
    text = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
    named = set(re.findall(r"make ([a-z-]+)", text))
    assert {"test-all", "test-oldest", "test-newest", "coverage", "docs", "bench", "dist"} <= named
    for target in named:
        assert recipe(target)
