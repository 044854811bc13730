"""The diagonal SDP and spectral in JAX, on JAX's CPU: against the compiled code, numpy, and planted errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import spectralz as sz
from spectralz._support import devices, extras
from spectralz._support.devices import computing_on, using_device
from spectralz.kernels.low_rank.single_directions import log_expectations
from spectralz.kernels.sdp.certificate import is_dominated
from spectralz.parts.sdp import diagonal as sdp
from tests.helpers import heard, quadratic_on_spheres

jax = pytest.importorskip("jax", reason="JAX comes with the extra [gpu]")

# One size for nearly everything: JAX compiles for each.
N = 40
DEVICE = jax.devices("cpu")[0]


@pytest.fixture(autouse=True)
def taken_for_a_gpu(monkeypatch):
    monkeypatch.setattr(devices, "_gpus", lambda jax: jax.devices("cpu"))


def random_coupling(seed, n=N):
    upper = np.triu(np.random.default_rng(seed).uniform(-1.0, 1.0, (n, n)), 1)
    return upper + upper.T


def counted(monkeypatch, module, name):
    """Return a list that grows by one at each call of a function of a module or class."""
    calls, function = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *args, **kwargs: calls.append(name) or function(*args, **kwargs))
    return calls


# --- the diagonal SDP ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_sdp_is_solved_as_by_compiled_code(monkeypatch):
    from spectralz.kernels.device.low_rank import DeviceSolver

    calls = counted(monkeypatch, DeviceSolver, "_descend")
    tol = 1e-7
    for seed in range(3):
        A = random_coupling(seed)
        here, there = (sz.diagonal_sdp(A, tol, device=device) for device in ("cpu", "gpu"))
        total = -here.lower
        assert there.status.converged
        assert there.gap <= tol
        assert there.lower == pytest.approx(here.lower, abs=tol * total)
        assert there.upper >= here.lower
        assert here.upper >= there.lower
        assert np.linalg.eigvalsh(A + np.diag(there.diagonal))[-1] <= 1e-14 * N
    assert calls


@pytest.mark.slow
def test_repelling_pairs_have_a_known_solution():
    """Here steps that are not damped would end in a minimum: all rows of V equal."""
    found = sz.diagonal_sdp(np.eye(N) - 1.0, device="gpu")
    assert found.status.converged
    assert found.diagonal == pytest.approx(-1.0, abs=1e-7)


@pytest.mark.slow
def test_the_method_sdp_has_the_device_and_progress():
    model = sz.generators.complete(N - 1, 1.0, seed=0)
    with heard() as seen:
        there = sz.log_z(model, "sdp", device="gpu")
    assert there.upper == pytest.approx(sz.log_z(model, "sdp", device="cpu").upper, rel=2e-6)
    assert {task for task, _ in seen if not task.startswith("compiling")} == {"solving the SDP"}


def test_the_start_is_close_to_the_maximum():
    from spectralz.kernels.device.low_rank import DeviceSolver

    A = random_coupling(0)
    best = -sz.diagonal_sdp(A, device="cpu").upper
    with computing_on(DEVICE):
        solver = DeviceSolver(A, 10, np.random.default_rng(0))
        assert 0.97 * best < solver.point.value < best
        assert solver.point.value == pytest.approx(np.sum(A * np.asarray(solver.point.V @ solver.point.V.T)), rel=1e-12)
        assert np.linalg.norm(np.asarray(solver.point.V), axis=1) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("radius", [0.1, 0.5, 1e3])
@pytest.mark.parametrize("most", [1, 2, 40])
def test_conjugate_gradients_are_those_of_the_compiled_code(radius, most):
    from spectralz.kernels.device.low_rank import conjugate_gradients
    from spectralz.kernels.sdp.low_rank import _conjugate_gradients

    # With directions of the wrong curvature, too.
    C, V, y, gradient = quadratic_on_spheres(1.0 if most > 1 else -8.0)
    wanted = _conjugate_gradients(C, V, y, gradient, radius, most, 1e-12)
    with computing_on(DEVICE):
        found = conjugate_gradients(C, V, y, gradient, radius, most, 1e-12)
    assert np.asarray(found[0]) == pytest.approx(wanted[0], rel=1e-8, abs=1e-10)
    assert [float(number) for number in found[1:3]] == pytest.approx(wanted[1:3], rel=1e-9)
    assert bool(found[3]) == wanted[3]


@pytest.mark.slow
def test_a_start_too_narrow_is_widened(monkeypatch):
    from spectralz.kernels.device.low_rank import DeviceSolver

    monkeypatch.setattr(sdp, "_columns", lambda C: 2)
    calls = counted(monkeypatch, DeviceSolver, "escape")
    A = random_coupling(0)
    found = sz.diagonal_sdp(A, 1e-5, device="gpu")
    assert calls
    assert found.status.converged
    # Beyond some size the eigenvectors come from products on the device.
    import spectralz.kernels.device.low_rank as device_low_rank

    with computing_on(DEVICE):
        solver = DeviceSolver(A, 2, np.random.default_rng(0))
        roots = np.linspace(0.5, 1.5, N)
        monkeypatch.setattr(device_low_rank, "MOST_SPINS_DECOMPOSED", 0)
        assert solver._scaled(roots) @ np.eye(N)[3] == pytest.approx(A[3] * roots * roots[3], abs=1e-15)


# --- its certificate -----------------------------------------------------------------------------------------------


def test_the_certificate_proves_what_holds_and_nothing_else():
    C = random_coupling(5)
    y = np.abs(C).sum(axis=1) + 0.01
    top = np.linalg.eigvalsh(C / np.sqrt(np.outer(y, y)))[-1]
    with computing_on(DEVICE):
        held = jax.numpy.asarray(C)
        assert is_dominated(held, y * top * (1 + 1e-10))
        assert not is_dominated(held, y * top)  # true, perhaps, but beyond proof
        assert not is_dominated(held, y * top * (1 - 1e-12))
        for bad in (0.0, -1.0, math.nan, math.inf, 1e-320):
            assert not is_dominated(held, np.r_[y[1:], bad])


@pytest.mark.parametrize("size", [1, 7, N - 1, N, 2 * N])
def test_a_residual_counts_every_row_once(size, monkeypatch):
    from spectralz.kernels.device import certificate

    C, roots, wrong = random_coupling(5), np.linspace(0.5, 1.5, N), np.tril(random_coupling(6))
    M = -C * np.outer(roots, roots)
    np.fill_diagonal(M, 3.0)
    monkeypatch.setattr(certificate, "ROWS_AT_A_TIME", size)
    monkeypatch.setattr(certificate, "_factor_and_residual", certificate._factor_and_residual.__wrapped__)
    monkeypatch.setattr(jax.lax.linalg, "cholesky", lambda M, **options: jax.numpy.asarray(wrong))
    with computing_on(DEVICE):
        squares, residual = certificate.factor_and_residual(jax.numpy.asarray(C), roots, 3.0)
    assert squares == pytest.approx(np.sum(wrong**2), rel=1e-14)
    assert residual == pytest.approx(np.linalg.norm(M - wrong @ wrong.T), rel=1e-13)


@pytest.mark.parametrize("planted", [pytest.param(1e-11, marks=pytest.mark.slow), -1e-11, math.nan])
def test_a_factor_that_is_slightly_wrong_proves_nothing(planted, monkeypatch):
    """A library may factorize as it likes: what it gives is multiplied out."""
    from spectralz.kernels.device import certificate

    C = random_coupling(5)
    y = 2.0 * np.abs(C).sum(axis=1)
    cholesky = jax.lax.linalg.cholesky
    monkeypatch.setattr(certificate, "_factor_and_residual", certificate._factor_and_residual.__wrapped__)
    with computing_on(DEVICE):
        held = jax.numpy.asarray(C)
        assert is_dominated(held, y)
        monkeypatch.setattr(jax.lax.linalg, "cholesky", lambda M, **options: cholesky(M, **options) * (1.0 + planted))
        assert not is_dominated(held, y)


def test_a_given_diagonal_is_proven_on_the_device(monkeypatch):
    from spectralz.kernels.device import certificate

    calls = counted(monkeypatch, certificate, "factor_and_residual")
    A = random_coupling(3)
    storage = sz.Ising(None, A).storage
    top = np.linalg.eigvalsh(A)[-1]
    with using_device("gpu"):
        assert sdp.proven_excess(storage, np.full(N, -2 * top)) == 0.0
        assert 0.0 < sdp.proven_excess(storage, np.full(N, -top)) < 1e-9
        assert sdp.proven_excess(storage, np.full(N, -0.99 * top)) is None
    assert calls


# --- spectral ------------------------------------------------------------------------------------------------------


def directions():
    vectors = np.linalg.qr(np.random.default_rng(0).normal(size=(N, N)))[0]
    values = np.r_[-np.geomspace(1e-6, 3e3, N - 3), 0.0, 0.7, -1e14]
    return values, vectors


def test_the_factors_are_those_of_the_compiled_code():
    values, vectors = directions()
    with using_device("cpu"):
        wanted, bounds = log_expectations(values, vectors)
    with using_device("gpu"):
        found, errors = log_expectations(values, vectors)
    assert np.isinf(errors[-1])  # too many nodes
    assert np.all(np.isfinite(errors[:-1]))
    assert found[:-1] == pytest.approx(wanted[:-1], abs=1e-13)
    assert np.all(np.abs(found - wanted)[:-1] <= errors[:-1])
    assert errors[:-1] == pytest.approx(bounds[:-1], rel=1e-9)


@pytest.mark.parametrize(("term", "planted"), [(0, 1e-12), (1, 1e-8), (3, 1e-4)])
def test_a_wrong_cosine_is_seen(term, planted, monkeypatch):
    from spectralz.kernels.device import single_directions

    values, vectors = directions()
    with using_device("cpu"):
        wanted, _ = log_expectations(values, vectors)
    series = list(single_directions.SERIES)
    series[-1 - term] *= 1.0 + planted
    monkeypatch.setattr(single_directions, "SERIES", series)
    monkeypatch.setattr(single_directions, "_lines", single_directions._lines.__wrapped__)
    with using_device("gpu"):
        found, errors = log_expectations(values, vectors)
    assert np.any(np.abs(found - wanted)[:-1] > errors[:-1])


def test_cosines_of_half_turns_keep_their_digits():
    from spectralz.kernels.device.single_directions import cosine_of_half_turns

    c = np.r_[0.0, 0.5, 1.0, 1.5, -0.25, 1e6 + 0.25, 3e5 + 1.0, np.linspace(-3.0, 3.0, 200)]
    with computing_on(DEVICE):
        found = np.asarray(cosine_of_half_turns(jax.numpy.asarray(c)))
    turns = c - 2.0 * np.round(c / 2.0)  # exact
    assert found == pytest.approx(np.cos(np.pi * turns), abs=5e-16)
    assert found[:4].tolist() == pytest.approx([1.0, 0.0, -1.0, 0.0], abs=1e-16)


def test_eigenvectors_are_written_over_the_matrix(monkeypatch):
    from spectralz.kernels.device import linear_algebra

    monkeypatch.setattr(linear_algebra, "ROWS_AT_A_TIME", 16)  # the last rows overlap
    A = random_coupling(1)
    room = A.copy()
    values, vectors = linear_algebra.eigenpairs_in_place(room, DEVICE)
    assert np.shares_memory(vectors, room)
    assert values == pytest.approx(np.linalg.eigvalsh(A), abs=1e-12)
    assert (vectors * values) @ vectors.T == pytest.approx(A, abs=1e-12)
    assert linear_algebra.eigenvalues(A, DEVICE) == pytest.approx(values, abs=1e-12)


def test_other_diagonals_are_computed_on_the_device(monkeypatch):
    from spectralz.kernels.device import linear_algebra

    calls = counted(monkeypatch, linear_algebra, "eigenvalues")
    model = sz.Ising(None, random_coupling(2))
    options = {"diagonal": "max_eigenvalue", "restarts": 0}
    here, there = (sz.log_z(model, "spectral", **options, device=device) for device in ("cpu", "gpu"))
    assert there.log_z == pytest.approx(here.log_z, abs=1e-9)
    assert calls


def test_spectral_is_the_same_with_the_same_diagonal():
    model = sz.generators.complete(N - 1, 0.5, seed=0)
    diagonal = sz.log_z(model, "spectral", device="cpu").details["diagonal"].tolist()
    here, there = (sz.log_z(model, "spectral", diagonal=diagonal, device=device) for device in ("cpu", "gpu"))
    assert there.log_z == pytest.approx(here.log_z, abs=1e-9)
    assert there.details["log_factors"] == pytest.approx(here.details["log_factors"], abs=1e-9)
    # The proof on the device gives away twice as much.
    assert there.upper == pytest.approx(here.upper, abs=1e-9 * here.upper)
    # So few spins are taken one after the other, as by compiled code.
    assert there.lower == pytest.approx(here.lower, abs=1e-6)
    assert there.details["factor_error"] < 1e-9


def test_spectral_counts_the_memory_that_it_takes_here():
    model = sz.generators.complete(N - 1, 0.5, seed=0)
    options = {"max_memory": "50 KB", "restarts": 0}  # 2 matrices take 26 KB, 5 take 64 KB
    assert sz.log_z(model, "spectral", device="gpu", **options).status.converged
    with pytest.raises(sz.errors.TooLargeError, match="use method 'sdp'"):
        sz.log_z(model, "spectral", device="cpu", **options)


# --- what is refused -----------------------------------------------------------------------------------------------


def ask_for_a_gpu():
    yield lambda: sz.diagonal_sdp(random_coupling(0), device="gpu")
    for method in ("sdp", "spectral"):
        yield lambda method=method: sz.log_z(sz.generators.complete(5, 0.5, seed=0), method, device="gpu")


def test_a_gpu_that_is_not_there_is_missed(monkeypatch):
    monkeypatch.setattr(devices, "_gpus", lambda jax: [])
    for ask in ask_for_a_gpu():
        with pytest.raises(sz.errors.DeviceError, match=r"JAX .* finds only: cpu"):
            ask()


def test_without_jax_the_extra_is_named(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(extras, "import_module", missing)
    for ask in ask_for_a_gpu():
        with pytest.raises(sz.errors.MissingDependencyError, match=r"spectralz\[gpu\]"):
            ask()


def test_an_unknown_device_is_refused():
    with pytest.raises(sz.errors.OptionError, match="device"):
        sz.diagonal_sdp(random_coupling(0), device="tpu")


def test_what_the_device_cannot_hold_is_refused_before_work(monkeypatch):
    monkeypatch.setattr(devices, "memory_of", lambda device: 1e4)
    with pytest.raises(sz.errors.DeviceError, match=r"the SDP of 40 spins needs .* left; use device='cpu'"):
        sz.diagonal_sdp(random_coupling(0), device="gpu")
    model = sz.generators.complete(N - 1, 0.5, seed=0)
    with pytest.raises(sz.errors.DeviceError, match=r"needs .* left"):
        sz.log_z(model, "spectral", device="gpu")


def test_small_matrices_stay_where_they_are(monkeypatch):
    from spectralz.kernels.device.low_rank import DeviceSolver

    calls = counted(monkeypatch, DeviceSolver, "__init__")
    assert sz.diagonal_sdp(random_coupling(0, n=10), device="gpu").status.converged
    assert not calls


@pytest.mark.slow
def test_the_benchmark_runs(capsys):
    from benchmarks import device

    more = ["--cpu-up-to", str(N), "--any-device"]
    device.main(["sdp", "--sizes", str(N), *more])
    device.main(["spectral", "--sizes", str(N - 1), *more])  # and one spin for the field
    out = capsys.readouterr().out
    assert out.count(f"| {N} |") == 1
    assert out.count(f"| {N - 1} |") == 1
    assert "| yes |" in out
    with pytest.raises(SystemExit):
        device.main(["unheard-of"])
