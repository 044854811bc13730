"""Draw restricted Boltzmann machines that fool annealing: strong units, several modes, planted patterns, lone states.

The smaller layer has 17 or 18 units, too many for a sum over all its states in ``auto``, and few enough for the
reference. As in ``known_models.py``, models are relabeled and gauged at random, and with ``small`` have at most 14
spins.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp

import spectralz as sz
from benchmarks.known_models import Known, Random, any_scale, disguised, layers_log_z, uniform, whole

# Units of the smaller layer whose states are summed one after the other; the others at once.
ONE_BY_ONE = 6


def _machine(rng: Random, weights: np.ndarray, fields: tuple[np.ndarray, np.ndarray], about: str) -> Known:
    model = sz.Ising.from_bipartite(weights, np.concatenate(fields))
    about = f"{weights.shape[0]} + {weights.shape[1]} units, {about}"
    return Known(disguised(rng, sz.Ising(model.field, model.coupling)), _log_z(weights, *fields), about)


def _log_z(weights: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    """Return log Z by a sum over the states of the second layer."""
    few = min(ONE_BY_ONE, len(second))
    signs = 2.0 * ((np.arange(2**few)[:, None] >> np.arange(few)) & 1) - 1.0
    rest = weights[:, few:], second[few:]
    return float(
        logsumexp([x @ second[:few] + layers_log_z(rest[0], first + weights[:, :few] @ x, rest[1]) for x in signs])
    )


def _sizes(rng: Random, small: bool) -> tuple[int, int]:
    return (whole(rng, 4, 8), whole(rng, 2, 5)) if small else (whole(rng, 30, 90), whole(rng, 17, 18))


def _noise(rng: Random, visible: int, hidden: int) -> tuple[np.ndarray, float]:
    scale = any_scale(rng, 0.2, 1.5)
    return scale / math.sqrt(visible) * rng.standard_normal((visible, hidden)), scale


def strong_units(rng: Random, small: bool = False) -> Known:
    """Draw one or two hidden units with strong weights to all visible ones, whose states weigh about the same."""
    visible, hidden = _sizes(rng, small)
    weights, scale = _noise(rng, visible, hidden)
    count, strength = whole(rng, 1, 2), uniform(rng, 0.3, 1.5)
    weights[:, :count] += strength * rng.choice([-1.0, 1.0], (visible, count))
    fields = uniform(rng, 0.0, 0.5)
    first, second = fields * rng.standard_normal(visible), rng.standard_normal(hidden)
    return _machine(rng, weights, (first, second), f"{count} strong ones {strength}, noise {scale}, fields {fields}")


def two_modes(rng: Random, small: bool = False) -> Known:
    """Draw two patterns of the visible layer, each held by half of the hidden units, one against the other."""
    visible, hidden = _sizes(rng, small)
    weights, scale = _noise(rng, visible, hidden)
    patterns, strength = rng.choice([-1.0, 1.0], (2, visible)), uniform(rng, 0.1, 0.5)
    weights += strength * patterns[np.arange(hidden) % 2].T
    tilt = uniform(rng, -0.5, 0.5)
    first = np.zeros(visible)
    second = tilt * np.where(np.arange(hidden) % 2 == 0, 1.0, -1.0)
    return _machine(rng, weights, (first, second), f"patterns {strength}, noise {scale}, tilt {tilt}")


def planted_patterns(rng: Random, small: bool = False) -> Known:
    """Draw a pattern for every hidden unit, as of a Hopfield network."""
    visible, hidden = _sizes(rng, small)
    strength, fields = uniform(rng, 0.1, 0.8), any_scale(rng, 0.01, 1.0)
    weights = strength * rng.choice([-1.0, 1.0], (visible, hidden))
    first, second = fields * rng.standard_normal(visible), fields * rng.standard_normal(hidden)
    return _machine(rng, weights, (first, second), f"patterns {strength}, fields {fields}")


def lone_states(rng: Random, small: bool = False) -> Known:
    """Draw strong weights of which all favor one state of the hidden layer, against their fields."""
    visible, hidden = _sizes(rng, small)
    weights, scale = _noise(rng, visible, hidden)
    state, strength, share = rng.choice([-1.0, 1.0], hidden), uniform(rng, 0.1, 0.6), uniform(rng, 0.3, 1.0)
    weights += strength * np.outer(rng.choice([-1.0, 1.0], visible), state)
    second = -share * strength * visible * 0.3 * state / math.sqrt(hidden)
    return _machine(rng, weights, (np.zeros(visible), second), f"one state {strength}, noise {scale}, against {share}")


MACHINES: dict[str, Callable[..., Known]] = {
    family.__name__: family for family in (strong_units, two_modes, planted_patterns, lone_states)
}
