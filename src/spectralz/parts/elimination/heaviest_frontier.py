"""Elimination along a linear order with the heaviest frontier states: a bracket of log Z for cold sparse models.

At low temperature few states of the frontier matter. A table keeps the heaviest ``capacity`` of them, judged by their
weight times a bound on their future (mini-buckets in the reverse order). The states kept add up to a proven lower bound
on Z; adding the bounds of all dropped states gives a proven upper bound. Both are equal if nothing was dropped, and
close if little was.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support import clock, costs, deadline
from spectralz._support.options import bytes_in_words
from spectralz._support.progress import report, reporter_of
from spectralz.errors import TooLargeError
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.parts.mini_buckets.bounds import ENTRY_BYTES, equal_powers
from spectralz.parts.outcome import MarginalOutcome, Outcome
from spectralz.result import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from spectralz.kernels.elimination.frontier_bits import FrontierBits
    from spectralz.kernels.mini_buckets.passes import Bound, Forest, Potentials
    from spectralz.model import FloatArray, Ising

# When the time is up, the rest is run with this few states: the bracket stays proven, and takes little longer.
STATES_WHEN_LATE = 100
# Progress is reported after this many states, a few hundredths of a second.
STATES_PER_REPORT = 200_000
# The number of states of the first run, and its growth factor from one run to the next.
FIRST_STATES, FACTOR = 1000, 4


class _Step(NamedTuple):
    """The record of a step: the states before it, their scores, and the successor of each (-1: dropped)."""

    keys: NDArray[np.uint64]
    score: FloatArray
    target: NDArray[np.int32]


@dataclass(frozen=True)
class FutureBound:
    """Mini-buckets in the reverse of a linear order; those remaining at any step bound the future.

    Attributes
    ----------
    model
        The model.
    bits
        The order, and which bit of a frontier state each spin has.
    forest, potentials, tables
        The mini-buckets with their tables.
    bound
        The bound on log Z from them alone, without constants.
    rounding
        How much rounding can have changed weights or the bound.
    """

    model: Ising
    bits: FrontierBits
    forest: Forest
    potentials: Potentials
    tables: FloatArray
    bound: Bound
    rounding: float

    @classmethod
    def of_model(
        cls,
        model: Ising,
        order: Sequence[int] | None = None,
        ibound: int = 12,
        rounds: int = 10,
        max_memory: int = 2**30,
    ) -> FutureBound:
        """Divide the buckets, tighten the bound for some rounds, and keep the tables.

        ``order`` has all spins as they are to be added; None chooses one of small frontier.
        """
        from spectralz.kernels.elimination.frontier_bits import FrontierBits
        from spectralz.kernels.elimination.order import adjacency_of
        from spectralz.kernels.elimination.sweep_order import sweep_order
        from spectralz.kernels.mini_buckets.cover import cover_by_content
        from spectralz.kernels.mini_buckets.passes import Forest, tables_of
        from spectralz.kernels.mini_buckets.tightening import tighten

        edges, J = model.edges()
        if order is None:
            components = [spins.tolist() for spins in model.components()]
            order = sweep_order(components, adjacency_of(model.n, edges))
        most, tell = max_memory // ENTRY_BYTES, reporter_of("dividing buckets")
        cover = cover_by_content(order[::-1], edges, J, model.field, ibound, equal_powers, most, tell)
        if cover is None or ENTRY_BYTES * cover.entries(keep=True) > max_memory:
            raise TooLargeError(
                f"mini-buckets with ibound {ibound} need more than max_memory, {bytes_in_words(max_memory)}: "
                "lower ibound"
            )
        forest = Forest.of_cover(cover, edges)
        potentials = forest.potentials(model.field, J, equal_powers)
        rounding = 0.0
        clock.charge(costs.FRONTIER_ENTRY * cover.entries(keep=True) * (1 + 3 * rounds))
        if rounds and cover.splits:
            tightened = tighten(forest, potentials, rounds, reporter_of("tightening the bound"))
            potentials, rounding = tightened.potentials, tightened.rounding
        bound, tables = tables_of(forest, potentials, reporter_of("eliminating spins"))
        bits = FrontierBits.of_order(order, edges, forest)
        return cls(model, bits, forest, potentials, tables, bound, rounding + bound.rounding)

    @property
    def upper(self) -> float:
        """The bound on log Z from the mini-buckets alone."""
        return _with_constants(self.model, self.bound.value, self.rounding)

    def changes(self) -> Callable[[int], tuple[FloatArray, float]]:
        """Return a function that gives the changes of scores by mini-bucket in a step, and the sum of their shifts."""
        from spectralz.kernels.elimination.heaviest_states import changes_of
        from spectralz.kernels.mini_buckets.passes import BLOCK_BITS

        steps, bits = self.forest.steps, self.bits.bits
        sizes = np.left_shift(np.int64(1), steps.width)
        most = int(sizes.max(initial=1))
        per_spin = np.bincount(self.forest.rank, sizes, minlength=1)
        room = np.empty(most), np.empty(most), np.empty(1 << BLOCK_BITS, dtype=np.int64)
        out = np.empty(2 * int(per_spin.max(initial=1)))

        def of_step(t: int) -> tuple[FloatArray, float]:
            return out, float(changes_of(bits, t, steps, *self.potentials, self.tables, self.forest.kept, *room, out))

        return of_step

    def run(self, capacity: int, *, remember: bool = False, max_memory: int = 2**30) -> HeaviestFrontier:
        """Go through the spins with the ``capacity`` heaviest frontier states.

        ``remember`` keeps what marginals need: up to 24 bytes per spin and state, or more with more than 64 spins in
        the frontier. Raises TooLargeError if that exceeds ``max_memory``.
        """
        from spectralz.kernels.elimination.heaviest_states import extend, keep
        from spectralz.kernels.sums import log_sum

        n, words, tables, bits = self.model.n, self.bits.words, self.forest.steps, self.bits.bits
        capacity = min(capacity, 1 << min(self.bits.width, 30))
        of_step = self.changes()
        keys, kept_keys = np.zeros((2, capacity, words), dtype=np.uint64)
        score, kept_score = np.zeros((2, capacity))
        new_keys, new_score = np.empty((2 * capacity, words), dtype=np.uint64), np.empty(2 * capacity)
        number = np.empty(2 * capacity, dtype=np.int32)
        table = np.empty(1 << (4 * capacity - 1).bit_length(), dtype=np.int32)
        count = most = 1
        done, memory, is_late = 0, 0, False
        units = 0.0  # of rounding: numbers times their size
        shifts: list[float] = []
        dropped: list[float] = []
        steps: list[_Step] = []
        for t in range(n):
            changes, shift = of_step(t)
            shifts.append(shift)
            target = np.empty(2 * count, dtype=np.int32)
            new = extend(bits, t, tables, changes, keys, score, count, table, new_keys, new_score, target)
            largest = float(np.abs(score[:count]).max() + np.abs(new_score[:new]).max())
            units += self._roundings(t, count) * (largest + 8.0)
            threshold = _threshold(new_score[:new], min(capacity, STATES_WHEN_LATE) if is_late else capacity)
            clock.charge(costs.FRONTIER_STATE * count + costs.FRONTIER_ENTRY * len(changes))
            done += count
            if remember:
                steps.append(_Step(keys[:count].copy(), score[:count].copy(), target))
                memory += sum(array.nbytes for array in steps[-1])
                if memory > max_memory:
                    raise TooLargeError(
                        f"{t + 1} of {n} spins with {capacity} states need more than max_memory, "
                        f"{bytes_in_words(max_memory)}: lower capacity"
                    )
            count, lost = keep(new_keys, new_score, new, *threshold, kept_keys, kept_score, target, number)
            keys, kept_keys, score, kept_score = kept_keys, keys, kept_score, score
            most = max(most, count)
            if lost > -math.inf:
                dropped.append(float(lost))
            if done > STATES_PER_REPORT or clock.counts_operations():
                done = 0
                report("keeping the heaviest states", (t + 1) / n)
                is_late = is_late or deadline.is_past()
        report("keeping the heaviest states", 1.0)
        shift = math.fsum(shifts)
        # Tables are rounded once when they are made. Their differences are rounded again when they are added to scores,
        # which are partial sums of equally large numbers. The last terms are for the sums of dropped states.
        units += 4.0 * abs(shift) + 4.0 * capacity + 32.0
        return HeaviestFrontier(
            future=self,
            capacity=capacity,
            most_states=most,
            last_score=float(score[0]),  # all spins are summed out: only the empty state is left
            log_sum=float(score[0]) + shift,
            log_dropped=log_sum(np.array(dropped)) + shift if dropped else -math.inf,
            rounding=3.0 * self.rounding + 1.01 * UNIT_ROUNDOFF * units,
            is_late=is_late,
            steps=tuple(steps),
        )

    def _roundings(self, t: int, count: int) -> float:
        """Count how often a score is rounded in a step: for each mini-bucket, and for each state merged into it."""
        parts = int(self.bits.bits.part_start[t + 1] - self.bits.bits.part_start[t])
        merged = min(math.exp2(float(self.bits.merging[t])), 2.0 * count)
        return parts + 2.0 * merged + 2.0


@dataclass(frozen=True)
class HeaviestFrontier:
    """The bracket of log Z from the heaviest frontier states of a model.

    Attributes
    ----------
    future
        The order, and the bounds by which states were judged.
    capacity, most_states
        How many states could be kept, and the most that were kept.
    last_score
        The log of the sum of kept states, relative to the bound of the mini-buckets.
    log_sum, log_dropped
        Logs of the sum of the states kept to the end, and of the bounds of dropped states, without constants. The
        latter is -inf if nothing was dropped: the two bounds then differ by rounding alone.
    rounding
        How much rounding may have changed either.
    is_late
        Whether the time was up before the end, so that the rest was done with few states.
    steps
        The records that means need; none if they were not to be remembered.
    """

    future: FutureBound
    capacity: int
    most_states: int
    last_score: float
    log_sum: float
    log_dropped: float
    rounding: float
    is_late: bool
    steps: tuple[_Step, ...]

    @property
    def lower(self) -> float:
        """A proven lower bound on log Z."""
        return _with_constants(self.future.model, self.log_sum, -self.rounding)

    @property
    def upper(self) -> float:
        """A proven upper bound on log Z: the kept states, plus the bounds of dropped states."""
        total = float(np.logaddexp(self.log_sum, self.log_dropped))
        return min(_with_constants(self.future.model, total, self.rounding), self.future.upper)

    def means(self) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities of -1 and +1 and the means of edges, under P(x) restricted to the kept states."""
        from spectralz.kernels.elimination.heaviest_states import add_means

        model, of_step = self.future.model, self.future.changes()
        probability, pair_mean = np.empty((model.n, 2)), np.zeros(model.edge_count)
        here, after = np.ones(1), np.array([self.last_score])
        bits, tables = self.future.bits.bits, self.future.forest.steps
        for t, step in reversed(list(enumerate(self.steps))):
            changes, _ = of_step(t)
            before = np.empty(len(step.score))
            both = add_means(bits, t, tables, changes, *step[:2], after, step.target, here, before, pair_mean)
            probability[self.future.bits.order[t]] = both
            here, after = before, step.score
            report("going back", 1.0 - t / len(self.steps))
        # The sums are 1 up to rounding.
        probability = np.clip(probability, 0.0, None)
        probability /= probability.sum(axis=1, keepdims=True)
        return probability, np.clip(pair_mean, -1.0, 1.0)


@dataclass(frozen=True)
class ColdFrontier:
    """Sums over more and more of the heaviest frontier states; :func:`cold_frontier` makes them.

    Attributes
    ----------
    future
        The bound on what the spins to come add.
    runs
        The sums. The last one may be worse than the one before: when the time is up it continues with few states.
    max_memory
        Most memory for marginals, in bytes.
    """

    future: FutureBound
    runs: tuple[HeaviestFrontier, ...]
    max_memory: int

    @property
    def lower(self) -> float:
        """The best proven lower bound on log Z."""
        return max(run.lower for run in self.runs)

    @property
    def upper(self) -> float:
        """The best proven upper bound on log Z."""
        return min(run.upper for run in self.runs)

    @property
    def lower_bounds(self) -> list[float]:
        """The proven lower bounds, with more and more states, of the sums that ended in time."""
        return [run.lower for run in self.runs if not run.is_late]

    def marginals(self, outcome: Outcome) -> MarginalOutcome:
        """Return means under P(x) restricted to the states kept, as many as fit in memory."""
        per_state = 24 * max(self.future.model.n, 1)
        capacity = int(min(self.runs[-1].capacity, max(self.max_memory // per_state, 100)))
        run = self.future.run(capacity, remember=True, max_memory=2 * self.max_memory)
        probability, pair_mean = run.means()
        mean = probability[:, 1] - probability[:, 0]
        kept = MarginalOutcome(probability, mean, pair_mean, Kind.ESTIMATE, outcome)
        return kept.with_rest(-math.expm1(min(run.lower - self.upper, 0.0)))


def cold_frontier(model: Ising, *, gap: float, most_states: int, max_memory: int) -> ColdFrontier:
    """Sum over more and more of the heaviest frontier states, until the bracket is narrow or the time is up.

    Parameters
    ----------
    model
        The model; it should be sparse, otherwise the frontier contains all spins.
    gap
        Desired width of the bracket.
    most_states
        Most frontier states to keep.
    max_memory
        Most memory for mini-buckets and for marginals, in bytes.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.grid(side=12, strength=4.0, seed=0)
    >>> cold = cold_frontier(model, gap=1e-3, most_states=1000, max_memory=2**30)
    >>> truth = sz.log_z(model, "exact").log_z
    >>> cold.lower <= truth <= cold.upper, cold.upper - cold.lower < 1e-3
    (True, True)
    """
    return narrowed(FutureBound.of_model(model, max_memory=max_memory), gap, most_states, max_memory)


def narrowed(
    future: FutureBound, gap: float, most_states: int, max_memory: int, *, first_states: int = FIRST_STATES
) -> ColdFrontier:
    """Sum with ``first_states`` states, then with four times as many, until the bracket is narrow."""
    began, states = clock.now(), first_states
    cold = ColdFrontier(future, (future.run(states),), max_memory)
    while cold.upper - cold.lower > gap and states < most_states:
        # The time of a run is proportional to its states. Once nothing is dropped, more states gain nothing.
        is_complete = cold.runs[-1].log_dropped == -math.inf
        if is_complete or FACTOR * (clock.now() - began) > deadline.current().left:
            break
        states, began = min(FACTOR * states, most_states), clock.now()
        cold = ColdFrontier(future, (*cold.runs, future.run(states)), max_memory)
    return cold


def _threshold(score: FloatArray, room: int) -> tuple[float, int]:
    """Return the score of the last state that fits, and how many states with this score may stay."""
    if len(score) <= room:
        return -math.inf, len(score)
    threshold = float(np.partition(score, len(score) - room)[len(score) - room])
    return threshold, room - int(np.count_nonzero(score > threshold))


def _with_constants(model: Ising, value: float, rounding: float) -> float:
    """Add the constants of a model to a bound on log Z, and rounding outwards: upwards if ``rounding`` is positive."""
    log_z = value + model.constant
    margin = abs(rounding) + 4.0 * UNIT_ROUNDOFF * (abs(log_z) + abs(value)) + model.rounding
    return log_z + math.copysign(margin, rounding)
