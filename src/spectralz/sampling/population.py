"""Populations: states that are carried from independent spins to a model, in groups that are resampled apart.

Between two points of the path Z grows by the mean change of weight over the states of a group, which are resampled as
soon as their weights have become uneven, and swept at every point. The product of these means has Z as its expectation,
for each group by itself, however far from equilibrium its states are, if points and sweeps were chosen beforehand
(Neal; Hukushima and Iba). The states of all groups that descend from one initial state are a family.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock
from spectralz.sampling.engines.protocol import one_after_the_other
from spectralz.sampling.spread import spread_runs
from spectralz.sampling.sweeps import RESAMPLE_BELOW, neighbors, operations, parts_of_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from spectralz.model import FloatArray
    from spectralz.sampling.engines.protocol import Engine, Parallel
    from spectralz.sampling.path import Path
    from spectralz.sampling.spread import Crew

# Fewest groups of a population, and most states of one: more states make more groups, which show their scatter better
# and stay in the cache of a core.
GROUPS, MOST_IN_GROUP = 32, 1024


@dataclass(frozen=True, eq=False)
class Population:
    """States at the end of a path.

    Attributes
    ----------
    log_z
        Logs of the groups' unbiased estimates of Z, without the model's constant.
    x
        The states, one per row, group by group.
    share
        The states' shares of the weight of their group, (groups, states of a group).
    family
        The initial state that each descends from; groups have none in common.
    """

    log_z: FloatArray
    x: NDArray[np.int8]
    share: FloatArray
    family: NDArray[np.int64]

    @property
    def size(self) -> int:
        """Number of states."""
        return len(self.x)

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len(self.log_z)

    @property
    def mean_log_z(self) -> float:
        """The log of the mean of the groups' estimates."""
        top = float(self.log_z.max())
        return top + math.log(float(np.exp(self.log_z - top).mean()))

    def selected(self, groups: NDArray[np.int64]) -> Population:
        """Return some of the groups."""
        each = self.share.shape[1]
        rows = (groups[:, None] * each + np.arange(each)).ravel()
        family = np.unique(self.family[rows], return_inverse=True)[1]
        return Population(self.log_z[groups], self.x[rows], self.share[groups], family)

    def weights(self) -> FloatArray:
        """Return the weight of each state, its group's Z included; they add up to 1."""
        weight = (self.share * np.exp(self.log_z - self.log_z.max())[:, None]).ravel()
        return np.asarray(weight / weight.sum())

    def families(self, counted: NDArray[np.bool_] | None = None) -> float:
        """Return the effective number of families, of all states or of those counted."""
        return effective(self.family_weights(counted))

    def family_weights(self, counted: NDArray[np.bool_] | None = None) -> FloatArray:
        """Return the weight of each family, by all its states or by those counted."""
        weight = self.weights()
        weight = weight if counted is None else weight * counted
        return np.asarray(np.bincount(self.family, weights=weight, minlength=self.size), dtype=np.float64)

    def mean(self, counted: NDArray[np.bool_] | None = None) -> FloatArray:
        """Return the means of the spins, over all states or over those counted."""
        weight = self.weights()
        weight = weight if counted is None else weight * counted
        return np.asarray(weight @ self.x) / max(float(weight.sum()), np.finfo(float).tiny)

    def mean_of_families(self) -> FloatArray:
        """Return the means of the spins, every family that is left counting as much as any other.

        Where a few families have entered a heavy phase, this is the mean of all others.
        """
        of_family = self.family_weights()
        weight = self.weights() / np.maximum(of_family[self.family], np.finfo(float).tiny)
        return np.asarray(weight @ self.x) / float(weight.sum())


def effective(weight: FloatArray) -> float:
    """Return the effective number of some weights, (sum)^2 / sum of squares."""
    squares = float(weight @ weight)
    return float(weight.sum()) ** 2 / squares if squares > 0.0 else 0.0


def joined(parts: Sequence[Population]) -> Population:
    """Return the groups of several populations along the same path as one population."""
    begins = np.cumsum([0, *(part.size for part in parts)])
    return Population(
        np.concatenate([part.log_z for part in parts]),
        np.concatenate([part.x for part in parts]),
        np.concatenate([part.share for part in parts]),
        np.concatenate([part.family + begin for part, begin in zip(parts, begins, strict=False)]),
    )


def means_and_shares(log_weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the log of the mean weight of each row, and each weight's share of its row."""
    top = log_weight.max(axis=1, keepdims=True)
    weight = np.exp(log_weight - top)
    total = weight.sum(axis=1, keepdims=True)
    return (top + np.log(total / log_weight.shape[1]))[:, 0], weight / total


def offspring(share: FloatArray, u: FloatArray) -> NDArray[np.int64]:
    """Return which states follow the states of some groups, by systematic resampling with one number u per group.

    Siblings stay beside each other, so that a whole family gets its share, rounded up or down.
    """
    groups, each = share.shape
    reached = np.floor(each * np.cumsum(share, axis=1) + u[:, None])
    reached[:, -1] = each  # exactly, whatever the rounding of the sum; u is below 1
    counts = np.diff(np.minimum(reached, each), axis=1, prepend=0.0).astype(np.int64)
    return np.repeat(np.arange(groups * each), counts.ravel())


def carry(
    path: Path,
    points: FloatArray,
    groups: int,
    each: int,
    rng: np.random.Generator,
    *,
    sweeps: int = 1,
    resample_below: float = RESAMPLE_BELOW,
    parallel: Parallel = one_after_the_other,
    tell: Callable[[float], None] = lambda _: None,
) -> Population:
    """Carry some groups of ``each`` states through given points of a path, from 0 to 1.

    Groups whose effective share of states falls below ``resample_below`` are resampled.
    """
    return visit(
        path,
        points,
        (len(points) - 1,),
        (groups, each),
        rng,
        sweeps=sweeps,
        resample_below=resample_below,
        parallel=parallel,
        tell=tell,
    )[0]


def visit(
    path: Path,
    points: FloatArray,
    stops: Sequence[int],
    start: tuple[int, int] | Population,
    rng: np.random.Generator,
    *,
    sweeps: int = 1,
    resample_below: float = RESAMPLE_BELOW,
    parallel: Parallel = one_after_the_other,
    tell: Callable[[float], None] = lambda _: None,
) -> list[Population]:
    """Carry states through given points of a path, and return them as they are at some of these, by their numbers.

    They begin as groups of so many states drawn from the base, or as a population that is at the first point already.
    """
    engine = path.engine
    if isinstance(start, Population):
        groups, each = start.share.shape
        chains = engine.start_from(start.x, rng, parallel)
        log_z, family = start.log_z.copy(), start.family
        with np.errstate(divide="ignore"):
            log_weight = np.log(each * start.share)
    else:
        groups, each = start
        chains = engine.start(groups * each, rng, parallel)
        log_z, family = np.full(groups, engine.log_z_of_base, float), np.arange(groups * each)
        log_weight = np.zeros((groups, each))
    clock.charge(operations(engine, len(points), groups * each, sweeps))
    visited = []
    before, after = neighbors(points)
    for part in parts_of_path(engine, len(points), groups * each, sweeps, stops):
        _, on = chains.sweep(before[part], points[part], after[part], sweeps)
        if part.stop - 1 in stops:  # the states are at the last point, their weights already at the next
            mean, share = means_and_shares(log_weight + on[:-1].sum(axis=0).reshape(groups, each))
            visited.append(Population(log_z + mean, chains.states(), share, family))
        log_weight = log_weight + on.sum(axis=0).reshape(groups, each)
        tell(part.stop / len(points))
        mean, share = means_and_shares(log_weight)
        uneven = 1.0 / (share**2).sum(axis=1) < resample_below * each
        if part.stop < len(points) and uneven.any():
            share[~uneven] = 1.0 / each
            places = offspring(share, rng.random(len(share)))
            chains.take(places)
            family = family[places]
            log_z[uneven] += mean[uneven]
            log_weight[uneven] = 0.0
    return visited


@dataclass(frozen=True)
class Layout:
    """How a population is divided: ``parts`` that are carried one by one or side by side, each of some groups."""

    parts: int
    groups: int
    each: int

    @property
    def size(self) -> int:
        """Number of states."""
        return self.parts * self.groups * self.each


def layout_of(engine: Engine, size: float, groups: int | None = None, fewest: int = GROUPS) -> Layout:
    """Divide about so many states into ``groups``, or into at least ``fewest`` of them.

    A part has as many states as are swept together, or more, and at least one group. This does not depend on threads
    and workers, so neither does the answer.
    """
    together = engine.together
    fewest = groups or fewest
    each = int(max(size // fewest, 2))
    if not engine.takes_threads:  # a device sweeps everything together
        return Layout(1, fewest, each if groups else max(each, together // fewest))
    if groups:
        side_by_side = max(together // each, 1)
        return Layout(-(-groups // side_by_side), min(side_by_side, groups), each)
    if each >= together:
        each = min(each // together, max(MOST_IN_GROUP // together, 1)) * together
        return Layout(max(int(size // each), fewest), 1, each)
    each = 2 ** int(math.log2(each))
    return Layout(max(int(size // together), 1), max(together // each, 1), each)


def populations(
    crew: Crew,
    path: Path,
    points: FloatArray,
    layout: Layout,
    rng: np.random.Generator,
    *,
    sweeps: int = 1,
    tell: Callable[[float], None] = lambda _: None,
) -> Iterator[Population]:
    """Yield the parts of a population; ``tell`` is called with the share of all that is done."""
    work = partial(carry, path, points, layout.groups, layout.each, sweeps=sweeps)
    cost = operations(path.engine, len(points), layout.groups * layout.each, sweeps)
    yield from spread_runs(crew, path, work, layout.groups * layout.each, layout.parts, cost, rng, tell)
