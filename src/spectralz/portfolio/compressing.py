"""Compressed elimination within a budget: bonds grow while there is time and the answer still changes.

Models that are too cold for it are summed over the heaviest states of the frontier instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from spectralz._support import clock
from spectralz._support.threads import NO_MATRICES, using_threads
from spectralz.errors import SpectralzError, TooLargeError
from spectralz.methods.matrix_product import MOST_COLD_SPINS, MatrixProduct, frontier_outcome
from spectralz.parts.cold_frontier import cold_frontier
from spectralz.parts.compressed import Compressed, LateError
from spectralz.parts.frontier import largest_layer
from spectralz.portfolio import policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from spectralz.model import Ising
    from spectralz.parts.frontier import FrontierPlan
    from spectralz.parts.outcome import MarginalOutcome, Outcome

__all__ = ["Compression", "compress"]


@dataclass(frozen=True)
class Compression:
    """An answer, and the source of its marginals."""

    outcome: Outcome
    marginals: Callable[[], MarginalOutcome]

    @property
    def error(self) -> float:
        """The standard error."""
        return math.inf if self.outcome.std_error is None else self.outcome.std_error

    def is_as_good_as(self, tol: float) -> bool:
        """Return whether it is trusted, with an error up to ``tol``."""
        return self.outcome.is_trusted and self.error <= tol

    def is_better_than(self, other: Compression) -> bool:
        """Return whether this is the one to keep."""
        if self.outcome.is_trusted != other.outcome.is_trusted:
            return self.outcome.is_trusted
        return self.error <= other.error


def compress(model: Ising, *, seconds: float, tol: float, seed: int, max_memory: int) -> Compression | str:
    """Return the best answer found in the given seconds, or why there is none."""
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
        return f"the search for an order would take about {clock.in_words(needed)}"
    if model.n > policy.MPS_SPINS_UNSEEN:
        layer = largest_layer(model)
        if layer > policy.MPS_LAYER_ROOTS * math.sqrt(model.n):
            return f"{layer} spins are at the same distance from one spin: no frontier is small"
    return ""


def _with_growing_bonds(
    model: Ising, method: MatrixProduct, layout: FrontierPlan, end: float, tol: float
) -> Compression | str:
    """Double the bond as long as the next contractions are predicted to end in time and the answer changes."""
    bond = _first_bond(model, method, layout, end)
    if isinstance(bond, str):
        return bond
    best: Compression | None = None
    seconds_per_operation = policy.MPS_TIMES / clock.OPERATIONS_PER_SECOND
    before = math.inf
    cheap = policy.CHEAP_MPS_SHARE * (end - clock.now())
    while bond <= policy.MOST_BOND:
        operations = layout.operations(bond)
        needed = operations * seconds_per_operation
        if best is not None and best.is_as_good_as(tol) and needed > cheap:
            break
        if needed > end - clock.now():
            if best is None:
                return _too_long(bond, needed, end)
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
        if bond >= layout.largest_bond or best.is_as_good_as(policy.MPS_TOL):
            break
        if before < math.inf and not outcome.is_trusted and found.error > policy.MPS_FALL * before:
            break  # no affordable bond is large enough
        before, bond = found.error, 2 * bond
    assert best is not None
    return best


def _first_bond(model: Ising, method: MatrixProduct, layout: FrontierPlan, end: float) -> int | str:
    """Return the first bond at which little is discarded, by single contractions, or why there is none."""
    bond, before = policy.FIRST_BOND, policy.MOST_DISCARDED
    while True:
        needed = layout.operations(bond) / clock.OPERATIONS_PER_SECOND
        if policy.MPS_TIMES * needed > end - clock.now():
            return _too_long(bond, policy.MPS_TIMES * needed, end)
        try:
            with using_threads(None, NO_MATRICES):
                discarded = Compressed(model, layout, bond, method.cutoff).contract().discarded
        except LateError as error:
            return str(error)
        if discarded <= policy.LITTLE_DISCARDED or bond >= layout.largest_bond:
            return bond
        if discarded > before:
            return f"with bond {bond} a contraction discards {discarded:.2g} of its weight, which falls too slowly"
        before, bond = policy.DISCARDED_FALL * discarded, 2 * bond


def _too_long(bond: int, needed: float, end: float) -> str:
    words = clock.in_words(needed), clock.in_words(max(end - clock.now(), 0.0))
    return f"contractions with bond {bond} would take about {words[0]}, their share has {words[1]} left"


def _is_cold(model: Ising, layout: FrontierPlan) -> bool:
    return bool(
        model.n <= MOST_COLD_SPINS
        and layout.width <= policy.MOST_COLD_WIDTH
        and model.storage.for_kernels().mean_strength > policy.WARM
    )


def _by_heaviest_states(model: Ising, tol: float, max_memory: int) -> Compression | None:
    try:
        cold = cold_frontier(model, gap=2.0 * tol, most_states=policy.MOST_FRONTIER_STATES, max_memory=max_memory // 4)
    except SpectralzError:
        return None
    outcome = frontier_outcome(cold)
    return Compression(outcome, lambda: cold.marginals(outcome))
