"""Parallel tempering: what moves keep, and ladders against sums over all states."""

from __future__ import annotations

import numpy as np
import pytest

import spectralz as sz
from spectralz._support.clock import counting_operations
from spectralz._support.deadline import Deadline
from spectralz.errors import OptionError, TooLargeError
from spectralz.kernels.sampling.exchanged_clusters import exchange_clusters
from spectralz.kernels.sampling.lanes import LANES
from spectralz.sampling import tempering
from spectralz.sampling.path import from_coins, path_to
from spectralz.sampling.tempered_curves import TemperedCurves
from spectralz.sampling.tempering import COPIES, Passed, at, respaced, temper
from spectralz.trust.tempering import trusted_temperatures
from tests.reference.states import all_states

GRID = sz.generators.grid(3, 1.0, seed=3)
# Groups of copies that exchange nothing.
GROUPS = 8
EVEN = sz.Ising(None, sz.generators.complete(7, 0.5, seed=1).coupling)


def states(rng, n):
    return rng.choice(np.array([-1, 1], np.int8), size=(n, LANES))


def words(rng):
    return rng.integers(2**32, size=(4, LANES), dtype=np.uint32)


def exchange(x, random, group, model, is_even=False):
    couplings = model.storage.for_kernels()
    if couplings.is_dense:
        model = sz.Ising.from_edges(model.n, *model.edges(), field=model.field)
        couplings = model.storage.for_kernels()
    return exchange_clusters(x, random, group, is_even, couplings.indptr, couplings.indices)


def law_of(model, point):
    weight = point * np.asarray(model.log_weight(all_states(model.n)), dtype=float)
    return np.exp(weight - np.logaddexp.reduce(weight))


# ------------------------------------------------------------------------------------------------------ the clusters


def test_an_exchange_keeps_spins_and_the_energy_of_its_group():
    rng = np.random.default_rng(0)
    model, group = sz.generators.grid(6, 1.0, seed=0), 4
    for _ in range(20):
        before = states(rng, model.n)
        x = before.copy()
        count = exchange(x, words(rng), group, model)
        by_group = [part.reshape(model.n, -1, group) for part in (before, x)]
        assert np.array_equal(by_group[0].sum(axis=2), by_group[1].sum(axis=2))
        energies = [np.asarray(model.log_weight(part.T)).reshape(-1, group).sum(axis=1) for part in (before, x)]
        assert energies[0] == pytest.approx(energies[1], abs=1e-9)
        assert 2 * count == np.count_nonzero(x != before)
        assert count > 0


def test_clusters_are_connected_and_whole():
    """Two copies that differ everywhere on a path of two pieces exchange one of the pieces."""
    model = sz.Ising.from_edges(7, [(0, 1), (1, 2), (4, 5), (5, 6)], [1.0, -1.0, 1.0, 1.0])
    rng = np.random.default_rng(1)
    x = np.ones((7, LANES), np.int8)
    x[:, 1::2] = -1
    x[3] = 1
    before = x.copy()
    assert exchange(x, words(rng), 2, model) in range(3 * LANES // 2, 3 * LANES // 2 + 1)
    changed = (x != before).reshape(7, -1, 2).any(axis=2).T
    assert {tuple(row) for row in changed.tolist()} == {
        (True, True, True, False, False, False, False),
        (False, False, False, False, True, True, True),
    }


@pytest.mark.parametrize("is_even", [False, True])
def test_exchanges_leave_the_law_as_it_is(is_even):
    """Copies of P that exchange clusters are copies of P: pairs of them in 2^2n states."""
    model = sz.Ising.from_edges(4, [(0, 1), (1, 2), (2, 3), (0, 3)], [0.8, -0.5, 0.6, 0.9], field=None)
    if not is_even:
        model = sz.Ising.from_edges(4, *model.edges(), field=[0.3, -0.4, 0.1, 0.2])
    law, every, rng = law_of(model, 1.0), all_states(4).astype(np.int8), np.random.default_rng(2)
    counts, rounds = np.zeros((16, 16)), 2000
    for _ in range(rounds):
        x = np.ascontiguousarray(every[rng.choice(16, size=LANES, p=law)].T)
        exchange(x, words(rng), 2, model, is_even)
        number = (x.T > 0) @ (1 << np.arange(4)[::-1])
        np.add.at(counts, (number[0::2], number[1::2]), 1.0)
    numbers = (every > 0) @ (1 << np.arange(4)[::-1])
    wanted = np.zeros((16, 16))
    wanted[np.ix_(numbers, numbers)] = np.outer(law, law) * rounds * LANES / 2
    assert (((counts - wanted) ** 2) / wanted).sum() < 256 + 5 * np.sqrt(2 * 256)


def test_groups_exchange_nothing():
    rng = np.random.default_rng(3)
    x = np.repeat(states(rng, 16)[:, :1], LANES, axis=1)
    x[:, 40:44] *= -1
    before = x.copy()
    for _ in range(5):
        exchange(x, words(rng), 4, sz.generators.grid(4, 1.0, seed=0))
    assert np.array_equal(x, before), "all copies of each group are alike"


# ------------------------------------------------------------------------------------------------------- the ladder


@pytest.mark.slow
def test_errors_are_as_large_as_the_scatter():
    """Over seeds, log Z deviates by about one error: of so few groups, Student's 1.2 on average."""
    path, points = from_coins(GRID), np.array([0.0, 0.5, 1.0])
    truth = float(np.logaddexp.reduce(np.asarray(GRID.log_weight(all_states(GRID.n))))) - GRID.constant
    deviations = []
    for seed in range(25):
        with counting_operations():
            log_z, apart = temper(path, points, Deadline.after(0.1), np.random.default_rng(seed)).log_z
        deviations.append((log_z[-1] - truth) / (apart[-1].std(ddof=1) / np.sqrt(GROUPS)))
    assert 0.7 < np.sqrt(np.mean(np.square(deviations))) < 1.8


@pytest.mark.parametrize("model", [GRID, EVEN], ids=["sparse", "dense"])
@pytest.mark.parametrize("make", [from_coins, path_to], ids=["from coins", "from fields"])
def test_ladders_are_sums_over_all_states(model, make):
    path = make(model)
    points = np.array([0.0, 0.2, 0.45, 0.7, 1.0])
    seen = []
    with counting_operations():
        found = temper(
            path,
            points,
            Deadline.after(0.3),
            np.random.default_rng(5),
            look=lambda sight: seen.append(sight.x[-1]),
            looks=100,
        )
    x = all_states(model.n)
    base = x @ path.base
    change = np.asarray(model.log_weight(x)) - model.constant - base
    log_z, apart = found.log_z
    for k, point in enumerate(points.tolist()):
        weight = base + point * change
        truth = float(np.logaddexp.reduce(weight))
        p = np.exp(weight - truth)
        error = apart[k].std(ddof=1) / np.sqrt(GROUPS)
        assert abs(log_z[k] - truth) < 0.03, point
        assert error < 0.02
        mean_by_group = tempering.grouped(found.energy)[k]
        assert abs(mean_by_group.mean() - p @ change) < 0.06 * np.sqrt(p @ change**2 - (p @ change) ** 2), point
    states = np.concatenate(seen)
    assert len(seen) == 100
    number = (states > 0) @ (1 << np.arange(model.n)[::-1])
    order = (x > 0) @ (1 << np.arange(model.n)[::-1])
    shares = np.bincount(number, minlength=len(x))[order] / len(number)
    assert np.abs(shares - p).max() < 0.03


@pytest.mark.slow
def test_a_point_between_rungs_is_seen_from_both():
    path = from_coins(GRID)
    with counting_operations():
        found = temper(path, np.array([0.0, 0.5, 1.0]), Deadline.after(0.3), np.random.default_rng(6))
    weight = np.asarray(GRID.log_weight(all_states(GRID.n)))
    for point in (0.25, 0.5, 0.8, 1.0):
        here = at(found, point)
        truth = float(np.logaddexp.reduce(point * weight))
        p = np.exp(point * weight - truth)
        error = here.apart.std(ddof=1) / np.sqrt(GROUPS)
        assert abs(here.log_z - truth) < 0.03
        assert error < 0.02
        energy = found.energy[:, here.rungs]
        assert float(here.weight.mean()) == pytest.approx(1.0)
        assert np.exp(here.log_weight(energy)) == pytest.approx(here.weight)
        means = tempering.grouped(here.weight * energy).mean(axis=0)
        assert abs(means.mean() - p @ weight) < 0.06 * np.sqrt(p @ weight**2 - (p @ weight) ** 2)


def test_the_ratio_of_two_gaussians():
    """Energies of a normal law with mean m and variance v: log Z grows by d m + d^2 v / 2."""
    rng, d, m, v = np.random.default_rng(7), 0.7, 2.0, 3.0
    low = rng.normal(m, np.sqrt(v), size=(3000, COPIES))
    high = rng.normal(m + d * v, np.sqrt(v), size=(3000, COPIES))
    found, apart, _ = tempering.grown(d * low, -d * high)
    assert found == pytest.approx(d * m + d * d * v / 2, abs=0.01)
    assert apart.mean() == pytest.approx(0.0, abs=1e-9)
    assert 0.5 < apart.std(ddof=1) / np.sqrt(GROUPS) / abs(0.7 * np.sqrt(v / low.size)) < 3.0


def test_visitors_are_copies_that_came_from_the_base():
    visits = tempering._Visits(3)
    new = 3 * COPIES
    births = np.zeros((3, COPIES), np.int64)
    births[1, 0], births[1, 1] = new, new + 1
    visits.count(births)
    births[1, 0], births[2, 0] = 0, new  # one climbs on
    visits.count(births)
    births[1, 0], births[2, 0] = new, 0  # and comes back
    visits.count(births)
    assert visits.totals.tolist() == [0, 2, 1]


def test_rungs_move_to_where_few_change_places():
    found = tempering.Tempered(
        points=np.array([0.0, 0.5, 1.0]),
        passed=Passed(*np.zeros((2, 1, 3, COPIES))),
        early=Passed(*np.zeros((2, 0, 3, COPIES))),
        visitors=np.zeros(3, np.int64),
        log_z_of_base=0.0,
        accepted=np.array([0.9, 0.05]),
        rounds=1,
        x=np.arange(3, dtype=np.int8)[:, None, None] * np.ones((1, COPIES, 2), np.int8),
    )
    points, x = respaced(found)
    assert points[0] == 0.0
    assert points[-1] == 1.0
    assert np.count_nonzero(points > 0.5) > np.count_nonzero((points > 0.0) & (points < 0.5))
    assert x[0, 0, 0] == 0
    assert x[-1, 0, 0] == 2
    assert len(x) == len(points)


def test_drift_few_visitors_and_missed_phases_are_not_trusted():
    curves = TemperedCurves(
        quantities={},
        visitors=np.array([100, 10, 100, 100]),
        drift=np.array([1.0, 1.0, 9.0, 1.0]),
        missed=np.array([False, False, False, True]),
        rounds=1,
        rungs=1,
        interrupted=False,
    )
    assert trusted_temperatures(curves).tolist() == [True, False, False, False]


# ------------------------------------------------------------------------------------------------------ the curves


@pytest.mark.slow
def test_contracted_curves_are_those_of_exact_sums():
    grid = sz.generators.grid(6, 1.0, seed=4)
    model = sz.Ising.from_edges(grid.n, *grid.edges(), field=grid.field, offset=1.5)
    betas = [0.0, 0.3, 1.0, 2.5]
    truth = sz.thermodynamics(model, betas, "exact")
    found = sz.thermodynamics(model, betas, "mps", budget=60)
    assert found.method == "mps"
    assert found.trusted.all()
    for name in ("log_z", "energy", "entropy", "heat_capacity", "magnetization", "overlap"):
        off = np.abs(getattr(found, name) - getattr(truth, name))
        assert (off <= getattr(found, f"{name}_error") + 1e-8).all(), name
        assert off.max() < 1e-4, name


def test_tempered_curves_are_those_of_exact_sums():
    model, betas = sz.generators.grid(4, 1.0, seed=5), [0.0, 0.4, 1.0]
    truth = sz.thermodynamics(model, betas, "exact")
    found = sz.thermodynamics(model, betas, "tempering", work=1e9, seed=1)
    assert found.method == "tempering"
    assert found.trusted.all()
    for name in ("log_z", "energy", "entropy", "heat_capacity", "magnetization", "overlap"):
        off, error = np.abs(getattr(found, name) - getattr(truth, name)), getattr(found, f"{name}_error")
        assert (off <= 5.0 * error + 1e-12).all(), name
        assert error.max() < 0.2, name


def test_curves_say_which_method_has_answered_and_why_one_cannot():
    with pytest.raises(TooLargeError, match=r"mps|neighbors|frontier"):
        sz.thermodynamics(sz.generators.complete(60, 0.1, seed=0), [1.0], "mps")
    machine = sz.RBM(0.1 * np.random.default_rng(0).normal(size=(40, 40)))
    with pytest.raises(OptionError, match="annealing"):
        sz.thermodynamics(machine, [1.0], "tempering")
    grid = sz.generators.grid(4, 1.0, seed=0)
    for model in (sz.Ising(field=[]), grid.scaled(1e6)):
        with pytest.raises(OptionError, match="ask for method"):
            sz.thermodynamics(model, [1.0], "tempering")
    with pytest.raises(OptionError, match="exclude less"):
        sz.thermodynamics(
            sz.generators.random_regular(300, 3, 1.0, 0), [1.0], exclude=["mps", "tempering", "annealing"], budget=1
        )


@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
def test_tempering_does_not_trust_itself_on_dense_couplings():
    model = sz.generators.complete(18, 0.1, seed=0)
    found = sz.thermodynamics(model, [1.0], "tempering", work=3e8)
    assert not found.trusted.any()
    assert found.log_z[0] == pytest.approx(sz.log_z(model, "exact").log_z, abs=0.1)
