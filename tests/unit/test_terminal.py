"""What a terminal shows: brackets and numbers to scale, nothing where there is nothing to see, and progress."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectralz._support.progress import report
from spectralz.cli import console
from spectralz.show.numbers import with_error
from spectralz.show.text import bracket_line
from tests.helpers import FakeClock


def bar_of(line: str) -> str:
    """The part of a line that is drawn, without its labels."""
    return line.split(" ", 2)[2].rsplit(" ", 2)[0]


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (386.412491, 0.0123, "386.412 ± 0.012"),
        (386.412491, 0.0996, "386.41 ± 0.10"),
        (386.412491, 1.26, "386.4 ± 1.3"),
        (386.412491, 123.4, "390 ± 120"),
        (-5.0, 0.5, "-5.00 ± 0.50"),
        (386.412491, None, "386.412491"),
        (386.412491, 0.0, "386.412491 ± 0"),
        (386.412491, 1e-16, "386.412491 ± 1e-16"),
        (0.0, 1e-20, "0.000000000 ± 1e-20"),
    ],
)
def test_an_error_decides_how_many_digits_are_shown(value, error, text):
    assert with_error(value, error) == text


def test_a_bar_is_to_scale():
    line = bracket_line(25.0, 0.0, 100.0, 5.0, width=120)
    bar = bar_of(line)
    assert len(line) == 120
    assert len(bar) == 120 - len("lower 0 ") - len(" upper 100")
    cells = len(bar) - 1
    assert (bar[0], bar[-1]) == ("├", "┤")
    assert bar.index("●") == round(0.25 * cells)
    assert bar.index("[") == round(0.15 * cells)
    assert bar.index("]") == round(0.35 * cells)
    assert set(bar[bar.index("[") + 1 : bar.index("]")]) == {"═", "●"}


@given(
    lower=st.floats(-1e6, 1e6),
    span=st.floats(1e-2, 1e6),
    share=st.floats(0.0, 1.0),
    error=st.none() | st.floats(0.0, 1e7),
    width=st.integers(1, 200),
    ascii_only=st.booleans(),
    sides=st.sampled_from(["both", "lower", "upper"]),
)
def test_a_line_fits_and_its_marker_is_inside_the_bracket(lower, span, share, error, width, ascii_only, sides):
    upper = lower + span
    low, high = (None if sides == "upper" else lower), (None if sides == "lower" else upper)
    log_z = min(lower + share * span, upper)
    text = bracket_line(log_z, low, high, error, width=width, ascii_only=ascii_only)
    if not text:
        assert sides != "both"  # the answer is the one bound there is
        return
    if width >= 40:
        assert all(len(line) <= width for line in text.splitlines())
    marker = "*" if ascii_only else "●"
    bar = next(line for line in text.splitlines() if marker in line)
    assert text.count(marker) == 1
    if sides == "both":
        start = min(bar.find(sign) for sign in ("├", "|", marker) if sign in bar)
        stop = max(bar.rfind(sign) for sign in ("┤", "|", marker) if sign in bar)
        inside = bar.index(marker) - start
        assert abs(inside - (log_z - lower) / (upper - lower) * (stop - start)) <= 0.5 + 1e-6
    if ascii_only:
        assert text.isascii()


def test_a_bar_of_error_smaller_than_a_cell_is_the_marker_alone():
    line = bracket_line(13.5, 12.3, 14.9, 1e-9)
    assert "●" in line
    assert not set("[]═") & set(line)


def test_a_bar_of_error_ends_at_the_proven_bounds():
    bar = bar_of(bracket_line(13.5, 12.3, 14.9, 100.0))
    assert set(bar[1:-1]) == {"═", "●"}
    assert (bar[0], bar[-1]) == ("├", "┤")


@pytest.mark.parametrize(
    ("lower", "upper", "start", "end"),
    [(12.3, None, "lower 12.30 ├", "▶ no upper bound"), (None, 14.897, "no lower bound ◀", "┤ upper 14.90")],
)
def test_a_missing_side_is_an_arrow(lower, upper, start, end):
    line = bracket_line(13.5, lower, upper, 0.1)
    assert line.startswith(start)
    assert line.endswith(end)
    assert "[" in line
    assert "]" in line


@pytest.mark.parametrize(
    ("log_z", "lower", "upper"),
    [
        (13.5, None, None),
        (13.5, 13.5, 13.5),
        (24.598, 24.598 - 1e-13, 24.598 + 1e-13),
        (1e9, 1e9 - 0.1, 1e9 + 0.1),
        (13.5, 13.5, None),
        (13.5, None, 13.5),
    ],
)
def test_nothing_is_drawn_where_there_is_nothing_to_see(log_z, lower, upper):
    assert bracket_line(log_z, lower, upper) == ""


def test_an_answer_outside_its_bracket_is_shown_outside():
    bar = bracket_line(16.0, 12.0, 14.0, width=60)
    assert bar.index("┤") < bar.index("●")
    assert set(bar[bar.index("┤") + 1 : bar.index("●")]) == {" "}


def test_labels_are_rounded_outwards():
    line = bracket_line(13.5, 12.319, 14.891)
    assert line.startswith("lower 12.31 ")
    assert line.endswith(" upper 14.90")


def test_labels_go_below_where_the_line_is_short():
    first, second = bracket_line(13.5, 12.3, 14.897, 0.1, width=32).splitlines()
    assert len(first) == len(second) == 32
    assert second.startswith("lower 12.30 ")
    assert second.endswith(" upper 14.90")


# ------------------------------------------------------------------------------------------------------------- progress


@pytest.fixture
def terminal(monkeypatch, capsys):
    """A terminal on stderr, and a clock that goes on where a test says so; calling it returns what was shown."""
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "120"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    clock = FakeClock()
    monkeypatch.setattr("spectralz._support.clock.seconds", clock)

    def shown():
        return re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)

    shown.clock = clock
    return shown


def test_progress_shows_what_is_done_and_elapsed_of_budget(terminal):
    with console.progress(10.0):
        terminal.clock.advance(3.2)
        report("annealing", 0.32)
    last = terminal().split("annealing")[-1]
    assert re.search(r"32% 3\.2 s of 10 s", last)
    assert "-:--:--" not in last


def test_progress_without_a_budget_shows_elapsed_alone(terminal):
    with console.progress():
        terminal.clock.advance(75.0)
        report("eliminating spins", 0.5)
    last = terminal().split("eliminating spins")[-1]
    assert re.search(r"50% 1:15 ", last)
    assert " of " not in last


def test_progress_goes_on_after_a_task_that_is_done(terminal):
    with console.progress(10.0):
        report("eliminating spins", 1.0)
        terminal.clock.advance(2.0)
        report("annealing", 0.25)
    assert re.search(r"[⠁-⣿] annealing .* 25% 2\.0 s of 10 s", terminal())  # with a spinner that turns


@pytest.mark.parametrize(
    ("arguments", "budget"),
    [
        (["solve", "m.npz"], 10.0),
        (["solve", "m.npz", "-b", "2.5"], 2.5),
        (["solve", "m.npz", "-w", "1e7"], None),
        (["solve", "m.npz", "-m", "exact"], None),
        (["bounds", "m.npz"], 10.0),
        (["bounds", "m.npz", "-b", "3"], 3.0),
        (["bounds", "m.npz", "-w", "1e6"], None),
        (["sample", "m.npz", "x.npy", "-b", "4"], 4.0),
        (["compare", "m.npz", "-m", "mf"], None),
    ],
)
def test_commands_tell_their_budget(tmp_path, monkeypatch, arguments, budget):
    import spectralz as sz
    from spectralz.cli import main, solving

    monkeypatch.chdir(tmp_path)
    sz.write(sz.generators.complete(5, 0.2, seed=0), "m.npz")
    told = []

    def listened(seconds=None):
        told.append(seconds)
        return console.progress(seconds)

    monkeypatch.setattr(solving, "progress", listened)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert not ended.value.code
    assert told == [budget]
