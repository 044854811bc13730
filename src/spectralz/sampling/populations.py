"""Populations with their weights, and the marginals and samples that they give."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.parts.outcome import MarginalOutcome
from spectralz.parts.pairs import pairs_of, terms_of
from spectralz.result import Kind
from spectralz.sampling.engines.lanes import sums_of_sizes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.terms import Terms
    from spectralz.model import FloatArray, Model
    from spectralz.parts.outcome import Outcome

# The largest deviation whose square does not overflow.
LARGEST_DEVIATION = 1e150
# Log-weights that differ by so many roundings of the largest one do not differ; nor do means, whose errors include it.
ROUNDINGS = 16.0
# Number of spins of states whose fields are computed together.
SPINS_AT_ONCE = 4_000_000
# Errors are widened by this number over that of the independent families: few of them may have lost important states.
MISSING_FAMILIES = 20.0
# Families are put into about this many groups for the errors of means, which are then known to an eighth.
GROUPS = 32
# The least weight of all groups but one in the jackknife; below, rounding would be magnified.
LEAST_OF_OTHERS = 1e-6


@dataclass(frozen=True)
class Run:
    """A population at the end of its path.

    Attributes
    ----------
    log_z
        Logarithm of an unbiased estimate of Z, without offset and trace.
    x
        The states, one per row.
    weight
        Their weights, which add up to 1.
    family
        The initial state that each one descends from.
    variance
        Relative variance of the estimate of Z, from the weights of the families: sum_k (W_k - 1/R)^2.
    """

    log_z: float
    x: NDArray[np.int8]
    weight: FloatArray
    family: NDArray[np.int64]
    variance: float

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
        weight = self.weight[::step]
        total = float(weight.sum())
        share = weight / total if total > 0.0 else np.full(len(weight), 1.0 / len(weight))
        family = np.unique(self.family[::step], return_inverse=True)[1]
        return replace(self, x=self.x[::step], weight=share, family=family)

    def family_weights(self, values: FloatArray | None = None) -> FloatArray:
        """Return the weight of every family, or the sum of weight times ``values`` over its states."""
        counted = self.weight if values is None else self.weight * values
        return np.asarray(np.bincount(self.family, weights=counted, minlength=self.size), dtype=np.float64)


def mean_and_shares(log_weight: FloatArray) -> tuple[float, FloatArray]:
    """Return the log of the mean weight, and each weight's share of the sum."""
    # scipy.special.logsumexp takes 20 times as long for a hundred states.
    top = float(log_weight.max())
    weight = np.exp(log_weight - top)
    total = float(weight.sum())
    return top + math.log(total / len(weight)), weight / total


def log_means(log_weights: FloatArray) -> FloatArray:
    """Return the logs of the mean weights of each row."""
    top = log_weights.max(axis=1)
    return np.asarray(top + np.log(np.exp(log_weights - top[:, None]).mean(axis=1)))


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


def systematic(weight: FloatArray, u: float, size: int) -> NDArray[np.int64]:
    """Return how many of ``size`` offspring each state has: its share, rounded up or down without bias."""
    reached = np.floor(size * np.cumsum(weight) + u)
    reached[-1] = size  # exactly, whatever the rounding of the sum; u is below 1
    return np.diff(np.minimum(reached, size), prepend=0.0).astype(np.int64)


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
    groups = Scatter.of_none(model.n + len(pairs) + higher.number)
    up, down, group = np.zeros(model.n), np.zeros(model.n), run.family % GROUPS
    for members in (np.flatnonzero(group == number) for number in np.unique(group)):
        ups, downs, products = _sums_over(model, run.x, run.weight, members, pairs, higher)
        up, down = up + ups, down + downs
        groups = groups.with_group(np.concatenate([ups - downs, products]), float(run.weight[members].sum()))
    error = np.sqrt(groups.variance) * (1.0 + MISSING_FAMILIES / run.families)
    error = np.hypot(error, _reach(model, pairs, higher) / run.families + ROUNDINGS * UNIT_ROUNDOFF)
    error = np.minimum(error, 1.0 + np.abs(groups.mean))  # no mean is farther away
    total = up + down  # 1 but for rounding
    marginals = MarginalOutcome(
        probability=np.stack([down, up], axis=1) / total[:, None],
        mean=(up - down) / total,
        pair_mean=np.clip(groups.mean[model.n :], -1.0, 1.0),
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

    from spectralz.kernels.sampling.heat_bath import refresh

    couplings = model.storage.for_kernels()
    up, down, products = np.zeros(model.n), np.zeros(model.n), np.zeros(len(pairs) + higher.number)
    together = max(SPINS_AT_ONCE // max(model.n, 1), 1)
    for part in (members[k : k + together] for k in range(0, len(members), together)):
        x, h = states[part], np.empty((len(part), model.n))
        refresh(x, h, model.field, couplings)
        if model.higher.number:
            from spectralz.kernels.sampling.term_sweeps import add_fields

            add_fields(x, h, model.terms_by_spin)
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
    outweighs a spin's couplings makes the reach small. A product of spins changes only if one of them does.
    """
    from scipy.special import expit

    field, most = np.abs(model.field), 2.0 * model.storage.written_out.row_sums(np.zeros(model.n))[0]
    if model.higher.number:
        most = most + sums_of_sizes(model.higher, model.n)
    spins = expit(2.0 * (most - field)) - expit(-2.0 * (most + field))
    of_terms = np.minimum(np.bincount(higher.term_of_spin(), spins[higher.spin], minlength=higher.number), 1.0)
    return np.concatenate([spins, np.minimum(spins[pairs[:, 0]] + spins[pairs[:, 1]], 1.0), of_terms])


@dataclass(frozen=True)
class Scatter:
    """Sums over groups of states, from which the jackknife gives the variance of weighted means.

    If group g has weight W_g, all of them add up to 1, and its mean is v_g, then leaving it out changes the mean m of
    all by W_g (m - v_g) / (1 - W_g). Sums are about the first group's mean, so that small variances keep their digits.

    Attributes
    ----------
    center
        The mean of the first group.
    first, square
        Sums of d_g and d_g^2 / (1 - W_g)^2, where d_g = W_g (v_g - center).
    mixed, weight
        Sums of d_g W_g / (1 - W_g)^2 and W_g^2 / (1 - W_g)^2.
    count
        Number of groups.
    """

    center: FloatArray
    first: FloatArray
    square: FloatArray
    mixed: FloatArray
    weight: float = 0.0
    count: int = 0

    @classmethod
    def of_none(cls, size: int) -> Scatter:
        """Return the sums over no group, of so many values."""
        return cls(*np.zeros((4, size)))

    def with_group(self, sums: FloatArray, weight: float) -> Scatter:
        """Return the sums with one more group: weighted sums over its states, and their weight."""
        if not weight > 0.0:
            return self
        center = self.center if self.count else sums / weight
        apart = sums - weight * center
        others = max(1.0 - weight, LEAST_OF_OTHERS)
        return Scatter(
            center,
            self.first + apart,
            self.square + (apart / others) ** 2,
            self.mixed + apart * (weight / others**2),
            self.weight + (weight / others) ** 2,
            self.count + 1,
        )

    @property
    def mean(self) -> FloatArray:
        """The means over all groups."""
        return self.center + self.first

    @property
    def variance(self) -> FloatArray:
        """The variances of the means; 0 from a single group."""
        squares = self.square - 2.0 * self.first * self.mixed + self.first**2 * self.weight
        return np.maximum(squares, 0.0) * ((self.count - 1) / max(self.count, 1))


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
