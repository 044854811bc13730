"""How a round of annealing is divided: never more than there is, points first, then states."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from spectralz.portfolio import policy
from spectralz.portfolio.steps.rounds import Round, plan_round
from spectralz.sampling.plan import LEAST_POINTS

TOGETHER = policy.STATES_TOGETHER
sweeps = st.floats(0.0, 1e14)
dissipations = st.one_of(st.floats(0.0, 1e12), st.just(math.inf))
rooms = st.floats(-1e3, 1e9)


@given(sweeps, dissipations, rooms)
def test_a_round_takes_no_more_than_there_is(sweeps, dissipation, room):
    plan = plan_round(sweeps, dissipation, room)
    fits = sweeps >= TOGETHER * LEAST_POINTS and room >= TOGETHER
    assert (plan is not None) == fits
    if plan is None:
        return
    assert plan.updates == plan.points * plan.size * plan.runs <= sweeps
    assert plan.size * plan.runs <= min(room, policy.LARGEST_POPULATION)
    assert plan.size >= TOGETHER
    assert plan.size % TOGETHER == 0
    assert LEAST_POINTS <= plan.points <= policy.MOST_POINTS
    assert plan.runs in (1, policy.FEWEST_RUNS, policy.RUNS_PER_ROUND)


@given(sweeps, dissipations, rooms)
def test_points_come_before_states(sweeps, dissipation, room):
    plan = plan_round(sweeps, dissipation, room)
    if plan is None or plan.size * plan.runs <= policy.FEWEST_RUNS * TOGETHER:
        return
    # More than the fewest states are for those only whose log-weights vary by no more than is wanted, or whose path
    # has all the points it may have.
    enough = max(dissipation / policy.SPREAD_WANTED, LEAST_POINTS)
    assert plan.points + 1 > min(enough, policy.MOST_POINTS, sweeps / (policy.FEWEST_RUNS * TOGETHER))


@given(st.floats(1e4, 1e12), st.floats(0.0, 1e6), st.floats(1.5, 100.0))
def test_more_sweeps_are_never_worse(sweeps, dissipation, more):
    one, other = plan_round(sweeps, dissipation, 1e6), plan_round(more * sweeps, dissipation, 1e6)
    assert other.points >= one.points
    # But for what is left over of states in whole lanes and points in whole numbers
    assert other.size * other.runs > 0.5 * min(one.size * one.runs, policy.LARGEST_POPULATION)


def test_rounds_of_a_few_sizes():
    # Variance 0.25 wanted of D = 100: 400 points, and what is left for states.
    assert plan_round(400 * 64 * 4, 100.0, math.inf) == Round(points=400, size=64, runs=4)
    assert plan_round(400 * 64 * 4 - 1, 100.0, math.inf) == Round(points=400, size=64, runs=2)
    assert plan_round(400 * 64 * 2 - 1, 100.0, math.inf) == Round(points=399, size=64, runs=2)
    assert plan_round(64 * 16, math.inf, math.inf) == Round(points=16, size=64, runs=1)
    assert plan_round(64 * 16 - 1, math.inf, math.inf) is None
    assert plan_round(1e9, math.inf, 63.0) is None
    assert plan_round(1e9, 0.0, 64.0) == Round(points=4743, size=64, runs=1)
    # With sweeps to spare, ten times as many points, and as many times the states, as a hundredth of them would get.
    assert plan_round(1e6, 1.0, math.inf) == Round(points=150, size=1664, runs=4)
    assert plan_round(1e8, 1.0, math.inf) == Round(points=1500, size=16640, runs=4)
    assert plan_round(math.inf, math.inf, math.inf).points == policy.MOST_POINTS
