"""Intervals with a stated probability: what is drawn against a literal version, and how often they hold."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

import spectralz as sz
from spectralz._support.clock import using_clock
from spectralz._support.deadline import Deadline
from spectralz._support.threads import using_threads
from spectralz.errors import OptionError, SolverError
from spectralz.kernels.mini_buckets.drawing import Drawing
from spectralz.portfolio import intervals as portfolio
from spectralz.portfolio import policy
from spectralz.result import Bounds, BoundsRow
from spectralz.sampling import intervals
from spectralz.sampling.engines.dense import DenseEngine
from spectralz.sampling.engines.sparse import SparseEngine
from spectralz.sampling.path import path_to
from spectralz.sampling.population import carry
from spectralz.sampling.spread import crew_for
from spectralz.show.numbers import probable
from tests.helpers import FakeClock, scale_of
from tests.reference import mini_buckets, states
from tests.strategies import models

# --- states drawn from a bound --------------------------------------------------------------------------------------


def drawing_of(model, **options):
    """Prepare a bound for drawing, and say which spin stands where."""
    found = sz.WeightedMiniBucket(order="min-degree", **options)._tightened(model, keep=True)
    drawing = Drawing.of(found.prepared.forest, found.potentials, lambda _: None)
    return drawing, found.prepared.cover.order, found.outcome()


def literal_probability(model, buckets, x):
    """The probability of a state: spin by spin, a mean over its mini-buckets, by the formula of ``drawing.py``."""
    edges, J = model.edges()
    weight = {tuple(pair): float(value) for pair, value in zip(edges.tolist(), J, strict=True)}
    tables = {}
    total = 1.0
    for spin, parts in buckets:
        chance = 0.0
        for which, part in enumerate(parts):
            rest = [u for u in part["scope"] if u != spin]
            table = {}
            for assignment in itertools.product([-1, 1], repeat=len(rest)):
                values = []
                for own in (-1, 1):
                    at = {spin: own, **dict(zip(rest, assignment, strict=True))}
                    value = float(model.field[spin]) * own if which == 0 else 0.0
                    value += sum(weight[i, j] * at[i] * at[j] for i, j in part["edges"])
                    for message in part["messages"]:
                        scope, numbers = tables[tuple(message)]
                        value += numbers[tuple(at[u] for u in scope)]
                    values.append(value)
                table[assignment] = mini_buckets.uniform(values, which, len(parts))
                if all(x[u] == s for u, s in zip(rest, assignment, strict=True)):
                    mine = values[0 if x[spin] < 0 else 1]
                    chance += math.exp(len(parts) * (mine - table[assignment])) / len(parts)
            tables[spin, which] = rest, table
        total *= chance
    return total


@pytest.mark.parametrize("ibound", [2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_states_have_the_probabilities_of_the_formula(ibound, seed):
    model = 0.4 * sz.generators.complete(n=5, strength=0.4, seed=seed)  # warm enough to meet every state
    drawing, order, outcome = drawing_of(model, ibound=ibound)
    rng = np.random.default_rng(0)
    met: dict[tuple[int, ...], float] = {}
    count = 0
    seen: dict[tuple[int, ...], int] = {}
    for _ in range(100):
        found = drawing.draw(rng)
        count += len(found.log_q)
        for x, log_f, log_q in zip(found.x.T, found.log_f, found.log_q, strict=True):
            state = np.empty(model.n, dtype=int)
            state[order] = 2 * x.astype(int) - 1
            key = tuple(state.tolist())
            seen[key] = seen.get(key, 0) + 1
            if key not in met:
                assert log_f == pytest.approx(model.log_weight(state) - model.constant, abs=1e-12)
                assert log_f - log_q <= outcome.upper - model.constant
                assert met.setdefault(key, math.exp(log_q)) == pytest.approx(
                    literal_probability(model, outcome.details["buckets"], state), rel=1e-11
                )
    assert len(met) == 2**model.n
    assert sum(met.values()) == pytest.approx(1.0, abs=1e-12)
    expected = np.array([met[key] for key in met]) * count
    assert stats.chisquare([seen[key] for key in met], expected * count / expected.sum()).pvalue > 1e-3


@given(models(max_spins=8, scales=(1e-3, 1.0, 30.0)))
@settings(max_examples=60)
def test_no_weight_exceeds_the_bound_after_tightening_either(model):
    for max_iter in (0, 10):
        drawing, _, outcome = drawing_of(model, ibound=2, max_iter=max_iter)
        found = drawing.draw(np.random.default_rng(0))
        slack = 1e-12 * scale_of(model)
        assert (found.log_f - found.log_q).max(initial=-np.inf) <= outcome.upper - model.constant + slack


def test_a_weight_above_the_bound_is_an_error(monkeypatch):
    draw = Drawing.draw
    monkeypatch.setattr(Drawing, "draw", lambda self, rng: draw(self, rng)._replace(log_f=np.full(64, 100.0)))
    with pytest.raises(SolverError, match=r"^a state drawn from the bound .* weighs .*; please report"):
        sz.log_z(sz.generators.complete(n=8, strength=0.5, seed=0), "wmbe", ibound=3, level=0.9)


# --- how often they hold --------------------------------------------------------------------------------------------

LEVELS = (0.5, 0.9, 0.99)


def random_model(rng):
    """Draw a small model with loops, so that small mini-buckets are not exact."""
    n = int(rng.integers(4, 9))
    A = np.triu(rng.uniform(-1, 1, (n, n)) * (rng.random((n, n)) < rng.choice([0.5, 1.0])), 1)
    A = (np.abs(A) if rng.random() < 0.3 else A) * rng.choice([0.05, 0.3, 1.0])
    return sz.Ising(rng.uniform(-1, 1, n) * rng.choice([0.0, 0.5]), A + A.T, float(rng.normal()))


def truth_of(model):
    X = states.all_states(model.n).astype(float)
    weights = model.offset + X @ model.field + ((X @ states.dense(model)) * X).sum(axis=1)
    return float(np.logaddexp.reduce(weights))


def misses(count, first=0):
    """Return for each level how many of so many intervals of each kind do not hold, and how wide they are."""
    missed = {("wmbe", level): 0 for level in LEVELS} | {("annealing", level): 0 for level in LEVELS}
    widths = []
    with using_threads(1):  # the models are too small for more
        for seed in range(first, first + count):
            model = random_model(np.random.default_rng(seed))
            truth, level = truth_of(model), LEVELS[seed % len(LEVELS)]
            found = sz.log_z(model, "wmbe", ibound=2, order="min-degree", level=level, samples=2048, seed=seed)
            missed["wmbe", level] += truth not in found.interval
            widths.append(found.interval.width)
            missed["annealing", level] += annealed(model, level, seed) > truth
    return missed, float(np.median(widths))


def annealed(model, level, seed):
    """Return the lower end by a few runs along a path that is much too short."""
    path = path_to(model, in_double=True)
    with crew_for(path) as crew:
        ends = intervals.annealed_end(
            crew, path, np.linspace(0.0, 1.0, 4), 3, 16, 1.0 - level, np.random.default_rng(seed)
        )
    return ends.interval(model, level).low


def check_coverage(missed, count):
    """Refuse more misses than the level allows, with a chance of a false alarm of 1e-4 for each."""
    each = -(-count // len(LEVELS))
    for (source, level), number in missed.items():
        assert stats.binom.sf(number - 1, each, 1.0 - level) > 1e-4, (source, level, number)


@pytest.mark.slow
def test_intervals_of_many_models_hold():
    missed, width = misses(150)
    check_coverage(missed, 150)
    assert width < 0.2  # not by being useless


@pytest.mark.slow
def test_intervals_of_two_thousand_models_hold():
    missed, _ = misses(2000, first=1000)
    check_coverage(missed, 2000)


@pytest.mark.parametrize("bias", [pytest.param(-0.5, marks=pytest.mark.slow), math.log(2.0)])
def test_the_check_finds_a_bias_in_the_weights(monkeypatch, bias):
    # A factor that is lost; the larger one may also exceed the bound, which is an error of its own.
    draw = Drawing.draw

    def biased(self, rng):
        found = draw(self, rng)
        return found._replace(log_f=found.log_f + bias)

    monkeypatch.setattr(Drawing, "draw", biased)
    with pytest.raises((AssertionError, SolverError)):
        check_coverage(misses(30)[0], 30)


@pytest.mark.slow
def test_the_check_finds_a_wrong_probability(monkeypatch):
    draw = Drawing.draw

    def biased(self, rng):
        found = draw(self, rng)
        return found._replace(log_q=0.9 * found.log_q)

    monkeypatch.setattr(Drawing, "draw", biased)
    with pytest.raises((AssertionError, SolverError)):
        check_coverage(misses(30)[0], 30)


@pytest.mark.slow
def test_the_check_finds_a_bias_in_annealing(monkeypatch):
    monkeypatch.setattr(intervals, "_rounding_of_runs", lambda *_: -0.5)
    with pytest.raises(AssertionError, match="annealing"):
        check_coverage(misses(30)[0], 30)


# --- runs in double precision ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "engine"),
    [
        (sz.generators.grid(3, 1.0, seed=0), SparseEngine),
        (sz.generators.complete(6, 0.4, seed=0), DenseEngine),
        (sz.generators.grid(3, 1e3, seed=0), SparseEngine),
        (sz.generators.complete(6, 1e3, seed=0), DenseEngine),
        (sz.generators.bipartite(8, 1.0, seed=0), SparseEngine | DenseEngine),
    ],
)
def test_runs_for_an_interval_are_in_double_precision(model, engine):
    made = path_to(model, in_double=True).engine
    assert isinstance(made, engine)
    assert made.in_double


@pytest.mark.parametrize(
    "model",
    [sz.generators.grid(3, 1.0, seed=1), sz.generators.complete(8, 0.4, seed=1)],
    ids=["sparse", "dense"],
)
def test_weights_in_double_precision_have_z_as_their_mean(model):
    path = path_to(model, in_double=True)
    end = carry(path, np.linspace(0.0, 1.0, 12), 40, 500, np.random.default_rng(0), resample_below=0.0)
    ratio = np.exp(end.log_z + model.constant - states.solve(model)[0])
    error = ratio.std(ddof=1) / math.sqrt(len(ratio))
    assert abs(ratio.mean() - 1.0) < 4.0 * error
    assert error < 0.02


@pytest.mark.parametrize("is_dense", [False, True])
def test_states_of_the_base_are_drawn_as_independent_spins(is_dense):
    theta = np.array([0.0, 1.0, -2.0, 0.3])
    model = sz.Ising.from_edges(4, [(0, 1), (1, 2), (2, 3)], [5.0, -5.0, 5.0], theta)
    model = sz.Ising(theta, states.dense(model)) if is_dense else model
    engine = path_to(model, in_double=True).engine
    assert isinstance(engine, DenseEngine if is_dense else SparseEngine)
    x = engine.start(20_000, np.random.default_rng(3)).states()
    expected = np.prod(1.0 / (1.0 + np.exp(-2.0 * theta * states.all_states(4))), axis=1) * len(x)
    counts = np.bincount(states.places_of(x), minlength=16)
    assert stats.chisquare(counts, expected * len(x) / expected.sum()).pvalue > 1e-3


# --- asking for them ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["wmbe", pytest.param("annealing", marks=pytest.mark.slow)])
def test_none_by_default_and_the_rest_of_the_answer_is_the_same(method):
    model = sz.generators.grid(4, 1.0, seed=0)
    options = {"ibound": 3} if method == "wmbe" else {"population": 50}
    plain, asked = sz.log_z(model, method, **options), sz.log_z(model, method, **options, level=0.9)
    assert plain.interval is None
    assert asked.interval.level == 0.9
    assert plain.to_dict()["interval"] is None
    assert asked.to_dict()["interval"] == {
        "low": asked.interval.low,
        "high": asked.interval.high,
        "level": 0.9,
    }
    assert (asked.log_z, asked.lower, asked.upper, asked.std_error) == (
        plain.log_z,
        plain.lower,
        plain.upper,
        plain.std_error,
    )
    assert sz.log_z(model, method, **options, level=0.9).interval == asked.interval


def test_the_same_states_with_any_number_of_threads():
    model = sz.generators.grid(6, 1.0, seed=0)
    found = []
    for threads in (1, 2):
        with using_threads(threads):
            found.append(sz.log_z(model, "wmbe", ibound=3, level=0.9, samples=5000).interval)
    assert found[0] == found[1]


def test_where_nothing_is_split_the_interval_is_what_is_proven():
    found = sz.log_z(sz.generators.grid(3, 1.0, seed=0), "wmbe", level=0.9)
    assert found.interval == (found.lower, found.upper, 0.9)


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.1, math.nan, "0.9", True, 1.0 - 1e-12])
def test_levels_that_are_none(level):
    for ask in (sz.WeightedMiniBucket, sz.Annealing):
        with pytest.raises(OptionError, match=r"^level is .*lower and upper"):
            ask(level=level)


def test_a_budget_that_is_spent_ends_the_drawing():
    model = sz.generators.grid(6, 1.0, seed=0)
    clock = FakeClock(step=1.0)
    with using_clock(clock), Deadline(0.5).in_force():
        found = sz.log_z(model, "wmbe", ibound=3, level=0.9)
    assert "64 states drawn" in found.status
    assert sz.log_z(model, "exact").log_z in found.interval


def test_an_interrupt_keeps_what_was_drawn(monkeypatch):
    draw, count = Drawing.draw, itertools.count()

    def interrupted(self, rng):
        if next(count) == 300:
            raise KeyboardInterrupt
        return draw(self, rng)

    monkeypatch.setattr(Drawing, "draw", interrupted)
    model = sz.generators.grid(6, 1.0, seed=0)
    found = sz.log_z(model, "wmbe", ibound=3, level=0.9)
    assert found.interrupted
    assert sz.log_z(model, "exact").log_z in found.interval


@pytest.mark.parametrize("scale", [1e-200, 1e8, 1e30])
@pytest.mark.parametrize("method", ["wmbe", "annealing"])
def test_huge_and_tiny_models(method, scale):
    model = sz.generators.complete(n=6, strength=1.0, seed=0)
    model = sz.Ising(model.field, scale * model.coupling)
    options = {"ibound": 2, "samples": 640} if method == "wmbe" else {"population": 20}
    found = sz.log_z(model, method, level=0.99, **options)
    assert sz.log_z(model, "exact").log_z in found.interval


@pytest.mark.parametrize("n", [0, 1, 3])
def test_models_without_couplings(n):
    model = sz.Ising(np.linspace(-2.0, 1.0, n), np.zeros((n, n)), 1.0)
    truth = states.solve(model)[0]
    assert truth in sz.log_z(model, "wmbe", level=0.9).interval
    assert truth in sz.log_z(model, "annealing", level=0.9, population=20).interval


# --- beside bounds --------------------------------------------------------------------------------------------------


@pytest.fixture
def small_tables(monkeypatch):
    """Keep mini-buckets and blocks too small to be exact."""
    monkeypatch.setattr(policy, "LEAST_IBOUND", 4)
    monkeypatch.setattr(policy, "MOST_IBOUND", 4)
    monkeypatch.setattr(policy, "FIRST_BLOCK_WIDTH", 2)
    monkeypatch.setattr(policy, "MOST_BLOCK_WIDTH", 2)


@pytest.mark.slow
@pytest.mark.usefixtures("small_tables")
def test_bounds_with_a_level_have_both_kinds_side_by_side():
    model = sz.generators.grid(8, 1.0, seed=0)
    truth = sz.log_z(model, "exact").log_z
    plain, found = sz.bounds(model, work=1e8), sz.bounds(model, work=2e8, level=0.99)
    assert plain.interval is None
    assert plain.to_dict()["interval"] is None
    assert found.lower <= found.interval.low <= truth <= found.interval.high <= found.upper
    assert found.interval.level == 0.99
    assert found.interval.width < 0.3 * found.width
    assert found.interval_status.startswith("wmbe: ")
    assert (found.lower, found.upper) == (plain.lower, plain.upper)  # half of the work, and no mixture
    again = sz.bounds(model, work=2e8, level=0.99)
    assert again.interval == found.interval
    assert sz.bounds(model, work=2e8, level=0.99, seed=1).interval != found.interval
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["interval"]["level"] == 0.99


@pytest.mark.usefixtures("small_tables")
def test_without_wmbe_the_lower_end_is_that_of_annealing():
    model = sz.generators.grid(8, 1.0, seed=0)
    found = sz.bounds(model, work=2e8, level=0.99, exclude=["wmbe", "states", "mf"])
    truth = sz.log_z(model, "exact").log_z
    assert found.lower + 1.0 < found.interval.low <= truth
    assert found.interval.high == found.upper
    assert found.interval_status.startswith("annealing: ")


def test_what_is_proven_exactly_needs_no_draws():
    found = sz.bounds(sz.generators.grid(4, 1.0, seed=0), work=1e8, level=0.9)
    assert found.interval == (found.lower, found.upper, 0.9)
    assert found.interval_status == "the proven bounds"


def test_without_work_to_spend_the_interval_is_what_is_proven():
    found = sz.bounds(sz.generators.grid(20, 1.0, seed=0), work=1e5, level=0.9)
    assert found.interval == (found.lower, found.upper, 0.9)
    assert "wmbe not run: would take about" in found.interval_status
    assert "annealing not run: would take about" in found.interval_status


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("victim", ["wmbe", pytest.param("annealing", marks=pytest.mark.slow)])
def test_an_interrupt_of_a_source_keeps_the_rest(monkeypatch, victim):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setitem(portfolio._SOURCES, victim, interrupted)
    monkeypatch.setattr(policy, "NARROW_INTERVAL", 0.0)
    model = sz.generators.grid(8, 1.0, seed=0)
    found = sz.bounds(model, work=2e8, level=0.99)
    assert found.interrupted
    assert found.interval_status.endswith(f"{victim} interrupted")
    assert sz.log_z(model, "exact").log_z in found.interval
    assert (found.interval.width == found.width) == (victim == "wmbe")


@pytest.mark.usefixtures("small_tables")
def test_ends_that_contradict_each_other_give_way_to_what_is_proven(monkeypatch):
    def wrong(model, level, seed, proven, deadline):
        return sz.Interval(proven.upper + 1.0, None, level), "a rare event", False

    monkeypatch.setitem(portfolio._SOURCES, "annealing", wrong)
    found = sz.bounds(sz.generators.grid(8, 1.0, seed=0), work=1e8, level=0.5, exclude=["wmbe"])
    assert found.interval == (found.lower, found.upper, 0.5)
    assert "contradict each other" in found.interval_status


def test_the_level_is_divided_between_the_sources(monkeypatch):
    asked = {}

    def source(name):
        def ask(model, level, seed, proven, deadline):
            asked[name] = level
            return sz.Interval(proven.lower, proven.upper, level), "nothing new", False

        return ask

    for name in list(portfolio._SOURCES):
        monkeypatch.setitem(portfolio._SOURCES, name, source(name))
    sz.bounds(sz.generators.grid(8, 1.0, seed=0), work=1e7, level=0.99, exclude=["exact"])
    assert sum(1.0 - level for level in asked.values()) == pytest.approx(0.01)


@pytest.mark.parametrize("level", [0, 1, "0.9"])
def test_bounds_refuse_levels_that_are_none(level):
    with pytest.raises(OptionError, match=r"^level is .*lower and upper"):
        sz.bounds(sz.generators.grid(3, 1.0, seed=0), level=level)


# --- shown as something else than what is proven --------------------------------------------------------------------


def some_bounds(high=23.5):
    rows = (BoundsRow("mf", 20.0, None, 0.1, "done"), BoundsRow("trw", None, 25.0, 0.3, "done"))
    return replace(
        Bounds.best_of(rows, 0.4), interval=sz.Interval(22.25, high, 0.999), interval_status="wmbe: 64 states"
    )


def test_bounds_in_words():
    assert str(some_bounds()).splitlines() == [
        "20 <= log Z <= 25 (proven, width 5)",
        "lower by mf, upper by trw",
        "22.25 <= log Z <= 23.5 (with probability 99.9%, width 1.25)",
        "wmbe: 64 states",
        "2 methods, 0.4 s",
    ]
    assert "20 <= log Z <= 25, by mf" in repr(some_bounds())
    assert "log Z >= 22.25 (with probability 99.9%)" in repr(some_bounds(high=None))
    html = some_bounds()._repr_html_()
    assert "22.25 &lt;= log Z &lt;= 23.5 (with probability 99.9%, width 1.25)" in html


def test_bounds_drawn():
    from matplotlib.figure import Figure

    axes = some_bounds().plot(Figure().subplots())
    dashed = [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"]
    assert dashed == [22.25, 23.5]
    assert axes.get_title().splitlines() == [
        "20 ≤ log Z ≤ 25 (proven)",
        "22.25 ≤ log Z ≤ 23.5 (with probability 99.9%, width 1.25)",
    ]
    assert "ends with probability 99.9%" in [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.slow
def test_an_answer_shown():
    from matplotlib.figure import Figure

    from spectralz.report import estimate_page

    found = sz.log_z(sz.generators.grid(4, 1.0, seed=0), "annealing", population=50, level=0.9)
    words = probable(found.interval)
    assert words.startswith("log Z >= ")
    assert words.endswith(" (with probability 90%)")
    assert words in str(found)
    assert words.replace(">", "&gt;") in found._repr_html_()
    assert words.replace(">", "&gt;") in estimate_page(found, "a grid", "16 spins")
    axes = found.plot(Figure().subplots())
    assert [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == "--"] == [found.interval.low]
    assert "lower end with probability 90%" in [text.get_text() for text in axes.get_legend().get_texts()]


def test_an_interval_that_is_none():
    for low, high in ((math.nan, None), (-math.inf, 1.0), (2.0, 1.0)):
        with pytest.raises(SolverError, match="please report"):
            sz.Interval(low, high, 0.9).check("wmbe")
