"""Turn spins together that strong couplings bind: alone they hardly ever turn, and a phase would look like many.

Turning one spin of a pair bound by J is rarer than exp(-2 J), so chains that differ in such pairs alone seem to be in
different phases. Each part is turned as a whole by the rule of Metropolis, so the model's distribution stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from spectralz._support import clock
from spectralz.sampling.engines.lanes import fits_single_precision

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.arrays import SingleArray
    from spectralz.model import Model

# Couplings that bind. Beyond this part of all spins a part is not turned, nor are there parts with more couplings.
STRONG, LARGEST_PART, MOST_COUPLINGS = 1.5, 0.25, 1_000_000


@dataclass(frozen=True, eq=False)
class BoundParts:
    """The parts of a model that are turned together, the couplings between spins of different parts, and the fields."""

    parts: tuple[NDArray[np.int64], ...]
    coupling: sp.csr_array
    field: SingleArray

    def turn(self, x: NDArray[np.int8], rng: np.random.Generator) -> None:
        """Turn parts of the states, in place."""
        if not self.parts:
            return
        from spectralz.kernels.sampling.bound_parts import turn_parts

        begin = np.cumsum([0, *map(len, self.parts)])
        spins, J = np.concatenate(self.parts), self.coupling
        clock.charge(float(np.diff(J.indptr)[spins].sum() * len(x)))
        columns, uniform = np.ascontiguousarray(x.T), rng.random((len(self.parts), len(x)), np.float32)
        room = np.empty((2, len(x)), np.float32)
        turn_parts(columns, begin, spins, J.indptr, J.indices, J.data, self.field, uniform, *room)
        x[:] = columns.T

    def relative(self, x: NDArray[np.int8]) -> NDArray[np.int8]:
        """Return states whose spins of a part, but for the first, are relative to the first.

        The entropy of a part is at most that of these, which are nearly fixed, if they were independent.
        """
        x = x.copy()
        if self.parts:
            firsts = np.concatenate([np.repeat(part[0], len(part) - 1) for part in self.parts])
            x[:, np.concatenate([part[1:] for part in self.parts])] *= x[:, firsts]
        return x


def bound_parts(model: Model) -> BoundParts:
    """Return the parts that strong pairs hold together; none if there are larger terms, or numbers are huge."""
    edges, J = model.edges()
    shape = (model.n, model.n)
    fits = fits_single_precision(model.field, model.storage.for_kernels(), model.higher)
    if model.higher.number or len(J) > MOST_COUPLINGS or not fits:
        return BoundParts((), sp.csr_array(shape), np.zeros(model.n, np.float32))
    field = model.field.astype(np.float32)
    strong = edges[np.abs(J) >= STRONG]
    _, member = connected_components(sp.coo_array((np.ones(len(strong)), strong.T), shape=shape), directed=False)
    between = member[edges[:, 0]] != member[edges[:, 1]]
    upper = sp.coo_array((J[between].astype(np.float32), edges[between].T), shape=shape).tocsr()
    sizes = np.bincount(member)
    bound = np.flatnonzero((sizes > 1) & (sizes <= LARGEST_PART * model.n))
    return BoundParts(tuple(np.flatnonzero(member == k) for k in bound), (upper + upper.T).tocsr(), field)
