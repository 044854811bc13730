"""Populations: states that are carried from independent spins to a model, in groups that are resampled apart.

Between two points of the path Z grows by the mean change of weight over the states of a group, which are resampled as
soon as their weights have become uneven, and swept at every point. The product of these means has Z as its expectation,
for each group by itself, however far from equilibrium its states are, if points and sweeps were chosen beforehand
(Neal; Hukushima and Iba). The states of all groups that descend from one initial state are a family. All states that
count, with their weights, give marginals and samples.

A pilot is a population that is not counted. Its weights choose the points of a path and say what a state costs. A step
is as long as the spread of weights allows. A short path needs points as well: two steps from fields that are nearly
right suffice for the weights, but collective modes would have no time to relax.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support import clock, deadline
from spectralz._support.progress import report
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.parts.outcome import MarginalOutcome
from spectralz.parts.pairs import pairs_of, terms_of
from spectralz.result import Kind
from spectralz.sampling.engines.lanes import one_after_the_other, sums_of_sizes
from spectralz.sampling.spread import spread_runs
from spectralz.sampling.sweeps import RESAMPLE_BELOW, ROUNDINGS, neighbors, operations, parts_of_path, sum_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from spectralz.kernels.terms import Terms
    from spectralz.model import FloatArray, Model
    from spectralz.model.constraints import Constraints
    from spectralz.parts.outcome import Outcome
    from spectralz.sampling.engines.lanes import Engine, Parallel
    from spectralz.sampling.path import Path
    from spectralz.sampling.spread import Crew


# Number of spins of states whose fields are computed together.
SPINS_AT_ONCE = 4_000_000
# Errors are widened by this number over that of the independent families: few of them may have lost important states.
MISSING_FAMILIES = 20.0
# Groups are put into about this many blocks for the errors of means, which are then known to an eighth.
BLOCKS = 32
# The least weight of all groups but one in the jackknife; below, rounding would be magnified.
LEAST_OF_OTHERS = 1e-6
# Fewest groups of a population, and most states of one: more states make more groups, which show their scatter better
# and stay in the cache of a core.
GROUPS, MOST_IN_GROUP = 32, 1024
# Divisors are at least this, and the largest of some logs is at least minus this.
SMALLEST, LARGEST = np.finfo(float).tiny, np.finfo(float).max


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
        return top + math.log(float(np.exp(self.log_z - top).mean())) if top > -math.inf else top

    def selected(self, groups: NDArray[np.int64]) -> Population:
        """Return some of the groups."""
        each = self.share.shape[1]
        rows = (groups[:, None] * each + np.arange(each)).ravel()
        family = np.unique(self.family[rows], return_inverse=True)[1]
        return Population(self.log_z[groups], self.x[rows], self.share[groups], family)

    def under(self, constraints: Constraints) -> Population:
        """Return the states with their weights under constraints: those that break one weigh nothing.

        The log Z of a group in which all of them do is -inf.
        """
        if not constraints:
            return self
        holds = constraints.hold(np.asfortranarray(self.x))  # which is read spin by spin
        share = self.share * holds.reshape(self.share.shape)
        kept = share.sum(axis=1)
        with np.errstate(divide="ignore"):
            log_z = self.log_z + np.log(kept)
        return Population(log_z, self.x, share / np.maximum(kept, SMALLEST)[:, None], self.family)

    def weights(self) -> FloatArray:
        """Return the weight of each state, its group's Z included; they add up to 1, if any state weighs something."""
        top = max(float(self.log_z.max()), -LARGEST)
        weight = (self.share * np.exp(self.log_z - top)[:, None]).ravel()
        return np.asarray(weight / max(float(weight.sum()), SMALLEST))

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
        return np.asarray(weight @ self.x) / max(float(weight.sum()), SMALLEST)

    def mean_of_families(self) -> FloatArray:
        """Return the means of the spins, every family that is left counting as much as any other.

        Where a few families have entered a heavy phase, this is the mean of all others.
        """
        of_family = self.family_weights()
        weight = self.weights() / np.maximum(of_family[self.family], SMALLEST)
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
    # scipy.special.logsumexp takes 20 times as long for a hundred states.
    top = log_weight.max(axis=-1, keepdims=True)
    weight = np.exp(log_weight - top)
    total = weight.sum(axis=-1, keepdims=True)
    return (top + np.log(total / log_weight.shape[-1]))[..., 0], weight / total


def mean_and_shares(log_weight: FloatArray) -> tuple[float, FloatArray]:
    """Return the log of the mean of some weights, and each one's share of their sum."""
    mean, share = means_and_shares(log_weight)
    return float(mean), share


def systematic(weight: FloatArray, u: float | FloatArray, size: int) -> NDArray[np.int64]:
    """Return how many of ``size`` offspring each state of a row has: its share, rounded up or down without bias."""
    reached = np.floor(size * np.cumsum(weight, axis=-1) + u)
    reached[..., -1] = size  # exactly, whatever the rounding of the sum; u is below 1
    return np.diff(np.minimum(reached, size), axis=-1, prepend=0.0).astype(np.int64)


def offspring(share: FloatArray, u: FloatArray) -> NDArray[np.int64]:
    """Return which states follow the states of some groups, by systematic resampling with one number u per group.

    Siblings stay beside each other, so that a whole family gets its share, rounded up or down.
    """
    return np.repeat(np.arange(share.size), systematic(share, u[:, None], share.shape[1]).ravel())


def carry(
    path: Path, points: FloatArray, groups: int, each: int, rng: np.random.Generator, **options: Any
) -> Population:
    """Carry some groups of ``each`` states through given points of a path, from 0 to 1, as :func:`visit` does."""
    return visit(path, points, (len(points) - 1,), (groups, each), rng, **options)[0]


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
    Groups whose effective share of states falls below ``resample_below`` are resampled.
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


# ------------------------------------------------------------------------------- weighted states, means and samples


@dataclass(frozen=True)
class Run:
    """States with weights, of all populations that count together.

    Attributes
    ----------
    x
        The states, one per row.
    weight
        Their weights, which add up to 1.
    family
        The initial state that each one descends from.
    group
        Its group; families that are all of one group stand for themselves.
    """

    x: NDArray[np.int8]
    weight: FloatArray
    family: NDArray[np.int64]
    group: NDArray[np.int64]

    @classmethod
    def of_families(cls, x: NDArray[np.int8], weight: FloatArray, family: NDArray[np.int64]) -> Run:
        """Return states whose families are groups by themselves."""
        return cls(x, weight, family, family)

    @property
    def block(self) -> NDArray[np.int64]:
        """One of 32 blocks of groups, from which errors of means come."""
        return self.group % BLOCKS

    @property
    def size(self) -> int:
        """Number of states."""
        return len(self.x)

    @property
    def families(self) -> float:
        """The effective number of independent states of this population."""
        return 1.0 / float((self.family_weights() ** 2).sum())

    def thinned(self, step: int) -> Run:
        """Return every so many-th state, with the weights that they have among themselves."""
        if step <= 1:
            return self
        weight, some = self.weight[::step], slice(None, None, step)
        total = float(weight.sum())
        share = weight / total if total > 0.0 else np.full(len(weight), 1.0 / len(weight))
        family = np.unique(self.family[some], return_inverse=True)[1]
        return Run(self.x[some], share, family, self.group[some])

    def family_weights(self, values: FloatArray | None = None) -> FloatArray:
        """Return the weight of every family, or the sum of weight times ``values`` over its states."""
        counted = self.weight if values is None else self.weight * values
        return np.asarray(np.bincount(self.family, weights=counted, minlength=self.size), dtype=np.float64)


def sample_of(run: Run, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Draw states from a population by their weights, in random order; as few as possible are drawn twice."""
    places = np.repeat(np.arange(run.size), systematic(run.weight, rng.random(), size))
    return np.asarray(run.x[rng.permutation(places)])


def marginals_of(model: Model, run: Run, outcome: Outcome) -> MarginalOutcome:
    """Return the marginals that a weighted population gives, with their standard errors.

    A spin's mean given all others is tanh of its field. The average of that has the same expectation as that of the
    spin, is less noisy, and keeps its digits where the spin is almost fixed.

    States of one family are not independent, families are. So the families are put into groups, and the error is that
    of the jackknife over groups. States that were left out may have other means; if log Z is not trusted, so may all
    that its error allows for.
    """
    pairs, higher = pairs_of(model), terms_of(model)
    up, down, block = np.zeros(model.n), np.zeros(model.n), run.block

    def blocks() -> Iterator[tuple[FloatArray, float]]:
        for members in (np.flatnonzero(block == number) for number in np.unique(block)):
            ups, downs, products = _sums_over(model, run.x, run.weight, members, pairs, higher)
            up[:], down[:] = up + ups, down + downs
            yield np.concatenate([ups - downs, products]), float(run.weight[members].sum())

    found, variance = jackknife(blocks(), model.n + len(pairs) + higher.number)
    error = np.sqrt(variance) * (1.0 + MISSING_FAMILIES / run.families)
    error = np.hypot(error, _reach(model, pairs, higher) / run.families + ROUNDINGS * UNIT_ROUNDOFF)
    error = np.minimum(error, 1.0 + np.abs(found))  # no mean is farther away
    total = up + down  # 1 but for rounding
    marginals = MarginalOutcome(
        probability=np.stack([down, up], axis=1) / total[:, None],
        mean=(up - down) / total,
        pair_mean=np.clip(found[model.n :], -1.0, 1.0),
        kind=Kind.ESTIMATE,
        outcome=outcome,
        std_error=error[: model.n],
        pair_std_error=error[model.n :],
    )
    left_out = outcome.details.get("left_out", 0.0)
    return marginals.with_rest(left_out if outcome.is_trusted else -math.expm1(-(outcome.std_error or 0.0)))


def _sums_over(
    model: Model,
    states: NDArray[np.int8],
    weight: FloatArray,
    members: NDArray[np.int64],
    pairs: NDArray[np.int64],
    higher: Terms,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return weighted sums over some states, given the rest: P(x_i = +1), P(x_i = -1), products of pairs and terms."""
    from scipy.special import expit

    up, down, products = np.zeros(model.n), np.zeros(model.n), np.zeros(len(pairs) + higher.number)
    together = max(SPINS_AT_ONCE // max(model.n, 1), 1)
    for part in (members[k : k + together] for k in range(0, len(members), together)):
        x, h = states[part], np.empty((len(part), model.n))
        sum_fields(model, x, h)
        if model.constraints:  # which the means given all other spins do not know
            h[:] = math.inf * x
        up += weight[part] @ expit(2.0 * h)
        down += weight[part] @ expit(-2.0 * h)
        if len(pairs):
            products[: len(pairs)] += pair_means(x, np.tanh(h), weight[part], pairs)
        if higher.number:
            products[len(pairs) :] += term_means(x, np.tanh(h), weight[part], higher)
    return up, down, products


def _reach(model: Model, pairs: NDArray[np.int64], higher: Terms) -> FloatArray:
    """Return half of the range of the means of spins, pairs and terms, given all other spins, over all states.

    Families that were not met may hold about one over the number of families of P(x), as beside a pool of states
    (``pool.py``). So an error is at least that share of the reach, even if all states look alike. A field that
    outweighs a spin's couplings makes the reach small. A product of spins changes only if one of them does. Constraints
    give no mean but that of the states themselves.
    """
    if model.constraints:
        return np.ones(model.n + len(pairs) + higher.number)
    from scipy.special import expit

    field, most = np.abs(model.field), 2.0 * model.storage.written_out.row_sums(np.zeros(model.n))[0]
    if model.higher.number:
        most = most + sums_of_sizes(model.higher, model.n)
    spins = expit(2.0 * (most - field)) - expit(-2.0 * (most + field))
    of_terms = np.minimum(np.bincount(higher.term_of_spin(), spins[higher.spin], minlength=higher.number), 1.0)
    return np.concatenate([spins, np.minimum(spins[pairs[:, 0]] + spins[pairs[:, 1]], 1.0), of_terms])


def jackknife(groups: Iterable[tuple[FloatArray, float]], size: int) -> tuple[FloatArray, FloatArray]:
    """Return the means over groups of states, and their variances: each group is left out at a time.

    A group has weighted sums over its states, and their weight. If group g has weight W_g, all of them add up to 1, and
    its mean is v_g, then leaving it out changes the mean m of all by W_g (m - v_g) / (1 - W_g). Sums are about the
    first group's mean, so that small variances keep their digits. A single group has variance 0.
    """
    center, first, square, mixed = np.zeros((4, size))
    of_weights, count = 0.0, 0
    for sums, weight in groups:
        if weight > 0.0:
            center = center if count else sums / weight
            apart, others = sums - weight * center, max(1.0 - weight, LEAST_OF_OTHERS)
            first, square = first + apart, square + (apart / others) ** 2
            mixed = mixed + apart * (weight / others**2)
            of_weights, count = of_weights + (weight / others) ** 2, count + 1
    squares = square - 2.0 * first * mixed + first**2 * of_weights
    return center + first, np.maximum(squares, 0.0) * ((count - 1) / max(count, 1))


def pair_means(
    x: NDArray[np.int8], y: FloatArray | NDArray[np.int8], weight: FloatArray, pairs: NDArray[np.int64]
) -> FloatArray:
    """Return the weighted means of (x_i y_j + x_j y_i) / 2 along the edges; y is x, or its mean given the rest."""
    i, j = pairs.T
    n = x.shape[1]
    if len(pairs) * 8 > n * n:  # dense enough for a matrix product
        products = (x * weight[:, None]).T @ y
        return np.asarray(0.5 * (products[i, j] + products[j, i]))
    means = np.empty(len(pairs))
    for k in range(0, len(pairs), 256):
        a, b = i[k : k + 256], j[k : k + 256]
        means[k : k + 256] = 0.5 * weight @ (x[:, a] * y[:, b] + x[:, b] * y[:, a])
    return means


def term_means(x: NDArray[np.int8], y: FloatArray | NDArray[np.int8], weight: FloatArray, higher: Terms) -> FloatArray:
    """Return the weighted means of the products of terms, in each of which one spin after the other is that of y.

    As in :func:`pair_means`, y is x, or its mean given the rest, and the mean is over the spins of a term.
    """
    means, start = np.zeros(higher.number), higher.start[:-1]
    for part in higher.parts_of(len(x)):
        signs = np.repeat(higher.products(x[part]), higher.sizes, axis=1)
        means += np.add.reduceat(weight[part] @ (signs * x[part][:, higher.spin] * y[part][:, higher.spin]), start)
    return means / higher.sizes


# --------------------------------------------------------------------------------------------------------------- pilots


# Relative variance of the weights of a step, and the fewest points of a path.
VARIANCE, FEWEST_POINTS = 0.03, 24
# In equilibrium log-weights vary by at most about this times the root of the number of spins over the whole path.
# States stuck at huge and different energies vary by more, and would never let a pilot end.
MOST_DEVIATION = 3.0
# Once the time is up, steps grow by this factor.
HURRY = 2.0
# The length of a step is right once the logarithm of the variance is this close, and found in at most so many tries.
CLOSE, MOST_TRIES, TINY = 1e-6, 60, 1e-300


@dataclass(frozen=True, eq=False)
class Pilot:
    """A pilot, and what it says of the path.

    Attributes
    ----------
    path, points, sweeps
        The path, its points, and the sweeps at each of them.
    population
        Its states, one group.
    seconds
        The time of a state on the whole path, all threads at work.
    hurried
        Whether the time was up before it ended.
    """

    path: Path
    points: FloatArray
    sweeps: int
    population: Population
    seconds: float
    hurried: bool = False

    @property
    def families_per_state(self) -> float:
        """Effective number of families per state."""
        return self.population.families() / self.population.size


def pilot(
    path: Path,
    size: int,
    rng: np.random.Generator,
    parallel: Parallel = one_after_the_other,
    *,
    sweeps: int = 2,
    variance: float = VARIANCE,
) -> Pilot:
    """Carry a group of states to the model in steps whose weights have the relative variance ``variance``."""
    engine = path.engine
    is_curved = path.sides is not None  # weights do not change by energies times steps
    chains = engine.start(size, rng, parallel)
    log_z, family, points = engine.log_z_of_base, np.arange(size), [0.0]
    collected, step, one = np.zeros((1, size)), 1.0 / FEWEST_POINTS, np.ones(1)
    began, factor, hurried = clock.now(), 1.0, False
    while points[-1] < 1.0:
        here = points[-1]
        clock.charge(size * sweeps * engine.operations)
        _, on = chains.sweep(here * one, here * one, min(here + step, 1.0) * one, sweeps if here else 1)
        slope = on[0] / (min(here + step, 1.0) - here)
        if deadline.is_past():
            hurried, factor = True, factor * HURRY
        _, share = means_and_shares(collected)
        step = min(longest_step(slope, share[0], variance), 1.0 / FEWEST_POINTS)
        step = min(max(step, math.sqrt(variance / max(engine.n, 1)) / MOST_DEVIATION * here) * factor, 1.0 - here)
        there = here + step if step < 1.0 - here else 1.0
        if is_curved:
            _, on = chains.sweep(here * one, here * one, there * one, 0)
        collected += on if is_curved else slope[None] * (there - here)
        mean, share = means_and_shares(collected)
        if 1.0 / float((share**2).sum()) < RESAMPLE_BELOW * size:
            log_z += float(mean[0])
            places = offspring(share, rng.random(1))
            chains.take(places)
            family, collected = family[places], np.zeros((1, size))
        points.append(there)
        report("choosing temperatures", there)
    clock.charge(size * sweeps * engine.operations)
    chains.sweep(one, one, one, sweeps)
    seconds = max(clock.now() - began, 1e-9) / size
    mean, share = means_and_shares(collected)
    population = Population(log_z + mean, chains.states(), share, family)
    return Pilot(path, np.array(points), sweeps, population, seconds, hurried)


def longest_step(slope: FloatArray, share: FloatArray, variance: float) -> float:
    """Return the longest step of up to 1 on which weights exp(step * slope) have a relative variance up to a limit."""
    slope, share = slope[share > 0.0], share[share > 0.0]
    above = slope - slope.max()

    def excess(log_step: float) -> float:
        """Return by how much the log of the variance exceeds that of the limit."""
        weight = np.exp(math.exp(log_step) * above)
        mean = float(share @ weight)
        return math.log(max(float(share @ (weight - mean) ** 2) / (variance * mean**2), TINY))

    low, high = -math.log(max(-float(above.min()), 1.0)) - 10.0, 0.0  # in logs: steps for huge energies are tiny
    here = high
    for _ in range(MOST_TRIES):
        more = excess(here)
        if abs(more) < CLOSE or (here == 0.0 and more < 0.0):
            break
        low, high = (low, here) if more > 0.0 else (here, high)
        here -= 0.5 * more  # the variance grows as the square of a short step
        here = here if low < here < high else 0.5 * (low + high)
    return math.exp(here)
