"""The report, from rows written by hand: what is on the page, that it is well-formed, and what it refuses."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from spectralz.errors import FormatError
from spectralz.report import Claim, Figure, page, parts, write_report
from spectralz.report.entries import read_folder, tally, without_folders
from spectralz.report.page import Verdict
from spectralz.sweeps import Contestant, Sweep
from spectralz.sweeps.rows import COLUMNS
from tests.helpers import CONTESTANTS, FIGURES, SWEEP, VERSIONS, Page, figure, row, rows_of, write_sweep


@pytest.fixture
def undrawn(monkeypatch):
    """Skip the drawing, which takes most of the time, where nobody looks at it."""
    monkeypatch.setattr(page, "_drawn", lambda entry, alt: page.Picture(b"<svg/>", b"\x89PNG", "<svg></svg>"))


@pytest.fixture
def folder(tmp_path):
    write_sweep(tmp_path / "fig3a", rows_of(SWEEP), SWEEP)
    mine = Sweep(**{**vars(SWEEP), "name": "mine"})
    write_sweep(tmp_path / "mine", rows_of(mine), mine)
    return tmp_path


def page_of(folder: Path, figures: Mapping[str, Figure] = FIGURES) -> Page:
    return Page(write_report(folder, figures).read_text())


@pytest.mark.usefixtures("undrawn")
def test_page_is_well_formed_and_says_what_it_is(folder):
    page = page_of(folder)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert page.all("html") == [{"lang": "en"}]
    assert [len(page.all(tag)) for tag in ("title", "main", "h1", "nav")] == [1, 1, 1, 1]
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.all("meta")
    targets = [link["href"] for link in page.all("a")]
    assert {target[1:] for target in targets if target.startswith("#")} <= set(ids)
    assert {label for s in page.all("section") for label in [s["aria-labelledby"]]} <= set(ids)
    assert all((folder / target).is_file() for target in targets if not target.startswith("#"))


@pytest.mark.slow
def test_pictures_are_inside_have_words_and_a_size(folder):
    page = page_of(folder)
    assert len(page.drawings) == 2
    for image in page.all("img"):
        assert image["alt"]
        assert int(image["width"]) > 0
        assert int(image["height"]) > 0


@pytest.mark.slow
def test_nothing_is_loaded_from_anywhere(folder):
    text = write_report(folder, FIGURES).read_text()
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)|<iframe|<script [^>]*src", text)
    page = Page(text)
    sources = [value for _, attributes in page.tags for name, value in attributes.items() if name == "src"]
    assert all(source.startswith("data:") for source in sources)
    assert all(use["href"].startswith("#") for use in page.all("use"))
    assert [link["href"] for link in page.all("link")] == ["data:,"]


@pytest.mark.usefixtures("undrawn")
def test_every_summary_is_a_row(folder):
    rows = page_of(folder).rows
    for contestant in CONTESTANTS:
        for x in ("0.5", "1", "10"):
            assert sum(row[:2] == [contestant.label, x] for row in rows) == 2  # once for fig3a, once for mine
    bp = next(row for row in rows if row[:2] == ["BP-200", "1"])
    # |errors| 0.9, 0.99, 1.08: mean 0.99, deviation 0.09, standard error 0.09 / sqrt 3; signed (0.9 - 0.99 + 1.08) / 3
    assert bp[2:] == ["0.990 ± 0.052", "0.33", "0.09", "3", "0", "0.01"]


@pytest.mark.usefixtures("undrawn")
def test_claims_are_shown_with_their_verdicts_on_top_and_at_the_figure(folder):
    page = page_of(folder)
    assert ["fig3a", "Algorithm 2 is best", "holds"] in page.rows
    assert ["fig3a", "BP is better than <MF>", "does not hold"] in page.rows
    assert ["Algorithm 2 is best", "Its mean |error| is 0.02 < 0.9.", "holds"] in page.rows
    assert ["BP is better than <MF>", "0.9 against 0.2.", "does not hold"] in page.rows
    assert "Of the paper's 2 claims, 1 holds and 1 does not hold here. This is the quick setting" in page.words


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("verdicts", "sentence"),
    [
        ([True], "The paper's claim holds here."),
        ([False], "The paper's claim does not hold here."),
        ([True, True], "Both of the paper's claims hold here."),
        ([False] * 3, "None of the paper's 3 claims holds here."),
        (
            [True, True, False, None],
            "Of the paper's 4 claims, 2 hold, 1 does not hold and 1 could not be checked here.",
        ),
    ],
)
def test_tally_reads_as_a_sentence(verdicts, sentence):
    assert tally([Verdict("claim", "seen.", holds) for holds in verdicts]) == sentence


@pytest.mark.usefixtures("undrawn")
def test_claim_that_cannot_be_checked_says_so(folder):
    def check(rows):
        raise KeyError("WMBE-10")

    figures = {"fig3a": figure(claims=(Claim(sentence="WMBE bounds", check=check),))}
    rows = page_of(folder, figures).rows
    assert ["WMBE bounds", "These rows do not say: KeyError: 'WMBE-10'", "not checked"] in rows


@pytest.mark.slow
def test_files_lie_beside_the_page(folder):
    write_report(folder, FIGURES)
    for name in ("fig3a", "mine"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / f"{name}.svg").read_text()
        with (folder / f"{name}.csv").open(newline="") as file:
            table = list(csv.DictReader(file))
        assert [(line["label"], float(line["x"])) for line in table][:2] == [("BP-200", 0.5), ("BP-200", 1.0)]
        assert float(table[1]["mean"]) == pytest.approx(0.99)
        assert len(table) == 9


@pytest.mark.slow
def test_same_rows_make_the_same_bytes(folder):
    write_report(folder, FIGURES)
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    write_report(folder, FIGURES)
    assert before == {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert len(before) == 7


def test_words_of_users_are_escaped(tmp_path):
    nasty = '<script>alert("1 & 2")</script>$x'
    failed = {"log_z": None, "truth": None, "error": None, "failure": f"broke on {nasty}"}
    sweep = Sweep(
        name="a&b",
        contestants=(Contestant(label=nasty, method="bp"),),
        generator="complete",
        parameters={"n": 3},
        values=(1.0,),
        repeats=2,
    )
    write_sweep(tmp_path / 'a&"b', [row(label=nasty, options=nasty), row(label=nasty, repeat=1, **failed)], sweep)
    page = page_of(tmp_path)
    assert len(page.all("script")) == 1
    assert [nasty, f"broke on {nasty}", "1"] in page.rows
    assert (tmp_path / 'a&"b.svg').is_file()
    assert 'Sweep a&"b' in page.words


@pytest.mark.usefixtures("undrawn")
def test_sweep_of_a_user_needs_no_figure(folder):
    page = page_of(folder)
    assert "At strength = 10, Algorithm 2 has the smallest mean |error|: 0.220 ± 0.012." in page.words
    assert "spectralz sweep config.toml" in page.words


@pytest.mark.slow
def test_sweep_without_truth_shows_log_z(tmp_path):
    write_sweep(tmp_path / "large", [row(truth=None, error=None, log_z=1.0 + i, x=i / 2, n=None) for i in range(4)])
    page = page_of(tmp_path)
    assert "There is no exact log Z to compare with" in page.words
    assert page.rows[1][:5] == ["BP-200", "0", "n/a", "n/a", "n/a"]
    assert page.drawings


def axes_of(tmp_path, rows):
    """Draw a sweep of one's own, and return its Axes with what stands on the axis of errors."""
    write_sweep(tmp_path / "mine", rows)
    axes = page._canvas(read_folder(tmp_path, {})[0]).axes[0]
    axes.figure.canvas.draw()
    return axes, [label.get_text() for label in axes.get_yticklabels()]


def lines_of(axes):
    return {found.get_label(): found[0] for found in axes.containers}


def rings_of(axes):
    return [line for line in axes.lines if line.get_markerfacecolor() == "none"]


def with_zeros(error):
    """Three methods at three places: one with errors, one without, one with an error as given in the middle."""
    sizes = {"bp": (0.5, 0.25, 0.03), "exact": (0.0, 0.0, 0.0), "mixed": (0.1, error, 0.1)}
    return [
        row(label=label, x=float(x), error=size, log_z=5.0 + size)
        for label, found in sizes.items()
        for x, size in enumerate(found)
    ]


@pytest.mark.parametrize(("error", "words"), [(0.0, "0"), (3e-15, "≤ 1e-14"), (-4e-14, "≤ 1e-13")])
def test_a_method_without_error_lies_on_the_floor_of_the_axis(tmp_path, error, words):
    axes, labels = axes_of(tmp_path, with_zeros(error))
    lines = lines_of(axes)
    assert list(lines["exact"].get_xydata().ravel()) == [0.0, 1e-3, 1.0, 1e-3, 2.0, 1e-3]
    assert list(lines["mixed"].get_ydata()) == [0.1, 1e-3, 0.1]
    assert list(lines["bp"].get_ydata()) == [0.5, 0.25, 0.03]
    assert [shown.get_text() for shown in axes.get_legend().get_texts()] == ["bp", "exact", "mixed"]
    assert axes.get_yscale() == "log"
    assert axes.get_ylim()[0] < 1e-3
    assert labels[0] == words
    assert labels[1] == "0.01"
    assert [list(line.get_xdata()) for line in rings_of(axes)] == [[0.0, 1.0, 2.0], [1.0]]
    assert [lines[label].get_markevery() for label in ("bp", "exact", "mixed")] == [[0, 1, 2], [], [0, 2]]
    assert rings_of(axes)[0].get_markersize() != rings_of(axes)[1].get_markersize()


def test_an_error_that_is_more_than_rounding_is_drawn_where_it_is(tmp_path):
    axes, labels = axes_of(tmp_path, with_zeros(1e-12))
    assert list(lines_of(axes)["mixed"].get_ydata()) == [0.1, 1e-12, 0.1]
    assert list(lines_of(axes)["exact"].get_ydata()) == [1e-13] * 3
    assert labels[0] == "0"
    assert len(labels) <= 9


def test_what_is_rounding_grows_with_log_z(tmp_path):
    rows = [row(label="bp", error=0.5, truth=1e6), row(label="wmbe", error=2e-9, truth=1e6)]
    axes, labels = axes_of(tmp_path, rows)
    assert list(lines_of(axes)["wmbe"].get_ydata()) == [0.01]
    assert labels[0] == "≤ 1e-08"


def test_without_zeros_there_is_no_floor(tmp_path):
    axes, labels = axes_of(tmp_path, [one for one in with_zeros(0.1) if one.label != "exact"])
    assert not rings_of(axes)
    assert axes.get_ylim()[0] == pytest.approx(0.01)
    assert not any("≤" in label or label == "0" for label in labels)


@pytest.mark.slow
def test_exact_sweep_with_no_error_at_all_is_drawn(tmp_path):
    rows = [row(error=0.0, log_z=5.0, x=float(i)) for i in range(3)]
    axes, labels = axes_of(tmp_path, rows)
    (line,) = lines_of(axes).values()
    assert len(set(line.get_ydata())) == 1
    assert line.get_ydata()[0] > axes.get_ylim()[0] > 0.0
    assert labels[0] == "0"
    assert page_of(tmp_path).drawings


def test_sweep_of_files_names_them_and_no_folder(tmp_path):
    files = ("/home/somebody/models/grid10.uai", "/home/somebody/models/grid20.uai")
    sweep = Sweep(name="files", contestants=CONTESTANTS[:1], files=files)
    failure = "FormatError: /home/somebody/models/grid20.uai, line 3: not a number"
    rows = [row(x=1.0, instance="grid10.uai"), row(x=2.0, log_z=None, error=None, truth=None, failure=failure)]
    write_sweep(tmp_path / "files", rows, sweep)
    text = write_report(tmp_path, FIGURES).read_text()
    page = Page(text)
    assert ["BP-200", "grid10.uai"] in [line[:2] for line in page.rows]
    assert ["BP-200", "FormatError: grid20.uai, line 3: not a number", "1"] in page.rows
    assert "somebody" not in text
    assert str(tmp_path) not in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot read /a/b/c.uai, sorry", "cannot read c.uai, sorry"),
        (r"cannot read 'C:\Users\me\c.uai'", "cannot read 'c.uai'"),
        ("file:///a/b/c.uai", "c.uai"),
        ("see https://example.org/a/b and 1/2 or n/a/b, models/c.uai", None),
    ],
)
def test_absolute_paths_are_cut(text, shown):
    assert without_folders(text) == (text if shown is None else shown)


@pytest.mark.parametrize(
    ("changes", "command"),
    [
        ({}, "spectralz paper fig3a --quick --out DIR"),
        ({"repeats": 100}, "spectralz paper fig3a --out DIR"),
        ({"edge_convention": "code"}, "spectralz paper fig3a --quick --edge-convention code --out DIR"),
    ],
)
def test_command_that_runs_a_figure_again(tmp_path, changes, command):
    stored = Sweep(**{**vars(SWEEP), **changes})
    write_sweep(tmp_path / "fig3a", rows_of(SWEEP), stored)
    assert command in page_of(tmp_path).words


@pytest.mark.usefixtures("undrawn")
def test_figure_from_files_is_run_again_with_them(tmp_path):
    stored = Sweep(name="fig3a", contestants=CONTESTANTS, files=("/somewhere/a.uai",))
    write_sweep(tmp_path / "fig3a", [row()], stored)
    assert "spectralz paper fig3a --uai DIR --out DIR" in page_of(tmp_path).words


@pytest.mark.usefixtures("undrawn")
def test_figure_from_files_has_the_title_and_notes_for_files(tmp_path):
    of_files = figure(files_title="The models of the competition", files_notes="Read from files.")
    stored = Sweep(name="fig3a", contestants=CONTESTANTS, files=("/somewhere/a.uai",))
    write_sweep(tmp_path / "fig3a", [row()], stored)
    words = page_of(tmp_path, {"fig3a": of_files}).words
    assert "The models of the competition" in words
    assert "Read from files." in words
    assert "random graphs" not in words


@pytest.mark.usefixtures("undrawn")
def test_models_listed_one_by_one_count_as_wanted(tmp_path):
    listed = Sweep(
        name="two",
        contestants=CONTESTANTS,
        generator="complete",
        instances=({"n": 4, "strength": 1.0}, {"n": 5, "strength": 1.0}),
        repeats=2,
    )
    write_sweep(tmp_path / "two", rows_of(listed), listed)
    assert "rows are here" not in page_of(tmp_path).words
    write_sweep(tmp_path / "two", rows_of(listed)[:-1], listed)
    count = 4 * len(CONTESTANTS)
    assert f"{count - 1} of {count} rows are here" in page_of(tmp_path).words


@pytest.mark.usefixtures("undrawn")
def test_configuration_is_all_there(folder):
    words = page_of(folder).words
    for part in ("complete (n = 8)", "0.5, 1, 10", "7 to 9", "quick", VERSIONS, "The range of s is not in the text."):
        assert part in words
    assert "max_iter = 200" in words
    assert "beyond the paper" in words


@pytest.mark.usefixtures("undrawn")
def test_unfinished_sweep_says_so(tmp_path):
    write_sweep(tmp_path / "mine", rows_of(SWEEP)[:5], SWEEP)
    assert "Not finished: 5 of 27 rows are here." in page_of(tmp_path).words


@pytest.mark.usefixtures("undrawn")
def test_sweep_that_has_not_begun_does_not_stop_the_rest(folder):
    write_sweep(folder / "later", [], SWEEP)
    page = page_of(folder)
    assert "Sweep later" in page.words
    assert len(page.all("figure")) == 2
    assert not (folder / "later.csv").exists()


@pytest.mark.slow
def test_drawing_that_fails_is_told_and_leaves_no_old_picture(folder):
    def fail(rows, axes):
        raise RuntimeError("no <ink>")

    write_report(folder, FIGURES)
    page = page_of(folder, {"fig3a": figure(draw=fail)})
    assert "The drawing failed with RuntimeError: no <ink>" in page.words
    assert len(page.all("figure")) == 1
    assert not (folder / "fig3a.png").exists()
    assert (folder / "fig3a.csv").exists()


@pytest.mark.slow
def test_large_drawing_is_shown_as_pixels(folder, monkeypatch):
    monkeypatch.setattr(parts, "LARGEST_SVG", 5)
    page = page_of(folder)
    assert not page.drawings
    assert len(page.all("img")) == 2
    assert all(image["src"].startswith("data:image/png;base64,") for image in page.all("img"))
    assert all(image["alt"] for image in page.all("img"))


@pytest.mark.usefixtures("undrawn")
def test_figures_come_in_the_order_of_the_paper(tmp_path):
    names = ("fig4", "fig2a")
    figures = {name: figure(name=name, title=f"{name}: a title", claims=()) for name in names}
    for name in names:
        write_sweep(tmp_path / name, rows_of(SWEEP), SWEEP)
    write_sweep(tmp_path / "a-sweep", rows_of(SWEEP), SWEEP)
    (tmp_path / "notes").mkdir()
    words = page_of(tmp_path, figures).words
    assert words.index("fig4:") < words.index("fig2a:") < words.index("Sweep a-sweep")
    assert "The paper's claims" not in words


@pytest.mark.usefixtures("undrawn")
def test_folder_of_a_single_sweep_keeps_its_rows(tmp_path):
    place = write_sweep(tmp_path / "rows", rows_of(SWEEP), SWEEP)
    before = (place / "rows.csv").read_bytes()
    assert len(page_of(place).all("figure")) == 1
    assert (place / "rows.csv").read_bytes() == before
    assert (place / "rows-sweep.csv").is_file()


@pytest.mark.usefixtures("undrawn")
def test_only_figures_that_are_given_are_known(folder):
    words = Page(write_report(folder).read_text()).words
    assert "Sweep fig3a" in words
    assert "The paper's claims" not in words


@pytest.mark.usefixtures("undrawn")
def test_a_page_without_a_figure_of_the_paper_does_not_speak_of_it(folder):
    page = Page(write_report(folder).read_text())
    assert "Sweeps of spectralz" in page.words
    assert "paper" not in page.words.lower()
    assert "an edge counted once weighs 2 A_ij" in page.words


def broken(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def test_no_folder_is_an_error(tmp_path):
    with pytest.raises(FormatError, match=r"nowhere: there is no such folder; give the one"):
        write_report(tmp_path / "nowhere", FIGURES)


@pytest.mark.usefixtures("undrawn")
def test_no_rows_anywhere_is_an_error(tmp_path):
    with pytest.raises(FormatError, match=r"no rows.csv with rows here"):
        write_report(tmp_path, FIGURES)
    write_sweep(tmp_path / "empty", [])
    with pytest.raises(FormatError, match=r"no rows.csv with rows here"):
        write_report(tmp_path, FIGURES)
    assert not (tmp_path / "report.html").exists()


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"instance,x\na,1\n",
        b"\xff\xfe\x00",
        (",".join(COLUMNS) + "\nname,one" + "," * (len(COLUMNS) - 2) + "\n").encode(),
        (",".join(COLUMNS) + "\nname,1.0,0,0,8\n").encode(),
        (",".join(COLUMNS) + "\n" + "name,1.0" + "," * len(COLUMNS) + "\n").encode(),
    ],
    ids=["empty", "columns missing", "not text", "not a number", "cut short", "too many cells"],
)
def test_broken_rows_are_an_error_that_names_the_file(folder, content):
    path = broken(folder / "mine", "rows.csv", content)
    with pytest.raises(FormatError, match="run the sweep again") as caught:
        write_report(folder, FIGURES)
    assert str(path) in str(caught.value)
    assert not (folder / "report.html").exists()
    assert not (folder / "fig3a.png").exists()


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff"])
def test_broken_configuration_is_an_error(folder, content):
    path = broken(folder / "mine", "sweep.json", content)
    with pytest.raises(FormatError, match="not a sweep in JSON") as caught:
        write_report(folder, FIGURES)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("broken", [{"files": 5}, {"contestants": [1]}, {"repeats": "x"}, {"values": 3}])
@pytest.mark.usefixtures("undrawn")
def test_configuration_of_wrong_types_is_named(tmp_path, broken):
    write_sweep(tmp_path / "mine", [row()])
    (tmp_path / "mine" / "sweep.json").write_text(json.dumps({**SWEEP.to_dict(), **broken}))
    with pytest.raises(FormatError, match="does not hold what a runner writes"):
        write_report(tmp_path, FIGURES)
