"""The compiled exp and log against fifty digits, at the accuracy that the rounding bounds rest on."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from spectralz._support.compiling import compiled
from spectralz.kernels import logsum

# What kernels call is compiled into them; here each is a kernel by itself.
exp_minus, log1p_exp_minus = compiled(logsum.exp_minus), compiled(logsum.log1p_exp_minus)
log_2cosh_excess = compiled(logsum.log_2cosh_excess)
log_2cosh, log_add_exp = compiled(logsum.log_2cosh), compiled(logsum.log_add_exp)

UNIT = 2.0**-53
POINTS = np.concatenate([[0.0, 1e-300, 1e-17], np.linspace(0.0, 5.0, 2001), np.geomspace(1e-9, 699.0, 2001)])


@pytest.mark.parametrize(
    ("function", "reference", "units", "largest"),
    [
        (exp_minus, lambda d: mpmath.exp(-d), 2, 700),
        (log1p_exp_minus, lambda d: mpmath.log1p(mpmath.exp(-d)), 8, 350),
        (log_2cosh, lambda d: mpmath.log(2 * mpmath.cosh(d)), 10, 700),
        (lambda d: log_2cosh(-d), lambda d: mpmath.log(2 * mpmath.cosh(d)), 10, 700),
        # one rounding more of the difference than log_2cosh has, and one of the sum
        (lambda d: log_add_exp(3.0 * d, d), lambda d: mpmath.log(mpmath.exp(3 * d) + mpmath.exp(d)), 12, 350),
        (lambda d: log_add_exp(d, 3.0 * d), lambda d: mpmath.log(mpmath.exp(3 * d) + mpmath.exp(d)), 12, 350),
    ],
)
def test_relative_error_is_within_its_bound(function, reference, units, largest):
    with mpmath.workdps(50):
        for d in POINTS[largest > POINTS].tolist():
            exact = reference(mpmath.mpf(d))
            assert abs(function(d) / exact - 1) <= units * UNIT, d


@pytest.mark.parametrize("h", [0.0, 1e-9, 0.3, 1.7, 40.0, 1e4, 1e17, 1e290])
def test_the_excess_over_a_field_loses_nothing_to_it(h):
    """To 14 units of 2^-53 of the push and of 1, which is what the bound of the quadrature's rounding takes for it."""
    pushes = np.concatenate(
        [[0.0, h, -h, -2.0 * h, -h * (1 + 1e-15)], np.linspace(-6.0, 6.0, 301), np.geomspace(1, 1e5)]
    )
    with mpmath.workdps(700):
        for push in np.concatenate([pushes, -pushes]).tolist():
            z = mpmath.mpf(h) + mpmath.mpf(push)
            exact = abs(z) - mpmath.mpf(h) + mpmath.log1p(mpmath.exp(-2 * min(abs(z), 2000)))
            assert abs(log_2cosh_excess(h, push) - exact) <= 14 * UNIT * (abs(push) + 1), push


@pytest.mark.parametrize("d", [700.0, 1e4, 1e300])
def test_beyond_its_range_the_value_is_negligible_and_finite(d):
    assert 0.0 < exp_minus(d) < 1e-303
    assert 0.0 < log1p_exp_minus(d) < 1e-151
