"""Constraints as penalties: terms that add nothing to the log-weight of a state that satisfies them.

A model with such terms has the same weights where all constraints hold, and finite ones where one is broken.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from spectralz.model import Polynomial
from spectralz.model.constraints import AtMostOne, ExactlyOne, Parity
from spectralz.model.polynomial import expanded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from spectralz.model import FloatArray, Model
    from spectralz.model.constraints import Constraint

# Clauses and tables of more spins have no penalty: they would be 2^k terms, and a clause of so many spins is hardly
# ever broken.
WIDEST = 6

Term = tuple[tuple[int, ...], float]


def penalties(constraints: Iterable[Constraint], penalty: float) -> Iterator[Term]:
    """Yield terms that are 0 together where a constraint holds, and take ``penalty`` or more away where it does not.

    Wide clauses and tables have none.

    Examples
    --------
    >>> [(scope, weight) for scope, weight in penalties([Parity((0, 1, 2), -1)], 4.0)]
    [((), -2.0), ((0, 1, 2), -2.0)]
    """
    for constraint in constraints:
        scope = constraint.scope
        if isinstance(constraint, Parity):
            yield from (((), -penalty / 2.0), (scope, constraint.product * penalty / 2.0))
        elif isinstance(constraint, ExactlyOne):  # the square of the number of spins up, minus 1
            yield (), -penalty
            yield from expanded(((i,), penalty) for i in scope)
            yield from expanded((pair, -2.0 * penalty) for pair in itertools.combinations(scope, 2))
        elif isinstance(constraint, AtMostOne):
            yield from expanded((pair, -penalty) for pair in itertools.combinations(scope, 2))
        elif len(scope) <= WIDEST:
            yield from _terms_of(scope, np.where(constraint.tabulated().allowed, 0.0, -penalty))


def _terms_of(scope: tuple[int, ...], table: FloatArray) -> Iterator[Term]:
    """Yield the terms of a table of log-weights, one axis per spin: its Walsh transform."""
    for axis in range(table.ndim):
        below, above = np.moveaxis(table, axis, 0)
        table = np.stack([(above + below) / 2.0, (above - below) / 2.0], axis=axis)
    for places in np.argwhere(table).tolist():
        yield tuple(i for i, is_in in zip(scope, places, strict=True) if is_in), float(table[tuple(places)])


def with_terms(model: Model, terms: Iterable[Term]) -> Model:
    """Return a model with more terms, and the same constraints if it has any."""
    added: dict[tuple[int, ...], list[float]] = {}
    for scope, weight in terms:
        added.setdefault(scope, []).append(weight)
    sums = {scope: math.fsum(weights) for scope, weights in added.items()}
    more = Polynomial({scope: weight for scope, weight in sums.items() if scope}, n=model.n, offset=sums.get((), 0.0))
    return (model + more).simplest()
