"""Compressed elimination within a budget: bonds grow while there is time and the answer still moves.

Models that are too cold for it are summed up over the heaviest states of the frontier instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spectralz._support import clock
from spectralz.errors import SpectralzError, TooLargeError
from spectralz.methods.matrix_product import MatrixProduct
from spectralz.parts.cold_frontier import ColdFrontier
from spectralz.portfolio import policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from spectralz.model import Ising
    from spectralz.parts.frontier import FrontierPlan
    from spectralz.parts.outcome import MarginalOutcome, Outcome

__all__ = ["Compression", "compress"]


@dataclass(frozen=True)
class Compression:
    """An answer, and what gives the marginals that go with it."""

    outcome: Outcome
    marginals: Callable[[], MarginalOutcome]

    @property
    def error(self) -> float:
        """The standard error."""
        return math.inf if self.outcome.std_error is None else self.outcome.std_error

    def is_as_good_as(self, tol: float) -> bool:
        """Say whether it is trusted, with an error up to ``tol``."""
        return self.outcome.is_trusted and self.error <= tol

    def is_better_than(self, other: Compression) -> bool:
        """Say whether this is the one to keep."""
        if self.outcome.is_trusted != other.outcome.is_trusted:
            return self.outcome.is_trusted
        return self.error <= other.error


def compress(model: Ising, *, seconds: float, tol: float, seed: int, max_memory: int) -> Compression | str:
    """Return the best answer that fits into some seconds, or why there is none."""
    refusal = _refusal(model, seconds)
    if refusal:
        return refusal
    began = clock.now()
    method = MatrixProduct(bond=policy.FIRST_BOND, samples=policy.MPS_SAMPLES, seed=seed, max_memory=max_memory)
    try:
        layout = method.plan(model)
    except TooLargeError as error:
        return str(error)
    is_cold = _is_cold(model, layout)
    end = began + (policy.BONDS_SHARE if is_cold else 1.0) * seconds
    with clock.until(end):
        best = _with_growing_bonds(model, method, layout, end, tol)
    if not is_cold or (isinstance(best, Compression) and best.outcome.is_trusted):
        return best
    with clock.until(began + seconds):
        cold = _by_heaviest_states(model, tol, max_memory)
    if cold is not None and (isinstance(best, str) or cold.is_better_than(best)):
        return cold
    return best


def _refusal(model: Ising, seconds: float) -> str:
    degree = 2.0 * model.edge_count / max(model.n, 1)
    if degree > min(policy.MOST_MPS_DEGREE, policy.MOST_MPS_DENSITY * model.n):
        return f"spins have {degree:.3g} neighbors on average; the frontier is small only where they have few"
    needed = model.n * policy.MPS_PLAN_OPERATIONS / clock.OPERATIONS_PER_SECOND
    if needed > policy.MPS_PLAN_SHARE * seconds:
        return f"to look for an order would take about {clock.in_words(needed)}"
    return ""


def _with_growing_bonds(
    model: Ising, method: MatrixProduct, layout: FrontierPlan, end: float, tol: float
) -> Compression | str:
    """Double the bond as long as the next contraction is predicted to end in time."""
    best: Compression | None = None
    seconds_per_operation = policy.MPS_TIMES / clock.OPERATIONS_PER_SECOND
    bond = policy.FIRST_BOND
    before = math.inf
    cheap = policy.CHEAP_MPS_SHARE * (end - clock.now())
    while bond <= policy.MOST_BOND:
        operations = layout.operations(bond)
        needed, left = operations * seconds_per_operation, end - clock.now()
        if best is not None and best.is_as_good_as(tol) and needed > cheap:
            break
        if needed > left:
            if best is None:
                words = clock.in_words(needed), clock.in_words(max(left, 0.0))
                return f"a contraction with bond {bond} would take about {words[0]}, its share has {words[1]} left"
            break
        now = replace(method, bond=bond)
        began = clock.now()
        try:
            outcome = now.solve_plan(model, layout)
        except SpectralzError as error:
            if best is None:
                return str(error)
            break
        seconds_per_operation = max((clock.now() - began) / operations, policy.TICK / operations)
        found = Compression(outcome, lambda now=now: now.marginals_of_plan(model, layout))  # type: ignore[misc]
        best = found if best is None or found.is_better_than(best) else best
        is_whole = bond >= layout.largest_bond
        if is_whole or best.is_as_good_as(policy.MPS_TOL):
            break
        if bond >= policy.BOND_TO_JUDGE and not outcome.is_trusted and found.error > policy.MPS_FALL * before:
            break  # no bond that can be afforded will do
        before, bond = found.error, 2 * bond
    assert best is not None
    return best


def _is_cold(model: Ising, layout: FrontierPlan) -> bool:
    return bool(
        model.n <= policy.MOST_COLD_SPINS
        and layout.width <= policy.MOST_COLD_WIDTH
        and model.storage.for_kernels().mean_strength > policy.WARM
    )


def _by_heaviest_states(model: Ising, tol: float, max_memory: int) -> Compression | None:
    try:
        cold = ColdFrontier(model, gap=2.0 * tol, most_states=policy.MOST_FRONTIER_STATES, max_memory=max_memory // 4)
    except SpectralzError:
        return None
    outcome = cold.outcome()
    return Compression(outcome, lambda: cold.marginals(outcome))
