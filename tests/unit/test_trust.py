"""Every rule of trust on evidence made up for it: on both sides of its constant, so close that neither half nor twice
would do. ``test_importance.py`` has the rules of contractions, ``test_verdict.py`` what follows from several answers.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from spectralz.sampling.bridge import Bridge
from spectralz.sampling.heavy.pool import Share
from spectralz.sampling.round_trips import RoundTrip
from spectralz.trust.judgment import (
    LARGEST_CHECKING_ERROR,
    Judgment,
    agree,
    agree_per_row,
    is_within,
    judge_bracket,
    with_rounding,
)
from spectralz.trust.propagation import judge_propagation
from spectralz.trust.states import (
    beside_populations,
    can_measure,
    inconsistency_of,
    is_measured,
    judge_bridge,
    judge_pool,
    judge_round_trip,
)


def test_the_rounding_of_a_huge_answer_is_part_of_its_error():
    assert with_rounding(0.5, 10.0) == pytest.approx(0.5)
    assert with_rounding(0.0, 2.0**53) == pytest.approx(8.0)
    assert with_rounding(6.0, -(2.0**53)) == pytest.approx(10.0)


# ------------------------------------------------------------------------------------------------------- round trips


def trip(gap, there=0.0, back=None, size=200):
    """A round trip around 7 with a given gap, and given variances of the log-weights on both ways."""
    back = there if back is None else back
    signs = np.where(np.arange(size) % 2, 1.0, -1.0)
    x = np.ones((size, 1), dtype=np.int8)
    return RoundTrip(7.0 - gap / 2.0 + math.sqrt(there) * signs, 7.0 + gap / 2.0 + math.sqrt(back) * signs, x)


def test_the_error_of_a_round_trip_is_a_share_of_its_inconsistency_and_of_its_gap():
    judged = judge_round_trip(trip(0.06), 1.0)
    assert judged.log_z == pytest.approx(8.0)
    assert judged.std_error == pytest.approx(math.hypot(0.06 / 3.0, 0.06 / 16.0))
    assert judge_round_trip(trip(16.0, 16.0)).std_error == pytest.approx(math.hypot(0.5 * math.sqrt(32.0 / 199), 1.0))
    assert inconsistency_of(trip(5.0, 4.0, 2.0)) == pytest.approx(abs(5.0 - 3.0) + 1.0)


@pytest.mark.parametrize(
    ("harmless", "violation"),
    [
        (trip(5.0, 4.0), trip(5.4, 4.0)),  # farther apart than their variances, 4 +- 1.2, say
        (trip(3.0, 4.0), trip(2.6, 4.0)),  # closer
        (trip(4.0, 5.0, 3.0), trip(4.0, 5.5, 2.5)),  # one way more uneven than the other
        (trip(4.0, 3.0, 5.0), trip(4.0, 2.5, 5.5)),
        (trip(0.04), trip(0.06)),  # more than what is always harmless
        (trip(-0.04), trip(-0.06)),  # in the wrong order
    ],
)
def test_a_round_trip_out_of_equilibrium_is_not_trusted(harmless, violation):
    assert judge_round_trip(harmless).trusted
    assert judge_round_trip(harmless).why == ""
    judged = judge_round_trip(violation)
    assert not judged.trusted
    assert judged.why == ": out of equilibrium, do not trust"


# -------------------------------------------------------------------------------------------------------------- pools


def test_a_share_is_measured_by_enough_independent_states_found_again():
    assert not is_measured(Share(0.1, 0.01, families=80.0))
    assert is_measured(Share(0.1, 0.01, families=120.0))
    assert not can_measure(Share(0.1, 0.01, families=16.0))
    assert can_measure(Share(0.1, 0.01, families=24.0))


def test_a_pool_is_trusted_if_its_share_is_measured():
    assert judge_pool(3.0, Share(0.1, 0.02, families=80.0)) == Judgment(
        3.0, math.inf, False, "; their share of P(x) is not known"
    )
    for families, is_trusted in ((120.0, False), (320.0, True)):
        found = judge_pool(3.0, Share(0.1, 0.02, families=families))
        assert (found.log_z, found.std_error) == (pytest.approx(3.0 + math.log(10.0)), pytest.approx(0.02))
        assert found.trusted == is_trusted
        assert found.why == ("" if is_trusted else "; only 12 independent states were found again, do not trust")
    assert not judge_pool(3.0, Share(0.0, math.inf, 1e9)).trusted


# ------------------------------------------------------------------------------------------------------------- ratios


def states(families=100):
    """The judgment on states with so many families."""
    return Judgment(0.0, 0.1, families >= 30.0, "" if families >= 30.0 else "; too few")


FIRM = Bridge(np.full(4, 1.0), np.full(4, 1.0), 10)


def lopsided(height):
    """Two of eight runs are heavier than the others by ``height``; all on the way back agree with their mean."""
    there = np.append(np.zeros(6), np.full(2, height))
    return Bridge(there, np.full(8, float(np.logaddexp.reduce(there) - math.log(8))), 10)


def test_a_ratio_is_the_middle_of_both_ways_and_half_of_their_difference_its_error():
    found = judge_bridge(Bridge(np.full(4, 1.0), np.full(4, 1.06), 10), [states(), states()])
    assert found == Judgment(pytest.approx(1.03), pytest.approx(0.03), True)
    scattered = np.log([0.9, 1.1, 1.0, 1.0])
    jackknife = [math.log((4.0 - leaving) / 3.0) for leaving in (0.9, 1.1, 1.0, 1.0)]
    error = math.sqrt(0.75 * np.sum((jackknife - np.mean(jackknife)) ** 2))
    found = judge_bridge(Bridge(scattered, np.zeros(4), 10), [states(), states()])
    assert found == Judgment(pytest.approx(0.0), pytest.approx(0.5 * error), True)


def test_ways_that_disagree_beyond_their_scatter_are_not_trusted():
    """Half of the difference is in the error, which so never contradicts it."""
    for apart, trusted in ((0.09, True), (0.11, False), (100.0, False)):
        found = judge_bridge(Bridge(np.zeros(4), np.full(4, apart), 10), [states(), states()])
        assert found.std_error == pytest.approx(apart / 2.0)
        assert found.trusted is trusted
    noisy = np.array([0.0, 1.0, -1.0, 0.5, -0.5])
    for apart, trusted in ((1.0, True), (6.0, False)):
        assert judge_bridge(Bridge(noisy, noisy + apart, 10), [states(), states()]).trusted is trusted


def test_ways_that_disagree_are_not_trusted():
    """Runs whose mean is the work of a few: beyond six errors of the mean."""
    for height, apart, trusted in ((4.0, 4.6, True), (6.0, 8.0, False)):
        bridge = lopsided(height)
        found = judge_bridge(bridge, [states(), states()])
        assert abs(bridge.there.mean() - bridge.back.mean()) == pytest.approx(apart * found.std_error, rel=0.05)
        assert found.trusted == trusted


def test_a_small_difference_is_harmless_however_many_runs_show_it():
    for height, trusted in ((0.4, True), (0.55, False)):  # log cosh is 0.078 and 0.144
        there = np.where(np.arange(1000) % 2, height, -height)
        found = judge_bridge(Bridge(there, np.full(1000, math.log(math.cosh(height))), 10), [states(), states()])
        assert found.std_error < 0.01  # six of them are less than a twentieth
        assert found.trusted == trusted
        assert found.why == (
            "" if trusted else "; the states are too few, out of equilibrium, or miss a phase: do not trust"
        )


@pytest.mark.parametrize("order", [1, -1])
def test_the_states_of_both_models_must_be_trusted(order):
    few = judge_bridge(FIRM, [states(), states(25)][::order])
    assert not few.trusted
    assert "too few" in few.why
    assert judge_bridge(FIRM, [states(), states(35)][::order]).trusted


def test_what_one_family_could_change_is_the_least_error():
    ways = np.full(4, 1.0)
    found = judge_bridge(Bridge(ways, ways, 10, contrast=3.0), [states(), states()], families=100.0)
    assert found == Judgment(pytest.approx(1.0), pytest.approx(0.03), True)


def test_groups_count_by_their_shares():
    """Two groups that hold .9 and .1 of Z there, and both the same ratio back."""
    way = Bridge(np.log([1.0, 2.0]), np.log([1.1, 1.1]), 10, np.array([0.9, 0.1]), np.array([0.3, 0.7]))
    found = judge_bridge(way, [])
    assert found.log_z == pytest.approx(math.log(1.1))
    assert found.std_error == pytest.approx(0.5 * math.sqrt(0.5 * 2.0 * (0.5 * math.log(2.0)) ** 2))


# ----------------------------------------------------------------------------------------------------------- frontier


def test_a_narrow_bracket_is_trusted_with_half_of_its_width_as_the_error():
    assert judge_bracket(1.0, 1.015, [0.9, 1.0]) == Judgment(pytest.approx(1.0075), pytest.approx(0.0075), True)
    wide = judge_bracket(1.0, 1.03, [0.9, 1.0])
    assert (wide.log_z, wide.trusted, wide.why) == (1.0, False, ": too wide, do not trust")


@pytest.mark.parametrize(
    ("upper", "lower_bounds", "error"),
    [
        (9.0, [0.2, 0.9, 1.0], 0.2),  # twice the last growth
        (1.1, [0.2, 0.9, 1.0], 0.1),  # no more than the bracket
        (9.0, [1.0, 1.0], 0.02),  # no less than what would be narrow
        (9.0, [1.0], 8.0),  # the whole bracket if nothing shows its growth
    ],
)
def test_the_error_of_a_wide_bracket_is_what_may_still_be_missing(upper, lower_bounds, error):
    assert judge_bracket(1.0, upper, lower_bounds).std_error == pytest.approx(error)


# -------------------------------------------------------------------------------------------------------- propagation

FINE = {
    "is_settled": True,
    "left_out": 0.01,
    "missed": 0.0,
    "other_errors": 0.0,
    "correction": 0.3,
    "is_weak": True,
    "phases": 1,
    "is_collective": True,
    "contradiction": "",
}


def propagated(**changes):
    return judge_propagation(2.0, **{**FINE, **changes})


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({}, 0.01),
        ({"left_out": 0.08}, 0.08),
        ({"missed": 0.08}, 0.09),
        ({"other_errors": 0.08}, 0.09),
        ({"phases": 2}, 0.01),
        ({"is_collective": False}, 0.01),
    ],
)
def test_propagation_with_a_small_error_is_trusted(changes, error):
    assert propagated(**changes) == Judgment(2.0, pytest.approx(error), True, "")


@pytest.mark.parametrize(
    ("changes", "error", "why"),
    [
        ({"left_out": 0.12}, 0.12, "; the correction is 0.3, and the next may add 0.12: do not trust"),
        ({"left_out": math.nan}, math.inf, "; the correction is 0.3, and the next may add nan: do not trust"),
        ({"missed": 0.12}, 0.13, "; states that it missed may add 0.12: do not trust"),
        ({"left_out": 0.06, "missed": 0.06}, 0.12, ""),
        ({"other_errors": 0.12}, 0.13, ""),
        ({"is_settled": False}, math.inf, ""),
        (
            {"phases": 2, "is_collective": False},
            0.01,
            "; single couplings are strong, so it may have missed phases: do not trust",
        ),
        ({"phases": 3}, 0.01, "; where there are 3 phases it may have missed others: do not trust"),
        ({"is_weak": False}, 0.01, "; couplings are strong, so its error is not known: do not trust"),
        ({"contradiction": "; it is below a bound"}, math.inf, "; it is below a bound"),
        ({"missed": 0.12, "contradiction": "; it is below a bound"}, math.inf, "do not trust; it is below a bound"),
    ],
)
def test_propagation_is_distrusted_for_each_of_these(changes, error, why):
    judged = propagated(**changes)
    assert not judged.trusted
    assert judged.std_error == pytest.approx(error)
    assert why in judged.why
    assert bool(why) == bool(judged.why)


# ---------------------------------------------------------------------------------------------------------- agreement


def test_answers_agree_up_to_three_of_their_joint_errors():
    for sign in (1.0, -1.0):
        assert agree((0.0, 0.3), (sign * 1.4, 0.4))
        assert not agree((0.0, 0.3), (sign * 1.6, 0.4))


def test_agreement_is_a_check_if_half_of_z_would_be_missed():
    assert agree((0.0, 0.0), (math.log(2.0), 1.01 * LARGEST_CHECKING_ERROR))
    assert not agree((0.0, 0.0), (math.log(2.0), 0.99 * LARGEST_CHECKING_ERROR))


def test_an_answer_may_lie_outside_the_bounds_by_three_of_its_errors():
    assert is_within(1.25, 0.1, 0.0, 1.0)
    assert not is_within(1.35, 0.1, 0.0, 1.0)
    assert is_within(-0.25, 0.1, 0.0, 1.0)
    assert not is_within(-0.35, 0.1, 0.0, 1.0)


# -------------------------------------------------------------------------------------------------------- likelihoods


def test_likelihoods_forwards_and_backwards_agree_up_to_a_difference_or_to_their_errors():
    for sign in (1.0, -1.0):
        assert agree_per_row(-80.0, 0.0, -80.0 + sign * 0.08, 0.0)
        assert not agree_per_row(-80.0, 0.0, -80.0 + sign * 0.12, 0.0)
        assert agree_per_row(-80.0, 0.3, -80.0 + sign * 1.8, 0.4)
        assert not agree_per_row(-80.0, 0.3, -80.0 + sign * 2.2, 0.4)


def test_a_sum_over_states_allows_for_phases_that_were_left_out():
    """No state of theirs is in the sum, nor among those that measure its share of P(x)."""
    summed = judge_pool(3.0, Share(0.999, 1e-5, families=1e5))
    judged = Judgment(3.0, 0.004, True, left_out=0.003)
    beside = beside_populations(beside_populations(summed, judged), judged)
    assert (beside.std_error, beside.trusted) == (0.003, True)
    assert beside_populations(summed, Judgment(3.0, 0.004, True)) == summed
