"""Kernels for terms of three and more spins: sweeps against literal ones, their law, energies, quenches, cooling."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import spectralz as sz
from spectralz.kernels.coupling import frozen
from spectralz.kernels.sampling.heat_bath import refresh
from spectralz.kernels.sampling.lanes import LANES, SparsePath, sweep_sparse
from spectralz.kernels.sampling.term_sweeps import (
    TermPath,
    add_fields,
    cool,
    descend,
    fill_signs,
    sweep_terms,
    sweep_terms_in_double,
)
from spectralz.kernels.terms import NO_TERMS, SpinTerms
from spectralz.sampling.engines.sparse import sparse_engine
from tests.reference.lanes import assert_law, random_spins, random_words, sparse_path, symmetric, xoshiro
from tests.reference.states import all_states

BASE = np.array([-0.4, 0.6, 0.2, 0.0, 0.5, 0.3])


def random_polynomial(n, seed, terms=12, scale=0.7, sizes=(1, 2, 3, 3, 4, 5)):
    """Return a model with terms of these sizes, at least one of them of three spins."""
    rng = np.random.default_rng(seed)
    scopes = [tuple(rng.choice(n, size, replace=False).tolist()) for size in rng.choice(sizes, terms)]
    return sz.Polynomial(dict(zip([*scopes, (2, 0, 1)], scale * rng.normal(size=terms + 1), strict=True)), n=n)


def path_of(model, base):
    """Return the path to a model from fields, built from the model's dictionary of terms."""
    rows = [[] for _ in range(model.n)]
    for scope, weight in model.terms.items():
        if len(scope) == 2:
            for i, j in (scope, scope[::-1]):
                rows[i].append((j, weight))
    field = np.array([model.terms.get((i,), 0.0) for i in range(model.n)])
    entries = [entry for row in rows for entry in sorted(row)]
    data = np.array([weight for _, weight in entries])
    pairs = SparsePath(
        frozen(base),
        frozen(field - base),
        frozen(np.zeros(len(data))),
        frozen(data),
        frozen(np.array([j for j, _ in entries], dtype=np.int32)),
        frozen(np.cumsum([0, *map(len, rows)])),
    )
    return TermPath(pairs, SpinTerms.of(model.higher, model.n))


def signs_of(x, path):
    signs = np.empty((len(path.terms.weight), LANES), np.int8)
    fill_signs(x, signs, path.terms)
    return signs


def log_weight(model, base, beta, x):
    """Return the log-weight of one state at a point of the path, term by term."""
    of_base = math.fsum(base[i] * x[i] for i in range(len(x)))
    of_model = math.fsum(c * math.prod(int(x[i]) for i in scope) for scope, c in model.terms.items())
    return (1.0 - beta) * of_base + beta * of_model


def log_odds(model, base, beta, x, i):
    up, down = x.copy(), x.copy()
    up[i], down[i] = 1, -1
    return log_weight(model, base, beta, up) - log_weight(model, base, beta, down)


def uniform_of_24_bits(generator):
    return (next(generator)[0] >> 8) / 2**24


def uniform_of_53_bits(generator):
    high, low = next(generator)[0] >> 5, next(generator)[0] >> 6
    return (high * 2**26 + low) / 2**53


def literal_sweeps(model, base, x, generators, betas, sweeps, uniform):
    """Sweep spin by spin and state by state, each log-odds from two log-weights; return the states at each point."""
    x, found = x.copy(), []
    for beta in betas:
        for _, i in itertools.product(range(sweeps), range(model.n)):
            for lane, generator in enumerate(generators):
                odds = log_odds(model, base, beta, x[:, lane], i)
                likely = 1 if odds >= 0.0 else -1
                x[i, lane] = likely if uniform(generator) < 1.0 / (1.0 + math.exp(-abs(odds))) else -likely
        found.append(x.copy())
    return found


# ------------------------------------------------------------------------------------------------------- the sweeps


@pytest.mark.parametrize(
    ("sweep", "uniform"),
    [(sweep_terms, uniform_of_24_bits), (sweep_terms_in_double, uniform_of_53_bits)],
    ids=["single", "double"],
)
@pytest.mark.parametrize("sweeps", [1, 3])
def test_sweeps_are_the_literal_ones(sweep, uniform, sweeps):
    model, base = random_polynomial(6, 1), BASE
    path, betas = path_of(model, base), [0.0, 0.3, 0.8, 1.0]
    x, words = random_spins(6, np.int8, seed=2), random_words(3)
    generators = [xoshiro(start) for start in words.T.tolist()]
    expected = literal_sweeps(model, base, x, generators, betas, sweeps, uniform)
    signs, first = signs_of(x, path), x.copy()
    energies = sweep(x, signs, words, np.array(betas), sweeps, path)
    assert np.array_equal(x, expected[-1])
    assert np.array_equal(signs, signs_of(x, path))  # kept up to date
    assert (x != first).mean() > 0.1
    for found, states in zip(energies, expected, strict=True):
        grown = [log_weight(model, base, 1.0, y) - log_weight(model, base, 0.0, y) for y in states.T]
        assert found == pytest.approx(grown, abs=1e-12)
    assert [next(generator)[0] for generator in generators] == [next(xoshiro(words[:, k]))[0] for k in range(LANES)]


def test_signs_are_products_of_spins():
    path, x = path_of(random_polynomial(9, 4, terms=20), np.zeros(9)), random_spins(9, np.int8, seed=5)
    terms = path.terms
    scopes = [terms.spin[a:b] for a, b in itertools.pairwise(terms.start)]
    assert np.array_equal(signs_of(x, path), np.array([np.prod(x[scope], axis=0) for scope in scopes]))


def test_without_terms_a_sweep_has_the_law_of_that_of_pairs():
    n, betas = 30, np.array([0.3, 1.0])
    theta, base = np.random.default_rng(7).normal(size=(2, n))
    pairs = sparse_path(theta, symmetric(n, 8, density=0.2), base, np.zeros((n, n)))
    path, start = TermPath(pairs, SpinTerms.of(NO_TERMS, n)), random_spins(n, np.int8)
    energies: dict[str, list] = {"terms": [], "pairs": []}
    for seed in range(100):
        x, y = start.copy(), start.copy()
        energies["terms"].append(sweep_terms(x, signs_of(x, path), random_words(seed), betas, 2, path))
        energies["pairs"].append(sweep_sparse(y, random_words(1000 + seed), betas, 2, pairs))
    one, other = (np.concatenate(found, axis=1) for found in energies.values())
    for moment in (1, 2):
        apart = (one**moment).mean(axis=1) - (other**moment).mean(axis=1)
        error = np.sqrt(((one**moment).var(axis=1) + (other**moment).var(axis=1)) / one.shape[1])
        assert (np.abs(apart) < 4.0 * error).all()


def term_engine(model, base, **options):
    """Return the engine of a model with terms."""
    return sparse_engine(model.field, model.storage.for_kernels(), base, terms=model.terms_by_spin, **options)


@pytest.mark.parametrize("in_double", [False, True])
@pytest.mark.parametrize("beta", [0.0, 0.35, 1.0])
def test_states_end_in_the_law_of_their_point_of_the_path(beta, in_double):
    model = random_polynomial(6, 9, scale=0.5)
    chains = term_engine(model, BASE, in_double=in_double).start(300 * LANES, np.random.default_rng(10))
    at = np.full(40, beta)
    chains.sweep(at, at, at, 1)
    assert_law(chains.states(), np.array([log_weight(model, BASE, beta, x) for x in all_states(6)]))


def test_a_sweep_leaves_the_law_as_it_is():
    """Detailed balance: draw from the law itself, flip every spin once, and the law is still the same."""
    model = random_polynomial(5, 11, scale=1.0, sizes=(3, 4, 5))
    every = all_states(5)
    weights = np.exp([log_weight(model, np.zeros(5), 1.0, x) for x in every])
    rng = np.random.default_rng(12)
    x = every[rng.choice(len(every), size=600 * LANES, p=weights / weights.sum())]
    chains = term_engine(model, np.zeros(5)).start_from(x, rng)
    one = np.ones(1)
    for _ in range(3):
        chains.sweep(one, one, one, 1)
        assert_law(chains.states(), np.log(weights))


# ------------------------------------------------------------------------------------------------------- the chains


def growth(model, x):
    return np.array([log_weight(model, np.zeros(model.n), 1.0, y) for y in x])


def test_signs_follow_states_that_are_taken_and_given():
    model, rng = random_polynomial(8, 13), np.random.default_rng(14)
    engine = term_engine(model, np.zeros(8))
    chains = engine.start(3 * LANES - 5, rng)
    zero, one = np.zeros(1), np.ones(1)

    def energies():
        back, _ = chains.sweep(zero, one, one, 1)
        return -back[0]

    assert energies() == pytest.approx(growth(model, chains.states()))
    chains.take(rng.integers(chains.size, size=chains.size))
    assert energies() == pytest.approx(growth(model, chains.states()))
    chains = engine.start_from(chains.states()[::-1], rng)
    assert energies() == pytest.approx(growth(model, chains.states()))


def test_memory_and_costs_count_terms():
    few, many = (term_engine(random_polynomial(8, 15, terms=terms), np.zeros(8)) for terms in (5, 50))
    assert many.operations > few.operations
    assert many.bytes_per_state > few.bytes_per_state


# ----------------------------------------------------------------------------------------------- fields and quenches


def fields_of(model, x):
    """Return half of the log-odds of every spin of states, one per row."""
    zero = np.zeros(model.n)
    return np.array([[0.5 * log_odds(model, zero, 1.0, y, i) for i in range(model.n)] for y in x])


def kernels_fields(model, x):
    h = np.empty(x.shape)
    refresh(x, h, model.field, model.storage.for_kernels())
    add_fields(x, h, SpinTerms.of(model.higher, model.n))
    return h


@pytest.mark.parametrize("seed", range(4))
def test_a_quench_is_the_literal_one_and_ends_in_a_local_maximum(seed):
    model = random_polynomial(9, 20 + seed, terms=25)
    x = np.ascontiguousarray(random_spins(9, np.int8, seed=seed).T)
    h = kernels_fields(model, x)
    assert h == pytest.approx(fields_of(model, x), abs=1e-12)
    expected = x[:8].copy()
    for state in expected:
        while True:
            before = state.copy()
            for i in range(model.n):
                state[i] *= -1 if state[i] * 0.5 * log_odds(model, np.zeros(9), 1.0, state, i) < 0.0 else 1
            if np.array_equal(before, state):
                break
    descend(x, h, 1000, model.storage.for_kernels(), SpinTerms.of(model.higher, 9))
    assert np.array_equal(x[:8], expected)
    assert h == pytest.approx(fields_of(model, x), abs=1e-12)
    assert (x * fields_of(model, x) >= 0.0).all()


def test_a_cooled_state_keeps_its_fields_and_ends_low():
    model = random_polynomial(12, 30, terms=40)
    x = np.ascontiguousarray(random_spins(12, np.int8).T)[0]
    h, start = kernels_fields(model, x[None])[0], x.copy()
    betas, seed = np.geomspace(0.1, 30.0, 200), np.array([12345], dtype=np.uint32)
    cool(x, h, model.storage.for_kernels(), SpinTerms.of(model.higher, 12), betas, seed)
    assert h == pytest.approx(fields_of(model, x[None])[0], abs=1e-11)
    assert (x * h >= 0.0).all()
    assert model.log_weight(x) > model.log_weight(start)


def test_cooling_at_one_temperature_draws_from_its_law():
    model = random_polynomial(4, 31, terms=6, scale=0.6, sizes=(1, 2, 3, 4))
    terms, couplings, betas = SpinTerms.of(model.higher, 4), model.storage.for_kernels(), np.full(30, 0.7)
    x = np.random.default_rng(32).choice(np.array([-1, 1], dtype=np.int8), size=(4000, 4))
    for k, (state, h) in enumerate(zip(x, kernels_fields(model, x), strict=True)):
        cool(state, h, couplings, terms, betas, np.array([7919 * k + 1], dtype=np.uint32))
    assert_law(x, 0.7 * np.array([log_weight(model, np.zeros(4), 1.0, y) for y in all_states(4)]))
