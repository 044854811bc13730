"""Products of spins as parity equations: a sum over the dependencies among them, whatever the number of spins."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spectralz import generators
from spectralz.closed_forms.pairs import log_add, log_cosh
from spectralz.errors import TooLargeError
from spectralz.model import Ising

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.model import Polynomial

# A table has 2^d entries for d dependencies.
MOST_DEPENDENCIES = 20


def parities(model: Ising | Polynomial) -> float:
    r"""Return log Z of a model in which few of the products of spins depend on the others.

    Every term is a parity equation, those of one and two spins too. If m terms c_a have rank r as sets of spins over
    GF(2), there are 2^(m - r) dependencies S: sets of terms in which every spin occurs an even number of times, the
    empty one among them. With their sum,

    .. math::

       Z = e^{\text{offset}} \, 2^n \prod_a \cosh c_a \, \sum_S \prod_{a \in S} \tanh c_a.

    At low temperature the products of this sum are almost 1 and almost cancel. It is therefore computed as 2^(m - r)
    times a probability: if each equation is violated with probability 1 / (1 + exp(2 abs(c_a))), independently, that
    of violations that the dependencies allow. Nothing cancels there, and it is added up in logs: the relative error is
    about 1e-14 with any weights.

    Equations that contain a spin of their own are in no dependency, and are taken out first. Time is proportional to
    their number; that of the others is that of an elimination, and of 2^(m - r) sums for each of them.

    Parameters
    ----------
    model
        A polynomial, or an Ising model.

    Returns
    -------
    float
        log Z, a natural logarithm.

    Raises
    ------
    TooLargeError
        If there are more than 2^20 dependencies.

    See Also
    --------
    spectralz.Exact : elimination, for any terms.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.Polynomial({(0, 1, 2): 0.5, (1, 2, 3): -1.0, (0, 3): 2.0})
    >>> abs(parities(model) - sz.log_z(model, "exact").log_z) < 1e-14
    True
    >>> round(parities(sz.generators.parity(n=10_000, equations=7_000, strength=50.0)), 6)
    352079.441542
    """
    terms = model.to_polynomial().terms if isinstance(model, Ising) else model.terms
    scopes, weights = list(terms), list(terms.values())
    core = _core(model.n, scopes)
    dependencies = _dependencies([scopes[a] for a in core])
    count = len(dependencies)
    if count > MOST_DEPENDENCIES:
        raise TooLargeError(
            f"the {len(terms)} terms have {count} independent dependencies, and the sum is over 2^{count}; it is made "
            f"for up to 2^{MOST_DEPENDENCIES}. Take fewer terms, or the method exact"
        )
    free = [model.constant, model.n * math.log(2.0), *map(log_cosh, weights)]
    return math.fsum([*free, count * math.log(2.0), _log_probability([weights[a] for a in core], dependencies)])


def hypertree(n: int, p: int = 3, strength: float = 1.0, field: float = 0.0, seed: int = 0) -> float:
    """Return log Z of :func:`spectralz.generators.hypertree`, by :func:`parities`.

    Without a field the terms are independent::

        log Z = n log 2 + sum of log cosh(c).

    In a field there is a dependency for each term, so that at most 20 terms are possible.

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
    float
        log Z, a natural logarithm.

    Raises
    ------
    TooLargeError
        If there are more than 20 terms in a field.

    See Also
    --------
    spectralz.generators.hypertree : the model.

    Examples
    --------
    >>> round(hypertree(n=10_001, seed=1), 6)
    8823.88154
    """
    return parities(generators.hypertree(n, p, strength, field, seed))


def plaquettes(
    rows: int, columns: int, strength: float = 1.0, seed: int = 0, couplings: str = "gaussian", field: float = 0.0
) -> float:
    """Return log Z of :func:`spectralz.generators.plaquettes`, by :func:`parities`.

    Without a field the terms are independent::

        log Z = n log 2 + sum of log cosh(c).

    In a field there is a dependency for each term, so that at most 20 terms are possible.

    Parameters
    ----------
    rows, columns
        Number of rows and columns of spins.
    strength
        Scale of the weights: their standard deviation, their size, or the largest of them.
    seed
        Any whole number, 0 or more; equal weights do not use it.
    couplings
        ``gaussian``, ``bimodal``, ``uniform``, ``ferromagnetic`` or ``antiferromagnetic``.
    field
        theta, the same for all spins.

    Returns
    -------
    float
        log Z, a natural logarithm.

    Raises
    ------
    TooLargeError
        If there are more than 20 terms in a field.

    See Also
    --------
    spectralz.generators.plaquettes : the model.

    Examples
    --------
    >>> round(plaquettes(rows=100, columns=100, strength=2.0, couplings="bimodal"), 6)
    19917.823732
    """
    return parities(generators.plaquettes(rows, columns, strength, seed, couplings, field))


def parity(n: int, equations: int, size: int = 3, strength: float = 1.0, seed: int = 0, planted: bool = False) -> float:
    """Return log Z of :func:`spectralz.generators.parity`, by :func:`parities`.

    Equations of three spins have few dependencies up to about 0.9 n of them.

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
    float
        log Z, a natural logarithm.

    Raises
    ------
    TooLargeError
        If there are more than 2^20 dependencies.

    See Also
    --------
    spectralz.generators.parity : the model.

    Examples
    --------
    >>> solutions = parity(n=50, equations=40, strength=1000.0, planted=True) - 40 * 1000.0
    >>> round(solutions / math.log(2), 6)  # 2^10 states satisfy 40 independent equations
    10.0
    """
    return parities(generators.parity(n, equations, size, strength, seed, planted))


def _core(n: int, scopes: Sequence[tuple[int, ...]]) -> list[int]:
    """Return which equations are left after those that contain a spin of their own are taken out, again and again."""
    degree, those = [0] * n, [0] * n  # of each spin, the number of equations, and their numbers added up
    for a, scope in enumerate(scopes):
        for i in scope:
            degree[i] += 1
            those[i] += a
    is_left = [True] * len(scopes)
    lone = [i for i in range(n) if degree[i] == 1]
    while lone:
        i = lone.pop()
        if degree[i] != 1:
            continue
        a = those[i]
        is_left[a] = False
        for j in scopes[a]:
            degree[j] -= 1
            those[j] -= a
            if degree[j] == 1:
                lone.append(j)
    return [a for a, left in enumerate(is_left) if left]


def _dependencies(scopes: Sequence[tuple[int, ...]]) -> list[int]:
    """Return a basis of the sets of equations in which every spin occurs an even number of times, as bits of integers.

    Gaussian elimination over GF(2): a row is a set of spins together with the equations that it is the sum of.
    """
    pivots: dict[int, tuple[int, int]] = {}
    found = []
    for a, scope in enumerate(scopes):
        spins, equations = sum(1 << i for i in scope), 1 << a
        while spins and spins.bit_length() in pivots:
            row = pivots[spins.bit_length()]
            spins, equations = spins ^ row[0], equations ^ row[1]
        if spins:
            pivots[spins.bit_length()] = spins, equations
        else:
            found.append(equations)
    return found


def _log_probability(weights: Sequence[float], dependencies: Sequence[int]) -> float:
    """Return the log of the probability of violations that the dependencies allow.

    A dependency asks for an even number of violated equations among its own, or for an odd one if the signs of their
    weights multiply to -1. The table holds the probabilities of all combinations of even and odd; it begins with no
    violation at all, and each equation may change the dependencies that it is in.
    """
    table = np.full(1 << len(dependencies), -np.inf)
    table[0] = 0.0
    states, wanted = np.arange(len(table)), 0
    chances: dict[int, tuple[float, float]] = {}
    for a, c in enumerate(weights):
        own = sum((S >> a & 1) << j for j, S in enumerate(dependencies))
        wanted ^= own if c < 0.0 else 0
        satisfied = -math.log1p(math.exp(-2.0 * abs(c)))
        chances[own] = _either(*chances.get(own, (0.0, -math.inf)), satisfied, satisfied - 2.0 * abs(c))
    for own, (even, odd) in chances.items():
        if own:
            table = np.logaddexp(table + even, table[states ^ own] + odd)
    return float(table[wanted])


def _either(even: float, odd: float, satisfied: float, violated: float) -> tuple[float, float]:
    """Return log-probabilities of an even and an odd number of violations with one more equation."""
    return log_add(even + satisfied, odd + violated), log_add(even + violated, odd + satisfied)
