"""Means of spins and of products along edges, as one run found them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from spectralz.errors import ModelError, SolverError
from spectralz.result.kinds import Record, Shown

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from spectralz.result.estimate import Estimate
    from spectralz.result.kinds import Kind, Status


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Marginals(Shown, Record):
    """Hold the means of the spins and of the products along the edges, as one run found them.

    Attributes
    ----------
    mean
        E[x_i], one number per spin; for an RBM whose units are 0 and 1, P(unit = 1).
    probability
        P(x_i = -1) and P(x_i = +1), two numbers per spin; each keeps its digits even if the other is close to 1. For
        units 0 and 1, the probabilities of 0 and of 1.
    edges, pair_mean
        The edges (m x 2, i < j) and E[x_i x_j] on each; both are empty if pairs were left out.
    kind
        Whether these numbers are exact or an estimate.
    estimate
        The log Z, status and cost of the same run.
    names
        One name per spin, or None.
    values
        The values of the spins: ``"pm1"``, -1 and +1; or ``"01"``, 0 and 1, as the units of an RBM may be.
    terms, term_mean, term_std_error
        Only for a :class:`Polynomial`: its terms, as tuples of spins, the mean of the product of each, and their
        errors. The terms of one spin come first, in order, for every spin; then pairs, then the others. With evidence
        they are the terms of the model that is left. Otherwise None; and then a polynomial has no ``edges``.
    has_pairs
        Whether pairs are listed. If there are more than 10 million, they are listed only with ``pairs=True``.
    std_error, pair_std_error
        Standard errors of ``mean`` and ``pair_mean``; None if the means are exact, or if the method has no errors for
        them. They assume, as the error of log Z does, that no important states were missed: see ``estimate.trusted``.
        If log Z from samples is not trusted, they also cover what its error allows for.

    Examples
    --------
    >>> import spectralz as sz
    >>> means = sz.marginals(sz.Ising.from_edges(2, [(0, 1)], [1.0], field=[0.5, 0.0]))
    >>> means
    Marginals(n=2, edges=1, exact, means +0.3519 to +0.4621, by exact)
    >>> print(means)
    marginals   2 spins, 1 edge (exact)
    means       +0.3519 to +0.4621, mean size 0.4070
    pair means  +0.7616 to +0.7616
    each        spin 0 +0.4621, spin 1 +0.3519
    run         log Z = 1.94018969856 (exact); exact, ... s
    status      exact: ...
    >>> sampled = sz.marginals(sz.generators.grid(side=5, strength=1.0, seed=0), "annealing", population=500)
    >>> sampled.std_error.shape, bool((sampled.std_error < 0.05).all()), means.std_error
    ((25,), True, None)
    """

    mean: NDArray[np.float64]
    probability: NDArray[np.float64]
    edges: NDArray[np.int64]
    pair_mean: NDArray[np.float64]
    kind: Kind
    estimate: Estimate
    names: tuple[Hashable, ...] | None = None
    values: Literal["pm1", "01"] = "pm1"
    has_pairs: bool = True
    std_error: NDArray[np.float64] | None = None
    pair_std_error: NDArray[np.float64] | None = None
    terms: tuple[tuple[int, ...], ...] | None = None
    term_mean: NDArray[np.float64] | None = None
    term_std_error: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        numbers_of = ("mean", "probability", "pair_mean", "std_error", "pair_std_error", "term_mean", "term_std_error")
        for name in numbers_of:
            numbers = getattr(self, name)
            if numbers is not None and not np.all(np.isfinite(numbers)):
                raise SolverError(f"{self.estimate.method.name} gave a {name} that is not finite; please report it")

    def of_terms(self, higher: Sequence[tuple[int, ...]]) -> Marginals:
        """Return the same with means of terms in place of those of pairs, which those of ``higher`` terms follow."""
        n, pairs = len(self.mean), [(i, j) for i, j in self.edges.tolist()]
        return replace(
            self,
            edges=np.empty((0, 2), dtype=np.int64),
            pair_mean=np.empty(0),
            has_pairs=False,
            pair_std_error=None if self.pair_std_error is None else np.empty(0),
            terms=(*((i,) for i in range(n)), *pairs, *higher),
            term_mean=np.concatenate([self.mean, self.pair_mean]),
            term_std_error=_joined(self.std_error, self.pair_std_error),
        )

    @property
    def status(self) -> Status:
        """How the run ended."""
        return self.estimate.status

    def __getitem__(self, name: Hashable) -> float:
        """Return the mean of the spin called ``name``; in a model without names, of spin number ``name``."""
        return float(self.mean[self._place(name)])

    @property
    def has_all_pairs(self) -> bool:
        """Whether all pairs are listed, coupled or not."""
        n = len(self.mean)
        return self.has_pairs and len(self.edges) == n * (n - 1) // 2

    @property
    def covariance(self) -> NDArray[np.float64]:
        """The covariance of the spins, n x n; only with all pairs (``pairs="all"``).

        Examples
        --------
        >>> import spectralz as sz
        >>> chain = sz.Ising.from_edges(3, [(0, 1), (1, 2)], [1.0, 1.0])
        >>> sz.marginals(chain, pairs="all").covariance.round(4).tolist()
        [[1.0, 0.7616, 0.58], [0.7616, 1.0, 0.7616], [0.58, 0.7616, 1.0]]
        """
        if not self.has_all_pairs:
            raise ModelError('the covariance needs all pairs, coupled or not; ask for marginals with pairs="all"')
        # The product of a spin with itself is 1; the product of a unit of 0 and 1 with itself is the unit.
        both = np.diag(np.ones(len(self.mean)) if self.values == "pm1" else self.mean)
        i, j = self.edges.T
        both[i, j] = both[j, i] = self.pair_mean
        return np.asarray(both - np.outer(self.mean, self.mean))

    def pair_table(self, first: Hashable, second: Hashable) -> NDArray[np.float64]:
        """Return the probabilities of the four states of a listed pair, 2 x 2; rows belong to the first spin.

        Examples
        --------
        >>> import spectralz as sz
        >>> sz.marginals(sz.Ising.from_edges(2, [(0, 1)], [1.0])).pair_table(0, 1).round(4).tolist()
        [[0.4404, 0.0596], [0.0596, 0.4404]]
        """
        a, b = self._place(first), self._place(second)
        i, j = min(a, b), max(a, b)
        places = np.flatnonzero((self.edges[:, 0] == i) & (self.edges[:, 1] == j))
        if not len(places):
            raise ModelError(f'the pair {first!r}, {second!r} is not listed; ask for marginals with pairs="all"')
        up, other = self.probability[a, 1], self.probability[b, 1]
        product = float(self.pair_mean[places[0]])
        both = (2.0 * up + 2.0 * other - 1.0 + product) / 4.0 if self.values == "pm1" else product
        table = np.array([[1.0 - up - other + both, other - both], [up - both, both]])
        return np.asarray(np.clip(table, 0.0, 1.0))

    def _place(self, name: Hashable) -> int:
        places: Sequence[Hashable] = range(len(self.mean)) if self.names is None else self.names
        if name not in places:
            raise ModelError(f"no spin is called {name!r}")
        return places.index(name)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the mean of every spin with :func:`spectralz.plots.marginals`; return the Axes."""
        from spectralz.show import plots

        return plots.marginals(self, ax)


def _joined(first: NDArray[np.float64] | None, second: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    return None if first is None or second is None else np.concatenate([first, second])
