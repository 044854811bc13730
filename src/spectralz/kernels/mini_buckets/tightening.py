"""Tightening the bound of weighted mini-buckets over their weights and over what they share.

Liu and Ihler (ICML 2011): by Hoelder's inequality the bound holds for all weights of a bucket that add up to 1, and for
every way to divide a field or a coupling between the mini-buckets that could hold it (cost shifting).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.mini_buckets.passes import Bound, Forest, Potentials, beliefs_of, bound_of

if TYPE_CHECKING:
    from spectralz.kernels.mini_buckets.passes import FloatArray, IntArray, Report

__all__ = ["Tightened", "tighten"]

# Tightening is at rest when a round gains less than this part of the bound, or no derivative is larger than that.
LEAST_GAIN = 1e-10
LEAST_SLOPE = 1e-7
# A line search seldom needs more than two; at the kinks of strong models it may.
PASSES_PER_ROUND = 3


@dataclass(frozen=True)
class Tightened:
    """The best bound found by `tighten`, with the potentials that give it.

    ``converged`` says whether it came to rest; ``rounding`` is what the shares miss of the fields and weights that they
    should add up to, at most.
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

    def centred(self, values: FloatArray) -> FloatArray:
        return np.asarray(values - (self.sums(values) / self.count)[self.group])

    def softmax(self, values: FloatArray) -> FloatArray:
        largest = np.full(len(self.count), -np.inf)
        np.maximum.at(largest, self.group, values)
        e = np.exp(values - largest[self.group])
        return np.asarray(e / self.sums(e)[self.group])


class _Objective:
    """The bound as a function of free numbers: shares of fields and weights around their mean, logits of powers.

    Whatever the numbers are, the bound is valid: the shares of a bucket always add up to the same, its powers to 1.
    Shares and bound are measured in units of ``scale``, the size of the weights: strong models look like others then.
    """

    def __init__(self, forest: Forest, start: Potentials) -> None:
        self.forest, self.start = forest, start
        used = np.abs(start.J[forest.edge_bit])
        self.scale = max(1.0, float(used.max(initial=0.0)))
        step_of_bit = np.repeat(np.arange(forest.count), forest.steps.width)
        self.fields = _Groups(np.arange(forest.count), forest.rank)
        pairs = forest.rank[step_of_bit] * (forest.count + 1) + forest.pair_rank
        self.pairs = _Groups(np.arange(len(pairs)), pairs)
        self.sections = np.cumsum([len(self.fields.members), len(self.pairs.members)])
        self.best: tuple[float, FloatArray] = (np.inf, np.empty(0))

    @property
    def size(self) -> int:
        return int(self.sections[-1] + len(self.fields.members))

    def potentials(self, x: FloatArray) -> Potentials:
        by_field, by_pair, logits = np.split(x, self.sections)
        h, J, power = (values.copy() for values in self.start)
        h[self.fields.members] += self.scale * self.fields.centred(by_field)
        J[self.pairs.members] += self.scale * self.pairs.centred(by_pair)
        power[self.fields.members] = self.fields.softmax(logits)
        return Potentials(h, J, power)

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray]:
        potentials = self.potentials(x)
        found = beliefs_of(self.forest, potentials, lambda _: None)
        if found.bound.value < self.best[0]:
            self.best = found.bound.value, x.copy()
        power, entropy = potentials.power[self.fields.members], found.entropy[self.fields.members]
        mean_entropy = self.fields.sums(power * entropy)[self.fields.group]
        gradient = (
            self.fields.centred((found.up - found.down)[self.fields.members]),
            self.pairs.centred(found.pair_mean[self.pairs.members]),
            power * (entropy - mean_entropy) / self.scale,
        )
        return found.bound.value / self.scale, np.concatenate(gradient)

    def rounding(self, potentials: Potentials) -> float:
        """Bound by how much the shares miss what they should add up to, the rounding of these sums included."""
        missed = 0.0
        for groups, now, then in (
            (self.fields, potentials.h, self.start.h),
            (self.pairs, potentials.J, self.start.J),
        ):
            a, b = now[groups.members], then[groups.members]
            missed += float(np.abs(groups.sums(a) - groups.sums(b)).sum())
            largest = float(groups.count.max(initial=0))
            missed += UNIT_ROUNDOFF * largest * float(np.abs(a).sum() + np.abs(b).sum())
        return 1.01 * missed


def tighten(forest: Forest, start: Potentials, max_iter: int, report: Report) -> Tightened:
    """Lower the bound over powers and shares by L-BFGS, at most ``max_iter`` iterations; never above the start.

    The bound is convex in the shares, and smooth as long as no power is 0.
    """
    from scipy.optimize import minimize

    objective = _Objective(forest, start)
    done = 0

    def count(_: FloatArray) -> None:
        nonlocal done
        done += 1
        report(done / max_iter)
        if clock.is_up():
            raise StopIteration

    x = np.concatenate([np.zeros(objective.sections[-1]), np.log(start.power[objective.fields.members])])
    options = {"maxiter": max_iter, "maxfun": PASSES_PER_ROUND * max_iter, "ftol": LEAST_GAIN, "gtol": LEAST_SLOPE}
    found = minimize(objective, x, jac=True, method="L-BFGS-B", callback=count, options=options)
    potentials = objective.potentials(objective.best[1])
    before, bound = bound_of(forest, start, lambda _: None), bound_of(forest, potentials, lambda _: None)
    if bound.value >= before.value:  # also where a softmax is rounded up and nothing else has changed
        return Tightened(start, before, int(found.nit), bool(found.success), 0.0)
    return Tightened(potentials, bound, int(found.nit), bool(found.success), objective.rounding(potentials))
