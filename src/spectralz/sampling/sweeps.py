"""Sweeps of states along a path and at its end: what they cost, and in which parts they are made.

In a quench states go to the nearest local maximum of their weight, spin by spin.

A survey plans a run: points are chosen so that log-weights change by equal amounts between them. A step d of the path
changes log-weights by d (E - E_0), whose standard deviation is d times that of the energy. A quick run measures that
deviation along the path. Points are then placed at equal distances in its integral, the length of the path.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock, costs, deadline
from spectralz._support.progress import report
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.sampling.engines.lanes import one_after_the_other
from spectralz.sampling.engines.sparse import SparseEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Model
    from spectralz.sampling.engines.lanes import Chains, Engine, Parallel
    from spectralz.sampling.path import Path
    from spectralz.sampling.population import Run


# States are resampled once their effective share is below this, by default.
RESAMPLE_BELOW = 0.5
# Points of the path that are passed between two looks at the weights: this share of all, at most this many, and no more
# than take this many operations, some hundredths of a second: an interrupt waits for them.
SHARE_PER_LOOK, MOST_PER_LOOK, OPERATIONS_PER_LOOK = 1.0 / 32.0, 64, 3e7
# States that relax make at least this many sweeps.
FEWEST_TO_RELAX = 3


def operations(engine: Engine, points: int, size: int, sweeps: int = 1) -> float:
    """Return the cost of so many states at so many points of the path."""
    return float(points * size) * (sweeps * engine.operations + costs.WEIGHT_AT_POINT)


def neighbors(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the points before and after each point of a path; each end is its own missing neighbor."""
    return np.concatenate([points[:1], points[:-1]]), np.concatenate([points[1:], points[-1:]])


def parts_of_path(engine: Engine, points: int, size: int, sweeps: int, stops: Iterable[int] = ()) -> list[slice]:
    """Divide a path into parts that are passed between two looks at the weights; one ends at each of the stops."""
    affordable = OPERATIONS_PER_LOOK / (engine.operations * sweeps * size)
    length = int(max(min(SHARE_PER_LOOK * points, MOST_PER_LOOK, affordable), 1))
    edges = sorted({*range(0, points, length), *(stop + 1 for stop in stops), points})
    return [slice(begin, end) for begin, end in pairwise(edges)]


def relax(
    path: Path, x: NDArray[np.int8], sweeps: int, rng: np.random.Generator, parallel: Parallel = one_after_the_other
) -> NDArray[np.int8]:
    """Return states after so many sweeps at the model, or fewer once the time is up."""
    engine = path.engine
    chains = engine.start_from(x, rng, parallel)
    for k in range(0, sweeps, engine.points_together):
        ones = np.ones(min(engine.points_together, sweeps - k))
        clock.charge(len(ones) * len(x) * engine.operations)
        chains.sweep(ones, ones, ones, 1)
        if k + len(ones) >= FEWEST_TO_RELAX and deadline.is_past():
            break
    return chains.states()


def prolonged(
    path: Path, run: Run, sweeps: int, rng: np.random.Generator, parallel: Parallel = one_after_the_other
) -> Run:
    """Return a run with all states that its states pass in so many sweeps at the model, each with a share."""
    engine, one = path.engine, np.ones(1)
    chains = engine.start_from(run.x, rng, parallel)
    clock.charge(operations(engine, sweeps, run.size))
    passed = [run.x]
    for _ in range(sweeps - 1):
        chains.sweep(one, one, one, 1)
        passed.append(chains.states())
    return replace(
        run,
        x=np.concatenate(passed),
        weight=np.tile(run.weight, sweeps) / sweeps,
        family=np.tile(run.family, sweeps),
        group=np.tile(run.group, sweeps),
    )


# ------------------------------------------------------------------------------------------------------------- quenches


# Quenches end sooner; this is for the case that rounded fields cycle.
MOST_DESCENTS = 1000
# Operations of a quench: its sweeps, and an entry of the coupling that is summed in double precision.
SWEEPS_OF_A_QUENCH = 15.0
# Spins of the states that are handled together, so that an interrupt need not wait long.
SPINS_TOGETHER = 250_000


def quench(path: Path, x: NDArray[np.int8], parallel: Parallel = one_after_the_other) -> NDArray[np.int8]:
    """Return the local maxima of the weight that states are quenched to; ``parallel`` spreads work over threads."""
    from spectralz.kernels.sampling.term_sweeps import descend

    engine, couplings, terms = path.engine, path.couplings, path.model.terms_by_spin
    clock.charge(SWEEPS_OF_A_QUENCH * len(x) * engine.operations)
    # A sweep of a sparse graph sums up as much as these fields.
    ends, h = x.copy(), (_summed if isinstance(engine, SparseEngine) else fields)(path, x, parallel)
    _in_parts(lambda part: descend(ends[part], h[part], MOST_DESCENTS, couplings, terms), x, parallel)
    return ends


def fields(path: Path, x: NDArray[np.int8], parallel: Parallel = one_after_the_other) -> FloatArray:
    """Return the fields of the spins of states."""
    one = costs.FIELD_ENTRY if path.couplings.is_dense else costs.SPARSE_FIELD_ENTRY
    clock.charge(one * len(x) * (path.n + path.entries))
    return _summed(path, x, parallel)


def _summed(path: Path, x: NDArray[np.int8], parallel: Parallel) -> FloatArray:
    h, model = np.empty(x.shape), path.model
    _in_parts(lambda part: sum_fields(model, x[part], h[part]), x, parallel)
    return h


def sum_fields(model: Model, x: NDArray[np.int8], h: FloatArray) -> None:
    """Write the fields of the spins of states to ``h``, one state per row."""
    from spectralz.kernels.sampling.heat_bath import refresh
    from spectralz.kernels.sampling.term_sweeps import add_fields

    refresh(x, h, np.ascontiguousarray(model.field), model.storage.for_kernels())
    if model.higher.number:
        add_fields(x, h, model.terms_by_spin)


def _in_parts(work: Callable[[slice], None], x: NDArray[np.int8], parallel: Parallel) -> None:
    """Call ``work`` on parts of some states."""
    parts = min(max(-(-x.size // SPINS_TOGETHER), 1), max(len(x), 1))
    edges = np.linspace(0, len(x), parts + 1).astype(int).tolist()
    parallel(lambda k: work(slice(edges[k], edges[k + 1])), range(parts))


# ---------------------------------------------------------------------------------------------------- surveys and costs


# The largest deviation whose square does not overflow.
LARGEST_DEVIATION = 1e150
# Log-weights that differ by so many roundings of the largest one do not differ; nor do means, whose errors include it.
ROUNDINGS = 16.0
# Relative variance of the weights that a step of the path aims at, by default.
STEP = 0.05
# Points that are timed to predict the time of others, or as many times those that are passed together.
TIMED_POINTS = 2
# Sweeps of less than so many seconds are timed so often; the least time counts.
SHORT, TIMED_AGAIN = 0.02, 3
# A device that was idle is slow at first, for about as long as this. It is kept busy for that time before it is timed,
# but for no more than this share of the time left.
SECONDS_TO_WAKE, SHARE_TO_WAKE = 0.2, 0.02
# The length of the path, expected before it is surveyed: this many times the root of the number of spins.
LENGTH_PER_ROOT = 0.8

# No step is longer than one over this, however even the weights of few states look: a collective mode has hardly any
# energy at high temperature, and weights of infinite variance at low temperature.
LEAST_POINTS = 16
# Models of more spins than this are large; the time of dense ones is predicted from that of so many of their spins.
LARGE_DENSE, LARGE_SPARSE, PART_OF_DENSE = 2000, 20_000, 1000
# States of a survey, and its sweeps at each point.
STATES, SURVEY_SWEEPS = 64, 2
# Steps of a survey change log-weights by this much, or by this share of the root of the number of spins, and grow at
# least by this share of the way. Otherwise states stuck at different energies would never let it end.
CHANGE, CHANGE_PER_ROOT, LEAST_GROWTH = 1.0, 0.15, 0.25
# In equilibrium beta E varies by at most about this times the root of the number of spins; a much wider spread comes
# from states stuck at different energies.
MOST_DEVIATION = 3.0
# Growth factor of the steps of a survey once its time is up.
HURRY = 4.0


def deviation_of(values: FloatArray) -> FloatArray:
    """Return the standard deviation of each row, or of a vector, even if squares overflow.

    What is no more than the rounding of the values and of their mean counts as zero.
    """
    apart = values - values.mean(axis=-1, keepdims=True)
    largest = np.maximum(np.abs(apart).max(axis=-1), np.finfo(float).tiny)
    deviation = largest * np.sqrt(((apart / largest[..., None]) ** 2).mean(axis=-1))
    return np.where(largest > ROUNDINGS * UNIT_ROUNDOFF * np.abs(values).max(axis=-1), deviation, 0.0)


def variance_of(values: FloatArray) -> FloatArray:
    """Return the square of :func:`deviation_of`, at most 1e300."""
    return np.minimum(deviation_of(values), LARGEST_DEVIATION) ** 2


@dataclass(frozen=True)
class Survey:
    """The length of the path up to some of its points.

    Attributes
    ----------
    points
        From 0 to 1, in order.
    length
        The length up to each of them. The unit is a change of log-weights by one standard deviation, or arbitrary where
        only relative lengths matter.
    """

    points: FloatArray
    length: FloatArray

    def spaced(self, count: float, least: int | None = None) -> FloatArray:
        """Return about ``count`` + 1 points from 0 to 1 at equal distances, and no step longer than 1 / ``least``."""
        least = LEAST_POINTS if least is None else least
        count = int(max(math.ceil(count), 1))
        even = np.linspace(0.0, 1.0, least + 1)
        if not 0.0 < self.length[-1] < math.inf:
            return np.unique(np.concatenate([even, np.linspace(0.0, 1.0, count + 1)]))
        points = np.interp(np.linspace(0.0, self.length[-1], count + 1), self.length, self.points)
        points[0], points[-1] = 0.0, 1.0
        if np.diff(points).max() > 1.0 / least:
            points = np.concatenate([points, even])
        return np.unique(points)


def survey(path: Path, rng: np.random.Generator, parallel: Parallel = one_after_the_other) -> Survey:
    """Move along the path in long steps and measure its length; once the time is up the steps grow."""
    engine = path.engine
    states = min(STATES, engine.together)  # fewer where each takes long
    chains = engine.start(states, rng, parallel)
    change = max(CHANGE, CHANGE_PER_ROOT * math.sqrt(engine.n))
    points, deviations = [0.0], []
    while True:
        here, before = points[-1], points[max(len(points) - 2, 0)]
        ahead = min(here + 1.0 / LEAST_POINTS, 1.0)
        clock.charge(states * SURVEY_SWEEPS * engine.operations)
        back, on = chains.sweep(np.array([before]), np.array([here]), np.array([ahead]), SURVEY_SWEEPS)
        log_weights, distance = (on[0], ahead - here) if here < 1.0 else (back[0], here - before)
        slope = float(deviation_of(log_weights)) / distance
        deviations.append(min(slope, MOST_DEVIATION * math.sqrt(engine.n) / here) if here > 0.0 else slope)
        report("surveying the path", here)
        if here >= 1.0:
            break
        change *= HURRY if deadline.is_past() else 1.0
        step = min(change / deviations[-1], 1.0) if deviations[-1] > 0.0 else 1.0
        points.append(min(here + min(max(step, LEAST_GROWTH * here), 1.0 / LEAST_POINTS), 1.0))
    at, deviation = np.array(points), np.array(deviations)
    lengths = 0.5 * (deviation[1:] + deviation[:-1]) * np.diff(at)
    return Survey(at, np.concatenate([[0.0], np.cumsum(lengths)]))


def spaced_by(
    path: Path, step: float, rng: np.random.Generator, parallel: Parallel = one_after_the_other
) -> FloatArray:
    """Return points between which the relative variance of weights is ``step``, according to a survey."""
    measured = survey(path, rng, parallel)
    return measured.spaced(measured.length[-1] / math.sqrt(step))


# ------------------------------------------------------------------------------------------------------- what it costs


def seconds_per_point(path: Path, size: int, parallel: Parallel = one_after_the_other) -> float:
    """Return the mean time that so many states take at a point of the path, all threads at work, as measured."""
    engine = path.engine
    chains = engine.start(size, np.random.default_rng(0), parallel)
    seconds, slow = _seconds_at(path, 0.0, chains), engine.slow_share
    return (1.0 - slow) * seconds + slow * _seconds_at(path, 1.0, chains) if slow else seconds


def _seconds_at(path: Path, beta: float, chains: Chains) -> float:
    together = path.engine.points_together
    points = np.full(TIMED_POINTS * together, beta)
    first = points[:together]
    chains.sweep(first, first, first, 1)  # compiles, and sums up fields
    wait = 0.0
    if path.device is not None and not clock.counts_operations():
        wait = min(SECONDS_TO_WAKE, SHARE_TO_WAKE * deadline.current().left)
    least = math.inf
    for count in itertools.count(1):
        began = clock.now()
        clock.charge(operations(path.engine, len(points), chains.size))
        chains.sweep(points, points, points, 1)
        seconds = clock.now() - began
        least = min(least, seconds)
        wait -= seconds
        # A machine that was busy for a moment must not look slow.
        if wait <= 0.0 and (count == TIMED_AGAIN or seconds > SHORT):
            break
    return least / len(points)


def seconds_per_sweep(path: Path, parallel: Parallel = one_after_the_other) -> float:
    """Return the time of a sweep over one state, as measured with as many states as are swept together."""
    together = path.engine.together
    return seconds_per_point(path, together, parallel) / together


def seconds_of_sweeps(model: Model, count: int) -> float:
    """Predict the time of some sweeps over the fewest states of a large model on a CPU; 0 for other models.

    Where even timing a sweep takes long, in dense models, a part of the spins is timed.
    """
    from spectralz.sampling.path import from_coins
    from spectralz.sampling.spread import crew_for

    is_dense = model.storage.for_kernels().is_dense and not model.higher.number
    if model.n <= (LARGE_DENSE if is_dense else LARGE_SPARSE):
        return 0.0
    path = from_coins(model)
    if path.device is not None:
        return 0.0
    path = from_coins(model.submodel(np.arange(PART_OF_DENSE))) if is_dense else path
    with crew_for(path) as crew:
        one = seconds_per_sweep(path, parallel=crew.parallel)
    return path.engine.together * count * one * ((model.n / path.n) ** 2 if is_dense else 1.0)


def seconds_per_state(path: Path, step: float, one: float) -> float:
    """Predict the time of a state along the whole path, from the time ``one`` of a sweep.

    At high temperature the deviation of the energy is that of independent spins. At low temperature the length of the
    path is about the root of the number of spins.
    """
    hot = math.sqrt(0.5 * path.n) * path.couplings.mean_strength
    hot = math.hypot(hot, *path.model.higher.weight.tolist()) if path.has_terms else hot
    cold = LENGTH_PER_ROOT * math.sqrt(max(path.n, 1))
    return one * max(min(hot, cold) / math.sqrt(step), LEAST_POINTS)


def bytes_per_state(path: Path) -> int:
    """Return the memory of a state."""
    return path.engine.bytes_per_state + path.n
