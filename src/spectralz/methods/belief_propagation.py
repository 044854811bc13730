"""Belief propagation: exact on forests, and on other graphs the estimate of Bethe."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectralz.errors import OptionError
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.methods.base import MarginalOutcome, Method, Outcome
from spectralz.options import check_choice, checked_count, checked_positive, is_number
from spectralz.progress import report
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.messages import Graph
    from spectralz.model import FloatArray, Ising

__all__ = ["BeliefPropagation", "Forest", "Network", "beliefs", "checked_damping"]

SCHEDULES = ("parallel", "sequential")
# Progress is reported after about this many messages, a tenth of a second.
MESSAGES_PER_REPORT = 2_000_000
# Single flips end long before, unless rounding makes two states each the better one.
MOST_CLIMBS = 1000
# What rounding may change in marginals that are called exact.
LARGEST_MEAN_ERROR = 1e-9
# The Bethe value is called impossible only where it misses a bound by more than rounding could.
SANITY_SLACK = 1e-9


@dataclass(frozen=True, kw_only=True)
class BeliefPropagation(Method):
    r"""Log Z by (loopy) belief propagation.

    Every spin tells each neighbour what it hears from the others, one number u_{i->j} = atanh(tanh J_ij tanh h_{i\j}),
    computed in logs so that no coupling is too strong. On a forest one sweep up and down gives the exact answer, with
    ``lower`` and ``upper`` enclosing it with all rounding errors. On a graph with loops the messages may settle or
    not; either way the value is Bethe's, sum_i log Z_i - sum_ij log Z_ij, whose derivatives vanish at fixed points.
    It is neither a bound nor always possible: it is held against the best state found from the means, and ``status``
    says so where it is below that state's log-weight or more than n log 2 above it.

    Parameters
    ----------
    max_iter
        Most iterations; each renews every message once.
    damping
        Share of the old message that is kept, from 0 (the paper's setting) to below 1.
    tol
        Converged when no message would change by more, relatively for messages above 1; damping does not count.
    schedule
        ``"parallel"``: all messages at once, from uniform ones (the paper's setting). ``"sequential"``: one after
        the other, in sweeps backwards and forwards along a breadth-first order, which often settles sooner.

    See Also
    --------
    TreeReweighted : messages that give an upper bound.

    References
    ----------
    .. [1] Yedidia, Freeman, Weiss, "Constructing free-energy approximations and generalized belief propagation
       algorithms", IEEE Trans. Inf. Theory 51, 2005.
    .. [2] Mezard, Montanari, "Information, Physics, and Computation", 2009, Chapter 14.

    Examples
    --------
    >>> import spectralz as sz
    >>> chain = sz.Ising.from_edges(3, [(0, 1), (1, 2)], [1.0, -2.0])
    >>> result = sz.log_z(chain, sz.BeliefPropagation())
    >>> result.kind, abs(result.log_z - sz.log_z(chain, "exact").log_z) < 1e-12
    (<Kind.EXACT: 'exact'>, True)
    >>> grid = sz.generators.grid(side=8, strength=0.5, seed=0)
    >>> result = sz.log_z(grid, sz.BeliefPropagation(max_iter=200, damping=0.5))
    >>> print(result.kind, "|", result.status)
    estimate | converged after ... iterations
    >>> abs(result.log_z - sz.log_z(grid, "exact").log_z) < 0.5
    True
    """

    max_iter: int = 200
    damping: float = 0.0
    tol: float = 1e-10
    schedule: str = "parallel"

    name: ClassVar[str] = "bp"
    gives_marginals: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_iter", checked_count(self.max_iter, "max_iter", least=1))
        object.__setattr__(self, "damping", checked_damping(self.damping))
        object.__setattr__(self, "tol", checked_positive(self.tol, "tol"))
        check_choice(self.schedule, "schedule", SCHEDULES)

    def _solve(self, model: Ising) -> Outcome:
        network = Network.of(model)
        if network.is_forest:
            return Forest.of(network).outcome(model)
        return self._run(model, network)[0]

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        network = Network.of(model)
        if network.is_forest:
            return Forest.of(network).marginal_outcome(model)
        outcome, total, without = self._run(model, network)
        probability, mean, pair_mean = beliefs(network.graph, network.coupling, total, without)
        return MarginalOutcome(
            probability=probability, mean=mean, pair_mean=pair_mean, kind=Kind.ESTIMATE, outcome=outcome
        )

    def _run(self, model: Ising, network: Network) -> tuple[Outcome, FloatArray, FloatArray]:
        """Return the outcome on a graph with loops, the fields of the spins, and those without each message."""
        from spectralz.kernels.messages import bethe_terms, fields

        u, done, residual = self._iterate(network)
        total, without = fields(network.graph, network.field, network.ones, u)
        spin, edge = bethe_terms(network.graph, network.field, network.coupling, without)
        value = math.fsum([*spin.tolist(), *(-edge).tolist()])
        best = network.log_weight_near(total)
        complaint = _complaint(value, best, network.n, network.total_weight)
        settled = residual <= self.tol
        words = f"converged after {done} iterations"
        if not settled:
            words = f"stopped after {done} iterations with residual {residual:.2g}"
        constant = model.constant
        outcome = Outcome(
            log_z=value + constant,
            kind=Kind.ESTIMATE,
            status=Status(words + complaint, converged=settled and not complaint),
            iterations=done,
            details={
                "residual": residual,
                "is_forest": False,
                "best_log_weight": best + constant,
                "is_possible": not complaint,
            },
        )
        return outcome, total, without

    def _iterate(self, network: Network) -> tuple[FloatArray, int, float]:
        """Return the messages, the number of iterations and the last residual."""
        from spectralz.kernels.messages import parallel_iterations, sequential_iterations

        u = np.zeros(len(network.coupling))
        block = max(1, MESSAGES_PER_REPORT // len(u))
        done, residual = 0, math.inf
        while done < self.max_iter and residual > self.tol:
            count = min(block, self.max_iter - done)
            given = (network.field, network.coupling, network.ones, u, self.damping, self.tol, count)
            if self.schedule == "parallel":
                u, made, residual = parallel_iterations(network.graph, *given)
            else:
                u, made, residual = sequential_iterations(network.graph, network.order, *given)
            done += made
            report("passing messages", done / self.max_iter)
        return u, done, residual


@dataclass(frozen=True)
class Network:
    """A model laid out for messages: its graph, and the coupling of each message's edge.

    ``order``, ``up`` and ``label`` are those of :func:`spectralz.kernels.messages.breadth_first`.
    """

    graph: Graph
    field: FloatArray
    coupling: FloatArray
    order: NDArray[np.int64]
    up: NDArray[np.int64]
    label: NDArray[np.int64]

    @classmethod
    def of(cls, model: Ising) -> Network:
        """Lay out a model."""
        from spectralz.kernels.messages import breadth_first, graph_of

        pairs, J = model.edges()
        graph = graph_of(model.n, pairs)
        walk = breadth_first(graph, np.ones(len(pairs), dtype=np.bool_))
        # Copies, because compiled code takes the model's read-only arrays for another type.
        return cls(graph, np.array(model.field), J[graph.edge], *walk)

    @property
    def n(self) -> int:
        """Number of spins."""
        return len(self.field)

    @property
    def ones(self) -> FloatArray:
        """The weights of plain belief propagation, one a slot."""
        return np.ones(len(self.coupling))

    @property
    def is_forest(self) -> bool:
        """Whether there is no loop: every edge leads to a spin's parent."""
        return len(self.graph.slots) == int(np.count_nonzero(self.up >= 0))

    @property
    def total_weight(self) -> float:
        """The largest log-weight that a state could have."""
        return float(np.abs(self.field).sum() + np.abs(self.coupling).sum() / 2.0)

    def log_weight_near(self, total: FloatArray) -> float:
        """Return the log-weight of the state of the means' signs, improved by single flips."""
        from spectralz.kernels.messages import climb

        x = climb(self.graph, self.field, self.coupling, np.where(total < 0.0, -1.0, 1.0), MOST_CLIMBS)
        first, second = self.graph.slots.T
        pairs = self.coupling[first] * x[self.graph.source[first]] * x[self.graph.source[second]]
        return math.fsum([*(self.field * x).tolist(), *pairs.tolist()])


def _complaint(value: float, best: float, n: int, total_weight: float) -> str:
    """Say why a log Z cannot be right beside the best log-weight found, or nothing."""
    slack = SANITY_SLACK * max(1.0, total_weight)
    if value < best - slack:
        return f"; the value is impossible: {best - value:.3g} below the log-weight of a single state"
    if value > best + n * math.log(2.0) + slack:
        excess = value - best - n * math.log(2.0)
        return f"; the value is not to be believed: {excess:.3g} above n log 2 + the best log-weight found"
    return ""


@dataclass(frozen=True)
class Forest:
    """A forest, solved: the messages of one sweep up and down, and the error that rounding may have made."""

    network: Network
    total: FloatArray
    without: FloatArray
    log_z: float
    rounding: float

    @classmethod
    def of(cls, network: Network) -> Forest:
        """Send the messages up to the roots, then down."""
        from spectralz.kernels.messages import fields, forest_terms, sequential_iterations

        graph, ones = network.graph, network.ones
        u, _, _ = sequential_iterations(
            graph, network.order, network.field, network.coupling, ones, np.zeros(len(ones)), 0.0, 0.0, 1
        )
        total, without = fields(graph, network.field, ones, u)
        terms = forest_terms(graph, network.up, total, without, network.coupling)
        return cls(network, total, without, math.fsum(terms.tolist()), _forest_rounding(network))

    def outcome(self, model: Ising) -> Outcome:
        """Pack the exact log Z."""
        log_z = math.fsum([self.log_z, model.offset, *model.diagonal.tolist()])
        rounding = self.rounding + 2.0 * UNIT_ROUNDOFF * (abs(log_z) + abs(self.log_z))
        return Outcome(
            log_z=log_z,
            kind=Kind.EXACT,
            status=Status("exact: the graph is a forest, solved by one sweep up and down"),
            lower=log_z - rounding,
            upper=log_z + rounding,
            iterations=1,
            details={"residual": 0.0, "is_forest": True, "rounding": rounding},
        )

    def marginal_outcome(self, model: Ising) -> MarginalOutcome:
        """Pack the exact marginals, or say that the weights are too large for them."""
        outcome = self.outcome(model)
        probability, mean, pair_mean = beliefs(self.network.graph, self.network.coupling, self.total, self.without)
        # Fields that are off by r in all change a mean by at most r, and that of a pair by at most 2 r.
        change = min(2.0 * self.rounding, 2.0)
        is_exact = change <= LARGEST_MEAN_ERROR
        if not is_exact:
            sentence = f"{outcome.status}; the weights are so large that rounding may change means by {change:.1g}"
            outcome = replace(outcome, status=Status(sentence))
        return MarginalOutcome(
            probability=probability,
            mean=mean,
            pair_mean=pair_mean,
            kind=Kind.EXACT if is_exact else Kind.ESTIMATE,
            outcome=outcome,
        )


def _forest_rounding(network: Network) -> float:
    """Bound the rounding error of log Z of a forest.

    A wrong message is a right one in a model with another field, and a field that is off by d changes log Z by at most
    d. Spin i adds up as many messages as it has neighbours, no partial sum above |theta_i| + sum_j |J_ij|; a
    message and what is left beside it are good to 24 roundoffs of that size, or of 1.
    """
    degree = np.diff(network.graph.start)
    owner = np.repeat(np.arange(network.n), degree)
    sizes = np.abs(network.field) + np.bincount(owner, np.abs(network.coupling), minlength=network.n)
    return 1.01 * UNIT_ROUNDOFF * float(((degree + 24.0) * sizes).sum() + 24.0 * network.n)


def beliefs(
    graph: Graph, coupling: FloatArray, total: FloatArray, without: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return P(x_i = -1) and P(x_i = +1), E[x_i], and E[x_i x_j] of each edge, as the messages have them.

    A pair's weights are exp(J x y + a x + b y) with the fields a, b of its spins without each other's message, so
    that its mean is tanh(J + log(cosh(a + b) / cosh(a - b)) / 2), which is tanh(J + atanh(tanh a tanh b)).
    """
    from scipy.special import expit

    from spectralz.kernels.messages import messages_between

    first, second = graph.slots.T
    pair_mean = np.tanh(coupling[first] + messages_between(without[first], without[second]))
    return np.column_stack([expit(-2.0 * total), expit(2.0 * total)]), np.tanh(total), pair_mean


def checked_damping(value: Any) -> float:
    """Return a damping: a number from 0 to below 1."""
    if not is_number(value) or not 0.0 <= value < 1.0:
        raise OptionError(f"damping is {value!r}; it must be a number from 0 to below 1")
    return float(value)
