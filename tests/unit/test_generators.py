from __future__ import annotations

import hashlib

import numpy as np
import pytest

import spectralz as sz
from spectralz.errors import OptionError
from tests.reference.states import dense

SMALL = {
    "complete": {"n": 7, "strength": 0.5, "seed": 1},
    "erdos-renyi": {"n": 9, "p": 0.5, "strength": 0.5, "seed": 1},
    "bipartite": {"n": 7, "strength": 0.5, "seed": 1},
    "grid": {"side": 4, "strength": 0.5, "seed": 1, "periodic": True},
    "rank-one": {"n": 7, "strength": 0.5, "seed": 1},
    "curie-weiss": {"n": 7, "strength": 0.5, "field": 0.25},
    "rbm": {"visible": 4, "hidden": 3, "scale": 0.5, "seed": 1},
    "spin-glass-3d": {"side": 3, "strength": 0.5, "seed": 1},
}
# SHA-256 of the field's and the coupling's bytes: that these stay as they are is the promise to users' seeds.
FINGERPRINTS = {
    "complete": "0fdb47b1590bbc04",
    "erdos-renyi": "3b9d8cb22a79f841",
    "bipartite": "52efa5ff0a18d272",
    "grid": "5f60ad5118abab8e",
    "rank-one": "70473cd29df0db77",
    "curie-weiss": "dbfd7737f9763297",
    "rbm": "f5ea99aed33ca5c1",
    "spin-glass-3d": "ba174922d390d1cc",
}


def fingerprint(model):
    return hashlib.sha256(model.field.tobytes() + dense(model).tobytes()).hexdigest()[:16]


def test_every_generator_is_tested():
    assert set(SMALL) == set(sz.generators.GENERATORS)


@pytest.mark.parametrize("name", SMALL)
def test_same_seed_same_model_for_ever(name):
    assert fingerprint(sz.generators.GENERATORS[name](**SMALL[name])) == FINGERPRINTS[name]


@pytest.mark.parametrize("name", [name for name in SMALL if "seed" in SMALL[name]])
def test_another_seed_is_another_model(name):
    make = sz.generators.GENERATORS[name]
    assert fingerprint(make(**SMALL[name])) != fingerprint(make(**SMALL[name] | {"seed": 2}))


def uniform_on(values, low, high):
    """Kolmogorov-Smirnov distance from the uniform distribution, scaled: above 2 has probability 7e-4."""
    ranks = np.arange(1, len(values) + 1) / len(values)
    return np.sqrt(len(values)) * np.max(np.abs(np.sort((values - low) / (high - low)) - ranks)) < 2


def test_complete_is_the_papers():
    model = sz.generators.complete(100, 0.3, seed=4)
    A = dense(model)[np.triu_indices(100, 1)]
    assert len(model.edges()[0]) == 4950
    assert uniform_on(A, -0.3, 0.3)
    assert uniform_on(model.field, -1, 1)
    assert not model.diagonal.any()


def test_erdos_renyi_density_and_weights():
    model = sz.generators.erdos_renyi(200, 0.3, 2.0, seed=4)
    count = 200 * 199 / 2
    edges, J = model.edges()
    assert abs(len(edges) - 0.3 * count) < 4 * np.sqrt(0.21 * count)
    assert uniform_on(J, -4.0, 4.0)
    assert len(sz.generators.erdos_renyi(10, 1.0, 1.0, 0).edges()[0]) == 45
    assert len(sz.generators.erdos_renyi(10, 0.0, 1.0, 0).edges()[0]) == 0


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8])
def test_bipartite_joins_all_of_one_half_to_all_of_the_other(n):
    edges, _ = sz.generators.bipartite(n, 1.0, seed=0).edges()
    assert edges.tolist() == [[i, j] for i in range(n // 2) for j in range(n // 2, n)]


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("side", [1, 2, 3, 5])
def test_grid_neighbours(side, periodic):
    edges, _ = sz.generators.grid(side, 1.0, seed=0, periodic=periodic).edges()
    wanted = set()
    for r in range(side):
        for c in range(side):
            for dr, dc in ((0, 1), (1, 0)):
                row, column = r + dr, c + dc
                if periodic:
                    row, column = row % side, column % side
                if row < side and column < side and (row, column) != (r, c):
                    wanted.add(tuple(sorted((r * side + c, row * side + column))))
    assert set(map(tuple, edges.tolist())) == wanted


def test_rank_one_has_rank_one_and_the_papers_strength():
    signs = set()
    for seed in range(8):
        n = 30
        model = sz.generators.rank_one(n, 0.7, seed)
        A = dense(model)
        eigenvalues = np.linalg.eigvalsh(A)
        large = np.abs(eigenvalues) > 1e-12 * np.abs(eigenvalues).max()
        assert large.sum() == 1
        signs.add(float(np.sign(eigenvalues[large][0])))
        off = np.abs(A).sum() - np.abs(np.diag(A)).sum()
        assert off / (n * (n + 1)) == pytest.approx(0.7, rel=1e-13)
    assert signs == {-1.0, 1.0}


def test_curie_weiss():
    A = dense(sz.generators.curie_weiss(5, 2.0, 0.5))
    assert np.allclose(A, 0.2 * (1 - np.eye(5)))


def test_rbm_is_bipartite_with_normal_weights():
    model = sz.generators.rbm(60, 40, 0.5, seed=1)
    edges, J = model.edges()
    assert edges[:, 0].max() == 59
    assert edges[:, 1].min() == 60
    assert len(edges) == 2400
    for values in (J / 0.5, np.concatenate([sz.generators.rbm(60, 40, 0.5, seed=s).field for s in range(20)]) / 0.5):
        # mean, variance, fourth moment of a normal number, within four standard errors
        count = len(values)
        assert abs(values.mean()) < 4 / np.sqrt(count)
        assert abs((values**2).mean() - 1) < 4 * np.sqrt(2 / count)
        assert abs((values**4).mean() - 3) < 4 * np.sqrt(96 / count)


def test_spin_glass_3d_neighbours_and_kinds():
    for side, periodic, degree in ((4, True, 6), (2, True, 3)):
        edges, _ = sz.generators.spin_glass_3d(side, 1.0, seed=0, periodic=periodic).edges()
        assert set(np.bincount(edges.ravel()).tolist()) == {degree}
        for i, j in edges.tolist():
            a, b = np.array(np.unravel_index([i, j], (side,) * 3)).T
            step = np.abs(a - b)
            assert sorted(np.minimum(step, side - step).tolist()) == [0, 0, 1]
    assert len(sz.generators.spin_glass_3d(3, 1.0, 0, periodic=False).edges()[0]) == 54
    J = sz.generators.spin_glass_3d(3, 0.25, 0, couplings="bimodal").edges()[1]
    assert set(J.tolist()) == {-0.25, 0.25}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("complete", {"n": -1, "strength": 1, "seed": 0}, "negative"),
        ("complete", {"n": 2.5, "strength": 1, "seed": 0}, "whole number"),
        ("complete", {"n": 3, "strength": "strong", "seed": 0}, "a number"),
        ("complete", {"n": 3, "strength": float("inf"), "seed": 0}, "finite"),
        ("complete", {"n": 3, "strength": 1, "seed": -5}, "seed is -5"),
        ("erdos-renyi", {"n": 3, "p": 1.5, "strength": 1, "seed": 0}, "at most 1"),
        ("rank-one", {"n": 1, "strength": 1, "seed": 0}, "2 spins or more"),
        ("spin-glass-3d", {"side": 3, "strength": 1, "seed": 0, "couplings": "cauchy"}, "'bimodal'"),
    ],
)
def test_bad_parameters(name, options, message):
    with pytest.raises(OptionError, match=message):
        sz.generators.GENERATORS[name](**options)
