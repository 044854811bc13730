"""Version, changelog and citation say the same; pages that the README points to exist."""

from __future__ import annotations

import re
import textwrap
import tomllib
from pathlib import Path

import pytest

import spectralz as sz
from spectralz.paper import FIGURES

ROOT = Path(__file__).resolve().parents[1]


def test_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    changelog = re.findall(r"^## \[?([0-9][^\]\s]*)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    citation = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), flags=re.MULTILINE)
    assert project["version"] == sz.__version__ == changelog[0] == citation[1].strip('"')


def pages():
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} points to {target}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_python_blocks_of_the_pages_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL):
        exec(compile(textwrap.dedent(block), str(page), "exec"), names)


def test_every_method_is_in_the_table_of_the_readme():
    text = (ROOT / "README.md").read_text()
    for name in sz.METHODS:
        assert f"| `{name}` |" in text


def test_claims_of_the_paper_are_shown_as_they_are_checked():
    """Each has its row in docs/results.md, and says in which section of the paper it stands."""
    table = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    for figure in FIGURES.values():
        for claim in figure.claims:
            assert f"| {figure.name.removeprefix('fig')} | {claim.sentence} |" in table
            assert re.search(r"\(Section \d\.\d\)\.$", claim.sentence)
