"""The search for phases on models whose sums over states are known by magnetization, and where proposals come from."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from benchmarks.first_order_models import Molecules, coupling_of, groups_log_z, magnetizations, model_of_groups
from benchmarks.honesty import drawn
from scipy.special import logsumexp

import spectralz as sz
from spectralz._support.deadline import Deadline
from spectralz.sampling import phases_found
from spectralz.sampling.cells import Cells
from spectralz.sampling.engines.lanes import one_after_the_other
from spectralz.sampling.path import Path, from_coins, from_fields
from spectralz.sampling.phases_found import (
    Missing,
    There,
    are_alike,
    chains,
    cost_of_proposal,
    search,
    stay_together,
)
from spectralz.sampling.population import Population, carry, pilot
from spectralz.sampling.proposals import directions_of_terms, first_proposals, parts_of, quenched, recombined
from spectralz.sampling.symmetries import images_of
from tests.reference.states import all_states

FIELD = 2.5


@dataclass(frozen=True)
class Known:
    """A model with spins that attract each other in fields of both signs, and logs of sums over its phases' states."""

    model: sz.Ising
    signs: np.ndarray
    up: float
    between: float
    log_z: float


def coexisting(n=40, seed=0):
    """Return a model at its first-order transition, gauged and relabeled at random.

    Without the gauge its phases are nearly all spins up, nearly all down, and every spin along its field.
    """
    group = [Molecules(n // 2, (FIELD,)), Molecules(n // 2, (-FIELD,))]
    K = coupling_of(group)
    plain = model_of_groups([group], np.array([[K]]))
    rng = np.random.default_rng(seed)
    order, signs = rng.permutation(n), rng.choice([-1, 1], n)
    A = np.array(plain.coupling)[np.ix_(order, order)] * np.outer(signs, signs)
    M, counts = magnetizations(group)
    weight = counts + 0.5 * K * (M * M - n)
    return Known(
        sz.Ising(plain.field[order] * signs, A),
        signs,
        float(logsumexp(weight[n / 2 < M])),
        float(logsumexp(weight[n / 2 >= np.abs(M)])),
        float(logsumexp(weight)),
    )


def missing_of(path: Path, seed, size=1024, others=(), **limits):
    """Return what to look for after a population has been carried along a path."""
    rng = np.random.default_rng(seed)
    first = pilot(path, 256, rng)
    ordinary = carry(path, first.points, 32, size // 32, rng, sweeps=first.sweeps)
    images = images_of(path.model)
    center = ordinary.mean_of_families()[None] * (len(images) == 1)
    limits = {"enough": 30.0, "light": 7.0, "most_phases": 12} | limits
    cells = Cells(center, images, np.zeros(1, dtype=np.int64))
    top, parallel = ordinary.mean_log_z, one_after_the_other
    return Missing(path, cells, ordinary, list(others), top, rng=rng, parallel=parallel, **limits)


def chains_at(model, seed):
    """Return what moves the chains of a model, after no population."""
    path, nothing = from_coins(model), even_population(np.ones((1, model.n), np.int8))
    cells, rng = Cells.around(np.zeros(model.n), np.ones((1, model.n), np.int8)), np.random.default_rng(seed)
    return Missing(path, cells, nothing, [], 0.0, 30.0, 7.0, 12, rng, one_after_the_other)


# ------------------------------------------------------------------------------------------------------- the search


@pytest.fixture(scope="module")
def found():
    """Return a known model, and what the search finds after a population that has only been between its phases."""
    known = coexisting()
    missing = missing_of(from_fields(known.model, known.model.field), seed=1)
    assert missing.ordinary.mean_log_z == pytest.approx(known.between, abs=0.2)
    return known, search(missing)


def test_missed_phases_are_found_with_their_weights(found):
    known, done = found
    assert done.was_made
    assert done.cut_short == ""
    overlaps = sorted(float(known.signs @ phase.mean) / known.model.n for phase in done.phases)
    assert overlaps == pytest.approx([-1.0, 1.0], abs=0.05)
    for phase in done.phases:
        # The sum over all states with more than three quarters of the spins up; by symmetry that of both phases
        assert phase.log_weight == pytest.approx(known.up, abs=1.0)
        assert phase.families > 10.0
        assert len(phase.sources) > 1
    assert done.missed == 2
    # What was missed is most of Z here.
    assert math.log(2.0) + known.up > known.between - 0.5


def test_known_phases_are_not_found_again():
    known = coexisting()
    missing = missing_of(from_coins(known.model), seed=2)
    assert missing.ordinary.mean_log_z == pytest.approx(known.log_z, abs=0.3)
    done = search(missing)
    assert done.was_made
    assert done.phases == ()
    assert done.light == ()
    assert done.missed == 0
    assert done.tried >= 3


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_warm_glass_has_no_phases(seed):
    glass = sz.generators.sk(n=40, strength=0.5, seed=seed)
    missing = missing_of(from_coins(glass), seed=seed)
    done = search(missing)
    assert done.phases == ()
    assert done.light == ()
    assert done.cut_short == ""
    assert done.tried > 10


def test_light_phases_are_left_out_with_a_bound(found):
    known, _ = found
    missing = missing_of(from_fields(known.model, known.model.field), seed=1, light=-2.0)
    done = search(missing)
    # Phases must now be e^2 times as heavy as all that is known; none is, and chains bound what they hold.
    assert done.phases == ()
    assert len(done.light) == 2
    for bound in done.light:
        assert known.up - 0.1 < bound < known.up + 2.0


def test_more_phases_than_are_measured_cut_the_search_short(found):
    known, _ = found
    missing = missing_of(from_fields(known.model, known.model.field), seed=1, most_phases=1)
    done = search(missing)
    assert len(done.phases) == 1
    assert done.cut_short == "there are more phases than the 1 that are measured"


def test_the_time_cuts_the_search_short(found):
    known, _ = found
    missing = missing_of(from_fields(known.model, known.model.field), seed=1)
    with Deadline.after(-1.0).in_force():
        done = search(missing)
    assert done.cut_short == "the search for phases was cut short by the time"
    assert done.tried == 0


def test_chains_stay_in_a_phase_and_bound_its_weight():
    known = coexisting(n=60)  # large enough that no chain leaves
    missing = chains_at(known.model, 3)
    up = known.signs.astype(np.int8)
    along = np.where(known.model.field >= 0.0, 1, -1).astype(np.int8)
    cells = Cells(np.zeros((1, 60)), np.ones((1, 60), np.int8), np.zeros(1, dtype=np.int64))
    starts = np.repeat([up, -up, along], 16, axis=0)
    for times in (0, 4):  # as they are, and after they were shaken
        states, mean, most = chains(missing, starts, times)
        assert states.shape == (3, 16, 60)
        assert mean @ known.signs / 60.0 == pytest.approx([1.0, -1.0, 0.0], abs=0.1)
        for bound, log_weight in zip(most, (known.up, known.up, known.between), strict=True):
            assert log_weight - 0.2 < bound < log_weight + 1.5
        for k in range(3):
            assert stay_together(states[k], mean[k], cells)


def test_chains_stay_together_if_most_of_them_are_where_their_means_are():
    center = np.repeat([0.9, -0.9], 10)
    cells = Cells(center[None], np.ones((1, 20), np.int8), np.zeros(1, dtype=np.int64))
    here, there = np.ones(20, np.int8), np.sign(center).astype(np.int8)
    for count in (6, 10):  # so many of 16 chains are where the means say, others are with the population
        states = np.concatenate([np.tile(here, (count, 1)), np.tile(there, (16 - count, 1))])
        assert stay_together(states, 0.9 * here, cells) == (count > 8)


def test_what_chains_bound_is_exact_for_independent_spins():
    field = np.array([0.5, -1.0, 0.3, 2.0, 0.0])
    starts = np.ones((16 * 200, 5), np.int8)
    model = sz.Ising(field)
    _, mean, most = chains(chains_at(model, 4), starts, 4)
    assert mean.mean(axis=0) == pytest.approx(np.tanh(field), abs=0.02)
    # log Z = E + entropy; means of 256 looks each make the entropy smaller by about n / (2 * 256).
    log_z = np.log(2.0 * np.cosh(field)).sum()
    assert most.mean() == pytest.approx(log_z, abs=0.03)


def test_chains_are_shaken_only_where_they_do_not_stay_together(monkeypatch):
    """Three proposals lie in phases, and one between two of them, from where its chains leave."""
    known = coexisting(n=60)
    missing = missing_of(from_fields(known.model, known.model.field), seed=1)
    up = known.signs.astype(np.int8)
    states = {"up": up, "down": -up, "random": missing.rng.choice(np.array([-1, 1], np.int8), 60)}
    shaken, plain = [], phases_found.chains

    def watched(missing, x, times):
        shaken.append((times, len(x) // 16))
        return plain(missing, x, times)

    monkeypatch.setattr(phases_found, "chains", watched)
    batch = [(frozenset([name]), state) for name, state in states.items()]
    done = phases_found._tried(phases_found.Search(), missing, batch)
    assert shaken == [(0, 3), (4, 1)]
    assert {name for phase in done.phases for name in phase.sources} >= {"up", "down"}
    assert done.tried == 3


def test_the_cost_of_a_proposal_is_that_of_its_sweeps():
    path = from_coins(coexisting().model)
    assert cost_of_proposal(path) == pytest.approx(16 * (4 + 16 + 4 * 16 + 16 * 2) * path.engine.operations)


def test_a_phase_is_missed_if_a_population_finds_significantly_less():
    population = even_population(random_states(100, 3))  # log Z = 0, 100 families
    few = There(8.0, -1.0)
    error = math.sqrt(1.0 / (100.0 * math.exp(-1.0 + 3.1 * 0.73)) + 1.0 / 2.0)
    assert There(2.0, -1.0 + 3.1 * error).is_missed_by(population, few)
    assert not There(2.0, -1.0).is_missed_by(population, few)
    # One family in the place of many says enough, and none says nothing where hardly any is due.
    assert There(50.0, -1.0).is_missed_by(population, There(1.0, -2.5))
    assert not There(50.0, -4.0).is_missed_by(population, There(1.0, -4.5))
    assert There(50.0, -3.0).is_missed_by(population, There(0.0, -math.inf))
    assert not There(50.0, -4.0).is_missed_by(population, There(0.0, -math.inf))


def pairs_in_groups(groups, couplings, seed=0):
    """Return groups of bound pairs, gauged and relabeled at random, and log Z."""
    J = np.diag(couplings)
    plain, log_z = model_of_groups(groups, J), groups_log_z(groups, J)
    rng = np.random.default_rng(seed)
    order, signs = rng.permutation(plain.n), rng.choice([-1, 1], plain.n)
    A = np.array(plain.coupling)[np.ix_(order, order)] * np.outer(signs, signs)
    return sz.Ising(plain.field[order] * signs, A), log_z


def test_pairs_that_hardly_turn_do_not_make_many_phases():
    """Pairs turn only together; without that each of 2^16 ways to turn them looks like a phase of its own."""
    magnet = [Molecules(20, (FIELD,)), Molecules(20, (-FIELD,))]
    pairs = [Molecules(16, (0.0, -0.0), -4.0)]
    model, _ = pairs_in_groups([magnet, pairs], [coupling_of(magnet), 0.0])
    missing = missing_of(from_fields(model, model.field), seed=4)
    done = search(missing)
    assert len(done.phases) == 2
    assert min(len(phase.sources) for phase in done.phases) > 5
    assert len(done.met) == 1
    bound = abs(np.array(model.coupling)).max(axis=1) > 1.5
    assert bound.sum() == 32
    for phase in done.phases:
        assert np.abs(phase.mean[bound]).max() < 0.6


def test_chains_see_a_shallow_phase_before_they_leave_it():
    """Three phases with a barrier of a few nats: shaken chains leave two of them, and a population enters none."""
    group = [Molecules(200, (0.9778,)), Molecules(200, (-0.9778,))]
    model, log_z = pairs_in_groups([group], [2.0577 / 400.0])
    missing = missing_of(from_fields(model, model.field), seed=5)
    assert missing.ordinary.mean_log_z < log_z - 0.2
    done = search(missing)
    assert len(done.phases) == 2
    known = [missing.ordinary.mean_log_z, *(phase.log_weight for phase in done.phases)]
    assert float(logsumexp(known)) == pytest.approx(log_z, abs=0.15)


# -------------------------------------------------------------------------------------------------- the proposals


def even_population(x):
    """Return a population of given states with equal weights."""
    x = np.asarray(x, np.int8)
    return Population(np.zeros(1), x, np.full((1, len(x)), 1.0 / len(x)), np.arange(len(x)))


def random_states(count, n, seed=0):
    return np.random.default_rng(seed).choice(np.array([-1, 1], dtype=np.int8), (count, n))


def two_parts(n=12, seed=5):
    """Return a model of two halves that hold together, each in a gauge of its own, with weak couplings between them."""
    rng = np.random.default_rng(seed)
    signs, half = rng.choice([-1.0, 1.0], n), np.arange(n) < n // 2
    A = np.where(half[:, None] == half, 0.3, 0.02 * rng.random((n, n))) * np.outer(signs, signs)
    A = np.triu(A, 1)
    return sz.Ising(np.zeros(n), A + A.T), signs, half


def test_parts_are_what_strong_couplings_hold_together():
    model, _, half = two_parts()
    assert {part.tobytes() for part in parts_of(model)} == {half.tobytes(), (~half).tobytes()}
    # Couplings of one size hold everything together or nothing.
    A = 0.1 * (1.0 - np.eye(12))
    assert parts_of(sz.Ising(np.zeros(12), A)) == []
    assert parts_of(sz.Ising(np.zeros(12))) == []


def test_proposals_turn_one_part_at_a_time():
    model, signs, half = two_parts()
    path, ordinary = from_coins(model), even_population(random_states(50, 12, seed=6))
    proposals = first_proposals(path, ordinary, [], np.random.default_rng(7), one_after_the_other)
    named = [(sources, state) for sources, state in proposals if any(s.startswith("part") for s in sources)]
    # Quenches leave each half along its gauge; both signs of each of the two parts are among the proposals.
    signs_seen = {
        (s.split()[1], s.split()[3], float(np.sign(state[part] @ signs[part])))
        for sources, state in named
        for s in sources
        if s.startswith("part")
        for part in [(half, ~half)[int(s.split()[1])]]
    }
    assert {(part, sign) for part, sign, _ in signs_seen} == {("0", "1"), ("0", "-1"), ("1", "1"), ("1", "-1")}
    for part in ("0", "1"):
        of = {sign: value for p, sign, value in signs_seen if p == part}
        assert of["1"] == -of["-1"]
    for _, state in named:
        assert abs(state[half] @ signs[half]) == abs(state[~half] @ signs[~half]) == 6.0


def test_proposals_are_distinct_local_maxima_with_all_their_sources():
    model = sz.generators.sk(n=12, strength=2.0, seed=8)
    path, ordinary = from_coins(model), even_population(random_states(50, 12, seed=9))
    other = even_population(random_states(10, 12, seed=10))
    proposals = first_proposals(path, ordinary, [other], np.random.default_rng(11), one_after_the_other)
    from_other = [(sources, x) for sources, x in proposals if any(s.startswith("population") for s in sources)]
    maxima = [(sources, x) for sources, x in proposals if not any(s.startswith("population") for s in sources)]
    assert len({x.tobytes() for _, x in maxima}) == len(maxima)
    every = all_states(12)
    weight = dict(zip(map(bytes, every), model.log_weight(every), strict=True))
    for _, x in maxima:
        for i in range(12):
            turned = x.copy()
            turned[i] *= -1
            assert weight[turned.tobytes()] <= weight[x.tobytes()] + 1e-12
    names = [name for sources, _ in maxima for name in sources]
    assert len(set(names)) == len(names)
    assert {"up", "down", "fields", "random 15", "heavy 0", "direction 0 times 1"} <= set(names)
    # States of the other population come as they are, after the first few.
    rows = {row.tobytes() for row in other.x}
    assert len(from_other) == 6
    assert all(x.tobytes() in rows for _, x in from_other)


def test_starts_that_are_quenched_to_one_state_are_its_sources():
    model = sz.Ising(np.full(5, 1.0))
    starts = [(f"start {k}", x) for k, x in enumerate(random_states(4, 5, seed=12))]
    ((sources, state),) = quenched(from_coins(model), starts, one_after_the_other)
    assert sources == {"start 0", "start 1", "start 2", "start 3"}
    assert (state == 1).all()


@pytest.mark.parametrize("size", [3, 4])
@pytest.mark.parametrize("seed", range(6))
def test_a_planted_gauge_of_all_terms_is_a_direction(size, seed):
    n = 12
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], n)
    weights = {scope: 0.2 * float(signs[list(scope)].prod()) for scope in itertools.combinations(range(n), size)}
    found = directions_of_terms(sz.Polynomial(weights), np.random.default_rng(100 + seed))
    assert found
    for v in found:
        assert v @ v == pytest.approx(n)
    # With an odd size only one of both signs, whose terms are all positive; otherwise either of them
    along = [float(v @ signs) / n for v in found]
    assert max(along if size == 3 else np.abs(along)) > 0.999


def test_directions_of_terms_are_apart_for_each_size():
    n, rng = 10, np.random.default_rng(13)
    first, second = rng.choice([-1.0, 1.0], (2, n))
    terms = {scope: float(first[list(scope)].prod()) for scope in itertools.combinations(range(n), 3)}
    terms |= {scope: 1e-3 * float(second[list(scope)].prod()) for scope in itertools.combinations(range(n), 4)}
    found = directions_of_terms(sz.Polynomial(terms), np.random.default_rng(14))
    assert max(float(v @ first) for v in found) > 0.999 * n
    assert max(abs(float(v @ second)) for v in found) > 0.999 * n
    assert directions_of_terms(sz.Ising(np.ones(4)), rng) == []


def test_phases_are_recombined_block_by_block():
    """Means are sure and the population has a single state, so that every proposal is known."""
    n = 10
    model = sz.Ising(np.ones(n))  # couples nothing, and has no directions
    # Three phases: signs change together on spins 0-3, on 4-6, and on 7-9.
    pattern = np.array([[1, 1, -1], [-1, 1, 1], [1, -1, 1]])
    gauge = random_states(1, n, seed=15)[0]
    centers = gauge * np.repeat(pattern, [4, 3, 3], axis=1).astype(float)
    ordinary = random_states(1, n, seed=16)[0]
    proposals = recombined(model, centers, even_population([ordinary]), np.random.default_rng(17))
    expected = []
    for block, center in itertools.product((range(4), range(4, 7), range(7, 10)), centers):
        inside = np.isin(np.arange(n), list(block))
        pairs = ((-center, center), (ordinary, center), (center, ordinary))
        expected += [np.where(inside, y, z).astype(np.int8).tobytes() for y, z in pairs]
    assert sorted(x.tobytes() for _, x in proposals) == sorted(expected)
    names = [name for sources, _ in proposals for name in sources]
    assert len(set(names)) == len(proposals) == 27


def test_spins_of_a_recombined_phase_follow_its_means():
    n, rng, count = 8, np.random.default_rng(18), 500
    model, ordinary = sz.Ising(np.ones(n)), even_population(-np.ones((1, n)))
    centers = np.array([[0.8] * 3 + [0.2] * 2 + [-0.6] * 3])  # spins 3 and 4 are not held, and in no block
    total = {"turned": np.zeros(n), "left": np.zeros(n), "entered": np.zeros(n)}
    for _ in range(count):
        for sources, x in recombined(model, centers, ordinary, rng):
            (name,) = sources
            assert name.startswith("block 0")  # signs change together up to that of all of them
            total[name.split()[-1]] += x / count
    held = np.array([1, 1, 1, 0, 0, 1, 1, 1], dtype=bool)
    expected = {
        "turned": np.where(held, -centers[0], centers[0]),
        "left": np.where(held, -1.0, centers[0]),
        "entered": np.where(held, centers[0], -1.0),
    }
    for how, mean in expected.items():
        assert total[how] == pytest.approx(mean, abs=4.0 / math.sqrt(count))


def test_a_block_has_at_least_three_spins_and_not_all():
    n = 6
    model, some, rng = sz.Ising(np.ones(n)), even_population(random_states(3, n, seed=18)), np.random.default_rng(19)
    assert recombined(model, np.array([[0.9] * 2 + [0.1] * 4]), some, rng) == []
    assert recombined(model, np.full((1, n), 0.9), some, rng) == []
    assert len(recombined(model, np.array([[0.9] * 3 + [0.1] * 3]), some, rng)) == 3


def test_a_warm_phase_is_not_taken_for_the_states_around_it():
    """Its spins are 0.66 in the mean in half of the model, and 0 in the other phase."""
    warm, none = np.where(np.arange(60) < 30, 0.66, 0.0), np.zeros(60)
    images = np.array([np.ones(60), -np.ones(60)], dtype=np.int8)
    noise = 0.1 * np.random.default_rng(0).standard_normal(60)
    assert not are_alike(warm, none, images)
    assert are_alike(warm, noise - warm, images)
    assert are_alike(none, noise, images)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_warm_phase_in_one_of_two_groups_is_found(seed):
    """Without it log Z is 5.2 too low."""
    known, _ = drawn("linked_traps", 9201, 3)
    found = sz.log_z(known.model, exclude=["exact", "quadrature"], work=4e9, seed=seed)
    assert abs(found.log_z - known.log_z) < 3.0 * found.std_error < 0.3
