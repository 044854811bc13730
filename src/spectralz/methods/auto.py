"""The method that chooses the method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from spectralz.errors import TooLargeError
from spectralz.methods.base import MarginalOutcome, Method, Outcome, checked_bytes
from spectralz.methods.exact import Exact

if TYPE_CHECKING:
    from spectralz.methods.exact import ExactPlan
    from spectralz.model import Ising

__all__ = ["Auto"]


@dataclass(frozen=True, kw_only=True)
class Auto(Method):
    """Choose the best method for the model: the exact answer wherever it is tractable.

    Parameters
    ----------
    max_memory
        Most memory for tables, in bytes or like ``"512 MiB"``.

    Raises
    ------
    TooLargeError
        If the exact answer is out of reach. The message says what it would take.

    Examples
    --------
    >>> import spectralz as sz
    >>> sz.Auto().choose(sz.generators.grid(side=4, strength=1.0, seed=0))
    Exact(algorithm='auto', order='best', max_memory=4294967296, max_terms=68719476736)
    """

    max_memory: int | str = 4 * 2**30

    name: ClassVar[str] = "auto"
    gives_marginals: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_memory", checked_bytes(self.max_memory, "max_memory"))

    def choose(self, model: Ising) -> Method:
        """Return the method, options and all, that would run on ``model``."""
        return self._choose(model)[0]

    def _choose(self, model: Ising) -> tuple[Exact, ExactPlan]:
        exact = Exact(max_memory=self.max_memory)
        plan = exact.plan(model)
        if plan.refusal is not None:
            from spectralz.methods import METHODS

            names = ", ".join(name for name in METHODS if name != self.name)
            raise TooLargeError(f"auto finds no method for this model: {plan.refusal}. Methods known: {names}")
        return exact, plan

    def _solve(self, model: Ising) -> Outcome:
        exact, plan = self._choose(model)
        return replace(exact.solve_plan(model, plan), method=exact)

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        exact, _ = self._choose(model)
        found = exact._solve_marginals(model)
        return replace(found, outcome=replace(found.outcome, method=exact))
