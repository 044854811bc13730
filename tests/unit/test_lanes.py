"""64 states swept together: the kernels against literal versions, their law against enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from spectralz.kernels.coupling import frozen
from spectralz.kernels.sampling.lanes import (
    LANES,
    SPINS_TOLD_TOGETHER,
    DensePath,
    descend_sparse,
    draw_spins,
    sweep_dense,
    sweep_sparse,
    take,
)
from tests.reference.lanes import assert_law, energy, random_spins, random_words, sparse_path, symmetric, xoshiro
from tests.reference.states import all_states


def swept_sparse(path, x, words, betas, sweeps=1):
    """Sweep in place; return the energies."""
    energies = np.full((len(betas), LANES), np.nan)
    room = np.empty(len(path.data), np.float32), np.empty(LANES, np.float32)
    sweep_sparse(x, words, np.asarray(betas, float), sweeps, path, *room, energies)
    return energies


def dense_path(theta, J, theta_of_base):
    return DensePath(*(frozen(np.asarray(array, np.float32)) for array in (theta_of_base, theta, J)))


def swept_dense(path, x, h, words, betas, sweeps=1):
    n = len(x)
    energies = np.full((len(betas), LANES), np.nan)
    room = ((n, LANES), (SPINS_TOLD_TOGETHER, n), (SPINS_TOLD_TOGETHER, LANES))
    told, rows, turned = (np.full(shape, np.nan, np.float32) for shape in room)
    sweep_dense(x, h, words, np.asarray(betas, float), sweeps, path, told, rows, turned, energies)
    return energies


def fields(path, x):
    """Return the fields of the model in the states, for dense sweeps to begin with."""
    return (path.field.astype(float)[:, None] + path.coupling.astype(float) @ x).astype(np.float32)


# ------------------------------------------------------------------------------------------------ the random numbers


def test_the_literal_generator_says_what_its_authors_do():
    # The first numbers from the state 1, 2, 3, 4.
    assert [word for word, _ in itertools.islice(xoshiro([1, 2, 3, 4]), 4)] == [641, 1573767, 3222811527, 3517856514]


def test_random_words_are_those_of_the_literal_generator():
    n = 150
    words, x = random_words(1), np.empty((n, LANES), np.int8)
    start = words.copy()
    draw_spins(x, words, np.zeros(n))
    for lane in range(LANES):
        drawn = list(itertools.islice(xoshiro(start[:, lane]), n))
        assert tuple(words[:, lane].tolist()) == drawn[-1][1]
        # Without a field a spin is its word's first bit.
        assert np.array_equal(x[:, lane] < 0, np.array([word for word, _ in drawn]) >= 2**31)


def share_of_plus(field):
    """Return the share of all 24 random bits that make a spin +1, by looking for the ones from where on it turns."""
    begin, length = 0, 2**24
    sides = []
    while length > 1:  # the likely side comes first
        length //= LANES
        bits = begin + length * np.arange(LANES)
        words = np.zeros((4, LANES), np.uint32)
        # With s0 = 0 the next word is s3 turned by seven bits.
        words[3] = [(word >> 7 | word << 25) % 2**32 for word in (bits << 8).tolist()]
        x = np.empty((1, LANES), np.int8)
        draw_spins(x, words, np.array([field]))
        sides.append(x[0, 0])
        stays = x[0] == x[0, 0]
        assert not np.any(np.diff(stays.astype(int)) > 0)
        begin += length * (int(stays.sum()) - 1)
    likely = (begin + 1) / 2**24
    return likely if sides[0] > 0 else 1.0 - likely


def test_a_spin_has_the_probability_of_its_log_odds():
    tiny = [sign * 10.0**-k for sign in (1, -1) for k in range(9)]
    for log_odds in (*np.linspace(-100, 100, 81), *np.linspace(-18, 18, 145), *tiny):
        # 24 bits, and an exponential that is right to 2e-7 of itself.
        assert share_of_plus(log_odds / 2.0) == pytest.approx(1.0 / (1.0 + math.exp(-log_odds)), abs=1.5e-7)


def test_independent_spins_follow_their_fields():
    field = np.array([-3.0, -0.5, 0.0, 0.2, 1.0, 400.0])
    mean = np.zeros(6)
    words = random_words(2, 400)
    for part in words:
        x = np.empty((6, LANES), np.float32)
        draw_spins(x, part, field)
        mean += x.mean(axis=1, dtype=float) / len(words)
    error = np.sqrt((1.0 - np.tanh(field) ** 2) / (400 * LANES))
    assert (np.abs(mean - np.tanh(field)) <= 4.0 * error + 1e-12).all()


# ------------------------------------------------------------------------------------------------------- the copies


def test_states_are_copied_to_their_places():
    rng = np.random.default_rng(3)
    x = rng.integers(-100, 100, size=(3, 5, LANES)).astype(np.int8)
    places = rng.integers(3 * LANES, size=3 * LANES)
    rows = x.transpose(0, 2, 1).reshape(3 * LANES, 5)
    for kind in (np.int8, np.float32):
        taken = np.empty_like(x, dtype=kind)
        take(x.astype(kind), places, taken)
        assert np.array_equal(taken.transpose(0, 2, 1).reshape(3 * LANES, 5), rows[places])


# ------------------------------------------------------------------------------------------------------ the quenches


@pytest.mark.parametrize("most_sweeps", [1, 2, 1000])
def test_a_quench_is_the_literal_one(most_sweeps):
    n = 20
    J, theta = symmetric(n, 4, density=0.3), np.random.default_rng(4).normal(size=n)
    path = sparse_path(theta, J, np.zeros(n), np.zeros((n, n)))
    x = random_spins(n, np.int8, seed=4)
    expected = x.copy()
    for lane in range(LANES):
        state = expected[:, lane]
        for _ in range(most_sweeps):
            before = state.copy()
            for i in range(n):
                state[i] *= -1 if state[i] * (theta[i] + J[i] @ state) < 0.0 else 1
            if np.array_equal(before, state):
                break
    descend_sparse(x, most_sweeps, path.field_change, path.data_change, path.indices, path.indptr, np.empty(LANES))
    assert np.array_equal(x, expected)
    is_over = ((theta[:, None] + J @ x) * x >= 0.0).all()
    assert is_over == (most_sweeps == 1000)


# ------------------------------------------------------------------------------------------------------- the sweeps

N = 6
THETA, BASE = np.array([0.3, -0.8, 0.0, 0.5, 0.1, -0.2]), np.array([-0.4, 0.6, 0.2, 0.0, 0.5, 0.3])
SPARSE, SPARSE_BASE = symmetric(N, 5, density=0.5), symmetric(N, 6, density=0.3, scale=0.5)
DENSE = symmetric(N, 7, scale=0.6)


def sparse_chains(chunk, beta, sweeps):
    x, words = random_spins(N, np.int8, seed=chunk), random_words(1000 + chunk)
    swept_sparse(sparse_path(THETA, SPARSE, BASE, SPARSE_BASE), x, words, [beta], sweeps)
    return x


def dense_chains(chunk, beta, sweeps):
    path = dense_path(THETA, DENSE, BASE)
    x, words = random_spins(N, np.float32, seed=chunk), random_words(2000 + chunk)
    swept_dense(path, x, fields(path, x), words, [beta], sweeps)
    return x


@pytest.mark.parametrize("beta", [0.0, 0.35, 1.0])
@pytest.mark.parametrize(
    ("chains", "J", "J_of_base"),
    [(sparse_chains, SPARSE, SPARSE_BASE), (dense_chains, DENSE, np.zeros((N, N)))],
    ids=["sparse", "dense"],
)
def test_states_end_in_the_law_of_their_point_of_the_path(chains, J, J_of_base, beta):
    every = all_states(N)
    base = energy(BASE, J_of_base, every.T)
    chunks = 300
    x = np.concatenate([chains(chunk, beta, 40).T for chunk in range(chunks)])
    assert_law(x, base + beta * (energy(THETA, J, every.T) - base))


def test_dense_and_sparse_sweeps_are_the_same_bit_by_bit():
    """Couplings in eighths, whose sums are exact in single precision: the same numbers make the same spins."""
    n = 2 * SPINS_TOLD_TOGETHER + 7
    J = np.round(8.0 * symmetric(n, 10, scale=0.2)) / 8.0
    theta = np.round(8.0 * np.random.default_rng(10).normal(size=n)) / 8.0
    sparse, dense = sparse_path(theta, J, theta, np.zeros((n, n))), dense_path(theta, J, theta)
    x = random_spins(n, np.int8, seed=10)
    y, words, same = x.astype(np.float32), random_words(11), random_words(11)
    h = fields(dense, y)
    for beta in (0.0, 0.5, 1.0, 0.25):
        one = swept_sparse(sparse, x, words, [beta], 5)
        other = swept_dense(dense, y, h, same, [beta], 5)
        assert np.array_equal(x, y)
        assert np.array_equal(one, other)
        assert np.array_equal(words, same)
        assert np.array_equal(h, fields(dense, y))


# ----------------------------------------------------------------------------------------- energies, fields, steps


def test_energies_are_those_of_what_the_path_adds():
    n = 12
    J, J_of_base = symmetric(n, 12, density=0.4), symmetric(n, 13, density=0.2)
    theta, base = np.random.default_rng(12).normal(size=(2, n))
    path = sparse_path(theta, J, base, J_of_base)
    betas = [0.0, 0.4, 0.7, 1.0]
    whole, x = random_spins(n, np.int8, seed=14), random_spins(n, np.int8, seed=14)
    words, same = random_words(15), random_words(15)
    energies = swept_sparse(path, whole, words, betas, 2)
    for k, beta in enumerate(betas):  # one at a time
        swept_sparse(path, x, same, [beta], 2)
        assert energies[k] == pytest.approx(energy(theta - base, J - J_of_base, x), abs=1e-12)
    assert np.array_equal(x, whole)


def test_dense_energies_and_fields_stay_those_of_the_states():
    n = 2 * SPINS_TOLD_TOGETHER + 7
    J = symmetric(n, 16, scale=1.0 / math.sqrt(n))
    theta, base = np.random.default_rng(16).normal(size=(2, n))
    path = dense_path(theta, J, base)
    x, words = random_spins(n, np.float32, seed=17), random_words(18)
    h = fields(path, x)
    betas = np.linspace(0.0, 1.0, 64)
    energies = swept_dense(path, x, h, words, betas, 5)
    assert np.abs(h - fields(path, x)).max() < 1e-4  # thousands of sums in single precision
    assert energies[-1] == pytest.approx(energy(theta - base, J, x), abs=5e-3)
    # The same one point after the other
    y, same = random_spins(n, np.float32, seed=17), random_words(18)
    g = fields(path, y)
    for k, beta in enumerate(betas):
        (one,) = swept_dense(path, y, g, same, [beta], 5)
        assert np.array_equal(one, energies[k])
        if k % 16 == 0:
            assert one == pytest.approx(energy(theta - base, J, y), abs=5e-3)


@pytest.mark.parametrize("n", [0, 1])
def test_no_spin_and_one_spin(n):
    theta, J = np.full(n, 0.7), np.zeros((n, n))
    x = random_spins(n, np.int8)
    energies = swept_sparse(sparse_path(theta, J, np.zeros(n), J), x, random_words(0), [0.0, 1.0])
    assert energies[-1] == pytest.approx(0.7 * x.sum(axis=0))
    y = random_spins(n, np.float32)
    path = dense_path(theta, J, np.zeros(n))
    energies = swept_dense(path, y, fields(path, y), random_words(0), [0.0, 1.0])
    assert energies[-1] == pytest.approx(0.7 * y.sum(axis=0), abs=1e-6)
    assert np.array_equal(x, y)
