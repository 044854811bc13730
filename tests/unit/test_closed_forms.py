"""Closed forms against every state, against elimination, against fifty digits, and in known limits."""

from __future__ import annotations

import inspect
import itertools
import math

import mpmath
import numpy as np
import pytest

import spectralz as sz
from spectralz.errors import OptionError
from tests.helpers import with_slow
from tests.reference import closed_forms as reference
from tests.reference import states

CRITICAL = math.log(1 + math.sqrt(2)) / 2
STRENGTHS = [0.0, 1e-300, 1e-12, 0.1, CRITICAL, 1.0, 5.0, 60.0, 1e5, 1e250]
SIGNED = [*STRENGTHS, *(-J for J in STRENGTHS[1:])]
FIELDS = [0.0, 1e-12, 0.2, -1.0, 30.0, -120.0, 1e5]


def assert_close(found, wanted, tol=1e-14):
    """A few roundings of the terms, none of which is larger than log Z or than n log 2."""
    assert isinstance(found, float)
    assert abs(found - wanted) <= tol * max(1.0, abs(wanted))


def test_each_takes_the_parameters_of_its_generator():
    for name, closed_form in sz.closed_forms.CLOSED_FORMS.items():
        ours = inspect.signature(closed_form).parameters
        theirs = inspect.signature(sz.generators.GENERATORS[name]).parameters
        assert ours == theirs
        assert list(sz.generators.parameter_help(closed_form)) == list(ours)


@pytest.mark.parametrize("J", SIGNED)
@pytest.mark.parametrize(
    "shape",
    [(0, 0), (0, 3), (1, 1), (1, 2), (1, 3), (6, 1), (2, 2), (2, 3), (3, 2), (2, 4), (5, 2), (3, 3), (3, 4), (4, 3)],
)
def test_torus_against_every_state(shape, J):
    if shape == (3, 3) and J < 0.0:
        with pytest.raises(OptionError, match="two odd sides, such as 3 x 3; make a side even"):
            sz.closed_forms.torus(*shape, J)
        return
    assert_close(sz.closed_forms.torus(*shape, J), states.log_z(sz.generators.torus(*shape, J)))


@pytest.mark.parametrize("J", SIGNED)
@pytest.mark.parametrize("n", range(7))
def test_chains_dimers_and_curie_weiss_against_every_state(n, J):
    for h in FIELDS:
        for periodic in (False, True):
            model = sz.generators.chain(n, J, h, periodic)
            assert_close(sz.closed_forms.chain(n, J, h, periodic), states.log_z(model))
        assert_close(sz.closed_forms.curie_weiss(n, J, h), states.log_z(sz.generators.curie_weiss(n, J, h)))
        if n % 2 == 0:
            assert_close(sz.closed_forms.dimers(n, J, h), states.log_z(sz.generators.dimers(n, J, h)))


@pytest.mark.parametrize("J", [CRITICAL, 1e-6, 8.0, -0.6])
@pytest.mark.parametrize("shape", [(8, 8), (9, 8), (8, 9), (3, 402), (301, 4), (2, 1001), (5, 100)])
def test_torus_against_elimination(shape, J):
    exact = sz.log_z(sz.generators.torus(*shape, J), "exact")
    assert_close(sz.closed_forms.torus(*shape, J), exact.log_z, tol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("J", [CRITICAL, 1e-6, 0.3, 8.0, -0.6, -8.0])
@pytest.mark.parametrize("shape", [(12, 12), (11, 12)])
def test_torus_of_144_spins_against_elimination(shape, J):
    exact = sz.log_z(sz.generators.torus(*shape, J), "exact")
    assert_close(sz.closed_forms.torus(*shape, J), exact.log_z, tol=1e-12)


@pytest.mark.parametrize("J", [-0.01, -1.5, -4.0, -8.0, -9.0, -30.0])
@pytest.mark.parametrize("shape", [(10, 5), (4, 101), (3, 10)])
def test_cold_antiferromagnets_with_an_odd_side(shape, J):
    model = sz.generators.torus(*shape, J)
    assert_close(sz.closed_forms.torus(*shape, J), sz.log_z(model, "exact").log_z, tol=1e-12)


@pytest.mark.parametrize("J", [1e-9, 0.2, CRITICAL, 0.44, 0.4407, 1.0, 20.0])
def test_torus_of_256_by_256_in_fifty_digits(J):
    wanted = reference.ferromagnet_on_torus(256, J)
    assert_close(sz.closed_forms.torus(256, 256, J), wanted, tol=1e-15)
    assert_close(sz.closed_forms.torus(256, 256, -J), wanted, tol=1e-15)


def test_around_the_critical_point_to_the_last_digit():
    """Where gamma_0 passes through zero."""
    wanted = reference.ferromagnet_on_torus(4, CRITICAL)
    for k in range(-100, 101):
        assert_close(sz.closed_forms.torus(4, 4, CRITICAL + k * math.ulp(CRITICAL)), wanted, tol=4e-14)


@pytest.mark.parametrize("J", [0.3, CRITICAL, 0.6])
def test_a_large_torus_has_onsagers_free_energy(J):
    """Onsager (1944); away from the critical point a finite torus differs by exp(-side), below it by log 2."""
    k = 2 * math.sinh(2 * J) / math.cosh(2 * J) ** 2
    integral = mpmath.quad(
        lambda x: mpmath.log((1 + mpmath.sqrt(abs(1 - (k * mpmath.sin(x)) ** 2))) / 2), [0, mpmath.pi / 2]
    )
    per_spin = math.log(2 * math.cosh(2 * J)) + float(integral) / math.pi
    n = 1_000_000
    order = {0.3: 0.0, CRITICAL: 0.6399, 0.6: math.log(2)}[J]  # at the critical point log(1.896) (Ferdinand and Fisher)
    assert sz.closed_forms.torus(1000, 1000, J) == pytest.approx(n * per_spin + order, abs=1e-4)


def test_a_million_by_a_million_spins():
    for J in (0.3, -0.3):
        large = sz.closed_forms.torus(10**6, 10**6 + 1, J) / (10**6 * (10**6 + 1))
        assert large == pytest.approx(sz.closed_forms.torus(1000, 1000, J) / 10**6, rel=1e-13)


@pytest.mark.parametrize(("sign", "scale"), with_slow(itertools.product([1, -1], [1e-8, 1.0, 1e5]), [(-1, 1.0)]))
def test_long_open_chain_in_fifty_digits(scale, sign):
    n, J, h = 2000, sign * 0.7 * scale, 0.3 * scale
    wanted = reference.chain(np.full(n, h), np.full(n - 1, J))
    assert_close(sz.closed_forms.chain(n, J, h), wanted, tol=1e-15)
    assert_close(sz.log_z(sz.generators.chain(n, J, h), "exact").log_z, wanted, tol=1e-13)


@pytest.mark.parametrize("J", [0.4, -0.4, 6.0, -6.0, -40.0])
@pytest.mark.parametrize("h", [0.0, 0.3, 50.0])
@pytest.mark.parametrize("n", [1001, 1_000_000])
def test_long_ring_in_many_digits(n, h, J):
    with mpmath.workdps(300):
        diagonal = [mpmath.exp(mpmath.mpf(J) + s * mpmath.mpf(h)) for s in (1, -1)]
        trace, determinant = sum(diagonal), diagonal[0] * diagonal[1] - mpmath.exp(-2 * mpmath.mpf(J))
        root = mpmath.sqrt(trace**2 / 4 - determinant)
        wanted = float(mpmath.log((trace / 2 + root) ** n + (trace / 2 - root) ** n))
    assert_close(sz.closed_forms.chain(n, J, h, periodic=True), wanted, tol=1e-15)


@pytest.mark.parametrize("strength", [1e-8, 0.5, 1.0, 1.5, 40.0, -3.0, -1e4])
@pytest.mark.parametrize("field", [*(pytest.param(each, marks=pytest.mark.slow) for each in (0.0, -4.0)), 0.01])
def test_curie_weiss_in_fifty_digits(strength, field):
    for n in (999, 1000):
        assert_close(sz.closed_forms.curie_weiss(n, strength, field), reference.curie_weiss(n, strength, field))


def test_curie_weiss_of_many_spins(monkeypatch):
    n = 200_000
    quadrature = sz.log_z(sz.generators.curie_weiss(n, 1.2, 0.01), "quadrature").log_z
    found = sz.closed_forms.curie_weiss(n, 1.2, 0.01)
    assert_close(found, quadrature, tol=1e-13)
    monkeypatch.setattr("spectralz.closed_forms.pairs.TERMS_AT_A_TIME", 77_777)
    assert_close(sz.closed_forms.curie_weiss(n, 1.2, 0.01), found, tol=1e-15)
    # Above the critical temperature, the Gaussian integral over the magnetization.
    n = 1_000_000
    wanted = n * math.log(2) - 0.5 * math.log(1 - 0.5) - 0.25
    assert sz.closed_forms.curie_weiss(n, 0.5) == pytest.approx(wanted, abs=1e-6)


def test_without_couplings_all_spins_are_free():
    for n in (2, 1000, 10**6):
        for h in (0.0, 2.0):
            wanted = n * math.log(2 * math.cosh(h))
            for found in (
                sz.closed_forms.curie_weiss(n, 0.0, h),
                sz.closed_forms.chain(n, 0.0, h),
                sz.closed_forms.chain(n, 0.0, h, periodic=True),
                sz.closed_forms.dimers(n, 0.0, h),
            ):
                assert_close(found, wanted)
        assert_close(sz.closed_forms.torus(n, 3, 0.0), 3 * n * math.log(2))


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("torus", {"rows": 3, "columns": 3, "strength": 1.0, "field": 0.1}, "field is 0.1; no formula is known"),
        ("torus", {"rows": -3, "columns": 3, "strength": 1.0}, "rows is -3"),
        ("torus", {"rows": 3, "columns": 3.5, "strength": 1.0}, "columns is 3.5"),
        ("torus", {"rows": 4, "columns": 4, "strength": 1e308}, "where their sums overflow"),
        ("torus", {"rows": 3, "columns": 3, "strength": -1e308}, "where their sums overflow"),
        ("chain", {"n": 5, "strength": "1"}, "strength is '1'"),
        ("chain", {"n": 5, "strength": 1.0, "periodic": 2}, "periodic is 2"),
        ("chain", {"n": 5, "strength": 1e308}, "where their sums overflow"),
        ("dimers", {"n": 5, "strength": 1.0}, "n must be even"),
        ("dimers", {"n": 4, "strength": 1e308, "field": 1e308}, "where their sums overflow"),
        ("curie-weiss", {"n": 5, "strength": float("inf")}, "strength is inf"),
        ("chain", {"n": 10**400, "strength": 1.0}, r"a model has at most 1e\+08 spins"),
        ("curie-weiss", {"n": 9, "strength": 1e308, "field": 1e308}, "where their sums overflow"),
    ],
)
def test_bad_parameters(name, parameters, message):
    with pytest.raises(OptionError, match=message):
        sz.closed_forms.CLOSED_FORMS[name](**parameters)
