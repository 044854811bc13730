"""Expectation propagation: the fixed point of an independent solver, the right orders, and an honest scale of error."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from benchmarks import expectation_propagation as benchmark
from benchmarks import honesty
from benchmarks.known_models import partition_log_z

import spectralz as sz
from spectralz._support import clock
from spectralz._support.deadline import Deadline
from spectralz.errors import NotConvergedError
from spectralz.kernels import consistency_of_many as many
from spectralz.kernels import expectation_consistency as kernel
from spectralz.kernels import mean_field as mean_field_kernel
from spectralz.kernels.coupling import Couplings
from spectralz.methods import expectation_propagation
from spectralz.methods.expectation_propagation import ExpectationPropagation
from spectralz.parts.expectation_propagation import phases, problem
from spectralz.parts.expectation_propagation.problem import Problem, mean_field, mean_field_states
from spectralz.parts.mean_field.ascents import bound_at, bounds_at
from tests.helpers import heard, with_slow
from tests.reference import states
from tests.reference.expectation_propagation import ExpectationConsistency, loops

PLAIN = ExpectationPropagation(correction=False)


def coupled(model):
    J = 2.0 * states.dense(model)
    np.fill_diagonal(J, 0.0)
    return np.array(model.field), J


@pytest.mark.parametrize("n", [3, 4, 5, 6])
@pytest.mark.parametrize("strength", [0.05, 0.2, 0.4])
@pytest.mark.parametrize("field", [0.0, 0.5, 1.5])
def test_fixed_point_value_and_correction_are_those_of_the_definition(n, strength, field):
    model = sz.generators.complete(n, strength, seed=n, field_strength=field).shift_diagonal(0.3)
    oracle = ExpectationConsistency(model)
    found = sz.marginals(model, "ep")
    details = found.estimate.details
    # Newton ends with residuals of 1e-9 and less, the root finder with 1e-12.
    assert details["uncorrected"] == pytest.approx(oracle.log_z(), abs=1e-9)
    assert details["correction_terms"][:2] == pytest.approx(oracle.correction(), abs=1e-8)
    assert details["correction"] == pytest.approx(sum(oracle.correction()), abs=1e-8)
    assert found.estimate.log_z == pytest.approx(oracle.log_z() + sum(oracle.correction()), abs=1e-8)
    assert found.mean == pytest.approx(oracle.m, abs=1e-8)
    for (i, j), pair in zip(found.edges, found.pair_mean, strict=True):
        a, b, both = oracle.m[i], oracle.m[j], oracle.S[i, j] + oracle.m[i] * oracle.m[j]
        # P(x_i = x, x_j = y) = (1 + x a + y b + x y both) / 4 must not be negative.
        both = min(max(both, -1 - a - b, -1 + a + b), 1 - a + b, 1 + a - b)
        assert pair == pytest.approx(both, abs=1e-8)


@pytest.mark.parametrize("J", [-0.6, 0.01, 0.3, 1.0])
def test_two_spins_without_field_have_a_closed_form(J):
    # Lambda = lam for both: S_ii = lam / (lam^2 - J^2) = 1, so that lam^2 - J^2 = lam and the correlation is J / lam.
    lam = (1 + math.sqrt(1 + 4 * J * J)) / 2
    result = sz.log_z(sz.Ising.from_edges(2, [(0, 1)], [J]), "ep")
    assert result.details["uncorrected"] == pytest.approx(2 * math.log(2) + lam - 1 - math.log(lam) / 2, abs=1e-12)
    assert result.details["correction"] == pytest.approx((J / lam) ** 4 / 6, abs=1e-12)


def test_without_couplings_it_is_exact():
    field = np.array([0.0, 0.3, -2.0, 40.0, -1e5])
    found = sz.marginals(sz.Ising(field, np.zeros((5, 5)), 0.5), "ep")
    result = found.estimate
    assert result.log_z == pytest.approx(0.5 + np.logaddexp(field, -field).sum(), rel=1e-15)
    assert result.status.converged
    assert result.details["trusted"]
    assert result.std_error < 1e-9
    assert found.probability[3, 0] == pytest.approx(math.exp(-80), rel=1e-12)


@pytest.mark.parametrize("seed", with_slow(range(4), (1, 2, 3)))
def test_derivatives_of_log_z_are_the_marginals(seed):
    model = sz.generators.complete(5, 0.2, seed)
    found, step = sz.marginals(model, PLAIN), 1e-4
    A = np.array(model.coupling)

    def slope(direction, matrix):
        ends = [sz.log_z(sz.Ising(model.field + x * direction, A + x * matrix), PLAIN).log_z for x in (-step, step)]
        return (ends[1] - ends[0]) / (2 * step)

    for i in range(5):
        assert slope(np.eye(5)[i], 0 * A) == pytest.approx(found.mean[i], abs=1e-7)
    for (i, j), pair in zip(found.edges, found.pair_mean, strict=True):
        E = np.zeros((5, 5))
        E[i, j] = E[j, i] = 0.5
        assert slope(np.zeros(5), E) == pytest.approx(pair, abs=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_gradient_and_curvature_of_phi_are_its_derivatives_anywhere(seed):
    theta, J = coupled(sz.generators.complete(5, 0.8, seed))
    h = np.random.default_rng(seed).normal(size=5)
    point = kernel.point_at(theta, J, h)
    assert point.mismatch < 1e-10
    assert np.allclose(np.diag(np.linalg.inv(np.diag(point.precision) - point.coupling)), 1.0)
    slopes, seconds, step = [], [], 1e-5
    for i in range(5):
        moved = [kernel.point_at(theta, J, np.arctanh(point.mean + x * np.eye(5)[i])) for x in (-step, step)]
        slopes.append((moved[1].value - moved[0].value) / (2 * step))
        seconds.append((kernel.gradient(theta, J, moved[1]) - kernel.gradient(theta, J, moved[0])) / (2 * step))
    assert kernel.gradient(theta, J, point) == pytest.approx(slopes, abs=1e-7)
    deviation = np.sqrt(point.variance)
    assert np.allclose(-np.array(seconds) * np.outer(deviation, deviation), kernel._curvature(point), atol=1e-6)


@pytest.mark.parametrize(("field", "plain", "corrected"), [(1.0, 3, 5), (0.0, 4, 6)])
def test_errors_have_the_right_order_in_the_strength(field, plain, corrected):
    # Vertices of the diagrams have at least three lines (four without field): what is left begins with l = 3 (4), and
    # with l = 5 (6) or a triangle of five (six) lines after the correction.
    def errors(s, seed):
        model = sz.generators.complete(6, s, seed, field_strength=field)
        truth, result = states.solve(model)[0], sz.log_z(model, ExpectationPropagation(tol=1e-12))
        return [abs(result.details["uncorrected"] - truth), abs(result.log_z - truth)]

    # Sums over models, since in one of them the leading terms of either sign may cancel.
    weak, strong = (sum(np.array(errors(s, seed)) for seed in range(10)) for s in (0.01, 0.02))
    assert np.log2(strong / weak) == pytest.approx([plain, corrected], abs=0.25)


@pytest.mark.parametrize("seed", range(4))
def test_next_corrections_are_those_of_their_diagrams(seed):
    theta, J = coupled(sz.generators.complete(6, 0.5, seed, field_strength=0.7))
    point = kernel.point_at(theta, J, np.random.default_rng(seed).normal(size=6))
    triangle, double, square, _ = loops(point.mean, point.variance, point.correlation)
    terms = np.array([triangle, double, 5 / 3 * square])
    wanted = terms[terms > 0].sum(), terms[terms < 0].sum()
    assert kernel.loop_terms(point) == pytest.approx(wanted, rel=1e-9, abs=1e-15)


def test_the_tetrahedron_has_two_thirds_of_the_square_for_one_mode():
    n = 12
    point = kernel.point_at(np.zeros(n), np.full((n, n), 1.2 / n) - 1.2 / n * np.eye(n), np.full(n, 0.5))
    _, _, square, tetrahedron = loops(point.mean, point.variance, point.correlation)
    # Equal up to 1 / n: the square goes through a spin twice, the tetrahedron does not.
    assert tetrahedron == pytest.approx(2 / 3 * square, rel=3 / n)


def test_what_is_left_out_is_what_the_next_corrections_say():
    """Error bars of 1e-8 were two to three times too small, since the triangle of double lines was underrated."""
    for n, cost in ((40, 0.3), (60, 1.0), (100, 3.0)):
        a = np.random.default_rng(n).integers(1, 20, n)
        c = cost / float(a @ a)
        result = sz.log_z(sz.Ising(None, -c * np.outer(a, a)), "ep")
        error = abs(result.log_z - partition_log_z(a.tolist(), c))
        assert result.trusted
        assert 0.5 * result.std_error < error < result.std_error


def test_marginals_at_weak_coupling_are_nearly_those_of_enumeration():
    for seed in range(5):
        model = sz.generators.complete(9, 0.05, seed)
        _, mean, pair_mean = states.solve(model)
        found = sz.marginals(model, "ep")
        assert found.kind is sz.Kind.ESTIMATE
        assert np.abs(found.mean - mean).max() < 1e-3
        assert np.abs(found.pair_mean - pair_mean[tuple(found.edges.T)]).max() < 5e-3


SLOW_FAMILIES = [
    "complete",
    "Erdos-Renyi, p = 0.5",
    "4 x 4 grid",
    "tree",
    "4 x 4 grid, ferromagnetic",
    "tree, ferromagnetic",
]


@pytest.mark.parametrize("family", with_slow(benchmark.FAMILIES, SLOW_FAMILIES))
def test_the_error_is_within_twice_its_scale(family):
    misses = []
    for s in (0.05, 0.2, 0.5, 1.0, 2.0, 8.0):
        for field in (1.0, 0.05, 0.0):
            model = benchmark.FAMILIES[family](12, s, 40_000, field)
            result = sz.log_z(model, "ep")
            error = abs(result.log_z - sz.log_z(model, "exact").log_z)
            assert result.details["residual"] <= result.method.tol
            assert result.status.converged is result.trusted
            assert result.lower <= result.log_z
            misses.append(error > 2 * result.std_error + 1e-12)
    # It is a measured scale and no bound: one of eighteen may miss (the page's table has fewer than 1%).
    assert sum(misses) <= 1


@pytest.mark.slow
def test_weak_couplings_have_a_small_scale_and_strong_ones_a_warning():
    for seed in range(10_000, 10_010):
        weak = sz.log_z(sz.generators.complete(20, 0.05, seed), "ep")
        assert weak.details["trusted"]
        assert weak.std_error < 3e-4
        assert "do not trust" not in weak.status
        strong = sz.log_z(sz.generators.complete(20, 2.0, seed, field_strength=0.1), "ep")
        assert not strong.details["trusted"]
        assert "do not trust" in strong.status


def collective(n, strength, field):
    """Return a Curie-Weiss model as a plain matrix, and its log Z by the sum over magnetizations."""
    coupling = np.full((n, n), strength / (2 * n))
    np.fill_diagonal(coupling, 0.0)
    ups = np.arange(n + 1)
    m = 2 * ups - n
    ways = np.array([math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in ups])
    truth = np.logaddexp.reduce(ways + strength * (m**2 - n) / (2 * n) + field * m)
    return sz.Ising(np.full(n, field), coupling), float(truth)


# The two phases of a ferromagnet are one direction apart: many deviations along it, and no farther than a sample's
# distance in all directions together. A Gaussian that saw one of them only was sure and wrong by up to log 2.
@pytest.mark.parametrize("n", [150, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("strength", [0.9, 1.0, 1.05, 1.1, 1.15, 1.2, 1.3, 1.6])
@pytest.mark.parametrize("field", [0.0, 0.005])
def test_no_phase_of_a_ferromagnet_is_missed(n, strength, field):
    model, truth = collective(n, strength, field)
    result = sz.log_z(model, "ep")
    assert abs(result.log_z - truth) <= 2.5 * result.std_error
    assert result.trusted is (result.std_error <= 0.1)
    if strength >= 1.3:
        assert result.trusted
        assert "sum over 2 separate phases" in result.status
        assert abs(result.log_z - truth) < 0.01
        share = 1.0 / (1.0 + math.exp(-2.0 * field * n * math.tanh(strength)))
        assert max(result.details["phases"]) == pytest.approx(share, abs=0.15)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_phases_of_a_ferromagnet_with_disorder_are_added_up(seed):
    """J_ij = 1.2 / n + 0.1 N(0, 1) / sqrt(n); with 300 spins and 1.15 / n it was once 213.3765 +- .0014 for 214.09."""
    n, rng = 200, np.random.default_rng(seed)
    J = np.triu(1.2 / n + 0.1 * rng.standard_normal((n, n)) / math.sqrt(n), k=1)
    model = sz.Ising(coupling=(J + J.T) / 2)
    result = sz.log_z(model, "ep")
    other = sz.log_z(model, "annealing", population=500, runs=2, seed=seed)
    assert result.details["phases"] == pytest.approx([0.5, 0.5], abs=1e-6)
    assert abs(result.log_z - other.log_z) <= 3 * math.hypot(result.std_error, other.std_error)


def test_marginals_of_phases_are_those_of_their_mixture():
    model, _ = collective(200, 1.3, 0.002)
    found = sz.marginals(model, "ep")
    exact = sz.marginals(sz.generators.curie_weiss(200, 1.3, 0.002), "quadrature")
    assert np.abs(found.mean - exact.mean).max() < 0.01
    assert np.abs(found.pair_mean - exact.pair_mean[0]).max() < 0.01


# Seed 12: a mixture of patterns about to merge with the phase of the field, 2.6% of Z on a flat shelf of 15 deviations,
# was taken for 0.06% (12 errors off). The others were 8 off: several soft modes, of which none is all of C.
@pytest.mark.parametrize(("seed", "index"), [(12, 7), (20, 3), (20, 0), (22, 4)])
def test_patterns_and_mixtures_of_a_hopfield_network_are_within_the_error(seed, index):
    known, _ = honesty.drawn("hopfield", seed, index)
    result = sz.log_z(known.model, "ep")
    assert result.std_error < 0.1
    assert abs(result.log_z - known.log_z) <= 2.0 * result.std_error


def test_the_opposite_of_a_state_is_a_start_too():
    """Of four patterns and their opposites random starts came to seven: 0.067 too low, with an error of 0.0002."""
    n, K, field, rng = 55, 2.6, 0.03, np.random.default_rng(0)
    xi = rng.choice([-1.0, 1.0], (4, n))
    A = 0.5 * K / n * (xi.T @ xi)
    np.fill_diagonal(A, 0.0)
    model = sz.Ising(field * xi[0], A)
    given = Problem.of(model)
    ends = mean_field_states(given, restarts=3, seed=0)
    for state in ends:
        mirrored = mean_field(given, -state.h)
        assert any(other.is_at(mirrored.h) for other in ends)


def test_a_shelf_counts_with_its_length():
    known, _ = honesty.drawn("hopfield", 12, 7)
    result = sz.log_z(known.model, "ep")
    assert 0.01 < result.details["missed"] < 0.1


@pytest.mark.slow
def test_phases_of_a_lattice_are_not_believed():
    """15 x 14 spins at K = 0.4356: trusted, and off by 20 of its errors."""
    result = sz.log_z(sz.generators.torus(15, 14, 0.4356), "ep")
    truth = sz.closed_forms.torus(15, 14, 0.4356)
    assert not result.trusted or abs(result.log_z - truth) <= 5 * result.std_error
    cold = sz.log_z(sz.generators.torus(12, 12, 0.48), "ep")
    assert not cold.trusted
    assert "do not trust" in cold.status


def test_a_glass_has_no_phases_although_mean_field_sees_states():
    n, rng = 150, np.random.default_rng(5)
    J = np.triu(0.8 * rng.standard_normal((n, n)) / math.sqrt(n), k=1)
    result = sz.log_z(sz.Ising(coupling=(J + J.T) / 2), "ep")
    assert result.details["states"] > 1
    assert result.details["phases"] == [1.0]
    assert result.details["missed"] < 0.01


@pytest.mark.parametrize("weight", [-500.0, -2.0])
def test_what_the_words_say_the_flags_say(weight):
    """An antiferromagnet of five spins: 2499.16 +- .0017 with converged=True, where the truth is 2003.0."""
    model = sz.Ising(coupling=weight * (1 - np.eye(5)))
    result = sz.log_z(model, "ep")
    assert "do not trust" in result.status
    assert not result.status.converged
    assert not result.trusted
    with pytest.raises(NotConvergedError):
        result.check()


def test_components_add_up():
    parts = [sz.generators.complete(4, 0.3, seed) for seed in (0, 1)]
    zero = np.zeros((4, 4))
    A = np.block([[np.array(parts[0].coupling), zero], [zero, np.array(parts[1].coupling)]])
    whole = sz.log_z(sz.Ising(np.concatenate([part.field for part in parts]), A), "ep")
    assert whole.log_z == pytest.approx(sum(sz.log_z(part, "ep").log_z for part in parts), abs=1e-10)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e3, 1e100, 1e150, 1e290])
def test_every_scale_gives_a_possible_value(scale):
    for seed in range(3):
        base = sz.generators.complete(7, 1.0, seed)
        for field, A in ((1, scale), (scale, 1), (scale, scale), (0, scale)):
            model = sz.Ising(field * base.field, A * np.array(base.coupling))
            found = sz.marginals(model, "ep")
            result = found.estimate
            truth = sz.log_z(model, "exact").log_z
            room = 1e-9 * max(1.0, abs(truth))
            assert result.lower <= truth + room
            assert result.lower - room <= result.log_z
            assert np.all(np.abs(found.pair_mean) <= 1)
            if result.std_error is not None:
                assert abs(result.log_z - truth) <= 2 * result.std_error + room
            json.dumps(result.to_dict(), allow_nan=False)


def test_one_spin_and_none():
    assert sz.log_z(sz.Ising([], np.zeros((0, 0)), 1.5), "ep").log_z == 1.5
    one = sz.log_z(sz.Ising([0.7], [[2.0]]), "ep")
    assert one.log_z == pytest.approx(2.0 + math.log(2 * math.cosh(0.7)), rel=1e-15)


def test_what_did_not_settle_is_data():
    result = sz.log_z(sz.generators.complete(15, 1.0, seed=0), "ep", max_iter=1, restarts=0)
    assert not result.status.converged
    assert result.status.startswith("stopped after 1 iterations with residual")
    assert result.std_error is None
    assert not result.details["trusted"]


def test_where_no_gaussian_can_be_held_the_bound_of_mean_field_is_given(monkeypatch):
    monkeypatch.setattr(kernel, "LARGEST_PRECISION", 0.5)
    found = sz.marginals(sz.generators.complete(6, 1.0, seed=0), "ep")
    result = found.estimate
    assert not result.status.converged
    assert "too strong" in result.status
    assert result.log_z == result.lower
    assert result.std_error is None


@pytest.mark.parametrize("damping", [0.5, 100.0])
def test_damping_changes_the_way_and_not_the_end(damping):
    model = sz.generators.complete(10, 0.2, seed=1)
    plain, damped = sz.log_z(model, "ep"), sz.log_z(model, "ep", damping=damping)
    assert damped.log_z == pytest.approx(plain.log_z, abs=1e-10)
    assert damped.iterations > plain.iterations


def test_correction_can_be_left_out():
    model = sz.generators.complete(10, 0.1, seed=1)
    whole, plain = sz.log_z(model, "ep"), sz.log_z(model, PLAIN)
    assert plain.log_z == plain.details["uncorrected"] == whole.details["uncorrected"]
    assert whole.log_z == pytest.approx(plain.log_z + plain.details["correction"], abs=1e-13)
    assert plain.std_error > whole.std_error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_iter": 0}, "max_iter"),
        ({"tol": 0.0}, "tol"),
        ({"damping": -0.1}, "damping"),
        ({"damping": math.nan}, "damping"),
        ({"correction": 1}, "correction"),
        ({"restarts": -1}, "restarts"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_options_are_refused_by_name(options, message):
    with pytest.raises(sz.errors.OptionError, match=message):
        sz.log_z(sz.Ising([0.0], [[0.0]]), "ep", **options)


def test_too_many_spins_are_refused_with_the_way_out(monkeypatch):
    monkeypatch.setattr(expectation_propagation, "MOST_SPINS", 5)
    with pytest.raises(sz.errors.TooLargeError, match="use bp"):
        sz.log_z(sz.generators.complete(6, 0.1, seed=0), "ep")


def test_progress_is_reported():
    with heard() as told:
        sz.log_z(sz.generators.complete(8, 0.3, seed=0), "ep")
    assert {task for task, _ in told} == {"looking for states", "climbing"}
    assert all(0 <= fraction <= 1 for _, fraction in told)


@pytest.mark.slow
def test_the_smallest_case_of_the_benchmark_runs(capsys):
    benchmark.complete_graph(n=5, repeats=2)
    benchmark.families(sizes=(5,), repeats=1)
    assert capsys.readouterr().out.count("\n| ") >= len(benchmark.STRENGTHS) + len(benchmark.FAMILIES)


# ------------------------------------------------------------------------------------------------- many spins


def glass(n, strength, seed, field=0.0):
    theta, J = coupled(sz.generators.sk(n, strength, seed, field))
    return theta, J


def climbed(theta, J, h):
    """Return the fixed point by the slow climb, which fits a Gaussian at each of its points."""
    point = kernel.point_at(theta, J, h)
    for _ in range(50):
        if np.abs(kernel.gradient(theta, J, point)).max() < 1e-11:
            break
        found = kernel.improved(theta, J, point, 0.0, 1e-9)
        if found is None:
            break
        point, _ = found
    return point


def settled(theta, J, h, tol=1e-8, max_steps=20, is_up=kernel.never):
    kinds = []
    inverse = many.inverse_in_place

    def counted(matrix):
        kinds.append(matrix.dtype)
        return inverse(matrix)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(many, "inverse_in_place", counted)
        start = many.tap_start(theta, J, h, kernel.never)
        return many.settled(theta, J, start, tol, max_steps, is_up, lambda: None), kinds


@pytest.mark.parametrize(
    ("strength", "field", "most"),
    with_slow([(0.3, 0.0, 3), (0.3, 0.4, 3), (0.9, 0.0, 7), (0.8, 0.4, 6)], [(0.3, 0.0, 3), (0.3, 0.4, 3)]),
)
def test_few_factorizations_lead_to_the_fixed_point_of_the_climb(strength, field, most):
    theta, J = glass(160, strength, 3, field)
    way, kinds = settled(theta, J, theta)
    slow = climbed(theta, J, theta)
    assert way.steps == len(kinds) <= most
    assert sum(kind == np.float64 for kind in kinds) <= 3
    assert way.residual <= 1e-8
    assert way.point.value == pytest.approx(slow.value, abs=1e-9)
    assert way.point.mean == pytest.approx(slow.mean, abs=1e-8)
    assert way.point.correlation == pytest.approx(slow.correlation, abs=1e-6)
    assert way.point.correlation.dtype == np.float64


def test_a_step_of_means_and_gaussian_together_squares_the_residual():
    """A wrong factor in the coupling of both, or a lost sign, leaves linear convergence at best."""
    theta, J = glass(120, 0.6, 0, 0.3)
    slow = climbed(theta, J, theta)
    rng = np.random.default_rng(0)
    residuals = []
    for size in (1e-2, 1e-3):
        h, precision = slow.h + size * rng.normal(size=120), slow.precision * (1 + size * rng.normal(size=120))
        at = many._matched(theta, J, h, precision, np.float64)
        after = many._matched(theta, J, *many._newton_step(at), np.float64)
        assert after.residual < 20 * at.residual**2
        residuals.append(after.residual)
    assert residuals[1] < 0.05 * residuals[0]


def test_what_is_no_maximum_is_left_to_the_climb():
    """Above its transition a ferromagnet has no maximum of Phi at means of 0, in which TAP starts."""
    n = 60
    J = np.full((n, n), 1.5 / n) - 1.5 / n * np.eye(n)
    way, _ = settled(np.zeros(n), J, np.zeros(n))
    assert way is None


def test_where_the_time_is_up_the_last_point_is_in_double_precision():
    theta, J = glass(200, 0.9, 0)
    way, kinds = settled(theta, J, theta, is_up=lambda: True)
    assert [kind == np.float64 for kind in kinds] == [False, True]
    assert way.residual > 1e-8
    assert way.point.correlation.dtype == np.float64


def test_a_point_in_double_precision_is_the_last_where_the_time_is_up():
    theta, J = glass(200, 0.9, 0)
    whole, kinds = settled(theta, J, theta)
    before_the_last = len(kinds) - 1
    assert kinds[before_the_last - 1] == np.float64
    made = []
    way = many.settled(theta, J, theta, 1e-8, 20, lambda: len(made) >= before_the_last, lambda: made.append(1))
    assert way.steps == len(made) == before_the_last
    assert way.residual > 1e-8 >= whole.residual
    assert way.point.value == pytest.approx(whole.point.value, abs=1e-6)


@pytest.mark.parametrize("field", [0.0, 0.4])
def test_phi_is_below_its_bounds(field):
    theta, J = glass(80, 0.8, 1, field)
    known = climbed(theta, J, theta)
    assert kernel.upper_bound(theta, J, known.h, known) == pytest.approx(known.value, abs=1e-9)
    rng = np.random.default_rng(0)
    for size in (0.01, 0.3, 1.5):
        h = known.h + size * rng.normal(size=80)
        value = kernel.point_at(theta, J, h).value
        assert kernel.upper_bound(theta, J, h, known) >= value - 1e-9
        bound = many.looser_bound(theta, J, h, known)
        assert value <= bound
        if size < 1.0:
            assert bound < value + 1.0


def test_starts_relax_to_the_fixed_point_they_belong_to():
    theta, J = glass(400, 0.8, 2)
    known = climbed(theta, J, theta)
    starts = np.random.default_rng(0).normal(size=(400, 5))
    found = many.relaxed(theta, J, starts, known, 0.3, kernel.never)
    assert (many.deviations_to(known, np.tanh(found)) <= 0.3).all()
    assert many.reaction_scale(J, known) == pytest.approx(1.0, abs=0.1)


def test_starts_do_not_relax_to_a_gaussian_that_covers_two_phases(monkeypatch):
    """Drawn to the middle, both phases of 700 spins were once lost: 491 for 496, although not trusted."""
    n = 150
    J = np.full((n, n), 1.3 / n) - 1.3 / n * np.eye(n)
    middle = kernel.point_at(np.zeros(n), J, np.zeros(n))
    assert many.reaction_scale(J, middle) > 10.0
    model, truth = collective(n, 1.3, 0.0)
    monkeypatch.setattr(problem, "MANY_SPINS", 100)
    assert abs(sz.log_z(model, "ep").log_z - truth) < 0.01
    monkeypatch.setattr(phases, "OTHER_REACTION", math.inf)  # the error, planted again
    assert abs(sz.log_z(model, "ep").log_z - truth) > 1.0


def test_mean_field_from_many_starts_is_that_from_each():
    theta, J = glass(150, 0.9, 4, 0.1)
    starts = np.random.default_rng(1).normal(size=(150, 4))
    together = starts.copy()
    for _ in range(7):
        mean_field_kernel.ascend_together(together, np.tanh(together), theta[:, None], J)
    values, _ = bounds_at(together, theta, Couplings.of_dense(J))
    for k in range(4):
        h = starts[:, k].copy()
        mean_field_kernel.ascend(h, theta, Couplings.of_dense(J), 7, 0.0)
        assert together[:, k] == pytest.approx(h, abs=1e-12)
        assert values[k] == pytest.approx(bound_at(h, theta, Couplings.of_dense(J))[0], abs=1e-10)


@pytest.mark.parametrize("field", [0.0, 0.005])
def test_states_of_many_spins_are_hit_as_often_as_those_of_few(field, monkeypatch):
    """With half of the hits, where opposite starts were left out, error bars were up to ten times too wide."""
    given = Problem.of(collective(150, 1.3, field)[0])
    few = mean_field_states(given, restarts=20, seed=0)
    monkeypatch.setattr(problem, "MANY_SPINS", 100)
    many_ = mean_field_states(given, restarts=20, seed=0)
    assert [state.hits for state in many_] == [state.hits for state in few]
    assert [state.lower for state in many_] == pytest.approx([state.lower for state in few], abs=1e-6)


@pytest.mark.parametrize(("strength", "field"), [(0.4, 0.0), (0.4, 0.2), (0.8, 0.0)])
def test_many_spins_get_the_answer_of_few(strength, field, monkeypatch):
    model = sz.generators.sk(130, strength, 5, field)
    slow = sz.log_z(model, "ep")
    monkeypatch.setattr(problem, "MANY_SPINS", 100)
    quick = sz.log_z(model, "ep")
    assert quick.log_z == pytest.approx(slow.log_z, abs=1e-7)
    assert quick.std_error == pytest.approx(slow.std_error, rel=1e-5)
    assert quick.trusted is slow.trusted
    assert quick.details["missed"] == pytest.approx(slow.details["missed"], abs=1e-9)


@pytest.mark.parametrize("strength", [0.9, 1.05, 1.15, 1.3, 1.6])
@pytest.mark.parametrize("field", [0.0, 0.005])
def test_no_phase_of_many_spins_is_missed(strength, field, monkeypatch):
    monkeypatch.setattr(problem, "MANY_SPINS", 100)
    model, truth = collective(150, strength, field)
    result = sz.log_z(model, "ep")
    assert abs(result.log_z - truth) <= 2.5 * result.std_error
    if strength >= 1.3:
        assert result.trusted
        assert "sum over 2 separate phases" in result.status


def test_diagrams_of_many_spins_are_those_of_few(monkeypatch):
    theta, J = glass(90, 0.8, 6, 0.3)
    point = climbed(theta, J, theta)
    few = kernel.loop_terms(point)
    monkeypatch.setattr(kernel, "MOST_IN_DOUBLE", 10)
    assert kernel.loop_terms(point) == pytest.approx(few, rel=1e-4)


def test_a_budget_that_ends_at_once_leaves_an_answer_that_is_not_trusted(monkeypatch):
    monkeypatch.setattr(problem, "MANY_SPINS", 100)
    with clock.counting_operations(), Deadline(1e-9).in_force():
        result = sz.log_z(sz.generators.sk(150, 0.6, 0), "ep")
    assert not result.trusted
    assert math.isfinite(result.log_z)


@pytest.mark.slow
def test_the_large_case_of_the_benchmark_runs(capsys):
    benchmark.large(sizes=(520,), strengths=(0.3,))
    assert "520" in capsys.readouterr().out
