"""Beyond the paper: low-rank models by exact quadrature with a proven enclosure, their marginals and samples."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectralz._support.options import count, option, positive
from spectralz._support.progress import report
from spectralz.errors import TooLargeError
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.methods.base import MarginalOutcome, Method, Outcome
from spectralz.methods.low_rank import LowRank
from spectralz.parts.decomposition import Decomposition, decompose
from spectralz.parts.quantized import EXACT_WIDTH, lattice_steps, predicted_cells, sample_decomposed
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.low_rank.positive_directions import Integrand, Nodes
    from spectralz.model import FloatArray, Ising

__all__ = ["Quadrature"]

ALL_DIGITS_LOST = 1.0  # the width of log Z beyond which the quadrature has nothing to say
# What the sums over nodes may be off beside the enclosure of their terms: trapezoidal rule, dropped nodes, summation.
SUM_ERROR = 1e-14
CELLS_FOR_HANDOVER = 4_000_000
# Progress is reported, and an interrupt noticed, after about this many factors of the integrand (a tenth of a second).
FACTORS_PER_REPORT = 1 << 24
SECONDS_PER_FACTOR = 5e-9
LARGEST_PAIR_TABLE = 5_000  # spins whose pair means are kept as one matrix


@dataclass(frozen=True, kw_only=True)
class Quadrature(Method):
    """Log Z, marginals and samples of a low-rank model, exact to rounding, by Gaussian integrals.

    By Hubbard-Stratonovich, Z is an r-dimensional Gaussian integral of a product over the spins, and the trapezoidal
    rule integrates it with an error that can be written down and is beyond double precision. Time is n times the number
    of nodes, some 4 |u|_1 + 25 a direction, of which only those that matter are visited. ``lower`` and ``upper``
    enclose log Z with rounding. Where negative eigenvalues make all digits cancel, the dynamic programme of
    ``low_rank`` takes over, and ``status`` says so.

    Parameters
    ----------
    max_rank
        Largest rank to look for when A + D is to be found.
    max_nodes
        Most nodes of the whole grid; refused before any work is done.
    tol
        The most that the low-rank form may leave over in log Z; widens the interval.

    Raises
    ------
    ModelError
        If no diagonal gives the coupling a low rank.
    TooLargeError
        If the grid would exceed ``max_nodes``.

    See Also
    --------
    LowRank : Algorithm 1 of the paper.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.rank_one(n=1000, strength=0.1, seed=0)
    >>> result = sz.log_z(model, "quadrature")
    >>> result.kind, result.upper - result.lower < 1e-9 * result.log_z
    (<Kind.EXACT: 'exact'>, True)
    """

    max_rank: int = option(3, count(least=1))
    max_nodes: int = option(20_000_000, count(least=1))
    tol: float = option(1e-6, positive())

    name: ClassVar[str] = "quadrature"
    gives_marginals: ClassVar[bool] = True
    gives_samples: ClassVar[bool] = True

    def _solve(self, model: Ising) -> Outcome:
        return self.solve_decomposed(model, decompose(model, self.max_rank, self.tol))

    def solve_decomposed(self, model: Ising, form: Decomposition) -> Outcome:
        """Integrate a coupling that has been decomposed."""
        return self._outcome(model, form, self._nodes(model, form))

    def _nodes(self, model: Ising, form: Decomposition) -> Nodes:
        from spectralz.kernels.low_rank.negative_directions import negative_node_count, sum_negative
        from spectralz.kernels.low_rank.positive_directions import positive_node_count, positive_nodes, sum_positive

        positive, negative = _split(form)
        count = positive_node_count(positive) * negative_node_count(negative)
        if count > self.max_nodes:
            raise TooLargeError(
                f"quadrature needs up to {count:.3g} nodes at rank {form.rank}; max_nodes is {self.max_nodes:.3g}. "
                f"Raise it if {count * model.n * SECONDS_PER_FACTOR:.2g} s are acceptable"
            )
        theta = np.array(model.field)

        def integrand(g: FloatArray) -> tuple[FloatArray, FloatArray]:
            if len(negative):
                return sum_negative(theta, positive, negative, g)
            exact = sum_positive(theta, positive, g)
            return exact, exact

        at_a_time = max(1, FACTORS_PER_REPORT // (max(model.n, 1) * negative_node_count(negative)))
        return positive_nodes(positive, _watched(integrand, at_a_time))

    def _outcome(self, model: Ising, form: Decomposition, nodes: Nodes) -> Outcome:
        from spectralz.kernels.sums import log_sum

        constant = form.constant(model)
        upper, lower = log_sum(nodes.log_term), log_sum(nodes.log_term_lower)
        rounding = _rounding(model, form, upper) + SUM_ERROR + form.residual
        details: dict[str, Any] = {**form.details(), "nodes": len(nodes.g), "left_after_saddle": None}
        if _split(form)[1].size:
            details["left_after_saddle"] = math.exp(_largest_left(model, form, nodes))
        if lower < upper - ALL_DIGITS_LOST:
            return self._hand_over(model, form, upper + rounding + constant, details)
        log_z = (upper + lower) / 2.0 + constant
        low, high = lower - rounding + constant, upper + rounding + constant
        exact = high - low <= 2.0 * EXACT_WIDTH * max(1.0, abs(log_z))
        sentence = f"{len(nodes.g)} nodes; errors proven below {(high - low) / 2.0:.1e}"
        if not exact:
            sentence += ": cancellation between negative directions has cost digits"
        return Outcome(
            log_z=log_z,
            kind=Kind.EXACT if exact else Kind.ESTIMATE,
            status=Status(sentence),
            lower=low,
            upper=high,
            trusted=True,  # the interval is proven, however wide
            details=details,
        )

    def _hand_over(self, model: Ising, form: Decomposition, upper: float, details: dict[str, Any]) -> Outcome:
        """Give the model to the dynamic programme, on a lattice of its own directions if there is one."""
        from spectralz.kernels.low_rank.negative_directions import saddle_point

        steps = lattice_steps(form.directions)
        if steps is None or predicted_cells(form.directions, steps) > CELLS_FOR_HANDOVER:
            steps = np.abs(form.directions).sum(axis=1) / (0.4 * CELLS_FOR_HANDOVER ** (1.0 / form.rank))
            while predicted_cells(form.directions, steps) > CELLS_FOR_HANDOVER:
                steps *= 1.1
                if float(steps.max()) > 1e6 * float(np.abs(form.directions).sum()):
                    raise TooLargeError(
                        "digits were lost to cancellation, and the dynamic programme's grid is too large"
                    )
        programme = LowRank(step=tuple(steps.tolist()), max_cells=CELLS_FOR_HANDOVER)
        found = programme.solve_decomposed(model, form)
        assert found.upper is not None
        positive, negative = _split(form)
        if not len(positive):
            _, saddle = saddle_point(np.asarray(model.field), negative)
            details["left_after_saddle"] = math.exp(min(found.log_z - form.constant(model) - saddle, 0.0))
        return replace(
            found,
            log_z=min(found.log_z, upper),
            status=Status(f"cancellation left no digits to the quadrature, so low_rank took over: {found.status}"),
            upper=min(found.upper, upper),
            details={**found.details, **details},
        )

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        return self.solve_marginals_decomposed(model, decompose(model, self.max_rank, self.tol))

    def solve_marginals_decomposed(self, model: Ising, form: Decomposition) -> MarginalOutcome:
        """Return the marginals of a coupling that has been decomposed."""
        from spectralz.kernels.sums import log_sum

        nodes = self._nodes(model, form)
        total = log_sum(nodes.log_term)
        if log_sum(nodes.log_term_lower) < total - ALL_DIGITS_LOST:
            raise TooLargeError("cancellation left no digits for marginals; draw samples with method low_rank instead")
        outcome = self._outcome(model, form, nodes)
        positive, negative = _split(form)
        weight = np.exp(nodes.log_term - total)
        used = weight > 1e-18 * weight.max()
        fields = np.asarray(model.field) + nodes.g[used] @ positive
        edges, _ = model.edges()
        if len(negative):
            probability, mean, pairs = _moments_with_negative(fields, negative, weight[used], edges)
        else:
            probability, mean, pairs = _moments(fields, weight[used], edges)
        return MarginalOutcome(
            probability=np.clip(probability, 0.0, 1.0),
            mean=np.clip(mean, -1.0, 1.0),
            pair_mean=np.clip(pairs, -1.0, 1.0),
            kind=outcome.kind,
            outcome=outcome,
        )

    def _sample(self, model: Ising, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        form = decompose(model, self.max_rank, self.tol)
        positive, negative = _split(form)
        if len(negative):
            return sample_decomposed(model, form, size, rng, LowRank().max_cells)
        nodes = self._nodes(model, form)
        weight = np.exp(nodes.log_term - nodes.log_term.max())
        chosen = rng.choice(len(weight), size=size, p=weight / weight.sum())
        x = np.empty((size, model.n), dtype=np.int8)
        for begin in range(0, size, 1024):  # given a node, spins are independent
            rows = slice(begin, begin + 1024)
            z = np.asarray(model.field) + nodes.g[chosen[rows]] @ positive
            x[rows] = np.where(rng.random(z.shape) < 0.5 * (1.0 + np.tanh(z)), 1, -1)
        return x


def _watched(integrand: Integrand, at_a_time: int) -> Integrand:
    """Evaluate an integrand a few points at a time, reporting progress in between."""

    def run(g: FloatArray) -> tuple[FloatArray, FloatArray]:
        parts = []
        for begin in range(0, len(g), at_a_time):
            parts.append(integrand(g[begin : begin + at_a_time]))
            report("visiting nodes", min((begin + at_a_time) / len(g), 1.0))
        if not parts:
            return np.empty(0), np.empty(0)
        return np.concatenate([upper for upper, _ in parts]), np.concatenate([lower for _, lower in parts])

    return run


def _split(form: Decomposition) -> tuple[FloatArray, FloatArray]:
    """Return a_j = sqrt(2) u_j of the positive and of the negative directions."""
    a = math.sqrt(2.0) * form.directions
    return a[form.values > 0.0], a[form.values < 0.0]


def _rounding(model: Ising, form: Decomposition, log_sum: float) -> float:
    """Bound the rounding of the terms: sums of n numbers, each the log 2 cosh of an inner product.

    An inner product of r + 1 numbers at a node within |g_j| <= |a_j|_1 + 8.5 is off by r + 2 units of their sizes;
    chunks of 512 are added in eight lanes, 72 additions deep.
    """
    a = math.sqrt(2.0) * np.abs(form.directions)
    norms = a.sum(axis=1)
    angles = float(np.abs(model.field).sum() + ((norms + 8.5) * norms).sum())
    sums = 80.0 * (abs(log_sum) + model.n)
    return UNIT_ROUNDOFF * float((form.rank + 4) * angles + sums + 4.0 * abs(form.constant(model)))


def _largest_left(model: Ising, form: Decomposition, nodes: Nodes) -> float:
    """Return log of what the negative directions' integral leaves at the node that matters most."""
    from spectralz.kernels.low_rank.negative_directions import saddle_point
    from spectralz.kernels.low_rank.positive_directions import LOG_SQRT_2PI, STEP

    positive, negative = _split(form)
    k = int(np.argmax(nodes.log_term))
    _, value = saddle_point(np.asarray(model.field) + nodes.g[k] @ positive, negative)
    weight = len(positive) * (math.log(STEP) - LOG_SQRT_2PI) - 0.5 * float(nodes.g[k] @ nodes.g[k])
    return min(float(nodes.log_term[k] - weight - value), 0.0)


def _moments(
    fields: FloatArray, weight: FloatArray, edges: NDArray[np.int64]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return probabilities, means and pair means of a mixture of independent spins in the given fields (nodes x n)."""
    from scipy.special import expit

    weight = weight / weight.sum()
    tanh = np.tanh(fields)
    both = np.stack([weight @ expit(-2.0 * fields), weight @ expit(2.0 * fields)], axis=1)
    pairs = _pair_means(tanh, weight, edges)
    return both, weight @ tanh, pairs


def _pair_means(tanh: FloatArray, weight: FloatArray, edges: NDArray[np.int64]) -> FloatArray:
    n = tanh.shape[1]
    if n <= LARGEST_PAIR_TABLE and len(edges) > n:
        whole = (weight[:, None] * tanh).T @ tanh
        return np.asarray(whole[edges[:, 0], edges[:, 1]])
    out = np.zeros(len(edges))
    for w, row in zip(weight.tolist(), tanh, strict=True):
        out += w * row[edges[:, 0]] * row[edges[:, 1]]
    return out


def _moments_with_negative(
    fields: FloatArray, negative: FloatArray, weight: FloatArray, edges: NDArray[np.int64]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the same where negative directions are integrated at every node."""
    from spectralz.kernels.low_rank.negative_directions import negative_steps, saddle_point
    from spectralz.kernels.low_rank.negative_moments import inner_moments

    n = fields.shape[1]
    steps, halves = negative_steps(negative)
    mean, pairs = np.zeros(n), np.zeros((n, n))
    weight = weight / weight.sum()
    for w, field in zip(weight.tolist(), fields, strict=True):
        t, _ = saddle_point(field, negative)
        total, first, second = inner_moments(field, negative, t, steps, halves, True)
        mean += w * first / total
        pairs += w * second / total
    both = np.stack([(1.0 - mean) / 2.0, (1.0 + mean) / 2.0], axis=1)
    return both, mean, pairs[edges[:, 0], edges[:, 1]]
