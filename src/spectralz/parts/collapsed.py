"""Chains of bipartite models, such as restricted Boltzmann machines, with the larger side summed out analytically.

A chain keeps the spins of one side. Given these the other side's spins are independent, so that the sum over all their
states is a product of 2cosh. It leaves fewer spins whose weights can scatter, and a sweep is two matrix products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock
from spectralz.kernels.coupling import frozen
from spectralz.kernels.single_spin import log_2cosh
from spectralz.parts.lanes import (
    Compiled,
    Lanes,
    Map,
    dense_operations,
    log_z_of_fields,
    one_after_the_other,
    sparse_operations,
)
from spectralz.parts.populations import mean_and_shares

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.sampling.collapsed import CollapsedPath
    from spectralz.model import FloatArray, Ising
    from spectralz.model.coupling import IntArray

__all__ = ["CollapsedEngine", "Sides", "base_rates", "sides_of", "two_sides"]

# In operations: a spin that is drawn, one that is summed out in a weight, and an entry of W in the two products.
DRAW_OPERATIONS, SUM_OPERATIONS, ENTRY_OPERATIONS = 1.1, 2.8, 0.034
# A collapsed sweep may take so many times as long as one spin by spin. On random bipartite graphs the variance of the
# weights times the time is still smaller at 2; on cold grids, though, whose phases are many, no base is good.
MOST_TIMES = 1.0
# Damped steps of mean field that lead to a state.
MEAN_FIELD_STEPS = 30
# Short runs that try a base: their points on the path, fewer where they would take more operations than this.
FEWEST_POINTS, MOST_POINTS, MOST_CHAINS, PILOT_OPERATIONS = 20, 100, 256, 1e8
# States that weights leave in the means that a base is made of, at least, and its largest mean.
FEWEST_POOLED, SUREST = 64.0, 0.95
# A base that leads to a smaller Z than another, by a factor of e to this, has lost something.
LOST = 2.0
# A base reaches states whose log-probability is so many deviations below its mean one; a share of them may be beyond.
REACH, MOST_OUT_OF_REACH = 3.0, 0.02
# What fields are multiplied by to reach more, and how often.
WEAKER, MOST_WEAKENINGS = 0.7, 12


@dataclass(frozen=True)
class Sides:
    """The two sides of a bipartite model: spins of a side are coupled to the other side's only.

    Attributes
    ----------
    kept, summed
        The spins of the smaller side and of the larger one, in order.
    """

    kept: IntArray
    summed: IntArray


def two_sides(model: Ising) -> Sides | None:
    """Return the two sides of a bipartite model, the second as large as it can be; None if it is not bipartite."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import connected_components

    n = model.n
    if not n or 4 * model.edge_count > n * n:  # more than two sides of n / 2 can have; seen without writing edges out
        return None
    pairs, _ = model.edges()
    i, j = pairs.T
    # Every spin twice, each copy coupled to its neighbors' other copies: the copies of a spin meet on an odd cycle.
    rows, columns = np.concatenate([i, j]), np.concatenate([j, i]) + n
    cover = sp.coo_array((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(2 * n, 2 * n))
    _, label = connected_components(cover, directed=False)
    first, second = label[:n], label[n:]
    if np.any(first == second):
        return None
    is_first, component = first < second, np.minimum(first, second)
    surplus = np.bincount(component, weights=np.where(is_first, 1.0, -1.0), minlength=2 * n)
    is_summed = is_first == (surplus[component] >= 0.0)
    return Sides(np.flatnonzero(~is_summed), np.flatnonzero(is_summed))


def sides_of(model: Ising) -> Sides | None:
    """Return the sides of a model for which collapsed chains pay; None if it has no sides, or they do not pay."""
    sides = two_sides(model)
    if sides is None or not len(sides.kept):
        return None
    spin_by_spin = min(sparse_operations(model.n, 2 * model.edge_count), dense_operations(model.n))
    return sides if operations_of(sides) <= MOST_TIMES * spin_by_spin else None


def operations_of(sides: Sides) -> float:
    """Return what a collapsed sweep over one state counts."""
    kept, summed = len(sides.kept), len(sides.summed)
    return DRAW_OPERATIONS * (kept + summed) + SUM_OPERATIONS * summed + ENTRY_OPERATIONS * kept * summed


class CollapsedEngine(Compiled):
    """Chains of a bipartite model with a side summed out.

    Parameters
    ----------
    model
        The model.
    sides
        Which spins are kept and which are summed out.
    spread
        How work on chunks of 64 states is spread over threads.
    base
        Fields of the independent spins that the path begins with; by default those of :func:`base_rates`.
    """

    multiplies = True

    def __init__(
        self, model: Ising, sides: Sides, spread: Map = one_after_the_other, base: FloatArray | None = None
    ) -> None:
        from spectralz.kernels.sampling.collapsed import CollapsedPath

        self.n = model.n
        self.sides = sides
        weights, kept, summed = parts_of(model, sides)
        if base is None:
            base = base_rates(model, sides)
        self.path = CollapsedPath(
            frozen(weights.astype(np.float32)),
            frozen(base[sides.kept]),
            frozen(kept - base[sides.kept]),
            frozen(base[sides.summed]),
            frozen(summed - base[sides.summed]),
        )
        self.log_z_of_base = log_z_of_fields(base)
        self.operations = operations_of(sides)
        self.bytes_per_state = 4 * self.n + 64
        self.spread = spread

    def start(self, size: int, rng: np.random.Generator) -> CollapsedChains:
        """Return states drawn from the base."""
        chains = CollapsedChains(self, size, rng)
        chains.draw()
        return chains

    def start_from(self, x: NDArray[np.int8], rng: np.random.Generator) -> CollapsedChains:
        """Return chains that begin in given states."""
        chains = CollapsedChains(self, len(x), rng)
        chains.fill(x)
        return chains


def parts_of(model: Ising, sides: Sides) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the couplings J between the sides, kept x summed, and the fields of either side."""
    J = 2.0 * model.storage.written_out.block(sides.kept, sides.summed)
    weights = J if isinstance(J, np.ndarray) else J.toarray()
    return np.ascontiguousarray(weights), model.field[sides.kept], model.field[sides.summed]


def base_rates(model: Ising, sides: Sides) -> FloatArray:
    """Return the fields of independent spins from which short runs arrive at the model with the least scatter.

    Tried are the model's own fields; the mean fields of two phases, halfway between them; and fields with the means of
    the states that runs from these two arrive at, weighed as far as their weights allow. A base that leads to a smaller
    Z than another one has lost a phase, however little its weights scatter, and is not chosen: an estimate of Z that is
    unbiased exceeds Z by a factor e^c with a probability of e^-c at most.
    """
    if not np.any(model.field):
        return np.zeros(model.n)
    runs = [_Pilot(model, sides, base) for base in (model.field.copy(), _between_phases(model, sides))]
    x, weight = _pooled(runs)
    mean = np.clip(weight @ x, -SUREST, SUREST)  # none of them surer than a few states can tell
    runs.append(_Pilot(model, sides, _weakened(np.arctanh(mean), sides, x, weight)))
    largest = max(run.log_z_without_largest for run in runs)
    heaviest = max(run.heaviest for run in runs)
    fit = [run for run in runs if run.log_z > largest - LOST and run.heaviest > heaviest - LOST]
    return max(fit or runs[:1], key=lambda run: run.log_z_expected).base


def _between_phases(model: Ising, sides: Sides) -> FloatArray:
    """Return the mean fields of two states, averaged: the one that zero means lead to, and that of its mirror image."""
    weights, kept, summed = parts_of(model, sides)

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


class _Pilot:
    """A short run from a base."""

    def __init__(self, model: Ising, sides: Sides, base: FloatArray) -> None:
        from spectralz.kernels.sampling.lanes import LANES

        engine = CollapsedEngine(model, sides, base=base)
        most = PILOT_OPERATIONS / engine.operations
        size = MOST_CHAINS if most >= FEWEST_POINTS * MOST_CHAINS else LANES
        betas = np.linspace(0.0, 1.0, int(min(max(most / size, FEWEST_POINTS), MOST_POINTS)) + 1)
        clock.charge(size * engine.operations * len(betas))
        chains = engine.start(size, np.random.default_rng(0))
        _, on = chains.sweep(np.append(0.0, betas[:-2]), betas[:-1], betas[1:], 1)
        self.base = base
        self.log_weight = engine.log_z_of_base + on.sum(axis=0)
        self.states = chains.states()
        self.heaviest = float(chains.log_weights_at_end().max())

    @property
    def log_z(self) -> float:
        """Logarithm of the mean weight."""
        return mean_and_shares(self.log_weight)[0]

    @property
    def log_z_without_largest(self) -> float:
        """The same without the largest weight, which may be larger than any that is to be expected."""
        return mean_and_shares(np.sort(self.log_weight)[:-1])[0]

    @property
    def log_z_expected(self) -> float:
        """What log Z is on average according to such runs, which is less than it is by what they scatter."""
        return float(self.log_weight.mean())


def _pooled(runs: list[_Pilot]) -> tuple[NDArray[np.int8], FloatArray]:
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


class CollapsedChains(Lanes):
    """States of the kept side, with the fields that they have on the summed side."""

    def __init__(self, engine: CollapsedEngine, size: int, rng: np.random.Generator) -> None:
        super().__init__(size, engine.spread, rng)
        self._engine = engine
        self._path: CollapsedPath = engine.path
        kept, summed = self._path.weights.shape
        self._v = self._room(kept, np.float32)
        self._pushes = self._room(summed, np.float32)
        self._beta = 0.0
        # The summed side of states that were given, until the first sweep.
        self._given: NDArray[np.int8] | None = None

    def draw(self) -> None:
        """Draw the states from the base."""
        from spectralz.kernels.sampling.lanes import draw_spins

        def work(chunk: int) -> None:
            draw_spins(self._v[chunk], self._random[chunk], self._path.kept)
            self._push(chunk)

        self._each(work)

    def fill(self, x: NDArray[np.int8]) -> None:
        """Put given states into the lanes."""
        sides = self._engine.sides
        self._put(x[:, sides.kept], self._v)
        self._given = x[:, sides.summed]
        self._each(self._push)

    def _push(self, chunk: int) -> None:
        np.matmul(self._path.weights.T, self._v[chunk], out=self._pushes[chunk])

    def sweep(
        self, before: FloatArray, at: FloatArray, after: FloatArray, sweeps: int
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep at one point of the path after the other."""
        from spectralz.kernels.sampling.collapsed import sweep_collapsed
        from spectralz.kernels.sampling.lanes import LANES

        points = np.stack([before, at, after], axis=1)
        back, on = self._room(len(at), np.float64), self._room(len(at), np.float64)
        kept, summed = self._path.weights.shape

        def work(chunk: int) -> None:
            sweep_collapsed(
                self._v[chunk],
                self._pushes[chunk],
                self._random[chunk],
                points,
                sweeps,
                self._path,
                np.empty((summed, LANES), np.float32),
                np.empty((kept, LANES), np.float32),
                np.empty((6, LANES)),
                np.empty(LANES, np.float32),
                back[chunk],
                on[chunk],
            )

        self._each(work)
        if len(at):
            self._beta, self._given = float(at[-1]), None
        return self._joined(back), self._joined(on)

    def log_weights_at_end(self) -> FloatArray:
        """Return the log-weights of the states in the model, the other side summed out."""
        path = self._path
        fields = (path.summed + path.summed_change)[:, None] + self._pushes
        linear = np.einsum("i,cil->cl", path.kept + path.kept_change, self._v)
        return np.asarray((linear + log_2cosh(fields).sum(axis=1)).ravel()[: self.size])

    def take(self, places: NDArray[np.int64]) -> None:
        """Let the state at ``places[r]`` become the r-th."""
        self._v, self._pushes = self._taken(self._v, places), self._taken(self._pushes, places)
        if self._given is not None:
            self._given = self._given[places]

    def states(self) -> NDArray[np.int8]:
        """Return the states, one a row, the summed side drawn given the kept one at the last point of the path."""
        from spectralz.kernels.sampling.collapsed import draw_side
        from spectralz.kernels.sampling.lanes import LANES

        sides, path = self._engine.sides, self._path
        x = np.empty((self.size, self._engine.n), dtype=np.int8)
        x[:, sides.kept] = self._rows(self._v)
        if self._given is not None:
            x[:, sides.summed] = self._given
            return x

        def work(chunk: int) -> None:
            h = np.empty((len(sides.summed), LANES), np.float32)
            draw_side(h, self._pushes[chunk], self._random[chunk], self._beta, path.summed, path.summed_change)
            these = slice(chunk * LANES, min((chunk + 1) * LANES, self.size))
            x[these, sides.summed] = h.T[: these.stop - these.start]

        self._each(work)
        return x
