from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralz as sz
from spectralz.errors import ModelError, OptionError, TooLargeError
from spectralz.kernels.low_rank import plus_diagonal
from spectralz.kernels.low_rank.plus_diagonal import find_low_rank
from spectralz.kernels.low_rank.quantized_dp import Grid, log_tables
from spectralz.methods.low_rank import theorem_3
from spectralz.parts.low_rank.quantized import predicted_cells
from tests.reference import algorithm_1, states
from tests.strategies import low_rank_models


def random_factors(rng, n, rank, scale=1.0):
    v = rng.normal(size=(rank, n))
    v /= np.linalg.norm(v, axis=1)[:, None]
    return rng.choice([-1.0, 1.0], rank) * rng.uniform(0.2, 2.0, rank) * scale, v


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_equals_the_literal_transcription(rank, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 11 if rank == 1 else 8))
    lam, v = random_factors(rng, n, rank)
    theta = rng.uniform(-1, 1, n) * rng.choice([0.0, 1.0, 5.0])
    c = rng.uniform(0.05, 0.6, rank)
    model = sz.Ising.from_factors(theta, lam, v)
    result = sz.log_z(model, "low_rank", step=c.tolist())
    assert result.log_z == pytest.approx(algorithm_1.log_z_hat(theta, lam, v, c), abs=1e-10)
    u = np.sqrt(np.abs(lam))[:, None] * v
    cells = np.prod([2 * algorithm_1.claim_1_half(u[j], c[j]) + 1 for j in range(rank)])
    assert result.details["cells"] == cells == predicted_cells(u, c)


@pytest.mark.slow
@given(
    n=st.integers(1, 8),
    rank=st.integers(1, 2),
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([0.01, 1.0, 10.0]),
    divisor=st.sampled_from([3.0, 30.0]),
)
@settings(max_examples=1000)
def test_theorem_3_bound(n, rank, seed, scale, divisor):
    """1,000 random models: the interval contains log Z, and the printed bound of Theorem 3 contains the interval."""
    rng = np.random.default_rng(seed)
    lam, v = random_factors(rng, n, rank, scale)
    model = sz.Ising.from_factors(rng.uniform(-1, 1, n), lam, v)
    step = np.sqrt(np.abs(lam)) / divisor
    X = states.all_states(n)
    truth = np.logaddexp.reduce(model.log_weight(X))
    result = sz.log_z(model, "low_rank", step=step.tolist())
    assert result.lower <= truth <= result.upper
    assert abs(result.log_z - truth) <= result.details["quantisation"] + 1e-10 * max(1, abs(truth))
    assert result.details["quantisation"] <= theorem_3(lam, step, n) * (1 + 1e-12)


def test_claim_1_grid_holds_every_reachable_cell():
    """The printed size bound drops the ceiling: n = 1, lambda = 1, c = 0.4 needs 9 cells, and the bound says 8."""
    grid = Grid.of_directions(np.ones((1, 1)), np.array([0.4]))
    assert grid.cells == 9
    assert 2 * (1 / 0.4 + 1 / 2 + 1) == 8
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(1, 8))
        u = rng.normal(size=(2, n))
        grid = Grid.of_directions(u, rng.uniform(0.1, 1.0, 2))
        for x in itertools.product([0, 1], repeat=n):
            assert np.all(np.abs(grid.first + grid.jump @ x) <= grid.half)


def test_tables_are_the_distribution_of_the_cells():
    rng = np.random.default_rng(3)
    u, p = rng.normal(size=(2, 6)), rng.uniform(0.1, 0.9, 6)
    grid = Grid.of_directions(u, np.array([0.4, 0.7]))
    heard: list[float] = []
    rows = log_tables(grid.shifts, np.log1p(-p), np.log(p), grid.start, grid.cells, True, heard.append)
    assert heard[-1] == 1.0
    assert rows.shape == (7, grid.cells)
    wanted = np.zeros(grid.cells)
    for x in itertools.product([0, 1], repeat=6):
        at = (grid.first + grid.jump @ x + grid.half) @ grid.strides
        wanted[at] += np.prod(np.where(np.array(x) == 1, p, 1 - p))
    assert np.allclose(np.exp(rows[-1]), wanted, atol=1e-15)


def test_epsilon_sets_the_step_of_the_formula_under_theorem_3():
    model = sz.generators.rank_one(6, 0.05, seed=1)
    result = sz.log_z(model, "low_rank", epsilon=0.2)
    lam = abs(result.details["eigenvalues"][0])
    n = 6
    c = min(np.sqrt(0.2 / 1) / (n + 1), 0.2 / (4 * np.sqrt(lam) * np.sqrt(n) * (n + 1)))
    assert result.details["step"] == pytest.approx([c])
    truth = sz.log_z(model, "exact").log_z
    assert np.log(0.8) <= result.log_z - truth <= np.log(1.2)


def test_default_step_is_the_papers():
    model = sz.generators.rank_one(12, 0.3, seed=2)
    result = sz.log_z(model, "low_rank")
    lam = np.abs(np.linalg.eigvalsh(np.asarray(model.coupling))).max()
    assert result.details["step"] == pytest.approx([np.sqrt(lam) / 1000])
    # Not the step of a direction that is not a unit vector, however the factors are written.
    scaled = sz.Ising.from_factors(None, [1.0], np.full((1, 4), 3.0))
    assert sz.log_z(scaled, "low_rank").details["step"] == pytest.approx([6.0 / 1000])


def test_strong_fields_and_couplings_do_not_overflow():
    v = np.array([[0.5, -0.5, 0.5, 0.5]])
    for value in (-1e4, 1e4):
        for field in (0.0, 400.0, -1e5):
            model = sz.Ising.from_factors(np.full(4, field), [value], v)
            truth, _, _ = states.solve(model)
            result = sz.log_z(model, "low_rank", step=1.0)
            assert result.lower <= truth <= result.upper


def test_a_grid_too_large_is_refused_before_it_is_made():
    model = sz.Ising.from_factors(np.zeros(50), [1.0, -1.0, 1.0], np.random.default_rng(0).normal(size=(3, 50)))
    tracemalloc.start()
    with pytest.raises(TooLargeError, match=r"a step of .* would fit") as caught:
        sz.log_z(model, "low_rank", max_cells=500_000)
    assert tracemalloc.get_traced_memory()[1] < 1e6
    tracemalloc.stop()
    fitting = [float(word) for word in str(caught.value).split("a step of ")[1].split(" would")[0].split(", ")]
    assert sz.log_z(model, "low_rank", step=fitting, max_cells=510_000).details["cells"] <= 510_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": 0.0}, "above 0"),
        ({"step": 1e300}, r"below 1e\+100"),
        ({"step": [0.1, -1]}, "above 0"),
        ({"epsilon": 0.6}, r"below 0\.5"),
        ({"epsilon": 0.1, "step": 0.1}, "give one of them"),
        ({"max_rank": 0}, "1 or more"),
        ({"tol": "small"}, "above 0"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(OptionError, match=message):
        sz.LowRank(**options)


def test_as_many_steps_as_directions():
    with pytest.raises(OptionError, match="2 numbers and the coupling has rank 1"):
        sz.log_z(sz.generators.rank_one(5, 0.1, 0), "low_rank", step=[0.1, 0.1])


# --- finding the rank ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["generic", "zero diagonal", "signs", "blocks", "sparse vectors", "weak direction"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_low_rank_plus_diagonal_is_found(kind, rank):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(15, 80))
        V = rng.normal(size=(rank, n))
        if kind == "signs":
            V = np.sign(V)
        if kind == "blocks":
            V *= rng.integers(0, rank, size=n) == np.arange(rank)[:, None]
        if kind == "sparse vectors":
            V *= rng.random((rank, n)) < 0.5
        if kind == "weak direction":
            V[-1] *= 1e-3
        signs = rng.choice([-1.0, 1.0], rank)
        A = (V.T * signs) @ V
        A -= np.diag(np.diag(A) if kind != "generic" else rng.normal(size=n))
        form = find_low_rank(A, 3)
        assert form is not None
        assert len(form.values) <= rank
        L = (form.vectors.T * form.values) @ form.vectors
        off = A - L - np.diag(np.diag(A - L))
        assert np.abs(off).sum() == pytest.approx(form.residual, rel=1e-6, abs=1e-9)
        assert form.residual < 1e-9 * np.abs(A).sum()
        assert np.allclose(np.diag(A) + form.shift, np.diag(L), atol=1e-9 * np.abs(A).max())


@pytest.mark.slow
def test_what_is_not_of_low_rank_is_refused():
    assert find_low_rank(np.asarray(sz.generators.complete(40, 1.0, 0).coupling), 3) is None
    with pytest.raises(ModelError, match="rank of at most 3"):
        sz.log_z(sz.generators.complete(40, 1.0, 0), "quadrature")
    rng = np.random.default_rng(0)
    V = rng.normal(size=(4, 50))
    with pytest.raises(ModelError, match="rank of at most 3"):
        sz.log_z(sz.Ising(None, V.T @ V), "low_rank")
    with pytest.raises(ModelError, match="4 rank-1 terms"):
        sz.log_z(sz.Ising.from_factors(None, np.ones(4), V), "quadrature")
    weak = sz.Ising.from_factors(None, np.full(4, 1e-3), V[:, :20])
    assert sz.log_z(weak, "quadrature", max_rank=4).details["rank"] == 4


def test_dependent_terms_are_written_as_fewer():
    many = sz.Ising.from_factors(None, [0.01] * 6, np.ones((6, 60)))
    one = sz.Ising.from_factors(None, [0.06], np.ones((1, 60)))
    result = sz.log_z(many)
    assert result.details["rank"] == 1
    assert result.log_z == pytest.approx(sz.log_z(one).log_z, rel=1e-12)


def test_nearly_low_rank_widens_the_interval_or_is_refused():
    rng = np.random.default_rng(1)
    n = 14
    v = rng.normal(size=n)
    noise = rng.normal(size=(n, n)) * 3e-10
    model = sz.Ising(None, np.outer(v, v) + noise + noise.T)
    truth = sz.log_z(model, "exact")
    result = sz.log_z(model, "quadrature")
    assert result.lower <= truth.log_z <= result.upper
    assert result.upper - result.lower > 1e-8
    assert result.details["residual"] > 1e-8
    with pytest.raises(ModelError, match="rank of at most 3"):
        sz.log_z(model, "quadrature", tol=1e-12)
    strong = sz.Ising(None, 1e6 * np.outer(v, v))  # rounding alone leaves more over than this tol allows
    with pytest.raises(ModelError, match="may change log Z by"):
        sz.log_z(strong, "quadrature", tol=1e-12)


@given(low_rank_models(max_spins=10))
@settings(max_examples=60)
def test_models_kept_as_factors_are_the_models_they_stand_for(model):
    if model.factors is None:
        return
    dense = sz.Ising(model.field, model.coupling, model.offset)
    X = states.all_states(model.n)
    assert np.allclose(model.log_weight(X), dense.log_weight(X), rtol=1e-11, atol=1e-11)
    assert np.allclose(model.diagonal, dense.diagonal, atol=1e-12)
    fixed = {i: 1 if i % 3 else -1 for i in range(0, model.n, 2)}
    free = [i for i in range(model.n) if i not in fixed]
    Y = states.all_states(len(free))
    for a, b in (
        (model.condition(fixed), dense.condition(fixed)),
        (model.submodel(free), dense.submodel(free)),
    ):
        assert a.factors is not None
        assert np.allclose(a.log_weight(Y), b.log_weight(Y), rtol=1e-11, atol=1e-11)
    for a, b in (
        (model.scaled(-0.7), dense.scaled(-0.7)),
        (model.shift_diagonal(0.3), dense.shift_diagonal(0.3)),
    ):
        assert a.factors is not None
        assert np.allclose(a.log_weight(X), b.log_weight(X), rtol=1e-11, atol=1e-11)
    assert sz.log_z(model, "exact").log_z == pytest.approx(sz.log_z(dense, "exact").log_z, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, [1.0, 2.0], [[1.0, 1.0]]), "one row of n numbers"),
        ((None, [np.nan], [[1.0, 1.0]]), r"values\[0\] is nan"),
        ((None, [1.0], [[1.0, np.inf]]), r"vectors\[0, 1\] is inf"),
        (([1.0], [1.0], [[1.0, 1.0]]), "lengths must agree"),
        ((None, [1.0], [[1.0, 1.0]], [1.0, 2.0, 3.0]), "diagonal has shape"),
        ((None, [1e200], [[1e80, 1.0]]), "scale the model down"),
    ],
)
def test_bad_factors(arguments, message):
    with pytest.raises(ModelError, match=message):
        sz.Ising.from_factors(*arguments)


def test_factors_of_many_spins_are_never_written_out():
    model = sz.generators.curie_weiss(100_000)
    with pytest.raises(TooLargeError, match="quadrature"):
        _ = model.coupling
    assert "rank 1" in repr(model)


def test_factors_survive_npz(tmp_path):
    model = sz.generators.curie_weiss(100_000, 1.2, 0.1)
    sz.write(model, tmp_path / "cw.npz")
    again = sz.read(tmp_path / "cw.npz")
    assert all(np.array_equal(a, b) for a, b in zip(again.factors, model.factors, strict=True))
    assert np.array_equal(again.field, model.field)


@pytest.mark.parametrize("noise", [0.0, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3])
@pytest.mark.parametrize("rank", [1, 3, 4, 40])
def test_a_block_proves_only_what_the_search_finds(rank, noise, monkeypatch):
    rng = np.random.default_rng(rank)
    values, vectors = random_factors(rng, 150, rank)
    noisy = rng.normal(size=(150, 150))
    A = (vectors.T * values) @ vectors + noise * (noisy + noisy.T) + np.diag(rng.normal(size=150))
    is_hopeless = plus_diagonal._is_hopeless(A, 3, 1e-6, np.random.default_rng(0))
    monkeypatch.setattr(plus_diagonal, "_is_hopeless", lambda *_: False)
    found = find_low_rank(A, 3, 1e-6)
    assert not is_hopeless or found is None
    if noise >= 1e-3 or rank == 40:  # where it is of use
        assert is_hopeless
