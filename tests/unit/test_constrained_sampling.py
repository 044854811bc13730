"""Populations of models with constraints: unbiased, and trusted only where enough of them satisfy everything."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import spectralz as sz
from spectralz.constraints import clause, exactly_one, parity
from spectralz.errors import NotConvergedError
from spectralz.sampling.cells import evidence_of
from spectralz.sampling.penalties import breaks_hard_terms
from spectralz.sampling.population import Population
from spectralz.trust.populations import judge

PARTS = dict(population=64, runs=32)


def random_model(seed, n=12, clauses=24):
    """Random clauses of three spins, a parity, and fields."""
    rng = np.random.default_rng(seed)
    chosen = [rng.choice(n, 3, replace=False).tolist() for _ in range(clauses)]
    constraints = [clause({i: int(rng.choice([-1, 1])) for i in scope}) for scope in chosen]
    constraints.append(parity(rng.choice(n, 5, replace=False).tolist(), 1))
    return sz.Ising(rng.normal(size=n)).with_constraints(*constraints)


def listed(model):
    """log Z, and the means of spins, by listing all states."""
    x = np.array(list(itertools.product([-1, 1], repeat=model.n)), dtype=np.int8)
    weight = np.asarray(model.log_weight(x))
    p = np.exp(weight - weight.max())
    return float(weight.max() + np.log(p.sum())), p @ x / p.sum()


def test_annealing_is_within_its_errors_over_many_models_and_seeds():
    scores, trusted = [], 0
    for seed in range(24):
        model = random_model(seed)
        truth, _ = listed(model)
        if truth == -math.inf:
            continue
        found = sz.Annealing(seed=seed, **PARTS).run(model)
        if found.trusted:
            trusted += 1
            scores.append((found.log_z - truth) / found.std_error)
    assert trusted >= 18
    assert max(map(abs, scores)) < 5.0
    # A factor that is lost or counted twice would shift all of them.
    assert abs(np.mean(scores)) < 1.0
    assert np.mean(np.square(scores)) < 2.5


@pytest.mark.parametrize("seed", range(3))
def test_means_and_samples_are_those_of_allowed_states(seed):
    model = random_model(seed)
    _, mean = listed(model)
    method = sz.Annealing(population=256, seed=seed)
    found = method.run_marginals(model)
    assert (np.abs(found.mean - mean) < 5.0 * found.std_error).all()
    assert model.constraints.hold(method.run_sample(model, 200, seed)).all()


@pytest.mark.parametrize("seed", range(4))
def test_the_sum_over_states_is_a_lower_bound(seed):
    model = random_model(seed)
    truth, _ = listed(model)
    found = sz.States(population=500, quenches=50, seed=seed).run(model)
    assert found.lower <= truth
    assert not found.trusted or abs(found.log_z - truth) < 5.0 * found.std_error


def test_without_any_allowed_state_nothing_is_trusted():
    both = [clause({i: a, j: b}) for i, j in ((0, 1), (1, 2)) for a in (-1, 1) for b in (-1, 1)]
    model = sz.Ising(np.zeros(14)).with_constraints(*both)
    for method in (sz.Annealing(**PARTS), sz.States(population=100, quenches=10)):
        found = method.run(model)
        assert found.log_z == -math.inf
        assert not found.trusted
        assert "no state was found" in str(found.status)
    with pytest.raises(NotConvergedError, match="no state was found"):
        sz.Annealing(**PARTS).run_sample(model, 3, 0)
    unsolved = random_model(seed=0, n=30, clauses=200)  # too many, but presolve does not see it
    with pytest.raises(NotConvergedError, match=r"log Z is not known: .*no state was found"):
        sz.log_prob(unsolved, np.ones((2, 30)), sz.Annealing(**PARTS))


def population(log_z, x, share):
    """A population of groups with one state of each family."""
    return Population(np.array(log_z), np.array(x, np.int8), np.array(share), np.arange(len(x)))


def test_broken_states_weigh_nothing():
    model = sz.Ising(np.zeros(2)).with_constraints(exactly_one([0, 1]))
    whole = population([1.0, 2.0], [[1, 1], [1, -1], [1, 1], [-1, -1]], [[0.25, 0.75], [0.5, 0.5]])
    kept = whole.under(model.constraints)
    assert kept.log_z.tolist() == [1.0 + math.log(0.75), -math.inf]
    assert kept.share.tolist() == [[0.0, 1.0], [0.0, 0.0]]
    assert kept.weights().tolist() == [0.0, 1.0, 0.0, 0.0]
    nothing = whole.selected(np.array([1])).under(model.constraints)
    assert nothing.mean_log_z == -math.inf
    assert not nothing.weights().any()


def evidence(**changes):
    """Evidence that is trusted, with some changes."""
    from spectralz.sampling.cells import Row

    row = Row(np.zeros((32, 1)), np.array([1000.0]), np.array([0.01]), np.array([[1e-3]]), 0.0)
    return replace(evidence_of([row], np.ones((1, 1)), (0,)), **changes)


def test_few_satisfying_states_are_not_trusted():
    assert judge(evidence()).trusted
    assert judge(evidence(satisfying=0.5)).trusted
    few = judge(evidence(satisfying=0.01))
    assert not few.trusted
    assert "satisfy all constraints" in few.doubt
    none = judge(evidence(log_z=(np.full((32, 1), -np.inf),), families=np.zeros((1, 1))))
    assert (none.log_z, none.trusted) == (-math.inf, False)


def test_weak_populations_of_a_model_with_constraints_make_sums_over_states_doubtful():
    few = {"families": np.array([[5.0]])}
    assert not judge(evidence(**few)).doubt
    assert "independent families" in judge(evidence(**few, satisfying=0.5)).doubt


def squares(size, penalty):
    """Independent sets of a grid, by penalties."""
    at = np.arange(size * size).reshape(size, size)
    pairs = np.concatenate(
        [np.stack([a.ravel(), b.ravel()], 1) for a, b in ((at[:, 1:], at[:, :-1]), (at[1:], at[:-1]))]
    )
    return sz.from_qubo({(int(i), int(j)): penalty for i, j in pairs})


def test_terms_of_fifty_nats_count_as_constraints():
    model = squares(4, 60.0)
    empty, full = np.full(16, -1, dtype=np.int8), np.ones(16, dtype=np.int8)
    assert not breaks_hard_terms(model, empty)
    assert breaks_hard_terms(model, full)
    assert not breaks_hard_terms(squares(4, 40.0), full)
    glass = sz.generators.complete(n=20, strength=1.0, seed=0)
    assert not breaks_hard_terms(glass, np.ones(20, dtype=np.int8))


def test_populations_that_break_a_hard_term_are_not_trusted():
    """A frustrated ring whose couplings outweigh everything: all states break one of them."""
    edges = [(i, (i + 1) % 9) for i in range(9)]
    model = sz.Ising.from_edges(9, edges, [-80.0] * 9)
    found = sz.Annealing(**PARTS).run(model)
    assert not found.trusted
    assert "50 nats" in str(found.status)
    open_chain = sz.Ising.from_edges(9, edges[:-1], [-80.0] * 8)
    assert sz.Annealing(**PARTS).run(open_chain).trusted
