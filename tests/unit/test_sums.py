"""Compensated sums and functions of single spins, against fifty digits."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectralz.kernels.single_spin import entropy, log_2cosh
from spectralz.kernels.sums import add, log_sum

UNIT = 2.0**-53


def summed(values: list[float]) -> float:
    total = lost = 0.0
    for value in values:
        total, lost = add(total, lost, value)
    return total + lost


@given(st.lists(st.floats(-1e15, 1e15), max_size=40))
def test_a_running_sum_is_as_good_as_in_twice_the_precision(values):
    sizes = math.fsum(map(abs, values))
    # a rounding of either result, and those of the errors, which are roundings themselves
    allowed = 2.0 * UNIT * abs(math.fsum(values)) + 2.0 * (len(values) * UNIT) ** 2 * sizes
    assert abs(summed(values) - math.fsum(values)) <= allowed


def test_small_terms_survive_large_ones_in_any_order():
    for values in itertools.permutations([1.0, 1e100, 1.0, -1e100]):
        assert summed(list(values)) == 2.0


def test_log_sum_has_all_digits():
    logs = np.array([800.0, 799.0, -800.0, 0.0, 800.0])
    with mpmath.workdps(50):
        wanted = mpmath.log(mpmath.fsum(mpmath.exp(mpmath.mpf(x)) for x in logs.tolist()))
    assert log_sum(logs) == pytest.approx(float(wanted), rel=2 * UNIT)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_log_z_and_entropy_of_a_spin_in_any_field(sign):
    fields = sign * np.concatenate([[0.0, 1e-300, 1e-9], np.linspace(0.01, 20.0, 300), [100.0, 340.0, 1e5]])
    with mpmath.workdps(400):
        for h, found, left in zip(fields.tolist(), log_2cosh(fields).tolist(), entropy(fields).tolist(), strict=True):
            x = mpmath.mpf(h)
            log_z = mpmath.log(2 * mpmath.cosh(x))
            assert found == pytest.approx(float(log_z), rel=4 * UNIT)
            # exp(-2 |h|) magnifies the rounding of h
            assert left == pytest.approx(float(log_z - x * mpmath.tanh(x)), rel=8 * UNIT * (1 + abs(h)), abs=1e-300)
