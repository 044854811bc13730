"""Elimination along an order, literally: a dense table over the frontier, one axis per spin, in plain numpy."""

from __future__ import annotations

import numpy as np

import spectralz as sz
from tests.reference.states import dense


def log_z(model: sz.Ising, order) -> tuple[float, int]:
    """Return log Z and the most spins in the frontier, the one that arrives included."""
    J = dense(model) + dense(model).T
    np.fill_diagonal(J, 0.0)
    x = np.array([-1.0, 1.0])
    table, frontier, arrived, width = np.ones(()), [], set(), 0
    log = model.offset + float(np.trace(dense(model)))
    for v in order:
        table = table[..., None] * np.exp(model.field[v] * x)
        frontier.append(v)
        arrived.add(v)
        width = max(width, len(frontier))
        for axis, u in enumerate(frontier[:-1]):
            shape = np.ones(len(frontier), int)
            shape[axis] = shape[-1] = 2
            table = table * np.exp(J[u, v] * np.outer(x, x)).reshape(shape)
        for u in [u for u in frontier if all(w in arrived for w in np.flatnonzero(J[u]))]:
            table = table.sum(axis=frontier.index(u))
            frontier.remove(u)
        log += np.log(table.max())
        table = table / table.max()
    return float(log + np.log(table)), width
