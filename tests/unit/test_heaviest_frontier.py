from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralz as sz
from spectralz._support.clock import counting_operations, using_clock
from spectralz._support.deadline import Deadline
from spectralz.errors import OptionError, TooLargeError
from spectralz.kernels.elimination.order import adjacency_of
from spectralz.kernels.elimination.sweep_order import frontier_sizes, sweep_order
from spectralz.parts.elimination.heaviest_frontier import FutureBound, heaviest_frontier
from tests.helpers import FakeClock, heard, scale_of
from tests.reference import states
from tests.strategies import models

OPTIONS = st.fixed_dictionaries(
    {"capacity": st.integers(1, 12), "ibound": st.integers(2, 5), "rounds": st.sampled_from([0, 3])}
)


def frontiers(model: sz.Ising, order: list[int]) -> list[list[int]]:
    """List, from its definition, the frontier after each step: what was added and has a neighbor to come."""
    edges = [tuple(pair) for pair in model.edges()[0].tolist()]
    found = []
    for t in range(len(order)):
        added = set(order[: t + 1])
        found.append([v for v in order[: t + 1] if any((v in e) and not set(e) <= added for e in edges)])
    return found


def log_weight_among(model: sz.Ising, x: dict[int, int]) -> float:
    """Add up the fields and edges that lie among some spins."""
    edges, J = model.edges()
    pairs = zip(edges.tolist(), J.tolist(), strict=True)
    return sum(model.field[v] * s for v, s in x.items()) + sum(w * x[i] * x[j] for (i, j), w in pairs if {i, j} <= {*x})


def literal(model: sz.Ising, order: list[int], capacity: int, future) -> tuple[float, float]:
    """Keep the heaviest frontier states in a dictionary; return log-sums of what is left and of what was dropped.

    ``future(t, state)`` judges what is to come after step t. Every partial weight is written out anew, path by path.
    """
    table: dict[tuple[int, ...], list[dict[int, int]]] = {(): [{}]}
    dropped = []
    for t, (v, frontier) in enumerate(zip(order, frontiers(model, order), strict=True)):
        merged: dict[tuple[int, ...], list[dict[int, int]]] = {}
        for paths in table.values():
            for path, s in itertools.product(paths, (-1, 1)):
                longer = path | {v: s}
                merged.setdefault(tuple(longer[u] for u in frontier), []).append(longer)
        score = {
            state: np.logaddexp.reduce([log_weight_among(model, path) for path in paths])
            + future(t, dict(zip(frontier, state, strict=True)))
            for state, paths in merged.items()
        }
        ranked = sorted(merged, key=score.__getitem__, reverse=True)
        dropped += [score[state] for state in ranked[capacity:]]
        table = {state: merged[state] for state in ranked[:capacity]}
    paths = [path for group in table.values() for path in group]
    left = np.logaddexp.reduce([log_weight_among(model, path) for path in paths])
    return float(left), float(np.logaddexp.reduce(dropped)) if dropped else -math.inf


def exact_future(model: sz.Ising, order: list[int]):
    """Judge by the true sum over all spins to come."""

    def future(t: int, state: dict[int, int]) -> float:
        rest = order[t + 1 :]
        everything = log_weight_among(model, state)
        logs = [
            log_weight_among(model, state | dict(zip(rest, x, strict=True))) - everything
            for x in itertools.product((-1, 1), repeat=len(rest))
        ]
        return float(np.logaddexp.reduce(logs))

    return future


# --- the bracket ----------------------------------------------------------------------------------------------------


@given(models(max_spins=8), OPTIONS, st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_the_bracket_holds(model, options, random):
    truth, _, _ = states.solve(model)
    order = list(range(model.n))
    random.shuffle(order)
    found = heaviest_frontier(model, order if random.random() < 0.7 else None, **options)
    # Proven with rounding, so no tolerance.
    assert found.log_z_lower <= truth <= found.log_z_upper
    assert found.most_states <= options["capacity"]
    if found.is_complete:
        assert found.gap <= 1e-10 * scale_of(model)


@given(models(max_spins=7, scales=(0.0, 1.0, 5.0)), st.integers(1, 6), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_it_is_the_literal_algorithm_where_the_future_is_known(model, capacity, random):
    """With tables that hold every bucket the judgment is the true future, and its bounds are what is lost."""
    order = list(range(model.n))
    random.shuffle(order)
    found = heaviest_frontier(model, order, capacity, ibound=8)
    left, dropped = literal(model, order, capacity, exact_future(model, order))
    scale = scale_of(model)
    # Equal scores may be ranked either way, which changes neither sum where the future is exact.
    assert found.log_sum == pytest.approx(left, abs=1e-9 * scale)
    if dropped > -math.inf and dropped > left - 25.0:
        assert found.log_dropped == pytest.approx(dropped, abs=1e-6 * scale)
    truth, _, _ = states.solve(model)
    assert float(np.logaddexp(left, dropped)) + model.constant == pytest.approx(float(truth), abs=1e-9 * scale)


def test_scores_are_weights_times_the_bound_of_the_mini_buckets():
    """Written out: a score is the weight so far times what mini-buckets of the spins to come leave."""
    model = sz.generators.grid(3, 1.5, seed=4)
    order = list(range(9))
    future = FutureBound.of_model(model, order, ibound=3, rounds=4)
    found = future.run(4, remember=True)
    bits = future.bits.bits
    parts = {t: bits.part[bits.part_start[t] : bits.part_start[t + 1]].tolist() for t in range(9)}
    h, J, power = future.potentials
    steps, rank = future.forest.steps, future.forest.pair_rank

    def message(m: int, x: dict[int, int]) -> float:
        """Sum a mini-bucket's own spin out, all tables that it takes in computed anew."""
        (t,) = [t for t in parts if m in parts[t]]
        both = []
        for s in (-1, 1):
            y = x | {order[t]: s}
            value = s * h[m]
            for b in range(steps.bit_start[m], steps.bit_start[m + 1]):
                value += J[b] * s * y[order[8 - rank[b]]]
            value += sum(message(c, y) for c in steps.child[steps.child_start[m] : steps.child_start[m + 1]].tolist())
            both.append(value / power[m])
        return power[m] * float(np.logaddexp(*both))

    children = {int(c) for c in steps.child}
    total = sum(message(m, {}) for t in parts for m in parts[t] if m not in children)
    for t, (step, frontier) in enumerate(zip(found.steps[1:], frontiers(model, order), strict=False)):
        # The mini-buckets whose tables are alive: of later spins, and taken in by those of earlier ones.
        alive = [
            c
            for u in range(t + 1)
            for m in parts[u]
            for c in steps.child[steps.child_start[m] : steps.child_start[m + 1]].tolist()
            if any(c in parts[later] for later in range(t + 1, 9))
        ]
        alive += [m for later in range(t + 1, 9) for m in parts[later] if m not in children]
        seen = set()
        for key, score in zip(step.keys[:, 0].tolist(), step.score.tolist(), strict=True):
            state = {}
            for v in frontier:
                (word,) = bits.own[v].tolist()
                state[v] = 1 if key & word else -1
            seen.add(tuple(state.values()))
            bound = sum(message(m, state) for m in alive)
            past = [v for v in order[: t + 1] if v not in frontier]
            logs = [
                log_weight_among(model, state | dict(zip(past, x, strict=True)))
                for x in itertools.product((-1, 1), repeat=len(past))
            ]
            if t < 2:  # nothing dropped so far
                assert score == pytest.approx(float(np.logaddexp.reduce(logs)) + bound - total, abs=1e-10)
            else:
                assert score <= float(np.logaddexp.reduce(logs)) + bound - total + 1e-10
        assert len(seen) == len(step.score)


@pytest.mark.parametrize("periodic", [False, True])
def test_enough_states_are_exact(periodic):
    for side, seed in itertools.product((3, 5), range(2)):
        model = sz.generators.grid(side, 2.0, seed=seed, periodic=periodic)
        truth = sz.log_z(model, "exact")
        width = heaviest_frontier(model, capacity=1, ibound=3).width
        found = heaviest_frontier(model, capacity=2**width, ibound=3)
        assert found.is_complete
        assert found.log_z == pytest.approx(truth.log_z, abs=1e-10)
        assert found.gap < 1e-9


@pytest.mark.slow
def test_cold_grids_need_few_states():
    for seed in range(3):
        model = sz.generators.grid(12, 6.0, seed=seed)
        truth = sz.log_z(model, "exact").log_z
        found = heaviest_frontier(model, capacity=2000, ibound=10)
        assert found.log_z_lower <= truth <= found.log_z_upper
        assert truth - found.log_z_lower < 1e-4
        assert found.log_z_upper < found.future.upper


def test_narrowing_ends_at_the_gap_that_was_asked():
    model = sz.generators.grid(9, 3.0, seed=1)
    future = FutureBound.of_model(model, ibound=6)
    wide, narrow = future.narrow(50.0, capacity=20), future.narrow(1e-3, capacity=20)
    assert [run.capacity for run in wide.runs] == [20]
    assert narrow.gap <= 1e-3 < wide.gap
    assert narrow.log_z_lower == max(run.log_z_lower for run in narrow.runs)
    assert narrow.log_z_upper == min(run.log_z_upper for run in narrow.runs)
    assert [run.capacity for run in future.narrow(1e-9, 60, capacity=20).runs] == [20, 60]


def test_small_broken_up_and_huge_models():
    assert heaviest_frontier(sz.Ising([], [], offset=2.0)).log_z == 2.0
    one = heaviest_frontier(sz.Ising([0.7], [[0.0]]), capacity=1)
    assert one.log_z == pytest.approx(math.log(2.0 * math.cosh(0.7)), abs=1e-14)
    free = heaviest_frontier(sz.Ising([0.3, -2.0, 900.0], np.zeros((3, 3))), capacity=1, remember=True)
    assert free.is_complete
    assert free.log_z == pytest.approx(sum(abs(h) + math.log1p(math.exp(-2 * abs(h))) for h in (0.3, 2.0, 900.0)))
    assert free.heaviest.tolist() == [1, -1, 1]
    two = sz.Ising.from_edges(7, [(0, 2), (2, 4), (1, 3), (3, 5), (5, 1)], [1.0, -2.0, 0.5, 0.5, 0.5])
    assert heaviest_frontier(two).log_z == pytest.approx(sz.log_z(two, "exact").log_z, abs=1e-12)
    for scale in (1e299, 1e-300, 1e15):  # models above a total of 1e300 are refused
        rng = np.random.default_rng(3)
        grid = sz.generators.grid(3, 1.0, seed=2)
        huge = sz.Ising.from_edges(9, grid.edges()[0], scale * rng.uniform(-1, 1, 12), scale * rng.uniform(-1, 1, 9))
        truth, _, _ = states.solve(huge)
        for capacity in (1, 3, 100):
            found = heaviest_frontier(huge, capacity=capacity, ibound=3, remember=True)
            assert found.log_z_lower <= truth <= found.log_z_upper
            assert math.isfinite(found.gap)
            assert np.isfinite(found.marginals().mean).all()
    star = sz.Ising.from_edges(80, [(0, v) for v in range(1, 80)], 0.3)
    given = heaviest_frontier(star, [*range(1, 80), 0], capacity=50, ibound=5)
    assert given.width == 79
    assert given.log_z_lower <= 79 * math.log(2 * math.cosh(0.3)) + math.log(2) <= given.log_z_upper


def test_frontiers_of_more_than_a_word():
    """Rows of 70 spins: mini-buckets have spins in both words of a state."""
    rng = np.random.default_rng(0)
    edges = sz.generators.square(rows=3, columns=70, strength=1.0, seed=0).edges()[0]
    field, J = 12.0 * rng.normal(size=210), rng.normal(size=len(edges))
    # Around the end of the first word, spins are up and those of the second row follow them.
    field[60:70], field[130:140] = 12.0, 0.0
    J[(edges[:, 0] >= 60) & (edges[:, 0] < 70) & (edges[:, 1] == edges[:, 0] + 70)] = 5.0
    model = sz.Ising.from_edges(210, edges, J, field)
    truth, means = sz.log_z(model, "exact").log_z, sz.marginals(model, "exact")
    future = FutureBound.of_model(model, list(range(210)), ibound=6)
    found = future.run(3000, remember=True)
    assert future.bits.words == 2
    assert found.log_z_lower <= truth <= found.log_z_upper
    assert truth - found.log_z_lower < 0.05
    assert np.abs(found.marginals().mean - means.mean).max() < 0.05
    x = found.samples(100, np.random.default_rng(0))
    assert (model.log_weight(x) <= float(model.log_weight(found.heaviest)) + 1e-9).all()
    assert float(model.log_weight(found.heaviest)) < found.log_z


# --- samples, marginals, the heaviest state -------------------------------------------------------------------------


@given(models(max_spins=7, scales=(0.0, 1.0)), st.integers(1, 6), st.integers(2, 4))
@settings(max_examples=30, deadline=None)
def test_marginals_are_those_of_the_kept_states(model, capacity, ibound):
    found = heaviest_frontier(model, None, capacity, ibound, remember=True)
    kept = [tuple(x) for x in kept_states(found)]
    log_weight = np.array([float(model.log_weight(np.array(x, dtype=np.int8))) for x in kept])
    assert len(set(kept)) == len(kept)
    assert float(np.logaddexp.reduce(log_weight)) == pytest.approx(found.log_z, abs=1e-9 * scale_of(model))
    weight = np.exp(log_weight - np.logaddexp.reduce(log_weight))
    x = np.array(kept, dtype=float).reshape(len(kept), model.n)
    means = found.marginals()
    assert means.mean == pytest.approx(weight @ x, abs=1e-9)
    assert means.probability[:, 1] == pytest.approx(weight @ (x > 0), abs=1e-9)
    edges = model.edges()[0]
    assert means.pair_mean == pytest.approx(weight @ (x[:, edges[:, 0]] * x[:, edges[:, 1]]), abs=1e-9)
    assert float(model.log_weight(found.heaviest)) == pytest.approx(log_weight.max(), abs=1e-9 * scale_of(model))


def kept_states(found) -> list[list[int]]:
    """Follow all ways through what is remembered."""
    ways = {0: [[0] * found.model.n]}
    for t, step in enumerate(found.steps):
        longer: dict[int, list[list[int]]] = {}
        for k, c in itertools.product(range(len(step.score)), (0, 1)):
            if step.target[2 * k + c] >= 0:
                for x in ways.get(k, []):
                    y = x.copy()
                    y[found.order[t]] = 2 * c - 1
                    longer.setdefault(int(step.target[2 * k + c]), []).append(y)
        ways = longer
    return ways[0]


def test_samples_have_the_density_that_is_told():
    model = sz.generators.grid(3, 0.8, seed=5)
    found = heaviest_frontier(model, capacity=5, ibound=3, remember=True)
    x = found.samples(20_000, np.random.default_rng(1))
    kept = np.array(kept_states(found), dtype=np.int8)
    density = np.exp(model.log_weight(kept) - found.log_z)
    assert density.sum() == pytest.approx(1.0, abs=1e-10)
    counts = np.bincount(states.places_of(x), minlength=512)
    expected = np.zeros(512)
    expected[states.places_of(kept)] = 20_000 * density
    assert not counts[expected == 0.0].any()
    # A chi-square of some hundred degrees of freedom; four standard deviations.
    used = expected > 5.0
    chi = ((counts - expected)[used] ** 2 / expected[used]).sum()
    assert abs(chi - used.sum()) < 4.0 * math.sqrt(2.0 * used.sum())


# --- unbiased estimates ---------------------------------------------------------------------------------------------


def test_estimates_are_unbiased():
    model = sz.generators.grid(4, 1.0, seed=0)
    truth = sz.log_z(model, "exact").log_z
    future = FutureBound.of_model(model, ibound=3, rounds=0)
    found = future.estimates(400, 4, np.random.default_rng(0))
    each = np.exp(found.each - truth)
    assert each.std() > 0.02  # something was left to chance
    assert abs(each.mean() - 1.0) < 4.0 * each.std() / math.sqrt(400)
    assert found.log_z == pytest.approx(math.log(each.mean()) + truth, abs=1e-9)
    assert found.std_error == pytest.approx(each.std(ddof=1) / each.mean() / math.sqrt(400), rel=1e-9)
    assert future.estimate(1000, np.random.default_rng(0)) == pytest.approx(truth, abs=1e-11)


def test_estimates_are_good_where_bounds_are_wide():
    model = sz.generators.grid(10, 0.5, seed=0)
    truth = sz.log_z(model, "exact").log_z
    future = FutureBound.of_model(model, ibound=8)
    found = future.estimates(10, 100, np.random.default_rng(0))
    assert truth - future.run(100).log_z_lower > 0.5
    assert abs(found.log_z - truth) < 4.0 * found.std_error + 1e-6
    assert found.std_error < 0.03


# --- orders, options, time ------------------------------------------------------------------------------------------


@given(models(max_spins=8))
def test_frontier_sizes_are_those_of_the_definition(model):
    order = sweep_order([spins.tolist() for spins in model.components()], adjacency_of(model.n, model.edges()[0]))
    assert sorted(order) == list(range(model.n))
    assert frontier_sizes(order, model.edges()[0]).tolist() == [len(f) for f in frontiers(model, order)]


def test_lattices_of_any_numbering_have_narrow_frontiers():
    rng = np.random.default_rng(0)
    for periodic, width in ((False, 8), (True, 16)):
        model = sz.generators.grid(8, 1.0, seed=0, periodic=periodic)
        edges = model.edges()[0]
        for mixed in (edges, rng.permutation(64)[edges]):
            order = sweep_order([list(range(64))], adjacency_of(64, mixed))
            assert frontier_sizes(order, mixed).max() <= width
    ladder = sz.generators.square(rows=40, columns=4, strength=1.0, seed=0).edges()[0]
    mixed = rng.permutation(160)[ladder]
    assert frontier_sizes(sweep_order([list(range(160))], adjacency_of(160, mixed)), mixed).max() <= 4


def test_refusals():
    model = sz.generators.grid(6, 1.0, seed=0)
    with pytest.raises(OptionError, match="order names 3 spins"):
        heaviest_frontier(model, [0, 1, 2])
    with pytest.raises(OptionError, match="capacity is 0"):
        heaviest_frontier(model, capacity=0)
    with pytest.raises(OptionError, match="remember=True"):
        heaviest_frontier(model).marginals()
    with pytest.raises(TooLargeError, match="lower ibound"):
        heaviest_frontier(model, max_memory=1000)
    with pytest.raises(TooLargeError, match="lower capacity"):
        FutureBound.of_model(model).run(64, remember=True, max_memory=1000)


def test_time_that_is_up_leaves_a_bracket():
    model = sz.generators.grid(10, 1.0, seed=0)
    truth = sz.log_z(model, "exact").log_z
    future = FutureBound.of_model(model, ibound=4, rounds=0)
    with counting_operations() as operations, Deadline(0.0).in_force():
        found = future.run(2000)
    assert operations.count > 0
    assert found.is_late
    assert found.log_z_lower <= truth <= found.log_z_upper
    assert found.most_states <= 128 < future.run(2000).most_states
    with using_clock(FakeClock(1.0)), Deadline(0.5).in_force():
        assert len(future.narrow(0.0, capacity=10).runs) == 1
        assert len(future.estimates(100, 5, np.random.default_rng(0)).each) == 2
    with heard() as reports:
        heaviest_frontier(sz.generators.grid(12, 1.0, seed=0), capacity=5000, remember=True).marginals()
    assert {"keeping the heaviest states", "going back"} <= {task for task, _ in reports}
