"""Elimination along a linear order with the heaviest frontier states: a bracket of log Z for cold sparse models.

At low temperature few states of the frontier matter. A table keeps the heaviest ``capacity`` of them, judged by their
weight times a bound on their future (mini-buckets in the reverse order). The states kept add up to a proven lower bound
on Z; adding the bounds of all dropped states gives a proven upper bound. Both are equal if nothing was dropped, and
close if little was.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support import clock
from spectralz._support.options import bytes_in_words
from spectralz._support.progress import report, reporter_of
from spectralz.errors import OptionError, TooLargeError
from spectralz.kernels import UNIT_ROUNDOFF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from spectralz.kernels.elimination.frontier_bits import FrontierBits
    from spectralz.kernels.mini_buckets.passes import Bound, Forest, Potentials
    from spectralz.model import FloatArray, Ising

__all__ = ["Averaged", "FrontierMeans", "FutureBound", "HeaviestFrontier", "Narrowed", "heaviest_frontier"]

ENTRY_BYTES = 8
# When the time is up, the rest is run with this few states: the bracket stays proven, and takes little longer.
STATES_WHEN_LATE = 100
# Operations per extended state, and per entry of a mini-bucket's table.
STATE_OPERATIONS, ENTRY_OPERATIONS = 150.0, 20.0
# Progress is reported after this many states, a few hundredths of a second.
STATES_PER_REPORT = 200_000
# Growth factor of the number of states from one run to the next.
FACTOR = 4


class FrontierMeans(NamedTuple):
    """Means under P(x) restricted to the kept states; pairs are those of ``model.edges()``."""

    probability: FloatArray  # of -1 and +1, one row per spin
    mean: FloatArray
    pair_mean: FloatArray


class Averaged(NamedTuple):
    """The log of the mean of unbiased estimates of Z, its standard error from their scatter, and each estimate.

    Each estimate is non-negative with mean Z, so that Markov's inequality holds. The scatter of a few runs is a valid
    error only if their states include all heavy regions: on cold tori of 20 x 20 the runs agreed to 0.1 and were wrong
    by 4. Trust it if the bracket of :meth:`FutureBound.run` is a few nats wide, or if many more states give the same
    answer.
    """

    log_z: float
    std_error: float
    each: FloatArray


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
        """Divide the buckets, tighten the bound for some rounds, and keep the tables."""
        from spectralz.kernels.elimination.frontier_bits import FrontierBits
        from spectralz.kernels.mini_buckets.cover import cover_by_content
        from spectralz.kernels.mini_buckets.passes import Forest, tables_of
        from spectralz.kernels.mini_buckets.tightening import tighten

        edges, J = model.edges()
        order = _checked_order(model, order)
        cover = cover_by_content(
            order[::-1],
            edges,
            J,
            model.field,
            ibound,
            _equal_powers,
            max_memory // ENTRY_BYTES,
            reporter_of("dividing buckets"),
        )
        if cover is None or ENTRY_BYTES * cover.entries(keep=True) > max_memory:
            raise TooLargeError(
                f"mini-buckets with ibound {ibound} need more than max_memory, {bytes_in_words(max_memory)}: "
                "lower ibound"
            )
        forest = Forest.of_cover(cover, edges)
        potentials = forest.potentials(model.field, J, _equal_powers)
        rounding = 0.0
        clock.charge(ENTRY_OPERATIONS * cover.entries(keep=True) * (1 + 3 * rounds))
        if rounds and cover.splits:
            found = tighten(forest, potentials, rounds, reporter_of("tightening the bound"))
            potentials, rounding = found.potentials, found.rounding
        bound, tables = tables_of(forest, potentials, reporter_of("eliminating spins"))
        bits = FrontierBits.of_order(order, edges, forest)
        return cls(model, bits, forest, potentials, tables, bound, rounding + bound.rounding)

    @property
    def upper(self) -> float:
        """The bound on log Z from the mini-buckets alone."""
        log_z = self.bound.value + self.model.constant
        return log_z + self.rounding + _rounding_of_constants(self.model, log_z, self.bound.value)

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

    def run(self, capacity: int = 100_000, *, remember: bool = False, max_memory: int = 2**30) -> HeaviestFrontier:
        """Go through the spins with the ``capacity`` heaviest frontier states.

        ``remember`` keeps what samples and marginals need: up to 24 bytes per spin and state, or more with more than 64
        spins in the frontier. Raises TooLargeError if that exceeds ``max_memory``.
        """
        dropped = [-math.inf]
        memory, steps = 0, list[_Step]()

        def choose(score: FloatArray, room: int) -> Choice:
            return Choice(*_threshold(score, room))

        walk = _Walk(self, capacity)
        for t, step, lost in walk.steps(choose, remember):
            dropped.append(lost)
            if step is not None:
                steps.append(step)
                memory += sum(array.nbytes for array in step)
                if memory > max_memory:
                    raise TooLargeError(
                        f"{t + 1} of {self.model.n} spins with {capacity} states need more than max_memory, "
                        f"{bytes_in_words(max_memory)}: lower capacity"
                    )
        # Tables are rounded once when they are made. Their differences are rounded again when they are added to scores,
        # which are partial sums of equally large numbers.
        units = walk.units + 4.0 * abs(walk.shift)
        units += 4.0 * walk.capacity + 32.0  # for the sums of dropped states
        rounding = 3.0 * self.rounding + 1.01 * UNIT_ROUNDOFF * units
        return HeaviestFrontier(
            future=self,
            capacity=walk.capacity,
            most_states=walk.most,
            log_sum=walk.last_score + walk.shift,
            log_dropped=_log_sum(dropped) + walk.shift,
            rounding=rounding,
            last_score=walk.last_score,
            is_late=walk.is_late,
            steps=tuple(steps) if remember else None,
        )

    def narrow(self, gap: float, max_capacity: int = 100_000, *, capacity: int = 1000) -> Narrowed:
        """Run with more and more states until the bracket is at most ``gap`` wide.

        It begins with ``capacity`` states and quadruples them, up to ``max_capacity`` or until the time is up.
        """
        began = clock.now()
        found = Narrowed((self.run(capacity),))
        while found.gap > gap and capacity < max_capacity:
            # The time of a run is proportional to its states.
            if found.runs[-1].is_complete or clock.would_be_up_after(FACTOR * (clock.now() - began)):
                break
            capacity, began = min(FACTOR * capacity, max_capacity), clock.now()
            found = Narrowed((*found.runs, self.run(capacity)))
        return found

    def estimates(self, runs: int, capacity: int, rng: np.random.Generator) -> Averaged:
        """Average independent unbiased estimates of Z; fewer than requested if the time is up, but at least two."""
        logs: list[float] = []
        for k in range(max(runs, 2)):
            logs.append(self.estimate(capacity, rng))
            report("averaging estimates", (k + 1) / runs)
            if len(logs) > 1 and clock.is_up():
                break
        each = np.array(logs)
        ratio = np.exp(each - each.max())
        error = float(ratio.std(ddof=1) / ratio.mean() / math.sqrt(len(ratio)))
        return Averaged(float(each.max() + math.log(ratio.mean())), error, each)

    def estimate(self, capacity: int, rng: np.random.Generator) -> float:
        """Return the log of an unbiased estimate of Z.

        If there are too many states, the heaviest are kept and some of the others are drawn, with a probability in
        proportion to their score; the drawn states represent the others, too. Every step preserves the expectation of
        the sum (Fearnhead and Clifford, 2003).
        """

        def choose(score: FloatArray, room: int) -> Choice:
            return _drawn(score, room, rng)

        walk = _Walk(self, capacity)
        for _ in walk.steps(choose, False):
            pass
        return float(walk.last_score + walk.shift + self.model.constant)


class Choice(NamedTuple):
    """Which states are kept: those with scores above the threshold, and a number of those at it."""

    threshold: float
    ties: int


class _Walk:
    """One pass through the spins, with at most ``capacity`` states at a time."""

    def __init__(self, future: FutureBound, capacity: int) -> None:
        if capacity < 1:
            raise OptionError(f"capacity is {capacity}; at least one state must be kept")
        self.future = future
        self.capacity = min(capacity, 1 << min(future.bits.width, 30))
        self.most = 1
        self.is_late = False
        self.units = 0.0  # of rounding: numbers times their size
        self.shift = 0.0
        self.last_score = 0.0

    def steps(
        self, choose: Callable[[FloatArray, int], Choice], remember: bool
    ) -> Iterator[tuple[int, _Step | None, float]]:
        """Yield for each spin the record to keep, if any, and the log of the sum of dropped states.

        ``choose`` takes the scores and the number of states that fit; it may change scores.
        """
        from spectralz.kernels.elimination.heaviest_states import extend, keep

        future, capacity = self.future, self.capacity
        n, words, tables, bits = future.model.n, future.bits.words, future.forest.steps, future.bits.bits
        of_step = future.changes()
        keys, kept_keys = np.zeros((2, capacity, words), dtype=np.uint64)
        score, kept_score = np.zeros((2, capacity))
        new_keys, new_score = np.empty((2 * capacity, words), dtype=np.uint64), np.empty(2 * capacity)
        number = np.empty(2 * capacity, dtype=np.int32)
        table = np.empty(1 << (4 * capacity - 1).bit_length(), dtype=np.int32)
        count, done, shifts = 1, 0, []
        for t in range(n):
            changes, shift = of_step(t)
            shifts.append(shift)
            target = np.empty(2 * count, dtype=np.int32)
            found = extend(bits, t, tables, changes, keys, score, count, table, new_keys, new_score, target)
            largest = float(np.abs(score[:count]).max() + np.abs(new_score[:found]).max())
            self.units += self._roundings(t, count) * (largest + 8.0)
            room = min(capacity, STATES_WHEN_LATE) if self.is_late else capacity
            chosen = choose(new_score[:found], room)
            clock.charge(STATE_OPERATIONS * count + ENTRY_OPERATIONS * len(changes))
            done += count
            step = _Step(keys[:count].copy(), score[:count].copy(), target) if remember else None
            count, lost = keep(new_keys, new_score, found, *chosen, kept_keys, kept_score, target, number)
            keys, kept_keys, score, kept_score = kept_keys, keys, kept_score, score
            self.most = max(self.most, count)
            if done > STATES_PER_REPORT or clock.counts_operations():
                done = 0
                report("keeping the heaviest states", (t + 1) / n)
                self.is_late = self.is_late or clock.is_up()
            yield t, step, float(lost)
        report("keeping the heaviest states", 1.0)
        # All spins are summed out: only the empty state is left.
        self.last_score, self.shift = float(score[0]), math.fsum(shifts)

    def _roundings(self, t: int, count: int) -> float:
        """Count how often a score is rounded in a step: for each mini-bucket, and for each state merged into it."""
        bits = self.future.bits
        parts = int(bits.bits.part_start[t + 1] - bits.bits.part_start[t])
        merged = min(math.exp2(float(bits.merging[t])), 2.0 * count)
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
    log_sum, log_dropped
        Logs of the sum of the states kept to the end, and of the bounds of dropped states, without constants.
    rounding
        How much rounding may have changed either.
    last_score
        The log of the sum of kept states, relative to the bound of the mini-buckets.
    is_late
        Whether the time was up before the end, so that the rest was done with few states.
    steps
        The records that samples and marginals need, if they were kept.
    """

    future: FutureBound
    capacity: int
    most_states: int
    log_sum: float
    log_dropped: float
    rounding: float
    last_score: float
    is_late: bool
    steps: tuple[_Step, ...] | None

    @property
    def model(self) -> Ising:
        """The model."""
        return self.future.model

    @property
    def order(self) -> list[int]:
        """The spins in the order in which they were added."""
        return self.future.bits.order

    @property
    def width(self) -> int:
        """Most spins in the frontier."""
        return self.future.bits.width

    @property
    def is_complete(self) -> bool:
        """Whether nothing was dropped: the two bounds then differ by rounding alone."""
        return self.log_dropped == -math.inf

    @property
    def log_z(self) -> float:
        """The log of the sum of kept states, which is log Z up to dropped states."""
        return self.log_sum + self.model.constant

    @property
    def log_z_lower(self) -> float:
        """A proven lower bound on log Z."""
        return self.log_z - self.rounding - _rounding_of_constants(self.model, self.log_z, self.log_sum)

    @property
    def log_z_upper(self) -> float:
        """A proven upper bound on log Z: the kept states, plus the bounds of dropped states."""
        log_sum = float(np.logaddexp(self.log_sum, self.log_dropped))
        log_z = log_sum + self.model.constant
        upper = log_z + self.rounding + _rounding_of_constants(self.model, log_z, log_sum)
        return min(upper, self.future.upper)

    @property
    def gap(self) -> float:
        """The distance between the two bounds."""
        return self.log_z_upper - self.log_z_lower

    def samples(self, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        """Draw independent states from P(x) restricted to the kept states.

        Each has the density ``exp(model.log_weight(x) - log_z)``: on its states, P(x) divided by the kept share.
        """
        from spectralz.kernels.elimination.heaviest_states import draw_back

        of_step = self.future.changes()
        x = np.zeros((size, self.model.n), dtype=np.int8)
        at, spin, after = np.zeros(size, dtype=np.int32), np.empty(size, dtype=np.int8), np.array([self.last_score])
        bits, tables = self.future.bits.bits, self.future.forest.steps
        for t, step in self._backwards():
            changes, _ = of_step(t)
            draw_back(bits, t, tables, changes, *step[:2], after, step.target, rng.random(size), at, spin)
            x[:, self.order[t]] = spin
            after = step.score
        return x

    def marginals(self) -> FrontierMeans:
        """Return the means of all spins and edges under P(x) restricted to the kept states."""
        from spectralz.kernels.elimination.heaviest_states import add_means

        n, of_step = self.model.n, self.future.changes()
        probability, pair_mean = np.empty((n, 2)), np.zeros(self.model.edge_count)
        here, after = np.ones(1), np.array([self.last_score])
        bits, tables = self.future.bits.bits, self.future.forest.steps
        for t, step in self._backwards():
            changes, _ = of_step(t)
            before = np.empty(len(step.score))
            both = add_means(bits, t, tables, changes, *step[:2], after, step.target, here, before, pair_mean)
            probability[self.order[t]] = both
            here, after = before, step.score
        # The sums are 1 up to rounding.
        probability = np.clip(probability, 0.0, None)
        probability /= probability.sum(axis=1, keepdims=True)
        return FrontierMeans(probability, probability[:, 1] - probability[:, 0], np.clip(pair_mean, -1.0, 1.0))

    @cached_property
    def heaviest(self) -> NDArray[np.int8]:
        """The heaviest of the kept states."""
        from spectralz.kernels.elimination.heaviest_states import follow_heaviest

        of_step, bits, tables = self.future.changes(), self.future.bits.bits, self.future.forest.steps
        steps, best = self._remembered, np.zeros(1)
        origins = []
        for t, step in enumerate(steps):
            changes, _ = of_step(t)
            left = len(steps[t + 1].score) if t + 1 < len(steps) else 1
            origins.append(np.empty(left, dtype=np.int32))
            new = np.empty(left)
            follow_heaviest(bits, t, tables, changes, step.keys, step.target, best, new, origins[-1])
            best = new
        x = np.empty(self.model.n, dtype=np.int8)
        at = 0
        for t, origin in reversed([*enumerate(origins)]):
            at, spin = divmod(int(origin[at]), 2)
            x[self.order[t]] = 1 if spin else -1
        return x

    @property
    def _remembered(self) -> tuple[_Step, ...]:
        if self.steps is None:
            raise OptionError("samples, marginals and the heaviest state need a run with remember=True")
        return self.steps

    def _backwards(self) -> Iterator[tuple[int, _Step]]:
        steps = self._remembered
        for t in range(len(steps) - 1, -1, -1):
            yield t, steps[t]
            report("going back", 1.0 - t / len(steps))


class Narrowed(NamedTuple):
    """Runs with more and more states, and their joint bracket.

    The last run may be worse than the one before: when the time is up it continues with few states.
    """

    runs: tuple[HeaviestFrontier, ...]

    @property
    def log_z_lower(self) -> float:
        """The best proven lower bound on log Z."""
        return max(run.log_z_lower for run in self.runs)

    @property
    def log_z_upper(self) -> float:
        """The best proven upper bound on log Z."""
        return min(run.log_z_upper for run in self.runs)

    @property
    def gap(self) -> float:
        """The distance between the two bounds."""
        return self.log_z_upper - self.log_z_lower


def heaviest_frontier(
    model: Ising,
    order: Sequence[int] | None = None,
    capacity: int = 100_000,
    ibound: int = 12,
    rounds: int = 10,
    *,
    remember: bool = False,
    max_memory: int = 2**30,
) -> HeaviestFrontier:
    """Bracket log Z by elimination along ``order`` with the ``capacity`` heaviest frontier states.

    Parameters
    ----------
    model
        The model; it should be sparse, otherwise the frontier contains all spins.
    order
        All spins, in the order in which to add them; None for one of small frontier.
    capacity
        Most frontier states to keep.
    ibound
        Most spins in a mini-bucket's table; larger values judge states better.
    rounds
        Rounds of tightening the bound of the mini-buckets.
    remember
        Whether samples, marginals or the heaviest state will be needed.
    max_memory
        Most bytes for the tables of the mini-buckets, and for the records.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.grid(side=12, strength=4.0, seed=0)
    >>> found = heaviest_frontier(model, capacity=1000)
    >>> truth = sz.log_z(model, "exact").log_z
    >>> found.log_z_lower <= truth <= found.log_z_upper, found.gap < 1e-3
    (True, True)
    """
    future = FutureBound.of_model(model, order, ibound, rounds, max_memory)
    return future.run(capacity, remember=remember, max_memory=max_memory)


def _checked_order(model: Ising, order: Sequence[int] | None) -> list[int]:
    from spectralz.kernels.elimination.order import adjacency_of
    from spectralz.kernels.elimination.sweep_order import sweep_order

    if order is None:
        components = [spins.tolist() for spins in model.components()]
        return sweep_order(components, adjacency_of(model.n, model.edges()[0]))
    order = [int(v) for v in order]
    if sorted(order) != list(range(model.n)):
        raise OptionError(f"order names {len(order)} spins; the model has {model.n}, name each once")
    return order


def _equal_powers(count: int) -> tuple[float, float]:
    return 1.0 / count, 1.0 / count


def _threshold(score: FloatArray, room: int) -> tuple[float, int]:
    """Return the score of the last state that fits, and how many states with this score may stay."""
    if len(score) <= room:
        return -math.inf, len(score)
    threshold = float(np.partition(score, len(score) - room)[len(score) - room])
    return threshold, room - int(np.count_nonzero(score > threshold))


def _drawn(score: FloatArray, room: int, rng: np.random.Generator) -> Choice:
    """Keep heavy states and draw some light ones, whose scores become what they represent, or -inf.

    The limit c is where sum_i min(1, w_i / c) is the number of states that fit. A light state is drawn with probability
    w_i / c and then has weight c. Draws are systematic: one uniform number places a comb over all of them.
    """
    if len(score) <= room:
        return Choice(-math.inf, len(score))
    largest = score.max()
    weight = np.exp(score - largest)
    apart = np.partition(weight, len(weight) - room)
    heaviest = np.sort(apart[len(weight) - room :])[::-1]
    # With the k heaviest always kept, c = (sum of the others) / (room - k), and no other weight may exceed it.
    others = apart[: len(weight) - room].sum() + np.cumsum(heaviest[::-1])[::-1]
    limits = others / (room - np.arange(room))
    k = int(np.argmax(heaviest <= limits))  # the last one is always below its limit
    is_light = weight <= limits[k]
    teeth = np.minimum(np.floor(np.cumsum(weight[is_light]) / limits[k] + rng.random()), room - k)
    is_drawn = np.diff(teeth, prepend=0.0) > 0.0
    score[is_light] = np.where(is_drawn, math.log(limits[k]) + largest, -math.inf)
    return Choice(-math.inf, 0)


def _log_sum(logs: Sequence[float]) -> float:
    largest = max(logs)
    return largest if largest == -math.inf else largest + math.log(math.fsum(math.exp(x - largest) for x in logs))


def _rounding_of_constants(model: Ising, log_z: float, log_sum: float) -> float:
    return 4.0 * UNIT_ROUNDOFF * (abs(log_z) + abs(log_sum)) + model.rounding
