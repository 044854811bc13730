"""The independent spins from which annealing reaches a bipartite model best, found by four short runs.

Their means play the part of the base rates of an RBM's units, from which annealed importance sampling is usually begun.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock, deadline
from spectralz.sampling.engines.collapsed import collapsed_engine, weights_of
from spectralz.sampling.populations import mean_and_shares

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Model
    from spectralz.sampling.engines.collapsed import Sides

# Damped steps of mean field that lead to a state.
MEAN_FIELD_STEPS = 30
# Short runs that try a base: points of the path, fewer if they would take more operations than this, and states.
FEWEST_POINTS, MOST_POINTS, MOST_CHAINS, PILOT_OPERATIONS = 20, 100, 256, 1e8
# How many there are, and the most of the time left that they may take.
PILOTS, MOST_OF_LEFT = 4, 0.5
# The means of a base come from at least this many effective states; this is the largest mean.
FEWEST_POOLED, SUREST = 64.0, 0.95
# A base that leads to a Z smaller than another one's by a factor of e to this has lost something.
LOST = 2.0
# A base reaches states whose log-probability is at most this many deviations below its mean; this share of the states
# may be beyond.
REACH, MOST_OUT_OF_REACH = 3.0, 0.02
# Largest field of a base that only says which units are mostly off.
LARGEST_BIAS = 1.0
# Factor by which fields are multiplied to reach more, and how often.
WEAKER, MOST_WEAKENINGS = 0.7, 12


@dataclass(frozen=True)
class Pilot:
    """A short run from a base: log-weights of its states, the states, and the largest log-weight in the model."""

    base: FloatArray
    log_weight: FloatArray
    states: NDArray[np.int8]
    heaviest: float

    @property
    def log_z(self) -> float:
        """Logarithm of the mean weight."""
        return mean_and_shares(self.log_weight)[0]

    @property
    def log_z_without_largest(self) -> float:
        """The same without the largest weight, which may be exceptional."""
        return mean_and_shares(np.sort(self.log_weight)[:-1])[0]

    @property
    def mean_log_weight(self) -> float:
        """The mean log-weight, which is below log Z by more the more the weights scatter."""
        return float(self.log_weight.mean())


def base_rates(model: Model, sides: Sides) -> FloatArray:
    """Return the fields of independent spins from which short runs reach the model with the least scatter.

    This anneals four pilots of up to 1e8 operations each, unless the model has no fields; if there is no time for
    them, the base has the model's own fields. The pilots begin from these; from mean fields halfway between two phases;
    from fair coins, which come to every phase that is reached from high temperature; and from fields with the means of
    the states that the others arrive at. A base that leads to a smaller Z than another has lost a phase, however little
    its weights scatter, and is not chosen: an unbiased estimate exceeds Z by a factor e^c with probability at most
    e^-c.
    """
    if not np.any(model.field):
        return np.zeros(model.n)
    if deadline.current().left * MOST_OF_LEFT < PILOTS * PILOT_OPERATIONS / clock.OPERATIONS_PER_SECOND:
        return model.field.copy()
    runs = [pilot(model, sides, base) for base in (model.field.copy(), _between_phases(model, sides))]
    coins = pilot(model, sides, np.zeros(model.n))
    if coins.log_z > max(run.log_z_without_largest for run in runs) - LOST:  # else they are lost themselves
        runs.append(coins)
    x, weight = _pooled(runs)
    mean = np.clip(weight @ x, -SUREST, SUREST)  # a few states cannot tell more
    runs.append(pilot(model, sides, _weakened(np.arctanh(mean), sides, x, weight)))
    largest = max(run.log_z_without_largest for run in runs)
    heaviest = max(run.heaviest for run in runs)
    fit = [run for run in runs if run.log_z > largest - LOST and run.heaviest > heaviest - LOST]
    return max(fit or runs[:1], key=lambda run: run.mean_log_weight).base


def weak_biases(model: Model) -> FloatArray:
    """Return the biases of the model's spins as units 0 and 1, which are their fields if all others are -1, limited.

    In a machine with large weights, the means that short runs find are those of a wrong valley. These fields only say
    which units are mostly off, and leave states free to find others.
    """
    fields = model.field - model.storage.for_kernels().times(np.ones(model.n))
    return np.clip(fields, -LARGEST_BIAS, LARGEST_BIAS)


def pilot(model: Model, sides: Sides, base: FloatArray) -> Pilot:
    """Anneal a few states from a base to the model."""
    from spectralz.kernels.sampling.lanes import LANES

    engine = collapsed_engine(model, sides, base)
    most = PILOT_OPERATIONS / engine.operations
    size = MOST_CHAINS if most >= FEWEST_POINTS * MOST_CHAINS else LANES
    points = np.linspace(0.0, 1.0, int(min(max(most / size, FEWEST_POINTS), MOST_POINTS)) + 1)
    clock.charge(size * engine.operations * len(points))
    chains = engine.start(size, np.random.default_rng(0))
    _, on = chains.sweep(np.append(0.0, points[:-2]), points[:-1], points[1:], 1)
    log_weight = engine.log_z_of_base + on.sum(axis=0)
    return Pilot(base, log_weight, chains.states(), float(chains.log_weights_at_end().max()))


def _between_phases(model: Model, sides: Sides) -> FloatArray:
    """Return the average mean fields of two states: the one reached from zero means, and that of its mirror image."""
    weights, kept, summed = weights_of(model, sides), model.field[sides.kept], model.field[sides.summed]

    def relaxed(v: FloatArray, h: FloatArray) -> tuple[FloatArray, FloatArray]:
        for _ in range(MEAN_FIELD_STEPS):
            v, h = 0.5 * (v + np.tanh(kept + weights @ h)), 0.5 * (h + np.tanh(summed + v @ weights))
        return v, h

    v, h = relaxed(np.zeros(len(kept)), np.zeros(len(summed)))
    other_v, other_h = relaxed(-v, -h)
    base = np.empty(model.n)
    base[sides.kept] = kept + weights @ (0.5 * (h + other_h))
    base[sides.summed] = summed + (0.5 * (v + other_v)) @ weights
    return base


def _pooled(runs: Sequence[Pilot]) -> tuple[NDArray[np.int8], FloatArray]:
    """Return the states of all runs, and their weights, flattened until they are even enough."""
    log_weight = np.concatenate([run.log_weight for run in runs])
    log_weight -= log_weight.max()
    weight = np.exp(log_weight)
    while weight.sum() ** 2 < FEWEST_POOLED * (weight**2).sum():
        log_weight *= 0.5
        weight = np.exp(log_weight)
    return np.concatenate([run.states for run in runs]), weight / weight.sum()


def _weakened(base: FloatArray, sides: Sides, x: NDArray[np.int8], weight: FloatArray) -> FloatArray:
    """Weaken a base's fields until the states that matter are all within its reach.

    Chains from a base that is sure of one phase do not come to another one, and nothing in their weights shows it.
    """
    v = x[:, sides.kept].astype(np.float64)
    for _ in range(MOST_WEAKENINGS):
        field = base[sides.kept]
        mean = np.tanh(field)
        deviation = np.sqrt(field**2 @ (1.0 - mean**2))
        if weight @ (v @ field < field @ mean - REACH * deviation) <= MOST_OUT_OF_REACH:
            return base
        base = WEAKER * base
    return np.zeros(len(base))
