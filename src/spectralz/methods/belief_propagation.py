"""Belief propagation: exact on forests, and the Bethe estimate on other graphs."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spectralz._support import clock, costs, deadline
from spectralz._support.options import below_one, choice, count, option, positive
from spectralz._support.progress import report
from spectralz.methods.base import MarginalOutcome, Method, Outcome
from spectralz.model import Ising
from spectralz.parts.elimination.constrained import of_first_spins, with_tables
from spectralz.parts.leading import leading_directions
from spectralz.parts.outcome import contradiction
from spectralz.parts.propagation.attractive import bethe_bound, signs_of
from spectralz.parts.propagation.factors import FactorNetwork, network_of
from spectralz.parts.propagation.loops import Loops, loops_at, operations_of_loops
from spectralz.parts.propagation.network import Forest
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from spectralz.model import FloatArray, Model
    from spectralz.parts.propagation.network import Network

SCHEDULES = ("parallel", "sequential")
# Progress is reported after about this many messages, a tenth of a second.
MESSAGES_PER_REPORT = 2_000_000
# Most memory used at once, as measured with dense models.
BYTES_PER_MESSAGE = 130
# The largest field that messages start with in the search for other phases, how far apart the means of one phase may
# be, and iterations made together.
STARTING_FIELD, SAME_MEANS, ITERATIONS_TOGETHER = 3.0, 0.05, 5


@dataclass(frozen=True, kw_only=True)
class BeliefPropagation(Method):
    r"""Estimate log Z by (loopy) belief propagation; the answer is exact on forests.

    Every spin i sends each neighbor j one number that sums up the field h that it has from the others,

    .. math::

       u_{i \to j} = \operatorname{atanh}(\tanh J_{ij} \, \tanh h_{i \setminus j}), \qquad
       h_{i \setminus j} = \theta_i + \sum_{k \ne j} u_{k \to i},

    computed in logs so that no coupling is too strong. On a forest one sweep up and down gives the exact answer, and
    ``lower`` and ``upper`` enclose it with all rounding errors. On a graph with loops the messages may or may not
    converge. Either way the value is the Bethe approximation

    .. math::

       \log Z \approx \sum_i \log Z_i - \sum_{(i, j)} \log Z_{ij},

    where Z_i sums over a spin with all its messages, and Z_ij over a pair. Its derivatives vanish at fixed points. It
    is not a bound, and it may be impossible: it is compared with the best state found from the means, and ``status``
    says so if it is below that state's log-weight or more than n log 2 above it. On attractive models, where flipping
    the signs of some spins leaves no negative coupling, the Bethe objective at any means is a proven lower bound [3]_,
    and ``lower`` is its value at the means found.

    Terms of three and more spins are factors: messages go from spins to factors and back, and a factor adds up the
    states of its spins. A factor has all the terms among the spins of a largest term, of up to 16 spins. The answer is
    exact if spins and factors form a forest.

    Parameters
    ----------
    max_iter
        Most iterations; each updates every message once.
    damping
        Share of the old message that is kept, from 0 (the paper's setting) to below 1.
    tol
        Converged when no message would change by more than this, relatively for messages above 1, without damping.
    schedule
        ``"parallel"``: all messages at once, from uniform ones (the paper's setting). ``"sequential"``: one after
        the other, in sweeps backwards and forwards along a breadth-first order, which often converges sooner.

    Raises
    ------
    TooLargeError
        If a term has more than 16 spins, or all tables together too many entries.

    See Also
    --------
    TreeReweighted : an upper bound from messages.

    References
    ----------
    .. [1] Yedidia, Freeman, Weiss, "Constructing free-energy approximations and generalized belief propagation
       algorithms", IEEE Trans. Inf. Theory 51, 2005.
    .. [2] Mezard, Montanari, "Information, Physics, and Computation", 2009, Chapter 14.
    .. [3] Ruozzi, "The Bethe partition function of log-supermodular graphical models", NIPS 2012.

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
    >>> magnet = sz.generators.torus(rows=6, columns=6, strength=0.2)
    >>> 0.0 < sz.log_z(magnet, "exact").log_z - sz.log_z(magnet, "bp").lower < 0.1
    True
    >>> parities = sz.Polynomial({(0, 1, 2): 0.5, (2, 3, 4): -1.0, (4,): 0.3})
    >>> print(sz.log_z(parities, "bp").status)
    exact: the graph of spins and terms is a forest, solved by one sweep up and down
    """

    max_iter: int = option(200, count(least=1))
    damping: float = option(0.0, below_one)
    tol: float = option(1e-10, positive())
    schedule: str = option("parallel", choice(SCHEDULES))

    name: ClassVar[str] = "bp"
    takes_terms: ClassVar[bool] = True
    takes_constraints: ClassVar[bool] = True

    def _solve(self, model: Model) -> Outcome:
        narrow = with_tables(model)
        network = network_of(narrow)
        if network.is_forest:
            return Forest.of(network).outcome(narrow)
        return self._run(narrow, network)[0]

    def _solve_marginals(self, model: Model) -> MarginalOutcome:
        narrow = with_tables(model)
        network = network_of(narrow)
        if network.is_forest:
            return of_first_spins(Forest.of(network).marginal_outcome(narrow), model.n)
        outcome, total, without = self._run(narrow, network)
        return of_first_spins(network.beliefs(total, without, outcome), model.n)

    def solve_with_loops(self, model: Model) -> tuple[MarginalOutcome, Loops | str]:
        """Return the marginals, and what the Bethe log Z leaves out, or a sentence that says why that is not known.

        The messages must converge to a stable fixed point. Messages that start along a leading eigenvector of the
        couplings must converge to the same point, since beliefs describe one phase only. With terms of three and more
        spins and loops it is never known.
        """
        network = network_of(model)
        clock.charge(costs.MESSAGE_LAYOUT * network.work)
        if network.is_forest:
            return Forest.of(network).marginal_outcome(model), Loops(0.0, 0.0, 0.0)
        outcome, total, without = self._run(model, network)
        marginals = network.beliefs(total, without, outcome)
        if not outcome.status.converged or isinstance(network, FactorNetwork):
            return marginals, str(outcome.status)
        clock.charge(operations_of_loops(network.n, len(network.graph.slots)))
        loops = loops_at(network, total, without)
        if loops is None:
            words = f"{outcome.status}, but couplings are so strong that its error diverges"
            return marginals, words
        return marginals, self._doubts(model, network, marginals.mean) or loops

    def _doubts(self, model: Model, network: Network, mean: FloatArray) -> str:
        """Say so if messages that start in a collective state of either sign converge elsewhere; otherwise nothing."""
        from spectralz.kernels.propagation.messages import messages_between

        quick = replace(self, max_iter=ITERATIONS_TOGETHER)
        signs = (1.0, -1.0) if np.any(network.field) else (1.0,)  # without fields, one is the other flipped
        for direction, sign in itertools.product(leading_directions(model.storage, 1), signs):
            h = sign * STARTING_FIELD * direction[network.graph.source]
            u = messages_between(network.coupling, h)
            for _ in range(0, self.max_iter, ITERATIONS_TOGETHER):
                u, _, residual = quick._iterate(network, u)
                total, _ = network.fields(u)
                if residual <= self.tol or np.abs(np.tanh(total) - mean).max() <= SAME_MEANS:
                    break
                if deadline.is_past():
                    return "there was no time to look for other phases"
            if np.abs(np.tanh(total) - mean).max() > SAME_MEANS:
                return "there may be several phases: messages from another start converge elsewhere"
        return ""

    def _run(self, model: Model, network: Network | FactorNetwork) -> tuple[Outcome, FloatArray, FloatArray]:
        """Return the outcome on a graph with loops, the fields of the spins, and the fields without each message."""
        u, done, residual = self._iterate(network)
        total, without = network.fields(u)
        value = network.bethe(without)
        best = network.log_weight_near(total)
        highest = best if best >= network.lightest else network.total_weight  # a broken constraint says nothing
        names = "the log-weight of a single state", "n log 2 + the best log-weight found", "probably wrong"
        complaint = contradiction(value, best, highest + network.n * math.log(2.0), network.total_weight, *names)
        settled = residual <= self.tol
        words = f"converged after {done} iterations"
        if not settled:
            words = f"stopped after {done} iterations with residual {residual:.2g}"
        constant = model.constant
        lower = None
        if isinstance(model, Ising) and not model.constraints and signs_of(model) is not None:
            lower = bethe_bound(model, total)[1]
        outcome = Outcome(
            log_z=value + constant,
            kind=Kind.ESTIMATE,
            status=Status(words + network.remark + complaint, converged=settled and not complaint),
            lower=lower,
            iterations=done,
            details={
                "residual": residual,
                "is_forest": False,
                "best_log_weight": best + constant,
                "is_possible": not complaint,
                "is_attractive": lower is not None,
            },
        )
        return outcome, total, without

    def _iterate(self, network: Network | FactorNetwork, u: FloatArray | None = None) -> tuple[FloatArray, int, float]:
        """Return the messages, the number of iterations and the last residual, starting at ``u``, or at 0 if None."""
        if u is None:
            u = network.start()
        block = max(1, int(MESSAGES_PER_REPORT / network.work))
        done, residual = 0, math.inf
        while done < self.max_iter and residual > self.tol and not deadline.is_past():
            count = min(block, self.max_iter - done)
            u, made, residual = network.iterations(u, self.schedule, self.damping, self.tol, count)
            done += made
            clock.charge(costs.MESSAGE * made * network.work)
            report("passing messages", done / self.max_iter)
        return u, done, residual


def operations_of_bp(n: int, edges: int, iterations: float) -> float:
    """Return the operations counted for this many iterations and the sums over loops."""
    return 2.0 * edges * (costs.MESSAGE_LAYOUT + iterations * costs.MESSAGE) + operations_of_loops(n, edges)
