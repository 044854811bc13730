"""Models of variables 0 and 1: what their conversion rounds is part of every enclosure.

The oracle adds up the log-weights of the 0/1 form as whole numbers, without the Ising model.
"""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.sparse as sp

import spectralz as sz
from spectralz.kernels.error_free import row_sums
from tests.reference.states import log_z_of_binary

SCALES = [1.0, 1e3, 1e6, 1e12]
# Methods that prove bounds, with options that keep them quick.
PROVING = {
    "exact": {},
    "quadrature": {},
    "bp": {},
    "mf": {},
    "trw": {"max_iter": 20},
    "wmbe": {"ibound": 2, "max_iter": 2},
    "mbe": {"ibound": 2},
    "sdp": {},
    "convex_mf": {},
    "states": {"population": 50},
}


def is_enclosed(truth, estimate):
    return (estimate.lower is None or estimate.lower <= truth) and (estimate.upper is None or truth <= estimate.upper)


def numbers(rng, scale, *shape):
    return scale * rng.normal(size=shape) * 10.0 ** rng.uniform(-3.0, 0.0, size=shape)


def refuses(model, method, options):
    try:
        return None, sz.log_z(model, method, **options)
    except sz.SpectralzError as error:
        return error, None


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("seed", range(4))
def test_every_enclosure_of_a_machine_holds_its_truth(scale, seed):
    rng = np.random.default_rng([seed, int(np.log10(scale))])
    W, b, c = rng.normal(size=(1, 4)), scale * rng.normal(size=1), scale * rng.normal(size=4)  # of rank 2
    if seed % 2:  # then log Z is small, and the constant is not
        b, c = -np.abs(b), -np.abs(c)
    full = np.zeros((5, 5))
    full[:1, 1:] = W
    truth = log_z_of_binary([*b, *c], full)
    found = {name: refuses(sz.RBM(W, b, c), name, options)[1] for name, options in PROVING.items()}
    assert found["exact"] is not None
    assert found["quadrature"] is not None
    assert [name for name, estimate in found.items() if estimate and not is_enclosed(truth, estimate)] == []


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("beta", [1.0, 0.3])
def test_every_enclosure_of_a_qubo_holds_its_truth(scale, seed, beta):
    rng = np.random.default_rng([seed, int(np.log10(scale)), 1])
    Q = np.triu(numbers(rng, scale, 5, 5))
    truth = log_z_of_binary(-np.diag(Q), -Q, beta=beta)
    found = {name: refuses(sz.from_qubo(Q, beta=beta), name, options)[1] for name, options in PROVING.items()}
    assert found["exact"] is not None
    assert [name for name, estimate in found.items() if estimate and not is_enclosed(truth, estimate)] == []


@pytest.mark.parametrize("form", ["matrix", "sparse", "dictionary"])
@pytest.mark.parametrize("seed", range(4))
def test_entries_that_add_up_are_part_of_it(form, seed):
    rng = np.random.default_rng([seed, 3])
    Q = -np.abs(numbers(rng, 1e6, 4, 4))
    truth = log_z_of_binary(-np.diag(Q), np.diag(np.diag(Q)) - Q)
    entries = {(i, j): Q[i, j] for i in range(4) for j in range(4)}
    model = sz.from_qubo({"matrix": Q, "sparse": sp.csr_array(Q), "dictionary": entries}[form])
    assert is_enclosed(truth, sz.log_z(model, "exact"))
    assert 0.0 < model.lost.in_terms < 1e-8
    assert sz.from_qubo(np.triu(np.round(Q))).lost == (0.0, 0.0)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("seed", range(4))
def test_fixing_spins_is_part_of_it(scale, seed):
    rng = np.random.default_rng([seed, int(np.log10(scale)), 2])
    bias, weights, offset = (
        numbers(rng, scale, 6),
        np.triu(numbers(rng, scale, 6, 6), 1),
        float(numbers(rng, scale, 1)[0]),
    )
    v = tuple(rng.integers(2, size=3).tolist())
    truth = log_z_of_binary(bias, weights, offset, beginning=v)
    model = sz.Ising.from_binary(bias, weights, offset)
    assert is_enclosed(truth, sz.log_z(model, "exact", given={i: 2 * int(v[i]) - 1 for i in range(3)}))


def test_a_sum_that_cancels_is_not_called_exact():
    found = sz.log_z(sz.RBM([[0.0]], [-1e19], [-896.5]), "quadrature")
    assert found.lower <= 0.0 <= found.upper
    assert found.kind is not sz.Kind.EXACT
    assert not found.trusted


def test_a_rounded_constant_does_not_change_means():
    model = sz.RBM([[0.0]], [-1e19], [-0.5]).to_ising()
    assert model.lost.in_terms == model.rounding_of_terms == 0.0
    assert model.lost.in_constant == pytest.approx(0.25, rel=1e-12)


def test_row_sums_have_twice_the_precision():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(6, 40)) * 10.0 ** rng.uniform(-20.0, 20.0, size=(6, 40))
    with localcontext() as context:
        context.prec = 120
        wanted = [sum(map(Decimal, row), Decimal(0)) for row in A.tolist()]
        for matrix in (A, sp.csr_array(A)):
            sums = row_sums(matrix)
            for k, truth in enumerate(wanted):
                error = abs(truth - Decimal(sums.high[k]) - Decimal(sums.low[k]))
                assert error <= Decimal(sums.left_out[k]) <= Decimal("1e-25") * sum(map(Decimal, np.abs(A[k]).tolist()))
