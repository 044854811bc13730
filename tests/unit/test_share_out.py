"""Whose estimate counts where, and who gets the time: on rows made by hand, against formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spectralz.sampling.cells import HARDLY, LEAST_PART, LEAST_TIME, Row, shares_of


def row(families, weights):
    """Return what a pilot of one group says: families in each cell, and the weight that it finds there."""
    with np.errstate(divide="ignore"):
        log_z = np.log(np.array([weights], dtype=float))
    count = len(families)
    return Row(log_z, np.array(families, dtype=float), np.ones(count), np.zeros((count, count)), 0.0)


def shared(rows, costs=None, sizes=None):
    sizes = sizes or [100] * len(rows)
    return shares_of(rows, sizes, np.ones(len(rows)) if costs is None else np.array(costs, dtype=float))


def test_a_base_alone_gets_everything():
    coefficients, times = shared([row([40.0], [7.0])])
    assert coefficients.tolist() == [[1.0]]
    assert times.tolist() == [1.0]


@pytest.mark.parametrize("seed", range(30))
def test_columns_and_times_add_up_to_one(seed):
    rng = np.random.default_rng(seed)
    bases, cells = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    families = rng.exponential(20.0, (bases, cells)) * (rng.random((bases, cells)) < 0.6)
    families[:, 0] += 0.1  # all states of a pilot are somewhere
    weights = np.where(families > 0.0, rng.lognormal(0.0, 3.0, (bases, cells)), 0.0)
    rows = [row(*one) for one in zip(families, weights, strict=True)]
    sizes = rng.integers(100, 1000, bases).tolist()
    coefficients, times = shared(rows, rng.lognormal(0.0, 1.0, bases), sizes)
    assert coefficients.sum(axis=0) == pytest.approx(np.ones(cells))
    assert (coefficients >= 0.0).all()
    assert (times >= 0.0).all()
    assert times.sum() == pytest.approx(1.0)
    # Nobody counts where it has hardly been, unless nobody has.
    for k in range(cells):
        if (families[:, k] >= HARDLY).any():
            assert not coefficients[families[:, k] < HARDLY, k].any()
        else:
            assert coefficients[np.argmax(families[:, k]), k] == 1.0
    # Who counts nowhere gets no time, and others at least some.
    assert not times[~coefficients.any(axis=1)].any()
    found = ((coefficients > 0.0) & (weights > 0.0)).any(axis=1)
    assert (times[found] > LEAST_TIME / (1.0 + bases * LEAST_TIME) - 1e-12).all()


def test_a_base_that_was_never_in_a_cell_does_not_count_there():
    coefficients, _ = shared([row([30.0, 0.0], [1.0, 0.0]), row([20.0, 50.0], [1.0, 1.0])])
    assert coefficients[:, 1].tolist() == [0.0, 1.0]
    assert (coefficients[:, 0] > 0.0).all()


def test_a_base_with_hardly_a_family_does_not_count():
    for families, counts in ((1.9, False), (2.1, True)):
        coefficients, _ = shared([row([families], [1.0]), row([4.0], [1.0])])
        assert (coefficients[0, 0] > 0.0) == counts


@pytest.mark.parametrize(("part", "counts"), [(0.8, False), (1.3, True)])
def test_a_base_that_would_add_little_does_not_count(part, counts):
    # Both measure a second cell each, so that their times stay equal; sizes and costs are the same.
    few = part * LEAST_PART * 100.0
    rows = [row([100.0, 50.0, 0.0], [1e-9, 1.0, 0.0]), row([few, 0.0, 50.0], [1e-9, 0.0, 1.0])]
    coefficients, times = shared(rows, sizes=[200, 200])
    assert times == pytest.approx([0.5, 0.5], abs=1e-6)
    assert (coefficients[1, 0] > 0.0) == counts
    if counts:  # by families
        assert coefficients[1, 0] == pytest.approx(few / (100.0 + few), rel=1e-5)


def test_two_equal_bases_share_equally():
    rows = [row([30.0, 10.0], [2.0, 1.0])] * 2
    coefficients, times = shared(rows)
    assert coefficients == pytest.approx(np.full((2, 2), 0.5))
    assert times == pytest.approx([0.5, 0.5])


def test_families_of_larger_pilots_count_less():
    # The same number of families from twice as many states, in a cell that weighs next to nothing: half as many are
    # expected of the same states.
    rows = [row([40.0, 50.0, 0.0], [1e-9, 1.0, 0.0]), row([40.0, 0.0, 100.0], [1e-9, 0.0, 1.0])]
    coefficients, times = shared(rows, sizes=[100, 200])
    assert times == pytest.approx([0.5, 0.5], abs=1e-6)
    assert coefficients[:, 0] == pytest.approx([2.0 / 3.0, 1.0 / 3.0], rel=1e-5)


def test_dear_states_have_fewer_families_for_the_same_time():
    rows = [row([40.0, 50.0, 0.0], [1e-9, 1.0, 0.0]), row([40.0, 0.0, 50.0], [1e-9, 0.0, 1.0])]
    coefficients, times = shared(rows, [1.0, 4.0])
    assert times == pytest.approx([1.0 / 3.0, 2.0 / 3.0], abs=1e-6)  # as the root of the cost
    states = times / np.array([1.0, 4.0])
    assert coefficients[:, 0] == pytest.approx(states / states.sum(), rel=1e-5)


@pytest.mark.parametrize("costs", [(1.0, 1.0), (1.0, 9.0), (5.0, 0.5)])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, 3.0), (0.9, 0.3)])
@pytest.mark.parametrize("sizes", [(100, 100), (100, 400)])
def test_neyman_for_two_bases_with_a_cell_each(costs, weights, sizes):
    families = (50.0, 20.0)
    rows = [row([families[0], 0.0], [weights[0], 0.0]), row([0.0, families[1]], [0.0, weights[1]])]
    coefficients, times = shared(rows, costs, list(sizes))
    assert coefficients.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    # The variance of a share w of Z is w^2 / families, families are f / size of the states, states are time / cost.
    # The sum over cells of w^2 size cost / (f time) is least at times as the roots of w^2 size cost / f.
    root = [
        w / sum(weights) * math.sqrt(size * cost / f)
        for w, f, size, cost in zip(weights, families, sizes, costs, strict=True)
    ]
    assert times == pytest.approx(np.array(root) / sum(root))

    def variance(share):
        parts = zip(weights, families, sizes, costs, (share, 1.0 - share), strict=True)
        return sum((w / sum(weights)) ** 2 * size * cost / (f * time) for w, f, size, cost, time in parts)

    grid = np.linspace(0.01, 0.99, 981)
    assert times[0] == pytest.approx(grid[np.argmin([variance(share) for share in grid.tolist()])], abs=1.1e-3)


def test_a_base_that_counts_gets_some_time():
    rows = [row([50.0, 0.0], [1.0, 0.0]), row([0.0, 50.0], [0.0, 1e-8])]
    _, times = shared(rows)
    assert times == pytest.approx([1.0 / (1.0 + LEAST_TIME), LEAST_TIME / (1.0 + LEAST_TIME)], rel=1e-6)


def test_cells_are_weighed_by_who_counts_there():
    # The first base finds e^20 times too much in the second cell, in a single family: it does not count there.
    rows = [row([50.0, 1.0], [1.0, math.exp(20.0)]), row([0.0, 50.0], [0.0, 1.0])]
    coefficients, times = shared(rows)
    assert coefficients.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert times == pytest.approx([0.5, 0.5])
