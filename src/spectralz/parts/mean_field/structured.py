"""Structured mean field: blocks of small treewidth, exact within, mean field between; a proven lower bound on log Z.

With q the product over blocks b of exp(<f_b, x> + couplings inside b) / Z_b(f_b), and m its means,

    log Z >= E_q[log-weight] + H(q) = sum_b log Z_b(f_b) - <f - theta, m> + sum of J_ij m_i m_j over cut edges.

Given the other blocks, f_b = theta_b + J_cut m is the best choice for block b. Any f gives a bound; it is evaluated for
the f that was used, wherever the ascent stopped.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from spectralz._support import clock, costs, deadline
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.elimination.forward import NO_SPREAD, forward
from spectralz.kernels.elimination.marginals import Marginals, backward
from spectralz.kernels.elimination.program import Steps
from spectralz.kernels.elimination.tables import Block, Tables
from spectralz.parts.mean_field.ascents import BETAS, NOISE

if TYPE_CHECKING:
    from collections.abc import Callable

    from spectralz.model import FloatArray, IntArray, Ising
    from spectralz.parts.mean_field.partition import Partition

# Blocks that are not coupled are eliminated together, with up to this many table entries in total, or one larger block.
ENTRIES_TOGETHER = 1 << 20
# Sweeps at each temperature of an annealed start.
SWEEPS_PER_BETA = 2
# Errors of means are never larger than this.
LARGEST_ERROR = 2.0
# Log-probabilities with a larger error than this carry no information.
MOST_LOG_ERROR = 30.0


@dataclass(frozen=True)
class _Run:
    """Blocks that are eliminated together: their steps, spins, and the couplings that join them to other blocks."""

    begin: int
    end: int
    spins: IntArray
    cut: Any  # scipy CSR array, one row per spin


@dataclass(frozen=True)
class _Layout:
    """What does not change: the edges and couplings between blocks, and the blocks laid out for elimination."""

    edges: IntArray
    is_cut: Any
    cut: Any
    cut_weight: float
    steps: Steps
    pair_edge: IntArray
    runs: list[_Run]
    rounding: _Rounding
    entries: int

    @classmethod
    def of(cls, model: Ising, partition: Partition) -> _Layout:
        edges, weights = model.edges()
        first, second = edges.T
        is_cut = partition.label[first] != partition.label[second]
        i, j, J = first[is_cut], second[is_cut], weights[is_cut]
        places = np.concatenate([i, j]), np.concatenate([j, i])
        cut = sp.csr_array((np.concatenate([J, J]), places), shape=(model.n, model.n))
        steps, pair_edge = _steps_of(partition, edges, weights, is_cut)
        runs = _runs_of(partition, cut)
        sizes = [1 << steps.width[run.begin : run.end] for run in runs]
        return cls(
            edges=edges,
            is_cut=is_cut,
            cut=cut,
            cut_weight=float(np.abs(J).sum()),
            steps=steps,
            pair_edge=pair_edge,
            runs=runs,
            rounding=_Rounding.of(steps, partition, cut),
            entries=max((int(size.sum() + size.max(initial=0)) for size in sizes), default=0),
        )


class StructuredMeanField:
    """Distributions that are products over blocks, and the ascent of their bound.

    Attributes
    ----------
    partition
        The blocks.
    field
        The field of each spin in its block: ``f`` above.
    mean, probability, pair_mean
        Of spins, P(x = -1) and P(x = +1), and of the edges that lie in blocks; 0 for others.
    """

    def __init__(self, model: Ising, partition: Partition, layout: _Layout) -> None:
        self.partition, self._model = partition, model
        self._edges, self._is_cut, self._cut, self.cut_weight = (
            layout.edges,
            layout.is_cut,
            layout.cut,
            layout.cut_weight,
        )
        self._steps, self._pair_edge = layout.steps, layout.pair_edge
        self._runs, self._rounding = layout.runs, layout.rounding
        self._block = Block.of(layout.steps)
        self._arena, self._bar = np.empty((2, layout.entries))
        self._where = np.zeros(model.n, dtype=np.int64)
        self._log_z = np.zeros(len(layout.runs))
        self.field, self.mean, self._up, self._down = np.zeros((4, model.n))
        self.pair_mean = np.zeros(len(layout.edges))

    @classmethod
    def of(cls, model: Ising, partition: Partition) -> StructuredMeanField:
        """Lay out the blocks of a partition; all means are zero."""
        return cls(model, partition, _Layout.of(model, partition))

    @property
    def probability(self) -> FloatArray:
        """P(x = -1) and P(x = +1) of each spin."""
        return np.column_stack([self._down, self._up])

    @property
    def operations(self) -> float:
        """Operations of a sweep."""
        return costs.BLOCKS_ENTRY * self.partition.entries + costs.BLOCKS_SPIN * len(self.mean)

    def ascend(
        self, mean: FloatArray, max_iter: int, tol: float, tell: Callable[[int], None] = lambda _: None
    ) -> tuple[int, float]:
        """Climb from means of the spins until no mean changes by more than ``tol``, or the time is up.

        Returns the number of sweeps, at least one, and the largest change of a mean in the last one. The first sweep is
        always finished; a later one that is cut short by the time limit still leaves a bound.
        """
        self.mean = np.array(mean, dtype=np.float64)
        change = 0.0
        for sweep in range(max_iter):
            change = 0.0
            for number in range(len(self._runs)):
                change = max(change, self._renew(number))
                if sweep and deadline.is_past():
                    return sweep + 1, max(change, 2.0 * tol)
            tell(sweep + 1)
            if change <= tol or deadline.is_past():
                return sweep + 1, change
        return max_iter, change

    def annealed_means(self, rng: np.random.Generator | None = None) -> FloatArray:
        """Return means to start from: those that the ascent reaches from zero at falling temperatures.

        With a random generator, means are perturbed slightly before each.
        """
        self.mean = np.zeros(len(self.mean))
        for beta, sweep in itertools.product(BETAS, range(SWEEPS_PER_BETA)):
            if rng is not None and sweep == 0:
                self.mean = np.clip(self.mean + NOISE * rng.standard_normal(len(self.mean)), -1.0, 1.0)
            for number in range(len(self._runs)):
                self._renew(number, beta)
                if deadline.is_past():
                    return self.mean
        return self.mean

    def all_pair_means(self) -> FloatArray:
        """Return the exact means of all edges under q; between blocks these are products."""
        first, second = self._edges.T
        return np.clip(np.where(self._is_cut, self.mean[first] * self.mean[second], self.pair_mean), -1.0, 1.0)

    @property
    def cuts(self) -> int:
        """Number of edges that join different blocks."""
        return int(self._is_cut.sum())

    def _renew(self, number: int, beta: float = 1.0) -> float:
        """Set the fields of some blocks to their best given the others; return the largest change of a mean."""
        run = self._runs[number]
        spins, steps = run.spins, self._steps
        if beta != 1.0:
            steps = steps._replace(pair_weight=beta * steps.pair_weight)
        clock.charge(self.operations * (run.end - run.begin) / max(len(self.mean), 1))
        self.field[spins] = beta * (self._model.field[spins] + run.cut @ self.mean)
        steps.field[run.begin : run.end] = self.field[spins]
        total = np.zeros(2)
        tables = Tables(self._arena, self._where, NO_SPREAD)
        top = forward(steps, run.begin, run.end, tables, 0, True, total, self._block)
        self._bar[:top] = 0.0
        self._up[spins] = self._down[spins] = 0.0
        edges = self._pair_edge[steps.pair_start[run.begin] : steps.pair_start[run.end]]
        self.pair_mean[edges] = 0.0
        no_terms = np.empty(0, dtype=np.int64)
        marginals = Marginals(self.partition.order, self._pair_edge, no_terms, self._up, self._down, self.pair_mean)
        backward(steps, run.begin, run.end, tables, self._block, self._bar, marginals)
        whole = self._up[spins] + self._down[spins]
        self._up[spins] /= whole
        self._down[spins] /= whole
        new = np.clip(self._up[spins] - self._down[spins], -1.0, 1.0)
        change = float(np.abs(new - self.mean[spins]).max(initial=0.0))
        self.mean[spins] = new
        self._log_z[number] = total[0] + total[1]
        return change

    def loss(self, delta: FloatArray, rounding: FloatArray | float = 0.0) -> float:
        """Bound the error of the bound if each mean has an error of at most ``delta``.

        With m - delta instead of m it changes by <delta, J_cut m - shift> and by J_ij delta_i delta_j of cut edges.
        Without rounding, the first term is zero if the ascent has converged.
        """
        off = np.abs(self._cut @ self.mean - (self.field - self._model.field)) + rounding
        return float((delta * off).sum()) + 0.5 * float((delta * (abs(self._cut) @ delta)).sum())

    def bound(self) -> tuple[float, float]:
        """Return the bound on log Z, including constants, and the same minus its rounding error."""
        model, m = self._model, self.mean
        pull = self._cut @ m
        shift = self.field - model.field
        value = math.fsum([*self._log_z.tolist(), *(m * (0.5 * pull - shift)).tolist(), model.constant])
        rounding = self._rounding.of_bound(self, pull, shift)
        rounding += 2.0 * UNIT_ROUNDOFF * (abs(value) + float(np.abs(self._log_z).sum())) + model.rounding
        return value, value - rounding - 4.0 * UNIT_ROUNDOFF * abs(model.constant)


def _steps_of(partition: Partition, edges: IntArray, weights: FloatArray, is_cut: Any) -> tuple[Steps, IntArray]:
    """Lay out all blocks, one after the other, for the passes of elimination, with the edge of each pair.

    All tables are kept, so steps need not be in post-order, and each has its own place.
    """
    order, separator, width = partition.order, partition.separator, partition.width
    n = len(order)
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n)
    inside = np.flatnonzero(~is_cut)
    ends = np.sort(rank[edges[inside]], axis=1).reshape(-1, 2)
    by_step = np.argsort(ends[:, 0], kind="stable")
    pair_edge, step, other = inside[by_step], ends[by_step, 0], ends[by_step, 1]
    children = np.argsort(partition.parent, kind="stable")
    children = children[partition.parent[children] >= 0]
    parent = partition.parent[children]
    mask = np.zeros(len(children), dtype=np.int64)
    for k in range(1, separator.shape[1]):
        has = np.flatnonzero(width[children] > k)
        mask[has] |= 1 << _bit_of(partition, parent[has], separator[children[has], k])
    steps = Steps(
        field=np.zeros(n),
        width=width,
        slot=np.arange(n),
        pair_start=_starts(step, n),
        pair_bit=_bit_of(partition, step, other),
        pair_weight=weights[pair_edge].astype(np.float64),
        child_start=_starts(parent, n),
        child_slot=children,
        child_mask=mask,
        term_start=np.zeros(n + 1, dtype=np.int64),
        term_mask=np.empty(0, dtype=np.int64),
        term_weight=np.empty(0),
        table_start=np.zeros(n + 1, dtype=np.int64),
        table_mask=np.empty(0, dtype=np.int64),
        table_at=np.empty(0, dtype=np.int64),
        table_entry=np.empty(0),
    )
    return steps, pair_edge


def _starts(step: IntArray, n: int) -> IntArray:
    return np.concatenate([[0], np.cumsum(np.bincount(step, minlength=n))]).astype(np.int64)


def _bit_of(partition: Partition, step: IntArray, member: IntArray) -> IntArray:
    """Return the places of steps in the separators of others."""
    bit = np.zeros(len(step), dtype=np.int64)
    for k in range(partition.separator.shape[1]):
        is_here = (partition.separator[step, k] == member) & (partition.width[step] > k)
        bit[is_here] = k
    return bit


def _runs_of(partition: Partition, cut: Any) -> list[_Run]:
    """Put neighboring blocks of one color together, up to a number of table entries."""
    order = partition.order
    new_block, new_color = (np.diff(of_spin[order]) != 0 for of_spin in (partition.label, partition.color))
    entries = np.concatenate([[0.0], np.cumsum(2.0**partition.width)])
    bounds = [0] if len(order) else []
    ends = [*(np.flatnonzero(new_block) + 1).tolist(), len(order)]
    for end, following in itertools.pairwise(ends):
        if new_color[end - 1] or entries[following] - entries[bounds[-1]] > ENTRIES_TOGETHER:
            bounds.append(end)
    bounds.append(len(order))
    return [_Run(a, b, order[a:b], cut[order[a:b]]) for a, b in itertools.pairwise(bounds)]


@dataclass(frozen=True)
class _Rounding:
    """Rounding error of the bound, apart from the part that depends on the fields.

    Log-sum-exp is non-expansive, so errors of log Z only add up. A step with d pairs and c children makes d + c + 4
    roundings of numbers no larger than its own weights, log 2 and its children's tables. The entries of a table differ
    from the first one by at most twice the weights of all couplings of its separator inside the block.

    The passes also define the distribution of the means: log-probabilities telescope to log-weights, with every
    rounding once. So their error is at most twice that of log Z, plus the error of adding up probabilities, all
    positive, on the way back.
    """

    roundings: FloatArray  # of each spin's step
    units: FloatArray  # of the blocks, without fields
    back: FloatArray  # of the blocks: relative errors of probabilities, in units
    block: IntArray  # of each spin
    order: IntArray
    cut_sizes: FloatArray  # sum of |J| of each spin's cut edges
    cut_counts: IntArray

    @classmethod
    def of(cls, steps: Steps, partition: Partition, cut: Any) -> _Rounding:
        n = len(partition.order)
        pairs, children = np.diff(steps.pair_start), np.diff(steps.child_start)
        step_of_pair = np.repeat(np.arange(n), pairs)
        size = np.abs(steps.pair_weight)
        first = np.bincount(step_of_pair, weights=size, minlength=n)
        other = partition.separator[step_of_pair, steps.pair_bit] if len(size) else np.empty(0, np.int64)
        inside = first + np.bincount(other, weights=size, minlength=n)
        # Of each step, the weights inside the block of the spins of its separator.
        around = np.zeros(n)
        for k in range(partition.separator.shape[1]):
            has = np.flatnonzero(partition.width > k)
            around[has] += inside[partition.separator[has, k]]
        step_of_child = np.repeat(np.arange(n), children)
        below = np.bincount(step_of_child, weights=around[steps.child_slot], minlength=n)
        roundings = pairs + children + 4.0
        number = np.unique(partition.label[partition.order], return_inverse=True)[1].reshape(-1)
        units = roundings * (first + 2.0 * below + 0.7) + 8.0
        blocks = int(number.max(initial=-1)) + 1
        # Entries of a step's table that are added into one of a child's; and all entries for the mean of the spin.
        merged = 2.0 ** (steps.width[step_of_child] + 1 - steps.width[steps.child_slot])
        back = 16.0 + np.bincount(step_of_child, weights=merged, minlength=n)
        last = np.zeros(blocks)
        np.maximum.at(last, number, 2.0 ** np.minimum(steps.width, 9) + 2.0 ** np.maximum(steps.width - 9.0, 0.0))
        return cls(
            roundings=roundings,
            units=np.asarray(np.bincount(number, weights=units, minlength=blocks), dtype=np.float64),
            back=np.bincount(number, weights=back, minlength=blocks) + last,
            block=number,
            order=partition.order,
            cut_sizes=np.asarray(abs(cut).sum(axis=1)).reshape(-1),
            cut_counts=np.diff(cut.indptr),
        )

    def of_bound(self, blocks: StructuredMeanField, pull: FloatArray, shift: FloatArray) -> float:
        """Bound the rounding error of the bound with these fields and means."""
        order = self.order
        of_fields = np.bincount(self.block, self.roundings * np.abs(blocks.field[order]), minlength=len(self.units))
        log_z_errors = 1.01 * UNIT_ROUNDOFF * (self.units + of_fields)
        log_error = (2.0 * log_z_errors + 1.01 * UNIT_ROUNDOFF * self.back)[self.block]
        # The relative error of probabilities is the exponential of this; the smaller one of a spin bounds the error of
        # its mean.
        smaller = np.minimum(blocks._up, blocks._down)[order]
        factor = np.expm1(np.minimum(log_error, MOST_LOG_ERROR))
        far = np.minimum(2.0 * smaller * factor + 4.0 * UNIT_ROUNDOFF, LARGEST_ERROR)
        delta = np.empty(len(order))
        delta[order] = np.where(log_error < MOST_LOG_ERROR, far, LARGEST_ERROR)
        sizes = np.abs(shift) + self.cut_sizes
        of_shifts = UNIT_ROUNDOFF * (self.cut_counts + 8.0) * sizes
        return 1.01 * (float(log_z_errors.sum() + of_shifts.sum()) + blocks.loss(delta, of_shifts))
