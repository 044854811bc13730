"""Planar models against enumeration, elimination, and themselves in another order and gauge."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numba
import numpy as np
import pytest
from scipy.spatial import Delaunay

import spectralz as sz
from spectralz.errors import MissingDependencyError, ModelError, TooLargeError
from spectralz.kernels.planar.doubled import add_product, add_rows, reciprocal
from spectralz.parts.planar import sums
from spectralz.parts.planar.graph import couplings_of, planar_graph
from spectralz.portfolio import exact_costs
from tests.reference import states

pytest.importorskip("networkx")

SHAPES = ["triangulation", "lattice", "tree", "cactus", "cycle", "several"]
COUPLINGS = ["bimodal", "gaussian", "ferromagnet", "huge", "tiny", "mixed", "diluted"]


def edges_of(rng, shape, n):
    """Return the number of spins and the edges of a random planar graph."""
    if shape == "triangulation":
        n = max(n, 4)
        corners = Delaunay(rng.random((n, 2))).simplices
        pairs = {tuple(sorted((int(s[i]), int(s[j])))) for s in corners for i, j in ((0, 1), (1, 2), (0, 2))}
        share = rng.choice([1.0, 0.8, 0.6])
        return n, [pair for pair in sorted(pairs) if rng.random() < share]
    if shape == "lattice":
        rows = int(rng.integers(1, 6))
        at = np.arange(rows * max(n // rows, 1)).reshape(rows, -1)
        pairs = [np.column_stack([at[:, :-1].ravel(), at[:, 1:].ravel()])]
        pairs.append(np.column_stack([at[:-1].ravel(), at[1:].ravel()]))
        return at.size, list(map(tuple, np.concatenate(pairs).tolist()))
    if shape == "tree":
        return n, [(int(rng.integers(0, i)), i) for i in range(1, n)]
    if shape == "cycle":
        return n, [(i, i + 1) for i in range(n - 1)] + ([(0, n - 1)] if n > 2 else [])
    if shape == "cactus":
        edges, k = [], 1
        while k < n:
            path = [int(rng.integers(0, k)), *range(k, min(k + int(rng.integers(1, 5)), n))]
            edges += list(itertools.pairwise(path)) + ([(path[0], path[-1])] if len(path) > 2 else [])
            k += len(path) - 1
        return n, edges
    parts = [edges_of(rng, rng.choice(SHAPES[:-1]), max(n // k, 1)) for k in (2, 3)]
    shift = parts[0][0]
    return shift + parts[1][0] + 1, parts[0][1] + [(a + shift, b + shift) for a, b in parts[1][1]]


def weights(rng, kind, beta, m):
    if kind == "bimodal":
        return beta * rng.choice([-1.0, 1.0], m)
    if kind == "ferromagnet":
        return np.full(m, beta)
    scale = {"gaussian": beta, "huge": 10.0 ** rng.uniform(0, 5, m), "tiny": 1e-8, "diluted": rng.integers(0, 2, m)}
    return rng.normal(size=m) * scale.get(kind, 10.0 ** rng.uniform(-6, 1.5, m))


def random_model(seed, most_spins):
    """Draw a model on a planar graph, with no field, one, some, or all."""
    rng = np.random.default_rng(seed)
    n, edges = edges_of(rng, rng.choice(SHAPES), int(rng.integers(1, most_spins)))
    beta = float(np.exp(rng.uniform(np.log(0.05), np.log(10.0))))
    J = weights(rng, rng.choice(COUPLINGS), beta, len(edges))
    field = np.zeros(n)
    biased = rng.permutation(n)[: rng.choice([0, 0, 1, 3, n])]
    field[biased] = beta * rng.normal(size=len(biased))
    label = rng.permutation(n)
    return sz.Ising.from_edges(n, [(label[a], label[b]) for a, b in edges], J, field=field, offset=float(rng.normal()))


def check_against_elimination(seed, most_spins):
    """Compare log Z and means; return False if the model was refused."""
    model = random_model(seed, most_spins)
    try:
        found = sz.log_z(model, "planar")
    except (ModelError, TooLargeError):
        return False
    exact = sz.log_z(model, "exact")
    assert found.trusted
    assert abs(found.log_z - exact.log_z) <= found.std_error + exact.upper - exact.lower
    try:
        means = sz.marginals(model, "planar")
    except ModelError:
        return True
    truth = sz.marginals(model, "exact")
    if truth.kind is sz.Kind.EXACT:
        assert np.allclose(means.mean, truth.mean, rtol=0, atol=1e-10)
        assert np.allclose(means.pair_mean, truth.pair_mean, rtol=0, atol=1e-10)
        assert means.pair_std_error.max(initial=0.0) < 1e-10
    return True


def test_small_graphs_against_elimination():
    done = [check_against_elimination(seed, 30) for seed in range(30)]
    assert sum(done) > 15


@pytest.mark.slow
def test_five_hundred_graphs_against_elimination():
    done = [check_against_elimination(seed, 60) for seed in range(100, 800)]
    assert sum(done) > 500


@pytest.mark.parametrize("seed", range(5))
def test_lattices_against_all_states(seed):
    model = sz.generators.square(3, 4, 1.5, seed, "gaussian")
    truth, _, pair_mean = states.solve(model)
    found = sz.marginals(model, "planar")
    assert abs(found.estimate.log_z - truth) < 1e-12 * abs(truth)
    assert np.allclose(found.pair_mean, pair_mean[tuple(found.edges.T)], atol=1e-13)
    assert not found.mean.any()


@pytest.mark.parametrize("couplings", ["gaussian", "bimodal"])
@pytest.mark.parametrize("beta", [1.0, 8.0, 14.0])
def test_cold_glasses_against_elimination(couplings, beta):
    # By one determinant of tanh(J) in double precision, all digits are lost here at beta = 14.
    model = sz.generators.square(12, 12, beta, 3, couplings)
    found, exact = sz.log_z(model, "planar"), sz.log_z(model, "exact")
    assert found.trusted
    assert abs(found.log_z - exact.log_z) <= found.std_error + exact.upper - exact.lower < 1e-9


@pytest.mark.parametrize("beta", [4.0, 6.0, 8.0, 10.0, 12.0])
def test_noise_shows_the_rounding_of_what_doubles_cannot_sum(beta):
    # From the state with all spins up doubles lose all digits, so the error comes from noise. Noise in the factors of
    # products, which is the same in a row, does not show it.
    model = sz.generators.square(16, 16, beta, 1, "bimodal")
    graph, J = planar_graph(model), couplings_of(model)
    sure, up = sums.solve(graph, J), sums.solve(graph, J, np.ones(graph.spins))
    assert sure.error < 1e-8
    assert abs(sure.log_z - up.log_z) <= sure.error + up.error
    assert beta < 8.0 or up.error > 1e-8


def test_no_digits_are_said_to_be_left_where_there_are_none():
    model = sz.generators.square(24, 24, 60.0, 1, "bimodal")
    try:
        assert not sz.log_z(model, "planar").trusted
    except TooLargeError as error:
        assert "rounding" in str(error)


@pytest.mark.slow
@pytest.mark.parametrize("couplings", ["gaussian", "bimodal"])
def test_a_cold_glass_in_another_order_and_gauge(couplings):
    model = sz.generators.square(64, 64, 8.0 if couplings == "gaussian" else 4.0, 2, couplings)
    (i, j), J = model.edges()[0].T, model.edges()[1]
    rng = np.random.default_rng(0)
    label, sign = rng.permutation(model.n), rng.choice([-1.0, 1.0], model.n)
    other = sz.Ising.from_edges(model.n, np.column_stack([label[i], label[j]]), J * sign[i] * sign[j])
    one, two = sz.log_z(model, "planar"), sz.log_z(other, "planar")
    assert one.std_error + two.std_error < 1e-6
    assert abs(one.log_z - two.log_z) <= one.std_error + two.std_error


def test_strong_couplings_that_do_not_compete():
    for J in (1e-300, 20.0, 1e3, 1e8):
        found = sz.log_z(_ladder(30, J), "planar")
        assert abs(found.log_z - sz.log_z(_ladder(30, J), "exact").log_z) <= found.std_error + 1e-15 * J


def _ladder(length, J):
    edges = [(2 * k, 2 * k + 1) for k in range(length)]
    edges += [(k, k + 2) for k in range(2 * length - 2)]
    return sz.Ising.from_edges(2 * length, edges, np.full(len(edges), J))


def test_strong_couplings_that_compete_are_refused():
    triangle = sz.Ising.from_edges(3, [(0, 1), (1, 2), (0, 2)], [-1e3, -1e3, -1e3])
    with pytest.raises(TooLargeError, match="competing couplings up to 150"):
        sz.log_z(triangle, "planar")


@pytest.mark.parametrize(
    "edges",
    [
        [(a, b) for a in range(5) for b in range(a)],
        [(a, b) for a in range(3) for b in range(3, 6)],
    ],
)
def test_other_graphs_are_refused(edges):
    with pytest.raises(ModelError, match="cannot be"):
        sz.log_z(sz.Ising.from_edges(6, edges, np.ones(len(edges))), "planar")


def test_fields_inside_are_refused_and_those_of_distant_pairs():
    lattice = sz.generators.square(4, 4, 1.0, 0)
    inside = sz.Ising.from_edges(16, *lattice.edges(), field=np.ones(16))
    with pytest.raises(ModelError, match="one more spin"):
        sz.log_z(inside, "planar")
    corner = sz.Ising.from_edges(16, *lattice.edges(), field=np.eye(16)[0])
    assert abs(sz.log_z(corner, "planar").log_z - sz.log_z(corner, "exact").log_z) < 1e-12
    with pytest.raises(ModelError, match="15 have none"):
        sz.marginals(corner, "planar")


def test_too_little_memory_is_refused():
    with pytest.raises(TooLargeError, match="max_memory"):
        sz.log_z(sz.generators.square(10, 10, 1.0, 0), "planar", max_memory=1000)


def test_auto_takes_it_where_elimination_is_slow():
    model = sz.generators.square(32, 32, 1.0, 0, "bimodal")
    result = sz.log_z(model)
    assert result.method.name == "planar" == sz.Auto().choose(model).name
    assert result.trusted
    assert sz.Auto().choose(sz.generators.square(10, 10, 1.0, 0)).name == "exact"
    assert sz.Auto(exclude=["planar"]).choose(model).name != "planar"
    assert sz.marginals(model).estimate.method.name == "planar"
    assert sz.energy(model).std_error < 1e-9


def test_constraints_are_not_lost():
    lattice = sz.generators.square(16, 16, 0.5, 0, "bimodal")
    joined = lattice.with_constraints(sz.constraints.equal(0, 17))  # one spin instead of two
    assert abs(sz.log_z(joined, "planar").log_z - sz.log_z(joined, "exact").log_z) < 1e-11
    model = lattice.with_constraints(sz.constraints.at_most_one([0, 100, 200]))
    assert sz.Auto().choose(model).name != "planar"
    with pytest.raises(sz.SpectralzError, match="constraints"):
        sz.log_z(model, "planar")
    with pytest.raises(sz.SpectralzError, match="constraints"):
        sz.thermodynamics(model, [1.0], "planar")


def test_without_networkx(monkeypatch):
    model = sz.generators.square(16, 16, 0.5, 0, "bimodal")
    monkeypatch.setattr(exact_costs, "find_spec", lambda name: None)
    assert sz.Auto().choose(model).name == "exact"
    monkeypatch.setitem(__import__("sys").modules, "networkx", None)
    with pytest.raises(MissingDependencyError, match=r"spectralz\[networkx\]"):
        sz.log_z(model, "planar")


def test_curves_against_elimination():
    lattice = sz.generators.square(10, 10, 1.0, 4, "bimodal")
    model = sz.Ising.from_edges(100, *lattice.edges(), offset=0.3)
    betas = [0.0, 0.3, 1.0, 3.0]
    found, exact = sz.thermodynamics(model, betas, "planar"), sz.thermodynamics(model, betas, "exact")
    assert found.trusted.all()
    for name in ("log_z", "energy", "entropy", "heat_capacity"):
        error = getattr(found, f"{name}_error")
        off = np.abs(getattr(found, name) - getattr(exact, name))
        assert np.all(off <= error + getattr(exact, f"{name}_error"))
        assert error.max() < (1e-2 if name == "heat_capacity" else 1e-9)


def test_curves_of_auto_leave_cold_temperatures_to_others():
    model = sz.generators.square(20, 20, 1.0, 4, "bimodal")
    with pytest.warns(sz.errors.InaccurateWarning):
        found = sz.thermodynamics(model, [0.5, 200.0], "planar")
    assert found.trusted.tolist() == [True, False]
    assert "from beta = 200 on" in found.status


def test_numbers_of_106_bits():
    # Kernels that only kernels call have no Python interface.
    of_kernels = numba.njit(lambda a, b, c: (add_product(*a, *b, *c), reciprocal(*a)))
    rows = numba.njit(lambda high, low, a, b, v, w: add_rows(high, low, 0, 1, *a, *v, *b, *w))
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, b, c, d = ((x, x * 2.0**-54 * float(rng.uniform(-1, 1))) for x in rng.normal(size=4).tolist())
        A, B, C, D = (Fraction(high) + Fraction(low) for high, low in (a, b, c, d))
        product, inverse = (Fraction(high) + Fraction(low) for high, low in of_kernels(a, b, c))
        assert abs(product - A - B * C) <= Fraction(2.0**-102) * (abs(A) + abs(B * C))
        assert abs(inverse * A - 1) <= Fraction(2.0**-102)
        high, low = np.array([a[0]]), np.array([a[1]])
        rows(high, low, b, d, (np.array([c[0]]), np.array([c[1]])), (np.array([b[0]]), np.array([b[1]])))
        off = abs(Fraction(high[0]) + Fraction(low[0]) - A - B * C - D * B)
        assert off <= Fraction(2.0**-101) * (abs(A) + abs(B * C) + abs(D * B))
