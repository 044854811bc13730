"""Results as people read them: short texts, HTML that is safe to show, plain values, tables of pandas, pictures."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

import spectralz as sz
from spectralz.errors import MissingDependencyError, TooLargeError
from spectralz.show import html, tables, text
from spectralz.show.maps import side_of_grid
from spectralz.show.numbers import proven
from spectralz.show.tables import Table, headline
from tests.helpers import trial, tried_estimate

MODEL = sz.generators.grid(4, 1.0, seed=0)
BAD = "<script>alert('x')</script> & \"more\""


def large_marginals(n=1000):
    """Marginals of n spins whose means are evenly spread, with the signs mixed."""
    mean = np.linspace(0.0, 1.0, n) * (-1.0) ** np.arange(n)
    probability = np.column_stack([(1.0 - mean) / 2.0, (1.0 + mean) / 2.0])
    edges = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    return sz.Marginals(
        mean=mean,
        probability=probability,
        edges=edges,
        pair_mean=np.zeros(n - 1),
        kind=sz.Kind.ESTIMATE,
        estimate=tried_estimate(),
    )


def some_bounds(**changes):
    rows = (
        sz.BoundsRow("trivial", 1.0, 500.0, 0.001, "spins alone"),
        sz.BoundsRow("mf", 20.123456789, None, 0.1, "converged"),
        sz.BoundsRow("trw", None, 24.987654321, 0.2, "stopped"),
        sz.BoundsRow("sdp", None, None, 0.0, "left out"),
    )
    return replace(sz.Bounds.best_of(rows, seconds=0.4), **changes)


COMPARISON = sz.compare(MODEL, ["exact", "BP-200", "mf", "trw", "low_rank"])


def results():
    return {
        "estimate": tried_estimate(),
        "exact": sz.log_z(MODEL),
        "bounds": some_bounds(),
        "comparison": COMPARISON,
        "marginals": large_marginals(),
        "description": sz.describe(MODEL),
        "model": MODEL,
    }


@pytest.fixture(params=list(results()))
def result(request):
    return results()[request.param]


# Text.


def test_texts_are_a_few_short_lines(result):
    lines = str(result).splitlines()
    assert len(lines) <= 10
    assert all(len(line) <= 100 for line in lines)


@pytest.mark.parametrize("name", ["estimate", "exact", "bounds", "comparison", "marginals", "model"])
def test_representations_are_one_line(name):
    found = results()[name]
    line = repr(found)
    assert line.startswith(f"{type(found).__name__}(")
    assert line.endswith(")")
    assert "\n" not in line
    assert len(line) <= 120


def test_texts_do_not_grow_with_the_model():
    assert abs(len(str(large_marginals(1000))) - len(str(large_marginals(100)))) < 30
    assert len(str(sz.Ising(np.zeros(1000), np.zeros((1000, 1000))))) < 120


def test_an_answer_in_words():
    assert str(tried_estimate(status=sz.Status("annealing leads"))).splitlines() == [
        "log Z = 21.431 ± 0.012 (estimate, trusted)",
        "20 <= log Z <= 24 (proven)",
        "annealing leads",
        "auto, 4 s",
    ]
    assert repr(tried_estimate()) == "Estimate(log Z = 21.431 ± 0.012, estimate, trusted, by auto in 4 s)"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"trusted": False}, "log Z = 21.431 ± 0.012 (estimate, not trusted)"),
        ({"checked_by": ("ep",)}, "log Z = 21.431 ± 0.012 (estimate, trusted, checked by ep)"),
        ({"checked_by": ("ep", "mps")}, "log Z = 21.431 ± 0.012 (estimate, trusted, checked by ep and mps)"),
        ({"kind": sz.Kind.EXACT, "std_error": None}, "log Z = 21.4312 (exact)"),
        ({"kind": sz.Kind.LOWER_BOUND, "log_z": 20 + 2 / 3}, "log Z >= 20.6666666666 (proven lower bound)"),
        ({"kind": sz.Kind.UPPER_BOUND, "log_z": 20 + 1 / 3}, "log Z <= 20.3333333334 (proven upper bound)"),
    ],
)
def test_the_first_line_says_what_the_number_is(changes, words):
    assert str(tried_estimate(**changes)).splitlines()[0] == words
    assert headline(tried_estimate(**changes)) == words


def test_the_second_line_is_what_is_proven():
    def second(**changes):
        return str(tried_estimate(**changes)).splitlines()[1]

    assert second(lower=None) == "log Z <= 24 (proven)"
    assert second(upper=None) == "log Z >= 20 (proven)"
    assert second(lower=None, upper=None) == "no proven bounds"
    assert second(kind=sz.Kind.EXACT, lower=21.4311, upper=21.4312) == "proven to within 0.0001"
    # of a bound alone there is nothing more to say
    assert second(kind=sz.Kind.LOWER_BOUND, upper=None) == "annealing, supported by ep"


def test_an_interrupted_answer_says_so():
    assert str(tried_estimate(interrupted=True)).endswith("interrupted: the best answer so far")
    assert str(some_bounds(interrupted=True)).endswith("interrupted: more time may tighten them")


def test_a_long_status_is_wrapped_and_cut():
    lines = str(tried_estimate(status=sz.Status("word " * 200))).splitlines()
    assert len(lines) == 6
    assert all(len(line) <= 100 for line in lines)
    assert lines[4].endswith("...")
    lines = str(tried_estimate(status=sz.Status("x" * 1000))).splitlines()
    assert all(len(line) <= 100 for line in lines)


def test_bounds_in_words():
    assert str(some_bounds()).splitlines() == [
        "20.123456 <= log Z <= 24.987655 (proven, width 4.86)",
        "lower by mf, upper by trw",
        "4 methods, 0.4 s",
    ]
    assert repr(some_bounds()) == "Bounds(20.123456 <= log Z <= 24.987655, by mf and trw in 0.4 s)"


numbers = st.floats(-1e300, 1e300)


@given(lower=numbers, upper=numbers)
def test_printed_bounds_are_proven_too(lower, upper):
    lower, upper = min(lower, upper), max(lower, upper)
    line = proven(lower, upper)
    low, high = line.split(" <= log Z <= ")
    assert Fraction(low) <= Fraction(lower)
    assert Fraction(high) >= Fraction(upper)
    assert len(line) <= 60
    assert float(low) == pytest.approx(lower, rel=1e-6)
    assert float(high) == pytest.approx(upper, rel=1e-6)


@given(lower=numbers, upper=numbers)
def test_bounds_in_tables_are_rounded_outwards(lower, upper):
    lower, upper = min(lower, upper), max(lower, upper)
    both = tried_estimate(
        lower=lower, upper=upper, tried=(trial("wmbe", "bound", lower=lower, upper=upper, seconds=1.0),)
    )
    certified = dict(tables.estimate(both).rows)["certified"]
    said = tables.tried(both.tried).rows[0][1]
    shown = [
        re.fullmatch(r"(\S+) <= log Z <= (\S+) \(width \S+\)", certified).groups(),
        re.fullmatch(r">= (\S+), <= (\S+)", said).groups(),
        tables.comparison(compared(both)).rows[0][4:6],
        tables.bounds(bracketed(lower, upper)).rows[0][1:3],
    ]
    for below, above in shown:
        assert Fraction(below) <= Fraction(lower)
        assert Fraction(above) >= Fraction(upper)


def compared(estimate):
    return sz.Comparison((sz.ComparisonRow(sz.MeanField(), estimate, None),))


def bracketed(lower, upper):
    return sz.Bounds.best_of((sz.BoundsRow("wmbe", lower, upper, 0.1, ""),), seconds=0.1)


@given(value=numbers)
def test_an_answer_that_is_a_bound_is_rounded_outwards(value):
    for kind in (sz.Kind.LOWER_BOUND, sz.Kind.UPPER_BOUND):
        own = tried_estimate(kind=kind, log_z=value, std_error=None)
        for cell in (dict(tables.estimate(own).rows)["log Z"], tables.comparison(compared(own)).rows[0][1]):
            if kind is sz.Kind.LOWER_BOUND:
                assert Fraction(cell) <= Fraction(value)
            else:
                assert Fraction(cell) >= Fraction(value)


@given(lower=st.floats(-1e6, 1e6), width=st.floats(1.0, 1e6))
def test_labels_of_a_bracket_are_rounded_outwards(lower, width):
    upper = lower + width
    line = text.bracket_line(0.5 * (lower + upper), lower, upper)
    low, high = re.search(r"lower (\S+)", line)[1], re.search(r"upper (\S+)", line)[1]
    assert Fraction(low) <= Fraction(lower)
    assert Fraction(high) >= Fraction(upper)


def test_bounds_that_are_close_have_the_digits_that_tell_them_apart():
    assert proven(63.20722410898, 63.20722410899) != proven(63.20722410898, 63.20722410898)
    low, high = proven(1000.0, 1000.0 + 1e-9).split(" <= log Z <= ")
    assert 0.9e-9 < float(high) - float(low) < 1.2e-9


def test_marginals_name_the_most_and_the_least_certain_spins():
    lines = dict(line.split("  ", 1) for line in str(large_marginals(1000)).splitlines())
    assert lines["marginals"].strip() == "1000 spins, 999 edges (estimate)"
    assert lines["means"].strip() == "-1.0000 to +0.9990, mean size 0.5000"
    assert lines["most certain"].strip() == "spin 999 -1.0000, spin 998 +0.9990, spin 997 -0.9980"
    assert lines["least certain"].strip() == "spin 0 +0.0000, spin 1 -0.0010, spin 2 +0.0020"
    assert "log Z = 21.431 ± 0.012 (estimate, trusted); auto, 4 s" in lines["run"]
    few = str(large_marginals(4))
    assert "each        spin 0 +0.0000, spin 1 -0.3333, spin 2 +0.6667, spin 3 -1.0000\n" in few
    assert "certain" not in few


def named_marginals(values="pm1"):
    """Marginals of three spins with names, one of them a number."""
    mean = np.array([0.25, 0.5, 0.75] if values == "01" else [-0.25, 0.5, 0.75])
    return sz.Marginals(
        mean=mean,
        probability=np.column_stack([1.0 - mean, mean] if values == "01" else [(1.0 - mean) / 2.0, (1.0 + mean) / 2.0]),
        edges=np.array([[0, 1]]),
        pair_mean=np.array([0.125]),
        kind=sz.Kind.EXACT,
        estimate=sz.log_z(MODEL),
        names=("rain", BAD, 7),
        values=values,
    )


def test_marginals_say_names():
    lines = dict(tables.marginals(named_marginals()).rows)
    assert lines["marginals"] == "3 spins, 1 edge (exact)"
    assert lines["each"] == f"rain -0.2500, {BAD} +0.5000, spin 7 +0.7500"
    assert lines["means"] == "-0.2500 to +0.7500, mean size 0.5000"
    assert "rain -0.2500" in str(named_marginals())
    source = named_marginals()._repr_html_()
    assert "<script" not in source
    assert BAD in "".join(Page(source).words)


def test_marginals_of_zeros_and_ones_have_no_signs():
    found = named_marginals("01")
    lines = dict(tables.marginals(found).rows)
    assert lines["marginals"] == "3 units, 1 edge (exact)"
    assert lines["means"] == "0.2500 to 0.7500, of units that are 0 or 1"
    assert lines["pair means"] == "0.1250 to 0.1250"
    assert lines["each"].startswith("rain 0.2500, ")
    assert "means 0.2500 to 0.7500" in repr(found)
    axes = found.plot(own_axes())
    assert axes.get_ylabel() == "mean, E[v]"
    assert axes.get_ylim() == pytest.approx((-0.03, 1.03))
    assert axes.get_title().startswith("Means of 3 units")


def test_an_rbm_says_the_names_of_its_units():
    rbm = sz.RBM([[0.5, -0.25], [0.25, 0.125]], [0.1, 0.2], [0.3, 0.4], values="01")
    found = sz.marginals(rbm)
    assert dict(tables.marginals(found).rows)["each"] == ", ".join(
        f"{name} {mean:.4f}" for name, mean in zip(("v0", "v1", "h0", "h1"), found.mean, strict=True)
    )


def test_a_long_name_is_cut_and_put_into_one_line():
    assert tables.short_name("two\nlines") == r"two\nlines"
    assert len(tables.short_name("x" * 100)) == 60


def test_a_model_says_its_names():
    named = MODEL.named([f"site {i}" for i in range(16)])
    assert dict(tables.model(named).rows)["names"] == "site 0, site 1, site 2, ..., site 13, site 14, site 15"
    assert "names" not in dict(tables.model(MODEL).rows)
    magnet = sz.generators.curie_weiss(3).named(["a", "b", "c"])
    assert dict(tables.model(magnet).rows)["names"] == "a, b, c"


def test_certainty_is_told_by_the_smaller_probability_where_means_are_rounded():
    tiny = np.array([1e-20, 1e-30, 1e-25, 0.1, 0.2, 0.3, 0.4, 0.5])
    found = replace(
        large_marginals(8), mean=1.0 - 2.0 * tiny, probability=np.column_stack([tiny, 1.0 - tiny])
    )  # the first three means are all 1
    assert dict(tables.marginals(found).rows)["most certain"] == "spin 1 +1.0000, spin 2 +1.0000, spin 0 +1.0000"


def test_a_comparison_is_an_aligned_table():
    heading, *lines = str(COMPARISON).splitlines()
    assert heading.split() == ["method", "log", "Z", "error", "kind", "lower", "upper", "seconds", "status"]
    assert [line.split()[0] for line in lines] == ["exact", "BP-200", "mf", "trw", "low_rank"]
    places = [heading.index(name) for name in ("log Z", "error", "kind", "seconds", "status")]
    assert all(line[place - 1] == " " and line[place] != " " for line in lines for place in places)
    assert lines[-1].endswith("...")
    assert "refused" in lines[-1]
    assert repr(COMPARISON) == "Comparison(5 methods: exact, BP-200, mf, trw, low_rank)"


def test_a_very_long_table_is_cut():
    many = sz.Comparison(COMPARISON.rows * 10)
    lines = str(many).splitlines()
    assert len(lines) == 22
    assert lines[-1] == "... and 30 more"
    assert len(repr(many)) < 120


def test_line_breaks_in_a_cell_do_not_break_a_table():
    shown = text.aligned(Table(headings=("a", "b"), rows=(("1", "two\nlines"),)))
    assert shown.splitlines() == ["a  b", "1  two lines"]


def test_a_description_reads_as_the_command_line_prints_it():
    assert "edges         24 (density 0.2, kept sparse)\n" in str(sz.describe(MODEL))
    assert "treewidth     between 2 and 4\n" in str(sz.describe(MODEL))


# HTML.


class Page(HTMLParser):
    """What an HTML text has in it: tags, which must match, and the words between them."""

    def __init__(self, source):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(source)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert {name for name, _ in attrs} <= {"style"}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_html_is_plain_tables(result):
    page = Page(result._repr_html_())
    assert set(page.tags) <= {"div", "table", "thead", "tbody", "tr", "th", "td", "b", "br"}
    assert "url(" not in result._repr_html_()


def test_html_has_the_cells_of_the_command_line():
    page = Page(tried_estimate()._repr_html_())
    for cell in ("21.431 ± 0.012 (error)", "20 <= log Z <= 24 (width 4)", "supported", ">= 20", "not run"):
        assert any(cell in word for word in page.words)
    assert page.tags.count("table") == 2
    for cell in (cell for row in tables.tried(tried_estimate().tried).rows for cell in row if cell):
        assert cell in page.words
    assert Page(sz.log_z(MODEL)._repr_html_()).tags.count("table") == 1
    assert "BP-200" in Page(COMPARISON._repr_html_()).words
    assert "24 (density 0.2, kept sparse)" in Page(MODEL._repr_html_()).words
    assert "20.123456 <= log Z <= 24.987655 (proven, width 4.86)" in Page(some_bounds()._repr_html_()).words


def test_html_says_whether_to_trust_an_answer():
    def after(word, **changes):
        words = Page(html.estimate(tried_estimate(**changes))).words
        return words[words.index(word) + 1]

    assert after("trust") == "trusted"
    assert after("trust", trusted=False) == "not trusted"
    assert after("trust", checked_by=("ep",)) == "trusted, checked by ep"
    assert after("interrupted", interrupted=True).startswith("yes")


def test_html_is_escaped():
    answer = tried_estimate(status=sz.Status(BAD), tried=(trial(BAD, "chosen", log_z=1.0, why=BAD),))
    bounded = some_bounds(
        lower_method=BAD, rows=(sz.BoundsRow(BAD, 1.0, 2.0, 0.1, BAD),), lower=1.0, upper=2.0, upper_method="b"
    )
    failed = sz.ComparisonRow(sz.Exact(), None, sz.SpectralzError(BAD), BAD)
    shown = [answer, bounded, sz.Comparison((failed,)), replace(large_marginals(), estimate=answer)]
    for each in shown:
        source = each._repr_html_()
        assert "<script" not in source
        assert BAD in "".join(Page(source).words)


def test_a_model_kept_as_factors_is_described_without_writing_it_out():
    magnet = sz.generators.curie_weiss(n=100_000, strength=1.0, field=0.5)
    assert "rank 1 plus diagonal, kept as factors" in magnet._repr_html_()


# Plain values.


def test_results_survive_json(result):
    plain = result.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_a_model_can_be_made_again_from_its_plain_values():
    dense = sz.Ising([0.1, -0.2, 0.3], [[1.0, 0.5, 0.0], [0.5, 2.0, -0.25], [0.0, -0.25, 3.0]], offset=0.75)
    for model in (dense, MODEL, sz.Ising.from_factors([0.5, 0.0, 1.0], [2.0], [[1.0, -1.0, 0.5]], 0.25, 1.0)):
        plain = json.loads(json.dumps(model.to_dict()))
        assert list(plain) == ["n", "field", "edges", "weights", "diagonal", "offset", "storage", "names"]
        again = sz.Ising.from_edges(plain["n"], plain["edges"], plain["weights"], plain["field"], plain["offset"])
        states = np.where(np.random.default_rng(0).random((20, model.n)) < 0.5, -1, 1)
        assert np.allclose(again.shift_diagonal(plain["diagonal"]).log_weight(states), model.log_weight(states))
    assert [each.storage.word for each in (dense, MODEL, model)] == ["dense", "sparse", "factors"]
    with pytest.raises(TooLargeError, match="kept as factors"):
        sz.generators.curie_weiss(n=100_000).to_dict()


def test_plain_values_name_the_checks_after_the_trust():
    plain = list(tried_estimate(checked_by=("ep", "mps")).to_dict().items())
    at = plain.index(("trusted", True))
    assert plain[at + 1] == ("checked_by", ["ep", "mps"])
    assert tried_estimate().to_dict()["checked_by"] == []


def test_plain_values_of_marginals_and_comparisons():
    found = large_marginals(5)
    plain = found.to_dict()
    assert plain["mean"] == found.mean.tolist()
    assert plain["edges"] == found.edges.tolist()
    assert plain["estimate"]["log_z"] == 21.4312
    rows = COMPARISON.to_dict()["rows"]
    assert COMPARISON.to_dict()["reference"] == COMPARISON["exact"].log_z
    assert [row["name"] for row in rows] == ["exact", "BP-200", "mf", "trw", "low_rank"]
    assert [row["method"] for row in rows] == ["exact", "bp", "mf", "trw", "low_rank"]
    assert "no diagonal was found" in rows[-1]["error"]


def test_an_estimate_is_a_number():
    assert float(tried_estimate()) == 21.4312


def test_a_comparison_as_a_data_frame():
    pytest.importorskip("pandas", reason="pandas comes with the extra [pandas]")
    frame = COMPARISON.to_pandas()
    assert list(frame.columns) == [
        *("method", "log_z", "error", "kind", "lower", "upper", "std_error", "trusted", "seconds", "status", "failure")
    ]
    frame = frame.set_index("method")
    assert list(frame.index) == ["exact", "BP-200", "mf", "trw", "low_rank"]
    exact, mf = COMPARISON["exact"].log_z, COMPARISON["mf"].log_z
    assert frame.loc["mf", "error"] == mf - exact
    assert frame.loc["exact", "error"] == 0.0
    assert frame.loc["mf", "kind"] == "lower bound"
    assert frame["trusted"].tolist()[:4] == [True, False, True, True]
    assert frame.loc["low_rank", ["log_z", "error", "kind", "trusted", "seconds", "status"]].isna().all()
    assert "no diagonal was found" in frame.loc["low_rank", "failure"]
    assert frame["failure"].isna().tolist() == [True] * 4 + [False]
    assert frame["log_z"].dtype == frame["upper"].dtype == frame["std_error"].dtype == "float64"


def test_without_an_exact_answer_there_are_no_errors():
    pytest.importorskip("pandas", reason="pandas comes with the extra [pandas]")
    frame = sz.compare(MODEL, ["mf"]).to_pandas()
    assert frame["error"].isna().all()
    assert frame["log_z"].notna().all()


def test_pandas_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'spectralz\[pandas\]'"):
        COMPARISON.to_pandas()


# Pictures.


def own_axes():
    return Figure(layout="constrained").subplots()


DRAWN = [name for name in results() if name != "description"]


@pytest.mark.parametrize("name", DRAWN)
def test_results_draw_on_the_axes_that_they_are_given(name):
    given = own_axes()
    axes = results()[name].plot(given)
    assert axes is given
    assert axes.has_data()
    assert axes.get_xlabel()
    given.figure.canvas.draw()


@pytest.mark.parametrize("name", DRAWN)
def test_results_make_axes_of_their_own(name):
    import matplotlib.pyplot as plt

    axes = results()[name].plot()
    assert axes.figure.number in plt.get_fignums()
    axes.figure.canvas.draw()
    plt.close(axes.figure)


def labels(axes):
    return [label.get_text().split(" ")[0] for label in axes.get_yticklabels()]


def beside(axes):
    """The texts on the right of an Axes, from top to bottom."""
    return [shown.get_text() for shown in axes.texts if shown.get_position()[0] > 1.0]


def test_an_answer_is_drawn_with_its_numbers_and_what_was_tried():
    axes = tried_estimate().plot(own_axes())
    assert axes.get_title() == "log Z = 21.431 ± 0.012 (estimate, trusted)"
    assert labels(axes) == ["answer", "ep", "annealing", "states", "mf", "wmbe", "bp"]
    assert beside(axes) == [
        "21.431 ± 0.012",
        "21.4   agrees",
        "21.431 ± 0.012   chosen",
        "19.00 ± 0.20   disagrees",
        "≥ 20",
        "≤ 24",
        "not run",
    ]


def test_bounds_are_drawn_as_what_they_allow():
    axes = some_bounds().plot(own_axes())
    assert labels(axes) == ["trivial", "mf", "trw", "sdp"]
    assert beside(axes) == ["≥ 1, ≤ 500", "≥ 20.12345", "≤ 24.98766", "no bound"]
    left, right = axes.get_xlim()
    assert 18.0 < left < 20.0 < 25.0 < right < 27.0
    bars = {line.get_ydata()[0]: tuple(line.get_xdata()) for line in axes.lines if line.get_linewidth() == 5}
    assert bars == {0: (left, right), 1: (20.123456789, right), 2: (left, 24.987654321)}
    arrows = [(shown.get_text(), shown.get_position()[1]) for shown in axes.texts if shown.get_position()[0] < 1.0]
    assert arrows == [("←", 0), ("→", 0)]


def test_a_bracket_that_is_all_rounding_is_drawn_among_the_other_bounds():
    rows = (
        sz.BoundsRow("wmbe", 63.2, 63.2, 0.1, "exact"),
        sz.BoundsRow("mf", 61.2, None, 0.1, ""),
        sz.BoundsRow("trw", None, 66.2, 0.1, ""),
    )
    left, right = sz.Bounds.best_of(rows, seconds=0.1).plot(own_axes()).get_xlim()
    assert 57.0 < left < 61.2
    assert 65.0 < right < 70.0


def test_a_comparison_is_drawn_by_the_names_that_were_asked_for():
    axes = COMPARISON.plot(own_axes())
    assert labels(axes) == ["exact", "BP-200", "mf", "trw"]
    assert beside(axes)[2].startswith("≥ ")


def test_means_of_a_grid_are_a_map_and_others_are_dots():
    found = sz.marginals(MODEL)
    axes = found.plot(own_axes())
    assert np.array_equal(axes.images[0].get_array(), found.mean.reshape(4, 4))
    assert axes.images[0].get_clim() == (-1.0, 1.0)
    found = large_marginals(1000)
    axes = found.plot(own_axes())
    assert not axes.images
    points = axes.collections[0].get_offsets()
    assert np.array_equal(points, np.column_stack([np.arange(1000), found.mean]))
    assert "(estimate by auto)" in axes.get_title()


def ticks(axes, which="x"):
    return [label.get_text() for label in getattr(axes, f"get_{which}ticklabels")()]


def test_names_stand_at_the_axes_where_they_are_few():
    axes = named_marginals().plot(own_axes())
    assert ticks(axes) == ["rain", "<script>alert('x')</s...", "7"]
    assert axes.get_xlabel() == ""
    pair = sz.Ising.from_edges(3, [(0, 1)], [1.0], names=["a", "$b$", "c"])
    axes = pair.plot(own_axes())
    assert ticks(axes) == ticks(axes, "y") == ["a", r"\$b\$", "c"]
    assert axes.get_xticklabels()[0].get_rotation() == 0.0
    axes.figure.canvas.draw()


@pytest.mark.parametrize("n", [40, 41])
def test_many_names_are_turned_and_too_many_left_out(n):
    many = sz.Ising(np.zeros(n), names=[f"site {i}" for i in range(n)])
    for axes in (many.plot(own_axes()), sz.marginals(many, "mf").plot(own_axes())):
        named = [label for label in axes.get_xticklabels() if "site" in label.get_text()]
        assert len(named) == (20 if n == 40 else 0)  # every second one, so that they can be read
        assert {label.get_rotation() for label in named} <= {90.0}


@pytest.mark.parametrize("periodic", [False, True])
def test_a_grid_is_known_by_its_edges(periodic):
    edges, _ = sz.generators.grid(5, 1.0, seed=0, periodic=periodic).edges()
    assert side_of_grid(25, edges) == 5
    assert side_of_grid(25, edges[:-1]) is None
    assert side_of_grid(24, edges) is None
    swapped = np.where(edges == 3, 4, np.where(edges == 4, 3, edges))
    assert side_of_grid(25, np.sort(swapped, axis=1)) is None


@pytest.mark.parametrize("model", [MODEL, sz.generators.complete(12, 1.0, seed=0), sz.generators.curie_weiss(20)])
def test_small_models_are_drawn_as_a_matrix(model):
    drawn = np.array(model.plot(own_axes()).images[0].get_array())
    pairs, J = model.edges()
    assert np.array_equal(drawn[pairs[:, 0], pairs[:, 1]], J)
    assert np.array_equal(drawn, drawn.T)
    assert not np.any(np.diag(drawn))


def test_large_models_are_drawn_as_histograms():
    axes = sz.generators.complete(600, 0.1, seed=0).plot(own_axes())
    assert not axes.images
    assert [shown.get_text().split(",")[0] for shown in axes.get_legend().get_texts()] == [
        "fields",
        "couplings J = 2 A",
    ]
    # a hundred thousand spins of rank 1, whose matrix nobody could hold
    axes = sz.generators.curie_weiss(100_000, strength=1.1, field=0.01).plot(own_axes())
    assert [shown.get_text() for shown in axes.get_legend().get_texts()] == [
        "fields, all 0.01",
        "couplings J = 2 A, all 1.1e-05",
    ]


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("n", [0, 1])
def test_the_smallest_models_are_shown_too(n):
    model = sz.Ising(np.zeros(n), np.zeros((n, n)))
    found = sz.marginals(model)
    for each in (model, found, found.estimate, sz.compare(model, ["exact"]), sz.bounds(model, budget=0.1)):
        each.plot(own_axes()).figure.canvas.draw()
        assert str(each)
        assert repr(each)
        Page(each._repr_html_())
        json.dumps(each.to_dict(), allow_nan=False)


def test_a_comparison_of_nothing_is_shown_too():
    empty = sz.Comparison(())
    assert repr(empty) == "Comparison(0 methods: none)"
    assert str(empty).startswith("method")
    empty.plot(own_axes()).figure.canvas.draw()
