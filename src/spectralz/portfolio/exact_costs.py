"""What exact answers cost: inside ``auto`` they may take many times the budget, since they are worth it."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock, costs
from spectralz._support.deadline import Deadline
from spectralz.errors import ModelError
from spectralz.methods.exact import Exact
from spectralz.methods.quadrature import Quadrature
from spectralz.model import Ising, Polynomial
from spectralz.parts.low_rank.decomposition import decompose
from spectralz.parts.planar.graph import has_few_edges, planar_graph
from spectralz.portfolio import policy

if TYPE_CHECKING:
    from spectralz.methods.exact import ExactPlan
    from spectralz.model import Model
    from spectralz.parts.low_rank.decomposition import Decomposition
    from spectralz.parts.planar.graph import PlanarGraph


def exact_deadline(budget: float) -> Deadline:
    """Return until when exact answers may be computed that begin now, if the budget has so many seconds."""
    return Deadline.after(policy.EXACT_TIMES * budget)


def is_affordable(plan: ExactPlan, deadline: Deadline, *, with_means: bool) -> bool:
    """Return whether a plan can be carried out in time; up to half a second later one that takes as long is, too.

    So a single one always is, and those of many components are not.
    """
    cheap = policy.CHEAP_OPERATIONS
    if operations_of_plan(plan, with_means=with_means) <= cheap:
        return clock.now() <= deadline.end + cheap / clock.OPERATIONS_PER_SECOND
    return _seconds_of(plan, with_means=with_means) <= deadline.left


def refusal_of(plan: ExactPlan, *, with_means: bool) -> str:
    """Return the reason why a plan is not carried out."""
    seconds = clock.in_words(_seconds_of(plan, with_means=with_means))
    unit = "work" if clock.counts_operations() else "budget"
    return (
        f"exact would take about {seconds}, and auto gives it {policy.EXACT_TIMES:g} times the {unit} at most: "
        f'raise it, or ask for method "exact"'
    )


def quadrature_in_time(
    model: Model, deadline: Deadline, *, with_means: bool, runs: int = 1
) -> tuple[Quadrature, Decomposition] | None:
    """Return quadrature, and the form of the model, if that has a low rank and can be done so many times in time."""
    quadrature = Quadrature()
    if isinstance(model, Polynomial):
        return None
    try:
        form = decompose(model, quadrature.max_rank, quadrature.tol)
    except ModelError:
        return None
    seconds = max(deadline.left, policy.CHEAP_OPERATIONS / clock.OPERATIONS_PER_SECOND)
    has_negative = int((form.values < 0.0).any())
    one = costs.NODE_SPIN[has_negative] * model.n + with_means * costs.NODE_PAIR[has_negative] * model.n**2
    affordable = seconds * clock.OPERATIONS_PER_SECOND / max(one, 1.0) / runs
    in_time = replace(quadrature, max_nodes=int(max(min(quadrature.max_nodes, affordable), 1)))
    return (in_time, form) if in_time.node_count(form) <= in_time.max_nodes else None


def operations_of_plan(plan: ExactPlan, *, with_means: bool) -> float:
    """Return the operations of a plan."""
    return costs.EXACT_MEANS_TERM * float(plan.terms) if with_means else costs.EXACT_TERM * plan.effort


def operations_of_planar(n: int, *, with_means: bool, times: int = 1) -> float:
    """Return the operations to draw a planar graph and to sum over it so many times."""
    return costs.PLANAR_SPIN * n + times * costs.PLANAR_SUM[with_means] * n * math.sqrt(n)


def drawn_if_quicker(
    model: Model, deadline: Deadline, *, with_means: bool, against_exact: bool = True, times: int = 1
) -> PlanarGraph | None:
    """Return the graph of a planar model, if sums over it are in time and predicted to be quicker than elimination.

    A simple order of elimination is compared: to look for a better one takes longer than to draw the graph.
    """
    if not isinstance(model, Ising) or model.constraints or model.n < policy.FEWEST_PLANAR_SPINS:
        return None
    if model.storage.terms is not None or not has_few_edges(model):  # factors would have to be written out
        return None
    work = operations_of_planar(model.n, with_means=with_means, times=times)
    most = max(deadline.left * clock.OPERATIONS_PER_SECOND, policy.CHEAP_OPERATIONS)
    if work > most or find_spec("networkx") is None:
        return None
    if against_exact:
        plan = Exact(order="min-degree", search=0).plan(model)
        if plan.refusal is None and times * operations_of_plan(plan, with_means=with_means) <= work:
            return None
    try:
        return planar_graph(model)
    except ModelError:
        return None


def _seconds_of(plan: ExactPlan, *, with_means: bool) -> float:
    """Predict the time of a plan from that of a small one."""
    few = policy.TIMED_EXACT_SPINS
    model = Ising(None, np.full((few, few), 1.0 / few))
    exact = Exact(algorithm="enumeration" if plan.enumerated else "elimination")
    small = exact.plan(model)
    solve = exact.solve_marginals_of_plan if with_means else exact.solve_plan
    times = []
    for _ in range(3):
        began = clock.now()
        solve(model, small)
        clock.charge(operations_of_plan(small, with_means=with_means))
        times.append(clock.now() - began)
    ratio = operations_of_plan(plan, with_means=with_means) / operations_of_plan(small, with_means=with_means)
    return min(times) * ratio
