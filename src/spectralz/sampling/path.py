"""The path from a base, whose Z is known, to a model.

At the point beta of the path a state weighs exp(E_0(x) + beta (E(x) - E_0(x))): that of the base at beta = 0, that of
the model at beta = 1. A path is a value. The functions here make one, and say what that costs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.devices import FEWEST_SPARSE_SPINS, device_for
from spectralz.errors import OptionError
from spectralz.sampling.base_rates import base_rates
from spectralz.sampling.engines.collapsed import collapsed_engine, sides_that_pay
from spectralz.sampling.engines.dense import dense_engine
from spectralz.sampling.engines.device_sparse import can_be_swept
from spectralz.sampling.engines.lanes import fits_single_precision
from spectralz.sampling.engines.side_flips import flip_engine
from spectralz.sampling.engines.sparse import SparseEngine, sparse_engine
from spectralz.sampling.engines.terms import term_engine
from spectralz.sampling.moves.clusters import suit
from spectralz.sampling.subgraph import strongest_subgraph

if TYPE_CHECKING:
    from spectralz.kernels.coupling import Couplings
    from spectralz.model import FloatArray, Model
    from spectralz.sampling.engines.collapsed import Sides
    from spectralz.sampling.engines.protocol import Engine
    from spectralz.sampling.subgraph import Subgraph


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
            from spectralz.sampling.engines.between import between_engine

            return between_engine(self.origin, self.model, _engine_between)
        device = self.device
        if device is None:
            return self.compiled_engine
        from spectralz.sampling.engines.device import device_collapsed_engine, device_dense_engine
        from spectralz.sampling.engines.device_sparse import device_sparse_engine

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
        theta, couplings = self.theta, self.couplings
        if self.has_terms:
            return term_engine(self.model, self.base, in_double=self.in_double)
        if self.in_double:
            from spectralz.sampling.engines.double import double_engine

            return double_engine(theta, couplings, self.base)
        if self.sides is not None and self.flips:
            return flip_engine(self.model, self.sides, self.base)
        if self.sides is not None:
            return collapsed_engine(self.model, self.sides, self.base)
        if couplings.is_dense:
            return dense_engine(theta, couplings, self.base)
        return sparse_engine(theta, couplings, self.base, subgraph=self.subgraph, clusters=self.clusters)

    def __getstate__(self) -> dict[str, Any]:
        # The engine is made anew, by the process that uses it.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def can_begin_from_subgraph(self) -> bool:
        """Whether couplings of a subgraph could belong to the base, and there are some."""
        return not self.in_double and isinstance(self.engine, SparseEngine) and len(self.couplings.data) > 0


def from_coins(model: Model) -> Path:
    """Return the path from n fair coins; its points are temperatures: beta times the model."""
    in_double = not _fits(model)
    sides = None if in_double else sides_that_pay(model)
    return Path(model, np.zeros(model.n), in_double, sides)


def from_fields(model: Model, fields: FloatArray, *, sides: Sides | None = None) -> Path:
    """Return the path from independent spins in given fields, without clusters.

    ``sides`` says which side of a bipartite model to sum out, if its fields fit into single precision.
    """
    in_double = not _fits(model)
    return Path(model, fields, in_double, None if in_double else sides)


def path_to(model: Model, *, clusters: bool | None = False, in_double: bool = False) -> Path:
    """Return the path that suits a model.

    It begins from independent spins in the model's own fields; from fields that four short pilot runs find
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
    return _with_clusters(Path(model, base, in_double, sides), clusters)


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


def _with_clusters(path: Path, clusters: bool | None) -> Path:
    """Return a path on which clusters are turned, if they are requested or, with None, suit its model."""
    if path.has_terms or path.in_double:
        return path
    return replace(path, clusters=suit(path.model, path.couplings) if clusters is None else clusters)
