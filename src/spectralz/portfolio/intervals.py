"""Intervals with a stated probability beside a bracket: from states drawn from wmbe's bound, and from annealing.

The probability of error is divided between the two in advance, whether both are run or not. Each stops when its time is
spent; its bets are valid at any stopping time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
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
from spectralz.portfolio.bounders import NAMES, affordable_ibound, round_seconds
from spectralz.portfolio.bracket import bracket
from spectralz.result import Interval
from spectralz.sampling.intervals import RUNS, annealed_end
from spectralz.sampling.path import path_to
from spectralz.sampling.plan import STEP, seconds_per_point, survey
from spectralz.sampling.spread import crew_for

if TYPE_CHECKING:
    from spectralz.model import Model
    from spectralz.result import Bounds


@dataclass
class _Ends:
    """The best ends so far, and sentences on how they were obtained."""

    low: float
    high: float
    words: list[str]
    is_interrupted: bool = False

    def add(self, name: str, interval: Interval, words: str) -> None:
        """Take the better ends of an interval."""
        self.low = max(self.low, interval.low)
        self.high = self.high if interval.high is None else min(self.high, interval.high)
        self.words.append(f"{name}: {words}")


# Takes the model, the level, a seed, the proven bounds and a deadline; returns intervals, each with a description.
_Source = Callable[["Model", float, int, "Bounds", Deadline], Iterator[tuple[Interval, str]]]


def bracket_with_interval(model: Model, deadline: Deadline, exclude: Any, level: float, seed: int) -> Bounds:
    """Return the best bounds found in time, and an interval that holds with probability ``level``.

    If a proven bound is better than an end, it replaces the end. After an interrupt, what has been found is returned.
    """
    proven = bracket(model, deadline.share(1.0 - policy.INTERVAL_SHARE), exclude)
    exclude = checked_names(exclude, "exclude", NAMES)
    began = clock.seconds()
    ends = _Ends(proven.lower, proven.upper, [], proven.interrupted)
    is_known = proven.width <= policy.KNOWN_WIDTH * max(1.0, abs(proven.lower))
    for name, source in _SOURCES.items():
        if ends.is_interrupted or is_known or name in exclude or ends.high - ends.low <= policy.NARROW_INTERVAL:
            continue
        _ask(name, source, model, 1.0 - (1.0 - level) / len(_SOURCES), seed, proven, deadline, exclude, ends)
    return replace(
        proven,
        interval=_interval(proven, ends, level),
        interval_status="; ".join(ends.words) or "the proven bounds",
        interrupted=ends.is_interrupted,
        seconds=proven.seconds + clock.seconds() - began,
    )


def _interval(proven: Bounds, ends: _Ends, level: float) -> Interval:
    """Return the interval; if ends contradict each other or the proven bounds, the proven bounds are used."""
    if ends.low > ends.high:
        ends.words.append("the two ends contradict each other (probability 1 - level), so this is the proven bracket")
        return Interval(proven.lower, proven.upper, level)
    return Interval(ends.low, ends.high, level)


def _ask(
    name: str,
    source: _Source,
    model: Model,
    level: float,
    seed: int,
    proven: Bounds,
    deadline: Deadline,
    exclude: tuple[str, ...],
    ends: _Ends,
) -> None:
    report(f"drawing for an interval by {name}", 0.0)
    try:
        with using_threads(None, model.n):
            for interval, words in source(model, level, seed, proven, deadline):
                is_exact = interval.high is not None and interval.high - interval.low <= policy.KNOWN_WIDTH
                if is_exact and "exact" in exclude:
                    continue
                ends.add(name, interval, words)
                ends.is_interrupted |= words.startswith("interrupted")
    except NotAffordableError as refusal:
        ends.words.append(f"{name} {refusal}")
    except SpectralzError as error:
        ends.words.append(f"{name} refused: {error}")
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interrupt(error):
            raise
        ends.words.append(f"{name} interrupted")
        ends.is_interrupted = True


def _by_mini_buckets(
    model: Model, level: float, seed: int, proven: Bounds, deadline: Deadline
) -> Iterator[tuple[Interval, str]]:
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
    assert estimate.interval is not None
    drawn = str(estimate.status).rsplit("; ", 1)[-1]
    yield estimate.interval, f"{'interrupted, ' if estimate.interrupted else ''}{drawn}, ibound {ibound}"


def _by_annealing(
    model: Model, level: float, seed: int, proven: Bounds, deadline: Deadline
) -> Iterator[tuple[Interval, str]]:
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
    yield end.interval(model, level), f"{'interrupted, ' if end.is_interrupted else ''}{end.words}"


# In the order in which they are run.
_SOURCES: dict[str, _Source] = {"wmbe": _by_mini_buckets, "annealing": _by_annealing}
