"""Beyond the paper: low-rank models by exact quadrature with a proven enclosure, their marginals and samples."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectralz._support.options import count, option, positive
from spectralz._support.progress import report, reporter_of
from spectralz.errors import ModelError, TooLargeError
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.methods.base import MarginalOutcome, Method, Outcome
from spectralz.methods.low_rank import LowRank
from spectralz.parts.low_rank.decomposition import Decomposition, decompose
from spectralz.parts.low_rank.quantized import lattice_steps, predicted_cells, sample_decomposed, warn_of_rounding
from spectralz.parts.outcome import EXACT_WIDTH, LARGEST_TRUSTED_ROUNDING, with_kind_of_means
from spectralz.parts.pairs import pairs_of
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.low_rank.positive_directions import Nodes
    from spectralz.model import FloatArray, Ising

ALL_DIGITS_LOST = 1.0  # if the interval of log Z is wider than this, the quadrature is of no use
CELLS_FOR_HANDOVER = 4_000_000
# Progress is reported, and an interrupt noticed, after about this many factors of the integrand (a tenth of a second).
FACTORS_PER_REPORT = 1 << 24
SECONDS_PER_FACTOR = 5e-9
LARGEST_PAIR_TABLE = 5_000  # spins whose pair means are kept as one matrix


@dataclass(frozen=True, kw_only=True)
class Quadrature(Method):
    r"""Compute log Z, marginals and samples of a low-rank model, exact to rounding, by Gaussian integrals.

    A diagonal D is found such that A + D has few eigenvalues lambda_j other than 0. By the Hubbard-Stratonovich
    transformation, Z is then a Gaussian integral of a product over the spins: apart from the offset,

    .. math::

       Z = e^{-\operatorname{Tr} D} E_g \prod_i 2 \cosh\Bigl(\theta_i + \sum_j \sqrt{2 \lambda_j} \, v_{ji} g_j\Bigr),

    with standard normal numbers g_j. The error of the trapezoidal rule for it is known and is below double precision.
    Time is n times the number of nodes; there are about 4 |u_j|_1 + 25 nodes in the direction u_j = sqrt|lambda_j| v_j,
    and only those that matter are visited. ``lower`` and ``upper`` enclose log Z with rounding. If negative eigenvalues
    make all digits cancel, the dynamic program of ``low_rank`` takes over, and ``status`` says so.

    Parameters
    ----------
    max_rank
        Largest rank to look for when A + D is to be found.
    max_nodes
        Most nodes of the whole grid; a model that needs more is refused before any work is done.
    tol
        Largest error of log Z from the low-rank form; it widens the interval.

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
    gives_all_pairs: ClassVar[bool] = True

    def _solve(self, model: Ising) -> Outcome:
        return self.solve_decomposed(model, decompose(model, self.max_rank, self.tol))

    def suits(self, model: Ising) -> bool:
        """Return whether the coupling has a rank up to ``max_rank``, apart from its diagonal."""
        try:
            decompose(model, self.max_rank, self.tol)
        except ModelError:
            return False
        return True

    def solve_decomposed(self, model: Ising, form: Decomposition) -> Outcome:
        """Integrate a coupling that has been decomposed."""
        return self._outcome(model, form, self._nodes(model, form))

    def node_count(self, form: Decomposition) -> float:
        """Return how many nodes the grid has; as a float, since counts too large for integers are refused too."""
        from spectralz.kernels.low_rank.negative_directions import negative_node_count
        from spectralz.kernels.low_rank.positive_directions import positive_node_count

        positive, negative = _split(form)
        return positive_node_count(positive) * negative_node_count(negative)

    def _nodes(self, model: Ising, form: Decomposition) -> Nodes:
        from spectralz.kernels.low_rank.negative_directions import sum_negative
        from spectralz.kernels.low_rank.positive_directions import positive_nodes, sum_positive

        positive, negative = _split(form)
        count = self.node_count(form)
        if count > self.max_nodes:
            raise TooLargeError(
                f"quadrature needs up to {count:.3g} nodes at rank {form.rank}; max_nodes is {self.max_nodes:.3g}. "
                f"Raise it if {count * model.n * SECONDS_PER_FACTOR:.2g} s are acceptable"
            )
        theta = np.array(model.field)

        if len(negative):
            visit = reporter_of("visiting nodes")
            return positive_nodes(positive, lambda g: sum_negative(theta, positive, negative, g, visit))

        sizes, turned = np.abs(theta), np.where(theta < 0.0, -positive, positive)  # flipping a spin changes nothing

        def integrand(g: FloatArray) -> tuple[FloatArray, FloatArray]:
            at_a_time, exact = max(1, FACTORS_PER_REPORT // max(model.n, 1)), np.empty(len(g))
            for begin in range(0, len(g), at_a_time):
                rows = slice(begin, begin + at_a_time)
                exact[rows] = sum_positive(sizes, turned, g[rows])
                report("visiting nodes", min((begin + at_a_time) / len(g), 1.0))
            return exact, exact

        return positive_nodes(positive, integrand)

    def _outcome(self, model: Ising, form: Decomposition, nodes: Nodes) -> Outcome:
        from spectralz.kernels.sums import log_sum

        constant = math.fsum([*np.abs(model.field).tolist(), form.constant])  # the nodes do not include |field|
        upper, lower = log_sum(nodes.log_term), log_sum(nodes.log_term_lower)
        sizes = abs(upper) + abs(constant) + abs(upper + constant)
        rounding = _rounding(form) + form.residual + form.rounding + 4.0 * UNIT_ROUNDOFF * sizes
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
            sentence += ": digits were lost to cancellation"
        return Outcome(
            log_z=log_z,
            kind=Kind.EXACT if exact else Kind.ESTIMATE,
            status=Status(sentence),
            lower=low,
            upper=high,
            std_error=None if exact else (high - low) / 2.0,
            trusted=high - low <= 2.0 * LARGEST_TRUSTED_ROUNDING or exact,
            details=details,
        )

    def _hand_over(self, model: Ising, form: Decomposition, upper: float, details: dict[str, Any]) -> Outcome:
        """Solve the model by the dynamic program, on a lattice that contains its directions if there is one."""
        from spectralz.kernels.low_rank.negative_directions import saddle_point

        steps = lattice_steps(form.directions)
        if steps is None or predicted_cells(form.directions, steps) > CELLS_FOR_HANDOVER:
            steps = np.abs(form.directions).sum(axis=1) / (0.4 * CELLS_FOR_HANDOVER ** (1.0 / form.rank))
            while predicted_cells(form.directions, steps) > CELLS_FOR_HANDOVER:
                steps *= 1.1
                if float(steps.max()) > 1e6 * float(np.abs(form.directions).sum()):
                    raise TooLargeError(
                        "digits were lost to cancellation, and the grid of the dynamic program is too large"
                    )
        program = LowRank(step=tuple(steps.tolist()), max_cells=CELLS_FOR_HANDOVER)
        outcome = program.solve_decomposed(model, form)
        assert outcome.upper is not None
        positive, negative = _split(form)
        if not len(positive):
            field = np.asarray(model.field)
            _, saddle = saddle_point(field, np.zeros(model.n), negative)
            left = math.fsum([outcome.log_z, -form.constant, -saddle, *(-np.abs(field)).tolist()])
            details["left_after_saddle"] = math.exp(min(left, 0.0))
        return replace(
            outcome,
            log_z=min(outcome.log_z, upper),
            status=Status(f"quadrature lost all digits to cancellation, so low_rank took over: {outcome.status}"),
            upper=min(outcome.upper, upper),
            details={**outcome.details, **details},
        )

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        return self.solve_marginals_decomposed(model, decompose(model, self.max_rank, self.tol))

    def solve_marginals_decomposed(self, model: Ising, form: Decomposition) -> MarginalOutcome:
        """Return the marginals of a coupling that has been decomposed."""
        from spectralz.kernels.sums import log_sum

        nodes = self._nodes(model, form)
        total = log_sum(nodes.log_term)
        lost = total - log_sum(nodes.log_term_lower)
        if lost > ALL_DIGITS_LOST:
            raise TooLargeError("cancellation left no digits for marginals; draw samples with method low_rank instead")
        outcome = self._outcome(model, form, nodes)
        positive, negative = _split(form)
        weight = np.exp(nodes.log_term - total)
        used = weight > 1e-18 * weight.max()
        theta, pushes = np.asarray(model.field), nodes.g[used] @ positive
        edges = pairs_of(model)
        if len(negative):
            probability, mean, pairs = _moments_with_negative(theta, pushes, negative, weight[used], edges)
        else:
            probability, mean, pairs = _moments(theta + pushes, weight[used], edges)
        # The integral over negative directions is a factor of the weights and the denominator of every moment.
        outcome, kind = with_kind_of_means(outcome, _error_of_means(form) + 4.0 * math.expm1(lost))
        return MarginalOutcome(probability, mean, pairs, kind, outcome).within_limits()

    def _sample(self, model: Ising, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        form = decompose(model, self.max_rank, self.tol)
        positive, negative = _split(form)
        if len(negative):
            return sample_decomposed(model, form, size, rng, LowRank().max_cells)
        warn_of_rounding(_error_of_means(form))
        nodes = self._nodes(model, form)
        weight = np.exp(nodes.log_term - nodes.log_term.max())
        chosen = rng.choice(len(weight), size=size, p=weight / weight.sum())
        x = np.empty((size, model.n), dtype=np.int8)
        for begin in range(0, size, 1024):  # given a node, spins are independent
            rows = slice(begin, begin + 1024)
            z = np.asarray(model.field) + nodes.g[chosen[rows]] @ positive
            x[rows] = np.where(rng.random(z.shape) < 0.5 * (1.0 + np.tanh(z)), 1, -1)
        return x


def _split(form: Decomposition) -> tuple[FloatArray, FloatArray]:
    """Return a_j = sqrt(2) u_j of the positive and of the negative directions."""
    a = math.sqrt(2.0) * form.directions
    return a[form.values > 0.0], a[form.values < 0.0]


def _rounding(form: Decomposition) -> float:
    """Bound the error of the log of the sum over nodes: at the saddle of a negative direction |t_j| <= |a_j|_1 too."""
    from spectralz.kernels.low_rank.positive_directions import positive_rounding

    norms = math.sqrt(2.0) * np.abs(form.directions).sum(axis=1)
    return positive_rounding(form.rank, form.vectors.shape[1], norms)


def _error_of_means(form: Decomposition) -> float:
    """Bound the error of means over nodes.

    Weights with a relative error of e change a mean by at most 2 e, and log-weights with an error of r change it by
    2 r. The means given a node, tanh of a field, have half the error of the terms.
    """
    return 5.0 * _rounding(form) + 2.0 * form.residual


def _largest_left(model: Ising, form: Decomposition, nodes: Nodes) -> float:
    """Return the log of the factor that the integral over negative directions leaves at the largest node."""
    from spectralz.kernels.low_rank.negative_directions import saddle_point
    from spectralz.kernels.low_rank.positive_directions import LOG_SQRT_2PI, STEP

    positive, negative = _split(form)
    k = int(np.argmax(nodes.log_term))
    _, value = saddle_point(np.asarray(model.field), nodes.g[k] @ positive, negative)
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
    return both, weight @ tanh, _pair_means(tanh, weight, edges)


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
    theta: FloatArray, pushes: FloatArray, negative: FloatArray, weight: FloatArray, edges: NDArray[np.int64]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the same with negative directions integrated at every node, whose fields are theta plus a push."""
    from spectralz.kernels.low_rank.negative_directions import Contour, negative_steps, saddle_point, tilted_means
    from spectralz.kernels.low_rank.negative_moments import inner_moments

    n = len(theta)
    steps, halves = negative_steps(negative)
    mean, pairs = np.zeros(n), np.zeros((n, n))
    weight = weight / weight.sum()
    for k, (w, push) in enumerate(zip(weight.tolist(), pushes, strict=True)):
        t, _ = saddle_point(theta, push, negative)
        contour = Contour(negative, tilted_means(theta, push, negative, t), t, steps, halves)
        total, first, second = inner_moments(contour)
        mean += w * first / total
        pairs += w * second / total
        report("visiting nodes", (k + 1) / len(weight))
    both = np.stack([(1.0 - mean) / 2.0, (1.0 + mean) / 2.0], axis=1)
    return both, mean, pairs[edges[:, 0], edges[:, 1]]
