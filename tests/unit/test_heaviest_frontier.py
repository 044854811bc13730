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
from spectralz.errors import TooLargeError
from spectralz.kernels.elimination.order import adjacency_of
from spectralz.kernels.elimination.sweep_order import frontier_sizes, sweep_order
from spectralz.parts.elimination.heaviest_frontier import FutureBound, HeaviestFrontier, cold_frontier, narrowed
from tests.helpers import FakeClock, heard, scale_of
from tests.reference import states
from tests.strategies import models

OPTIONS = st.fixed_dictionaries(
    {"capacity": st.integers(1, 12), "ibound": st.integers(2, 5), "rounds": st.sampled_from([0, 3])}
)


def heaviest_frontier(
    model: sz.Ising, order=None, capacity: int = 100_000, ibound: int = 12, rounds: int = 10, *, remember: bool = False
) -> HeaviestFrontier:
    return FutureBound.of_model(model, order, ibound, rounds).run(capacity, remember=remember)


def gap(bracket) -> float:
    return bracket.upper - bracket.lower


def log_z_of(run: HeaviestFrontier) -> float:
    """Return the log of the sum of kept states."""
    return run.log_sum + run.future.model.constant


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
    assert found.lower <= truth <= found.upper
    assert found.most_states <= options["capacity"]
    if found.log_dropped == -math.inf:
        assert gap(found) <= 1e-10 * scale_of(model)


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
        width = heaviest_frontier(model, capacity=1, ibound=3).future.bits.width
        found = heaviest_frontier(model, capacity=2**width, ibound=3)
        assert found.log_dropped == -math.inf
        assert log_z_of(found) == pytest.approx(truth.log_z, abs=1e-10)
        assert gap(found) < 1e-9


@pytest.mark.slow
def test_cold_grids_need_few_states():
    for seed in range(3):
        model = sz.generators.grid(12, 6.0, seed=seed)
        truth = sz.log_z(model, "exact").log_z
        found = heaviest_frontier(model, capacity=2000, ibound=10)
        assert found.lower <= truth <= found.upper
        assert truth - found.lower < 1e-4
        assert found.upper < found.future.upper


def test_narrowing_ends_at_the_gap_that_was_asked():
    model = sz.generators.grid(9, 3.0, seed=1)
    future = FutureBound.of_model(model, ibound=6)
    wide, narrow = (narrowed(future, width, 100_000, 2**30, first_states=20) for width in (50.0, 1e-3))
    assert [run.capacity for run in wide.runs] == [20]
    assert gap(narrow) <= 1e-3 < gap(wide)
    assert narrow.lower == max(run.lower for run in narrow.runs)
    assert narrow.upper == min(run.upper for run in narrow.runs)
    assert [run.capacity for run in narrowed(future, 1e-9, 60, 2**30, first_states=20).runs] == [20, 60]


def test_small_broken_up_and_huge_models():
    assert log_z_of(heaviest_frontier(sz.Ising([], [], offset=2.0))) == 2.0
    one = heaviest_frontier(sz.Ising([0.7], [[0.0]]), capacity=1)
    assert log_z_of(one) == pytest.approx(math.log(2.0 * math.cosh(0.7)), abs=1e-14)
    free = heaviest_frontier(sz.Ising([0.3, -2.0, 900.0], np.zeros((3, 3))), capacity=1)
    assert free.log_dropped == -math.inf
    assert log_z_of(free) == pytest.approx(sum(abs(h) + math.log1p(math.exp(-2 * abs(h))) for h in (0.3, 2.0, 900.0)))
    two = sz.Ising.from_edges(7, [(0, 2), (2, 4), (1, 3), (3, 5), (5, 1)], [1.0, -2.0, 0.5, 0.5, 0.5])
    assert log_z_of(heaviest_frontier(two)) == pytest.approx(sz.log_z(two, "exact").log_z, abs=1e-12)
    for scale in (1e299, 1e-300, 1e15):  # models above a total of 1e300 are refused
        rng = np.random.default_rng(3)
        grid = sz.generators.grid(3, 1.0, seed=2)
        huge = sz.Ising.from_edges(9, grid.edges()[0], scale * rng.uniform(-1, 1, 12), scale * rng.uniform(-1, 1, 9))
        truth, _, _ = states.solve(huge)
        for capacity in (1, 3, 100):
            found = heaviest_frontier(huge, capacity=capacity, ibound=3, remember=True)
            assert found.lower <= truth <= found.upper
            assert math.isfinite(gap(found))
            assert np.isfinite(found.means()[0]).all()
    star = sz.Ising.from_edges(80, [(0, v) for v in range(1, 80)], 0.3)
    given = heaviest_frontier(star, [*range(1, 80), 0], capacity=50, ibound=5)
    assert given.future.bits.width == 79
    assert given.lower <= 79 * math.log(2 * math.cosh(0.3)) + math.log(2) <= given.upper


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
    assert found.lower <= truth <= found.upper
    assert truth - found.lower < 0.05
    assert np.abs(found.means()[0] - means.probability).max() < 0.05


# --- marginals --------------------------------------------------------------------------------------------------------


@given(models(max_spins=7, scales=(0.0, 1.0)), st.integers(1, 6), st.integers(2, 4))
@settings(max_examples=30, deadline=None)
def test_marginals_are_those_of_the_kept_states(model, capacity, ibound):
    found = heaviest_frontier(model, None, capacity, ibound, remember=True)
    kept = [tuple(x) for x in kept_states(found)]
    log_weight = np.array([float(model.log_weight(np.array(x, dtype=np.int8))) for x in kept])
    assert len(set(kept)) == len(kept)
    assert float(np.logaddexp.reduce(log_weight)) == pytest.approx(log_z_of(found), abs=1e-9 * scale_of(model))
    weight = np.exp(log_weight - np.logaddexp.reduce(log_weight))
    x = np.array(kept, dtype=float).reshape(len(kept), model.n)
    probability, pair_mean = found.means()
    assert probability[:, 1] == pytest.approx(weight @ (x > 0), abs=1e-9)
    assert probability.sum(axis=1) == pytest.approx(1.0)
    edges = model.edges()[0]
    assert pair_mean == pytest.approx(weight @ (x[:, edges[:, 0]] * x[:, edges[:, 1]]), abs=1e-9)


def kept_states(found) -> list[list[int]]:
    """Follow all ways through what is remembered."""
    ways = {0: [[0] * found.future.model.n]}
    for t, step in enumerate(found.steps):
        longer: dict[int, list[list[int]]] = {}
        for k, c in itertools.product(range(len(step.score)), (0, 1)):
            if step.target[2 * k + c] >= 0:
                for x in ways.get(k, []):
                    y = x.copy()
                    y[found.future.bits.order[t]] = 2 * c - 1
                    longer.setdefault(int(step.target[2 * k + c]), []).append(y)
        ways = longer
    return ways[0]


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
    with pytest.raises(TooLargeError, match="lower ibound"):
        cold_frontier(model, gap=1.0, most_states=10, max_memory=1000)
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
    assert found.lower <= truth <= found.upper
    assert found.most_states <= 128 < future.run(2000).most_states
    with using_clock(FakeClock(1.0)), Deadline(0.5).in_force():
        assert len(narrowed(future, 0.0, 100_000, 2**30, first_states=10).runs) == 1
    with heard() as reports:
        heaviest_frontier(sz.generators.grid(12, 1.0, seed=0), capacity=5000, remember=True).means()
    assert {"keeping the heaviest states", "going back"} <= {task for task, _ in reports}
