"""Sum over the heaviest states found: a proven lower bound and, with their measured share of P(x), an estimate.

The weights of distinct states add up to at most Z, however they were found. If states drawn from P(x), independently of
the found ones, are among them with frequency p, then Z is their sum divided by p. At low temperature few states hold
nearly all of the weight and both results are sharp. At high temperature the states that fit into memory hold a
negligible share.

On a bipartite model the states are those of its smaller side. The weight of one is the sum over all states of the model
that contain it: the sum over the other side is a product of 2cosh.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectralz._support import clock, costs, deadline
from spectralz._support.progress import report
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.coupling import Couplings, frozen
from spectralz.model import Ising
from spectralz.parts.outcome import MarginalOutcome, with_kind_of_means
from spectralz.parts.pairs import pairs_of, terms_of
from spectralz.result import Kind
from spectralz.sampling.engines.collapsed import sides_of
from spectralz.sampling.engines.lanes import one_after_the_other
from spectralz.sampling.population import pair_means, term_means
from spectralz.sampling.sweeps import fields, quench

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Model
    from spectralz.parts.outcome import Outcome
    from spectralz.sampling.engines.collapsed import Sides
    from spectralz.sampling.engines.lanes import Parallel
    from spectralz.sampling.path import Path
    from spectralz.sampling.population import Run


# Couplings between the sides are stored as a dense matrix if at least this share of the pairs is coupled.
DENSE_FROM = 0.1
# Number of the heaviest states of each kind that are quenched with spins summed out; in a large machine each takes a
# few milliseconds. The second number limits the sweeps, in case rounded fields cycle.
MOST_QUENCHED, MOST_ASCENTS = 100, 100


class Given(NamedTuple):
    """Probabilities of +1 and of -1 of all spins of states, one state per row, and their means."""

    up: NDArray[Any]
    down: NDArray[Any]
    mean: NDArray[Any]


def distinct(x: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return the different ones of some states, sorted, as ``np.unique(x, axis=0)`` does, which is slow for long rows.

    Examples
    --------
    >>> distinct(np.array([[1, -1], [-1, 1], [1, -1]], dtype=np.int8))
    array([[-1,  1],
           [ 1, -1]], dtype=int8)
    """
    if not x.size:
        return np.asarray(np.unique(x, axis=0))
    rows = np.ascontiguousarray(x).view(np.dtype((np.void, x.shape[1]))).ravel()
    _, first = np.unique(rows, return_index=True)
    return np.asarray(x[first[::-1]])  # as a byte without sign, -1 is the larger one


class WholeStates:
    """States of all spins.

    Attributes
    ----------
    width, summed
        Spins that identify states, and spins that are summed out.
    entries
        Entries of the coupling in a log-weight.
    """

    summed = 0

    def __init__(self, model: Model) -> None:
        self.width = model.n
        self.entries = 2.0 * model.edge_count + len(model.higher.spin)
        # The constant is added in the end: a huge one would round the differences between states away.
        self._bare = Ising(model.field, model.storage.without_diagonal())
        self._higher = model.higher

    def of_states(self, x: NDArray[np.int8]) -> NDArray[np.int8]:
        """Return the states."""
        return x

    def log_weight(self, v: NDArray[np.int8]) -> FloatArray:
        """Return log-weights."""
        log_weight = np.asarray(self._bare.log_weight(v))
        return log_weight + self._higher.log_weight(v) if self._higher.number else log_weight

    def flip_changes(self, v: NDArray[np.int8], path: Path, parallel: Parallel = one_after_the_other) -> FloatArray:
        """Return the changes of log-weights for the flip of each spin."""
        return np.asarray(-2.0 * v * fields(path, v, parallel))

    def sizes(self) -> float:
        """Return the sum of the sizes of all terms."""
        return float(np.abs(self._bare.field).sum() + np.abs(self._bare.coupling).sum() + self._higher.total)

    def given(self, v: NDArray[np.int8]) -> Given:
        """Return the spins themselves."""
        return Given(v > 0, v < 0, v)

    def drawn(self, v: NDArray[np.int8], rng: np.random.Generator) -> NDArray[np.int8]:
        """Return the states."""
        return v


class KeptSide:
    """States of the smaller side of a bipartite model."""

    def __init__(self, model: Model, sides: Sides) -> None:
        import scipy.sparse as sp

        self.n = model.n
        self.width, self.summed = len(sides.kept), len(sides.summed)
        self._sides = sides
        self._kept, self._summed = model.field[sides.kept], model.field[sides.summed]
        rows = sp.csr_array(2.0 * model.storage.written_out.block(sides.kept, sides.summed))
        if rows.nnz > DENSE_FROM * self.width * self.summed:
            self._weights: Any = rows.toarray()
            arrays = self._weights.ravel(), np.empty(0, np.int32), self.summed * np.arange(self.width + 1)
        else:
            self._weights = rows
            arrays = rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int64)
        data, indices, indptr = (frozen(np.ascontiguousarray(array)) for array in arrays)
        self._couplings = Couplings(data, indices, indptr, is_dense=self._weights is not rows)
        self.entries = float(len(self._couplings.data) + self.summed)

    def of_states(self, x: NDArray[np.int8]) -> NDArray[np.int8]:
        """Return the kept side."""
        return np.ascontiguousarray(x[:, self._sides.kept])

    def _fields(self, v: NDArray[np.int8]) -> FloatArray:
        """Return the fields of the summed side."""
        return np.ascontiguousarray(self._summed + v.astype(np.float64) @ self._weights)

    def log_weight(self, v: NDArray[np.int8]) -> FloatArray:
        """Return log-weights, with the other side summed out."""
        from spectralz.kernels.sampling.flips import sums_of_logs

        sums = np.empty(len(v))
        sums_of_logs(self._fields(v), sums)
        return np.asarray(sums + v @ self._kept)

    def flip_changes(self, v: NDArray[np.int8], path: Path, parallel: Parallel = one_after_the_other) -> FloatArray:
        """Return the changes of log-weights for the flip of each kept spin."""
        from spectralz.kernels.sampling.flips import flip_changes

        return np.asarray(flip_changes(v, self._fields(v), frozen(self._kept), self._couplings))

    def quench(self, v: NDArray[np.int8], most: float = MOST_QUENCHED) -> NDArray[np.int8]:
        """Return heavier states reached by flips, with the other side summed out, from the heaviest ``most``."""
        from spectralz.kernels.sampling.flips import ascend

        ends = distinct(v)
        most = min(most, MOST_QUENCHED)
        if len(ends) > most:
            ends = ends[np.argsort(-self.log_weight(ends), kind="stable")[: int(most)]]
        ascend(ends, self._fields(ends), frozen(self._kept), self._couplings, MOST_ASCENTS)
        return ends

    def sizes(self) -> float:
        """Return a bound on the sum of the sizes of all terms: log 2cosh g is at most |g| + log 2."""
        sizes = float(np.abs(self._kept).sum() + np.abs(self._summed).sum() + np.abs(self._couplings.data).sum())
        return sizes + math.log(2.0) * self.summed

    def given(self, v: NDArray[np.int8]) -> Given:
        """Return the kept spins themselves, and probabilities of the others given them."""
        from scipy.special import expit

        kept, summed, fields = self._sides.kept, self._sides.summed, self._fields(v)
        given = Given(*(np.empty((len(v), self.n)) for _ in range(3)))
        given.up[:, kept], given.down[:, kept], given.mean[:, kept] = v > 0, v < 0, v
        given.up[:, summed], given.down[:, summed] = expit(2.0 * fields), expit(-2.0 * fields)
        given.mean[:, summed] = np.tanh(fields)
        return given

    def drawn(self, v: NDArray[np.int8], rng: np.random.Generator) -> NDArray[np.int8]:
        """Return whole states, with the summed side drawn given the kept side."""
        up = self.given(v).up
        return np.where(rng.random(up.shape) < up, 1, -1).astype(np.int8)


# ---------------------------------------------------------------------------------------------- states and their spaces


# A state lighter than the heaviest by more than this many nats is ignored: 1e5 of them weigh 1e-5 of it.
CUTOFF = 25.0
# Default for the most states to keep; this many are collected in about a second.
MOST_STATES = 100_000
# Number of spins of states that are unpacked together, as bytes and then as numbers.
SPINS_AT_ONCE = 4_000_000
# The search ends when the states whose neighbors were not examined hold less than this share of the sum.
LOG_SMALLEST_SHARE = math.log(1e-5)
# Sweeps of an ascent, about.
SWEEPS_OF_AN_ASCENT = 6.0
# States are quenched with spins summed out for at most this share of what is left each time.
SHARE_OF_QUENCHES = 0.2
# Number of random states of a side that are quenched with the other side summed out.
FROM_RANDOM = 100
# A share of P(x) of this over the number of independent states may not have been seen by any of them.
UNSEEN = 2.0
# All states of a side are listed if their log-weights have at most this many entries: about a second.
MOST_ENTRIES = 1e9


def space_of(model: Model) -> WholeStates | KeptSide:
    """Return the smaller side of a bipartite model, otherwise all spins, as with constraints."""
    sides = None if model.constraints else sides_of(model)
    return WholeStates(model) if sides is None else KeptSide(model, sides)


class StatePool:
    """A table of distinct states of a model, or of one of its two sides, with their log-weights.

    :func:`state_pool` makes an empty one.
    """

    def __init__(self, model: Model, space: WholeStates | KeptSide, max_states: int) -> None:
        words = max(-(-space.width // 64), 1)
        self.model, self.space, self.max_states = model, space, max_states
        self._rows_at_once = max(SPINS_AT_ONCE // max(model.n, 1), 1)
        self._table = np.full(1 << (2 * max_states).bit_length(), -1, dtype=np.int64)
        self._keys = np.empty((max_states, words), dtype=np.uint64)
        self._log_weight = np.empty(max_states)
        self._is_expanded = np.zeros(max_states, dtype=np.bool_)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def is_full(self) -> bool:
        """Whether no more states fit."""
        return self._count == self.max_states

    @property
    def is_complete(self) -> bool:
        """Whether the pool contains all states."""
        return self.space.width < 60 and self._count == 2**self.space.width

    @property
    def can_be_filled(self) -> bool:
        """Whether the states of a side are few enough to be listed at once."""
        if not self.space.summed or self.space.width >= 60:
            return False
        states = 2**self.space.width
        return bool(states <= self.max_states and states * self.space.entries <= MOST_ENTRIES)

    @property
    def log_weight(self) -> FloatArray:
        """The log-weights of the states, without offset and trace."""
        return self._log_weight[: self._count]

    @property
    def log_sum(self) -> float:
        """Logarithm of the sum of the weights."""
        return _log_sum(self.log_weight) + self.model.constant

    @property
    def lower(self) -> float:
        """A proven lower bound on log Z: the log of the sum, minus its rounding error."""
        log_sum = self.log_sum
        constants = 4.0 * UNIT_ROUNDOFF * (abs(log_sum) + abs(self.model.constant)) + self.model.rounding
        return log_sum - self.rounding - constants

    @property
    def rounding(self) -> float:
        """A bound on the rounding error of the states' log-weights and of the log of their sum."""
        # Each log-weight is a sum of n + n^2 terms; the products of a row are n of them. Terms of three and more spins
        # are summed in a row. Logarithms of 2cosh are accurate to eight units.
        terms = 2.0 * (self.model.n + 8.0) + self.model.higher.number
        return UNIT_ROUNDOFF * (terms * self.space.sizes() + self._count + 8.0)

    @property
    def weight(self) -> FloatArray:
        """The weights of the states, which add up to 1."""
        return np.asarray(np.exp(self.log_weight - _log_sum(self.log_weight)))

    def states(self) -> NDArray[np.int8]:
        """Return the states, one per row; summed-out spins get their likelier value."""
        parts = [np.where(given.mean >= 0.0, 1, -1).astype(np.int8) for _, given in self.given()]
        return np.concatenate([np.empty((0, self.model.n), dtype=np.int8), *parts])

    def given(self) -> Iterator[tuple[FloatArray, Given]]:
        """Yield the weights of the states, which add up to 1, and their spins, a few states at a time."""
        rows, weight = self._rows_at_once, self.weight
        for k in range(0, self._count, rows):
            here = slice(k, min(k + rows, self._count))
            yield weight[here], self.space.given(_unpack(self._keys[here], self.space.width))

    def sample(self, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        """Draw states by their weights."""
        weight = self.weight
        places = rng.choice(self._count, size=size, p=weight / weight.sum())
        return self.space.drawn(_unpack(self._keys[places], self.space.width), rng)

    def add(self, x: NDArray[np.int8]) -> None:
        """Add the states that are not in the pool yet."""
        self.add_identified(self.space.of_states(x))

    def add_all(self) -> None:
        """Add all states."""
        width = self.space.width
        self.add_identified(_unpack(np.arange(2**width, dtype=np.uint64)[:, None], width))

    def add_identified(self, v: NDArray[np.int8]) -> None:
        """Add states that are given by the spins that identify them."""
        from spectralz.kernels.sampling.state_table import insert, pack

        rows = self._rows_at_once
        for part in (v[k : k + rows] for k in range(0, len(v), rows)):
            if self.model.constraints:
                part = part[self.model.constraints.hold(np.asfortranarray(part))]
            old = self._count
            clock.charge(costs.POOL_SPIN * part.size)
            is_new = np.empty(len(part), dtype=np.bool_)
            self._count = insert(self._table, self._keys, old, pack(part), is_new)
            if self._count > old:
                clock.charge(costs.POOL_ENTRY * (self._count - old) * self.space.entries)
                self._log_weight[old : self._count] = self.space.log_weight(part[is_new])

    def contains(self, x: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Return for each state whether it is in the pool."""
        from spectralz.kernels.sampling.state_table import contains, pack

        clock.charge(costs.POOL_SPIN * x.size)
        is_known = np.empty(len(x), dtype=np.bool_)
        contains(self._table, self._keys, pack(self.space.of_states(x)), is_known)
        return is_known

    def next_to_expand(self) -> tuple[NDArray[np.int8], FloatArray] | None:
        """Return the heaviest states whose neighbors were not examined, and their log-weights; None if few are left.

        They count as examined from now on.
        """
        width = self.space.width
        waiting = np.flatnonzero(~self._is_expanded[: self._count])
        if self.is_full or not len(waiting) or not width:
            return None
        clock.charge(costs.POOL_LOOK * self._count)
        if _log_sum(self._log_weight[waiting]) < _log_sum(self.log_weight) + LOG_SMALLEST_SHARE:
            return None
        batch = int(max(SPINS_AT_ONCE // max(width**2, self.space.entries), 1))
        if len(waiting) > batch:
            waiting = waiting[np.argpartition(-self._log_weight[waiting], batch)[:batch]]
        self._is_expanded[waiting] = True
        return _unpack(self._keys[waiting], width), self._log_weight[waiting]


def state_pool(model: Model, max_states: int, max_memory: int = 2**30) -> StatePool:
    """Return an empty pool.

    Parameters
    ----------
    model
        The model. If it is bipartite, states are those of its smaller side.
    max_states
        Most states to keep.
    max_memory
        Most memory for them, in bytes.
    """
    space = space_of(model)
    words = max(-(-space.width // 64), 1)
    fitting = max(max_memory // (8 * (words + 6)), 1)  # a key, a log-weight, two to four table slots
    return StatePool(model, space, min(max_states, fitting, 2 ** min(space.width, 60)))


def _log_sum(log_weight: FloatArray) -> float:
    from scipy.special import logsumexp

    return float(logsumexp(log_weight)) if len(log_weight) else -math.inf


def _unpack(keys: NDArray[np.uint64], n: int) -> NDArray[np.int8]:
    bits = np.unpackbits(keys.astype("<u8").view(np.uint8), axis=1, count=n, bitorder="little")
    return 2 * bits.astype(np.int8) - 1


@dataclass(frozen=True)
class Share:
    """The share of P(x) that a pool holds, measured by independent populations.

    Attributes
    ----------
    share
        The share.
    std_error
        Standard error of its logarithm.
    families
        The effective number of independent states of the populations.
    """

    share: float
    std_error: float
    families: float


def share_held(pool: StatePool, run: Run | None) -> Share:
    """Return the share of P(x) that the pool holds, from populations that were not used to find it.

    States of one family are not independent, so the variance is that of families. If no family was missed it would be
    0, but all families may well miss states that hold two over their number.
    """
    if pool.is_complete:
        return Share(1.0, 0.0, math.inf)
    if run is None:
        return Share(0.0, math.inf, 0.0)
    is_in = pool.contains(run.x).astype(np.float64)
    share = float(run.weight @ is_in)
    if share == 0.0:
        return Share(0.0, math.inf, run.families)
    error = float(np.linalg.norm(run.family_weights(is_in) - share * run.family_weights()))
    return Share(share, math.hypot(error / share, UNSEEN / run.families), run.families)


def fill(
    pool: StatePool,
    path: Path,
    x: NDArray[np.int8],
    quenches: int,
    rng: np.random.Generator,
    parallel: Parallel = one_after_the_other,
) -> None:
    """Fill the pool with the states of a population, and with quenched ones from these and from random states.

    If there are few states in all, add them all.
    """
    if pool.can_be_filled:
        pool.add_all()
        return
    pool.add(x)
    if len(x) and not deadline.is_past():
        _add_quenched(pool, quench(path, x, parallel))
    if quenches and not deadline.is_past():
        starts = rng.choice(np.array([-1, 1], dtype=np.int8), size=(quenches, pool.model.n))
        _add_quenched(pool, quench(path, starts, parallel))
        _add_from_random(pool, min(quenches, FROM_RANDOM), rng)


def _add_quenched(pool: StatePool, x: NDArray[np.int8]) -> None:
    """Add quenched states, and those reached from the heaviest of them by quenching with spins summed out."""
    pool.add(x)
    _quench_with_sums(pool, pool.space.of_states(x))


def _add_from_random(pool: StatePool, count: int, rng: np.random.Generator) -> None:
    """Add states reached from random ones with spins summed out: with few spins up, few down, and in between.

    In the heaviest states of a Boltzmann machine few hidden units are on; unbiased random starts never reach these.
    """
    if pool.space.summed:
        share = np.sin(0.5 * math.pi * rng.random((count, 1))) ** 2
        _quench_with_sums(pool, np.where(rng.random((count, pool.space.width)) < share, 1, -1).astype(np.int8))


def _quench_with_sums(pool: StatePool, v: NDArray[np.int8]) -> None:
    if isinstance(pool.space, KeptSide):
        one = costs.POOL_FLIP * SWEEPS_OF_AN_ASCENT * pool.space.entries
        affordable = SHARE_OF_QUENCHES * deadline.current().left * clock.OPERATIONS_PER_SECOND / one
        ends = pool.space.quench(v, max(affordable, 1.0))
        clock.charge(one * len(ends))
        pool.add_identified(ends)


def search(pool: StatePool, path: Path, seconds: float = math.inf, parallel: Parallel = one_after_the_other) -> None:
    """Search for heavy states among the neighbors of heavy ones, until little is left or the pool is full."""
    began, space = clock.now(), pool.space
    while clock.now() - began < seconds and (waiting := pool.next_to_expand()) is not None:
        v, log_weight = waiting
        clock.charge(costs.POOL_SPIN * v.size + costs.POOL_FLIP * len(v) * space.entries * (space.summed > 0))
        change = space.flip_changes(v, path, parallel)
        rows, spins = np.nonzero(log_weight[:, None] + change > pool.log_weight.max() - CUTOFF)
        few = max(SPINS_AT_ONCE // space.width, 1)  # with very many spins not all neighbors are listed
        neighbors = v[rows[:few]]
        neighbors[np.arange(len(neighbors)), spins[:few]] *= -1
        pool.add_identified(neighbors)
        report("collecting states", len(pool) / pool.max_states)


def pool_marginals(pool: StatePool, outcome: Outcome) -> MarginalOutcome:
    """Return the marginals of P(x) restricted to the pool."""
    model = pool.model
    pairs, higher = pairs_of(model), terms_of(model)
    up, down, pair_mean, total = np.zeros(model.n), np.zeros(model.n), np.zeros(len(pairs) + higher.number), 0.0
    for weight, given in pool.given():
        up += weight @ given.up
        down += weight @ given.down
        # At most one spin of a pair is summed out.
        pair_mean[: len(pairs)] += pair_means(given.mean, given.mean, weight, pairs)
        if higher.number:
            pair_mean[len(pairs) :] += term_means(given.mean, given.mean, weight, higher)
        total += float(weight.sum())
    kind = Kind.ESTIMATE
    if outcome.kind is Kind.EXACT:
        # Errors of at most r in the log-weights change a mean by at most 2 r, and every digit if they are huge.
        outcome, kind = with_kind_of_means(outcome, 2.0 * (pool.rounding + model.rounding_of_terms))
    marginals = MarginalOutcome(
        probability=np.stack([down, up], axis=1) / (up + down)[:, None],
        mean=(up - down) / (up + down),
        pair_mean=np.clip(pair_mean / total, -1.0, 1.0),
        kind=kind,
        outcome=outcome,
    )
    if outcome.std_error is None:  # complete, or its share is not known
        return marginals
    return marginals.with_rest(min(1.0 - outcome.details["share"] + outcome.std_error, 1.0))
