"""Clusters of spins that turn together: the move against a literal one, its law, and where annealing makes it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import spectralz as sz
from spectralz._support.threads import using_threads
from spectralz.kernels.sampling.lanes import LANES
from spectralz.sampling.engines.lanes import one_after_the_other
from spectralz.sampling.engines.sparse import suit, turn_clusters
from spectralz.sampling.path import path_to
from spectralz.sampling.population import carry
from spectralz.sampling.spread import crew_for
from spectralz.sampling.sweeps import spaced_by
from tests.helpers import with_slow
from tests.reference.lanes import assert_law, energy, random_spins, random_words, sparse_path, symmetric, xoshiro
from tests.reference.states import all_states

N = 6
THETA, BASE = np.array([0.3, -0.8, 0.0, 0.5, 0.1, -0.2]), np.array([-0.4, 0.6, 0.2, 0.0, 0.5, 0.3])
J, J_OF_BASE = symmetric(N, 5, density=0.5), symmetric(N, 6, density=0.3, scale=0.5)
CRITICAL = 0.5 * math.log(1.0 + math.sqrt(2.0))


def turned(path, x, words, beta, moves=1, count=LANES):
    """Make moves in place."""
    for _ in range(moves):
        turn_clusters(x, words, count, beta, path, one_after_the_other)


# -------------------------------------------------------------------------------------------------------- the move


def literal(theta, coupling, x, words):
    """Turn clusters of one state: join satisfied pairs, find components, and turn each by the fields of its spins."""
    n = len(x)
    joined = []
    for i, j in zip(*np.nonzero(np.triu(coupling)), strict=True):
        is_near = next(words)[0] / 2**32 < 1.0 - math.exp(-2.0 * abs(coupling[i, j]))
        if is_near and coupling[i, j] * x[i] * x[j] > 0.0:
            joined.append((i, j))
    first, second = np.array(joined, dtype=int).reshape(-1, 2).T
    _, cluster = connected_components(coo_array((np.ones(len(first)), (first, second)), shape=(n, n)), directed=False)
    y = x.copy()
    for label in dict.fromkeys(cluster.tolist()):
        own = cluster == label
        stays = math.exp(theta[own] @ x[own])
        likelier_stays = stays >= 1.0
        chance = max(stays, 1.0 / stays) / (stays + 1.0 / stays)
        is_likely = (next(words)[0] >> 8) / 2**24 < chance
        y[own] *= 1 if is_likely == likelier_stays else -1
    return y


@pytest.mark.parametrize("beta", [0.0, 0.35, 1.0])
@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_a_move_is_the_literal_one(beta, scale):
    n = 30
    coupling, of_base = symmetric(n, 1, density=0.15), symmetric(n, 2, density=0.05)
    theta, base = scale * np.random.default_rng(3).normal(size=(2, n))
    path = sparse_path(theta, coupling, base, of_base)
    x, words = random_spins(n, np.int8, seed=4), random_words(5)
    generators = [xoshiro(words[:, lane]) for lane in range(LANES)]
    for _ in range(3):
        here = beta * theta + (1.0 - beta) * base, beta * coupling + (1.0 - beta) * of_base
        expected = np.array([literal(*here, x[:, lane], generators[lane]) for lane in range(LANES)]).T
        turned(path, x, words, beta)
        assert np.array_equal(x, expected)


@pytest.mark.parametrize("beta", with_slow([0.0, 0.35, 1.0], [0.0, 1.0]))
def test_moves_alone_end_in_the_law_of_their_point_of_the_path(beta):
    path = sparse_path(THETA, J, BASE, J_OF_BASE)
    ends = []
    for chunk in range(300):
        x = random_spins(N, np.int8, seed=chunk)
        turned(path, x, random_words(3000 + chunk), beta, moves=60)
        ends.append(x.T)
    every = all_states(N).T
    base = energy(BASE, J_OF_BASE, every)
    assert_law(np.concatenate(ends), base + beta * (energy(THETA, J, every) - base))


def test_lanes_that_stand_for_nothing_stay_as_they_are():
    path = sparse_path(THETA, J, BASE, J_OF_BASE)
    x, words = random_spins(N, np.int8), random_words(0)
    before = x.copy()
    turned(path, x, words, 1.0, moves=20, count=10)
    assert np.array_equal(x[:, 10:], before[:, 10:])
    assert not np.array_equal(x[:, :10], before[:, :10])


@pytest.mark.parametrize("n", [0, 1])
def test_no_spin_and_one_spin(n):
    path = sparse_path(np.full(n, 50.0), np.zeros((n, n)), np.zeros(n), np.zeros((n, n)))
    x = random_spins(n, np.int8)
    turned(path, x, random_words(0), 1.0)
    assert (x == 1).all()


def test_huge_couplings_join_for_certain():
    coupling = np.zeros((3, 3))
    coupling[0, 1] = coupling[1, 0] = 1e300
    coupling[1, 2] = coupling[2, 1] = -1e300
    x = np.repeat(np.array([[1], [1], [-1]], np.int8), LANES, axis=1)
    turned(sparse_path(np.zeros(3), coupling, np.zeros(3), np.zeros((3, 3))), x, random_words(0), 1.0)
    assert (x == x[0] * np.array([[1], [1], [-1]])).all()
    assert 0 < (x[0] == 1).sum() < LANES


# ------------------------------------------------------------------------------------------------ where it is made


def test_it_is_made_where_spins_would_align():
    torus = sz.generators.torus

    def is_made(model):
        return suit(model, model.storage.for_kernels())

    assert is_made(torus(16, 16, CRITICAL))
    assert is_made(torus(16, 16, -CRITICAL))  # the same by the signs of every second spin
    assert is_made(torus(16, 16, CRITICAL, field=0.04))
    assert not is_made(torus(16, 17, -CRITICAL))  # frustrated
    assert not is_made(torus(16, 16, CRITICAL, field=0.5))
    assert not is_made(torus(16, 16, 0.34))  # too hot: tanh(K) is below a third
    assert not is_made(torus(8, 8, CRITICAL))  # too small
    assert not is_made(sz.generators.curie_weiss(300, 1.2))  # dense
    assert not is_made(sz.generators.grid(20, 1.0, seed=0))  # a glass


def test_clusters_begin_where_they_would_branch():
    path = path_to(sz.generators.torus(16, 16, 0.5), clusters=None)
    first = path.engine.clusters_from
    assert path.engine.slow_share == 1.0 - first
    assert math.atanh(1.0 / 3.0) / 0.5 <= first <= math.atanh(1.0 / 3.0) / 0.5 + 1.0 / 64.0
    assert path_to(sz.generators.torus(16, 16, 0.5)).engine.slow_share == 0.0


def test_points_without_clusters_are_swept_as_before():
    model, betas = sz.generators.torus(16, 16, 0.4), np.linspace(0.0, 0.8, 9)  # up to tanh(K) = 0.31
    found = []
    for clusters in (True, False):
        path = path_to(model, clusters=clusters)
        chains = path.engine.start(64, np.random.default_rng(0))
        found.append(chains.sweep(betas, betas, betas + 0.1, 1)[1])
    assert np.array_equal(*found)


def error_of(population):
    """Return the error of log Z by the families and by the scatter of the groups, the larger of both."""
    z = np.exp(population.log_z - population.mean_log_z)
    return max(1.0 / math.sqrt(population.families()), z.std(ddof=1) / math.sqrt(population.groups))


def annealed(model, clusters, step=0.01, groups=32, each=24, seed=1):
    """Return log Z by groups of states, and its error."""
    path, rng = path_to(model, clusters=clusters), np.random.default_rng(seed)
    with crew_for(path) as crew:
        points = spaced_by(path, step, rng, crew.parallel)
        found = carry(path, points, groups, each, rng, parallel=crew.parallel)
    return found, found.mean_log_z + model.constant, error_of(found)


@pytest.mark.parametrize(
    ("shape", "K"),
    [
        ((20, 20), CRITICAL),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in (((20, 20), -0.5), ((6, 50), 0.6))),
    ],
)
def test_log_z_is_that_of_the_closed_form(shape, K):
    model, truth = sz.generators.torus(*shape, K), sz.closed_forms.torus(*shape, K)
    _, log_z, error = annealed(model, None)
    assert abs(log_z - truth) < 4.0 * error
    assert error < 0.7 * annealed(model, False)[2]


def test_a_small_field_is_seen():
    """Clusters turn by their fields: without them both phases would be equal."""
    model = sz.generators.torus(4, 70, 0.5, field=0.04)
    assert suit(model, model.storage.for_kernels())
    truth = sz.log_z(model, "exact").log_z
    found, log_z, error = annealed(model, True, step=0.05, groups=16, each=64, seed=2)
    assert abs(log_z - truth) < 4.0 * error
    assert found.mean() == pytest.approx(sz.marginals(model, "exact").mean, abs=0.1)


def test_asked_for_it_is_right_where_couplings_are_frustrated():
    model = sz.generators.grid(5, 1.0, seed=3)
    _, log_z, error = annealed(model, True, step=0.05, groups=32, each=64, seed=0)
    assert abs(log_z - sz.log_z(model, "exact").log_z) < 4.0 * error


@pytest.mark.slow
def test_threads_make_no_difference():
    model = sz.generators.torus(20, 20, 0.45)
    found = []
    for threads in (1, 2):
        path = path_to(model, clusters=True)
        with using_threads(threads), crew_for(path) as crew:
            points, rng = np.linspace(0.0, 1.0, 20), np.random.default_rng(0)
            found.append(carry(path, points, 1, 200, rng, parallel=crew.parallel))
    assert found[0].log_z == found[1].log_z
