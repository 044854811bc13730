"""log Z in torch and JAX: values and derivatives against sums over all states and against their own checks."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import spectralz as sz
from spectralz.errors import InaccurateWarning, ModelError, OptionError
from spectralz.inference import gradients
from spectralz.inference.gradients import LogZ, checked_edges
from tests.reference.states import all_states

EDGES = np.array([(0, 1), (1, 2), (3, 0), (1, 0)])  # one pair twice, one backwards


def summed(field, weights, edges):
    """Return log Z, means and covariance of spins and products by a sum over all states."""
    x = all_states(len(field))
    values = np.hstack([x, x[:, edges[:, 0]] * x[:, edges[:, 1]]]).astype(float)
    log_weight = values @ np.concatenate([field, weights])
    log_z = np.logaddexp.reduce(log_weight)
    p = np.exp(log_weight - log_z)
    mean = p @ values
    return log_z, mean, (values * p[:, None]).T @ values - np.outer(mean, mean)


@pytest.mark.parametrize("options", [{}, {"exclude": ("exact",), "seed": 1}, {"method": "exact"}], ids=str)
def test_values_and_means_are_those_of_all_states(options):
    rng = np.random.default_rng(0)
    fields, weights = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    solver = LogZ(4, EDGES, options.pop("method", "auto"), options)
    with warnings.catch_warnings(action="ignore", category=InaccurateWarning):
        log_z, spins, pairs = solver.values(fields, weights)
    tol = 0.05 if "exclude" in options else 1e-12
    for k in range(3):
        value, mean, _ = summed(fields[k], weights[k], EDGES)
        assert log_z[k] == pytest.approx(value, abs=tol)
        assert np.concatenate([spins[k], pairs[k]]) == pytest.approx(mean, abs=tol)


def test_second_derivatives_are_the_covariance():
    rng = np.random.default_rng(1)
    fields, weights = rng.normal(size=(2, 4)), rng.normal(size=(2, 4))
    u, v = rng.normal(size=(2, 4)), rng.normal(size=(2, 4))
    found = np.concatenate(LogZ(4, EDGES).covariance_times(fields, weights, u, v), axis=-1)
    for k in range(2):
        covariance = summed(fields[k], weights[k], EDGES)[2]
        assert found[k] == pytest.approx(covariance @ np.concatenate([u[k], v[k]]), abs=1e-12)
    with pytest.raises(OptionError, match="at most 20 spins"):
        LogZ(21, np.empty((0, 2), dtype=np.int64)).covariance_times(np.zeros(21), *[np.zeros(0)] * 3)


def test_weights_of_zero_have_means_too():
    edges = np.array([(0, 1), (1, 2)])
    solver = LogZ(3, edges, "exact")
    _, _, pairs = solver.values(np.array([0.5, 0.2, 0.1]), np.array([0.7, 0.0]))
    assert pairs == pytest.approx(summed(np.array([0.5, 0.2, 0.1]), np.array([0.7, 0.0]), edges)[1][3:], abs=1e-12)


def test_large_models_and_batches_are_solved_one_by_one():
    chain = sz.generators.chain(n=25, strength=0.5)
    edges, J = chain.edges()
    log_z, spins, pairs = LogZ(25, edges).values(np.zeros((2, 25)), J)
    assert log_z == pytest.approx([25 * np.log(2) + 24 * np.log(np.cosh(0.5))] * 2, abs=1e-10)
    assert pairs == pytest.approx(np.full((2, 24), np.tanh(0.5)), abs=1e-10)
    assert spins.shape == (2, 25)


def test_an_estimate_warns_once(monkeypatch):
    monkeypatch.setattr(gradients, "_warned", [])
    with pytest.warns(InaccurateWarning, match="estimate here, and so is its gradient") as caught:
        LogZ(3, np.array([(0, 1)]), "mf").values(np.zeros((4, 3)), np.ones(1))
    assert len(caught) == 1


@pytest.mark.parametrize("edges", [[(0, 0)], [(0, 5)], [(-1, 0)], [0, 1], [(0.5, 1)]])
def test_bad_edges_are_a_sentence(edges):
    with pytest.raises(ModelError, match="edges has"):
        checked_edges(edges, 3)


def test_huge_parameters_do_not_overflow_and_nan_is_refused():
    log_z, spins, _ = LogZ(2, np.array([(0, 1)])).values(np.array([1e300, 0.0]), np.array([1e200]))
    assert log_z == pytest.approx(1e300)
    assert np.all(np.isfinite(spins))
    with pytest.raises(ModelError, match="finite"):
        LogZ(2, np.array([(0, 1)])).values(np.array([np.nan, 0.0]), np.ones(1))


def test_neither_library_is_imported_with_the_package():
    code = "import sys, spectralz; print('torch' in sys.modules, 'jax' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["False", "False"]


# ------------------------------------------------------------------------------------------------------------- JAX


@pytest.fixture
def ours():
    pytest.importorskip("jax")
    import spectralz.jax

    return spectralz.jax.log_z


def test_jax_differentiates_and_compiles(ours):
    import jax

    rng = np.random.default_rng(2)
    field, A = rng.normal(size=4).astype(np.float32), rng.normal(size=(4, 4)).astype(np.float32)
    pairs = np.array([(i, j) for i in range(4) for j in range(i + 1, 4)])
    value, mean, covariance = summed(field, (A + A.T)[pairs[:, 0], pairs[:, 1]], pairs)
    assert ours(field, A).dtype == np.float32
    assert float(ours(field, A)) == pytest.approx(value + np.trace(A), rel=1e-6)
    assert float(jax.jit(ours)(field, A)) == pytest.approx(value + np.trace(A), rel=1e-6)
    by_field, by_coupling = jax.jit(jax.grad(ours, argnums=(0, 1)))(field, A)
    assert np.asarray(by_field) == pytest.approx(mean[:4], abs=1e-6)
    assert np.asarray(by_coupling)[pairs[:, 0], pairs[:, 1]] == pytest.approx(mean[4:], abs=1e-6)
    assert pytest.approx(np.asarray(by_coupling)) == np.asarray(by_coupling).T
    assert np.diag(by_coupling) == pytest.approx(np.ones(4))
    hessian = jax.jacrev(jax.grad(ours))(field, A)
    assert np.asarray(hessian) == pytest.approx(covariance[:4, :4], abs=1e-6)
    assert not jax.config.jax_enable_x64


def test_jax_maps_over_models(ours):
    import jax

    rng = np.random.default_rng(3)
    fields, J = rng.normal(size=(5, 3)).astype(np.float32), np.float32([0.5, -0.3])

    def log_z(field, weights):
        return ours(field, edges=[(0, 1), (1, 2)], weights=weights)

    wanted = np.array([float(log_z(field, J)) for field in fields])
    assert np.asarray(log_z(fields, J)) == pytest.approx(wanted, rel=1e-6)
    assert np.asarray(jax.vmap(log_z, in_axes=(0, None))(fields, J)) == pytest.approx(wanted, rel=1e-6)
    each = np.array([jax.grad(log_z, argnums=1)(field, J) for field in fields])
    together = jax.jit(jax.vmap(jax.grad(log_z, argnums=1), in_axes=(0, None)))(fields, J)
    assert np.asarray(together) == pytest.approx(each, abs=1e-6)
    summed_up = jax.grad(lambda J: log_z(fields, J).sum())(J)
    assert np.asarray(summed_up) == pytest.approx(each.sum(axis=0), abs=1e-5)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((np.zeros(3, np.float32),), {}, "exactly one"),
        ((np.zeros(3, np.float32), np.zeros((2, 2))), {}, r"\(..., 3, 3\)"),
        ((np.zeros(3, int), np.zeros((3, 3))), {}, "real fields"),
        ((np.zeros(3, np.float32),), {"edges": [(0, 1)], "weights": np.zeros(2)}, "each of 1 edges"),
        ((np.zeros((4, 3), np.float32), np.zeros((2, 3, 3))), {}, r"models of shape \(4,\) and couplings for \(2,\)"),
        ((np.float32([0.0, np.nan]), np.zeros((2, 2))), {}, "not a finite number"),
        ((np.zeros(2, np.float32), np.float32([[0, np.inf], [0, 0]])), {}, "not a finite number"),
    ],
)
def test_bad_arrays_are_a_sentence(ours, arguments, options, words):
    import jax

    with pytest.raises(ModelError, match=words):
        ours(*arguments, **options)
    with pytest.raises(ModelError, match=words):  # nor does JAX wrap it on the way to a gradient
        jax.grad(lambda field: ours(field, *arguments[1:], **options).sum(), allow_int=True)(arguments[0])


@pytest.mark.parametrize("n", [0, 1, 2, 25])
def test_models_without_edges_have_values_and_gradients(ours, n):
    import jax

    field = np.linspace(-1.0, 2.0, n).astype(np.float32)
    for options in ({"edges": [], "weights": np.zeros(0, np.float32)}, {"coupling": np.zeros((n, n), np.float32)}):
        value, slope = jax.value_and_grad(lambda h, options=options: ours(h, **options))(field)
        assert float(value) == pytest.approx(float(np.log(2.0 * np.cosh(field)).sum()), rel=1e-6)
        assert np.asarray(slope) == pytest.approx(np.tanh(field), abs=1e-6)
    assert ours(np.zeros((0, n), np.float32), edges=[], weights=np.zeros(0, np.float32)).shape == (0,)


# ----------------------------------------------------------------------------------------------------------- torch


def test_torch_agrees_with_its_own_checks():
    torch = pytest.importorskip("torch", reason="torch is not part of the extra dev")
    from spectralz.torch import log_z

    torch.manual_seed(0)
    field = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    A = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(len(EDGES), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(log_z, (field, A))
    assert torch.autograd.gradgradcheck(log_z, (field, A))

    def of_edges(field, weights):
        return log_z(field, edges=EDGES, weights=weights)

    assert torch.autograd.gradcheck(of_edges, (field, weights))
    assert torch.autograd.gradgradcheck(of_edges, (field, weights))
    single = log_z(field.detach().float(), A.detach().float())
    assert single.dtype == torch.float32
    assert single.numpy() == pytest.approx(log_z(field, A).detach().numpy(), rel=1e-5)


def test_torch_has_no_second_derivatives_of_large_models():
    torch = pytest.importorskip("torch", reason="torch is not part of the extra dev")
    from spectralz.torch import log_z

    field = torch.zeros(21, requires_grad=True)
    value = log_z(field, edges=[(0, 1)], weights=torch.ones(1))
    (slope,) = torch.autograd.grad(value, field, create_graph=True)
    with pytest.raises(OptionError, match="at most 20 spins"):
        slope.sum().backward()
    with pytest.raises(ModelError, match="exactly one"):
        log_z(field)
