"""The method that chooses the method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from spectralz.errors import ModelError, TooLargeError
from spectralz.methods.base import MarginalOutcome, Method, Outcome, checked_bytes
from spectralz.methods.decomposition import decompose
from spectralz.methods.exact import Exact
from spectralz.methods.quadrature import Quadrature

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from spectralz.model import Ising

__all__ = ["Auto"]


@dataclass(frozen=True)
class _Choice:
    """A method, and how to run it without repeating what the choice has already found out."""

    method: Method
    solve: Callable[[], Outcome]


@dataclass(frozen=True, kw_only=True)
class Auto(Method):
    """Choose the best method for the model: exact where tractable, else quadrature where the rank is low.

    Parameters
    ----------
    max_memory
        Most memory for tables, in bytes or like ``"512 MiB"``.

    Raises
    ------
    TooLargeError
        If the exact answer is out of reach and the rank is not low. The message says what it would take.

    Examples
    --------
    >>> import spectralz as sz
    >>> sz.Auto().choose(sz.generators.grid(side=4, strength=1.0, seed=0))
    Exact(algorithm='auto', order='best', max_memory=4294967296, max_terms=68719476736)
    >>> sz.Auto().choose(sz.generators.curie_weiss(n=1000))
    Quadrature(max_rank=3, max_nodes=20000000, tol=1e-06)
    """

    max_memory: int | str = 4 * 2**30

    name: ClassVar[str] = "auto"
    gives_marginals: ClassVar[bool] = True
    gives_samples: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_memory", checked_bytes(self.max_memory, "max_memory"))

    def choose(self, model: Ising) -> Method:
        """Return the method, options and all, that would run on ``model``."""
        return self._choose(model).method

    def _choose(self, model: Ising) -> _Choice:
        exact = Exact(max_memory=self.max_memory)
        plan = exact.plan(model)  # a model kept as rank-1 terms is refused without writing its matrix out
        if plan.refusal is None:
            return _Choice(exact, lambda: exact.solve_plan(model, plan))
        quadrature = Quadrature()
        try:
            form = decompose(model, quadrature.max_rank, quadrature.tol)
        except ModelError as error:
            from spectralz.methods import METHODS

            names = ", ".join(name for name in METHODS if name != self.name)
            raise TooLargeError(
                f"auto finds no method for this model: {plan.refusal}. Nor is its rank low: {error}. "
                f"Methods known: {names}"
            ) from None
        return _Choice(quadrature, lambda: quadrature.solve_decomposed(model, form))

    def _solve(self, model: Ising) -> Outcome:
        choice = self._choose(model)
        return replace(choice.solve(), method=choice.method)

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        method = self.choose(model)
        found = method._solve_marginals(model)
        return replace(found, outcome=replace(found.outcome, method=method))

    def _sample(self, model: Ising, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        exact = Exact(max_memory=self.max_memory)
        plan = exact.plan(model)
        refusal = exact.refuses_samples(plan)
        if refusal is None:
            return exact.sample_plan(model, plan, size, rng)
        try:
            return Quadrature()._sample(model, size, rng)
        except ModelError as error:
            raise TooLargeError(f"auto finds no way to draw states: {refusal}. Nor is the rank low: {error}") from None
