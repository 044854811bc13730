from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralz as sz
from spectralz._support.compiling import compiled
from spectralz._support.progress import listening
from spectralz.errors import TooLargeError
from spectralz.kernels.low_rank import negative_directions, negative_moments, quantized_dp, single_directions
from spectralz.kernels.low_rank.negative_directions import (
    Contour,
    _integral_at_saddle,
    negative_steps,
    saddle_point,
    tilted_means,
)
from spectralz.kernels.low_rank.negative_moments import inner_moments
from spectralz.kernels.low_rank.positive_directions import LOG_SQRT_2PI, STEP, TAIL, positive_nodes, sum_positive
from spectralz.kernels.low_rank.quantized_dp import log_uniform_expectation
from spectralz.kernels.low_rank.single_directions import log_expectations
from spectralz.parts.low_rank import quantized
from spectralz.parts.low_rank.decomposition import decompose
from tests.helpers import heard, with_slow
from tests.reference import closed_forms, states
from tests.reference.states import chi_square
from tests.strategies import low_rank_models

cos_sin_of_half_turns = compiled(negative_directions.cos_sin_of_half_turns)


def paper_strength(v, strength):
    """The eigenvalue at which a unit direction has the strength of Sec. 4.3."""
    n = len(v)
    return strength * n * (n + 1) / (np.abs(np.outer(v, v)).sum() - (v**2).sum())


def random_model(rng, n, rank, strength, field):
    v = rng.normal(size=(rank, n))
    v /= np.linalg.norm(v, axis=1)[:, None]
    values = [rng.choice([-1, 1]) * paper_strength(row, strength) / rank for row in v]
    return sz.Ising.from_factors(rng.uniform(-field, field, n), values, v)


@given(low_rank_models())
def test_the_enclosure_holds_the_sum_over_states(model):
    truth, _, _ = states.solve(model)
    result = sz.log_z(model, "quadrature")
    assert result.lower <= truth <= result.upper
    if result.kind is sz.Kind.EXACT:
        assert abs(result.log_z - truth) <= 1e-9 * max(1.0, abs(truth))


@pytest.mark.parametrize("field", [1.0, 50.0])
@pytest.mark.parametrize("strength", [0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_against_enumeration_at_twenty_spins(rank, strength, field):
    """The paper's strengths (Fig. 2c reaches 1) times 0.1 to 20, signs mixed: right wherever it says exact."""
    rng = np.random.default_rng([rank, int(10 * strength), int(field)])
    seen = 0
    for _ in range(3 if rank < 3 else 1):
        n = 20 if rank < 3 or strength <= 1 else 12
        model = random_model(rng, n, rank, strength, field)
        try:
            result = sz.log_z(model, "quadrature")
        except TooLargeError:
            continue
        truth = sz.log_z(model, "exact", algorithm="enumeration")
        assert result.lower <= truth.upper
        assert truth.lower <= result.upper
        if result.kind is sz.Kind.EXACT:
            seen += 1
            assert abs(result.log_z - truth.log_z) <= 1e-9 * max(1.0, abs(truth.log_z))
    assert seen or rank == 3 or strength > 1


def test_lost_digits_are_noticed_and_handed_over():
    """v constant, n = 21, lambda = -1000: after the saddle shift 7e-22 of the integral is left, beneath rounding."""
    v = np.full((1, 21), 1 / math.sqrt(21))
    model = sz.Ising.from_factors(None, [-1000.0], v)
    with mpmath.workdps(40):
        terms = [mpmath.binomial(21, k) * mpmath.exp(-1000 * mpmath.mpf(2 * k - 21) ** 2 / 21) for k in range(22)]
        truth = float(mpmath.log(mpmath.fsum(terms)))
    assert truth == pytest.approx(-34.1524819588, abs=3e-10)
    result = sz.log_z(model, "quadrature")
    assert "low_rank took over" in result.status
    assert result.lower <= truth <= result.upper
    assert result.details["left_after_saddle"] == pytest.approx(math.exp(truth - 21 * math.log(2)), rel=1e-6)
    # A step that divides the lattice makes the program exact; the paper's does not.
    exact = sz.log_z(model, "low_rank", step=math.sqrt(1000.0 / 21))
    assert exact.kind is sz.Kind.EXACT
    assert exact.log_z == pytest.approx(truth, abs=1e-10)
    paper = sz.log_z(model, "low_rank")
    assert paper.kind is sz.Kind.ESTIMATE
    assert paper.lower <= truth <= paper.upper


def test_an_answer_lies_within_its_own_bounds_after_a_hand_over():
    rng = np.random.default_rng(27)
    V, field = rng.normal(size=(3, 6)), rng.normal(size=6)
    model = sz.Ising.from_factors(field, [-32.0, -95.0, 0.65], V)
    result = sz.log_z(model, "quadrature")
    assert "took over" in result.status
    assert result.lower <= result.log_z <= result.upper
    assert result.lower <= sz.log_z(model, "exact").log_z <= result.upper


def test_partly_lost_digits_widen_the_interval():
    """As lambda grows, digits go one by one: every answer is enclosed, and none claims more than it has."""
    kinds = set()
    for value in np.geomspace(1, 2000, 25):
        n = 15
        model = sz.Ising.from_factors(None, [-value], np.full((1, n), 1 / math.sqrt(n)))
        truth = sz.log_z(model, "exact")
        result = sz.log_z(model, "quadrature")
        assert result.lower <= truth.upper
        assert truth.lower <= result.upper
        if result.kind is sz.Kind.EXACT:
            assert abs(result.log_z - truth.log_z) <= 1e-9 * max(1.0, abs(truth.log_z))
        kinds.add((result.kind, "took over" in result.status))
    assert (sz.Kind.EXACT, False) in kinds
    assert (sz.Kind.EXACT, True) in kinds


def test_factors_are_not_written_out():
    """All pairs of these spins would take 80 GB."""
    n = 100_000
    found = sz.log_z(sz.generators.curie_weiss(n, 1.0, 0.01))
    assert abs(found.log_z - curie_weiss_in_logs(n, 1.0, 0.01)) <= 1e-11 * found.log_z


@pytest.mark.parametrize("strength", [0.3, 1.0, 1.7, 30.0])
@pytest.mark.parametrize("field", [0.0, 0.01, -2.0])
def test_curie_weiss_of_ten_thousand_spins(strength, field):
    n = 10_000
    wanted = curie_weiss_in_logs(n, strength, field)
    result = sz.log_z(sz.generators.curie_weiss(n, strength, field))
    assert result.method == sz.Quadrature()
    assert abs(result.log_z - wanted) <= 1e-11 * abs(wanted)
    assert result.lower <= wanted + 1e-12 * abs(wanted)
    assert wanted - 1e-12 * abs(wanted) <= result.upper


def curie_weiss_in_logs(n, strength, field):
    """The sum over magnetisations with log-gamma, for n beyond what fifty digits can do quickly."""
    from scipy.special import gammaln, logsumexp

    k = np.arange(n + 1.0)
    M = 2 * k - n
    return float(
        logsumexp(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + strength / n * (M * M - n) / 2 + field * M)
    )


def test_curie_weiss_in_logs_is_the_closed_form():
    assert curie_weiss_in_logs(50, 1.2, 0.1) == pytest.approx(closed_forms.curie_weiss(50, 1.2, 0.1), rel=1e-13)


def test_a_matrix_of_two_thousand_spins_goes_to_quadrature_by_itself():
    """Auto finds the diagonal: zero-diagonal Curie-Weiss behind random signs, written out as a matrix."""
    n = 2000
    signs = np.where(np.random.default_rng(0).random(n) < 0.5, -1.0, 1.0)
    A = np.outer(signs, signs) * (1.3 / (2 * n))
    np.fill_diagonal(A, 0.0)
    result = sz.log_z(sz.Ising(0.05 * signs, A))
    assert result.method == sz.Quadrature()
    assert result.log_z == pytest.approx(curie_weiss_in_logs(n, 1.3, 0.05), rel=1e-11)


@given(low_rank_models(max_spins=8))
@settings(max_examples=40)
def test_marginals_are_the_means_over_states(model):
    _, mean, pair_mean = states.solve(model)
    found = sz.marginals(model, "quadrature")
    if found.kind is sz.Kind.EXACT:
        assert np.allclose(found.mean, mean, rtol=0, atol=1e-8)
        assert np.allclose(found.pair_mean, pair_mean[tuple(found.edges.T)], rtol=0, atol=1e-8)


def test_marginals_of_many_spins_agree_with_elimination():
    model = random_model(np.random.default_rng(4), 18, 2, 0.5, 1.0)
    a, b = sz.marginals(model, "quadrature"), sz.marginals(model, "exact")
    assert np.allclose(a.mean, b.mean, atol=1e-10)
    assert np.allclose(a.pair_mean, b.pair_mean, atol=1e-10)
    assert np.allclose(a.probability, b.probability, atol=1e-10)


def test_max_nodes_is_kept():
    model = random_model(np.random.default_rng(0), 12, 3, 1.0, 1.0)
    with pytest.raises(TooLargeError, match="max_nodes is 100"):
        sz.log_z(model, "quadrature", max_nodes=100)


# --- kernels -------------------------------------------------------------------------------------------------------


def test_cosine_and_sine_of_half_turns():
    with mpmath.workdps(40):
        for c in [0.0, 1e-20, 0.25, 0.5, -0.5, 1.0, 1.5, -7.3, 1234.567, 1e6 + 0.125]:
            cosine, sine = cos_sin_of_half_turns(c)
            assert abs(cosine - mpmath.cospi(c)) < 8 * 2.0**-53
            assert abs(sine - mpmath.sinpi(c)) < 8 * 2.0**-53


@pytest.mark.parametrize("r", [1, 2, 5])
def test_newton_s_equations_are_solved(r):
    rng = np.random.default_rng(r)
    factor, b = rng.normal(size=(r, 2 * r)), rng.normal(size=r)
    H = np.eye(r) + factor @ factor.T
    x = b.copy()
    square = negative_directions._solve(np.tril(H), x)
    assert x == pytest.approx(np.linalg.solve(H, b), rel=1e-12)
    assert square == pytest.approx(b @ x, rel=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 3))
@settings(max_examples=40)
def test_the_saddle_is_a_minimum(seed, n, r):
    rng = np.random.default_rng(seed)
    theta, a = rng.normal(size=n) * 10, rng.normal(size=(r, n)) * rng.choice([0.1, 1, 30])
    push = rng.normal(size=n) * 3
    t, excess = saddle_point(theta, push, a)
    theta, value = theta + push, excess + np.abs(theta).sum()
    gradient = t - a @ np.tanh(theta - t @ a)
    # F is convex with Hessian >= 1, so that F - min F <= |gradient|^2 / 2
    assert gradient @ gradient / 2 <= 1e-9 * max(1.0, abs(value))
    assert np.all(np.abs(t) <= np.abs(a).sum(axis=1) * (1 + 1e-9))
    z = np.abs(theta - t @ a)
    assert value == pytest.approx(t @ t / 2 + np.sum(z + np.log1p(np.exp(-2 * z))), rel=1e-12)


@pytest.mark.parametrize(
    ("n", "r", "scale"), [(1, 1, 1.0), (2, 1, 15.0), (70, 1, 0.5), (300, 1, 0.1), (40, 2, 0.2), (12, 3, 0.2)]
)
def test_the_integral_at_the_saddle_is_the_plain_sum_over_nodes(n, r, scale, monkeypatch):
    """Blocks, parts, early exits and half of the nodes by symmetry, against every node and factor written out."""
    rng = np.random.default_rng(n)
    theta, a = rng.uniform(-1, 1, n), scale * rng.normal(size=(r, n))
    t, _ = saddle_point(theta, np.zeros(n), a)
    steps, halves = negative_steps(a)
    axes = [h * np.arange(-half, half + 1) for h, half in zip(steps, halves, strict=True)]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, r)
    m = np.tanh(theta - t @ a)
    b = x @ a
    product = np.exp(-1j * (x @ t)) * np.prod(np.cos(b) + 1j * m * np.sin(b), axis=1)
    density = np.exp(-(x**2).sum(axis=1) / 2) * np.prod(steps) / (2 * np.pi) ** (r / 2)
    wanted = (density * product).sum().real
    assert m == pytest.approx(tilted_means(theta / 3, theta * 2 / 3, a, t), abs=1e-14)
    contour = Contour(a, m, t, steps, halves)
    for at_a_time in (1 << 24, 1000, 1):
        monkeypatch.setattr(negative_directions, "FACTORS_AT_A_TIME", at_a_time)
        told: list[float] = []
        assert _integral_at_saddle(contour, told.append) == pytest.approx(wanted, abs=2e-14)
        assert told == sorted(told)
        assert told[-1] == 1.0
    if n <= 70:
        monkeypatch.setattr(negative_moments, "FACTORS_AT_A_TIME", 3 * n * n)
        total, first, second = inner_moments(contour)
        assert total == pytest.approx(wanted, abs=2e-14)
        factor, odd = np.cos(b) + 1j * m * np.sin(b), m * np.cos(b) + 1j * np.sin(b)
        for i in (0, n - 1):
            one = np.exp(-1j * (x @ t)) * np.prod(np.delete(factor, i, axis=1), axis=1) * odd[:, i]
            assert first[i] == pytest.approx((density * one).sum().real, abs=2e-14)
        if n > 1:
            both = np.exp(-1j * (x @ t)) * np.prod(factor[:, 1:-1], axis=1) * odd[:, 0] * odd[:, -1]
            assert second[0, n - 1] == pytest.approx((density * both).sum().real, abs=2e-14)


def test_left_out_nodes_do_not_matter():
    """The coarse-to-fine search against the whole grid."""
    rng = np.random.default_rng(7)
    for r in (1, 2):
        theta, a = rng.uniform(0, 1, 9), rng.normal(size=(r, 9)) * 2
        nodes = positive_nodes(a, lambda g, theta=theta, a=a: (sum_positive(theta, a, g),) * 2)
        halves = [math.ceil((np.abs(row).sum() + TAIL) / STEP) + 20 for row in a]
        axes = [STEP * np.arange(-half, half + 1) for half in halves]
        g = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, r)
        z = theta + g @ a
        terms = np.sum(np.abs(z) + np.log1p(np.exp(-2 * np.abs(z))), axis=1) - (g**2).sum(axis=1) / 2
        weight = r * (math.log(STEP) - LOG_SQRT_2PI)
        wanted = np.logaddexp.reduce(terms) + weight - np.abs(theta).sum()
        assert np.logaddexp.reduce(nodes.log_term) == pytest.approx(wanted, rel=1e-13)
        assert len(nodes.g) < len(g)


@pytest.mark.parametrize("n", [1, 3, 14])
def test_many_rank_one_factors_at_once(n):
    rng = np.random.default_rng(n)
    V = np.linalg.qr(rng.normal(size=(n, n)))[0]
    values = rng.normal(size=n) * 5
    values[0] = 0.0
    logs, errors = log_expectations(values, V)
    X = states.all_states(n).astype(float)
    for j in range(n):
        exponents = values[j] * (X @ V[j]) ** 2
        wanted = exponents.max() + math.log(math.fsum(np.exp(exponents - exponents.max()))) - n * math.log(2)
        assert abs(logs[j] - wanted) <= max(errors[j], 1e-13)
        assert errors[j] < 1e-9


def test_many_factors_of_many_spins_are_the_plain_sums_over_nodes():
    rng = np.random.default_rng(5)
    n = 250
    v = rng.normal(size=(3, n))
    v /= np.linalg.norm(v, axis=1)[:, None]
    values = np.array([-0.5, -8.0, -60.0])
    logs, errors = log_expectations(values, v)
    for j in range(3):
        a = math.sqrt(-2 * values[j]) * v[j]
        h = 2 * math.pi / (np.abs(a).sum() + 12)
        x = h * np.arange(-math.ceil(12 / h), math.ceil(12 / h) + 1)
        plain = (np.exp(-(x**2) / 2) * np.prod(np.cos(np.outer(x, a)), axis=1)).sum() * h / math.sqrt(2 * math.pi)
        assert logs[j] == pytest.approx(math.log(plain), abs=1e-12)
        assert errors[j] < 1e-9


@pytest.mark.parametrize(
    ("n", "value", "rest"), [(12, -93.9, 0.05), (10, -400.0, 0.02), (2, -1000.0, 1e-3), (1, -50.0, 0.0)]
)
def test_a_factor_that_one_spin_dominates_keeps_its_digits(n, value, rest):
    """E is down to e^-1000, where plain sums over cosines have nothing left: a spin that stands for a strong field."""
    v = rest * np.random.default_rng(6).normal(size=n)
    v[n // 2] = -1.0
    exponents = value * (states.all_states(n) @ v) ** 2
    wanted = np.logaddexp.reduce(exponents) - n * math.log(2)
    logs, errors = log_expectations(np.array([value]), v[None])
    assert abs(logs[0] - wanted) <= errors[0] + 1e-12
    assert errors[0] < 1e-11


def test_a_factor_without_digits_says_so():
    v = np.full((1, 21), 1 / math.sqrt(21))
    assert log_expectations(np.array([-1000.0]), v)[1][0] == math.inf


@pytest.mark.parametrize("at_a_time", [1, 200])
def test_factors_are_the_same_in_parts(at_a_time, monkeypatch):
    """Compiled code sees no interrupt, so long lines of nodes and many spins are done some at a time."""
    rng = np.random.default_rng(8)
    v = rng.normal(size=(1, 40)) * 3
    whole = log_expectations(np.array([-4.0]), v)[0], log_uniform_expectation(v[0], -1.0, 0.05)[0]
    monkeypatch.setattr(single_directions, "FACTORS_AT_A_TIME", at_a_time)
    monkeypatch.setattr(quantized_dp, "CELLS_PER_REPORT", at_a_time)
    parts = log_expectations(np.array([-4.0]), v)[0], log_uniform_expectation(v[0], -1.0, 0.05)[0]
    assert parts[0] == pytest.approx(whole[0], rel=1e-13)
    assert parts[1] == whole[1]


@pytest.mark.parametrize("values", [[-1.0], [-1.0, -0.5], [1.0, -0.5]])
def test_an_interrupt_is_seen_between_the_nodes(values, monkeypatch):
    monkeypatch.setattr(negative_directions, "FACTORS_AT_A_TIME", 1)
    rng = np.random.default_rng(len(values))
    model = sz.Ising.from_factors(rng.normal(size=60), values, rng.normal(size=(len(values), 60)))
    with heard() as told:
        sz.log_z(model, "quadrature")
    visits = [fraction for task, fraction in told if task == "visiting nodes"]
    assert len(visits) > 2
    assert all(0.0 <= fraction <= 1.0 for fraction in visits)

    def interrupt(task, fraction):
        if task == "visiting nodes" and fraction < 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), listening(interrupt):
        sz.log_z(model, "quadrature")


# --- samples -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signs", "method"),
    with_slow(
        itertools.product([(1,), (-1,), (1, 1), (1, -1)], ["quadrature", "low_rank", "auto"]), [((1, 1), "low_rank")]
    ),
)
def test_samples_have_the_exact_probabilities(method, signs):
    rng = np.random.default_rng([len(signs), signs[0] + 1])
    model = sz.Ising.from_factors(rng.uniform(-1, 1, 6), signs, 0.6 * rng.normal(size=(len(signs), 6)))
    x = sz.sample(model, 20_000, method, seed=5)
    assert x.shape == (20_000, 6)
    assert x.dtype == np.int8
    assert set(np.unique(x)) == {-1, 1}
    statistic, freedom = chi_square(model, x)
    assert statistic < freedom + 4 * math.sqrt(2 * freedom)


@pytest.mark.parametrize("signs", [(1,), (-1,), (1, -1)])
def test_rejection_undoes_even_a_coarse_quantisation(signs):
    """A grid so coarse that its own distribution is plainly another one: what is kept has the model's."""
    rng = np.random.default_rng([3, len(signs), signs[0] + 1])
    model = sz.Ising.from_factors(rng.uniform(-1, 1, 5), signs, 0.7 * rng.normal(size=(len(signs), 5)))
    form = decompose(model, 2, 1e-6)
    cells = 60 if len(signs) == 1 else 900
    grid = quantized._sampling_grid(form, 5, cells * 6)
    assert (grid.deviation * (2 * np.abs(form.directions).sum(axis=1) + grid.deviation)).sum() > 0.3
    x = quantized.sample_decomposed(model, form, 40_000, np.random.default_rng(1), cells * 6)
    statistic, freedom = chi_square(model, x)
    assert statistic < freedom + 4 * math.sqrt(2 * freedom)


@pytest.mark.parametrize("value", [1.5, -40.0])
def test_samples_of_many_spins_have_the_exact_moments(value):
    rng = np.random.default_rng(2)
    n, size = 200, 4000
    v = rng.normal(size=(1, n))
    v /= np.linalg.norm(v)
    model = sz.Ising.from_factors(rng.uniform(-1, 1, n), [value], v)
    x = sz.sample(model, size, seed=3).astype(float)
    exact = sz.marginals(model, "quadrature")
    spread = np.sqrt(np.maximum(1 - exact.mean**2, 1e-12) / size)
    assert np.max(np.abs(x.mean(axis=0) - exact.mean) / spread) < 4.5
    # mean of the quadratic form, from the derivative of log Z by the eigenvalue
    h = 1e-4 * abs(value)
    up, down = (sz.log_z(sz.Ising.from_factors(model.field, [value + d], v), "quadrature").log_z for d in (h, -h))
    y = (x @ v[0]) ** 2
    assert abs(y.mean() - (up - down) / (2 * h)) < 5 * y.std() / math.sqrt(size) + 1e-4


def test_the_seed_decides():
    model = sz.generators.rank_one(10, 0.2, seed=0)
    for method in ("quadrature", "low_rank"):
        a, b, c = (sz.sample(model, 50, method, seed=s) for s in (1, 1, 2))
        assert np.array_equal(a, b)
        assert not np.array_equal(a, c)
    assert sz.sample(model, 0).shape == (0, 10)
    with pytest.raises(sz.errors.OptionError, match="size is -1"):
        sz.sample(model, -1)
