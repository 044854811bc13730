"""Phases that cooling misses: found, annealed towards by themselves, and added up once each."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.first_order_models import Molecules, alone, coupling_of, of_groups, two_valued

import spectralz as sz
from spectralz._support.deadline import Deadline
from spectralz.methods.annealing import limits_of
from spectralz.parts.leading import leading_directions
from spectralz.parts.outcome import exact_outcome
from spectralz.portfolio import schedule
from spectralz.sampling.core import Work, half_of
from spectralz.sampling.engines.collapsed import sides_of
from spectralz.sampling.engines.protocol import one_after_the_other
from spectralz.sampling.path import from_coins, from_fields, path_to
from spectralz.sampling.plan import STEP, spaced_by
from spectralz.sampling.population import Population as Counted
from spectralz.sampling.populations import Run, marginals_of
from spectralz.sampling.run import anneal, anneal_many, log_mean_z
from spectralz.sampling.spread import crew_for
from spectralz.sampling.strata import phases as phases_module
from spectralz.sampling.strata.candidates import (
    cooled_candidates,
    heavy_candidates,
    random_candidates,
    turned_candidates,
)
from spectralz.sampling.strata.met import (
    CHAINS_GOING_ON,
    TIMES_SEEN,
    Population,
    _of_remaining,
    _summed_around,
    most_of,
    with_most_entropy,
)
from spectralz.sampling.strata.phases import (
    Phase,
    Phases,
    Stratum,
    _apart_from_met,
    find_phases,
)
from spectralz.sampling.strata.runs import (
    MORE_THAN_CHANCE,
    annealed_to_phases,
    counted,
    merged,
    outside,
    path_to_stratum,
    run_by_run,
    within,
)
from spectralz.trust.judgment import Judgment
from spectralz.trust.strata import (
    beside_unmeasured,
    judge_strata,
    may_add,
    summary_of_strata,
)
from tests.reference.states import all_states, log_z, solve

pytestmark = pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")


def trap(pairs, strength, *, inside=-2.0, field=0.1, seed=0):
    """Return pairs of opposite spins in a ferromagnet of all spins, gauged and relabeled at random, and its log Z."""
    group = [Molecules(pairs, (field, -field), inside)]
    known = of_groups(np.random.default_rng(seed), [group], np.array([[strength / (2 * pairs)]]), "")
    return known.model, known.log_z


def made(path, size=200, runs=2, seed=0):
    rng = np.random.default_rng(seed)
    with crew_for(path) as crew:
        return list(anneal_many(crew, path, spaced_by(path, STEP, rng, crew.parallel), size, runs, rng))


def found_in(model, seed=0):
    path = path_to(model)
    runs, directions = made(path, seed=seed), leading_directions(model.storage, 4)
    return find_phases(path, runs, directions, np.random.default_rng(seed)), runs, path


# ------------------------------------------------------------------------------------------------- a rule, fixed first


def small_phases(n=8, *, is_mirrored=False):
    """Two phases that exclude each other, and one of other spins."""
    first, second, other = np.zeros((3, n))
    first[:5], second[2:5], other[6:] = 0.2, -1.0 / 3.0, 0.5
    phases = (Phase(first, 0.0), Phase(second, 0.1), Phase(other, -0.1))
    if is_mirrored:
        phases = tuple(both for phase in phases for both in (phase, phase.mirrored()))
    return Phases(phases, (), is_mirrored)


def literal_number(phases, x):
    """The rule in plain words: the closest phase first, unless it holds a spin that a closer one holds."""
    overlaps = [sum(p * spin for p, spin in zip(phase.pattern, x, strict=True)) - phase.offset for phase in phases]
    taken, held = 0, set()
    for k in sorted(range(len(phases)), key=lambda k: -overlaps[k]):
        spins = set(np.flatnonzero(phases[k].pattern).tolist())
        if overlaps[k] >= 0.5 and not spins & held:
            taken, held = taken | 1 << k, held | spins
    return taken


@pytest.mark.parametrize("is_mirrored", [False, True])
def test_every_state_belongs_to_one_stratum(is_mirrored):
    phases, x = small_phases(is_mirrored=is_mirrored), all_states(8).astype(np.int8)
    numbers = phases.numbers(x)
    assert numbers.tolist() == [literal_number(phases.phases, state) for state in x.tolist()]
    assert len(set(numbers.tolist())) > 3
    assert Phases().numbers(x).tolist() == [0] * 256


def test_the_mirror_image_of_a_stratum():
    phases, x = small_phases(is_mirrored=True), all_states(8).astype(np.int8)
    for state, number in zip(x, phases.numbers(x).tolist(), strict=True):
        assert phases.numbers(-state[None]).tolist() == [phases.mirror(number)]


def test_phases_that_hold_different_spins_are_combined():
    assert small_phases().combinations() == [(0, 2), (1, 2)]
    assert Phases().combinations() == []


# ------------------------------------------------------------------------------------ runs count for one stratum only


def model_of(seed, n=8, field=0.5):
    rng = np.random.default_rng(seed)
    J = np.triu(0.5 * rng.standard_normal((n, n)), 1)
    return sz.Ising(field * rng.standard_normal(n), 0.5 * (J + J.T))


def with_strata(phases, bases):
    return replace(phases, strata=tuple(Stratum(number, base, 0.0) for number, base in bases.items()))


def groups_of(model, phases, size=4000, seed=0):
    """Anneal a model whose chains cross between all phases, along its own path and from each stratum's base."""
    rng, path, points = np.random.default_rng(seed), path_to(model), np.linspace(0.0, 1.0, 17)
    runs = [anneal(path, points, size, rng) for _ in range(2)]
    to = [[anneal(path_to_stratum(path, s), points, size, rng) for _ in range(2)] for s in phases.strata]
    return [outside(phases, runs), *(within(phases, s, r) for s, r in zip(phases.strata, to, strict=True))]


@pytest.mark.parametrize("is_mirrored", [False, True])
def test_weights_of_strata_add_up_to_z_where_chains_cross(is_mirrored):
    """Each run estimates the whole Z; without the rule the sum would be four times as large."""
    model, n = model_of(1, field=0.0 if is_mirrored else 0.5), 8
    base = {1: np.full(n, 0.4), 2: np.full(n, -0.3), 4: np.linspace(-0.5, 0.5, n)}
    phases = small_phases(is_mirrored=is_mirrored)
    if is_mirrored:
        base = {1: base[1], 4: base[2], 16: base[4]}
    phases = with_strata(phases, base)
    x = all_states(n).astype(np.int8)
    weight, numbers = np.exp(model.log_weight(x) - model.constant), phases.numbers(x)
    groups = groups_of(model, phases)
    summary = summary_of_strata(groups)
    assert summary.std_error < 0.03
    assert abs(summary.log_z - log_z(model) + model.constant) < 4.0 * summary.std_error
    for stratum, runs in zip(phases.strata, groups[1:], strict=True):
        both = [stratum.number, phases.mirror(stratum.number)] if is_mirrored else [stratum.number]
        exact = math.log(weight[np.isin(numbers, both)].sum())
        assert log_mean_z(runs) == pytest.approx(exact, abs=0.25)  # 3% of 8000 states; counted twice it is off by log 2
    rest = [s.number for s in phases.strata] + [phases.mirror(s.number) for s in phases.strata if is_mirrored]
    assert log_mean_z(groups[0]) == pytest.approx(math.log(weight[~np.isin(numbers, rest)].sum()), abs=0.08)


@pytest.mark.parametrize("is_mirrored", [False, True])
def test_one_population_of_all_strata(is_mirrored):
    model, n = model_of(2, field=0.0 if is_mirrored else 0.5), 8
    phases = small_phases(is_mirrored=is_mirrored)
    phases = with_strata(phases, {1: np.full(n, 0.4), 16 if is_mirrored else 4: np.zeros(n)})
    groups = groups_of(model, phases)
    run = merged(groups)
    _, mean, _ = solve(model)
    assert run.weight.sum() == pytest.approx(1.0)
    assert run.log_z == pytest.approx(summary_of_strata(groups).log_z, abs=1e-12)
    assert run.weight @ run.x == pytest.approx(mean, abs=0.05)
    assert len(set(run.family.tolist())) > 10_000
    for one in run_by_run(groups):
        assert one.log_z == pytest.approx(run.log_z, abs=0.1)
        assert one.weight @ one.x == pytest.approx(mean, abs=0.07)


def run_with(log_z, size=100, families=None):
    x, family = np.ones((size, 2), np.int8), np.arange(size) % (families or size)
    share = np.bincount(family, minlength=size) / size
    return Run(log_z, x, np.full(size, 1.0 / size), family, float(((share - 1.0 / size) ** 2).sum()))


def test_errors_of_strata_by_hand():
    groups = [[run_with(math.log(3.0))], [run_with(0.0, families=50), run_with(-math.inf)]]
    found = summary_of_strata(groups)
    # The second stratum weighs 1 in one run and 0 in the other: 1/2 beside 3, with an error as large as itself.
    assert found.log_z == pytest.approx(math.log(3.5))
    assert found.run_error == pytest.approx(math.hypot(1.0, 1.0 / 50.0) / 7.0)
    assert found.families == pytest.approx(100.0 * 3.5 / 3.0)
    assert summary_of_strata(groups[:1]).families == pytest.approx(100.0)


def run_in(log_z, x):
    """A population of states of equal weight."""
    size = len(x)
    return Run(log_z, np.array(x, dtype=np.int8), np.full(size, 1.0 / size), np.arange(size), 0.0)


@pytest.mark.parametrize("is_mirrored", [False, True])
def test_runs_that_miss_the_weight_of_their_stratum_do_not_count(is_mirrored):
    """Other runs find e^3 times as much there: that happens by chance with probability e^-3 at most."""
    n = 8
    inside, elsewhere = np.ones(n), np.tile([1.0, -1.0], n // 2)
    rule = small_phases(is_mirrored=is_mirrored)
    phases = with_strata(rule, {int(rule.numbers(inside[None])[0]): np.zeros(n)})
    assert phases.have(phases.strata, np.array([inside, -inside, elsewhere])).tolist() == [True, is_mirrored, False]
    ordinary = run_in(1.0, [inside, -inside, elsewhere, elsewhere])
    met = 1.0 + math.log(0.5 if is_mirrored else 0.25)
    doubled = math.log(2.0) if is_mirrored else 0.0
    for gap, counts in ((MORE_THAN_CHANCE + 0.01, False), (MORE_THAN_CHANCE - 0.01, True)):
        rest, part = counted(phases, [ordinary], [[run_in(met - gap - doubled, [inside, inside])]])
        assert bool(part) == counts
        expected = 1.0 if not counts else 1.0 + math.log(0.5 if is_mirrored else 0.75)
        assert log_mean_z(rest) == pytest.approx(expected)


# ------------------------------------------------------------------------------------------- what was not measured


def phases_with(most, **others):
    return Phases((), (Stratum(1, np.zeros(2), most),), **others)


def test_a_phase_that_was_not_measured_widens_the_error_or_leaves_no_trust():
    answer = Judgment(10.0, 1e-3, True)
    small, large = (phases_with(9.0 + math.log(share / (1.0 - share))) for share in (0.015, 0.5))
    assert may_add(small, [[]], 9.0) == pytest.approx(-math.log1p(-0.015))
    assert beside_unmeasured(answer, small, [[]], 1.0) == Judgment(10.0, pytest.approx(0.03), True)
    judged = beside_unmeasured(answer, large, [[]], 1.0)
    assert judged.log_z == pytest.approx(10.0 + math.log(2.0) / 2.0)
    assert judged.std_error == pytest.approx(math.log(2.0) / 2.0)
    assert not judged.trusted
    assert "up to 50% of Z was found but not measured" in judged.why
    # Runs that never ended in it measure nothing; a run that did measures it.
    assert beside_unmeasured(answer, large, [[], [run_with(-math.inf)]], 1.0) == judged
    assert beside_unmeasured(answer, large, [[], [run_with(3.0)]], 1.0) == answer
    # Its mirror image counts as well.
    assert may_add(replace(large, is_mirrored=True), [[]], 9.0) == pytest.approx(math.log(3.0))


def test_more_phases_than_can_be_counted_leave_no_trust():
    judged = beside_unmeasured(Judgment(10.0, 1e-3, True), Phases(is_complete=False), [[]], 0.0)
    assert not judged.trusted
    assert judged.std_error == pytest.approx(math.log(2.0))


# -------------------------------------------------------------------------------------------------------- the search


def test_states_of_a_population_that_is_partly_in_a_phase_lie_midway_between_it_and_the_others():
    """A few families are in the phase, with half of the weight: means are midway, and no bound for states."""
    model, _ = trap(40, 5.0)
    path, rng = path_to(model), np.random.default_rng(0)
    ordered = np.sign(leading_directions(model.storage, 1)[0]).astype(np.int8)
    (run, *_) = made(path, size=200)
    x = run.x.copy()
    x[:10] = np.where(rng.random((10, 80)) < 0.02, -1, 1) * ordered
    weight = np.r_[np.full(10, 0.05), np.full(190, 0.5 / 190)]
    mixed = replace(run, x=x, weight=weight, family=np.arange(200))
    phases = find_phases(path, [mixed], [ordered.astype(float)], rng)
    phase = max(phases.phases, key=lambda phase: float(phase.overlaps(ordered[None])[0]))
    assert phase.overlaps(x[:10]).mean() == pytest.approx(1.0, abs=0.1)
    assert phase.overlaps(x[10:]).mean() == pytest.approx(0.0, abs=0.1)


def drawn_in(model, path, is_there, rng):
    """Return the exact log-weight of a set, and states of it, drawn exactly, as of chains that go on."""
    x = all_states(model.n).astype(np.int8)
    x = x[is_there(x)]
    log_weight = model.log_weight(x) - model.constant
    exact = float(np.logaddexp.reduce(log_weight))
    places = rng.choice(len(x), size=(TIMES_SEEN, CHAINS_GOING_ON), p=np.exp(log_weight - exact))
    here = Population(path, [], np.zeros(model.n), rng, one_after_the_other)
    return exact, here, list(x[places])


def layers(strength, seed):
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(5) for j in range(5, 14)]
    return sz.Ising.from_edges(14, pairs, strength * rng.standard_normal(len(pairs)), field=rng.standard_normal(14))


@pytest.mark.parametrize("seed", [0, *(pytest.param(each, marks=pytest.mark.slow) for each in (1, 2))])
@pytest.mark.parametrize("strength", [0.4, 1.5])
@pytest.mark.parametrize("is_bipartite", [False, True])
def test_what_a_cold_set_weighs_is_summed_around_its_states(is_bipartite, strength, seed):
    """At the smaller strength its states are met in part only."""
    model = layers(strength, seed) if is_bipartite else sz.generators.complete(14, strength, seed=seed)
    path, rng = path_to(model), np.random.default_rng(seed)
    first = (np.arange(14) < 5).astype(float)  # of a bipartite model all of the side that is kept
    heaviest = max(all_states(14).astype(np.int8), key=lambda x: float(model.log_weight(x[None])[0]))
    phase = Phase(first * heaviest / 5.0, 0.0)
    for one in (phase, phase.mirrored()):
        exact, here, states = drawn_in(model, path, one.has, rng)
        assert _summed_around(here, states, one.has) == pytest.approx(exact, abs=0.25)
        assert with_most_entropy(here, np.concatenate(states)) > exact - 0.1


def test_what_a_warm_set_weighs_is_bounded_by_its_entropy():
    """Chains meet no state of 40 free spins twice."""
    path, rng = path_to(sz.Ising(np.zeros(40), np.zeros((40, 40)))), np.random.default_rng(0)
    here, everything = Population(path, [], np.zeros(40), rng, one_after_the_other), Phase(np.zeros(40), -1.0)
    states = list(rng.choice(np.array([-1, 1], dtype=np.int8), size=(TIMES_SEEN, CHAINS_GOING_ON, 40)))
    assert _summed_around(here, states, everything.has) == math.inf
    assert with_most_entropy(here, np.concatenate(states)) == pytest.approx(40.0 * math.log(2.0), abs=0.1)


@pytest.mark.slow
def test_valleys_of_a_cold_glass_are_weighed_one_by_one():
    """Spins of chains in several valleys look independent: what they could weigh was 10 to 30 nats too much."""
    model = sz.generators.complete(100, 0.5, seed=3)
    result = sz.log_z(model, work=1e10, exclude=["ep", "mps"])
    assert result.trusted
    assert abs(result.log_z - 420.6506) < 3.0 * result.std_error  # 1e6 states hold 99.9997% of P(x)
    assert result.std_error < 0.2


def test_what_chains_leave_weighs_as_much_as_the_share_that_is_left():
    path, up = path_to(sz.Ising(np.zeros(4))), Phase(np.full(4, 0.25), 0.0)
    run = replace(made(path, size=10, runs=1)[0], log_z=3.0)
    here = Population(path, [run], np.zeros(4), np.random.default_rng(0), one_after_the_other)
    x = -np.ones((CHAINS_GOING_ON, 4), dtype=np.int8)
    later = x.copy()
    later[:3] = 1
    states = [np.ones_like(x), np.ones_like(x), x, later]  # of which the first half does not count
    assert _of_remaining(here, states, up.has) == pytest.approx(3.0 + math.log(3.5 / (2 * CHAINS_GOING_ON + 1)))
    assert _of_remaining(here, [x, np.ones_like(x)], up.has) == math.inf  # they stay


def test_a_set_may_lack_weight_although_many_families_have_met_it():
    path, up = path_to(sz.Ising(np.zeros(4))), Phase(np.full(4, 0.25), 0.0)
    x = -np.ones((1000, 4), dtype=np.int8)
    x[:20] = 1
    run = replace(made(path, size=1000, runs=1)[0], log_z=3.0, x=x, weight=np.full(1000, 1e-3), family=np.arange(1000))
    here = Population(path, [run], np.zeros(4), np.random.default_rng(0), one_after_the_other)
    assert here.has_met(up.has)
    assert not here.may_lack(up.has, 3.0 + math.log(0.025))
    assert here.may_lack(up.has, 3.0 + math.log(0.027))


@pytest.mark.parametrize("flips", [False, True])
def test_heavy_states_of_a_kept_side_are_candidates(flips):
    """They are the heaviest local maxima with the other side summed out, each once."""
    model = layers(1.5, seed=4)
    path = replace(from_fields(model, np.zeros(14), sides=sides_of(model)), flips=flips)
    kept, v = path.sides.kept, all_states(len(path.sides.kept)).astype(np.int8)
    x = np.random.default_rng(0).choice(np.array([-1, 1], dtype=np.int8), size=(3, 14))
    states = all_states(14).astype(np.int8)
    weights, place = model.log_weight(states), (states[:, kept] > 0) @ (1 << np.arange(len(kept)))
    weights = np.array([np.logaddexp.reduce(weights[place == k]) for k in (v > 0) @ (1 << np.arange(len(kept)))])
    apart = v.astype(np.int64) @ v.T.astype(np.int64) == len(kept) - 2
    maxima = [k for k in range(len(v)) if weights[k] > weights[apart[k]].max()]
    assert len(maxima) > 2
    for most in (2, 8):
        found = heavy_candidates(path, x, np.random.default_rng(1), one_after_the_other, most, np.inf)
        expected = sorted(maxima, key=lambda k: -weights[k])[:most]
        assert [state[kept].tolist() for state, _ in found] == v[expected].tolist()
        assert all(where.all() for _, where in found)
    assert not heavy_candidates(replace(path, sides=None), x, np.random.default_rng(1), one_after_the_other, 8, np.inf)


def test_a_set_weighs_no_less_than_the_heaviest_of_its_states():
    """Chains that were disturbed are mostly in its lightest ones: their mean says nothing of what it holds."""
    model = sz.Ising(np.full(8, 10.0))
    path, state = path_to(model), np.ones(8, dtype=np.int8)
    here = Population(path, [], np.zeros(8), np.random.default_rng(0), one_after_the_other)
    x = np.where(np.eye(8, dtype=np.bool_), -1, state).astype(np.int8)
    later = [np.resize(x * np.roll(x, 1, axis=0), (CHAINS_GOING_ON, 8))] * TIMES_SEEN  # two flips away
    everywhere = lambda x: np.ones(len(x), dtype=np.bool_)  # noqa: E731
    assert with_most_entropy(here, x) < 61.0
    for chains in (np.concatenate([x, state[None]]), np.concatenate([state[None], x])):
        assert with_most_entropy(here, chains) == pytest.approx(80.0)
        assert most_of(here, chains, later, everywhere) >= 80.0


def test_states_halfway_to_a_phase_are_outside_if_the_population_has_met_them():
    """One heavy family of the phase itself must not hide that many light ones are halfway."""
    path, phase = path_to(sz.Ising(np.zeros(10))), Phase(np.full(10, 0.1), 0.0)
    down, halfway, up = -np.ones(10), np.repeat([1.0, -1.0], [8, 2]), np.ones(10)

    def with_border(halfway_families):
        x = np.repeat([down, halfway, up], [999 - halfway_families, halfway_families, 1], axis=0).astype(np.int8)
        weight = np.append(np.full(999, 0.5 / 999), 0.5)
        run = replace(made(path, size=1000, runs=1)[0], x=x, weight=weight, family=np.arange(1000))
        here = Population(path, [run], np.zeros(10), np.random.default_rng(0), one_after_the_other)
        return _apart_from_met(phase, here, np.ones((16, 10), dtype=np.int8))

    moved = with_border(halfway_families=40)
    states = np.array([down, halfway, up], dtype=np.int8)
    assert moved.has(states).tolist() == [False, False, True]
    assert moved.overlaps(states[2:]) == pytest.approx(1.0)
    border = np.mean(phase.overlaps(states[1:2]) + 0.0125)  # the first of the grid beyond
    assert moved.overlaps(states) == pytest.approx(1.0 - 0.5 * (1.0 - phase.overlaps(states)) / (1.0 - border))
    for few in (0, 3):
        assert with_border(few).overlaps(states) == pytest.approx(phase.overlaps(states))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [450003, 440002])
def test_annealing_measures_a_lone_state_of_a_machine(seed):
    """No run, or one in thousands of states, reaches it: trusted answers were wrong by 7.6 errors."""
    model = sz.generators.rbm(12, 20, 2.0, seed)
    result = sz.log_z(model, "annealing", seed=seed)
    assert abs(result.log_z - sz.log_z(model, "exact").log_z) < 4.0 * result.std_error < 0.2
    assert "that they missed" in result.status


@pytest.mark.slow
def test_a_state_between_two_phases_is_counted():
    """It is two flips from where the population is, and more than half of the way to a phase that hides it."""
    model = sz.generators.rbm(12, 20, 2.0, 420000)
    result = sz.log_z(model, exclude=["exact", "mps", "states"], seed=1, work=1e10)
    assert abs(result.log_z - sz.log_z(model, "exact").log_z) < 4.0 * result.std_error < 0.01


def test_quenched_random_states_include_the_heaviest_that_were_not_tried():
    model = sz.generators.sk(14, 2.0, seed=0, field=0.1)
    x = all_states(14)
    weights = model.log_weight(x)
    neighbors = np.arange(len(x))[:, None] ^ (1 << np.arange(14))
    tops = np.all(weights[:, None] >= weights[neighbors], axis=1)
    heaviest = x[tops][np.argsort(-weights[tops])][:6]
    path, rng = path_to(model), np.random.default_rng(0)
    found = [state for state, _ in random_candidates(path, heaviest[:2], rng, one_after_the_other)]
    keys = {state.tobytes() for state in found}
    assert {state.tobytes() for state in heaviest[2:]} <= keys
    assert not {state.tobytes() for state in heaviest[:2]} & keys
    assert random_candidates(path, heaviest, rng, one_after_the_other, 0) == []


def test_states_are_cooled_from_coins_where_a_path_begins_from_fields():
    """A ferromagnet whose fields, strong at the base, hold all states of its path in one of two phases."""
    model = sz.Ising(np.full(16, 0.05), 0.2 * (1.0 - np.eye(16)))
    up, rng = np.ones((1, 16), dtype=np.int8), np.random.default_rng(0)
    path = from_fields(model, np.full(16, 4.0))
    found = {state.tobytes() for state, _ in cooled_candidates(path, up, rng, one_after_the_other, 12)}
    assert (-up).tobytes() in found
    assert up.tobytes() not in found
    assert cooled_candidates(path, up, rng, one_after_the_other, 0) == []
    assert cooled_candidates(from_coins(model), up, rng, one_after_the_other, 12) == []


def test_no_group_finds_states_and_measures_their_share():
    """The states of one half of the groups are summed up, and those of the other half measure their share."""
    rng, groups, each = np.random.default_rng(0), 6, 4
    x = rng.choice(np.array([-1, 1], dtype=np.int8), size=(groups * each, 20))
    whole = Counted(rng.normal(size=groups), x, np.full((groups, each), 1.0 / each), np.arange(groups * each) // 2)
    with crew_for(None) as crew:
        work = Work(sz.Ising(np.zeros(20)), crew, rng, limits_of(Deadline()), counted=((whole,), (whole,)))
        halves = [half_of(work, half).counted for half in (0, 1)]
    for base in range(2):
        parts = [counted[base][0] for counted in halves]
        assert sorted(np.concatenate([part.log_z for part in parts])) == sorted(whole.log_z)
        assert {row.tobytes() for part in parts for row in part.x} == {row.tobytes() for row in x}
        assert not set.intersection(*({row.tobytes() for row in part.x} for part in parts))


def test_a_phase_behind_a_first_order_transition_is_found_and_measured():
    model, truth = trap(60, 5.0)
    phases, runs, path = found_in(model)
    assert truth - log_mean_z(runs) > 5.0  # it is a trap
    assert len(phases.strata) == 2
    assert max(stratum.most for stratum in phases.strata) > truth - 3.0
    with crew_for(path) as crew:
        rng = np.random.default_rng(0)
        _, groups = annealed_to_phases(crew, path, runs, rng, lambda to: made(to, 100))
    summary = summary_of_strata(groups)
    assert abs(summary.log_z - truth) < 4.0 * summary.std_error < 0.1


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


def test_without_fields_one_of_two_phases_that_mirror_each_other_is_annealed_towards():
    model, truth = trap(60, 5.0, field=0.0)
    phases, runs, path = found_in(model)
    assert phases.is_mirrored
    assert len(phases.strata) == 1
    with crew_for(path) as crew:
        _, groups = annealed_to_phases(crew, path, runs, np.random.default_rng(0), lambda to: made(to, 100))
    assert summary_of_strata(groups).log_z == pytest.approx(truth, abs=0.02)
    assert np.abs(marginals_of(model, merged(groups), exact_outcome(truth, 0.0, "a test")).mean).max() < 0.2


@pytest.mark.slow
def test_one_of_several_linked_parts_is_tried_alone():
    """The part at coexistence has a third of the spins; the others are disordered or ordered."""
    groups = [[Molecules(20, (0.1, -0.1), -2.0)] for _ in range(3)]
    K = coupling_of(groups[0])
    J = np.full((3, 3), 0.05 / 120.0) + np.diag([K, 0.6 * K, 0.6 * K])
    known = of_groups(np.random.default_rng(4), groups, J, "")
    path = path_to(known.model)
    x = np.ones((4, 120), np.int8)
    directions = leading_directions(known.model.storage, 4)
    starts = turned_candidates(path, x, directions, np.random.default_rng(0), 32, one_after_the_other)
    parts = sorted({int(where.sum()) for _, where in starts})
    assert 30 <= parts[0] <= 40
    assert parts[-1] == 120
    found = sz.log_z(known.model, exclude=["exact", "quadrature"], work=1e9)
    assert abs(found.log_z - known.log_z) < 4.0 * found.std_error


# ------------------------------------------------------------------------------------------------- end to end


@pytest.mark.parametrize(
    "strength", [pytest.param(strength, marks=pytest.mark.slow) for strength in (3.0, 4.72, 4.8)] + [5.0]
)
def test_answers_in_the_trap_are_right(strength):
    """A hundred pairs, strength 5: once 270.7 +- .04, trusted, where the truth is 298.739."""
    model, truth = trap(100, strength, seed=3)
    result = sz.log_z(model, work=2e9, exclude=["exact", "quadrature"])
    assert abs(result.log_z - truth) <= 4.0 * result.std_error < 1.5
    assert result.lower <= truth <= result.upper
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
def test_curves_through_the_trap_are_right():
    model, truth = trap(60, 5.0, seed=3)
    found = sz.thermodynamics(model, [0.5, 1.0], "annealing", work=1e9)
    assert found.trusted.tolist() == [True, True]
    assert abs(found.log_z[1] - truth) <= 4.0 * found.log_z_error[1] < 0.2
    slope = (trap(60, 5.0 * 1.0001, inside=-2.0002, field=0.10001, seed=3)[1] - truth) / 1e-4
    assert abs(found.energy[1] + slope) <= 4.0 * found.energy_error[1]


@pytest.mark.slow
@pytest.mark.parametrize("strength", [4.2, 4.72, 5.0])
def test_ratios_in_the_trap_are_right(strength):
    (above, log_above), (below, log_below) = trap(30, strength + 0.3, seed=3), trap(30, strength, seed=3)
    found = sz.log_ratio(above, below, work=1e9, seed=1)
    assert found.trusted or strength == 4.72
    assert abs(found.value - (log_above - log_below)) <= 4.0 * found.std_error < 0.25


def test_equal_components_have_random_numbers_of_their_own(monkeypatch):
    one, seeds, answer = sz.generators.sk(26, 0.9, seed=2), [], schedule.answer
    monkeypatch.setattr(
        schedule, "answer", lambda problem, deadline: seeds.append(problem.seed) or answer(problem, deadline)
    )
    twice = sz.Ising(np.tile(one.field, 2), np.kron(np.eye(2), one.coupling))
    for seed in (0, 1):
        sz.log_z(twice, exclude=["exact", "quadrature", "ep"], work=1e7, seed=seed)
    assert len(set(seeds)) == 4


# ------------------------------------------------------------------------------------------------ leading directions


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


def test_a_sum_of_strata_is_judged_like_runs():
    groups = [[run_with(0.0, 1000), run_with(0.01, 1000)], [run_with(1.0, 1000), run_with(1.0, 1000)]]
    judged = judge_strata(summary_of_strata(groups), Phases(), groups, 2.0)
    assert judged.trusted
    assert judged.log_z == pytest.approx(2.0 + math.log(math.e + (1.0 + math.exp(0.01)) / 2.0))
    few = [groups[0], [run_with(1.0, 1000, families=5)]]
    assert not judge_strata(summary_of_strata(few), Phases(), few, 2.0).trusted


def test_a_search_that_runs_out_of_time_says_so():
    """A model with a phase that cooling misses: with all the time it is found, without it nothing is trusted."""
    model, _ = trap(40, 2.1)
    phases, runs, path = found_in(model)
    directions, rng = leading_directions(model.storage, 4), np.random.default_rng(0)
    with Deadline.after(0.0).in_force():
        late = find_phases(path, runs, directions, rng)
    assert phases.is_complete
    assert not late.is_complete
    assert not late.strata
    judged = beside_unmeasured(Judgment(1.0, 0.1, True, ""), late, [], 0.0)
    assert not judged.trusted
    assert "more phases than there was time to measure" in judged.why


@pytest.mark.parametrize("limit", ["MOST_TO_BE_ALL", "MOST_PHASES", "MOST_STRATA"])
def test_there_may_be_more_phases_if_those_that_weigh_something_are_many(limit, monkeypatch):
    """A cold glass has any number of light valleys, which do not count."""
    model, _ = trap(40, 5.0)
    path = path_to(model)
    runs, directions = made(path), leading_directions(model.storage, 4)
    monkeypatch.setattr(phases_module, limit, 0)
    monkeypatch.setattr(phases_module, "FEW_FAMILIES", math.inf)
    for lightest, is_complete in ((-math.inf, False), (math.inf, True)):
        monkeypatch.setattr(phases_module, "LOG_LIGHT", lightest)
        assert find_phases(path, runs, directions, np.random.default_rng(0)).is_complete is is_complete
