"""The site builds without warnings, its links lead somewhere, and its reference and gallery leave nothing out."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import spectralz as sz
from tests.helpers import with_slow

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "api" / "index.md"
SCRIPTS = sorted((ROOT / "examples" / "gallery").glob("*.py"))


def listed(module):
    """Return the names that the reference lists under a module."""
    blocks = re.findall(r"\.\. currentmodule:: (\S+)\n(.*?)\n```", REFERENCE.read_text(), re.DOTALL)
    text = "\n".join(block for owner, block in blocks if owner == module)
    return set(re.findall(r"^(?:   |\.\. py:data:: )(\w+)$", text, re.MULTILINE))


def test_every_public_name_is_in_the_reference():
    modules = {"closed_forms", "constraints", "errors", "generators", "plots"}
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


DOCS = ROOT / "docs"
READERS = [DOCS / f"for-{name}.md" for name in ("physics", "statistics", "machine-learning", "optimization")]
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")


def shown_and_printed(page):
    """Return what a page shows as the output of its blocks of Python, and what they print."""
    blocks = re.findall(r"```python\n(.*?)```(?:\s*```\n(.*?)```)?", page.read_text(encoding="utf-8"), re.DOTALL)
    names, found = {}, []
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), names)
        if shown:
            found.append((shown, printed.getvalue()))
    return found


def differences(shown, printed):
    """Return the pairs of lines in which more differs than times, and last digits that depend on the machine."""
    seconds = re.compile(r"\d[\d.e-]* s\b|seconds.*|(?<=  )[\d.e-]+(?=  +(exact:|converged))")
    pairs = zip(shown.splitlines(), printed.splitlines(), strict=True)
    return [(a, b) for a, b in pairs if not same_line(seconds.sub("s", a), seconds.sub("s", b))]


def same_line(shown, printed):
    """Whether the words are the same, and the numbers close: those of errors and of rounding in size only."""
    words = [" ".join(NUMBER.sub("#", line).split()) for line in (shown, printed)]
    if all(line.endswith("...") for line in words):  # cut where columns end, whose widths depend on the times
        least = min(map(len, words)) - len("...")
        words = [line[:least] for line in words]
    if words[0] != words[1]:
        return False
    is_size = re.search("to within|match to|±", shown)
    numbers = [[float(number.replace(",", "")) for number in NUMBER.findall(line)] for line in (shown, printed)]
    return all(
        a == pytest.approx(b, rel=0.5 if is_size and a < 1 else 1e-2, abs=1e-5) for a, b in zip(*numbers, strict=True)
    )


def test_lines_that_differ_are_found():
    assert differences("log Z = 2.5 (exact)\nexact, 0.1 s\n", "log Z = 2.5001 (exact)\nexact, 3 s\n") == []
    assert differences("log Z = 2.5 (exact)", "log Z = 2.6 (exact)") == [("log Z = 2.5 (exact)", "log Z = 2.6 (exact)")]
    assert len(differences("log Z = 2.5 (exact)", "log Z = 2.5 (estimate)")) == 1
    assert differences("proven to within 1.1e-14", "proven to within 1.7e-14") == []
    assert differences("trw  3.4  2 spi...", "trw  3.4  2 spins...") == []
    assert len(differences("trw  3.4  2 spi...", "trw  3.4  2 rows...")) == 1
    assert differences("[[ 1 -1]\n [-0.0  2]]", "[[ 1 -1]\n [0.0  2]]") == []
    assert len(differences("[[ 1 -1]]", "[[ 1  1]]")) == 1
    with pytest.raises(ValueError, match="longer"):
        differences("one line", "one line\nand another")


# The first answer of "Get started" that is not exact takes some seconds.
@pytest.mark.parametrize(
    "page",
    with_slow([DOCS / "index.md", DOCS / "get-started.md", *READERS], [DOCS / "get-started.md"]),
    ids=lambda p: p.stem,
)
def test_pages_show_what_their_code_prints(page, tmp_path, monkeypatch):
    if "sklearn" in page.read_text():
        pytest.importorskip("sklearn", reason="the pictures come with the extra [sklearn]")
    monkeypatch.chdir(tmp_path)
    found = shown_and_printed(page)
    assert found
    for shown, printed in found:
        assert differences(shown, printed) == []


def test_each_reader_has_about_ten_lines_and_links():
    home = (DOCS / "index.md").read_text()
    for page in READERS:
        text = page.read_text()
        code = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
        assert 5 <= len([line for line in code.splitlines() if line and not line.startswith(("import", "from"))]) <= 12
        assert len(re.findall(r"^- \[", text, re.MULTILINE)) >= 4
        assert f":link: {page.stem}\n" in home


def test_links_have_words_and_no_names_of_files():
    for page in DOCS.glob("**/*.md"):
        assert not re.findall(r"\[`?[\w./-]+\.(?:md|rst)`?\]\(", page.read_text(encoding="utf-8")), page


def test_code_fits_the_column_of_the_site():
    """At 1280 pixels there is room for 100 characters, and for 112 of outputs, whose letters are smaller."""
    for page in DOCS.glob("**/*.md"):
        text = page.read_text(encoding="utf-8")
        for language, block in re.findall(r"^ *```([^\n]*)\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE):
            widest = max(map(len, block.splitlines()), default=0)
            assert widest <= (100 if language else 112), (page, block)
    for script in SCRIPTS:
        assert max(map(len, script.read_text(encoding="utf-8").splitlines())) <= 100, script


def test_formulas_survive_the_markdown_of_other_programs():
    """No line of a formula looks like that of a list, and no escape is one of Markdown."""
    for page in DOCS.glob("**/*.md"):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for formula in re.findall(r"\$\$.*?\$\$|\$[^$\n]+\$", text, re.DOTALL):
            assert not re.search(r"^\s*[-+*] |\\[,;:!{}]", formula, re.MULTILINE), (page, formula)


def test_the_mark_is_the_one_that_the_code_draws():
    spec = importlib.util.spec_from_file_location("pictures", DOCS / "pictures.py")
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    assert (DOCS / "_static" / "mark.svg").read_text() == pictures.mark()


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
    packages = ("sphinx", "pydata_sphinx_theme", "myst_parser", "numpydoc", "sphinx_gallery", "sphinx_design")
    for package in (*packages, "sphinx_copybutton", "math_core", "ziamath", "joblib"):
        pytest.importorskip(package, reason="the site needs the extra [site]")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-j",
        "auto",
        "-W",
        "--keep-going",
        "-d",
        str(tmp_path / "trees"),
        "docs",
    ]
    done = subprocess.run([*command, str(tmp_path / "site")], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    site = tmp_path / "site"
    assert broken_links(site) == []
    for name in ("index", "get-started", "your-model", "which-method", "trust", "theory", "glossary", "faq"):
        assert (site / f"{name}.html").is_file()
    for name in ("theory", "bounds", "spectral", "low-rank", "conventions"):
        assert '<math display="block">' in (site / f"{name}.html").read_text(encoding="utf-8")
    assert (site / "_static" / "math.woff").is_file()
    for script in SCRIPTS:
        page = (site / "gallery" / f"{script.stem}.html").read_text(encoding="utf-8")
        assert f"sphx_glr_{script.stem}_001.png" in page
