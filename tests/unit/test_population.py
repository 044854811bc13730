"""Populations against enumeration and literal loops: Z, families, resampling, and how states are divided."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import spectralz as sz
from spectralz._support.threads import using_threads
from spectralz.sampling.engines.collapsed import CollapsedEngine, sides_of
from spectralz.sampling.engines.dense import DenseEngine
from spectralz.sampling.engines.sparse import SparseEngine
from spectralz.sampling.path import from_coins, from_fields, from_subgraph
from spectralz.sampling.population import (
    Layout,
    Population,
    carry,
    effective,
    joined,
    layout_of,
    means_and_shares,
    offspring,
    populations,
)
from spectralz.sampling.spread import crew_for
from tests.reference import states


def some_population(groups=3, each=4, n=5, seed=0):
    """Return a population made by hand; some families have several states, and some none."""
    rng = np.random.default_rng(seed)
    share = rng.random((groups, each))
    family = np.concatenate([k * each + np.sort(rng.integers(each, size=each)) for k in range(groups)])
    return Population(
        rng.normal(size=groups),
        rng.choice(np.array([-1, 1], dtype=np.int8), (groups * each, n)),
        share / share.sum(axis=1, keepdims=True),
        family,
    )


def literal_weights(population):
    """Return the weight of each state: its share of its group's Z, divided by the sum of all groups' Z."""
    z = [math.exp(log_z) for log_z in population.log_z]
    each = population.share.shape[1]
    return [z[r // each] * population.share[r // each, r % each] / sum(z) for r in range(population.size)]


def weights_of_families(population, counted=None):
    found: dict[int, float] = {}
    for r, w in enumerate(literal_weights(population)):
        if counted is None or counted[r]:
            found[int(population.family[r])] = found.get(int(population.family[r]), 0.0) + w
    return found


# ---------------------------------------------------------------------------------------------- weights and families


def test_weights_and_log_z_are_the_literal_ones():
    population = some_population()
    assert population.size == 12
    assert population.groups == 3
    assert population.weights() == pytest.approx(literal_weights(population))
    assert population.mean_log_z == pytest.approx(math.log(sum(map(math.exp, population.log_z)) / 3.0))
    huge = replace(population, log_z=population.log_z + 5000.0)
    assert huge.mean_log_z == pytest.approx(population.mean_log_z + 5000.0)
    assert huge.weights() == pytest.approx(literal_weights(population))


def test_the_effective_number_of_weights():
    assert effective(np.array([0.25] * 4)) == pytest.approx(4.0)
    assert effective(np.array([3.0, 0.0, 0.0])) == pytest.approx(1.0)
    assert effective(np.array([1.0, 2.0])) == pytest.approx(9.0 / 5.0)  # (1 + 2)^2 / (1 + 4)
    assert effective(np.zeros(3)) == 0.0


@pytest.mark.parametrize("is_part", [False, True])
def test_families_are_counted_with_their_weights(is_part):
    population = some_population(seed=1)
    counted = np.random.default_rng(2).random(12) < 0.5 if is_part else None
    weights = weights_of_families(population, counted)
    literal = sum(weights.values()) ** 2 / sum(w * w for w in weights.values())
    assert population.families(counted) == pytest.approx(literal)
    by_family = population.family_weights(counted)
    assert by_family == pytest.approx([weights.get(family, 0.0) for family in range(12)])
    assert population.families(np.zeros(12, dtype=bool)) == 0.0


def test_families_are_counted_with_the_z_of_their_groups():
    # One group has all of Z: its own two families are left, whatever the 31 others hold.
    groups, each = 32, 4
    family = np.arange(groups * each)
    family[:4] = [0, 0, 2, 2]
    log_z = np.full(groups, -800.0)
    log_z[0] = 0.0
    population = Population(log_z, np.ones((128, 3), np.int8), np.full((groups, each), 0.25), family)
    assert population.families() == pytest.approx(2.0)
    # With equal Z each group counts: one of two families, and 31 of four.
    expected = (2 * 2 + 31 * 4) ** 2 / (2 * 4 + 31 * 4)
    assert replace(population, log_z=np.zeros(groups)).families() == pytest.approx(expected)


def test_means_of_states_and_of_families():
    population = some_population(seed=3)
    weights, by_family = literal_weights(population), weights_of_families(population)
    for counted in (None, np.random.default_rng(4).random(12) < 0.5):
        rows = [r for r in range(12) if counted is None or counted[r]]
        literal = sum(weights[r] * population.x[r] for r in rows) / sum(weights[r] for r in rows)
        assert population.mean(counted) == pytest.approx(literal)
    # The mean of each family that is left, and the mean of these means
    literal = sum(weights[r] / by_family[int(population.family[r])] * population.x[r] for r in range(12))
    assert population.mean_of_families() == pytest.approx(literal / len(by_family))
    assert not population.mean(np.zeros(12, dtype=bool)).any()


def test_a_heavy_family_counts_as_one_of_many():
    # 1 of 64 families is in a phase that weighs e^20 times as much as all others.
    x = np.full((64, 3), -1, np.int8)
    x[0] = 1
    log_weight = np.zeros((1, 64))
    log_weight[0, 0] = 20.0
    mean, share = means_and_shares(log_weight)
    population = Population(mean, x, share, np.arange(64))
    assert population.mean() == pytest.approx(np.ones(3), abs=1e-6)
    assert population.mean_of_families() == pytest.approx(np.full(3, -1.0 + 2.0 / 64.0))


def test_log_means_and_shares_of_rows():
    log_weight = np.random.default_rng(5).normal(size=(3, 7)) + np.array([[0.0], [900.0], [-900.0]])
    mean, share = means_and_shares(log_weight)
    for k, row in enumerate(log_weight):
        weight = [math.exp(w - row[0]) for w in row]
        assert mean[k] == pytest.approx(row[0] + math.log(sum(weight) / 7.0))
        assert share[k] == pytest.approx([w / sum(weight) for w in weight])


# ------------------------------------------------------------------------------------- families and groups stay apart


def test_joined_populations_have_no_family_in_common():
    parts = [some_population(groups, seed=groups) for groups in (2, 3, 1)]
    whole = joined(parts)
    assert whole.log_z.tolist() == [z for part in parts for z in part.log_z]
    assert np.array_equal(whole.x, np.concatenate([part.x for part in parts]))
    assert np.array_equal(whole.share, np.concatenate([part.share for part in parts]))
    owner = np.repeat(np.arange(3), [part.size for part in parts])
    families = [set(whole.family[owner == k].tolist()) for k in range(3)]
    assert not families[0] & families[1]
    assert not families[1] & families[2]
    assert not families[0] & families[2]
    for k, part in enumerate(parts):
        mine = whole.family[owner == k]
        assert np.array_equal(mine[:, None] == mine, part.family[:, None] == part.family)
    # Only what a population has as families may count: numbers stay below its size
    assert whole.family.max() < whole.size


def test_selected_groups_keep_their_families():
    population = some_population(groups=5, seed=6)
    chosen = np.array([3, 0, 4])
    some = population.selected(chosen)
    rows = [4 * group + r for group in chosen for r in range(4)]
    assert np.array_equal(some.x, population.x[rows])
    assert np.array_equal(some.share, population.share[chosen])
    assert np.array_equal(some.log_z, population.log_z[chosen])
    before = population.family[rows]
    assert np.array_equal(some.family[:, None] == some.family, before[:, None] == before)
    assert some.family.max() < some.size
    weights = weights_of_families(some)
    assert some.families() == pytest.approx(sum(weights.values()) ** 2 / sum(w * w for w in weights.values()))


# -------------------------------------------------------------------------------------------------------- resampling


def test_offspring_are_expected_by_their_shares():
    groups, each, steps = 3, 5, 1000
    share = some_population(groups, each, seed=7).share
    mean = np.zeros(groups * each)
    for u in (np.arange(steps) + 0.5) / steps:
        places = offspring(share, np.full(groups, u))
        counts = np.bincount(places, minlength=groups * each)
        # Siblings beside each other, in the order of their parents, and each group as large as before
        assert (np.diff(places) >= 0).all()
        assert (counts.reshape(groups, each).sum(axis=1) == each).all()
        mean += counts / steps
    # An average over u on a grid of steps of 1 / 1000 errs by at most one of them.
    assert mean == pytest.approx(each * share.ravel(), abs=1.0 / steps)


def test_states_and_families_get_their_share_rounded_up_or_down():
    groups, each = 4, 9
    share = some_population(groups, each, seed=8).share
    for u in np.random.default_rng(9).random((50, groups)):
        counts = np.bincount(offspring(share, u), minlength=groups * each).reshape(groups, each)
        for begin, end in itertools.combinations(range(each + 1), 2):
            due = each * share[:, begin:end].sum(axis=1)
            assert (np.abs(counts[:, begin:end].sum(axis=1) - due) < 1.0 + 1e-12).all()


def test_each_group_has_its_own_random_number():
    share = np.tile(some_population(1, 5, seed=10).share, (2, 1))
    counts = np.bincount(offspring(share, np.array([0.01, 0.99])), minlength=10).reshape(2, 5)
    assert not np.array_equal(counts[0], counts[1])
    one = [np.bincount(offspring(share[:1], np.array([u])), minlength=5) for u in (0.01, 0.99)]
    assert np.array_equal(counts, one)


def test_even_shares_leave_every_state():
    for each in (2, 3, 7, 10, 100):
        share = np.full((2, each), 1.0 / each)
        for u in (0.001, 0.5, 0.999):
            assert np.array_equal(offspring(share, np.full(2, u)), np.arange(2 * each))


def test_no_state_is_lost_to_rounding():
    share = np.full((1, 10), 0.1)
    assert np.cumsum(share)[-1] < 1.0
    counts = np.bincount(offspring(share, np.zeros(1)), minlength=10)
    assert counts.sum() == 10
    assert counts.max() <= 2


# ------------------------------------------------------------------------------------------------ Z, by enumeration

FIELDS = np.array([0.4, -0.3, 0.8, 0.0, -0.6, 0.2, 0.5])


def dense_glass():
    A = np.array(sz.generators.complete(n=7, strength=0.5, seed=3).coupling)
    return sz.Ising(FIELDS, A)


def sparse_glass():
    edges = [(i, (i + k) % 7) for i in range(7) for k in (1, 2)]
    return sz.Ising.from_edges(7, edges, np.random.default_rng(4).normal(size=len(edges)), FIELDS)


def with_terms():
    rng = np.random.default_rng(5)
    terms = {scope: 0.3 * rng.normal() for scope in itertools.combinations(range(7), 3)}
    terms |= {(i, (i + 1) % 7): 0.3 * rng.normal() for i in range(7)} | {(i,): FIELDS[i] for i in range(7)}
    return sz.Polynomial(terms)


def bipartite():
    return sz.Ising.from_bipartite(0.8 * np.random.default_rng(6).normal(size=(4, 3)), FIELDS)


def small_paths():
    dense, sparse, terms, rbm = dense_glass(), sparse_glass(), with_terms(), bipartite()
    bases = np.array([-0.2, 0.3, 0.5, 0.4, 0.0, 0.1, -0.3])
    sides = sides_of(rbm)
    cases = {
        "dense from coins": (from_fields(dense, np.zeros(7)), DenseEngine),
        "dense from fields": (from_fields(dense, bases), DenseEngine),
        "sparse from coins": (from_fields(sparse, np.zeros(7)), SparseEngine),
        "sparse from fields": (from_fields(sparse, bases), SparseEngine),
        "sparse from a subgraph": (from_subgraph(from_coins(sparse), 1), SparseEngine),
        "terms from coins": (from_fields(terms, np.zeros(7)), SparseEngine),
        "terms from fields": (from_fields(terms, bases), SparseEngine),
        "RBM from coins": (from_fields(rbm, np.zeros(7), sides=sides), CollapsedEngine),
        "RBM from fields": (from_fields(rbm, bases, sides=sides), CollapsedEngine),
        "RBM with flips": (replace(from_fields(rbm, bases, sides=sides), flips=True), CollapsedEngine),
    }
    return [pytest.param(*case, id=name) for name, case in cases.items()]


@pytest.mark.parametrize(("path", "engine"), small_paths())
def test_the_mean_of_few_states_is_z_however_far_from_equilibrium(path, engine):
    assert isinstance(path.engine, engine)
    # Four states in each group, four steps, and one sweep at each: the groups scatter by much.
    points, rng, model = np.array([0.0, 0.3, 0.6, 0.8, 1.0]), np.random.default_rng(13), path.model
    runs = [carry(path, points, 500, 4, rng, resample_below=0.8) for _ in range(10)]
    truth, means, pairs = states.solve(model)
    ratio = np.concatenate([np.exp(run.log_z + model.constant - truth) for run in runs])
    assert len(ratio) == 5000
    error = ratio.std(ddof=1) / math.sqrt(len(ratio))
    assert 0.001 < error < 0.05
    assert abs(ratio.mean() - 1.0) < 4.0 * error
    # So it is with sums over states: Z times a mean.
    for i, j, expected in [(0, 0, None), (1, 4, None), (2, 3, None)]:
        parts = []
        for run in runs:
            seen = (run.x[:, i] if i == j else run.x[:, i] * run.x[:, j]).reshape(run.share.shape)
            parts.append(np.exp(run.log_z + model.constant - truth) * (run.share * seen).sum(axis=1))
        part, expected = np.concatenate(parts), means[i] if i == j else pairs[i, j]
        assert abs(part.mean() - expected) < 4.0 * part.std(ddof=1) / math.sqrt(len(part))
    # Some groups were resampled, and families do not leave their groups.
    for run in runs:
        assert len(np.unique(run.family)) < run.size
        assert np.array_equal(run.family // 4, np.arange(run.size) // 4)
        assert (np.diff(run.family) >= 0).all()
        assert run.share.sum(axis=1) == pytest.approx(np.ones(500))


class Scripted:
    """An engine whose states are numbers, and whose log-weights grow as a script says, whatever the states are."""

    n, operations, log_z_of_base, together, takes_threads = 1, 1.0, 2.5, 64, True

    def __init__(self, energies):
        self.energies = energies  # (points, states)

    def start(self, size, rng, parallel):
        return ScriptedChains(self.energies, np.arange(size))


class ScriptedChains:
    def __init__(self, energies, numbers):
        self.energies, self.numbers, self.passed = energies, numbers, 0

    def sweep(self, before, at, after, sweeps):
        energies = self.energies[self.passed : self.passed + len(at)]
        self.passed += len(at)
        return (before - at)[:, None] * energies, (after - at)[:, None] * energies

    def take(self, places):
        self.numbers = self.numbers[places]

    def states(self):
        return self.numbers.astype(np.int8)[:, None]


def literal_systematic(share, u):
    """Return the parents of as many states: those whose cumulative shares pass the numbers k + 1 - u."""
    each, reached, parents = len(share), 0.0, []
    for k, p in enumerate(share):
        before, reached = math.floor(each * reached + u), reached + p
        last = each if k == each - 1 else math.floor(each * reached + u)
        parents += [k] * (last - before)
    return parents


def literal_carry(energies, points, groups, each, us, resample_below, looks):
    """Take groups of states along a script, one by one: log Z, shares, and the initial state of each."""
    us = iter(us)
    log_z, shares, numbers = [2.5] * groups, [None] * groups, [list(range(each)) for _ in range(groups)]
    weights = [[0.0] * each for _ in range(groups)]
    for k in range(len(points) - 1):
        for g, r in itertools.product(range(groups), range(each)):
            weights[g][r] += (points[k + 1] - points[k]) * energies[k, g * each + r]
        if k + 1 not in looks:
            continue
        shares = [[math.exp(w) / sum(map(math.exp, group)) for w in group] for group in weights]
        is_uneven = [1.0 / sum(p * p for p in share) < resample_below * each for share in shares]
        if not any(is_uneven):
            continue
        u = next(us)
        for g in range(groups):
            if is_uneven[g]:
                log_z[g] += math.log(sum(map(math.exp, weights[g])) / each)
                numbers[g] = [numbers[g][parent] for parent in literal_systematic(shares[g], u[g])]
                weights[g] = [0.0] * each
    log_z = [z + math.log(sum(map(math.exp, group)) / each) for z, group in zip(log_z, weights, strict=True)]
    shares = [[math.exp(w) / sum(map(math.exp, group)) for w in group] for group in weights]
    return log_z, shares, [g * each + number for g in range(groups) for number in numbers[g]]


@pytest.mark.parametrize("resample_below", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("count", [9, 80])  # a look at each point, and at every second one
def test_groups_are_carried_as_by_the_literal_loop(count, resample_below):
    groups, each = 5, 6
    energies = 8.0 * np.random.default_rng(18).normal(size=(count, groups * each))
    energies[:, : 2 * each] *= 0.05  # two groups stay even for longer than the others
    points = np.linspace(0.0, 1.0, count)
    us = np.random.default_rng(19).random((count, groups))
    numbers_in_turn = iter(us)
    rng = SimpleNamespace(random=lambda _: next(numbers_in_turn))
    told = []
    path = SimpleNamespace(engine=Scripted(energies))
    run = carry(path, points, groups, each, rng, resample_below=resample_below, tell=told.append)
    looks = range(1, count) if count == 9 else range(2, count, 2)
    log_z, shares, numbers = literal_carry(energies, points, groups, each, us, resample_below, looks)
    assert run.log_z == pytest.approx(log_z)
    assert run.share == pytest.approx(np.array(shares))
    assert run.family.tolist() == run.x[:, 0].tolist() == numbers
    assert told == sorted(told)
    assert told[-1] == 1.0
    is_left = np.array(
        [numbers[g * each : (g + 1) * each] == list(range(g * each, (g + 1) * each)) for g in range(groups)]
    )
    assert is_left.all() == (resample_below == 0.0)
    assert is_left.any()


# ------------------------------------------------------------------------------------------------------- the division

ENGINE = SimpleNamespace(together=64, takes_threads=True)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (8192, Layout(32, 1, 256)),  # 32 groups of as many states as there is room for
        (1024, Layout(16, 2, 32)),  # small groups fill a lane together
        (1000, Layout(15, 4, 16)),
        (100, Layout(1, 32, 2)),
        (1, Layout(1, 32, 2)),  # never fewer
        (1_000_000, Layout(976, 1, 1024)),  # more groups rather than larger ones
    ],
)
def test_states_are_divided_into_groups(size, expected):
    assert layout_of(ENGINE, size) == expected


def test_divisions_have_enough_groups_and_no_more_states():
    for size in np.unique(np.geomspace(64, 1e6, 200).astype(int)).tolist():
        layout = layout_of(ENGINE, size)
        assert layout.size == layout.parts * layout.groups * layout.each
        assert layout.parts * layout.groups >= 32
        assert layout.each <= 1024
        assert layout.size <= size
        assert layout.size > 0.45 * size  # rounded down to a power of two
        assert layout.groups * layout.each % 64 == 0


def test_a_requested_division_has_groups_of_the_size_requested():
    assert layout_of(ENGINE, 256 * 32, 32) == Layout(32, 1, 256)
    assert layout_of(ENGINE, 100, 10) == Layout(2, 6, 10)  # at least ten groups, six of them side by side
    assert layout_of(ENGINE, 40, 4) == Layout(1, 4, 10)
    assert layout_of(ENGINE, 100_000, 1) == Layout(1, 1, 100_000)


def test_a_device_sweeps_everything_together():
    device = SimpleNamespace(together=4096, takes_threads=False)
    assert layout_of(device, 100) == Layout(1, 32, 128)
    assert layout_of(device, 32_000) == Layout(1, 32, 1000)
    assert layout_of(device, 80, 8) == Layout(1, 8, 10)


def test_populations_do_not_depend_on_threads():
    path, points = from_fields(sparse_glass(), np.zeros(7)), np.linspace(0.0, 1.0, 6)
    layouts, found = [], []
    for threads in (1, 3):
        with using_threads(threads), crew_for(path) as crew:
            layout = layout_of(path.engine, 512)
            layouts.append(layout)
            found.append(list(populations(crew, path, points, layout, np.random.default_rng(17), sweeps=2)))
    assert layouts[0] == layouts[1]
    assert len(found[0]) == layouts[0].parts > 1
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one.x, other.x)
        assert np.array_equal(one.log_z, other.log_z)
        assert np.array_equal(one.family, other.family)
    # Each part has random numbers of its own.
    assert len({part.log_z.tobytes() for part in found[0]}) == len(found[0])
