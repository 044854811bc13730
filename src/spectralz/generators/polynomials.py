"""Models with terms of three and more spins: glasses, trees of terms, plaquettes of a lattice, parity equations."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import OptionError
from spectralz.generators.checks import (
    Stream,
    Weights,
    checked_count,
    checked_flag,
    checked_number,
    checked_scale,
    checked_spins,
)
from spectralz.model import Polynomial

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Random numbers that are drawn together.
DRAWN_AT_ONCE = 10_000_000


def p_spin(n: int, p: int = 3, strength: float = 1.0, seed: int = 0, terms: int | None = None) -> Polynomial:
    """Make a p-spin glass: random terms of p spins, all different, with normal weights and no fields.

    The weights are ``strength`` times standard normal numbers, whatever the number of terms. With all tuples as terms,
    the model of Derrida and of Gross and Mezard at temperature T has ``strength = sqrt(p! / (2 n^(p-1))) / T``.

    Parameters
    ----------
    n
        Number of spins.
    p
        Number of spins of a term.
    strength
        Standard deviation of the weights.
    seed
        Any whole number, 0 or more.
    terms
        Number of terms; by default as many as spins, or all there are if these are fewer.

    Returns
    -------
    Polynomial
        The model.

    Examples
    --------
    >>> p_spin(n=20, seed=1)
    Polynomial(n=20, terms=20, degree 3, |c| mean 0.754 max 2.4)
    """
    n, p, scale = checked_count(n, "n"), _checked_size(p, "p"), checked_scale(strength, "strength")
    count = min(n, math.comb(n, p)) if terms is None else checked_count(terms, "terms")
    stream = Stream(seed)
    scopes = _different_tuples(n, p, count, "terms", stream)
    return _polynomial(n, scopes.tolist(), scale * stream.normal(count))


def hypertree(n: int, p: int = 3, strength: float = 1.0, field: float = 0.0, seed: int = 0) -> Polynomial:
    """Make a random tree of terms: each new term shares exactly one spin, drawn at random, with those before it.

    All terms have p spins but the last, which has those that are left over. The weights are normal. Without a field the
    terms are independent: log Z = n log 2 + sum of log cosh c.

    Parameters
    ----------
    n
        Number of spins.
    p
        Number of spins of a term, 2 or more.
    strength
        Standard deviation of the weights.
    field
        theta, the same for all spins.
    seed
        Any whole number, 0 or more.

    Returns
    -------
    Polynomial
        The model.

    See Also
    --------
    spectralz.closed_forms.hypertree : its log Z, if few of its terms depend on the others.

    Examples
    --------
    >>> hypertree(n=9, p=4, field=0.1, seed=1)
    Polynomial(n=9, terms=12, degree 4, |c| mean 0.221 max 0.975)
    """
    n, p = checked_count(n, "n"), _checked_size(p, "p", least=2)
    scale, theta = checked_scale(strength, "strength"), checked_number(field, "field")
    stream = Stream(seed)
    firsts = range(1, n, p - 1)
    joined = np.minimum(stream.unit(len(firsts)) * firsts, [first - 1 for first in firsts]).astype(np.int64).tolist()
    scopes = [(old, *range(new, min(new + p - 1, n))) for old, new in zip(joined, firsts, strict=True)]
    return _polynomial(n, scopes, scale * stream.normal(len(scopes)), theta)


def plaquettes(
    rows: int, columns: int, strength: float = 1.0, seed: int = 0, couplings: str = "gaussian", field: float = 0.0
) -> Polynomial:
    """Make terms of the four spins around each square of a lattice, spin ``row * columns + column``, open boundaries.

    Without a field the terms are independent: log Z = n log 2 + sum of log cosh c. Yet the dynamics of single spins are
    those of a glass.

    Parameters
    ----------
    rows, columns
        Number of rows and columns of spins.
    strength
        Scale of the weights: their standard deviation, their size, or the largest of them.
    seed
        Any whole number, 0 or more; equal weights do not use it.
    couplings
        ``gaussian``, ``bimodal``, ``uniform``, ``ferromagnetic`` or ``antiferromagnetic``, as in :func:`square`.
    field
        theta, the same for all spins.

    Returns
    -------
    Polynomial
        The model.

    See Also
    --------
    spectralz.closed_forms.plaquettes : its log Z, if few of its terms depend on the others.

    Examples
    --------
    >>> plaquettes(rows=5, columns=6, strength=0.5, couplings="bimodal")
    Polynomial(n=30, terms=20, degree 4, |c| mean 0.5 max 0.5)
    """
    rows, columns = checked_count(rows, "rows"), checked_count(columns, "columns")
    weights, stream = Weights(strength, couplings, field), Stream(seed)
    spin = np.arange(checked_spins(rows, columns)).reshape(rows, columns)
    corners = spin[:-1, :-1], spin[:-1, 1:], spin[1:, :-1], spin[1:, 1:]
    scopes = np.stack(corners, axis=-1).reshape(-1, 4).tolist()
    return _polynomial(rows * columns, scopes, weights.draw(len(scopes), stream), weights.field)


def parity(
    n: int, equations: int, size: int = 3, strength: float = 1.0, seed: int = 0, planted: bool = False
) -> Polynomial:
    """Make random parity equations (XOR-SAT): a state that satisfies one gains ``strength``, otherwise it loses that.

    An equation prescribes the product of its spins, +1 or -1: the parity of the number of spins that are -1. Any two
    equations have different spins. At ``strength`` s a state that violates k of m equations has the log-weight
    s (m - 2 k). For the number of solutions take s large: log Z - s m.

    Parameters
    ----------
    n
        Number of spins.
    equations
        Number of equations.
    size
        Number of spins of an equation.
    strength
        Weight of an equation, 0 or more.
    seed
        Any whole number, 0 or more.
    planted
        Whether a random hidden state satisfies all equations; otherwise the products are random.

    Returns
    -------
    Polynomial
        The model.

    See Also
    --------
    spectralz.closed_forms.parity : its log Z, if few of its terms depend on the others.

    Examples
    --------
    >>> parity(n=20, equations=15, strength=2.0)
    Polynomial(n=20, terms=15, degree 3, |c| mean 2 max 2)
    """
    n, count = checked_count(n, "n"), checked_count(equations, "equations")
    size, scale = _checked_size(size, "size"), checked_scale(strength, "strength")
    is_planted, stream = checked_flag(planted, "planted"), Stream(seed)
    scopes = _different_tuples(n, size, count, "equations", stream)
    signs = stream.signs(n)[scopes].prod(axis=1) if is_planted else stream.signs(count)
    return _polynomial(n, scopes.tolist(), scale * signs)


def _polynomial(n: int, scopes: Any, weights: NDArray[np.float64], field: float = 0.0) -> Polynomial:
    """Return the model of terms of different spins, with a field on all spins."""
    terms = {(i,): field for i in range(n)} if field else {}
    return Polynomial(terms | dict(zip(map(tuple, scopes), weights.tolist(), strict=True)), n=n)


def _checked_size(value: Any, name: str, least: int = 1) -> int:
    """Return a number of spins of a term."""
    size = checked_count(value, name)
    if size < least:
        raise OptionError(f"{name} is {size}; terms have {least} {'spin' if least == 1 else 'spins'} or more")
    return size


def _different_tuples(n: int, size: int, count: int, name: str, stream: Stream) -> NDArray[np.int64]:
    """Return random sets of ``size`` of n spins (count x size, rows ascending), all different, all equally likely."""
    most = math.comb(n, size)
    if count > most:
        raise OptionError(f"{name} is {count}; there are {most} sets of {size} of {n} spins, so ask for fewer")
    if 2 * count >= most:
        chosen = np.sort(stream.shuffled(np.arange(most))[:count])
        every = np.array(list(itertools.combinations(range(n), size)), dtype=np.int64)
        return np.asarray(every.reshape(most, size)[chosen])
    kept = np.empty((0, size), dtype=np.int64)
    while len(kept) < count:
        both = np.concatenate([kept, _drawn_tuples(n, size, count - len(kept), stream)])
        kept = both[np.sort(np.unique(both, axis=0, return_index=True)[1])]
    return kept


def _drawn_tuples(n: int, size: int, most: int, stream: Stream) -> NDArray[np.int64]:
    """Return up to ``most`` sets of spins that are drawn at random."""
    if size * size > n:  # otherwise most draws of spins have none twice
        rows = min(most, max(DRAWN_AT_ONCE // n, 1))
        order = np.argsort(stream.unit(rows * n).reshape(rows, n), axis=1, kind="stable")
        return np.sort(order[:, :size], axis=1)
    spins = np.minimum(stream.unit(most * size) * n, n - 1).astype(np.int64)
    drawn = np.sort(spins.reshape(most, size), axis=1)
    return drawn[(np.diff(drawn, axis=1) > 0).all(axis=1)]
