"""Algorithm 2 against its literal transcription, and its bound against the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

import spectralz as sz
from spectralz._support.progress import listening
from spectralz.kernels import eigenspaces
from spectralz.kernels.low_rank import quantized_dp
from spectralz.methods import spectral
from tests.reference import algorithm_2, states

DIAGONALS = ["sdp", "zero", "max_eigenvalue", "diagonally_dominant"]


def small(seed, n=6, strength=0.7, field=True, sparse=False):
    model = sz.generators.erdos_renyi(n, 0.8, strength, seed, field_strength=1.0 if field else 0.0)
    A = model.coupling.toarray()
    return sz.Ising(model.field, sp.csr_array(A) if sparse else A, offset=0.5)


@pytest.mark.parametrize("diagonal", DIAGONALS)
@pytest.mark.parametrize("field", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("strength", [0.1, 3.0])
def test_equals_the_literal_transcription(diagonal, field, sparse, strength):
    model = small(3, strength=strength, field=field, sparse=sparse)
    result = sz.log_z(model, "spectral", diagonal=diagonal)
    wanted = algorithm_2.log_z_hat(model, result.details["diagonal"])
    assert result.log_z == pytest.approx(wanted, abs=1e-9 * max(1, abs(wanted)))
    assert result.details["factor_error"] < 1e-9


@pytest.mark.parametrize("diagonal", ["sdp", "zero"])
def test_with_the_programme_equals_the_literal_transcription(diagonal):
    model = small(4, n=5, strength=1.0)
    result = sz.log_z(model, "spectral", diagonal=diagonal, factor="dp")
    wanted = algorithm_2.log_z_hat(model, result.details["diagonal"], quantised=True)
    assert result.log_z == pytest.approx(wanted, abs=1e-9)
    exact = sz.log_z(model, "spectral", diagonal=diagonal)
    assert result.log_z != exact.log_z
    assert abs(result.log_z - exact.log_z) <= result.details["factor_error"]


def test_the_choices_of_the_diagonal_are_the_papers():
    model = sz.Ising([0.3, -0.2, 0.5], [[1.0, 0.5, -0.25], [0.5, 0.0, 2.0], [-0.25, 2.0, -3.0]])
    A = states.dense(model.absorb_field())
    own = np.diag(A)
    off = A - np.diag(own)
    D = {name: sz.log_z(model, "spectral", diagonal=name).details["diagonal"] + own for name in DIAGONALS}
    assert np.array_equal(D["zero"], np.zeros(4))
    assert np.allclose(D["max_eigenvalue"], -np.linalg.eigvalsh(off)[-1])
    assert np.allclose(D["diagonally_dominant"], -np.abs(off).sum(axis=1))
    assert np.allclose(D["sdp"], sz.diagonal_sdp(off, 1e-6).diagonal)
    assert D["sdp"].sum() > max(D["max_eigenvalue"].sum(), D["diagonally_dominant"].sum())


def test_ones_own_diagonal():
    model = small(5)
    base = sz.log_z(model, "spectral")
    again = sz.log_z(model, "spectral", diagonal=base.details["diagonal"].tolist())
    assert again.log_z == pytest.approx(base.log_z, abs=1e-12)
    assert again.upper == pytest.approx(base.upper, abs=1e-6)
    assert again.details["gap"] is None
    lower = sz.log_z(model, "spectral", diagonal=base.details["diagonal"] - 0.1)
    assert lower.upper == pytest.approx(base.upper + 0.1 * (model.n + 1), abs=1e-6)


@pytest.mark.parametrize("diagonal", DIAGONALS)
@pytest.mark.parametrize("seed", range(6))
def test_the_upper_bound_is_one(diagonal, seed):
    model = small(seed, strength=[0.05, 1.0, 20.0][seed % 3], field=seed % 2 == 0)
    truth = states.solve(model)[0]
    result = sz.log_z(model, "spectral", diagonal=diagonal)
    if diagonal == "zero":
        assert result.upper is None
        assert "could not be proven" in result.status
        return
    assert result.upper >= truth
    assert result.log_z <= result.upper
    D = result.details["diagonal"]
    wanted = model.offset + model.n * math.log(2) - D.sum()
    assert result.upper == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def test_the_lower_bound_is_that_of_mean_field():
    model = small(2, strength=1.0)
    result = sz.log_z(model, "spectral", restarts=6)
    assert result.lower == sz.log_z(model, "mf", restarts=6).lower
    assert result.lower <= states.solve(model)[0]
    assert sz.log_z(model, "spectral", restarts=0).lower is None
    far_off = sz.log_z(sz.Ising(None, np.ones((8, 8)) - np.eye(8)), "spectral")  # two states have all the weight
    assert far_off.log_z < far_off.lower
    assert "below the proven lower bound" in far_off.status


def test_no_field_no_extra_spin():
    with_field, without = small(1), small(1, field=False)
    assert len(sz.log_z(with_field, "spectral").details["diagonal"]) == with_field.n + 1
    assert len(sz.log_z(without, "spectral").details["diagonal"]) == without.n


@pytest.mark.parametrize("n", [0, 1, 5])
def test_nothing_coupled(n):
    result = sz.log_z(sz.Ising(None, np.diag(np.arange(n) * 1.0), offset=2.0), "spectral")
    assert result.kind is sz.Kind.EXACT
    assert result.log_z == pytest.approx(2.0 + n * math.log(2) + sum(range(n)), abs=1e-14)
    assert result.lower <= result.log_z <= result.upper


@pytest.mark.parametrize("theta", [1e-8, 0.7, 30.0, 1e4])
def test_one_spin_in_a_field_is_nearly_exact(theta):
    """Rank 1 after absorption: nothing is lost but what the SDP's gap leaves over."""
    result = sz.log_z(sz.Ising([theta], [[0.0]]), "spectral", tol=1e-12)
    assert result.log_z == pytest.approx(theta + math.log1p(math.exp(-2 * theta)), abs=1e-9 * max(1.0, theta))


def test_components_and_copies_add_up():
    A, B = small(1, field=False), small(2, field=False)
    parts = [sz.log_z(model, "spectral", tol=1e-10) for model in (A, B, A)]
    whole = sz.Ising(None, sp.block_diag([sp.csr_array(part.coupling) for part in (A, B, A)]))
    found = sz.log_z(whole, "spectral", tol=1e-10)
    assert found.log_z == pytest.approx(sum(part.log_z for part in parts) - 1.5, abs=1e-7)
    assert found.upper == pytest.approx(sum(part.upper for part in parts) - 1.5, abs=1e-7)


@pytest.mark.parametrize("diagonal", ["max_eigenvalue", "diagonally_dominant", "zero"])
def test_an_isolated_spin_counts_log_two(diagonal):
    model = small(7, field=False)
    more = sz.Ising(None, sp.block_diag([sp.csr_array(model.coupling), sp.csr_array((2, 2))]), model.offset)
    one, other = (sz.log_z(m, "spectral", diagonal=diagonal) for m in (model, more))
    assert other.log_z == pytest.approx(one.log_z + 2 * math.log(2), abs=1e-10)


@pytest.mark.parametrize("scale", [1e-12, 1e3, 1e6, pytest.param(1e12, marks=pytest.mark.slow)])
def test_extreme_couplings_give_finite_numbers(scale):
    model = small(8, n=7, strength=scale)
    truth = states.solve(model)[0]
    result = sz.log_z(model, "spectral")
    wanted = algorithm_2.log_z_hat(model, result.details["diagonal"])
    assert abs(result.log_z - wanted) <= result.details["factor_error"] + 1e-9 * max(1.0, abs(wanted))
    assert result.upper >= truth - 1e-12 * abs(truth)


def test_where_the_quadrature_loses_its_digits_the_programme_takes_over():
    v = np.ones(21) / math.sqrt(21)
    logs, errors = spectral.Spectral()._factors(np.array([-1000.0, -1.0]), np.stack([v, v]))
    # 21 spins sum to an odd number: at least 1 in size, exp(-1000 / 21) times the share of states with sum +-1
    wanted = math.log(2 * math.comb(21, 10) / 2**21) - 1000 / 21
    assert logs[0] == pytest.approx(wanted, abs=1e-3)
    assert math.isfinite(errors[0])
    assert errors[1] < 1e-12


def test_the_programme_with_and_without_logarithms_agree(monkeypatch):
    rng = np.random.default_rng(0)
    for sign in (1.0, -1.0):
        u = rng.normal(size=30) * 0.4
        plain = quantized_dp.log_uniform_expectation(u, sign, 0.01)
        with monkeypatch.context() as patch:
            patch.setattr(quantized_dp, "MOST_SPINS_WITHOUT_LOGS", 0)
            logs = quantized_dp.log_uniform_expectation(u, sign, 0.01)
        assert plain[0] == pytest.approx(logs[0], abs=1e-11)
        assert plain[1] == logs[1]


@pytest.mark.slow
def test_the_errors_of_the_paper_settings():
    """Complete graph of 20 spins: mean errors over 15 models, as an independent implementation measured them."""
    for strength, wanted in ((0.1, 0.62), (1.0, 2.3)):
        errors = []
        for seed in range(15):
            model = sz.generators.complete(20, strength, seed)
            errors.append(abs(sz.log_z(model, "spectral").log_z - sz.log_z(model, "exact").log_z))
        assert np.mean(errors) == pytest.approx(wanted, rel=0.35)


def degenerate_models():
    """Models with equal eigenvalues: every pair alike, without and with a field; a torus."""
    side = 6
    right = [(side * i + j, side * i + (j + 1) % side) for i in range(side) for j in range(side)]
    down = [(side * i + j, side * ((i + 1) % side) + j) for i in range(side) for j in range(side)]
    return {
        "Curie-Weiss": sz.generators.curie_weiss(200, 1.2),
        "Curie-Weiss in a field": sz.generators.curie_weiss(60, 1.1, 0.05),
        "torus": sz.Ising.from_edges(side**2, right + down, 0.44),
    }


def turned_eigh(rng, eigh=np.linalg.eigh):
    """Return an eigh that mixes eigenvectors with equal values at random, as another library may."""

    def solve(A):
        values, vectors = eigh(A)
        ends = np.flatnonzero(np.diff(values) > 1e-9 * np.abs(values).max()) + 1
        spaces = np.split(vectors, ends, axis=1)
        turned = [V @ np.linalg.qr(rng.normal(size=(V.shape[1], V.shape[1])))[0] for V in spaces]
        return values, np.hstack(turned)

    return solve


@pytest.mark.parametrize("name", degenerate_models())
def test_the_basis_of_equal_eigenvalues_is_always_the_same(name, monkeypatch):
    model = degenerate_models()[name]
    wanted = sz.log_z(model, "spectral")
    plain = []
    for seed in range(3):
        monkeypatch.setattr(np.linalg, "eigh", turned_eigh(np.random.default_rng(seed)))
        found = sz.log_z(model, "spectral")
        assert found.log_z == pytest.approx(wanted.log_z, abs=1e-9)
        assert np.allclose(found.details["eigenvalues"], wanted.details["eigenvalues"], atol=1e-8)
        with monkeypatch.context() as patch:
            patch.setattr(eigenspaces, "canonical_basis", lambda values, vectors: (values, vectors))
            plain.append(sz.log_z(model, "spectral").log_z)
    assert np.ptp(plain) > 1e-5  # it would make a difference


def test_a_canonical_basis_is_one_of_the_same_spaces():
    rng = np.random.default_rng(4)
    values = np.array([-2.0, -2.0, -1.0, -1e-9, 0.0])
    V = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    found, W = eigenspaces.canonical_basis(values, V)
    assert np.allclose(W.T @ W, np.eye(5), atol=1e-14)
    assert np.allclose((W * found) @ W.T, (V * values) @ V.T, atol=1e-8)
    assert np.array_equal(W[:, 2], V[:, 2])
    assert found.sum() == pytest.approx(values.sum(), abs=1e-15)
    assert found == pytest.approx(((W.T @ V) ** 2) @ values, abs=1e-13)
    # The first vector of a space is the projection of the coordinate that lies best in it.
    space = V[:, :2]
    best = int(np.argmax((space**2).sum(axis=1)))
    projected = space @ space[best]
    assert abs(W[:, 0] @ projected) == pytest.approx(np.linalg.norm(projected), rel=1e-12)


def test_among_equal_coordinates_the_first_is_taken():
    """The space of vectors that add up to zero: every coordinate lies in it as well as any other."""
    n = 6
    values, vectors = np.linalg.eigh(np.eye(n) - 1.0 / n)
    _, W = eigenspaces.canonical_basis(values, vectors)
    for k in range(n - 1):
        wanted = np.zeros(n)
        wanted[k], wanted[k + 1 :] = 1.0, -1.0 / (n - 1 - k)
        assert np.allclose(np.abs(W[:, 1 + k] @ wanted), np.linalg.norm(wanted), atol=1e-12)


def test_progress_is_reported():
    seen = set()
    with listening(lambda task, fraction: seen.add(task)):
        sz.log_z(sz.generators.complete(30, 1.0, seed=0), "spectral")
    tasks = {task for task in seen if not task.startswith("compiling")}
    assert tasks == {"solving the SDP", "decomposing", "multiplying factors", "sweeping"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"diagonal": "best"}, "must be one of"),
        ({"diagonal": [1.0, 2.0]}, "this model needs 7"),
        ({"diagonal": [1.0, math.inf]}, "finite numbers"),
        ({"diagonal": [[1.0]]}, "finite numbers"),
        ({"diagonal": 3.0}, "finite numbers"),
        ({"factor": "exact"}, "must be one of"),
        ({"tol": 2.0}, "tol"),
        ({"max_memory": "100 KB"}, None),
    ],
)
def test_bad_options_are_refused(options, words):
    if words is None:
        with pytest.raises(sz.errors.TooLargeError, match="use method 'sdp'"):
            sz.log_z(sz.generators.complete(100, 1.0, seed=0), "spectral", **options)
    else:
        with pytest.raises(sz.errors.OptionError, match=words):
            sz.log_z(small(1), "spectral", **options)


@pytest.mark.parametrize("scale", [1e16, 1e20, 1e60, 1e150])
@pytest.mark.parametrize("diagonal", ["sdp", "zero"])
def test_no_weight_takes_forever(scale, diagonal):
    """Nodes grow as the root of the weight; beyond a million the program takes over."""
    triangle = np.array([[0, 1, -1], [1, 0, 1], [-1, 1, 0]]) * scale
    model = sz.Ising([scale, 0.0, 0.0], triangle)
    result = sz.log_z(model, "spectral", diagonal=diagonal)
    assert math.isfinite(result.log_z)
    if diagonal == "sdp":
        assert result.upper >= states.solve(model)[0] * (1 - 1e-15)
        assert result.lower <= states.solve(model)[0]
