"""Curves of planar models: at each temperature the sums over all states, relative to one heavy state."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.progress import report
from spectralz.errors import ModelError, TooLargeError, catching_interrupt
from spectralz.inference.moments import STENCIL
from spectralz.methods.planar import means_of, refuse_distant
from spectralz.parts.planar.graph import couplings_of, planar_graph
from spectralz.parts.planar.sums import NOTHING_LEFT, heavy_state, log_sum, solve
from spectralz.portfolio.exact_costs import drawn_if_quicker

if TYPE_CHECKING:
    from spectralz._support.deadline import Deadline
    from spectralz.model import FloatArray, Ising
    from spectralz.parts.planar.graph import PlanarGraph

# The heat capacity is the second derivative of log Z by differences over steps of this share of beta: by five points,
# and for its error by three.
STEP = 3e-3
FIVE = (-1.0 / 12.0, 16.0 / 12.0, 16.0 / 12.0, -1.0 / 12.0)
# A temperature is trusted if all errors are at most this share of their values, or of 1.
TRUSTED_SHARE = 0.01

Rows = list[list[tuple[float, float]]]


def graph_of(model: Ising, betas: FloatArray, deadline: Deadline, *, against_exact: bool) -> PlanarGraph | None:
    """Return the graph of a planar model if its curves are in time, and quicker than exact ones; otherwise None."""
    times = 2 * len(betas)
    graph = drawn_if_quicker(model, deadline, with_means=True, against_exact=against_exact, times=times)
    try:
        if graph is not None:
            refuse_distant(model, graph)
    except ModelError:
        return None
    return graph


def planar_rows(model: Ising, betas: FloatArray, graph: PlanarGraph | None) -> tuple[Rows, bool]:
    """Return values and errors of ``KNOWN`` at each temperature, and whether an interrupt left some out."""
    if graph is None:
        graph = planar_graph(model)
        refuse_distant(model, graph)
    rows: Rows = []
    with catching_interrupt() as interrupt:
        state = heavy_state(graph, float(betas.max()) * couplings_of(model))
        for beta in betas.tolist():
            report("temperatures", len(rows) / len(betas))
            rows.append(_at(model, graph, beta, state))
    if interrupt.happened and not rows:
        raise KeyboardInterrupt
    return rows, interrupt.happened


def are_trusted(rows: Rows) -> list[bool]:
    """Return whether each temperature has small errors."""
    return [all(error <= TRUSTED_SHARE * max(1.0, abs(value)) for value, error in row) for row in rows]


def _at(model: Ising, graph: PlanarGraph, beta: float, state: FloatArray) -> list[tuple[float, float]]:
    """Return values and errors at a temperature."""
    J = couplings_of(model)
    try:
        solved = solve(graph, beta * J, state, with_means=True)
    except TooLargeError:  # of weights
        solved = NOTHING_LEFT
    if not math.isfinite(solved.error):
        return _of_state(model, beta, float(J @ (state[graph.edges[:, 0]] * state[graph.edges[:, 1]])))
    log_z, error = solved.log_z + beta * model.constant, solved.error + beta * model.rounding
    energy = -float(J @ solved.pair_mean) - model.constant
    off = float(np.abs(J).sum()) * (solved.mean_error + 2.0 * beta * model.rounding_of_terms) + model.rounding
    here = log_sum(graph, beta * J, state)
    beside = [log_sum(graph, beta * (1.0 + STEP * place) * J, state) - here for place in STENCIL]
    capacity = float(np.dot(FIVE, beside)) / STEP**2
    rough = (beside[1] + beside[2]) / STEP**2
    off_capacity = abs(capacity - rough) + 8.0 * solved.error / STEP**2
    mean = means_of(model, graph, solved)
    n = max(model.n, 1)
    return [
        (log_z, error),
        (energy, off),
        (log_z + beta * energy, error + beta * off),
        (capacity, off_capacity),
        (float(mean.sum()) / n, solved.mean_error),
        (float(mean @ mean) / n, 2.0 * solved.mean_error),
    ]


def _of_state(model: Ising, beta: float, weight: float) -> list[tuple[float, float]]:
    """Return what a single state says, where rounding has left nothing else, with errors that say so."""
    nats, sizes = model.n * math.log(2.0), 2.0 * float(np.abs(couplings_of(model)).sum())
    log_z = beta * (weight + model.constant)
    energy = -weight - model.constant
    return [
        (log_z, nats + beta * sizes),
        (energy, sizes),
        (0.0, nats),
        (0.0, (beta * sizes) ** 2),
        (0.0, 1.0),
        (0.0, 1.0),
    ]
