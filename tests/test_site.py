"""The site builds without warnings, its links lead somewhere, and its reference and gallery leave nothing out."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import spectralz as sz

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "api" / "index.md"
SCRIPTS = sorted((ROOT / "examples" / "gallery").glob("*.py"))


def listed(module):
    """Return the names that the reference lists under a module."""
    blocks = re.findall(r"\.\. currentmodule:: (\S+)\n(.*?)\n```", REFERENCE.read_text(), re.DOTALL)
    text = "\n".join(block for owner, block in blocks if owner == module)
    return set(re.findall(r"^(?:   |\.\. py:data:: )(\w+)$", text, re.MULTILINE))


def test_every_public_name_is_in_the_reference():
    modules = {"closed_forms", "errors", "generators", "plots"}
    assert listed("spectralz") == set(sz.__all__) - modules - {"SpectralzError", "__version__"}
    # What is left out are tables of the command line.
    tables = {"CLOSED_FORMS", "FORMATS", "GENERATORS", "parameter_help"}
    for name in modules:
        assert listed(f"spectralz.{name}") == set(getattr(sz, name).__all__) - tables


def test_every_method_is_on_the_page_that_helps_to_choose():
    text = (ROOT / "docs" / "which-method.md").read_text()
    for name in sz.METHODS:
        assert f"| `{name}` |" in text


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_scripts_of_the_gallery_use_public_names_and_end_in_a_picture(script):
    text = script.read_text()
    assert re.match(r'"""\n(.+)\n=+\n\n', text), "a title comes first"
    assert "plt.show()" in text
    assert not re.search(r"from spectralz|import spectralz\.(?!jax|torch)|sz\._", text)


def test_there_are_at_least_ten_scripts():
    assert len(SCRIPTS) >= 10


def test_the_tables_from_the_literature_are_made(monkeypatch, capsys):
    from benchmarks import literature

    monkeypatch.setattr(
        literature,
        "PARTS",
        {
            "torus": lambda: literature.torus((0.3,), side=4, work=1e7),
            "triangular": lambda: literature.triangular((3,), (1.0,)),
            "sk": lambda: literature.sk((1.0,), n=6, models=2, work=1e7),
        },
    )
    literature.main()
    assert capsys.readouterr().out.count("| beta |") == 3


class Page(HTMLParser):
    """What a page links to, and the places that can be linked to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.places = [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if "id" in given:
            self.places.add(given["id"])
        for name in ("href", "src"):
            if given.get(name):
                self.links.append((tag, given[name]))


def broken_links(folder):
    """Return links that lead nowhere, and files that would be fetched from elsewhere."""
    pages = {path.resolve(): Page(path) for path in folder.rglob("*.html") if "_static" not in path.parts}
    found = []
    for path, page in pages.items():
        for tag, link in page.links:
            url = urlsplit(link)
            if url.scheme in ("http", "https") or url.netloc:
                if tag != "a":
                    found.append(f"{path.name} fetches {link}")
                continue
            if url.scheme:
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            if not target.exists():
                found.append(f"{path.name} points to {link}")
            elif url.fragment and target in pages and unquote(url.fragment) not in pages[target].places:
                found.append(f"{path.name} points to {link}, a place that is not there")
    return found


def test_broken_links_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here"></a><a href="b.html#there"></a><a href="c.html"></a><img src="https://x.org/y.png">'
        '<a href="https://x.org"></a><a href="#top"></a><p id="top"></p>'
    )
    (tmp_path / "b.html").write_text('<p id="here"></p>')
    assert [text.split()[-1] for text in broken_links(tmp_path)] == ["there", "c.html", "https://x.org/y.png"]


@pytest.mark.slow
def test_the_site_builds_without_warnings_and_its_links_lead_somewhere(tmp_path):
    for package in ("sphinx", "pydata_sphinx_theme", "myst_parser", "numpydoc", "sphinx_gallery", "sphinx_design"):
        pytest.importorskip(package, reason="the site needs the extra [site]")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(tmp_path / "trees"), "docs"]
    done = subprocess.run([*command, str(tmp_path / "site")], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    site = tmp_path / "site"
    assert broken_links(site) == []
    for name in ("index", "get-started", "your-model", "which-method", "trust", "theory", "glossary", "faq"):
        assert (site / f"{name}.html").is_file()
    for script in SCRIPTS:
        page = (site / "gallery" / f"{script.stem}.html").read_text(encoding="utf-8")
        assert f"sphx_glr_{script.stem}_001.png" in page
