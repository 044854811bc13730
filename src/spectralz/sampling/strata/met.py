"""What populations have met of the states of a model, and what sets of states that they have missed may weigh.

Chains that are in a set tell what it weighs at most. The entropy of their spins is that of independent ones at most. If
they meet the same states again, these and their neighbors hold a share of the set that can be measured. If they leave
the set, what is left of them is its share in what they reach.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from spectralz.sampling.heavy.pool import StatePool
from spectralz.sampling.heavy.quench import fields
from spectralz.sampling.heavy.state_space import KeptSide, WholeStates, distinct
from spectralz.sampling.run import log_mean_z, weights_of
from spectralz.sampling.strata.candidates import strongest_forest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from spectralz.model import FloatArray
    from spectralz.sampling.engines.protocol import Parallel
    from spectralz.sampling.heavy.state_space import StateSpace
    from spectralz.sampling.path import Path
    from spectralz.sampling.populations import Run

    # A set of states: which of some states are in it.
    Set = Callable[[NDArray[np.int8]], NDArray[np.bool_]]

# A population has met a set if its states there descend from this many independent families; in a small population,
# from this many times the root of the number of states.
FEWEST_FAMILIES, FAMILIES_PER_ROOT = 15.0, 0.25
# The more they weigh the more families are needed, or a few heavy ones decide: these many times their share of the
# weight, and of the states, up to this number.
FAMILIES_PER_SHARE, FAMILIES_PER_STATE, FEWEST_FAMILIES_OF_HEAVY = 90.0, 1.0 / 25.0, 30.0
# A set may lack weight although many families have met it: more than this, and than this part of what it has.
LACKING, LACKING_OF_SHARE = 0.005, 0.3
# A set is of no interest if its share of Z is at most this, as a logarithm; chains know it only roughly.
LOG_NEGLIGIBLE, LOG_ROUGHLY = -8.0, -2.0
# So many chains go on, and are seen so many times, with so many sweeps in between. If no more than this share of them
# remains in a set, they come and go, and the share is about that of the set in all that they reach.
CHAINS_GOING_ON, TIMES_SEEN, SWEEPS_BETWEEN, MOST_REMAINING = 32, 8, 2, 0.25
# To sum over the states around these, neighbors of the heaviest count if they are lighter by less than this many nats,
# and if there are no more than this many. States found again must be so many that their share is known.
STATES_WITH_NEIGHBORS, LIGHTEST_NEIGHBOR, MOST_NEIGHBORS, FEWEST_HITS = 64, 6.0, 3000, 5


@dataclass(frozen=True, eq=False)
class Population:
    """Populations of a model, and their means; random numbers and threads for chains beside them."""

    path: Path
    runs: Sequence[Run]
    mean: FloatArray
    rng: np.random.Generator
    parallel: Parallel

    @cached_property
    def forest(self) -> NDArray[np.int64]:
        """A forest of the strongest couplings between spins that are not summed out."""
        return strongest_forest(self.path.model) if self.path.sides is None else np.empty((0, 2), dtype=np.int64)

    @cached_property
    def space(self) -> StateSpace:
        """The states and their log-weights, without constants, the same side summed out as on the path."""
        sides = self.path.sides
        return WholeStates(self.path.model) if sides is None else KeptSide(self.path.model, sides)

    def whole(self, v: NDArray[np.int8]) -> NDArray[np.int8]:
        """Return states given by the spins that identify them, with 0 for those that are summed out."""
        if self.path.sides is None:
            return v
        x = np.zeros((len(v), self.path.n), dtype=np.int8)
        x[:, self.path.sides.kept] = v
        return x

    @cached_property
    def is_kept(self) -> NDArray[np.bool_]:
        """Which spins are not summed out; the others follow them."""
        is_kept = np.ones(self.path.n, dtype=np.bool_)
        if self.path.sides is not None:
            is_kept[self.path.sides.summed] = False
        return is_kept

    def may_miss(self, most: float) -> bool:
        """Return whether something of at most that log-weight may hold a share of Z."""
        return most > log_mean_z(self.runs) + LOG_NEGLIGIBLE + LOG_ROUGHLY

    def has_met(self, is_there: Set) -> bool:
        """Return whether enough families are among the states of a set."""
        share, families = self._share_and_families_in(is_there)
        states = sum(run.size for run in self.runs)
        of_light = min(FEWEST_FAMILIES, FAMILIES_PER_ROOT * math.sqrt(states))
        of_heavy = min(FEWEST_FAMILIES_OF_HEAVY, FAMILIES_PER_STATE * states, FAMILIES_PER_SHARE * share)
        return families >= max(of_light, of_heavy)

    def may_lack(self, is_there: Set, most: float) -> bool:
        """Return whether the states of a set may weigh much more than those that were met: many light families do."""
        share = self._share_and_families_in(is_there)[0]
        lacking = math.exp(min(most - log_mean_z(self.runs), 0.0)) - share
        return lacking > max(LACKING, LACKING_OF_SHARE * share)

    def families_in(self, is_there: Set) -> float:
        """Return the effective number of independent families among the states of a set."""
        return self._share_and_families_in(is_there)[1]

    def _share_and_families_in(self, is_there: Set) -> tuple[float, float]:
        total = squares = 0.0
        for run, weight in zip(self.runs, weights_of(self.runs), strict=True):
            families = float(weight.sum()) * run.family_weights(is_there(run.x).astype(np.float64))
            total, squares = total + float(families.sum()), squares + float((families**2).sum())
        return total, total**2 / squares if squares > 0.0 else 0.0


def most_of(here: Population, x: NDArray[np.int8], later: Sequence[NDArray[np.int8]], is_there: Set) -> float:
    """Return about the most that the log-weight of a set can be that chains are in, some of which go on."""
    limits = with_most_entropy(here, x), _summed_around(here, later, is_there), _of_remaining(here, later, is_there)
    return max(min(limits), float(here.space.log_weight(here.space.of_states(x)).max()))


def _of_remaining(here: Population, states: Sequence[NDArray[np.int8]], is_there: Set) -> float:
    """Return the log-weight of a set that chains leave, from the share of them that is left; otherwise infinity."""
    late = is_there(np.concatenate(states[len(states) // 2 :]))
    share = (np.count_nonzero(late) + 0.5) / (len(late) + 1.0)
    return log_mean_z(here.runs) + math.log(share) if share <= MOST_REMAINING else math.inf


def _summed_around(here: Population, states: Sequence[NDArray[np.int8]], is_there: Set) -> float:
    """Return the log-weight of what chains are in, from the weights of states around them; infinity if they are many.

    The weights of the states that half of the chains meet, and of their neighbors, add up to a part of it. Which part
    it is, the other half of the chains shows: the share of their states that are among these. In a glass this is far
    below what spins that are independent would weigh. The share is taken to be smaller by one deviation.
    """
    half = CHAINS_GOING_ON // 2
    halves = (np.concatenate([x[part] for x in states]) for part in (slice(half), slice(half, None)))
    first, second = (x[is_there(x)] for x in halves)
    return max(_summed_beside(here, first, second, is_there), _summed_beside(here, second, first, is_there))


def _summed_beside(here: Population, x: NDArray[np.int8], others: NDArray[np.int8], is_there: Set) -> float:
    """Return the log-weight of a set by the states around some of its states, whose share others measure."""
    v = distinct(here.space.of_states(x))
    pool = StatePool(here.path.model, here.space, len(v) + MOST_NEIGHBORS)
    pool.add_identified(v)
    if not pool.contains(others).any():
        return math.inf  # neighbors would hardly help, and take longer
    v = v[np.argsort(-here.space.log_weight(v), kind="stable")[:STATES_WITH_NEIGHBORS]]
    rows, spins = np.nonzero(here.space.flip_changes(v, here.path, here.parallel) > -LIGHTEST_NEIGHBOR)
    if len(rows) > MOST_NEIGHBORS:
        return math.inf
    neighbors = v[rows]
    neighbors[np.arange(len(rows)), spins] *= -1
    pool.add_identified(neighbors[is_there(here.whole(neighbors))])
    hits = float(np.count_nonzero(pool.contains(others)))
    if hits < FEWEST_HITS:
        return math.inf
    share = (hits - math.sqrt(hits)) / len(others)
    return float(np.logaddexp.reduce(pool.log_weight)) - math.log(share)


def with_most_entropy(here: Population, x: NDArray[np.int8]) -> float:
    """Return the mean log-weight of what chains are in plus a bound on their entropy.

    The entropy is at most that of independent spins with the same means, less the information that spins have about
    each other along a forest. Spins that are summed out are part of the log-weights. It is no less than the heaviest
    state, which chains that were disturbed may not be back at.
    """
    i, j = here.forest.T
    up = 0.5 * (1.0 + np.tanh(fields(here.path, x)).mean(axis=0)[here.is_kept])
    first, second, both = (np.mean(seen > 0, axis=0) for seen in (x[:, i], x[:, j], np.minimum(x[:, i], x[:, j])))
    alone = _entropies(first, 1.0 - first) + _entropies(second, 1.0 - second)
    together = _entropies(both, first - both, second - both, 1.0 - first - second + both)
    shared = np.maximum(alone - together - 0.5 / len(x), 0.0)  # so few chains seem to share a little in any case
    weights = here.space.log_weight(here.space.of_states(x))
    entropy = float(_entropies(up, 1.0 - up).sum()) - float(shared.sum())
    return max(float(weights.mean()) + entropy, float(weights.max()))


def _entropies(*shares: FloatArray) -> FloatArray:
    """Return the entropies of distributions, given the probabilities of each outcome in all of them."""
    from scipy.special import entr

    return np.asarray(sum(entr(np.maximum(share, 0.0)) for share in shares))
