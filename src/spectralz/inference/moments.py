"""Curves from a function that gives log Z and the means at a temperature: sums that are exact, and contractions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from spectralz.model import Polynomial

if TYPE_CHECKING:
    from collections.abc import Callable

    from spectralz.methods import Method
    from spectralz.model import FloatArray, Model
    from spectralz.result import Marginals

# What these methods give; states have the size of the magnetization, too.
KNOWN = ("log_z", "energy", "entropy", "heat_capacity", "magnetization", "overlap")
# The variance of the energy is the slope of the mean energy, by differences of the fourth order.
STENCIL = (-2.0, -1.0, 1.0, 2.0)
# An inverse temperature that does not change any digit.
NEARLY_ZERO = 1e-200
SLOPE = (1.0 / 12.0, -8.0 / 12.0, 8.0 / 12.0, -1.0 / 12.0)


class Moments(NamedTuple):
    """Log Z at a temperature, the mean energy, the means of spins, and how far the energy may be off."""

    log_z: float
    energy: float
    mean: FloatArray
    off: float


def at_infinite_temperature(model: Model) -> Moments:
    """Return what is known at beta = 0: spins are fair coins, and the products of two are 0 in the mean."""
    return Moments(model.n * float(np.log(2.0)), 0.0 - model.constant, np.zeros(model.n), 0.0)


def of_coins(n: int) -> dict[str, Any]:
    """Return the moments of the magnetization of n fair coins, which are those of the overlap of two states."""
    half = n // 2
    size = float(np.exp(gammaln(2 * half + 1) - 2.0 * gammaln(half + 1) - 2 * half * np.log(2.0))) if n else 0.0
    square, fourth = (1.0 / n, (3.0 - 2.0 / n) / n**2) if n else (0.0, 0.0)
    binder = 1.0 - fourth / (3.0 * square**2) if n else 0.0
    return {
        "abs_magnetization": size,
        "magnetization_moments": [0.0, size, square, fourth],
        "binder": binder,
        "overlap_moments": [square, fourth],
        "overlap_binder": binder,
    }


def mean_energy(model: Model, mean: FloatArray, pair_mean: FloatArray) -> float:
    """Return minus the mean log-weight."""
    return -float(model.field @ mean + model.edges()[1] @ pair_mean) - model.constant


def sums_of(model: Model, method: Method) -> Callable[[float], Moments]:
    """Return the function that sums up a model exactly; ``off`` is the rounding."""
    edges, J = model.edges()
    sizes = float(np.abs(model.field).sum() + np.abs(J).sum()) + model.higher.total + abs(model.constant)

    def moments(beta: float) -> Moments:
        # Constraints couple spins at beta = 0 too, and the edges must not be lost.
        marginals = method.run_marginals(model.scaled(beta or NEARLY_ZERO), pairs=True)
        if marginals.term_mean is None:
            energy = mean_energy(model, marginals.mean, aligned(marginals.edges, marginals.pair_mean, edges))
        else:
            energy = _mean_energy_of_terms(model, marginals)
        estimate = marginals.estimate
        width = 0.0 if estimate.upper is None or estimate.lower is None else estimate.upper - estimate.lower
        return Moments(estimate.log_z, energy, marginals.mean, width + 1e-15 * sizes)

    return moments


def _mean_energy_of_terms(model: Model, marginals: Marginals) -> float:
    """Return minus the mean log-weight; a term that is not listed has lost its weight to rounding."""
    assert isinstance(model, Polynomial)
    assert marginals.terms is not None
    assert marginals.term_mean is not None
    mean_of = dict(zip(marginals.terms, marginals.term_mean.tolist(), strict=True))
    return -math.fsum(c * mean_of.get(scope, 0.0) for scope, c in model.terms.items()) - model.constant


def aligned(pairs: Any, values: FloatArray, edges: Any) -> FloatArray:
    """Return numbers of pairs in the order of ``edges``; a pair that is not there has lost its coupling to rounding."""
    if np.array_equal(pairs, edges):
        return values
    value_of = dict(zip(map(tuple, pairs.tolist()), values.tolist(), strict=True))
    return np.array([value_of.get(tuple(pair), 0.0) for pair in edges.tolist()])


def quantities(
    model: Model, beta: float, moments: Callable[[float], Moments], step: float
) -> list[tuple[float, float]]:
    """Return values and errors at a temperature, in the order of ``KNOWN``.

    Steps of ``step`` beside beta should lose about as many digits by the errors of energies as by their length.
    """
    here = moments(beta) if beta > 0.0 or model.constraints else at_infinite_temperature(model)
    log_z, energy, mean, off = here
    capacity, off_capacity = 0.0, 0.0
    if beta > 0.0:
        beside = np.array([moments(beta * (1.0 + step * place)).energy for place in STENCIL])
        # beta^2 times minus the slope of the energy by beta
        capacity = -beta * float(np.dot(SLOPE, beside)) / step
        rough = -beta * float(beside[2] - beside[1]) / (2.0 * step)
        off_capacity = abs(capacity - rough) + 2.0 * beta * off / step
    n = max(model.n, 1)
    return [
        (log_z, off * (1.0 + beta)),
        (energy, off),
        (log_z + beta * energy, off * (1.0 + 2.0 * beta)),
        (capacity, off_capacity),
        (float(mean.sum()) / n, off / n),
        (float(mean @ mean) / n, 2.0 * off / n),
    ]


def with_what_is_certain(n: int, values: FloatArray, errors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Intersect values and their errors with what is known of every model: 0 <= entropy <= n log 2, and the like."""
    highest = {"entropy": n * np.log(2.0), "heat_capacity": np.inf, "magnetization": 1.0, "overlap": 1.0}
    lowest = {"magnetization": -1.0}
    values, errors = values.copy(), errors.copy()
    for name, high in highest.items():
        k, low = KNOWN.index(name), lowest.get(name, 0.0)
        first, last = np.clip(values[k] - errors[k], low, high), np.clip(values[k] + errors[k], low, high)
        values[k] = np.clip(values[k], low, high)
        errors[k] = np.maximum(values[k] - first, last - values[k])
    return values, errors
