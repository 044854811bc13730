"""Tighten the bound of weighted mini-buckets over their weights and over the functions that they share.

Liu and Ihler (ICML 2011): by Hoelder's inequality the bound holds for all weights of a bucket that add up to 1, and for
every way to divide a field or a coupling between the mini-buckets that could hold it (cost shifting); terms of more
spins are not divided. With positive weights it is an upper bound; with one positive weight in each bucket and all
others negative it is a lower one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import deadline
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.mini_buckets.passes import Bound, Forest, Potentials, beliefs_of, bound_of, contrasts_of

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, IntArray
    from spectralz.kernels.mini_buckets.cover import Report

# Tightening has converged when this many rounds together have gained less than this share of the bound, or no
# derivative is larger than that. A single round may gain little because its step was short.
PATIENCE = 5
LEAST_GAIN = 1e-10
LEAST_SLOPE = 1e-7
# Number of gradient differences that are stored; fewer if they would take much memory.
MEMORY, LARGEST_MEMORY = 10, 1 << 24
# The first step is this many times the gradient. A step must gain this share of what the slope predicts; otherwise it
# is at least halved, up to this many times.
FIRST_STEP = 0.5
LEAST_PART = 1e-4
MOST_HALVINGS = 20
# Initial negative powers.
FIRST_NEGATIVE = -0.6
# Logs of negative powers stay between these. The smallest are as good as a minimum. Large ones approach a mean over the
# two states; their gain falls as one over their size, while their rounding errors grow with it.
LEAST_LOG, LARGEST_LOG = -300.0, 7.0


@dataclass(frozen=True)
class Tightened:
    """The best bound found by `tighten`, with the potentials that give it.

    ``converged`` says whether it converged. ``rounding`` bounds the difference between the sums of the shares and the
    fields and weights that they should add up to.
    """

    potentials: Potentials
    bound: Bound
    iterations: int
    converged: bool
    rounding: float


class _Groups:
    """Members of several groups, each a number: its mean, its softmax."""

    def __init__(self, members: IntArray, keys: IntArray) -> None:
        _, index, count = np.unique(keys, return_inverse=True, return_counts=True)
        shared = count[index] > 1
        self.members = members[shared]
        _, self.group = np.unique(index[shared], return_inverse=True)
        self.count = np.bincount(self.group)

    def sums(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(self.group, values, minlength=len(self.count)), dtype=np.float64)

    def centered(self, values: FloatArray) -> FloatArray:
        return np.asarray(values - (self.sums(values) / self.count)[self.group])


class _PositivePowers:
    """Powers above 0 that add up to 1 in each group: the softmax of free numbers."""

    def __init__(self, groups: _Groups, start: FloatArray) -> None:
        self.groups = groups
        self.start = np.log(start)

    def of(self, logits: FloatArray) -> FloatArray:
        groups = self.groups
        largest = np.full(len(groups.count), -np.inf)
        np.maximum.at(largest, groups.group, logits)
        e = np.exp(logits - largest[groups.group])
        return np.asarray(e / groups.sums(e)[groups.group])

    def slope(self, power: FloatArray, entropy: FloatArray) -> FloatArray:
        return power * (entropy - self.groups.sums(power * entropy)[self.groups.group])


class _NegativePowers:
    """Powers below 0 but for one in each group: minus the exponentials of free numbers, and 1 plus their sum."""

    def __init__(self, groups: _Groups, start: FloatArray) -> None:
        self.groups = groups
        self.is_negative = start < 0.0
        self.start = np.log(np.abs(start))

    def of(self, logs: FloatArray) -> FloatArray:
        size = np.where(self.is_negative, np.exp(np.clip(logs, LEAST_LOG, LARGEST_LOG)), 0.0)
        return np.asarray(np.where(self.is_negative, -size, 1.0 + self.groups.sums(size)[self.groups.group]))

    def slope(self, power: FloatArray, entropy: FloatArray) -> FloatArray:
        of_positive = self.groups.sums(np.where(self.is_negative, 0.0, entropy))[self.groups.group]
        is_free = self.is_negative & (power > -np.exp(LARGEST_LOG))
        return np.asarray(np.where(is_free, -power * (of_positive - entropy), 0.0))


class _Objective:
    """The looseness as a function of free numbers: shares of fields and weights around their mean, and powers.

    The bound is valid for any numbers: the shares of a bucket always have the same sum, and its powers add up to 1.
    Shares and bound are measured in units of ``scale``, the size of the weights, so that strong models look like
    others. The looseness is an upper bound itself, or minus a lower bound.
    """

    def __init__(self, forest: Forest, start: Potentials) -> None:
        self.forest, self.start = forest, start
        used = np.abs(np.concatenate([start.J[forest.edge_bit], forest.steps.term_weight]))
        self.scale = max(1.0, float(used.max(initial=0.0)))
        is_split = np.bincount(forest.rank)[forest.rank] > 1
        self.fields = _Groups(np.flatnonzero(is_split), forest.rank[is_split])
        bits = np.flatnonzero(np.repeat(is_split, forest.steps.width))
        step_of_bit = np.repeat(np.arange(forest.count), forest.steps.width)
        pairs = forest.rank[step_of_bit[bits]] * (forest.count + 1) + forest.pair_rank[bits]
        self.pairs = _Groups(bits, pairs)
        power = start.power[self.fields.members]
        self.is_lower = bool((power < 0.0).any())
        self.powers = (_NegativePowers if self.is_lower else _PositivePowers)(self.fields, power)
        self.unit = -self.scale if self.is_lower else self.scale
        self.sections = np.cumsum([len(self.fields.members), len(self.pairs.members)])
        self.latest = Bound(np.inf, 0.0)  # of the latest call

    def first(self) -> FloatArray:
        """Return the free numbers of the start."""
        return np.concatenate([np.zeros(self.sections[-1]), self.powers.start])

    def potentials(self, x: FloatArray) -> Potentials:
        by_field, by_pair, free = np.split(x, self.sections)
        h, J, power = (values.copy() for values in self.start)
        h[self.fields.members] += self.scale * self.fields.centered(by_field)
        J[self.pairs.members] += self.scale * self.pairs.centered(by_pair)
        power[self.fields.members] = self.powers.of(free)
        return Potentials(h, J, power)

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray]:
        potentials = self.potentials(x)
        beliefs = beliefs_of(self.forest, potentials, lambda _: None)
        self.latest = beliefs.bound
        power, entropy = potentials.power[self.fields.members], beliefs.entropy[self.fields.members]
        slope = (
            self.scale * self.fields.centered((beliefs.up - beliefs.down)[self.fields.members]),
            self.scale * self.pairs.centered(beliefs.pair_mean[self.pairs.members]),
            self.powers.slope(power, entropy),
        )
        return beliefs.bound.value / self.unit, np.concatenate(slope) / self.unit

    def rounding(self, potentials: Potentials) -> float:
        """Bound the error of the sums of the shares, including the rounding of these sums."""
        missed = 0.0
        for groups, now, then in ((self.fields, potentials.h, self.start.h), (self.pairs, potentials.J, self.start.J)):
            a, b = now[groups.members], then[groups.members]
            missed += float(np.abs(groups.sums(a) - groups.sums(b)).sum())
            largest = float(groups.count.max(initial=0))
            missed += UNIT_ROUNDOFF * largest * float(np.abs(a).sum() + np.abs(b).sum())
        return 1.01 * missed


class _Descent:
    """Limited-memory BFGS with a halving line search, which can be stopped and continued."""

    def __init__(self, objective: _Objective) -> None:
        self.objective = objective
        self.x = objective.first()
        self.value, self.slope = objective(self.x)
        self.bound = objective.latest
        self.memory = max(3, min(MEMORY, LARGEST_MEMORY // max(len(self.x), 1)))
        self.steps: list[FloatArray] = []
        self.changes: list[FloatArray] = []
        self.latest = [self.value]
        self.is_at_rest = float(np.abs(self.slope).max(initial=0.0)) <= LEAST_SLOPE

    def advance(self) -> None:
        """Make one step, unless no step gains anything."""
        direction = -self._times_inverse(self.slope)
        descent = _dot(direction, self.slope)
        if not descent < 0.0:
            self.steps, self.changes = [], []
            direction = -FIRST_STEP * self.slope
            descent = _dot(direction, self.slope)
        length = 1.0
        for _ in range(MOST_HALVINGS):
            step = length * direction
            value, slope = self.objective(self.x + step)
            if value <= self.value + LEAST_PART * length * descent:
                break
            # The minimum of the parabola through the known values, within limits; rounding may have spoiled all of
            # them.
            curvature = value - self.value - length * descent
            best = -0.5 * descent * length**2 / curvature if np.isfinite(curvature) and curvature > 0.0 else 0.0
            length = min(max(best, 0.1 * length), 0.5 * length)
        else:
            if self.steps:  # once more, along the gradient itself
                self.steps, self.changes = [], []
            else:
                self.is_at_rest = True
            return
        self._remember(step, slope - self.slope)
        self.x, self.value, self.slope, self.bound = self.x + step, value, slope, self.objective.latest
        self.latest = [*self.latest[-PATIENCE:], value]
        no_longer_pays = len(self.latest) > PATIENCE and self.latest[0] - value <= LEAST_GAIN * max(abs(value), 1.0)
        self.is_at_rest = no_longer_pays or float(np.abs(slope).max(initial=0.0)) <= LEAST_SLOPE

    def _remember(self, step: FloatArray, change: FloatArray) -> None:
        # Without curvature, or if numbers are so small that their squares vanish, nothing can be learned.
        if not _dot(step, change) > UNIT_ROUNDOFF * _dot(change, change) > 0.0:
            return
        self.steps.append(step)
        self.changes.append(change)
        if len(self.steps) > self.memory:
            del self.steps[0], self.changes[0]

    def _times_inverse(self, slope: FloatArray) -> FloatArray:
        """Multiply by the inverse of the Hessian as far as it is known (Nocedal and Wright, algorithm 7.4)."""
        out = slope.copy()
        if not self.steps:
            return np.asarray(FIRST_STEP * out)
        alphas = []
        for s, y in zip(reversed(self.steps), reversed(self.changes), strict=True):
            alphas.append(_dot(s, out) / _dot(s, y))
            out -= alphas[-1] * y
        s, y = self.steps[-1], self.changes[-1]
        out *= _dot(s, y) / _dot(y, y)
        for s, y, alpha in zip(self.steps, self.changes, reversed(alphas), strict=True):
            out += (alpha - _dot(y, out) / _dot(s, y)) * s
        return out


class Tightening:
    """A bound that is tightened round by round, with its current value available in between.

    Parameters
    ----------
    forest
        The mini-buckets.
    start
        Their initial numbers. If all powers are positive, an upper bound is lowered. If every divided bucket has one
        positive power and the others negative, a lower bound is raised.
    before
        The bound at these numbers, if it is known.
    """

    def __init__(self, forest: Forest, start: Potentials, before: Bound | None = None) -> None:
        self.before = bound_of(forest, start, lambda _: None) if before is None else before
        self.objective = _Objective(forest, start)
        self.descent = _Descent(self.objective)
        self.rounds = 0

    @property
    def value(self) -> float:
        """The current bound."""
        return self.descent.bound.value

    @property
    def is_at_rest(self) -> bool:
        """Whether it has converged, so that more rounds would gain nothing."""
        return self.descent.is_at_rest

    def run(self, rounds: int, report: Report) -> None:
        """Make up to this many rounds of L-BFGS; fewer if it converges or the time is up."""
        for done in range(1, rounds + 1):
            if self.is_at_rest or deadline.is_past():
                return
            # A step is completed or, if it is interrupted, not made at all.
            self.descent.advance()
            self.rounds += 1
            report(done / rounds)

    def result(self) -> Tightened:
        """Return the tightened bound with its rounding error; the start if nothing was gained."""
        objective, bound, before = self.objective, self.descent.bound, self.before
        potentials, start = objective.potentials(self.descent.x), objective.start
        if (bound.value <= before.value) if objective.is_lower else (bound.value >= before.value):
            # Also if a softmax is rounded up and nothing else has changed.
            return Tightened(start, before, self.rounds, self.is_at_rest, 0.0)
        return Tightened(potentials, bound, self.rounds, self.is_at_rest, objective.rounding(potentials))


def lower_powers(forest: Forest, potentials: Potentials) -> Potentials:
    """Give each divided bucket the powers of a lower bound, from those of an upper one.

    One power is positive. A mini-bucket with a negative power is closer to a minimum, which loses more if the two
    states of the spin differ more. So the positive power goes to the mini-bucket where they differ most.
    """
    count = np.bincount(forest.rank)
    contrast = contrasts_of(forest, potentials)
    by_contrast = np.lexsort((contrast, forest.rank))
    positive = by_contrast[np.cumsum(count) - 1]
    power = np.full(forest.count, FIRST_NEGATIVE)
    power[positive] = 1.0 - FIRST_NEGATIVE * (count - 1)
    return potentials._replace(power=power)


def tighten(forest: Forest, start: Potentials, max_iter: int, report: Report) -> Tightened:
    """Tighten the bound over powers and shares by L-BFGS, at most ``max_iter`` rounds; never looser than the start.

    The upper bound is convex in the shares, and smooth as long as no power is 0.
    """
    tightening = Tightening(forest, start)
    tightening.run(max_iter, report)
    return tightening.result()


def _dot(a: FloatArray, b: FloatArray) -> float:
    """Return the product of two vectors, always summed in the same order; BLAS's order depends on memory alignment."""
    return float((a * b).sum())
