"""Constraints as their author writes them, by names and in the model's values, and how a model takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import ModelError, shown
from spectralz.model.constraints import AtMostOne, Clause, Constraint, Constraints, ExactlyOne, Parity, Table
from spectralz.model.values import checked_condition

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from spectralz.model.values import Values


@dataclass(frozen=True)
class Statement:
    """A constraint before a model has taken it: its kind, its spins, and what is said of them.

    ``detail`` has one value per spin for clauses, the product for parities, and all entries for tables.
    """

    kind: str
    spins: tuple[Hashable, ...]
    detail: Any

    def placed(self, index_of: Callable[[Any], int], values: Values) -> Constraint:
        """Return the constraint of spins by index."""
        scope = [index_of(spin) for spin in self.spins]
        if len(set(scope)) < len(scope):
            twice = next(spin for spin, i in zip(self.spins, scope, strict=True) if scope.count(i) > 1)
            raise ModelError(f"a constraint ({self.kind}) names the spin {shown(twice)} twice; name each spin once")
        order = np.argsort(scope).tolist()
        ascending = tuple(scope[k] for k in order)
        if self.kind == "parity":
            return Parity(ascending, self.detail)
        if self.kind == "table":
            allowed = np.array(self.detail, dtype=np.bool_).reshape((2,) * len(scope))
            return Table(ascending, allowed.transpose(order))
        if self.kind in ("exactly_one", "at_most_one"):
            return (ExactlyOne if self.kind == "exactly_one" else AtMostOne)(ascending)
        _, signs = checked_condition(dict(zip(self.spins, self.detail, strict=True)), index_of, values, "a constraint")
        # A clause wants its values; what is forbidden, and the premise of what is implied, is turned.
        turned = {"clause": (), "forbid": range(len(scope)), "implies": (0,)}[self.kind]
        wanted = [-int(sign) if k in turned else int(sign) for k, sign in enumerate(signs.tolist())]
        return Clause(ascending, tuple(wanted[k] for k in order))


def placed(statements: Iterable[Any], index_of: Callable[[Any], int], values: Values) -> Constraints:
    """Return constraints of spins by index, from those that are written by name."""
    made = []
    for statement in statements:
        if not isinstance(statement, Statement):
            raise ModelError(
                f"with_constraints got a {type(statement).__name__}; constraints are made by sz.constraints, such as "
                "sz.constraints.clause({0: +1, 3: -1})"
            )
        made.append(statement.placed(index_of, values))
    return Constraints.of(made)
