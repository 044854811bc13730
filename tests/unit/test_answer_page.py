"""Pages of an answer and of a comparison: what is on them, that they are well-formed, whole and safe."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from types import SimpleNamespace

import numpy as np
import pytest

import spectralz as sz
from spectralz.cli import main
from spectralz.cli.files import command_as_typed
from spectralz.cli.helping import TYPED
from spectralz.report import answer, comparison_page, estimate_page
from spectralz.show import tables
from tests.helpers import Page, trial, tried_estimate

MODEL = sz.generators.grid(3, 1.0, seed=0)
BAD = "<script>alert('x')</script> & \"more\""
COMPARISON = sz.compare(MODEL, ["exact", "BP-200", "mf", "trw", "low_rank"])


def checked(text: str) -> Page:
    """Read a page, and see that it is whole: names are unique, drawings are there, nothing is loaded."""
    page = Page(text)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {section["aria-labelledby"] for section in page.all("section")} <= set(ids)
    assert not re.search(r"https?:|@import|url\((?!#)|<script [^>]*src", text)
    assert page.drawings
    assert page.all("meta")[3]["content"].startswith("default-src 'none';")
    return page


def written(drawing) -> list[str]:
    """The texts of a drawing."""
    return ["".join(text.itertext()).strip() for text in drawing.iter("{http://www.w3.org/2000/svg}text")]


def after(page: Page, term: str) -> str:
    """The text after a term."""
    return page.text[page.text.index(term) + 1]


def test_an_answer_and_what_was_tried():
    page = checked(estimate_page(tried_estimate(), "A dense model", "dense.npz: 30 spins"))
    words = page.words
    assert words.startswith("A dense model A dense model log Z = 21.431 ± 0.012 (estimate, trusted)")
    assert "This is a trusted estimate: its own checks hold" in words
    assert "It was not checked by a method of another kind. The number" in words
    assert "states disagrees with this answer." in words
    assert after(page, "Proven") == "20 <= log Z <= 24"
    assert after(page, "Status") == "annealing, supported by ep"
    assert after(page, "Model") == "dense.npz: 30 spins"
    assert after(page, "Time") == "4 s"
    assert after(page, "Seed") == "0"
    assert [row[0] for row in page.rows][:7] == ["method", "ep", "annealing", "states", "mf", "wmbe", "bp"]
    for row in tables.tried(tried_estimate().tried).rows:
        assert list(row) in page.rows
    assert [page.rows[-1][0], page.rows[-1][1].split(",")[0]] == ["auto", "budget = 10.0"]
    assert len(page.drawings) == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": sz.Kind.EXACT, "std_error": None}, "This number is exact, up to rounding."),
        ({"kind": sz.Kind.LOWER_BOUND}, "This number is a proven lower bound"),
        ({"kind": sz.Kind.UPPER_BOUND}, "This number is a proven upper bound"),
        ({"trusted": False}, "This is an estimate that is not to be trusted"),
        ({"checked_by": ("ep", "mps")}, "It was checked by ep and mps."),
        ({"interrupted": True}, "The run was interrupted; this is the best answer so far."),
    ],
)
def test_what_the_number_is_stands_there_in_words(changes, words):
    assert words in checked(estimate_page(tried_estimate(**changes), "title", "model")).words


def test_numbers_sort_by_their_value():
    page = checked(estimate_page(tried_estimate(), "title", "model"))
    cells = [cell for cell in page.all("td") if cell.get("data-heading") == "log Z"]
    assert [cell["data-value"] for cell in cells] == ["21.4", "21.4312", "19.0", "20.0", "24.0", ""]
    assert all("sortable" in table["class"] for table in page.all("table")[:1])


def test_marginals_are_a_picture_and_a_table():
    found = sz.marginals(MODEL)
    page = checked(estimate_page(found.estimate, "title", "model", found))
    assert len(page.drawings) == 2
    rows = page.rows[page.rows.index(["spin", "mean", "P(-1)", "P(+1)"]) + 1 :][:9]
    assert [float(row[1]) for row in rows] == pytest.approx(found.mean.tolist(), abs=1e-6)
    assert [[float(cell) for cell in row[2:]] for row in rows] == [
        pytest.approx(pair, rel=1e-5) for pair in found.probability.tolist()
    ]


@pytest.mark.parametrize(("values", "states"), [("01", ("0", "1")), ("pm1", ("-1", "+1"))])
def test_marginals_have_names_and_the_values_of_their_units(values, states):
    rbm = sz.RBM([[0.5, -0.25], [0.25, 0.125]], [0.1, 0.2], [0.3, 0.4], values=values, names=["a", BAD, "$c$", "d"])
    found = sz.marginals(rbm)
    text = estimate_page(found.estimate, "title", "model", found)
    page = checked(text)
    noun = "unit" if values == "01" else "spin"
    rows = page.rows[page.rows.index([noun, "mean", *(f"P({state})" for state in states)]) + 1 :][:4]
    assert [row[0] for row in rows] == ["a", BAD, "$c$", "d"]
    assert [float(row[1]) for row in rows] == pytest.approx(found.mean.tolist(), abs=1e-6)
    assert text.count("<script") == 1
    assert f"Means of 4 {noun}s (exact)." in page.words
    assert "$c$" in page.words
    assert "$c$" in written(page.drawings[-1])


def test_letters_that_matplotlib_has_not_do_not_disturb():
    found = sz.marginals(sz.Ising([0.5, 0.25], names=["a", "\u96e8"]))
    page = Page(estimate_page(found.estimate, "title", "model", found))
    assert "\u96e8" in page.words
    assert "\u96e8" in written(page.drawings[-1])


def test_control_characters_are_escaped():
    found = sz.marginals(sz.Ising([0.5, 0.25], names=["a", "b\x01"]))
    page = Page(estimate_page(found.estimate, "title", "model", found))
    assert r"b\x01" in page.words
    assert r"b\x01" in written(page.drawings[-1])


def test_a_long_table_of_means_is_cut_and_says_so(monkeypatch):
    monkeypatch.setattr(answer, "MOST_MEANS", 4)
    found = sz.marginals(MODEL)
    page = checked(estimate_page(found.estimate, "title", "model", found))
    assert "The table has the first 4 of 9 spins." in page.words
    assert sum(row[0].startswith("spin ") for row in page.rows) == 4


def versions():
    return f"spectralz {sz.__version__}, numpy {np.__version__}, numba {version('numba')}, Python "


def test_a_page_says_how_to_find_the_answer_again():
    before = datetime.now(UTC).replace(second=0, microsecond=0)
    page = checked(estimate_page(tried_estimate(), "title", "model", command="spectralz solve 'my glass.npz'"))
    date = datetime.strptime(after(page, "Date"), "%Y-%m-%d %H:%M UTC").replace(tzinfo=UTC)
    assert before <= date <= datetime.now(UTC)
    assert after(page, "Versions").startswith(versions())
    assert "To run it again: spectralz solve 'my glass.npz' The budget is in seconds" in page.words


def test_without_a_command_none_is_shown():
    page = checked(estimate_page(sz.log_z(MODEL), "title", "model"))
    assert "To run it again" not in page.words
    assert "budget is in seconds" not in page.words  # an exact answer does not depend on it


def test_seeds_of_methods_that_differ_are_named():
    methods = [sz.MeanField(seed=1), sz.Annealing(population=8, seed=2), "bp"]
    page = checked(comparison_page(sz.compare(MODEL, methods), "title", "model", command="spectralz compare a.uai"))
    assert after(page, "Seed") == "mf 1, annealing 2"
    assert after(page, "Versions").startswith(versions())
    assert "To run it again: spectralz compare a.uai" in page.words


def test_details_are_a_table_and_no_python():
    found = {
        "why": "annealing, supported by ep",  # the status, which is there already
        "tried": [{"method": "ep", "log_z": 0.1 + 0.2, "parts": [1, 2]}, {"method": "mf", "seed": None}],
        "is_forest": np.bool_(True),
        "diagonal": np.linspace(-2.0, 1.0, 50),
        "bounds": [1.5, 2.25],
        "names": ["a"] * 9,
        "buckets": [[0, [{"scope": [0, 1]}]]],
        "nothing": None,
    }
    text = estimate_page(tried_estimate(details=found), "title", "model")
    page = checked(text)
    assert page.rows[page.rows.index(["name", "value"]) + 1 :][:8] == [
        ["tried 1, method", "ep"],
        ["tried 1, log_z", "0.3"],
        ["tried 1, parts", "1, 2"],
        ["tried 2, method", "mf"],
        ["is_forest", "yes"],
        ["diagonal", "50 numbers from -2 to 1"],
        ["bounds", "1.5, 2.25"],
        ["names", "9 values"],
    ]
    assert not re.search(r"\[\{|\{'|': |None|True|np\.", page.words)


@pytest.mark.parametrize("method", sorted(set(sz.METHODS) - {"quadrature", "low_rank", "planar"}))
def test_no_method_leaks_python(method):
    page = Page(estimate_page(sz.log_z(MODEL, method), "title", "model"))
    assert not re.search(r"\[\{|\{'|': |None|True|False|np\.|array\(", page.words)


@pytest.mark.parametrize("command", ["solve", "compare"])
def test_the_command_line_is_on_its_page(command, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "a folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    sz.write(MODEL, "my grid.uai")
    words = [command, str(folder / "my grid.uai"), "-m", "exact", f"--html={folder / 'page.html'}", "--beta", "0.5"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert not ended.value.code, capsys.readouterr().err
    text = (folder / "page.html").read_text(encoding="utf-8")
    shown = f"spectralz {command} 'my grid.uai' -m exact --html=page.html --beta 0.5"
    assert shown in checked(text).words
    assert "a folder" not in text


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("a/b.uai", "a/b.uai"),
        ("../b.uai", "../b.uai"),
        ("/home/some body/b.uai", "b.uai"),
        ("/home/somebody/", "somebody"),
        ("C:\\Users\\Some Body\\b.uai", "b.uai"),
        ("--html=/home/somebody/b.html", "--html=b.html"),
        ("-e/home/somebody/b.evid", "-eb.evid"),
        ("-g", "-g"),
        ("a=+1", "a=+1"),
        ("budget=1/2", "budget=1/2"),
    ],
)
def test_words_of_a_command_line_lose_their_folders(word, shown):
    context = SimpleNamespace(meta={TYPED: ["spectralz", word]})
    assert shlex.split(command_as_typed(context)) == ["spectralz", shown]


def test_a_comparison():
    page = checked(comparison_page(COMPARISON, "A grid", "nine spins"))
    exact = COMPARISON["exact"].log_z
    assert f"log Z = {exact:.12g} (exact). 5 methods, 1 of them without an answer." in page.words
    assert re.search(r"Of the methods that are not exact, \S+ is closest, with an error of", page.words)
    for row in tables.comparison(COMPARISON).rows:
        assert list(row) in page.rows
    assert after(page, "Model") == "nine spins"
    assert len(page.drawings) == 1


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        (["mf", "bp"], "None of them is exact"),
        (["exact"], "Every answer is exact."),
        (["low_rank"], "without an answer"),
    ],
)
def test_smaller_comparisons_are_pages_too(methods, words):
    text = comparison_page(sz.compare(MODEL, methods), "title", "model")
    assert words in Page(text).words


def test_the_closest_method_is_named():
    rows = {row.name: row for row in COMPARISON}
    exact = rows["exact"].estimate
    near = sz.ComparisonRow(sz.MeanField(), replace(exact, kind=sz.Kind.ESTIMATE, log_z=exact.log_z - 0.25), None)
    far = sz.ComparisonRow(sz.Exact(), replace(exact, kind=sz.Kind.ESTIMATE, log_z=exact.log_z + 0.5), None, "far")
    text = comparison_page(sz.Comparison((far, rows["exact"], near)), "title", "model")
    assert "Of the methods that are not exact, mf is closest, with an error of -0.25." in Page(text).words


@pytest.mark.slow
def test_words_of_users_are_escaped():
    shown = tried_estimate(status=sz.Status(BAD), tried=(trial(BAD, "chosen", log_z=1.0, why=BAD),))
    failed = sz.ComparisonRow(sz.Exact(), None, sz.SpectralzError(BAD), BAD)
    pages = [
        estimate_page(shown, BAD, BAD),
        comparison_page(sz.Comparison((failed, *COMPARISON.rows)), BAD, BAD),
    ]
    for text in pages:
        assert text.count("<script") == 1
        assert BAD in checked(text).words


def test_no_folder_of_the_machine_is_told():
    shown = tried_estimate(status=sz.Status("read /home/somebody/models/a.uai"))
    text = estimate_page(shown, "/home/somebody/models/a.uai", "/home/somebody/models/a.uai: 3 spins")
    assert "somebody" not in text
    assert after(checked(text), "Model") == "a.uai: 3 spins"
