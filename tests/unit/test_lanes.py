"""64 states swept together: the kernels against literal versions, their law against enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from spectralz.kernels.coupling import Couplings, frozen
from spectralz.kernels.sampling.double_lanes import (
    CERTAIN,
    draw_spins_in_double,
    sweep_dense_in_double,
    sweep_sparse_in_double,
)
from spectralz.kernels.sampling.heat_bath import refresh
from spectralz.kernels.sampling.lanes import (
    LANES,
    SPINS_TOLD_TOGETHER,
    DensePath,
    draw_spins,
    sweep_dense,
    sweep_sparse,
    take,
)
from spectralz.kernels.sampling.term_sweeps import descend
from spectralz.kernels.terms import NO_TERMS, SpinTerms
from spectralz.sampling.engines.dense import dense_engine
from spectralz.sampling.engines.sparse import sparse_engine
from tests.reference.lanes import LEVEL, assert_law, energy, random_spins, random_words, sparse_path, symmetric, xoshiro
from tests.reference.states import all_states


def swept_sparse(path, x, words, betas, sweeps=1):
    """Sweep in place; return the energies."""
    return sweep_sparse(x, words, np.asarray(betas, float), sweeps, path)


def dense_path(theta, J, theta_of_base):
    return DensePath(*(frozen(np.asarray(array, np.float32)) for array in (theta_of_base, theta, J)))


def swept_dense(path, x, h, words, betas, sweeps=1):
    return sweep_dense(x, h, words, np.asarray(betas, float), sweeps, path)


def fields(path, x):
    """Return the fields of the model in the states, for dense sweeps to begin with."""
    return (path.field.astype(float)[:, None] + path.coupling.astype(float) @ x).astype(path.field.dtype)


def swept_sparse_in_double(path, x, words, betas, sweeps=1):
    """Sweep in place; return the energies."""
    return sweep_sparse_in_double(x, words, np.asarray(betas, float), sweeps, path)


def dense_path_in_double(theta, J, theta_of_base):
    return DensePath(*(frozen(np.asarray(array, float)) for array in (theta_of_base, theta, J)))


def fields_in_rows(path, x):
    """Return the same for sweeps in double precision, one state per row."""
    return np.ascontiguousarray(fields(path, x).T)


def swept_dense_in_double(path, x, h, words, betas, sweeps=1):
    return sweep_dense_in_double(x, h, words, np.asarray(betas, float), sweeps, path)


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


def literal_draw(log_odds, words):
    """Draw a spin with the given log-odds from 53 random bits, the likely side first."""
    high, low = next(words)[0] >> 5, next(words)[0] >> 6
    u = (high * 2**26 + low) / 2**53
    likely = 1 if log_odds >= 0.0 else -1
    return likely if u < 1.0 / (1.0 + math.exp(-abs(log_odds))) else -likely


def test_spins_in_double_precision_are_the_literal_ones():
    tiny = [sign * 10.0**-k for sign in (1, -1) for k in (1, 3, 9, 300)]
    field = np.array([0.0, *np.linspace(-20.0, 20.0, 81), *tiny, 1e5, -1e5, 1e200, -8e307])
    words, x = random_words(30), np.zeros((len(field), LANES), np.int8)
    generators = [xoshiro(start) for start in words.T.tolist()]
    draw_spins_in_double(x, words, field)
    expected = [[literal_draw(2.0 * each, generator) for each in field.tolist()] for generator in generators]
    assert np.array_equal(x, np.array(expected).T)
    # Two words for each spin, no more and no fewer
    assert [next(generator)[0] for generator in generators] == [next(xoshiro(words[:, k]))[0] for k in range(LANES)]


def test_independent_spins_in_double_precision_follow_their_fields():
    field = np.array([-3.0, -0.5, 0.0, 0.2, 1.0, 400.0])
    x = np.empty((400, 6, LANES), np.int8)
    for part, words in zip(x, random_words(31, 400), strict=True):
        draw_spins_in_double(part, words, field)
    assert_law(x.transpose(0, 2, 1).reshape(-1, 6), all_states(6) @ field)


# ------------------------------------------------------------------------------------------------------- the copies


def test_states_are_copied_to_their_places():
    rng = np.random.default_rng(3)
    x = rng.integers(-100, 100, size=(3, 5, LANES)).astype(np.int8)
    places = rng.integers(3 * LANES, size=3 * LANES)
    rows = x.transpose(0, 2, 1).reshape(3 * LANES, 5)
    for kind in (np.int8, np.float32):
        taken = np.empty_like(x, dtype=kind)
        for chunk in range(len(x)):
            take(x.astype(kind), places, taken, chunk)
        assert np.array_equal(taken.transpose(0, 2, 1).reshape(3 * LANES, 5), rows[places])


# ------------------------------------------------------------------------------------------------------ the quenches


@pytest.mark.parametrize("is_dense", [False, True])
@pytest.mark.parametrize("most_sweeps", [1, 2, 1000])
def test_a_quench_is_the_literal_one(most_sweeps, is_dense):
    n = 20
    J, theta = symmetric(n, 4, density=0.3), np.random.default_rng(4).normal(size=n)
    couplings = Couplings.of_dense(J) if is_dense else Couplings.of_csr(sp.csr_array(J))
    x = np.ascontiguousarray(random_spins(n, np.int8, seed=4).T)
    expected = x.copy()
    for state in expected:
        for _ in range(most_sweeps):
            before = state.copy()
            for i in range(n):
                state[i] *= -1 if state[i] * (theta[i] + J[i] @ state) < 0.0 else 1
            if np.array_equal(before, state):
                break
    h = np.empty(x.shape)
    refresh(x, h, theta, couplings)
    assert h == pytest.approx(theta + x @ J, abs=1e-12)
    descend(x, h, most_sweeps, couplings, SpinTerms.of(NO_TERMS, n))
    assert np.array_equal(x, expected)
    assert h == pytest.approx(theta + x @ J, abs=1e-12)
    is_over = ((theta + x @ J) * x >= 0.0).all()
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


def sparse_chains_in_double(chunk, beta, sweeps):
    x, words = random_spins(N, np.int8, seed=chunk), random_words(3000 + chunk)
    swept_sparse_in_double(sparse_path(THETA, SPARSE, BASE, SPARSE_BASE), x, words, [beta], sweeps)
    return x


def dense_chains_in_double(chunk, beta, sweeps):
    path = dense_path_in_double(THETA, DENSE, BASE)
    x, words = random_spins(N, np.int8, seed=chunk), random_words(4000 + chunk)
    swept_dense_in_double(path, x, fields_in_rows(path, x), words, [beta], sweeps)
    return x


@pytest.mark.parametrize("beta", [0.0, 0.35, 1.0])
@pytest.mark.parametrize(
    ("chains", "J", "J_of_base"),
    [
        (sparse_chains, SPARSE, SPARSE_BASE),
        (dense_chains, DENSE, np.zeros((N, N))),
        (sparse_chains_in_double, SPARSE, SPARSE_BASE),
        (dense_chains_in_double, DENSE, np.zeros((N, N))),
    ],
    ids=["sparse", "dense", "sparse in double", "dense in double"],
)
def test_states_end_in_the_law_of_their_point_of_the_path(chains, J, J_of_base, beta):
    every = all_states(N)
    base = energy(BASE, J_of_base, every.T)
    chunks = 300
    x = np.concatenate([chains(chunk, beta, 40).T for chunk in range(chunks)])
    assert_law(x, base + beta * (energy(THETA, J, every.T) - base))


def literal_sweeps(x, generators, betas, sweeps, theta, J, theta_of_base, J_of_base, is_dense):
    """Sweep spin by spin and state by state, each field a fresh sum; return the states at the end of each point.

    Spins whose log-odds are beyond CERTAIN take no random numbers: each of its own on a dense coupling, on a sparse
    graph only if they are so in all states.
    """
    x, found = x.copy(), []
    for beta in betas:
        field = (1.0 - beta) * theta_of_base + beta * theta
        coupling = (1.0 - beta) * J_of_base + beta * J
        for _, i in itertools.product(range(sweeps), range(len(x))):
            others = [math.fsum(coupling[i, j] * x[j, lane] for j in range(len(x)) if j != i) for lane in range(LANES)]
            log_odds = [2.0 * (field[i] + other) for other in others]
            is_sure = [abs(one) > CERTAIN for one in log_odds]
            is_sure = is_sure if is_dense else [all(is_sure)] * LANES
            for lane, generator in enumerate(generators):
                x[i, lane] = np.sign(log_odds[lane]) if is_sure[lane] else literal_draw(log_odds[lane], generator)
        found.append(x.copy())
    return found


@pytest.mark.parametrize("is_dense", [False, True])
@pytest.mark.parametrize("sweeps", [1, 3])
def test_sweeps_in_double_precision_are_the_literal_ones(is_dense, sweeps):
    n = 11
    J = symmetric(n, 32, scale=0.5) if is_dense else symmetric(n, 33, density=0.4)
    J_of_base = np.zeros((n, n)) if is_dense else symmetric(n, 34, density=0.2)
    theta, base = np.random.default_rng(35).normal(size=(2, n))
    base[0], theta[0], theta[1] = -25.0, 30.0, 300.0  # certain at some points, drawn at others
    x, words, betas = random_spins(n, np.int8, seed=36), random_words(37), [0.0, 0.3, 0.45, 0.8, 1.0]
    generators = [xoshiro(start) for start in words.T.tolist()]
    assert math.exp(-CERTAIN) < 2.0**-53  # below the last bit of any number drawn
    expected = literal_sweeps(x, generators, betas, sweeps, theta, J, base, J_of_base, is_dense)
    first = x.copy()
    if is_dense:
        path = dense_path_in_double(theta, J, base)
        h = fields_in_rows(path, x)
        energies = swept_dense_in_double(path, x, h, words, betas, sweeps)
        assert np.abs(h - fields_in_rows(path, x)).max() < 1e-12
    else:
        path = sparse_path(theta, J, base, J_of_base)
        energies = swept_sparse_in_double(path, x, words, betas, sweeps)
    assert np.array_equal(x, expected[-1])
    assert (x != first).mean() > 0.1
    for found, states in zip(energies, expected, strict=True):
        assert found == pytest.approx(energy(theta - base, J - J_of_base, states), abs=1e-12)
    # The same number of words
    assert [next(generator)[0] for generator in generators] == [next(xoshiro(words[:, k]))[0] for k in range(LANES)]


def test_dense_and_sparse_sweeps_in_double_precision_are_the_same_bit_by_bit():
    """Couplings in eighths, whose sums are exact: the same numbers make the same spins."""
    n = 2 * SPINS_TOLD_TOGETHER + 7
    J = np.round(8.0 * symmetric(n, 10, scale=0.2)) / 8.0
    theta = np.round(8.0 * np.random.default_rng(10).normal(size=n)) / 8.0
    sparse, dense = sparse_path(theta, J, theta, np.zeros((n, n))), dense_path_in_double(theta, J, theta)
    x = random_spins(n, np.int8, seed=10)
    y, words, same = x.copy(), random_words(11), random_words(11)
    h = fields_in_rows(dense, y)
    for beta in (0.0, 0.5, 1.0, 0.25):
        one = swept_sparse_in_double(sparse, x, words, [beta], 5)
        other = swept_dense_in_double(dense, y, h, same, [beta], 5)
        assert np.array_equal(x, y)
        assert np.array_equal(one, other)
        assert np.array_equal(words, same)
        assert np.array_equal(h, fields_in_rows(dense, y))


# ---------------------------------------------------------------------------------------------- where it is cold


def literal_turns(x, generators, betas, cold_from, theta, J, theta_of_base, J_of_base):
    """Sweep once at each point, spin by spin and state by state, with one word of 32 bits for each spin of a state.

    A spin turns with the probability of the heat bath, 1 / (1 + e^d) with d = 2 x_i h_i, where it is warm, and with
    min(1, e^-d) / (1 + e^-|d| / 4), nearly Metropolis' rule, from ``cold_from`` on.
    """
    x, found = x.copy(), []
    for beta in betas:
        field = (1.0 - beta) * theta_of_base + beta * theta
        coupling = (1.0 - beta) * J_of_base + beta * J
        for i, (lane, generator) in itertools.product(range(len(x)), enumerate(generators)):
            d = 2.0 * float(x[i, lane]) * (field[i] + float(coupling[i] @ x[:, lane]))
            u = (next(generator)[0] >> 8) / 2**24
            # Random numbers are divided as the likely side comes first; so turning is the smaller part if d > 0.
            w = 0.25 if beta >= cold_from else 1.0
            turns = math.exp(-max(d, 0.0)) / (1.0 + w * math.exp(-abs(d)))
            if u < turns:
                x[i, lane] *= -1
        found.append(x.copy())
    return found


@pytest.mark.parametrize("cold_from", [0.0, 0.5, math.inf])
@pytest.mark.parametrize("is_dense", [False, True])
def test_spins_turn_by_the_literal_rules(is_dense, cold_from):
    # Couplings in eighths at betas in fourths, so that fields are exact in single precision.
    n = SPINS_TOLD_TOGETHER + 5
    J = np.round(8.0 * symmetric(n, 40, density=0.3)) / 8.0
    J_of_base = np.zeros((n, n)) if is_dense else np.round(8.0 * symmetric(n, 41, density=0.1)) / 8.0
    theta, base = np.round(8.0 * np.random.default_rng(42).normal(size=(2, n))) / 8.0
    betas = [0.0, 0.25, 0.5, 0.75, 1.0]
    x, words = random_spins(n, np.int8, seed=43), random_words(44)
    expected = literal_turns(
        x, [xoshiro(start) for start in words.T.tolist()], betas, cold_from, theta, J, base, J_of_base
    )
    if is_dense:
        path, x = dense_path(theta, J, base)._replace(cold_from=cold_from), x.astype(np.float32)
        h = fields(path, x)
    else:
        path = sparse_path(theta, J, base, J_of_base)._replace(cold_from=cold_from)
    for beta, states in zip(betas, expected, strict=True):
        if is_dense:
            energies = swept_dense(path, x, h, words, [beta])
            assert np.array_equal(h, fields(path, x))
        else:
            energies = swept_sparse(path, x, words, [beta])
        assert np.array_equal(x, states)
        assert energies[0] == pytest.approx(energy(theta - base, J - J_of_base, states), abs=1e-4)


def turning(spins, log_weight, is_cold):
    """Return the transition matrix of a sweep: the product of those that turn one spin after the other."""
    every = all_states(spins)
    sweep = np.eye(len(every))
    for i in range(spins):
        turned = every.copy()
        turned[:, i] *= -1
        place = (turned > 0) @ (1 << np.arange(spins)[::-1])
        d = log_weight - log_weight[place]
        w = 0.25 if is_cold else 1.0
        turns = np.minimum(1.0, np.exp(-d)) / (1.0 + w * np.exp(-np.abs(d)))
        step = np.diag(1.0 - turns)
        step[np.arange(len(every)), place] += turns
        sweep = sweep @ step
    return sweep


@pytest.mark.parametrize("is_cold", [False, True])
@pytest.mark.parametrize("is_dense", [False, True])
def test_one_sweep_has_the_literal_transition_matrix(is_dense, is_cold):
    n, theta, J = 3, np.array([0.3, -0.5, 0.1]), np.array([[0.0, 0.8, -0.6], [0.8, 0.0, 0.4], [-0.6, 0.4, 0.0]])
    cold_from, beta = (0.0 if is_cold else math.inf), 0.9
    zero, every = np.zeros(n), all_states(n)
    log_weight = beta * energy(theta, J, every.T)
    matrix = turning(n, log_weight, is_cold)
    law = np.exp(log_weight) / np.exp(log_weight).sum()
    assert law @ matrix == pytest.approx(law)  # the oracle: the law of the model stays as it is
    for start, first in enumerate(every):
        counts = np.zeros(len(every))
        for words in random_words(50 + start, 40):
            x = np.repeat(first[:, None], LANES, axis=1)
            if is_dense:
                path, x = dense_path(theta, J, zero)._replace(cold_from=cold_from), x.astype(np.float32)
                swept_dense(path, x, fields(path, x), words, [beta])
            else:
                swept_sparse(sparse_path(theta, J, zero, 0.0 * J)._replace(cold_from=cold_from), x, words, [beta])
            counts += np.bincount(((x > 0).T @ (1 << np.arange(n)[::-1])), minlength=len(every))
        expected = matrix[start] * counts.sum()
        assert not counts[expected < 1e-9].any()
        likely = expected > 5.0
        seen, due = (
            np.append(counts[likely], counts[~likely].sum()),
            np.append(expected[likely], expected[~likely].sum()),
        )
        seen, due = seen[due > 1e-9], due[due > 1e-9]
        assert len(due) == 1 or stats.chisquare(seen, due * seen.sum() / due.sum()).pvalue > LEVEL / len(every)


@pytest.mark.parametrize("is_dense", [False, True])
@pytest.mark.parametrize("beta", [0.35, 1.0])
def test_cold_states_end_in_the_law_of_their_point_of_the_path(beta, is_dense):
    every, found = all_states(N), []
    for chunk in range(300):
        x, words = random_spins(N, np.int8, seed=chunk), random_words(5000 + chunk)
        if is_dense:
            path, x = dense_path(THETA, DENSE, BASE)._replace(cold_from=0.0), x.astype(np.float32)
            swept_dense(path, x, fields(path, x), words, [beta], 60)
        else:
            path = sparse_path(THETA, SPARSE, BASE, SPARSE_BASE)._replace(cold_from=0.0)
            swept_sparse(path, x, words, [beta], 60)
        found.append(x.T)
    J, J_of_base = (DENSE, np.zeros((N, N))) if is_dense else (SPARSE, SPARSE_BASE)
    base = energy(BASE, J_of_base, every.T)
    assert_law(np.concatenate(found), base + beta * (energy(THETA, J, every.T) - base))


@pytest.mark.parametrize("is_dense", [False, True])
def test_engines_are_cold_where_couplings_hold_spins(is_dense):
    J = symmetric(12, 60, density=0.6)
    couplings = Couplings.of_dense(J) if is_dense else Couplings.of_csr(sp.csr_array(J))
    engine = (dense_engine if is_dense else sparse_engine)(np.zeros(12), couplings, np.zeros(12))
    # The root of the mean over spins of sum_j J_ij^2 times beta is 0.6 there.
    assert engine.path.cold_from == pytest.approx(0.6 / math.sqrt(sum(map(float, (J**2).ravel())) / 12.0))


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


def test_dense_energies_and_fields_in_double_precision_stay_those_of_the_states():
    n = 71
    J = symmetric(n, 16, scale=1.0 / math.sqrt(n))
    theta, base = np.random.default_rng(16).normal(size=(2, n))
    path = dense_path_in_double(theta, J, base)
    x, words = random_spins(n, np.int8, seed=17), random_words(18)
    h = fields_in_rows(path, x)
    betas = np.linspace(0.0, 1.0, 64)
    energies = swept_dense_in_double(path, x, h, words, betas, 5)
    assert np.abs(h - fields_in_rows(path, x)).max() < 1e-12  # thousands of sums in double precision
    assert energies[-1] == pytest.approx(energy(theta - base, J, x), abs=1e-11)
    # The same one point after the other, with fields summed up anew
    y, same = random_spins(n, np.int8, seed=17), random_words(18)
    for k, beta in enumerate(betas):
        (one,) = swept_dense_in_double(path, y, fields_in_rows(path, y), same, [beta], 5)
        assert one == pytest.approx(energies[k], abs=1e-11)
        assert one == pytest.approx(energy(theta - base, J, y), abs=1e-11)
    assert np.array_equal(x, y)


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
    z = random_spins(n, np.int8)
    energies = swept_sparse_in_double(sparse_path(theta, J, np.zeros(n), J), z, random_words(0), [0.0, 1.0])
    assert energies[-1] == pytest.approx(0.7 * z.sum(axis=0))
    u = random_spins(n, np.int8)
    path = dense_path_in_double(theta, J, np.zeros(n))
    energies = swept_dense_in_double(path, u, fields_in_rows(path, u), random_words(0), [0.0, 1.0])
    assert energies[-1] == pytest.approx(0.7 * u.sum(axis=0))
    assert np.array_equal(z, u)
