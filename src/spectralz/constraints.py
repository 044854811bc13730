"""Hard constraints, to be given to ``model.with_constraints``: states that break one have weight zero.

Spins are named as everywhere: by index, or by name if the model has names. Values are written as the model writes them:
-1 and +1, or 0 and 1 for models of 0/1 data; the upper value is +1, or 1. Names and values are looked up when a model
takes the constraint.

Examples
--------
>>> import spectralz as sz
>>> coins = sz.Ising([0.0, 0.0, 0.0]).with_constraints(sz.constraints.at_most_one([0, 1, 2]))
>>> coins
Ising(n=3, edges=0, density=0, |A| mean 0 max 0, |field| max 0, sparse, 1 constraint)
>>> print(f"{sz.log_z(coins).log_z:.6f}")  # log of 4 states
1.386294
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import ModelError, shown
from spectralz.model.constraints import MOST_TABLE_SPINS
from spectralz.model.statements import Statement

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from numpy.typing import ArrayLike

__all__ = ["at_most_one", "clause", "equal", "exactly_one", "forbid", "implies", "parity", "table"]


def clause(literals: Mapping[Any, int]) -> Statement:
    """Say that at least one spin has its value here.

    Parameters
    ----------
    literals
        A value for each spin, ``{spin: value, ...}``; of any number of spins.

    Returns
    -------
    Statement
        What ``with_constraints`` of a model takes.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.Ising([0.0, 0.0]).with_constraints(sz.constraints.clause({0: +1, 1: -1}))
    >>> model.log_weight([[-1, -1], [-1, +1]]).tolist()
    [0.0, -inf]
    """
    return Statement("clause", *_literals(literals, "clause"))


def forbid(state: Mapping[Any, int]) -> Statement:
    """Say that not all spins have their values here at once.

    Parameters
    ----------
    state
        A value for each spin, ``{spin: value, ...}``; of any number of spins.

    Returns
    -------
    Statement
        What ``with_constraints`` of a model takes.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.Ising([0.0, 0.0]).with_constraints(sz.constraints.forbid({0: +1, 1: +1}))
    >>> model.log_weight([[+1, +1], [-1, +1]]).tolist()
    [-inf, 0.0]
    """
    return Statement("forbid", *_literals(state, "forbid"))


def implies(premise: tuple[Hashable, int], conclusion: tuple[Hashable, int]) -> Statement:
    """Say that one spin has a value if another one has: each is a spin with a value.

    Parameters
    ----------
    premise, conclusion
        A spin and its value each.

    Returns
    -------
    Statement
        What ``with_constraints`` of a model takes.

    Examples
    --------
    >>> import spectralz as sz
    >>> rain = sz.Ising([0.0, 0.0], names=["rain", "wet"])
    >>> model = rain.with_constraints(sz.constraints.implies(("rain", +1), ("wet", +1)))
    >>> model.log_weight([[+1, -1], [-1, -1]]).tolist()
    [-inf, 0.0]
    """
    for part in (premise, conclusion):
        if not isinstance(part, tuple) or len(part) != 2:
            raise ModelError(f"implies takes two pairs (spin, value), and got {shown(part)}")
    return Statement("implies", (premise[0], conclusion[0]), (premise[1], conclusion[1]))


def equal(a: Hashable, b: Hashable) -> Statement:
    """Say that two spins have the same value.

    Parameters
    ----------
    a, b
        The spins.

    Returns
    -------
    Statement
        What ``with_constraints`` of a model takes.

    Examples
    --------
    >>> import spectralz as sz
    >>> float(sz.Ising([0.0, 0.0]).with_constraints(sz.constraints.equal(0, 1)).log_weight([+1, -1]))
    -inf
    """
    return Statement("parity", (a, b), 1)


def parity(spins: Iterable[Hashable], product: int = 1) -> Statement:
    """Say what the product of some spins is, +1 or -1, with each spin -1 or +1 however the model writes it.

    Parameters
    ----------
    spins
        Any number of spins.
    product
        Their product.

    Returns
    -------
    Statement
        What ``with_constraints`` of a model takes.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.Ising([0.0, 0.0, 0.0]).with_constraints(sz.constraints.parity([0, 1, 2], -1))
    >>> model.log_weight([[-1, +1, +1], [+1, +1, +1]]).tolist()
    [0.0, -inf]
    """
    if np.ndim(product) or product not in (-1, 1):
        raise ModelError(f"product is {shown(product)}; the product of spins is -1 or +1")
    return Statement("parity", _spins(spins, "parity"), int(product))


def exactly_one(spins: Iterable[Hashable]) -> Statement:
    """Say that exactly one of some spins has the upper value.

    Parameters
    ----------
    spins
        Any number of spins.

    Returns
    -------
    Statement
        What ``with_constraints`` of a model takes.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.Ising([0.0, 0.0]).with_constraints(sz.constraints.exactly_one([0, 1]))
    >>> model.log_weight([[-1, -1], [-1, +1], [+1, +1]]).tolist()
    [-inf, 0.0, -inf]
    """
    return Statement("exactly_one", _spins(spins, "exactly_one"), None)


def at_most_one(spins: Iterable[Hashable]) -> Statement:
    """Say that at most one of some spins has the upper value.

    Parameters
    ----------
    spins
        Any number of spins.

    Returns
    -------
    Statement
        What ``with_constraints`` of a model takes.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.Ising([0.0, 0.0]).with_constraints(sz.constraints.at_most_one([0, 1]))
    >>> model.log_weight([[-1, -1], [-1, +1], [+1, +1]]).tolist()
    [0.0, 0.0, -inf]
    """
    return Statement("at_most_one", _spins(spins, "at_most_one"), None)


def table(scope: Iterable[Hashable], allowed: ArrayLike) -> Statement:
    """List the states of up to 16 spins that are allowed.

    Parameters
    ----------
    scope
        The spins.
    allowed
        Booleans of shape (2,)*k for k spins: axis i belongs to ``scope[i]``, index 0 to its lower value.

    Returns
    -------
    Statement
        What ``with_constraints`` of a model takes.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.Ising([0.0, 0.0]).with_constraints(sz.constraints.table([0, 1], [[True, True], [False, True]]))
    >>> model.log_weight([[+1, -1], [+1, +1]]).tolist()
    [-inf, 0.0]
    """
    spins = _spins(scope, "table")
    if len(spins) > MOST_TABLE_SPINS:
        raise ModelError(
            f"the table has {len(spins)} spins; tables are for up to {MOST_TABLE_SPINS}: write it with clauses or "
            "parities, which may have any number of spins"
        )
    try:
        array = np.asarray(allowed)
    except ValueError:
        array = np.empty(0)
    if array.shape != (2,) * len(spins) or array.dtype.kind not in "biu" or np.any((array != 0) & (array != 1)):
        raise ModelError(
            f"allowed has shape {array.shape} and type {array.dtype}; a table of {len(spins)} spins takes booleans of "
            f"shape {(2,) * len(spins)}"
        )
    return Statement("table", spins, tuple(array.astype(bool).ravel().tolist()))


def _spins(spins: Any, what: str) -> tuple[Hashable, ...]:
    if isinstance(spins, str | bytes):
        raise ModelError(f"{what} takes a list of spins, and got the text {spins!r}")
    try:
        return tuple(spin.item() if isinstance(spin, np.generic) else spin for spin in spins)
    except TypeError:
        raise ModelError(f"{what} takes a list of spins, and got a {type(spins).__name__}") from None


def _literals(literals: Any, what: str) -> tuple[tuple[Hashable, ...], tuple[Any, ...]]:
    if not hasattr(literals, "items"):
        raise ModelError(f"{what} takes spins with values, {{spin: value, ...}}, and got a {type(literals).__name__}")
    return tuple(literals), tuple(literals.values())
