"""Intervals with a stated probability beside a bracket: from states drawn from wmbe's bound, and from annealing.

The probability of error is divided between the two in advance, whether both are run or not. Each stops when its time is
spent; its bets are valid at any stopping time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support import clock, costs
from spectralz._support.deadline import Deadline, NotAffordableError
from spectralz._support.options import checked_names
from spectralz._support.progress import report
from spectralz._support.threads import using_threads
from spectralz.errors import SpectralzError, is_interrupt
from spectralz.methods.weighted_mini_bucket import WeightedMiniBucket
from spectralz.portfolio import policy
from spectralz.portfolio.bracket import NAMES, affordable_ibound, bracket, round_seconds
from spectralz.result import Interval
from spectralz.sampling.intervals import RUNS, annealed_end
from spectralz.sampling.path import path_to
from spectralz.sampling.spread import crew_for
from spectralz.sampling.sweeps import STEP, seconds_per_point, survey

if TYPE_CHECKING:
    from spectralz.model import Model
    from spectralz.result import Bounds


# Takes the model, the level, a seed, the proven bounds and a deadline; returns an interval with a description, and
# whether an interrupt ended the work.
_Source = Callable[["Model", float, int, "Bounds", Deadline], tuple[Interval | None, str, bool]]


def bracket_with_interval(model: Model, deadline: Deadline, exclude: Any, level: float, seed: int) -> Bounds:
    """Return the best bounds found in time, and an interval that holds with probability ``level``.

    If a proven bound is better than an end, it replaces the end. After an interrupt, what has been found is returned.
    """
    proven = bracket(model, deadline.share(1.0 - policy.INTERVAL_SHARE), exclude)
    exclude = checked_names(exclude, "exclude", NAMES)
    began, is_interrupted, words = clock.seconds(), proven.interrupted, []
    low, high = proven.lower, proven.upper
    is_known = proven.width <= policy.KNOWN_WIDTH * max(1.0, abs(proven.lower))
    for name, source in _SOURCES.items():
        if is_interrupted or is_known or name in exclude or high - low <= policy.NARROW_INTERVAL:
            continue
        each = 1.0 - (1.0 - level) / len(_SOURCES)
        found, said, is_interrupted = _asked(name, source, model, each, seed, proven, deadline)
        top = math.inf if found is None or found.high is None else found.high
        if found is not None and top - found.low <= policy.KNOWN_WIDTH and "exact" in exclude:
            continue
        low, high = low if found is None else max(low, found.low), min(high, top)
        words.append(said)
    if low > high:
        words.append("the two ends contradict each other (probability 1 - level), so this is the proven bracket")
        low, high = proven.lower, proven.upper
    return replace(
        proven,
        interval=Interval(low, high, level),
        interval_status="; ".join(words) or "the proven bounds",
        interrupted=is_interrupted,
        seconds=proven.seconds + clock.seconds() - began,
    )


def _asked(
    name: str, source: _Source, model: Model, level: float, seed: int, proven: Bounds, deadline: Deadline
) -> tuple[Interval | None, str, bool]:
    """Return what a source gives, or why there is nothing."""
    report(f"drawing for an interval by {name}", 0.0)
    try:
        with using_threads(None, model.n):
            found, words, is_interrupted = source(model, level, seed, proven, deadline)
    except NotAffordableError as refusal:
        return None, f"{name} {refusal}", False
    except SpectralzError as error:
        return None, f"{name} refused: {error}", False
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interrupt(error):
            raise
        return None, f"{name} interrupted", True
    return found, f"{name}: {'interrupted, ' if is_interrupted else ''}{words}", is_interrupted


def _by_mini_buckets(
    model: Model, level: float, seed: int, proven: Bounds, deadline: Deadline
) -> tuple[Interval | None, str, bool]:
    """Draw states from a bound, with tables and rounds as the time allows, half of it for the states."""
    uppers = [row.upper for row in proven.rows if row.method == "wmbe" and row.upper is not None]
    # On sparse graphs rounds help a lot.
    is_dense = 2 * model.pair_count > policy.MOST_SPARSE_DEGREE * model.n
    if is_dense and uppers and min(uppers) - policy.NATS_BY_DRAWING > proven.upper:
        raise NotAffordableError("not run: another upper bound is far lower")
    share = deadline.share(policy.MINI_BUCKETS_SHARE)
    plain = costs.BUCKET_SECONDS * (model.n + model.pair_count)
    deadline.require(plain + round_seconds(model, policy.LEAST_IBOUND))
    ibound = affordable_ibound(model, 1 + policy.ROUNDS_FOR_DRAWING, 0.5 * share.seconds - plain)
    method = WeightedMiniBucket(
        ibound=ibound,
        order="narrow",
        max_iter=policy.MOST_ROUNDS_FOR_DRAWING,
        level=level,
        samples=policy.MOST_DRAWN,
        seed=seed,
    )
    with share.in_force():
        estimate = method.run(model)
    clock.charge(clock.OPERATIONS_PER_SECOND * plain)
    drawn = str(estimate.status).rsplit("; ", 1)[-1]
    return estimate.interval, f"{drawn}, ibound {ibound}", estimate.interrupted


def _by_annealing(
    model: Model, level: float, seed: int, proven: Bounds, deadline: Deadline
) -> tuple[Interval | None, str, bool]:
    """Anneal in double precision: as many runs as the time allows, then larger ones."""
    # Streams different from those of the states drawn from a bound.
    beforehand, rng = np.random.default_rng([seed, 1]).spawn(2)
    together = policy.STATES_TOGETHER
    path = path_to(model, in_double=True)
    with crew_for(path) as crew:
        point = crew.seconds_of_many(path, seconds_per_point(path, together, parallel=crew.parallel))
        deadline.require(point * policy.FEWEST_POINTS_FOR_INTERVAL)
        with deadline.share(0.5).in_force():
            measured = survey(path, beforehand, crew.parallel)
        affordable = deadline.left / (point * policy.RUNS_FOR_INTERVAL)
        wanted = float(measured.length[-1]) / STEP**0.5
        points = measured.spaced(min(wanted, affordable))
        times = deadline.left / (point * len(points))
        runs, size = int(min(max(times, 1.0), RUNS)), together * int(max(times / RUNS, 1.0))
        with deadline.in_force():
            end = annealed_end(crew, path, points, size, runs, 1.0 - level, rng)
    return end.interval(model, level), end.words, end.is_interrupted


# In the order in which they are run.
_SOURCES: dict[str, _Source] = {"wmbe": _by_mini_buckets, "annealing": _by_annealing}
