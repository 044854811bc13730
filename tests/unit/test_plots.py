"""Pictures by their structure: what is drawn, where, and under which name; not by their pixels."""

from __future__ import annotations

from dataclasses import replace

import pytest
from matplotlib.figure import Figure

import spectralz as sz
from spectralz.errors import OptionError
from spectralz.show.canvas import draw_legend, empty_figure, plain_powers
from spectralz.show.plots import bracket_figure, bracket_picture
from tests.helpers import trial, tried_estimate


def labels(axes):
    return [label.get_text().split("\n")[0].split(" ")[0] for label in axes.get_yticklabels()]


def drawn(axes, place):
    """The x values of all that is drawn in a row."""
    rows = [line for line in axes.lines if list(line.get_ydata()) != [0, 1]]  # without the line through all of them
    return {float(x) for line in rows for x, y in zip(*line.get_data(), strict=True) if y == place}


def test_each_method_that_was_tried_has_its_row():
    estimate = tried_estimate()
    axes = bracket_figure(estimate, "title").axes[0]
    assert labels(axes) == ["answer", "ep", "annealing", "states", "mf", "wmbe", "bp"]
    assert drawn(axes, 0) >= {20.0, 21.4312, 24.0}
    assert drawn(axes, 1) == {21.4}
    assert sorted(drawn(axes, 2)) == pytest.approx([21.4312 - 0.0246, 21.4312, 21.4312 + 0.0246])
    assert drawn(axes, 4) == {20.0}
    assert drawn(axes, 5) == {24.0}
    assert drawn(axes, 6) == set()
    assert axes.get_ylim() == (6.5, -0.5)  # the answer on top


def test_estimates_that_crowd_in_a_wide_bracket_get_a_panel_of_their_own():
    wide = replace(tried_estimate(), lower=-1000.0, upper=1000.0)
    whole, near = bracket_figure(wide, "title").axes
    assert whole.get_xlim()[0] < -1000.0
    assert whole.get_xlim()[1] > 1000.0
    assert 18.0 < near.get_xlim()[0] < 18.6  # states, which disagrees, two errors below 19
    assert 21.45 < near.get_xlim()[1] < 23.0
    assert len(bracket_figure(tried_estimate(), "title").axes) == 1


def test_what_lies_far_outside_the_bracket_is_an_arrow_and_does_not_stretch_the_picture():
    tried = (trial("trw", "bound", upper=500.0), trial("ep", "not trusted", log_z=-300.0, std_error=200.0))
    axes = bracket_figure(tried_estimate(tried=tried), "title").axes[0]
    assert axes.get_xlim() == pytest.approx((19.0, 25.0))
    assert [text.get_text() for text in axes.texts] == ["500 →", "← -300"]
    assert [text.get_position()[1] for text in axes.texts] == [1, 2]


def test_what_the_answer_does_not_rest_on_is_hollow():
    axes = bracket_figure(tried_estimate(), "title").axes[0]
    markers = {line.get_ydata()[0]: line for line in axes.lines if line.get_marker() == "o"}
    assert markers[3].get_markerfacecolor() == "white"
    assert markers[2].get_markerfacecolor() != "white"


@pytest.mark.parametrize("method", ["exact", "mf", "wmbe", "bp", "spectral"])
def test_an_answer_with_nothing_tried_is_a_picture_too(method):
    estimate = sz.log_z(sz.generators.complete(8, 1.0, seed=0), method)
    axes = bracket_figure(estimate, "title").axes
    assert len(axes) == 1
    assert labels(axes[0]) == ["answer"]
    assert estimate.log_z in drawn(axes[0], 0)


def test_rounding_is_not_drawn():
    left, right = bracket_figure(sz.log_z(sz.generators.complete(8, 1.0, seed=0)), "title").axes[0].get_xlim()
    assert right - left > 1e-7


def test_a_legend_lies_below_the_name_of_its_axis():
    figure = empty_figure()
    axes = figure.add_subplot()
    axes.plot(range(8), range(8), label="a line")
    axes.set_xlabel("an axis")
    draw_legend(axes)
    figure.canvas.draw()
    assert axes.get_legend().get_window_extent().y1 < axes.xaxis.label.get_window_extent().y0
    assert axes.get_legend().get_window_extent().y0 >= 0.0
    assert axes.get_window_extent().height > 72


@pytest.mark.parametrize(
    ("ends", "between"),
    [((0.2, 0.9), {"0.2", "0.3", "0.5"}), ((0.2, 30.0), set()), ((2.05, 2.45), {"2.1", "2.2", "2.3", "2.4"})],
)
def test_numbers_between_powers_are_written_where_there_are_few_powers(ends, between):
    axes = Figure().subplots()
    axes.set(yscale="log", ylim=ends)
    plain_powers(axes.yaxis)
    axes.figure.canvas.draw()
    first, last = ends[0] * (1.0 - 1e-9), ends[1]  # older releases of matplotlib round the first tick down
    shown = [label for label in axes.get_yticklabels(minor=True) if first <= label.get_position()[1] <= last]
    assert {label.get_text() for label in shown if len(label.get_text()) in (1, 2, 3)} == between
    assert all("$" not in label.get_text() for label in axes.get_yticklabels())


def test_a_format_that_is_not_known_is_refused():
    with pytest.raises(OptionError, match="one of png, svg, pdf"):
        bracket_picture(tried_estimate(), "title", "gif")
