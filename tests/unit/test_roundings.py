"""What rounding may not do to what is called proven or exact: models kept as factors, huge weights beside small ones.

The truth is that of ``tests/reference/states.py``, in whole numbers.
"""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

import spectralz as sz
from spectralz.errors import SpectralzError
from spectralz.kernels.error_free import Parts, exact_sum, two_product
from spectralz.parts.state_pool import StatePool, pool_marginals, pool_outcome, share_held
from tests.reference import states

# Few states and sweeps: what is tested is what they prove, not how close they come.
QUICK = {
    "annealing": {"population": 20, "runs": 2},
    "states": {"population": 20, "runs": 2, "quenches": 20},
    "auto": {"work": 1e7},
}
PROVING = [name for name in sz.METHODS if name not in ("annealing",)]


def random_factors(rng: np.random.Generator) -> sz.Ising | None:
    """Return a model of factors with numbers of several sizes, or None if they are too large."""
    n, r = int(rng.integers(1, 7)), int(rng.integers(0, 4))
    sizes = 10.0 ** rng.choice([-320, -160, -100, -8, 0, 0, 0, 4, 16, 100], size=5)

    def numbers(*shape: int) -> np.ndarray:
        return rng.normal(size=shape) * rng.choice(sizes, size=shape)

    try:
        return sz.Ising.from_factors(numbers(n), numbers(r), numbers(r, n), numbers(n), float(numbers(1)[0]))
    except SpectralzError:
        return None


# --- the model -----------------------------------------------------------------------------------------------------


def test_the_rounding_of_a_model_is_a_bound():
    """Every entry off the diagonal, and the constant, against exact rational numbers."""
    rng = np.random.default_rng(0)
    tightest = 0.0
    for model in filter(None, (random_factors(rng) for _ in range(400))):
        n, exact, A = model.n, states.exact_entries(model), states.dense(model)
        pairs = sum(abs(Fraction(A[i, k]) - exact[n * i + k]) for i in range(n) for k in range(n) if i != k)
        assert pairs <= Fraction(model.storage.rounding)
        constant = Fraction(model.offset) + sum(exact[n * i + i] for i in range(n))
        assert abs(constant - Fraction(model.constant)) <= Fraction(model.rounding - model.storage.rounding)
        assert abs(constant - Fraction(model.constant)) <= abs(constant) / 2**52 + Fraction(1, 10**290)
        if model.storage.rounding > 1e-280:
            tightest = max(tightest, float(pairs / Fraction(model.storage.rounding)))
    assert tightest > 0.1  # and not a useless one


@pytest.mark.parametrize("factored", [True, False])
def test_a_constant_loses_nothing_where_its_parts_cancel(factored):
    diagonal, v = [-1e16, 1e16], np.array([[0.1, 0.7]])
    model = sz.Ising.from_factors(None, [1.0], v, diagonal, offset=-0.5)
    if factored:
        assert model.constant == pytest.approx(0.1**2 + 0.7**2 - 0.5, abs=1e-16)
    else:
        written_out = sz.Ising(None, np.diag([-1e16, 1e16, 0.5]), offset=0.125)
        assert written_out.constant == 0.625
        assert written_out.rounding == 0.0


def test_models_that_are_written_out_have_no_rounding_of_their_own():
    assert sz.generators.complete(20, 1.0, seed=0).rounding == 0.0
    assert sz.generators.grid(5, 1.0, seed=0).rounding == 0.0
    assert sz.Ising.from_bipartite([[1.0, 0.3]]).rounding == 0.0
    assert sz.Ising(None, np.diag([1.0, 2.0**-60])).rounding == 2.0**-60 * (1 + 2.0**-52)


def test_products_without_error():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=200), rng.normal(size=200) * 10.0 ** rng.integers(-8, 9, size=200)
    for x, y, product, lost in zip(a, b, *two_product(a, b), strict=True):
        assert Fraction(x) * Fraction(y) == Fraction(product) + Fraction(lost)


def test_an_exact_sum_says_what_it_left_out():
    assert exact_sum(Parts([1.0, 2.0**-60, -1.0], 0.0)) == (2.0**-60, 0.0)
    total, error = exact_sum(Parts([1.0, 2.0**-60], 1e-20))
    assert total == 1.0
    assert error == pytest.approx(2.0**-60 + 1e-20)


# --- every method --------------------------------------------------------------------------------------------------


def assert_holds(model: sz.Ising, name: str, truth: mpmath.mpf) -> sz.Estimate:
    """Run a method and compare what it calls proven with the truth, both of them without rounding."""
    found = sz.log_z(model, name, **QUICK.get(name, {}))
    assert np.isfinite(found.log_z)
    if found.lower is not None:
        assert mpmath.mpf(found.lower) <= truth, (name, found.lower, truth)
    if found.upper is not None:
        assert mpmath.mpf(found.upper) >= truth, (name, found.upper, truth)
    if found.kind is sz.Kind.EXACT:
        assert abs(found.log_z - truth) <= 1e-8 * max(1.0, abs(truth)), (name, found.log_z, truth)
    return found


@pytest.mark.parametrize("name", PROVING)
@pytest.mark.parametrize("diagonal", [[-1e16, 1e16], [-1e6, 1e6], 0.0])
def test_a_diagonal_that_cancels_is_in_no_bound(name, diagonal):
    """Its entries were rounded one by one: the trace of the factors, 0.5, came out as 0 beside 1e16."""
    model = sz.Ising.from_factors([0.3, 0.2], [1.0], [[0.1, 0.7]], diagonal)
    truth = states.log_z(model)
    assert float(truth) == pytest.approx(1.968237071627756, abs=1e-15)
    found = assert_holds(model, name, truth)
    if found.kind is sz.Kind.EXACT:
        assert abs(found.log_z - truth) < 1e-12
    if found.upper is not None:
        assert found.upper < 3.0  # what cancels costs nothing either


@pytest.mark.parametrize("diagonal", ["zero", "max_eigenvalue", "diagonally_dominant"])
def test_a_huge_diagonal_does_not_spoil_the_choices_of_d(diagonal):
    """-(D + diag A) was computed from D and diag A, of which nothing is left beside 1e16."""
    A = np.array([[1e16, 0.7, -0.2], [0.7, -1e16, 0.4], [-0.2, 0.4, 3.0]])
    model = sz.Ising([0.1, 0.2, 0.3], A)
    found = sz.log_z(model, "spectral", diagonal=diagonal)
    plain = sz.log_z(sz.Ising(model.field, A - np.diag(np.diag(A))), "spectral", diagonal=diagonal)
    assert found.log_z == pytest.approx(plain.log_z + 3.0, abs=1e-12)
    if diagonal != "zero":
        assert found.upper >= states.log_z(model)
        assert found.upper == pytest.approx(plain.upper + 3.0, abs=1e-12)


@pytest.mark.parametrize(("field", "kind"), [(1e17, sz.Kind.ESTIMATE), (0.3, sz.Kind.EXACT)])
def test_means_of_all_states_are_called_exact_only_where_they_are(field, kind):
    pool = StatePool(sz.Ising([field, 1.5], [[0.0, 3e-4], [3e-4, 0.0]]), 4)
    pool.add(states.all_states(2))
    outcome = pool_outcome(pool, share_held(pool, []))
    found = pool_marginals(pool, outcome)
    assert outcome.kind is sz.Kind.EXACT  # log Z is, to the digits that 1e17 has
    assert found.kind is kind
    assert ("rounding may change means" in found.outcome.status) == (kind is sz.Kind.ESTIMATE)
