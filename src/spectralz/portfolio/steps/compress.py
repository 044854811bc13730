"""Compressed elimination by a deadline: bonds grow while there is time and the answer still changes.

Models that are too cold for it are summed over the heaviest states of the frontier instead.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from spectralz._support import clock, costs
from spectralz._support.deadline import LateError
from spectralz._support.threads import NO_MATRICES, using_threads
from spectralz.errors import SpectralzError, TooLargeError
from spectralz.methods.matrix_product import MOST_COLD_SPINS, MatrixProduct, frontier_outcome
from spectralz.model import Ising
from spectralz.parts.compressed.contraction import Compressed
from spectralz.parts.compressed.frontier import largest_layer
from spectralz.parts.elimination.heaviest_frontier import cold_frontier
from spectralz.portfolio import policy
from spectralz.portfolio.answers import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spectralz._support.deadline import Deadline
    from spectralz.parts.compressed.frontier import FrontierPlan
    from spectralz.portfolio.answers import Answers, Problem


def compress(problem: Problem, deadline: Deadline, answers: Answers) -> Iterator[Answers]:
    """Eliminate with compressed tables, if the frontier is small."""
    if "mps" in problem.exclude:
        return
    if problem.model.higher.number:
        yield answers.without(policy.PAIRS_ONLY, "mps")
        return
    began = clock.seconds()
    best = _best(problem, deadline)
    if isinstance(best, str):
        yield answers.without(best, "mps")
    else:
        yield answers.with_answer(replace(best, seconds=clock.seconds() - began))


def _best(problem: Problem, deadline: Deadline) -> Answer | str:
    """Return the best answer found in time, or why there is none."""
    model = problem.model
    assert isinstance(model, Ising)
    refusal = refusal_of_frontier(model, deadline)
    if refusal:
        return refusal
    method = MatrixProduct(
        bond=policy.FIRST_BOND, samples=policy.MPS_SAMPLES, seed=problem.seed, max_memory=problem.max_memory
    )
    try:
        layout = replace(method, bond=policy.BOND_TO_PLAN_FOR).plan(model)
    except TooLargeError as error:
        return str(error)
    is_cold = _is_cold(model, layout)
    for_bonds = deadline.share(policy.BONDS_SHARE) if is_cold else deadline
    with deadline.in_force():
        best = with_growing_bonds(model, method, layout, for_bonds, problem.tol, deadline)
        if not is_cold or (isinstance(best, Answer) and best.outcome.is_trusted):
            return best
        cold = _by_heaviest_states(problem)
    if cold is not None and (isinstance(best, str) or _is_better(cold, best)):
        return cold
    return best


def _is_better(answer: Answer, other: Answer) -> bool:
    """Return whether an answer is the one to keep."""
    if answer.outcome.is_trusted != other.outcome.is_trusted:
        return answer.outcome.is_trusted
    return answer.error <= other.error


def refusal_of_frontier(model: Ising, deadline: Deadline) -> str:
    """Return why no small frontier is to be expected, or why looking for one would take too long; otherwise nothing."""
    degree = 2.0 * model.edge_count / max(model.n, 1)
    if degree > min(policy.MOST_MPS_DEGREE, policy.MOST_MPS_DENSITY * model.n):
        return f"the graph is too dense, with {degree:.3g} neighbors on average"
    needed = model.n * costs.COMPRESSED_PLAN_SPIN / clock.OPERATIONS_PER_SECOND
    if needed > policy.MPS_PLAN_SHARE * deadline.seconds:
        return f"the search for an order would take about {clock.in_words(needed)}"
    if model.n > policy.MPS_SPINS_UNSEEN:
        layer = largest_layer(model)
        if layer > policy.MPS_LAYER_ROOTS * math.sqrt(model.n):
            return f"the graph is too wide: {layer} spins are at the same distance from one spin"
    return ""


def with_growing_bonds(
    model: Ising,
    method: MatrixProduct,
    layout: FrontierPlan,
    deadline: Deadline,
    tol: float,
    whole: Deadline | None = None,
) -> Answer | str:
    """Double the bond as long as the next contractions are predicted to end in time and the answer changes.

    Once what they discard falls fast, or an answer is trusted, they may go on until the ``whole`` of the time.
    """
    bond = _first_bond(model, method, layout, deadline)
    if isinstance(bond, str):
        return bond
    best: Answer | None = None
    discarded, falls = 0.0, bond > policy.FIRST_BOND
    seconds_per_operation = policy.MPS_TIMES / clock.OPERATIONS_PER_SECOND
    before = math.inf
    cheap = policy.CHEAP_MPS_SHARE * deadline.left
    while bond <= policy.MOST_BOND:
        operations = layout.operations(bond)
        needed = operations * seconds_per_operation
        if best is not None and best.is_as_good_as(tol) and needed > cheap:
            break
        is_promising = falls or (best is not None and best.outcome.is_trusted)
        limit = (whole or deadline) if is_promising else deadline
        if needed > limit.left:
            if best is None:
                return _too_long(bond, needed, deadline)
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
        answer = Answer("mps", outcome, 0.0, lambda now=now: now.marginals_of_plan(model, layout))  # type: ignore[misc]
        best = answer if best is None or _is_better(answer, best) else best
        if bond >= layout.largest_bond or best.is_as_good_as(policy.MPS_TOL):
            break
        falls = outcome.details["discarded"] <= policy.DISCARDED_FALL * discarded
        if before < math.inf and not outcome.is_trusted and not falls and answer.error > policy.MPS_FALL * before:
            break  # no affordable bond is large enough
        before, discarded, bond = answer.error, outcome.details["discarded"], 2 * bond
    assert best is not None
    return best


def _first_bond(model: Ising, method: MatrixProduct, layout: FrontierPlan, deadline: Deadline) -> int | str:
    """Return the first bond at which little is discarded, by single contractions, or why there is none.

    If that would take too long, the last bond at which not much is discarded.
    """
    bond, before, discarded = policy.FIRST_BOND, policy.MOST_DISCARDED, math.inf
    while True:
        needed = layout.operations(bond) / clock.OPERATIONS_PER_SECOND
        if policy.MPS_TIMES * needed > deadline.left:
            if discarded <= policy.NOT_MUCH_DISCARDED:
                return bond // 2
            return _too_long(bond, policy.MPS_TIMES * needed, deadline)
        try:
            with using_threads(None, NO_MATRICES):
                discarded = Compressed(model, layout, bond, method.cutoff).contract().discarded
        except LateError as error:
            return str(error)
        if discarded <= policy.LITTLE_DISCARDED or bond >= layout.largest_bond:
            return bond
        if discarded > max(before, policy.NOT_MUCH_DISCARDED):
            return f"no affordable bond is large enough: {bond} discards {discarded:.2g} of the weight"
        before, bond = policy.DISCARDED_FALL * discarded, 2 * bond


def _too_long(bond: int, needed: float, deadline: Deadline) -> str:
    words = clock.in_words(needed), clock.in_words(deadline.left)
    return f"contractions with bond {bond} would take about {words[0]}, and its share has {words[1]} left"


def _is_cold(model: Ising, layout: FrontierPlan) -> bool:
    return bool(
        model.n <= MOST_COLD_SPINS
        and layout.width <= policy.MOST_COLD_WIDTH
        and model.storage.for_kernels().mean_strength > policy.WARM
    )


def _by_heaviest_states(problem: Problem) -> Answer | None:
    most, memory = policy.MOST_FRONTIER_STATES, problem.max_memory // 4
    try:
        assert isinstance(problem.model, Ising)
        cold = cold_frontier(problem.model, gap=2.0 * problem.tol, most_states=most, max_memory=memory)
    except SpectralzError:
        return None
    outcome = frontier_outcome(cold)
    return Answer("mps", outcome, 0.0, lambda: cold.marginals(outcome))
