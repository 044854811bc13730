"""Constraints as zeros in the tables of mini-buckets and of messages, compared with sums over all states."""

import itertools
import math

import numpy as np
import pytest

import spectralz as sz
from spectralz.constraints import at_most_one, clause, exactly_one, parity, table
from spectralz.kernels.mini_buckets.zeros import ZERO, Zeros

SEEDS = range(12)


def random_model(seed, n=9):
    """A model with terms of one to three spins and constraints of every kind."""
    rng = np.random.default_rng(seed)
    terms = {(i,): float(rng.normal()) for i in range(n)}
    for size in (2, 3):
        for _ in range(4):
            terms[tuple(sorted(rng.choice(n, size, replace=False).tolist()))] = float(rng.normal())
    wide = rng.choice(n, 6, replace=False).tolist()
    few = rng.choice(n, 3, replace=False).tolist()
    constraints = [
        clause({i: int(rng.choice([-1, 1])) for i in rng.choice(n, 3, replace=False).tolist()}) for _ in range(5)
    ]
    constraints += [
        clause({i: int(rng.choice([-1, 1])) for i in wide}),
        parity(rng.choice(n, 5, replace=False).tolist(), int(rng.choice([-1, 1]))),
        table(few, rng.random((2, 2, 2)) < 0.7),
        (exactly_one if seed % 2 else at_most_one)(rng.choice(n, 3, replace=False).tolist()),
    ]
    return sz.Polynomial(terms, n=n).with_constraints(*constraints)


def listed(model):
    """log Z, and the means of spins, by listing all states."""
    x = np.array(list(itertools.product([-1, 1], repeat=model.n)), dtype=np.int8)
    weight = np.asarray(model.log_weight(x))
    if weight.max() == -math.inf:
        return -math.inf, None
    p = np.exp(weight - weight.max())
    return float(weight.max() + np.log(p.sum())), p @ x / p.sum()


def run(model, method, **options):
    """Run a method without presolving, so that it sees the constraints as they are."""
    return sz.METHODS[method](**options).run(model)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("method", ["mbe", "wmbe"])
@pytest.mark.parametrize("partition", ["scope", "content"])
def test_bounds_are_on_their_sides_and_exact_in_wide_buckets(seed, method, partition):
    model = random_model(seed)
    truth, _ = listed(model)
    for ibound in (3, 4, 6, 20):
        upper = run(model, method, ibound=ibound, partition=partition)
        assert truth <= upper.upper
        lower = run(model, method, ibound=ibound, partition=partition, bound="lower")
        assert lower.lower <= truth
    assert upper.kind == lower.kind == sz.Kind.EXACT
    if truth > -math.inf:
        assert upper.upper - upper.lower < 1e-10


@pytest.mark.parametrize("seed", SEEDS)
def test_tightened_bounds_and_intervals_hold(seed):
    model = random_model(seed)
    truth, _ = listed(model)
    plain, tight = (run(model, "wmbe", ibound=4, max_iter=rounds) for rounds in (0, 30))
    assert truth <= tight.upper <= plain.upper
    if truth > -math.inf and tight.kind is not sz.Kind.EXACT:
        low, high, _ = run(model, "wmbe", ibound=4, level=0.9999, samples=2048).interval
        assert low <= truth <= high


@pytest.mark.parametrize("seed", SEEDS)
def test_means_of_whole_tables_are_those_of_all_states(seed):
    model = random_model(seed)
    truth, mean = listed(model)
    if truth == -math.inf:
        return
    found = sz.WeightedMiniBucket(ibound=20).run_marginals(model)
    np.testing.assert_allclose(found.mean, mean, atol=1e-12)
    assert len(found.mean) == model.n


def test_zeros_do_not_widen_the_rounding_of_the_rest():
    model = random_model(3)
    assert 0.0 < run(model, "mbe", ibound=20).details["rounding"] < 1e-12


def test_no_state_is_allowed():
    model = sz.Ising(np.zeros(3)).with_constraints(*(clause({0: a, 1: b}) for a in (-1, 1) for b in (-1, 1)))
    for method in ("mbe", "wmbe", "bp"):
        found = run(model, method)
        if found.kind is sz.Kind.EXACT:
            assert (found.log_z, found.lower, found.upper) == (-math.inf,) * 3
            assert "no state" in str(found.status)
        else:
            assert not found.trusted


def test_axes_of_a_table_are_sorted_by_rank():
    zeros = Zeros.of([(1, 4)], [np.array([[True, True], [False, True]])])  # spin 1 up and spin 4 down is a zero
    assert zeros.tables(np.array([0, 1, 2, 3, 4]))[0].tolist() == [0.0, ZERO, 0.0, 0.0]
    assert zeros.tables(np.array([4, 3, 2, 1, 0]))[0].tolist() == [0.0, 0.0, ZERO, 0.0]


def random_tree(seed, n=11):
    """Spins with fields and constraints whose graph is a forest."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n).tolist()
    met, constraints = [order.pop()], []
    while order:
        fresh = [order.pop() for _ in range(min(int(rng.integers(1, 4)), len(order)))]
        scope = [met[int(rng.integers(len(met)))], *fresh]
        met += fresh
        allowed = rng.random((2,) * len(scope)) < 0.6
        allowed.flat[int(rng.integers(allowed.size))] = True
        signs = {i: int(rng.choice([-1, 1])) for i in scope}
        constraints.append([parity(scope, signs[scope[0]]), clause(signs), table(scope, allowed)][int(rng.integers(3))])
    fields = rng.normal(size=n) * 10.0 ** rng.integers(-2, 3, size=n)
    return sz.Ising(fields).with_constraints(*constraints)


@pytest.mark.parametrize("seed", range(30))
def test_messages_are_exact_on_forests(seed):
    model = random_tree(seed)
    truth, mean = listed(model)
    found = run(model, "bp")
    assert found.kind is sz.Kind.EXACT
    assert found.lower <= truth <= found.upper
    if truth > -math.inf:
        np.testing.assert_allclose(sz.BeliefPropagation().run_marginals(model).mean, mean, atol=1e-9)


def test_a_bethe_bound_is_not_one_of_a_model_with_constraints():
    model = sz.Ising(np.zeros(6)).with_constraints(*(clause({i: 1, (i + 1) % 6: -1}) for i in range(6)))
    found = run(model, "bp")
    assert found.lower is None
    assert not found.trusted
