"""The exact likelihood of a problem: by all states if they are few, otherwise by elimination."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from spectralz.learning import expectations
from spectralz.methods import Exact

if TYPE_CHECKING:
    from spectralz.learning.expectations import Observed
    from spectralz.learning.problem import Problem
    from spectralz.methods.exact import ExactPlan
    from spectralz.model import FloatArray

# Up to this many spins, using all states is quickest on any graph; beyond, elimination must do much less work.
SPINS_OF_ALL_STATES = 16
# A term of an elimination takes about as long as this many states: it is read and written, forwards and back.
STATES_PER_TERM = 16
# One gradient of this many terms takes a second or two, and a fit needs about fifty.
MOST_TERMS_UNASKED = 2**24
MOST_SPINS_UNASKED = 22


class Moments(Protocol):
    """log Z and the means of all statistics, as functions of the parameters."""

    def moments(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return log Z and the means of the statistics."""


@dataclass(frozen=True)
class Elimination:
    """Moments by bucket elimination, along one order, found once."""

    _problem: Problem
    _plan: ExactPlan

    def moments(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return log Z and the means of the statistics."""
        marginals = Exact().solve_marginals_of_plan(self._problem.model(parameters), self._plan)
        return marginals.outcome.log_z, np.concatenate([marginals.mean, marginals.pair_mean])


def exact_moments(problem: Problem, *, unasked: bool = False) -> Moments | str:
    """Return an engine that computes the moments exactly, or why there is none.

    Parameters
    ----------
    problem
        The problem.
    unasked
        Whether it must be quick too, since the exact likelihood was not asked for.
    """
    if problem.n <= SPINS_OF_ALL_STATES:
        return expectations.Walsh.of(problem)
    plan = Exact().plan(problem.model(np.ones(problem.size)))
    cost = None if plan.refusal is not None or plan.segments.memory > int(Exact().max_memory) else plan.terms
    most = MOST_SPINS_UNASKED if unasked else expectations.MOST_SPINS
    if problem.n <= most and (cost is None or cost * STATES_PER_TERM > 1 << problem.n):
        return expectations.Walsh.of(problem)
    if cost is None:
        return plan.refusal or "the tables of exact marginals do not fit into memory"
    if unasked and cost > MOST_TERMS_UNASKED:
        return f"exact gradients would take {cost:.2g} terms each"
    return Elimination(problem, plan)


class Likelihood:
    """The mean negative log-likelihood per row, its gradient and, over all states, its Hessian."""

    def __init__(self, engine: Moments, data: Observed) -> None:
        self._engine, self._data = engine, data
        if isinstance(engine, expectations.Walsh):
            self.hessian = partial(_with_hessian, engine, data)

    def value(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient."""
        log_z, mean = self._engine.moments(parameters)
        known = self._data.expected(parameters)
        return log_z - known.log_weight, mean - known.moments


def _with_hessian(
    engine: expectations.Walsh, data: Observed, parameters: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Return value, gradient and Hessian, the observed information of one row in the mean."""
    log_z, mean, covariance = engine.moments_and_covariance(parameters)
    known = data.expected(parameters, lost=True)
    return log_z - known.log_weight, mean - known.moments, covariance - known.lost
