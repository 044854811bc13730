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
from spectralz.kernels.low_rank import negative_directions
from spectralz.kernels.low_rank.negative_directions import error_of_means, sum_negative, tilted_means
from spectralz.methods.states import pool_outcome
from spectralz.parts.low_rank.decomposition import decompose
from spectralz.sampling.heavy.pool import pool_marginals, share_held, state_pool
from tests.contract.fuzz import CELLS_FOR_HANDOVER, HANDOVERS, assert_holds
from tests.reference import states

PROVING = [name for name in sz.METHODS if name not in ("annealing", "planar")]


@pytest.fixture(autouse=True)
def quick_handovers(monkeypatch):
    for name in HANDOVERS:
        monkeypatch.setattr(name, CELLS_FOR_HANDOVER)


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


@pytest.mark.parametrize("name", [name for name in PROVING if name not in ("quadrature", "low_rank")])
def test_entries_that_cancel_are_in_every_bound(name):
    """Two terms of 1e10 leave couplings of about 30, off by 1e-6: as much as the model is, and no method may do better.

    Strong couplings in a field make the bounds tight, so that one without that rounding is broken for some seed.
    """
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = 2 + seed % 3
        v = rng.uniform(0.5, 1.0, size=n)
        model = sz.Ising.from_factors(np.full(n, 20.0), [1e10, -1e10], [v, v * (1.0 - 1.5e-9)])
        assert model.rounding > 1e-6
        assert_holds(model, name, states.log_z(model))


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
    pool = state_pool(sz.Ising([field, 1.5], [[0.0, 3e-4], [3e-4, 0.0]]), 4)
    pool.add(states.all_states(2))
    outcome = pool_outcome(pool, share_held(pool, None))
    found = pool_marginals(pool, outcome)
    assert outcome.kind is sz.Kind.EXACT  # log Z is, to the digits that 1e17 has
    assert found.kind is kind
    assert ("rounding may change means" in found.outcome.status) == (kind is sz.Kind.ESTIMATE)


# --- low rank ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", [1.0, 1e4, 1e8, 1e12, 1e17, -1e17])
@pytest.mark.parametrize("value", [1.0, -1.0])
def test_means_beside_a_huge_field_are_exact(field, value):
    """All weights were sums with the field, beside which the others' digits were lost: 0.43 where the mean is 0.905."""
    model = sz.Ising.from_factors([field, 1.5, -0.3], [value], [[3e-4, 1.0, 0.5]])
    _, mean, pair_mean = states.solve(model)
    found = sz.marginals(model, "quadrature")
    assert found.kind is sz.Kind.EXACT
    assert np.allclose(found.mean, mean, rtol=0, atol=1e-12)
    assert np.allclose(found.pair_mean, pair_mean[tuple(found.edges.T)], rtol=0, atol=1e-12)
    assert_holds(model, "quadrature", states.log_z(model))
    x = sz.sample(model, 4000, "quadrature", seed=1)
    assert np.allclose(x.mean(axis=0), mean, atol=0.06)


def test_means_that_rounding_may_change_are_estimates_and_samples_of_them_warn():
    rng = np.random.default_rng(0)
    v = rng.normal(size=(1, 6))
    strong = sz.Ising.from_factors(rng.normal(size=6), [1e9], v)
    found = sz.marginals(strong, "quadrature", max_nodes=10**9)
    assert found.kind is sz.Kind.ESTIMATE
    assert "rounding may change means" in found.estimate.status
    with pytest.warns(sz.errors.InaccurateWarning, match="rounding may change the probabilities"):
        sz.sample(strong, 5, "quadrature", max_nodes=10**9)
    with pytest.warns(sz.errors.InaccurateWarning, match="rounding may change the probabilities"):
        sz.sample(sz.Ising.from_factors(None, [1e12], np.ones((1, 6))), 5, "low_rank")
    with pytest.warns(sz.errors.InaccurateWarning, match="rounding may change the probabilities"):
        sz.sample(sz.Ising.from_factors(None, [-1e12], np.ones((1, 6))), 5, "quadrature")


def test_negative_directions_that_cancel_a_field_lose_digits_and_say_so():
    """At the saddle theta_i - <a_i, t> may be small, and the tilted means come from differences of large numbers."""
    kinds = set()
    for size in np.geomspace(1.0, 1e6, 25):
        model = sz.Ising.from_factors([size, 0.4 * size, 0.3], [-size], [[1.0, 0.5, 0.25]])
        assert_holds(model, "quadrature", states.log_z(model))
        try:
            found = sz.marginals(model, "quadrature")
        except sz.errors.TooLargeError as error:
            assert "cancellation" in str(error)
            continue
        kinds.add(found.kind)
        error = np.abs(found.mean - states.solve(model)[1]).max()
        assert error <= (1e-9 if found.kind is sz.Kind.EXACT else 1e-3)
    assert sz.Kind.EXACT in kinds


@pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
def test_more_nodes_than_integers_can_count_are_refused():
    """Their number was negative as an integer of 64 bits: the loop over them never ended, and saw no interrupt."""
    vectors = np.random.default_rng(0).normal(size=(2, 12))
    model = sz.Ising.from_factors(np.zeros(12), [-1e40, -1e28], vectors)
    for run in (sz.log_z, sz.marginals):
        with pytest.raises(sz.errors.TooLargeError, match="max_nodes is"):
            run(model, "quadrature")
    found = sz.log_z(model, work=1e6, exclude=["exact"])
    assert found.lower <= states.log_z(model) <= found.upper


@pytest.mark.parametrize("method", ["quadrature", "low_rank", "spectral", "sdp", "convex_mf"])
def test_couplings_of_all_sizes_end_in_an_answer_or_a_sentence(method):
    """No error of a linear-algebra library, and no warning of numpy, which is an error here."""
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(13, 13))
    unequal = np.triu(np.where(noise > 1.0, 1e297 * noise, 1e-200 * noise), 1)
    V = rng.normal(size=(5, 9))
    far = [
        sz.Ising(None, unequal + unequal.T),
        sz.Ising([1e199, 0.0, 1e199 / 3], [[0, 1, 2], [1, 0, -0.5], [2, -0.5, 0]]),
        sz.Ising(1e199 * noise[0], noise + noise.T),
        sz.Ising.from_factors(None, [1e297, 1e-200, 1.0, -1e297, 1e-200], V),
        sz.Ising.from_factors(None, [1e-320, 1e-320, 1e-310, 1e-300, 1e-320], V),
        sz.Ising.from_factors(1e297 * V[0], [1.0], V[:1]),
        sz.Ising.from_factors(None, [1e308], 1e-170 * V[:1]),
        sz.Ising(None, 1e-320 * (noise + noise.T)),
    ]
    for model in far:
        try:
            assert_holds(model, method, states.log_z(model))
        except SpectralzError as error:
            assert len(str(error)) > 20


@pytest.mark.parametrize("seed", range(20))
def test_terms_written_as_fewer_have_their_rounding_counted(seed):
    """What QR and eigenvectors leave over, against exact rational numbers; x'Ex is at most the sum of all |E_ik|."""
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(2, 6))
    mixed = rng.normal(size=(5, 2)) @ V * 10.0 ** rng.integers(-3, 4)
    model = sz.Ising.from_factors(None, rng.normal(size=5), mixed)
    form = decompose(model, 3, 1.0)
    assert form.rank <= 3
    again = sz.Ising.from_factors(None, form.values, form.vectors)
    left = [abs(a - b) for a, b in zip(states.exact_entries(model), states.exact_entries(again), strict=True)]
    assert sum(left) <= Fraction(form.residual)
    assert form.residual < 1e-9 * np.abs(states.dense(model)).sum()


def test_a_term_that_is_left_out_is_left_over():
    v = np.array([1.0, 2.0, -1.0, 0.5])
    vectors = np.array([v, v, v, [1.0, -1.0, 1.0, -1.0]])
    form = decompose(sz.Ising.from_factors(None, [1.0, 2.0, 3.0, 8e-13], vectors), 3, 1.0)
    assert form.rank == 1
    assert 16 * 8e-13 < form.residual < 5e-11  # sixteen entries of 8e-13, and rounding


def test_tilted_means_have_their_rounding_counted(monkeypatch):
    """Fields that the direction cancels at the saddle, against tanh in fifty digits."""
    tightest = 0.0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        a, t = 1e3 * rng.normal(size=(1, 5)), 1e3 * rng.normal(size=1)
        push = 1e5 * rng.normal(size=5)
        theta = a[0] * t[0] - push + rng.normal(size=5)
        with mpmath.workdps(50):
            parts = zip(theta.tolist(), push.tolist(), a[0].tolist(), strict=True)
            exact = [mpmath.tanh(mpmath.mpf(h) + mpmath.mpf(p) - mpmath.mpf(b) * float(t[0])) for h, p, b in parts]
            found = tilted_means(theta, push, a, t).tolist()
            error = float(mpmath.fsum(abs(x - y) for x, y in zip(found, exact, strict=True)))
        bound = error_of_means(theta, push, a, t, 1)
        assert error <= bound
        tightest = max(tightest, error / bound)
    assert tightest > 0.01
    one, nothing = np.ones((1, 3)), np.zeros((1, 0))
    args = np.zeros(3), np.zeros((0, 3)), one, nothing, lambda done: None
    upper, lower = sum_negative(*args)
    monkeypatch.setattr(negative_directions, "error_of_means", lambda *_: 0.01)
    wider_upper, wider_lower = sum_negative(*args)
    assert wider_lower[0] < lower[0] - 0.005
    assert wider_upper[0] > upper[0] + 0.005


@pytest.mark.parametrize("n", [6, 16])
def test_a_huge_diagonal_hides_no_low_rank(n):
    rng = np.random.default_rng(2)
    v = rng.normal(size=n)
    A = np.outer(v, v)
    np.fill_diagonal(A, rng.normal(size=n))
    plain, beside = A.copy(), A.copy()
    beside[0, 0], beside[1, 1] = 1e16, -1e16
    plain[0, 0] = plain[1, 1] = 0.0
    found = [sz.log_z(sz.Ising(0.1 * v, B), "quadrature") for B in (plain, beside)]
    assert found[1].log_z == pytest.approx(found[0].log_z, abs=1e-10)
    assert found[1].details["rank"] == found[0].details["rank"] == 1
    if n < 10:
        truth = states.log_z(sz.Ising(0.1 * v, beside))
        assert found[1].lower <= truth <= found[1].upper


def test_the_tables_of_many_spins_have_their_rounding_counted():
    """On a lattice nothing is quantized, and the logs of 2^-n to 1 are added up spin by spin."""
    n = 400
    model = sz.Ising.from_factors(np.linspace(-2.0, 2.0, n), [0.05], np.ones((1, n)))
    found, truth = sz.log_z(model, "low_rank", step=2.0 * np.sqrt(0.05)), sz.log_z(model, "quadrature")
    assert found.kind is sz.Kind.EXACT
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper
    assert found.details["quantisation"] < 1e-10
    assert found.upper - found.lower > 10.0 * abs(found.log_z - truth.log_z)
