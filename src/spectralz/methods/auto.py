"""The method that chooses the method."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spectralz.errors import ModelError, TooLargeError
from spectralz.methods.base import MarginalOutcome, Method, Outcome
from spectralz.methods.decomposition import decompose
from spectralz.methods.exact import Exact
from spectralz.methods.quadrature import Quadrature
from spectralz.options import checked_bytes
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spectralz.methods.exact import ExactPlan
    from spectralz.model import IntArray, Ising

__all__ = ["Auto"]


@dataclass(frozen=True)
class _Choice:
    """A method, and how to run it without repeating what the choice has already found out."""

    method: Method
    solve: Callable[[], Outcome]
    solve_marginals: Callable[[], MarginalOutcome]


@dataclass(frozen=True, kw_only=True)
class Auto(Method):
    """Choose the best method for the model: exact where tractable, else quadrature where the rank is low.

    Where that fails for a model of several components, the choice is made for each of them.

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
        return self._choose(model, self._exact.plan(model)).method

    @property
    def _exact(self) -> Exact:
        return Exact(max_memory=self.max_memory)

    def _choose(self, model: Ising, plan: ExactPlan) -> _Choice:
        # A model kept as rank-1 terms has been refused by the plan without writing its matrix out.
        if plan.refusal is None:
            exact = self._exact
            return _Choice(
                exact, lambda: exact.solve_plan(model, plan), lambda: exact.solve_marginals_of_plan(model, plan)
            )
        quadrature = Quadrature()
        try:
            form = decompose(model, quadrature.max_rank, quadrature.tol)
        except ModelError as error:
            raise TooLargeError(
                f"auto finds no exact method for this model: {plan.refusal}. Nor is its rank low: {error}. "
                "Method 'spectral' estimates log Z of any model and proves an upper bound"
            ) from None
        return _Choice(
            quadrature,
            lambda: quadrature.solve_decomposed(model, form),
            lambda: quadrature.solve_marginals_decomposed(model, form),
        )

    def _solve(self, model: Ising) -> Outcome:
        plan = self._exact.plan(model)
        parts = _parts(model, plan)
        if parts:
            return _added(model, [self._solve(model.submodel(spins)) for spins in parts])
        choice = self._choose(model, plan)
        return replace(choice.solve(), method=choice.method)

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        plan = self._exact.plan(model)
        parts = _parts(model, plan)
        if parts:
            return _joined(model, parts, [self._solve_marginals(model.submodel(spins)) for spins in parts])
        choice = self._choose(model, plan)
        found = choice.solve_marginals()
        return replace(found, outcome=replace(found.outcome, method=choice.method))

    def _sample(self, model: Ising, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        plan = self._exact.plan(model)
        parts = _parts(model, plan)
        if parts:
            x = np.empty((size, model.n), dtype=np.int8)
            for spins in parts:
                x[:, spins] = self._sample(model.submodel(spins), size, rng)
            return x
        refusal = self._exact.refuses_samples(plan)
        if refusal is None:
            return self._exact.sample_plan(model, plan, size, rng)
        try:
            return Quadrature()._sample(model, size, rng)
        except ModelError as error:
            raise TooLargeError(f"auto finds no way to draw states: {refusal}. Nor is the rank low: {error}") from None


def _parts(model: Ising, plan: ExactPlan) -> list[IntArray]:
    """Return the components to be solved apart: none if exact takes the whole, or there is only one."""
    if plan.refusal is None or model.factors is not None:
        return []
    components = model.components()
    lone = [spins for spins in components if len(spins) == 1]
    parts = [spins for spins in components if len(spins) > 1] + ([np.concatenate(lone)] if lone else [])
    return parts if len(parts) > 1 else []


def _added(model: Ising, outcomes: list[Outcome]) -> Outcome:
    """Add up the log Z of components; bounds are there if all have them, and the sum is exact if all are."""
    lowers = [outcome.lower for outcome in outcomes if outcome.lower is not None]
    uppers = [outcome.upper for outcome in outcomes if outcome.upper is not None]
    kinds = {outcome.kind for outcome in outcomes}
    names = [outcome.method.name for outcome in outcomes if outcome.method is not None]
    words = ", ".join(f"{names.count(name)} by {name}" for name in dict.fromkeys(names))
    # Sums of rounded numbers: a unit of the last place a component is more than fsum needs.
    slack = 2.0**-52 * (abs(model.offset) + math.fsum(abs(outcome.log_z) for outcome in outcomes))
    return Outcome(
        log_z=math.fsum([model.offset, *(outcome.log_z for outcome in outcomes)]),
        kind=Kind.EXACT if kinds == {Kind.EXACT} else Kind.ESTIMATE,
        status=Status(f"components solved apart: {words}"),
        lower=math.fsum([model.offset, *lowers]) - slack if len(lowers) == len(outcomes) else None,
        upper=math.fsum([model.offset, *uppers]) + slack if len(uppers) == len(outcomes) else None,
        details={"components": [dict(outcome.details) for outcome in outcomes]},
    )


def _joined(model: Ising, parts: list[IntArray], found: list[MarginalOutcome]) -> MarginalOutcome:
    """Put the marginals of components together."""
    edges, _ = model.edges()
    places = edges[:, 0] * model.n + edges[:, 1]  # in order, as edges are
    mean, probability, pair_mean = np.empty(model.n), np.empty((model.n, 2)), np.empty(len(edges))
    for spins, part in zip(parts, found, strict=True):
        mean[spins], probability[spins] = part.mean, part.probability
        pairs = spins[model.submodel(spins).edges()[0]]
        pair_mean[np.searchsorted(places, pairs[:, 0] * model.n + pairs[:, 1])] = part.pair_mean
    kinds = {part.kind for part in found}
    return MarginalOutcome(
        probability=probability,
        mean=mean,
        pair_mean=pair_mean,
        kind=Kind.EXACT if kinds == {Kind.EXACT} else Kind.ESTIMATE,
        outcome=_added(model, [part.outcome for part in found]),
    )
