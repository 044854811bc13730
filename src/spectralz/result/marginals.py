"""Means and probabilities of spins, probabilities of states and of missing cells, the heaviest state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spectralz.errors import ModelError, SolverError
from spectralz.result.kinds import Compared, Record, Shown, entries

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


@dataclass(frozen=True, eq=False)
class LogProb(Compared):
    """Hold log P(x) of states, or of what is known of them: their log-weights minus their common log Z.

    Attributes
    ----------
    log_prob
        log P(x), one number per state; ``numpy.asarray(result)`` is the same.
    log_weight
        Log of the unnormalized probabilities, summed over missing cells.
    estimate
        The common log Z.
    row_error
        If cells are missing, standard errors of ``log_weight``, 0 where it is exact; otherwise None.
    rows_exact, rows_trusted
        Whether all of ``log_weight`` is exact, as it is without missing cells, and whether it can be trusted.

    Examples
    --------
    >>> import numpy as np, spectralz as sz
    >>> model = sz.Ising.from_edges(2, [(0, 1)], [1.0])
    >>> logs = sz.log_prob(model, [[+1, +1], [+1, -1]])
    >>> np.exp(logs.log_prob).round(4).tolist()
    [0.4404, 0.0596]
    >>> logs.mean
    -1.82...
    """

    log_prob: NDArray[np.float64]
    log_weight: NDArray[np.float64]
    estimate: Estimate
    row_error: NDArray[np.float64] | None = None
    rows_exact: bool = True
    rows_trusted: bool = True

    @property
    def std_error(self) -> float | NDArray[np.float64] | None:
        """The standard error of every log P(x): that of log Z; None if it has none.

        If cells are missing, one number per row, which includes the error of its own sum over them.
        """
        common = self.estimate.std_error
        if self.row_error is None or (common is None and self.rows_exact):
            return common
        return np.hypot(self.row_error, common or 0.0)

    @property
    def lower(self) -> float | None:
        """A proven lower bound on log Z, so that no log P(x) is above ``log_weight - lower``; None if there is none."""
        return self.estimate.lower if self.rows_exact else None

    @property
    def upper(self) -> float | None:
        """A proven upper bound on log Z, so that no log P(x) is below ``log_weight - upper``; None if there is none."""
        return self.estimate.upper if self.rows_exact else None

    @property
    def trusted(self) -> bool:
        """Whether log Z can be trusted, and so can the sums over missing cells."""
        return self.estimate.trusted and self.rows_trusted

    @property
    def mean(self) -> float:
        """The mean over the states: the log-likelihood per row of data."""
        return float(np.mean(self.log_prob))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.log_prob, dtype=dtype)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        return entries(self, "log_prob log_weight std_error lower upper estimate")

    def __repr__(self) -> str:
        error = "" if self.std_error is None else f" ± {np.max(self.std_error, initial=0.0):.2g}"
        words = f"{len(self.log_prob)} states, mean {self.mean:.9g}{error}" if len(self.log_prob) else "no states"
        return f"LogProb({words}, log Z = {self.estimate.log_z:.9g} by {self.estimate.method.name})"


@dataclass(frozen=True, kw_only=True, eq=False)
class MapState(Record):
    """Hold the heaviest state found: the mode of P(x), the ground state in physics, the optimum of a QUBO.

    Attributes
    ----------
    states
        The heaviest states found, the heaviest first, -1 and +1; for an RBM, the values of its units.
    log_weights
        Their log-weights; energies are minus these numbers.
    upper
        Proven upper bound on the log-weight of any state.
    proven
        Whether it is proven that no state is heavier than the first, up to rounding; by ``exact`` so are the others.
    method
        Which method found it.
    status
        How it was found.
    seconds
        Wall-clock time.
    compile_seconds
        Wall-clock time that went into compiling, which ``seconds`` leave out.
    names
        One name per spin, or None.
    interrupted
        Whether the search was interrupted.

    Examples
    --------
    >>> import spectralz as sz
    >>> heaviest = sz.map_state(sz.generators.grid(side=10, strength=1.0, seed=0))
    >>> heaviest
    MapState(log-weight 171.510557, proven, by exact in ... s)
    """

    states: NDArray[np.int8]
    log_weights: NDArray[np.float64]
    upper: float
    proven: bool
    method: str
    status: Status
    seconds: float
    names: tuple[Hashable, ...] | None = None
    interrupted: bool = False
    compile_seconds: float = 0.0

    @property
    def state(self) -> NDArray[np.int8]:
        """The heaviest state."""
        return np.asarray(self.states[0])

    @property
    def log_weight(self) -> float:
        """Its log-weight."""
        return float(self.log_weights[0])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``; the heaviest state by itself, too."""
        return {**entries(self, "state log_weight"), **super().to_dict()}

    @property
    def gap(self) -> float:
        """How much heavier another state could be at most; 0 if it is proven that none is."""
        return 0.0 if self.proven else max(self.upper - self.log_weight, 0.0)

    def __repr__(self) -> str:
        words = "proven" if self.proven else f"at most {self.upper:.9g}"
        return f"MapState(log-weight {self.log_weight:.9g}, {words}, by {self.method} in {self.seconds:.2g} s)"

    def __str__(self) -> str:
        words = "proven: no state is heavier" if self.proven else f"no state is above {self.upper:.12g}, proven"
        ups = int(np.count_nonzero(self.state == 1))
        return (
            f"heaviest state  log-weight {self.log_weight:.12g} ({words})\n"
            f"spins           {ups} of {len(self.state)} are +1\n"
            f"run             {self.method}, {self.seconds:.2f} s; {self.status}"
        )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Prediction(Compared):
    """Hold the probabilities of the missing cells of a table.

    Attributes
    ----------
    probability
        In the shape of the table: P(+1, or 1 in 0/1 data) of every missing cell, given the other cells of its row; 0 or
        1 for the others.
    std_error
        Standard errors in the same shape, 0 where a number is exact; None if all are, or if the method has none.
    missing
        Which cells were missing.
    trusted, is_exact, interrupted
        Whether all numbers can be trusted, whether all are exact, and whether an interrupt ended the work early.
    names
        One name per column, or None.

    Examples
    --------
    >>> import spectralz as sz
    >>> pair = sz.Ising.from_edges(2, [(0, 1)], [1.0], names=["rain", "wet"])
    >>> found = sz.predict(pair, [[None, 1], [None, -1]])
    >>> found.to_pandas().round(3)
        rain  wet
    0  0.881  1.0
    1  0.119  0.0
    """

    probability: NDArray[np.float64]
    std_error: NDArray[np.float64] | None
    missing: NDArray[np.bool_]
    trusted: bool
    is_exact: bool = True
    interrupted: bool = False
    names: tuple[Hashable, ...] | None = None
    index: Any = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.probability, dtype=dtype)

    def to_pandas(self) -> Any:
        """Return the probabilities as a DataFrame, with the columns and the index of the table."""
        from spectralz.show import tables

        return tables.prediction_frame(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        return entries(self, "probability std_error missing trusted is_exact interrupted names")

    def __repr__(self) -> str:
        count = int(self.missing.sum())
        rows = int(np.atleast_2d(self.missing).any(axis=1).sum())
        how = "exact" if self.is_exact else "trusted" if self.trusted else "NOT trusted"
        cells = f"{count} missing cell{'' if count == 1 else 's'} in {rows} row{'' if rows == 1 else 's'}"
        return f"Prediction({cells}, {how})"
