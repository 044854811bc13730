"""Cells against literal loops: which cell a state is in, and what a population says of each cell."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spectralz.sampling import cells as module
from spectralz.sampling.cells import Cells, row_of, stays
from spectralz.sampling.population import Population

SPINS = 9


def cells_of(centers, images, cell=None):
    """Return cells; every center has one of its own unless they are given."""
    centers = np.asarray(centers, dtype=float)
    return Cells(centers, np.asarray(images, np.int8), np.arange(len(centers)) if cell is None else np.array(cell))


def some_cells(count=3, images=4, seed=0):
    rng = np.random.default_rng(seed)
    turned = rng.choice(np.array([-1, 1], dtype=np.int8), (images, SPINS))
    turned[0] = 1
    return cells_of(rng.uniform(-1.0, 1.0, (count, SPINS)), turned)


def some_population(groups=4, each=25, seed=1, n=SPINS):
    rng = np.random.default_rng(seed)
    share = rng.random((groups, each))
    family = np.concatenate([k * each + np.sort(rng.integers(each, size=each)) for k in range(groups)])
    x = rng.choice(np.array([-1, 1], dtype=np.int8), (groups * each, n))
    return Population(rng.normal(size=groups), x, share / share.sum(axis=1, keepdims=True), family)


def literal_place(x, cells):
    """Return the cell and the image whose independent spins explain a state best: sum_i x_i atanh(m_i) - log cosh."""
    scores = {}
    for k, center in enumerate(cells.centers):
        h = [math.atanh(min(max(m, -0.9), 0.9)) for m in center]
        for r, image in enumerate(cells.images):
            explained = sum(x[i] * image[i] * h[i] for i in range(len(x)))
            scores[k, r] = explained - sum(math.log(math.cosh(one)) for one in h)
    k, r = max(scores, key=scores.__getitem__)
    return int(cells.cell[k]), r


# --------------------------------------------------------------------------------------------------------- the rule


@pytest.mark.parametrize("at_once", [20_000_000, 40])
@pytest.mark.parametrize(("count", "images"), [(1, 1), (1, 4), (3, 1), (3, 2), (4, 8)])
def test_a_state_is_in_the_cell_that_explains_it_best(count, images, at_once, monkeypatch):
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    cells, x = some_cells(count, images), some_population().x
    cell, image = cells.places(x)
    assert list(zip(cell.tolist(), image.tolist(), strict=True)) == [literal_place(one, cells) for one in x]


def test_a_cell_may_have_several_centers():
    cells = some_cells(5, 4, seed=5)
    cells = cells_of(cells.centers, cells.images, [0, 0, 1, 0, 2])
    assert cells.count == 3
    x = some_population().x
    cell, image = cells.places(x)
    assert list(zip(cell.tolist(), image.tolist(), strict=True)) == [literal_place(one, cells) for one in x]
    assert set(cell.tolist()) == {0, 1, 2}
    row = row_of(some_population(), cells, 1)
    for found, literal in zip(
        (row.log_z, row.families, row.heaviest, row.covariance), literal_row(some_population(), cells, 1), strict=True
    ):
        assert found == pytest.approx(literal)


def test_an_image_of_a_state_is_in_the_same_cell():
    rng = np.random.default_rng(2)
    first, second = (rng.choice(np.array([-1, 1], dtype=np.int8), SPINS) for _ in range(2))
    images = np.array([np.ones(SPINS), first, second, first * second], dtype=np.int8)  # a group, as of symmetries
    cells = cells_of(rng.uniform(-1.0, 1.0, (3, SPINS)), images)
    x = some_population().x
    cell, image = cells.places(x)
    for turned in images:
        again, other = cells.places(x * turned)
        assert np.array_equal(again, cell)
        assert np.array_equal(images[other], images[image] * turned)


def test_sure_means_count_as_nine_tenths():
    # The sure center is wrong in one spin of nine, the other one knows nothing of any.
    cells = cells_of([np.ones(SPINS), np.zeros(SPINS)], np.ones((1, SPINS)))
    x = np.ones((10, SPINS), np.int8)
    for wrong in range(10):
        x[wrong, :wrong] = -1
    cell, _ = cells.places(x)
    norm = SPINS * math.log(math.cosh(math.atanh(0.9)))
    literal = [0 if (SPINS - 2 * wrong) * math.atanh(0.9) - norm > 0.0 else 1 for wrong in range(10)]
    assert cell.tolist() == literal
    assert 0 < sum(literal) < 10


def test_one_more_center_is_the_last():
    cells, mean = some_cells(2), np.linspace(-1.0, 1.0, SPINS)
    more = cells.with_center(mean)
    assert (cells.count, more.count) == (2, 3)
    assert np.array_equal(more.centers, [*cells.centers, mean])
    assert np.array_equal(more.images, cells.images)
    assert more.cell.tolist() == [0, 1, 2]
    again = more.with_center(-mean, 0)
    assert again.count == 3
    assert again.cell.tolist() == [0, 1, 2, 0]
    assert np.array_equal(again.centers[3], -mean)


# ---------------------------------------------------------------------------------------------------------- the rows


def literal_row(population, cells, own):
    """Return log Z by group and cell, families, heaviest, and the covariance in units of Z, from loops over states."""
    each, count = population.share.shape[1], cells.count
    z, log_z = np.exp(population.log_z), np.zeros((population.groups, count))
    of_family = np.zeros((population.size, count))  # initial states, those without any descendants included
    for r, x in enumerate(population.x):
        (k, image), group = literal_place(x, cells), r // each
        times = (len(cells.images) if image == 0 else 0) if k == own else 1
        weight = times * z[group] * population.share[group, r % each]
        log_z[group, k] += weight
        of_family[population.family[r], k] += weight / z.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        families = of_family.sum(axis=0) ** 2 / (of_family**2).sum(axis=0)
        heaviest = of_family.max(axis=0) / of_family.sum(axis=0)
        apart = of_family - of_family.mean(axis=0)
        return np.log(log_z), np.nan_to_num(families), np.nan_to_num(heaviest), apart.T @ apart


@pytest.mark.parametrize("own", [None, 0, 2])
@pytest.mark.parametrize("images", [1, 4])
def test_a_row_is_the_literal_one(images, own):
    population, cells = some_population(), some_cells(3, images, seed=3)
    row = row_of(population, cells, own)
    log_z, families, heaviest, covariance = literal_row(population, cells, own)
    assert row.log_z == pytest.approx(log_z)
    assert row.families == pytest.approx(families)
    assert row.heaviest == pytest.approx(heaviest)
    assert row.covariance == pytest.approx(covariance)
    assert row.log_scale == pytest.approx(math.log(np.exp(population.log_z).mean()))


def test_without_an_own_cell_all_cells_add_up_to_each_groups_z():
    population, cells = some_population(), some_cells(4, 4, seed=4)
    row = row_of(population, cells)
    assert np.exp(row.log_z).sum(axis=1) == pytest.approx(np.exp(population.log_z))
    with_own = row_of(population, cells, 1)
    assert not np.allclose(np.exp(with_own.log_z).sum(axis=1), np.exp(population.log_z))


def test_the_own_cell_counts_one_image_as_often_as_there_are_images():
    cells = cells_of([np.zeros(4), [0.8] * 4], [[1] * 4, [-1] * 4])
    up, down, mixed = [1] * 4, [-1] * 4, [1, -1, 1, -1]
    population = Population(
        np.array([math.log(10.0)]),
        np.array([up, down, up, mixed], dtype=np.int8),
        np.array([[0.4, 0.3, 0.2, 0.1]]),
        np.arange(4),
    )
    # Each group has Z = 10: up 6, down 3, mixed 1.
    assert np.exp(row_of(population, cells).log_z[0]) == pytest.approx([1.0, 9.0])
    assert np.exp(row_of(population, cells, 1).log_z[0]) == pytest.approx([1.0, 12.0])
    assert np.exp(row_of(population, cells, 0).log_z[0]) == pytest.approx([2.0, 9.0])
    row = row_of(population, cells, 1)
    assert row.families == pytest.approx([1.0, (8.0 + 4.0) ** 2 / (8.0**2 + 4.0**2)])
    assert row.heaviest == pytest.approx([1.0, 8.0 / 12.0])


def test_cells_without_states_have_no_weight():
    cells = cells_of([np.full(4, 0.9), np.full(4, -0.9)], np.ones((1, 4)))
    population = Population(np.zeros(2), np.ones((6, 4), np.int8), np.full((2, 3), 1 / 3), np.arange(6))
    row = row_of(population, cells)
    assert row.log_z[:, 0] == pytest.approx([0.0, 0.0], abs=1e-12)
    assert row.log_z[:, 1].tolist() == [-math.inf, -math.inf]
    assert row.families == pytest.approx([6.0, 0.0])
    assert row.heaviest == pytest.approx([1 / 6, 0.0])
    # Six equal families: no scatter at all
    assert row.covariance == pytest.approx(np.zeros((2, 2)), abs=1e-15)


def test_a_population_stays_if_its_weight_does():
    cells = cells_of([np.zeros(4), [0.8] * 4], [[1] * 4, [-1] * 4])
    x = np.array([[1] * 4] * 9 + [[-1] * 4, [1, -1, 1, -1]], dtype=np.int8)

    def of(weights):
        return Population(np.zeros(1), x, np.array([weights]) / sum(weights), np.arange(11))

    # 9 states are up and one is down, with different weights; the mixed one is in the other cell.
    assert stays(of([1.0] * 9 + [0.9, 50.0]), cells, 1, 0.1)
    assert not stays(of([1.0] * 9 + [1.1, 50.0]), cells, 1, 0.1)
    assert stays(of([1.0] * 9 + [1.1, 50.0]), cells, 1, 0.2)
    assert not stays(of([0.0] * 10 + [1.0]), cells, 1, 0.1)  # it has never been there
    alone = cells_of(cells.centers, cells.images[:1])
    assert not stays(of([1.0] * 11), alone, 1, 0.1)  # nowhere else to go
