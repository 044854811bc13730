"""The states of a pool: of all spins, or of one side of a bipartite model with the other summed out.

The weight of a state of the kept side is the sum over all states of the model that contain it: the sum over the other
side is a product of 2cosh. Either way, the weights of distinct states add up to at most Z.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from spectralz.kernels.coupling import Couplings, frozen
from spectralz.model import Ising
from spectralz.sampling.engines.collapsed import sides_of
from spectralz.sampling.engines.protocol import one_after_the_other
from spectralz.sampling.heavy.quench import fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Model
    from spectralz.sampling.engines.collapsed import Sides
    from spectralz.sampling.engines.protocol import Parallel
    from spectralz.sampling.path import Path

# Couplings between the sides are stored as a dense matrix if at least this share of the pairs is coupled.
DENSE_FROM = 0.1
# Number of the heaviest states of each kind that are quenched with spins summed out; in a large machine each takes a
# few milliseconds. The second number limits the sweeps, in case rounded fields cycle.
MOST_QUENCHED, MOST_ASCENTS = 100, 100


class Given(NamedTuple):
    """Probabilities of +1 and of -1 of all spins of states, one state per row, and their means."""

    up: NDArray[Any]
    down: NDArray[Any]
    mean: NDArray[Any]


def distinct(x: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return the different ones of some states, sorted, as ``np.unique(x, axis=0)`` does, which is slow for long rows.

    Examples
    --------
    >>> distinct(np.array([[1, -1], [-1, 1], [1, -1]], dtype=np.int8))
    array([[-1,  1],
           [ 1, -1]], dtype=int8)
    """
    if not x.size:
        return np.asarray(np.unique(x, axis=0))
    rows = np.ascontiguousarray(x).view(np.dtype((np.void, x.shape[1]))).ravel()
    _, first = np.unique(rows, return_index=True)
    return np.asarray(x[first[::-1]])  # as a byte without sign, -1 is the larger one


class StateSpace(Protocol):
    """How states are identified, and their weights."""

    # Spins that identify states, spins that are summed out, and entries of the coupling in a log-weight.
    width: int
    summed: int
    entries: float

    def of_states(self, x: NDArray[np.int8]) -> NDArray[np.int8]:
        """Return the identifying spins of whole states, one state per row."""

    def log_weight(self, v: NDArray[np.int8]) -> FloatArray:
        """Return log-weights, without offset and trace."""

    def flip_changes(self, v: NDArray[np.int8], path: Path, parallel: Parallel = one_after_the_other) -> FloatArray:
        """Return the changes of log-weights for the flip of each spin."""

    def quench(self, v: NDArray[np.int8], most: float = MOST_QUENCHED) -> NDArray[np.int8]:
        """Return heavier states reached by flips from local maxima among whole states, from the heaviest ``most``."""

    def sizes(self) -> float:
        """Return a bound on the sum of the sizes of all terms of a log-weight."""

    def given(self, v: NDArray[np.int8]) -> Given:
        """Return probabilities of all spins, given the spins that identify states."""

    def drawn(self, v: NDArray[np.int8], rng: np.random.Generator) -> NDArray[np.int8]:
        """Return whole states, with summed-out spins drawn."""


def space_of(model: Model) -> StateSpace:
    """Return the smaller side of a bipartite model, otherwise all spins."""
    sides = sides_of(model)
    return WholeStates(model) if sides is None else KeptSide(model, sides)


class WholeStates:
    """States of all spins."""

    summed = 0

    def __init__(self, model: Model) -> None:
        self.width = model.n
        self.entries = 2.0 * model.edge_count + len(model.higher.spin)
        # The constant is added in the end: a huge one would round the differences between states away.
        self._bare = Ising(model.field, model.storage.without_diagonal())
        self._higher = model.higher

    def of_states(self, x: NDArray[np.int8]) -> NDArray[np.int8]:
        """Return the states."""
        return x

    def log_weight(self, v: NDArray[np.int8]) -> FloatArray:
        """Return log-weights."""
        log_weight = np.asarray(self._bare.log_weight(v))
        return log_weight + self._higher.log_weight(v) if self._higher.number else log_weight

    def flip_changes(self, v: NDArray[np.int8], path: Path, parallel: Parallel = one_after_the_other) -> FloatArray:
        """Return the changes of log-weights for the flip of each spin."""
        return np.asarray(-2.0 * v * fields(path, v, parallel))

    def quench(self, v: NDArray[np.int8], most: float = MOST_QUENCHED) -> NDArray[np.int8]:
        """Return the states, which no flip makes heavier."""
        return v

    def sizes(self) -> float:
        """Return the sum of the sizes of all terms."""
        return float(np.abs(self._bare.field).sum() + np.abs(self._bare.coupling).sum() + self._higher.total)

    def given(self, v: NDArray[np.int8]) -> Given:
        """Return the spins themselves."""
        return Given(v > 0, v < 0, v)

    def drawn(self, v: NDArray[np.int8], rng: np.random.Generator) -> NDArray[np.int8]:
        """Return the states."""
        return v


class KeptSide:
    """States of the smaller side of a bipartite model."""

    def __init__(self, model: Model, sides: Sides) -> None:
        import scipy.sparse as sp

        self.n = model.n
        self.width, self.summed = len(sides.kept), len(sides.summed)
        self._sides = sides
        self._kept, self._summed = model.field[sides.kept], model.field[sides.summed]
        rows = sp.csr_array(2.0 * model.storage.written_out.block(sides.kept, sides.summed))
        if rows.nnz > DENSE_FROM * self.width * self.summed:
            self._weights: Any = rows.toarray()
            arrays = self._weights.ravel(), np.empty(0, np.int32), self.summed * np.arange(self.width + 1)
        else:
            self._weights = rows
            arrays = rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int64)
        data, indices, indptr = (frozen(np.ascontiguousarray(array)) for array in arrays)
        self._couplings = Couplings(data, indices, indptr, is_dense=self._weights is not rows)
        self.entries = float(len(self._couplings.data) + self.summed)

    def of_states(self, x: NDArray[np.int8]) -> NDArray[np.int8]:
        """Return the kept side."""
        return np.ascontiguousarray(x[:, self._sides.kept])

    def _fields(self, v: NDArray[np.int8]) -> FloatArray:
        """Return the fields of the summed side."""
        return np.ascontiguousarray(self._summed + v.astype(np.float64) @ self._weights)

    def log_weight(self, v: NDArray[np.int8]) -> FloatArray:
        """Return log-weights, with the other side summed out."""
        from spectralz.kernels.sampling.flips import sums_of_logs

        sums = np.empty(len(v))
        sums_of_logs(self._fields(v), sums)
        return np.asarray(sums + v @ self._kept)

    def flip_changes(self, v: NDArray[np.int8], path: Path, parallel: Parallel = one_after_the_other) -> FloatArray:
        """Return the changes of log-weights for the flip of each kept spin."""
        from spectralz.kernels.sampling.flips import flip_changes

        return np.asarray(flip_changes(v, self._fields(v), frozen(self._kept), self._couplings))

    def quench(self, v: NDArray[np.int8], most: float = MOST_QUENCHED) -> NDArray[np.int8]:
        """Return the states reached by flips that increase the weight, with the other side summed out."""
        from spectralz.kernels.sampling.flips import ascend

        ends = distinct(v)
        most = min(most, MOST_QUENCHED)
        if len(ends) > most:
            ends = ends[np.argsort(-self.log_weight(ends), kind="stable")[: int(most)]]
        ascend(ends, self._fields(ends), frozen(self._kept), self._couplings, MOST_ASCENTS)
        return ends

    def sizes(self) -> float:
        """Return a bound on the sum of the sizes of all terms: log 2cosh g is at most |g| + log 2."""
        sizes = float(np.abs(self._kept).sum() + np.abs(self._summed).sum() + np.abs(self._couplings.data).sum())
        return sizes + math.log(2.0) * self.summed

    def given(self, v: NDArray[np.int8]) -> Given:
        """Return the kept spins themselves, and probabilities of the others given them."""
        from scipy.special import expit

        kept, summed, fields = self._sides.kept, self._sides.summed, self._fields(v)
        given = Given(*(np.empty((len(v), self.n)) for _ in range(3)))
        given.up[:, kept], given.down[:, kept], given.mean[:, kept] = v > 0, v < 0, v
        given.up[:, summed], given.down[:, summed] = expit(2.0 * fields), expit(-2.0 * fields)
        given.mean[:, summed] = np.tanh(fields)
        return given

    def drawn(self, v: NDArray[np.int8], rng: np.random.Generator) -> NDArray[np.int8]:
        """Return whole states, with the summed side drawn given the kept side."""
        up = self.given(v).up
        return np.where(rng.random(up.shape) < up, 1, -1).astype(np.int8)
