from __future__ import annotations

import hashlib
import inspect
import itertools
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

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
    "sk": {"n": 7, "strength": 0.5, "seed": 1, "field": 0.25},
    "hopfield": {"n": 7, "patterns": 2, "strength": 0.5, "seed": 1, "field": 0.25},
    "random-regular": {"n": 10, "degree": 4, "strength": 0.5, "seed": 1, "field": 0.25},
    "square": {"rows": 3, "columns": 4, "strength": 0.5, "seed": 1, "couplings": "bimodal", "periodic": True},
    "triangular": {"rows": 3, "columns": 4, "strength": 0.5, "seed": 1, "field": 0.25},
    "kings": {"rows": 3, "columns": 4, "strength": 0.5, "seed": 1, "couplings": "uniform"},
    "cubic": {"rows": 2, "columns": 3, "layers": 4, "strength": 0.5, "seed": 1, "periodic": True},
    "chimera": {"rows": 2, "columns": 2, "strength": 0.5, "seed": 1, "tile": 3},
    "planted": {"rows": 4, "columns": 4, "strength": 0.5, "seed": 1, "graph": "kings"},
    "torus": {"rows": 3, "columns": 4, "strength": 0.5, "field": 0.25},
    "chain": {"n": 7, "strength": 0.5, "field": 0.25, "periodic": True},
    "dimers": {"n": 8, "strength": 0.5, "field": 0.25},
    "p-spin": {"n": 7, "p": 4, "strength": 0.5, "seed": 1},
    "hypertree": {"n": 8, "p": 4, "strength": 0.5, "field": 0.25, "seed": 1},
    "plaquettes": {"rows": 3, "columns": 4, "strength": 0.5, "seed": 1, "field": 0.25},
    "parity": {"n": 9, "equations": 8, "strength": 0.5, "seed": 1, "planted": True},
}
# SHA-256 of the bytes of field, coupling and other terms: that these stay as they are is the promise to users' seeds.
FINGERPRINTS = {
    "complete": "0fdb47b1590bbc04",
    "erdos-renyi": "3b9d8cb22a79f841",
    "bipartite": "52efa5ff0a18d272",
    "grid": "5f60ad5118abab8e",
    "rank-one": "70473cd29df0db77",
    "curie-weiss": "dbfd7737f9763297",
    "rbm": "f5ea99aed33ca5c1",
    "spin-glass-3d": "ba174922d390d1cc",
    "sk": "64382e0ad25f32c2",
    "hopfield": "44f3e0697fd2c7c2",
    "random-regular": "800d15e1a7e4166a",
    "square": "bb379989ceb9764f",
    "triangular": "02f7787d3bd809ec",
    "kings": "cd18846366ff92da",
    "cubic": "423e408ab93aad39",
    "chimera": "25eaf2de051b09dd",
    "planted": "25c715079717be70",
    "torus": "b0a2f28d4ef78a97",
    "chain": "5f3ac2227e8ac0c5",
    "dimers": "20e01539d3363985",
    "p-spin": "7871eed8f6fc6a45",
    "hypertree": "640dbaf018fef7e7",
    "plaquettes": "b641fb73d1d0d358",
    "parity": "c2552b196be7015f",
}


def fingerprint(model):
    pairs, higher = getattr(model, "pairwise", model), model.higher
    numbers = model.field, dense(pairs), higher.weight, higher.spin
    return hashlib.sha256(b"".join(array.tobytes() for array in numbers)).hexdigest()[:16]


def test_every_generator_is_tested():
    assert set(SMALL) == set(sz.generators.GENERATORS)


def test_every_generator_and_closed_form_is_in_the_tables():
    page = (Path(__file__).resolve().parents[2] / "docs" / "generators.md").read_text(encoding="utf-8")
    for generator in sz.generators.GENERATORS.values():
        needed = [p.name for p in inspect.signature(generator).parameters.values() if p.default is p.empty]
        assert f"| `{generator.__name__}({', '.join(needed)}" in page
    for closed_form in sz.closed_forms.CLOSED_FORMS.values():
        assert page.count(f"| `{closed_form.__name__}(") == 2


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
def test_grid_neighbors(side, periodic):
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


def test_spin_glass_3d_neighbors_and_kinds():
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
        ("square", {"rows": 3, "columns": 3, "strength": -1, "seed": 0}, "strength is -1.0; it cannot be negative"),
        ("square", {"rows": 3, "columns": 3, "strength": 1, "seed": 0, "couplings": ["gaussian"]}, "'gaussian', 'bi"),
        ("square", {"rows": 3, "columns": 3, "strength": 1, "seed": 0, "periodic": "no"}, "True or False"),
        ("square", {"rows": 3.0, "columns": 3, "strength": 1, "seed": 0}, "rows is 3.0; it must be a whole number"),
        ("kings", {"rows": 3, "columns": -1, "strength": 1, "seed": 0}, "columns is -1"),
        ("cubic", {"rows": 3, "columns": 3, "layers": "2", "strength": 1, "seed": 0}, "layers is '2'"),
        ("chimera", {"rows": 3, "columns": 3, "strength": 1, "seed": 0, "tile": -4}, "tile is -4"),
        ("torus", {"rows": 3, "columns": 3, "strength": 1, "field": None}, "field is None"),
        ("chain", {"n": 3, "strength": float("nan")}, "strength is nan; it must be finite"),
        ("dimers", {"n": 3, "strength": 1}, "n is 3; dimers are pairs"),
        ("random-regular", {"n": 5, "degree": 3, "strength": 1, "seed": 0}, "times degree must be even"),
        ("random-regular", {"n": 4, "degree": 4, "strength": 1, "seed": 0}, "at most n - 1 neighbors"),
        ("hopfield", {"n": 4, "patterns": 1.5, "strength": 1, "seed": 0}, "patterns is 1.5"),
        ("planted", {"rows": 1, "columns": 9, "strength": 1, "seed": 0, "periodic": False}, "has no loops"),
        ("planted", {"rows": 3, "columns": 3, "strength": 1, "seed": 0, "shortest": 10}, "lower it"),
        ("planted", {"rows": 3, "columns": 3, "strength": 1, "seed": 0, "graph": "cubic"}, "'square', 'tri"),
        ("planted", {"rows": 3, "columns": 3, "strength": 1, "seed": 0, "loops_per_spin": -0.5}, "loops_per_spin"),
    ],
)
def test_bad_parameters(name, options, message):
    with pytest.raises(OptionError, match=message):
        sz.generators.GENERATORS[name](**options)


def test_every_parameter_has_its_words():
    for generator in [*sz.generators.GENERATORS.values(), sz.generators.planted_state]:
        words = sz.generators.parameter_help(generator)
        assert list(words) == list(inspect.signature(generator).parameters)
        for text in words.values():
            assert text[-1] == "."
            assert not re.search(r"``|:func:|\s\s|\n", text)


def test_words_of_parameters_in_every_form():
    def documented(a, b, *rest):
        """First line.

        Parameters
        ----------
        a, b : int
            Both, as ``a`` in
            :func:`other`.

            A second paragraph.
        *rest
            The others.

        Returns
        -------
        c
            Not a parameter.
        """

    together = "Both, as a in other. A second paragraph."
    assert sz.generators.parameter_help(documented) == {"a": together, "b": together, "rest": "The others."}
    assert sz.generators.parameter_help(lambda n: n) == {}


def test_sk_has_normal_couplings_of_its_scale():
    model = sz.generators.sk(80, 2.0, seed=3, field=-0.5)
    J = 2 * dense(model)[np.triu_indices(80, 1)] * np.sqrt(80) / 2.0
    assert abs(J.mean()) < 4 / np.sqrt(len(J))
    assert abs((J**2).mean() - 1) < 4 * np.sqrt(2 / len(J))
    assert abs((J**4).mean() - 3) < 4 * np.sqrt(96 / len(J))
    assert set(model.field.tolist()) == {-0.5}
    assert not model.diagonal.any()


def test_hopfield_is_its_patterns():
    n, strength = 12, 1.7
    model = sz.generators.hopfield(n, 3, strength, seed=2, field=0.1)
    xi = model.factors.vectors
    assert xi.shape == (3, n)
    assert set(np.unique(xi)) == {-1.0, 1.0}
    assert len(np.unique(xi, axis=0)) == 3
    A = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            A[i, j] = 0.0 if i == j else sum(strength / (2 * n) * pattern[i] * pattern[j] for pattern in xi)
    assert np.allclose(dense(model), A, rtol=0, atol=1e-15)
    assert model.field.tolist() == [0.1] * n
    assert sz.log_z(sz.generators.hopfield(5, 0, 1.0, seed=0)).log_z == pytest.approx(5 * np.log(2), rel=1e-15)


@pytest.mark.parametrize(
    ("n", "degree"), [(0, 0), (1, 0), (2, 1), (4, 3), (5, 4), (6, 3), (9, 4), (20, 9), (20, 10), (21, 16), (200, 7)]
)
def test_random_regular_is_simple_and_regular(n, degree):
    for seed in range(5):
        model = sz.generators.random_regular(n, degree, 1.0, seed, couplings="ferromagnetic")
        edges, J = model.edges()  # the model itself refuses loops and pairs that are listed twice
        assert np.bincount(edges.ravel(), minlength=n).tolist() == [degree] * n
        assert set(J.tolist()) <= {1.0}
        assert model.is_sparse


@pytest.mark.slow
@pytest.mark.parametrize(("n", "degree"), [(6, 2), (6, 3)])
def test_small_regular_graphs_are_equally_likely(n, degree):
    """Of the 70 graphs of degree 2 on 6 spins, 60 are hexagons and 10 two triangles; of degree 3 they are the rest."""
    draws = 1400
    seen = Counter(
        tuple(map(tuple, sz.generators.random_regular(n, degree, 1.0, seed).edges()[0].tolist()))
        for seed in range(draws)
    )
    assert len(seen) == 70
    statistic = sum((count - draws / 70) ** 2 / (draws / 70) for count in seen.values())
    assert abs(statistic - 69) < 4 * np.sqrt(2 * 69)


def test_regular_graphs_of_larger_degree_have_as_many_triangles_as_they_should():
    """In a random regular graph of many spins triangles are Poisson with mean (d - 1)^3 / 6."""
    degree, draws = 4, 60
    count = 0
    for seed in range(draws):
        edges, J = sz.generators.random_regular(300, degree, 1.0, seed, couplings="ferromagnetic").edges()
        A = sp.coo_array((J, (edges[:, 0], edges[:, 1])), shape=(300, 300)).tocsr()
        A = A + A.T
        count += round((A @ A * A).sum() / 6)
    mean = (degree - 1) ** 3 / 6 * draws
    assert abs(count - mean) < 4 * np.sqrt(mean)


def neighbors_by_definition(shape, steps, periodic):
    """Every pair of sites that one of the steps joins, written out."""
    wanted = set()
    for site in itertools.product(*map(range, shape)):
        for step in steps:
            end = [a + b for a, b in zip(site, step, strict=True)]
            for axis, length in enumerate(shape):
                if periodic and length > 2:
                    end[axis] %= length
            if all(0 <= a < length for a, length in zip(end, shape, strict=True)):
                wanted.add(tuple(sorted((np.ravel_multi_index(site, shape), np.ravel_multi_index(end, shape)))))
    return wanted


FLAT = {
    "square": [(0, 1), (1, 0)],
    "triangular": [(0, 1), (1, 0), (1, 1)],
    "kings": [(0, 1), (1, 0), (1, 1), (1, -1)],
}


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 2), (2, 5), (3, 3), (5, 4)])
@pytest.mark.parametrize("name", FLAT)
def test_flat_lattices_have_their_neighbors(name, shape, periodic):
    edges, _ = sz.generators.GENERATORS[name](*shape, 1.0, seed=0, periodic=periodic).edges()
    assert set(map(tuple, edges.tolist())) == neighbors_by_definition(shape, FLAT[name], periodic)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 4), (3, 3, 2), (4, 1, 3)])
def test_a_box_has_its_neighbors(shape, periodic):
    edges, _ = sz.generators.cubic(*shape, 1.0, seed=0, periodic=periodic).edges()
    steps = [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    assert set(map(tuple, edges.tolist())) == neighbors_by_definition(shape, steps, periodic)


@pytest.mark.parametrize(("name", "degree"), [("square", 4), ("triangular", 6), ("kings", 8)])
def test_spins_of_a_torus_are_all_alike(name, degree):
    for shape in ((3, 3), (4, 5)):
        edges, _ = sz.generators.GENERATORS[name](*shape, 1.0, seed=0, periodic=True).edges()
        assert set(np.bincount(edges.ravel()).tolist()) == {degree}


@pytest.mark.parametrize("shape", [(1, 1, 4), (3, 2, 2), (2, 3, 1)])
def test_chimera_has_its_neighbors(shape):
    rows, columns, tile = shape
    spin = {
        at: k for k, at in enumerate(itertools.product(range(rows), range(columns), range(2), range(tile)))
    }  # the order of dwave_networkx
    wanted = set()
    for (r, c, g, k), i in spin.items():
        joined = [(r, c, 1, other) for other in range(tile)] if g == 0 else [(r, c + 1, 1, k)]
        joined += [(r + 1, c, 0, k)] if g == 0 else []
        wanted |= {(i, spin[at]) for at in joined if at in spin}
    edges, _ = sz.generators.chimera(rows, columns, 1.0, seed=0, tile=tile).edges()
    assert set(map(tuple, edges.tolist())) == wanted


def test_kinds_of_couplings():
    def drawn(couplings):
        return sz.generators.kings(30, 30, 0.25, seed=5, couplings=couplings).edges()[1]

    assert set(drawn("ferromagnetic").tolist()) == {0.25}
    assert set(drawn("antiferromagnetic").tolist()) == {-0.25}
    assert set(drawn("bimodal").tolist()) == {-0.25, 0.25}
    count = len(drawn("bimodal"))
    assert abs(drawn("bimodal").mean() / 0.25) < 4 / np.sqrt(count)
    assert uniform_on(drawn("uniform"), -0.25, 0.25)
    assert abs((drawn("gaussian") ** 2).mean() / 0.25**2 - 1) < 4 * np.sqrt(2 / count)
    assert abs((drawn("gaussian") ** 4).mean() / 0.25**4 - 3) < 4 * np.sqrt(96 / count)


def test_the_cube_is_the_spin_glass():
    for periodic in (False, True):
        box = sz.generators.cubic(3, 3, 3, 0.5, 7, couplings="bimodal", periodic=periodic)
        assert fingerprint(box) == fingerprint(sz.generators.spin_glass_3d(3, 0.5, 7, periodic, "bimodal"))


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (1, 2), (1, 5), (2, 2), (2, 3), (4, 3)])
def test_torus_is_the_periodic_ferromagnet(shape):
    torus = sz.generators.torus(*shape, 0.3, field=0.1)
    square = sz.generators.square(*shape, 0.3, seed=0, couplings="ferromagnetic", periodic=True, field=0.1)
    assert fingerprint(torus) == fingerprint(square)
    assert set(sz.generators.torus(*shape, -0.3).edges()[1].tolist()) <= {-0.3}


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 6])
def test_chain_neighbors(n, periodic):
    edges, J = sz.generators.chain(n, -0.5, field=0.25, periodic=periodic).edges()
    wanted = [[i, i + 1] for i in range(n - 1)] + ([[0, n - 1]] if periodic and n > 2 else [])
    assert edges.tolist() == sorted(wanted)
    assert J.tolist() == [-0.5] * len(wanted)


def test_dimers_are_pairs():
    edges, J = sz.generators.dimers(6, -0.5).edges()
    assert edges.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert J.tolist() == [-0.5] * 3
