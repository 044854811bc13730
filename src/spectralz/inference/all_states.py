"""Curves of small models: every quantity by sums over all states, which are listed once for all temperatures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support import clock
from spectralz.errors import refuse_impossible
from spectralz.parts.all_states import MOST_SPINS, are_allowed, downs, log_weights, operations, overlaps, walsh
from spectralz.sampling.curves.observables import binder_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Model

# Transforms of all states for each temperature; sums over them count as one more.
TRANSFORMS = 3
# Additions that a number passes: one per spin in a transform, and as many in sums over states.
ADDITIONS, ROUNDOFF = 2.0, 2.0**-53

Pairs = dict[str, tuple["FloatArray", "FloatArray"]]


def seconds(n: int, temperatures: int) -> float:
    """Return about how long it takes; infinite if there are too many states."""
    if n > MOST_SPINS:
        return math.inf
    return (1.0 + TRANSFORMS * temperatures) * operations(n) / clock.OPERATIONS_PER_SECOND


def at_each(model: Model, betas: FloatArray) -> Iterator[Pairs]:
    """Yield every quantity at each temperature, as arrays of values and of bounds on their rounding."""
    w, down, allowed = log_weights(model), downs(model.n), are_allowed(model)
    if model.constraints:
        refuse_impossible(0.0 if allowed.any() else -math.inf)
        w[~allowed] = w[allowed].min()  # of no importance, but not larger than the others
    for beta in betas.tolist():
        yield _at(model, beta, w, allowed, down)


def _at(model: Model, beta: float, w: FloatArray, allowed: NDArray[np.bool_], down: NDArray[np.uint8]) -> Pairs:
    n, top = model.n, float((beta * w).max())
    p = np.exp(beta * w - top) * allowed
    total = float(p.sum())
    p /= total
    mean = float(p @ w)
    variance = float(p @ (w - mean) ** 2)
    products = walsh(p)
    spins = products[1 << np.arange(n)]
    magnetization = _moments(np.bincount(down, weights=p, minlength=n + 1))
    overlap = _moments(np.bincount(down, weights=overlaps(products), minlength=n + 1))
    log_z = math.fsum([top, math.log(total), beta * model.constant])
    energy = -math.fsum([mean, model.constant])
    # A log-weight is off by ``off``, so a probability by a share of 2 beta off.
    sizes = float(np.abs(model.field).sum() + np.abs(model.edges()[1]).sum()) + model.higher.total
    off = ADDITIONS * ROUNDOFF * (n + 1.0) * sizes + model.rounding
    share = 2.0 * beta * off + ADDITIONS * ROUNDOFF * (n + 8.0)
    deviation = math.sqrt(variance)
    off_energy = off + share * deviation + 2.0 * ROUNDOFF * abs(energy)
    off_variance = 2.0 * off * deviation + off**2 + 4.0 * share * variance
    found = {
        "log_z": ([log_z], [beta * off + share + 4.0 * ROUNDOFF * (abs(log_z) + abs(top))]),
        "energy": ([energy], [off_energy]),
        "entropy": ([log_z + beta * energy], [2.0 * beta * off_energy + share + 4.0 * ROUNDOFF * abs(log_z)]),
        "heat_capacity": ([beta**2 * variance], [beta**2 * off_variance]),
        "magnetization": ([magnetization[0]], [share]),
        "abs_magnetization": ([magnetization[1]], [share]),
        "overlap": ([float(spins @ spins) / max(n, 1)], [2.0 * share]),
        "magnetization_moments": (magnetization, [share] * 4),
        "binder": ([binder_of(*magnetization[2:])], _binder_rounding(magnetization[2], share)),
        "overlap_moments": (overlap[2:], [2.0 * share] * 2),
        "overlap_binder": ([binder_of(*overlap[2:])], _binder_rounding(overlap[2], 2.0 * share)),
    }
    return {name: (np.array(value), np.array(error)) for name, (value, error) in found.items()}


def _moments(by_downs: NDArray[Any]) -> list[float]:
    """Return the means of m, abs(m), m^2 and m^4, by the probability of each number of spins that are -1."""
    n = len(by_downs) - 1
    m = 1.0 - 2.0 * np.arange(n + 1) / max(n, 1) if n else np.zeros(1)
    return [float(by_downs @ power) for power in (m, np.abs(m), m**2, m**4)]


def _binder_rounding(square: float, share: float) -> list[float]:
    """Return how far Binder's cumulant may be off: both moments are, by a share of 1."""
    return [4.0 * share / square**2 if square > 0.0 else 0.0]
