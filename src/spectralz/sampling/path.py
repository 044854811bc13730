"""The path from a base, whose Z is known, to a model.

At the point beta of the path a state weighs exp(E_0(x) + beta (E(x) - E_0(x))): that of the base at beta = 0, that of
the model at beta = 1. A path is a value. The functions here make one, and say what that costs.

Four short runs find the independent spins from which annealing reaches a bipartite model best. Their means play the
part of the base rates of an RBM's units, from which annealed importance sampling is usually begun.

A subgraph of small treewidth can be a base, too: its log Z is known, and its states are drawn exactly. Only the
remaining couplings are then annealed in. On a random graph of degree 3 the strongest two thirds of the edges form a
tree, and the path from there is twenty times shorter than from independent spins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectralz._support import clock, costs, deadline
from spectralz._support.devices import FEWEST_SPARSE_SPINS, device_for
from spectralz.errors import OptionError
from spectralz.kernels.coupling import frozen
from spectralz.kernels.single_spin import log_2cosh
from spectralz.sampling.engines.collapsed import collapsed_engine, sides_that_pay, weights_of
from spectralz.sampling.engines.dense import dense_engine
from spectralz.sampling.engines.device import can_be_swept
from spectralz.sampling.engines.lanes import fits_single_precision
from spectralz.sampling.engines.sparse import SparseEngine, sparse_engine, suit
from spectralz.sampling.population import mean_and_shares

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings
    from spectralz.kernels.k_trees import Growth
    from spectralz.model import FloatArray, Model
    from spectralz.sampling.engines.collapsed import Sides
    from spectralz.sampling.engines.lanes import Engine


# Tables have at most 2^8 entries each, and this many in total.
MOST_WIDTH, MOST_ENTRIES = 8, 8_000_000
# Replaces a strength of 0 for an existing coupling.
LEAST_STRENGTH = 1e-300


def width_of(n: int) -> int:
    """Return the largest width of a subgraph whose tables are made in one or two tenths of a second.

    Examples
    --------
    >>> width_of(100), width_of(100_000), width_of(10**7)
    (8, 6, 1)
    """
    return max(min(int(MOST_ENTRIES // max(n, 1)).bit_length() - 1, MOST_WIDTH), 1)


@dataclass(frozen=True)
class Subgraph:
    """A partial k-tree with the strongest couplings of a model that fit into one.

    Attributes
    ----------
    log_z
        Of the subgraph with the model's fields.
    kept
        Which entries of the couplings' CSR matrix are in it.
    """

    log_z: float
    kept: NDArray[np.bool_]
    _growth: Growth
    _begin: NDArray[np.int64]
    _log_odds: NDArray[np.float32]

    def draw(self, x: NDArray[np.int8], state: NDArray[np.uint32]) -> None:
        """Draw 64 states into ``x``, (n, 64), with the random numbers of the lanes."""
        from spectralz.kernels.k_trees import draw_from_tables

        draw_from_tables(x, state, self._growth, self._begin, self._log_odds)


def strongest_subgraph(theta: FloatArray, couplings: Couplings, width: int) -> Subgraph:
    """Return a subgraph of a given width, grown along the strongest couplings of a sparse graph."""
    from spectralz.kernels.k_trees import grow, sum_out

    n = len(theta)
    clock.charge(costs.SUBGRAPH_ENTRY * n * 2**width + costs.SUBGRAPH_COUPLING * width * len(couplings.data))
    # What an edge alone adds to log Z.
    strength = np.maximum(log_2cosh(couplings.data) - math.log(2.0), LEAST_STRENGTH)
    growth = grow(couplings.indptr, couplings.indices, strength, width)
    begin = np.concatenate([[0], np.cumsum(1 << growth.sizes)])
    log_z, log_odds = sum_out(growth, theta, couplings, begin)
    return Subgraph(log_z, frozen(growth.kept), growth, begin, log_odds)


# ----------------------------------------------------------------------------------------------------- bases with pairs


# Damped steps of mean field that lead to a state.
MEAN_FIELD_STEPS = 30
# Short runs that try a base: points of the path, fewer if they would take more operations than this, and states.
FEWEST_POINTS, MOST_POINTS, MOST_CHAINS, SHORT_OPERATIONS = 20, 100, 256, 1e8
# How many there are, and the most of the time left that they may take.
SHORT_RUNS, MOST_OF_LEFT = 4, 0.5
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


class ShortRun(NamedTuple):
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
        """Logarithm of the mean weight without the largest one, which may be exceptional."""
        return mean_and_shares(np.sort(self.log_weight)[:-1])[0]


def base_rates(model: Model, sides: Sides) -> FloatArray:
    """Return the fields of independent spins from which short runs reach the model with the least scatter.

    This anneals four short runs of up to 1e8 operations each, unless the model has no fields; if there is no time for
    them, the base has the model's own fields. They begin from these; from mean fields halfway between two phases;
    from fair coins, which come to every phase that is reached from high temperature; and from fields with the means of
    the states that the others arrive at. A base that leads to a smaller Z than another has lost a phase, however little
    its weights scatter, and is not chosen: an unbiased estimate exceeds Z by a factor e^c with probability at most
    e^-c.
    """
    if not np.any(model.field):
        return np.zeros(model.n)
    if deadline.current().left * MOST_OF_LEFT < SHORT_RUNS * SHORT_OPERATIONS / clock.OPERATIONS_PER_SECOND:
        return model.field.copy()
    runs = [short_run(model, sides, base) for base in (model.field.copy(), _between_phases(model, sides))]
    coins = short_run(model, sides, np.zeros(model.n))
    if coins.log_z > max(run.log_z_without_largest for run in runs) - LOST:  # else they are lost themselves
        runs.append(coins)
    x, weight = _pooled(runs)
    mean = np.clip(weight @ x, -SUREST, SUREST)  # a few states cannot tell more
    runs.append(short_run(model, sides, _weakened(np.arctanh(mean), sides, x, weight)))
    largest = max(run.log_z_without_largest for run in runs)
    heaviest = max(run.heaviest for run in runs)
    fit = [run for run in runs if run.log_z > largest - LOST and run.heaviest > heaviest - LOST]
    return max(fit or runs[:1], key=lambda run: run.log_weight.mean()).base


def weak_biases(model: Model) -> FloatArray:
    """Return the biases of the model's spins as units 0 and 1, which are their fields if all others are -1, limited.

    In a machine with large weights, the means that short runs find are those of a wrong valley. These fields only say
    which units are mostly off, and leave states free to find others.
    """
    fields = model.field - model.storage.for_kernels().times(np.ones(model.n))
    return np.clip(fields, -LARGEST_BIAS, LARGEST_BIAS)


def short_run(model: Model, sides: Sides, base: FloatArray) -> ShortRun:
    """Anneal a few states from a base to the model."""
    from spectralz.kernels.sampling.lanes import LANES

    engine = collapsed_engine(model, sides, base)
    most = SHORT_OPERATIONS / engine.operations
    size = MOST_CHAINS if most >= FEWEST_POINTS * MOST_CHAINS else LANES
    points = np.linspace(0.0, 1.0, int(min(max(most / size, FEWEST_POINTS), MOST_POINTS)) + 1)
    clock.charge(size * engine.operations * len(points))
    chains = engine.start(size, np.random.default_rng(0))
    _, on = chains.sweep(np.append(0.0, points[:-2]), points[:-1], points[1:], 1)
    log_weight = engine.log_z_of_base + on.sum(axis=0)
    x = chains.states()
    v = x[:, sides.kept].astype(np.float64)
    of_summed = log_2cosh(model.field[sides.summed] + v @ weights_of(model, sides)).sum(axis=1)
    return ShortRun(base, log_weight, x, float((v @ model.field[sides.kept] + of_summed).max()))


def _between_phases(model: Model, sides: Sides) -> FloatArray:
    """Return the average mean fields of two states: the one reached from zero means, and that of its mirror image."""
    weights, kept, summed = weights_of(model, sides), model.field[sides.kept], model.field[sides.summed]
    v, h = np.zeros(len(kept)), np.zeros(len(summed))
    reached = []
    for sign in (1.0, -1.0):
        v, h = sign * v, sign * h
        for _ in range(MEAN_FIELD_STEPS):
            v, h = 0.5 * (v + np.tanh(kept + weights @ h)), 0.5 * (h + np.tanh(summed + v @ weights))
        reached.append((v, h))
    base = np.empty(model.n)
    base[sides.kept] = kept + weights @ (0.5 * (reached[0][1] + reached[1][1]))
    base[sides.summed] = summed + (0.5 * (reached[0][0] + reached[1][0])) @ weights
    return base


def _pooled(runs: Sequence[ShortRun]) -> tuple[NDArray[np.int8], FloatArray]:
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


# -------------------------------------------------------------------------------------------- bases of bipartite models


@dataclass(frozen=True, eq=False)
class Path:
    """A model, the base that the path to it begins from, and how states are swept on the way.

    Attributes
    ----------
    model
        The model at the end of the path.
    base
        Fields of the independent spins that the path begins from.
    in_double
        Whether states are drawn in double precision.
    sides
        The sides of a bipartite model of which one is summed out, or None.
    flips
        Whether the spins of the side that is not summed out are flipped one by one, instead of all together.
    clusters
        Whether clusters of spins are turned before sweeps where they are large.
    subgraph
        A subgraph whose couplings belong to the base, or None.
    origin
        Another model that the path begins from instead of a base; Z is then relative to its Z.
    """

    model: Model
    base: FloatArray
    in_double: bool = False
    sides: Sides | None = None
    flips: bool = False
    clusters: bool = False
    subgraph: Subgraph | None = None
    origin: Model | None = None

    @property
    def n(self) -> int:
        """Number of spins."""
        return self.model.n

    @property
    def theta(self) -> FloatArray:
        """Fields of the model."""
        return np.ascontiguousarray(self.model.field)

    @property
    def couplings(self) -> Couplings:
        """Couplings J = 2 A of the model without the diagonal."""
        return self.model.storage.for_kernels()

    @property
    def has_terms(self) -> bool:
        """Whether the model has terms of three and more spins, for which there are sweeps of single spins alone."""
        return self.model.higher.number > 0

    @property
    def entries(self) -> int:
        """Number of neighbors of all spins, each term counted as one."""
        return len(self.couplings.data) + len(self.model.higher.spin)

    @cached_property
    def engine(self) -> Engine:
        """What sweeps states along the path; made when it is first used, on a GPU if one is to be used."""
        if self.origin is not None:
            from spectralz.sampling.bridge import between_engine

            return between_engine(self.origin, self.model, _engine_between)
        device = self.device
        if device is None:
            return self.compiled_engine
        from spectralz.sampling.engines.device import device_collapsed_engine, device_dense_engine, device_sparse_engine

        if self.sides is not None:
            return device_collapsed_engine(self.model, self.sides, self.base, device, flips=self.flips)
        engine_of = device_dense_engine if self.couplings.is_dense else device_sparse_engine
        return engine_of(self.theta, self.couplings, self.base, device)

    @property
    def device(self) -> Any | None:
        """The device of JAX that states are swept on; None for the CPU, where clusters and subgraphs stay."""
        if self.in_double or self.origin is not None or self.has_terms:
            return None
        if self.sides is not None or self.couplings.is_dense:
            return device_for(self.n)
        has_moves = self.clusters or self.subgraph is not None
        return device_for(self.n, suits=not has_moves and can_be_swept(self.n), fewest=FEWEST_SPARSE_SPINS)

    @property
    def compiled_engine(self) -> Engine:
        """What sweeps states on the CPU."""
        theta, couplings, in_double = self.theta, self.couplings, self.in_double
        if self.sides is not None:
            return collapsed_engine(self.model, self.sides, self.base, flips=self.flips)
        if couplings.is_dense and not self.has_terms:
            return dense_engine(theta, couplings, self.base, in_double=in_double)
        terms = self.model.terms_by_spin if self.has_terms else None
        return sparse_engine(
            theta,
            couplings,
            self.base,
            terms=terms,
            in_double=in_double,
            subgraph=self.subgraph,
            clusters=self.clusters,
        )

    def __getstate__(self) -> dict[str, Any]:
        # The engine is made anew, by the process that uses it.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def can_begin_from_subgraph(self) -> bool:
        """Whether couplings of a subgraph could belong to the base, and there are some."""
        if self.in_double or self.has_terms:
            return False
        return isinstance(self.engine, SparseEngine) and len(self.couplings.data) > 0


def from_coins(model: Model) -> Path:
    """Return the path from n fair coins; its points are temperatures: beta times the model."""
    return from_fields(model, np.zeros(model.n), sides=sides_that_pay(model))


def from_fields(model: Model, fields: FloatArray, *, sides: Sides | None = None) -> Path:
    """Return the path from independent spins in given fields, without clusters.

    ``sides`` says which side of a bipartite model to sum out, if its fields fit into single precision.
    """
    in_double = not _fits(model)
    return Path(model, fields, in_double, None if in_double else sides)


def path_to(model: Model, *, clusters: bool | None = False, in_double: bool = False) -> Path:
    """Return the path that suits a model.

    It begins from independent spins in the model's own fields; from fields that four short runs find
    (:func:`base_rates`, up to 4e8 operations) if a side of the model is summed out; from fair coins if its fields are
    too large for single precision.

    Parameters
    ----------
    model
        The model.
    clusters
        Whether clusters of spins are turned where they are large; None if that is of use. Each state then takes long,
        so this is for few states and many points.
    in_double
        Whether states are drawn in double precision.
    """
    if not _fits(model):
        return from_coins(model)
    sides = None if in_double else sides_that_pay(model)
    base = np.ascontiguousarray(model.field) if sides is None else base_rates(model, sides)
    path = Path(model, base, in_double, sides)
    if path.has_terms or in_double:
        return path
    return replace(path, clusters=suit(model, path.couplings) if clusters is None else clusters)


def from_subgraph(path: Path, width: int) -> Path:
    """Return a path to the same model whose base has its fields and the strongest couplings of small treewidth.

    The tables have 2^width entries per spin.
    """
    if path.has_terms:
        raise OptionError("the base of a path has pairs only for models without terms of three and more spins")
    return replace(path, base=path.theta, subgraph=strongest_subgraph(path.theta, path.couplings, width))


def from_model(first: Model, second: Model) -> Path:
    """Return the path from one model to another; states of the first must be given."""
    return Path(second, np.zeros(second.n), origin=first)


def _engine_between(model: Model) -> Engine:
    """Return the engine of one model of many on the way between two; coloring each of them would take longest."""
    path = from_coins(model)
    return path.engine if path.couplings.is_dense else path.compiled_engine


def _fits(model: Model) -> bool:
    return fits_single_precision(model.field, model.storage.for_kernels(), model.higher)
