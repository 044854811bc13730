"""Independent sets of grids by contractions, whose tables have zeros, compared with transfer matrices."""

import itertools
import math

import numpy as np
import pytest

import spectralz as sz
from spectralz.constraints import at_most_one, clause, equal, forbid, table
from spectralz.parts.compressed.contraction import Compressed
from spectralz.parts.compressed.frontier import plan


def squares(rows, columns, *, fugacity=1.0, order=None):
    """Independent sets of a grid: no two neighbors are up."""
    at = np.arange(rows * columns).reshape(rows, columns)
    at = at if order is None else np.asarray(order)[at]
    pairs = [
        (a, b)
        for one, two in ((at[:, 1:], at[:, :-1]), (at[1:], at[:-1]))
        for a, b in zip(one.flat, two.flat, strict=True)
    ]
    field = np.full(rows * columns, 0.5 * math.log(fugacity))
    model = sz.Ising(field, offset=float(field.sum()))
    return model.with_constraints(*(forbid({int(a): 1, int(b): 1}) for a, b in pairs))


def by_transfer_matrix(rows, columns, fugacity=1.0):
    """log of the sum over independent sets of fugacity^size, row by row, with one product per site."""
    width = columns
    states = [s for s in range(1 << width) if not s & s << 1]
    count = np.array([bin(s).count("1") for s in states])
    place = {s: k for k, s in enumerate(states)}
    # Subsets of the complement: sum over all subsets t of a set, by one pass per site.
    allowed = np.zeros(1 << width)
    weight, log = fugacity ** count.astype(float), 0.0
    for _ in range(rows - 1):
        allowed[:] = 0.0
        allowed[states] = weight
        for bit in range(width):
            half = allowed.reshape(-1, 2, 1 << bit)
            half[:, 1] += half[:, 0]
        whole = (1 << width) - 1
        weight = np.array([allowed[whole & ~s] for s in states]) * fugacity**count
        log += math.log(weight.max())
        weight /= weight.max()
    assert len(place) == len(states)
    return log + math.log(weight.sum())


def test_the_transfer_matrix_counts_independent_sets():
    for size, count in ((1, 2), (2, 7), (3, 63), (4, 1234), (5, 55447), (6, 5598861)):
        assert by_transfer_matrix(size, size) == pytest.approx(math.log(count), abs=1e-12)


@pytest.mark.parametrize(("rows", "columns"), [(6, 6), (12, 40)])
def test_hard_squares_lose_no_digits(rows, columns):
    truth = by_transfer_matrix(columns, rows)
    found = sz.log_z(squares(rows, columns), "mps")
    assert abs(found.log_z - truth) < 1e-8
    assert found.trusted
    heavy = sz.log_z(squares(rows, columns, fugacity=3.0), "mps")
    assert abs(heavy.log_z - by_transfer_matrix(columns, rows, 3.0)) < 1e-8


@pytest.mark.slow
def test_hard_squares_of_a_large_grid():
    assert abs(sz.log_z(squares(24, 24), "mps").log_z - by_transfer_matrix(24, 24)) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("size", [30, 40])
def test_hard_squares_agree_with_another_order_and_twice_the_bond(size):
    found = sz.log_z(squares(size, size), "mps")
    order = [int(i) for i in np.arange(size * size).reshape(size, size).T.ravel()]
    other = sz.log_z(squares(size, size), "mps", order=order, bond=64)
    assert abs(found.log_z - other.log_z) < 1e-8


@pytest.mark.parametrize("seed", range(12))
def test_pairs_of_any_kind_are_those_of_all_states(seed):
    """Weights and zeros of pairs in both directions, on random sparse graphs."""
    rng = np.random.default_rng(seed)
    n = 9
    pairs = [tuple(sorted(rng.choice(n, 2, replace=False).tolist())) for _ in range(14)]
    edges = sorted(set(pairs[:8]))
    model = sz.Ising.from_edges(n, edges, rng.normal(size=len(edges)), rng.normal(size=n))
    made = [
        lambda i, j: clause({i: 1, j: -1}),
        lambda i, j: clause({i: -1, j: 1}),
        lambda i, j: equal(i, j),
        lambda i, j: table([j, i], [[True, False], [True, True]]),
    ]
    model = model.with_constraints(
        *(made[int(rng.integers(4))](i, j) for i, j in set(pairs[6:])), at_most_one([0, 3, 5])
    )
    x = np.array(list(itertools.product([-1, 1], repeat=n)), dtype=np.int8)
    truth = float(np.logaddexp.reduce(model.log_weight(x)))
    found = sz.MatrixProduct(bond=64).run(model)
    assert abs(found.log_z - truth) < 1e-9


def test_larger_constraints_and_means_are_refused():
    with pytest.raises(sz.errors.OptionError, match="constraints of two spins only"):
        sz.MatrixProduct().run(sz.Ising(np.zeros(3)).with_constraints(clause({0: 1, 1: 1, 2: 1})))
    with pytest.raises(sz.errors.OptionError, match="gives log Z alone"):
        sz.MatrixProduct().run_marginals(squares(3, 3))


def penalized_squares(size, penalty):
    """Independent sets of a grid, by penalties."""
    at = np.arange(size * size).reshape(size, size)
    pairs = [
        (a, b)
        for one, two in ((at[:, 1:], at[:, :-1]), (at[1:], at[:-1]))
        for a, b in zip(one.flat, two.flat, strict=True)
    ]
    return sz.from_qubo({(int(a), int(b)): penalty for a, b in pairs})


def with_soft_penalties(size, penalty):
    """log of the sum over all sets of exp(-penalty) per pair of neighbors, row by row."""
    inside = np.array([bin(s & s >> 1).count("1") for s in range(1 << size)])
    row = np.exp(-penalty * inside)
    weight, log = row.copy(), 0.0
    for _ in range(size - 1):
        for bit in range(size):
            half = weight.reshape(-1, 2, 1 << bit)
            half[:, 0], half[:, 1] = half[:, 0] + half[:, 1], half[:, 0] + math.exp(-penalty) * half[:, 1]
        weight *= row
        log += math.log(weight.max())
        weight /= weight.max()
    return log + math.log(weight.sum())


@pytest.mark.parametrize("order", ["best", "natural"])
@pytest.mark.parametrize("penalty", [5.0, 10.0, 25.0, 300.0])
def test_penalties_lose_no_digits(penalty, order):
    """Fields that cancel couplings come with them; otherwise whole sets of states are lost by rounding."""
    found = sz.log_z(penalized_squares(12, penalty), "mps", order=order)
    truth = with_soft_penalties(12, penalty)
    assert found.trusted
    assert abs(found.log_z - truth) < 1e-9
    assert abs(found.log_z - truth) <= found.std_error


def test_means_of_penalties_are_not_trusted_where_digits_are_lost():
    model, truth = penalized_squares(12, 25.0), with_soft_penalties(12, 25.0)
    found = sz.marginals(model, "mps", order="natural").estimate
    assert not found.trusted or abs(found.log_z - truth) < 5.0 * found.std_error


@pytest.mark.parametrize("seed", range(3))
def test_tilted_contractions_are_the_same_sum(seed):
    model = sz.generators.grid(side=5, strength=2.0, seed=seed)
    model += sz.Ising(np.random.default_rng(seed).normal(scale=3.0, size=25))
    for order in ("natural", "best"):
        chain = Compressed(model, plan(model, order), 32, 1e-15, is_tilted=True)
        assert chain.contract().log_z + model.constant == pytest.approx(sz.log_z(model, "exact").log_z, abs=1e-11)
