"""Models with phases that cooling misses: what log Z, means, curves and ratios say of them is right."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.first_order_models import (
    Molecules,
    alone,
    coupling_of,
    groups_log_z,
    model_of_groups,
    of_groups,
    two_valued,
)

import spectralz as sz
from spectralz._support.deadline import Deadline
from spectralz.methods.annealing import limits_of
from spectralz.parts.leading import leading_directions
from spectralz.portfolio import schedule
from spectralz.sampling.core import Work, half_of
from spectralz.sampling.population import Population
from spectralz.sampling.spread import crew_for
from tests.helpers import with_slow

pytestmark = pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")


def trap(pairs, strength, *, inside=-2.0, field=0.1, seed=0):
    """Return pairs of opposite spins in a ferromagnet of all spins, gauged and relabeled at random, with its log Z."""
    group = [Molecules(pairs, (field, -field), inside)]
    return of_groups(np.random.default_rng(seed), [group], np.array([[strength / (2 * pairs)]]), "")


# ---------------------------------------------------------------------------------------------------------- annealing


def test_phases_behind_a_first_order_transition_are_found_and_measured():
    known = trap(60, 5.0)
    result = sz.log_z(known.model, "annealing", population=100)
    assert known.log_z - result.details["log_z_of_populations"][0] > 4.0  # it is a trap
    assert result.details["phases"] == 2
    assert result.trusted
    assert abs(result.log_z - known.log_z) < 4.0 * result.std_error < 0.1


def test_without_fields_one_of_two_phases_that_mirror_each_other_is_annealed_towards():
    group = [Molecules(40, (0.0, 0.0), -2.2)]
    J = np.array([[coupling_of(group)]])
    found = sz.marginals(model_of_groups([group], J), "annealing", population=64, runs=16)
    assert found.estimate.details["phases"] == 1
    assert found.estimate.log_z == pytest.approx(groups_log_z([group], J), abs=4.0 * found.estimate.std_error)
    assert found.estimate.std_error < 0.1
    assert np.abs(found.mean).max() < 0.2


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(sz.generators.complete(30, 0.5, 1), marks=pytest.mark.slow),
        pytest.param(sz.generators.sk(60, 1.5, 2), marks=pytest.mark.slow),
        sz.generators.torus(8, 8, 0.6),
        sz.Ising(coupling=sz.generators.curie_weiss(80, 1.4).coupling),
        sz.Ising(field=[0.5, 1.0]),
    ],
)
def test_where_there_is_no_transition_nothing_changes(model):
    """Small populations may miss valleys of a glass; what these weigh is measured, and counts once."""
    result = sz.log_z(model, "annealing", population=30)
    assert abs(result.log_z - sz.log_z(model).log_z) <= 4.0 * result.std_error < 1.0
    assert result.trusted


@pytest.mark.parametrize("method", ["annealing", "states"])
def test_methods_by_name_count_all_phases(method):
    known = alone(np.random.default_rng(3), two_valued(np.random.default_rng(5), 60), "")
    result = sz.log_z(known.model, method, population=400)
    assert abs(result.log_z - known.log_z) <= 4.0 * result.std_error
    assert result.trusted


def test_samples_and_marginals_visit_each_phase_with_its_weight():
    """Half of the spins of two fields: the mean of the others says how much of P(x) is in each phase."""
    group = [Molecules(30, (2.4,)), Molecules(30, (-2.4,))]
    known = of_groups(np.random.default_rng(0), [group], np.array([[coupling_of(group)]]), "")
    gauge = np.sign(leading_directions(known.model.storage, 1)[0])
    exact = sz.marginals(known.model, "quadrature").mean
    found = sz.marginals(known.model, "annealing", population=500)
    assert found.mean == pytest.approx(exact, abs=0.04)
    x = sz.sample(known.model, 2000, "annealing", seed=1) * gauge
    up, down = np.mean(x.mean(axis=1) > 0.6), np.mean(x.mean(axis=1) < -0.6)
    assert up == pytest.approx(down, abs=0.05)  # the model is its own mirror image, but for the order of its spins
    assert up + down > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("seed", [450003, 440002])
def test_annealing_measures_a_lone_state_of_a_machine(seed):
    """No run, or one in thousands of states, reaches it: trusted answers were wrong by 7.6 errors."""
    model = sz.generators.rbm(12, 20, 2.0, seed)
    result = sz.log_z(model, "annealing", seed=seed)
    assert abs(result.log_z - sz.log_z(model, "exact").log_z) < 4.0 * result.std_error < 0.2


def test_no_group_finds_states_and_measures_their_share():
    """The states of one half of the groups are summed up, and those of the other half measure their share."""
    rng, groups, each = np.random.default_rng(0), 6, 4
    x = rng.choice(np.array([-1, 1], dtype=np.int8), size=(groups * each, 20))
    whole = Population(rng.normal(size=groups), x, np.full((groups, each), 1.0 / each), np.arange(groups * each) // 2)
    with crew_for(None) as crew:
        work = Work(sz.Ising(np.zeros(20)), crew, rng, limits_of(Deadline()), counted=((whole,), (whole,)))
        halves = [half_of(work, half).counted for half in (0, 1)]
    for base in range(2):
        parts = [counted[base][0] for counted in halves]
        assert sorted(np.concatenate([part.log_z for part in parts])) == sorted(whole.log_z)
        assert {row.tobytes() for part in parts for row in part.x} == {row.tobytes() for row in x}
        assert not set.intersection(*({row.tobytes() for row in part.x} for part in parts))


# --------------------------------------------------------------------------------------------------------------- auto


@pytest.mark.parametrize(
    "strength", [pytest.param(strength, marks=pytest.mark.slow) for strength in (3.0, 4.72, 4.8)] + [5.0]
)
def test_answers_in_the_trap_are_right(strength):
    """A hundred pairs, strength 5: once 270.7 +- .04, trusted, where the truth is 298.739."""
    known = trap(100, strength, seed=3)
    result = sz.log_z(known.model, work=2e9, exclude=["exact", "quadrature"])
    assert abs(result.log_z - known.log_z) <= 4.0 * result.std_error < 1.5
    assert result.lower <= known.log_z <= result.upper
    assert result.trusted or strength < 4.8


FIELDS = [Molecules(105, (3.9795,)), Molecules(105, (-3.9795,))]
BOUND = [Molecules(74, (0.0, 0.0), -1.9439)], [Molecules(24, (0.0, 0.0), -3.5676)]
FREE = [Molecules(33, (0.3, -0.3), -1.963)], [Molecules(221, (0.0,))]
EXAMPLES = {
    "two fields": ([FIELDS], np.array([[7.9586 / 210]])),
    "beside bound pairs": (BOUND, np.array([[4.606 / 148, 0.0], [0.0, 0.0]]) + 0.02 / 196),
    "among free spins": (FREE, np.array([[4.801 / 66, 0.0], [0.0, 0.0]]) - 0.088 / 287),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in EXAMPLES])
def test_models_that_were_trusted_and_wrong(name):
    groups, J = EXAMPLES[name]
    known = of_groups(np.random.default_rng(1), groups, J, name)
    for seed in range(2):
        result = sz.log_z(known.model, exclude=["exact", "quadrature"], work=1e10, seed=seed)
        assert abs(result.log_z - known.log_z) <= 4.0 * result.std_error
        assert result.trusted


@pytest.mark.slow
def test_a_phase_of_one_of_several_linked_parts_is_counted():
    """The part at coexistence has a third of the spins; the others are disordered or ordered."""
    groups = [[Molecules(20, (0.1, -0.1), -2.0)] for _ in range(3)]
    K = coupling_of(groups[0])
    J = np.full((3, 3), 0.05 / 120.0) + np.diag([K, 0.6 * K, 0.6 * K])
    known = of_groups(np.random.default_rng(4), groups, J, "")
    found = sz.log_z(known.model, exclude=["exact", "quadrature"], work=1e9)
    assert abs(found.log_z - known.log_z) < 4.0 * found.std_error


@pytest.mark.slow
def test_a_state_between_two_phases_is_counted():
    """It is two flips from where most states are: machines like this were wrong by up to .59 nats."""
    model = sz.generators.rbm(12, 20, 2.0, 420000)
    result = sz.log_z(model, exclude=["exact", "mps", "states"], seed=1, work=1e10)
    assert abs(result.log_z - sz.log_z(model, "exact").log_z) < 4.0 * result.std_error < 0.02


@pytest.mark.slow
def test_valleys_of_a_cold_glass_are_weighed_one_by_one():
    """Spins of chains in several valleys look independent: what they could weigh was 10 to 30 nats too much."""
    model = sz.generators.complete(100, 0.5, seed=3)
    result = sz.log_z(model, work=1e10, exclude=["ep", "mps"])
    assert result.trusted
    assert abs(result.log_z - 420.6506) < 3.0 * result.std_error  # 1e6 states hold 99.9997% of P(x)
    assert result.std_error < 0.2


def test_equal_components_have_random_numbers_of_their_own(monkeypatch):
    one, seeds, answer = sz.generators.sk(26, 0.9, seed=2), [], schedule.answer
    monkeypatch.setattr(
        schedule, "answer", lambda problem, deadline: seeds.append(problem.seed) or answer(problem, deadline)
    )
    twice = sz.Ising(np.tile(one.field, 2), np.kron(np.eye(2), one.coupling))
    for seed in (0, 1):
        sz.log_z(twice, exclude=["exact", "quadrature", "ep"], work=1e7, seed=seed)
    assert len(set(seeds)) == 4


# -------------------------------------------------------------------------------------------------- curves and ratios


def assert_right_if_trusted(value, error, trusted, truth):
    assert np.all(np.abs(value - truth) <= np.where(trusted, 5.0 * error, np.inf)), (value, error, trusted, truth)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_curves_through_the_trap_are_right(seed):
    """The transition is between the temperatures."""
    known, betas, step = trap(60, 5.0, seed=3), np.array([0.5, 1.0]), 1e-4
    found = sz.thermodynamics(known.model, betas, "annealing", work=1e9, seed=seed)
    log_z = np.array([known.at(beta) for beta in betas])
    energy = [(known.at(beta - step) - known.at(beta + step)) / (2.0 * step) for beta in betas]
    assert_right_if_trusted(found.log_z, found.log_z_error, found.trusted, log_z)
    assert_right_if_trusted(found.energy, found.energy_error, found.trusted, np.array(energy))
    assert found.trusted.all()
    assert found.log_z_error[1] < 0.05


@pytest.mark.parametrize("strength", with_slow([4.2, 4.72, 5.0], [4.72, 5.0]))
def test_ratios_in_the_trap_are_right(strength):
    above, below = trap(30, strength + 0.3, seed=3), trap(30, strength, seed=3)
    found = sz.log_ratio(above.model, below.model, work=1e9, seed=1)
    assert found.kind is sz.Kind.ESTIMATE
    assert_right_if_trusted(found.value, found.std_error, found.trusted, above.log_z - below.log_z)
    assert found.trusted or strength == 4.72
    assert found.std_error < 0.25


# ------------------------------------------------------------------------------------------------- leading directions


def test_leading_directions():
    rng = np.random.default_rng(0)
    v = rng.choice([-1.0, 1.0], 80)
    found = leading_directions(sz.Ising(coupling=np.outer(v, v) / 80).storage, 2)
    assert np.abs(found[0] @ v) / 80 == pytest.approx(1.0, abs=1e-3)
    assert leading_directions(sz.Ising(field=[1.0, 2.0]).storage, 2) == []
    for scale in (1e-290, 1e290):
        small = leading_directions(sz.Ising(coupling=scale * (1 - np.eye(6))).storage, 1)
        assert np.allclose(np.abs(small[0]), 1.0)
    again = leading_directions(sz.generators.grid(12, 1.0, 0).storage, 2)
    for first, second in zip(again, leading_directions(sz.generators.grid(12, 1.0, 0).storage, 2), strict=True):
        assert np.array_equal(first, second)
