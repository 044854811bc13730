"""Whose estimate counts in which cell, and who gets how much of the time: by pilots, before anything is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.model import FloatArray
    from spectralz.sampling.cells import Row

# A pilot that has been in a cell with fewer families hardly knows it, and one that would add less than this part of the
# best one's families does not count.
HARDLY, LEAST_PART = 2.0, 0.1
# Rounds in which coefficients and times are fitted to each other.
ROUNDS = 4
# The least share of the time, of a base that counts in some cell.
LEAST_TIME = 0.03


def shares_of(rows: Sequence[Row], sizes: Sequence[int], costs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return how much each base counts in each cell, (bases, cells), and its share of the time.

    ``rows`` and ``sizes`` are those of the pilots, and ``costs`` those of a state. In a cell estimates count by the
    families that they will have: states times families per pilot state. The time goes as the root of the variance that
    a base adds per state, times its cost (Neyman).
    """
    families = np.array([row.families for row in rows])
    per_state = families / np.array(sizes)[:, None]
    times = np.full(len(rows), 1.0 / len(rows))
    coefficients = np.ones_like(per_state)
    for _ in range(ROUNDS):
        states = times / costs
        coefficients = _coefficients(families, per_state * states[:, None])
        weights = _weights(rows, coefficients)
        added = np.divide((coefficients * weights) ** 2, per_state, out=np.zeros_like(per_state), where=per_state > 0.0)
        times = np.sqrt(added.sum(axis=1) * costs)
        times = np.where(times > 0.0, np.maximum(times / times.sum(), LEAST_TIME), 0.0)
        times = times / times.sum()
    return coefficients, times


def _coefficients(families: FloatArray, expected: FloatArray) -> FloatArray:
    counts = np.where((families >= HARDLY) & (expected >= LEAST_PART * expected.max(axis=0)), expected, 0.0)
    for k in np.flatnonzero(counts.sum(axis=0) == 0.0):
        counts[int(np.argmax(families[:, k])), k] = 1.0
    return np.asarray(counts / counts.sum(axis=0))


def _weights(rows: Sequence[Row], coefficients: FloatArray) -> FloatArray:
    """Return the share of Z that each cell holds, by the pilots."""
    with np.errstate(divide="ignore"):
        logs = np.array([row.log_z[0] for row in rows]) + np.log(coefficients)
    cells = np.logaddexp.reduce(logs, axis=0)
    return np.asarray(np.exp(cells - np.logaddexp.reduce(cells)))
