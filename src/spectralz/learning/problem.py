"""The estimation problem: fields and couplings of a graph, some of them given, with a penalty on couplings.

Parameters are in one vector: the n fields theta, then the weights J of the edges, each counted once. Their
sufficient statistics are x_i and x_i x_j, so that the mean log-likelihood per row is ``<parameters, moments> - log Z``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz.model import FloatArray, IntArray, Ising

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray


__all__ = ["Penalty", "Problem"]

# An estimate that is exactly zero gets this weight instead, which keeps its edge and changes no digit of any result.
KEPT_ZERO = 1e-30


@dataclass(frozen=True)
class Penalty:
    """A term added to the mean negative log-likelihood per row: ``l1 sum |J| + l2 / 2 sum J^2``, couplings only."""

    l1: float = 0.0
    l2: float = 0.0

    @property
    def is_none(self) -> bool:
        """Whether nothing is penalized."""
        return self.l1 == 0.0 and self.l2 == 0.0


@dataclass(frozen=True)
class Problem:
    """A graph and the moments to be matched.

    Attributes
    ----------
    n, edges
        Number of variables, and the pairs that may be coupled (m x 2, i < j, in order).
    moments
        E[x_i], then E[x_i x_j] of the edges, of the data.
    free
        Whether each of the n + m parameters is to be estimated.
    given
        The values of the given parameters; zero elsewhere.
    penalty
        The penalty on the couplings.
    names
        The names of the variables.
    """

    n: int
    edges: IntArray
    moments: FloatArray
    free: NDArray[np.bool_]
    given: FloatArray
    penalty: Penalty
    names: tuple[Hashable, ...] | None = None

    @property
    def size(self) -> int:
        """Number of parameters, including the given ones."""
        return self.n + len(self.edges)

    @property
    def is_complete(self) -> bool:
        """Whether all pairs are edges."""
        return len(self.edges) == self.n * (self.n - 1) // 2

    @property
    def ridge(self) -> FloatArray:
        """What the penalty adds to the diagonal of the Hessian."""
        return np.where(np.arange(self.size) < self.n, 0.0, self.penalty.l2)

    def start(self) -> FloatArray:
        """Return first parameters: independent variables with the means of the data, and the given parameters."""
        fields = np.arctanh(np.clip(self.moments[: self.n], -1.0 + 1e-9, 1.0 - 1e-9))
        start = self.given.copy()
        start[: self.n] = np.where(self.free[: self.n], fields, start[: self.n])
        return start

    def label(self, k: int) -> str:
        """Return what parameter k is, in words."""
        names = range(self.n) if self.names is None else self.names
        if k < self.n:
            return f"the field of {names[k]!r}"
        i, j = self.edges[k - self.n].tolist()
        return f"the coupling of {names[i]!r} and {names[j]!r}"

    def model(self, parameters: FloatArray, *, keep_zeros: bool = True) -> Ising:
        """Return the model with these parameters."""
        J = parameters[self.n :]
        if keep_zeros:
            J = np.where(J == 0.0, KEPT_ZERO, J)
        if not self.is_complete or self.n < 3:
            return Ising.from_edges(self.n, self.edges, J, parameters[: self.n], names=self.names)
        A = np.zeros((self.n, self.n))
        A[self.edges[:, 0], self.edges[:, 1]] = J / 2.0
        return Ising(parameters[: self.n], A + A.T, names=self.names)
