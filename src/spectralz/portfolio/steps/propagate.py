"""Expectation propagation, and belief propagation where it has no trusted answer."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from spectralz._support import clock
from spectralz._support.options import bytes_in_words
from spectralz.errors import SpectralzError
from spectralz.methods.belief_propagation import BYTES_PER_MESSAGE, BeliefPropagation, operations_of_bp
from spectralz.methods.expectation_propagation import ExpectationPropagation
from spectralz.model import Polynomial
from spectralz.parts.expectation_propagation.problem import MANY_SPINS, step_operations
from spectralz.portfolio import policy
from spectralz.portfolio.answers import Answer
from spectralz.result import Kind, Status
from spectralz.trust.judgment import with_rounding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spectralz._support.deadline import Deadline
    from spectralz.parts.outcome import Outcome
    from spectralz.parts.propagation.loops import Loops
    from spectralz.portfolio.answers import Answers, Problem


def propagate(problem: Problem, deadline: Deadline, answers: Answers) -> Iterator[Answers]:
    """Run expectation propagation, unless couplings are so strong that it would not trust its answer."""
    model = problem.model
    if isinstance(model, Polynomial):
        why = "with terms of three and more spins the size of its error is not known"
        yield answers.without(policy.PAIRS_ONLY, "ep").without(why, "bp")
        return
    if "ep" in problem.exclude:
        return
    if answers.is_compressed(problem.tol):
        yield answers.without("not needed: mps has answered, and has samples of its own", "ep")
        return
    strength = model.storage.for_kernels().mean_strength
    if problem.sums_out_many and strength > policy.STRONGEST_EP_OF_SIDES:
        yield answers.without("annealing with one of the two sides summed out does better", "ep", "bp")
        return
    if strength >= (policy.STRONGEST_EP if model.field.any() else policy.STRONGEST_EP_WITHOUT_FIELDS):
        yield answers.without(f"couplings are too strong for it: sqrt(sum_j J_ij^2) is {strength:.2g} on average", "ep")
        return
    if model.n <= MANY_SPINS:
        deadline = deadline.share(policy.EP_PART_OF_FEW)
    needed = policy.FEWEST_EP_STEPS * step_operations(model.n) / clock.OPERATIONS_PER_SECOND
    if needed > deadline.left:
        words = clock.in_words(needed), clock.in_words(deadline.seconds)
        yield answers.without(f"a few steps would take about {words[0]}, and its share has {words[1]} left", "ep")
        return
    began = clock.seconds()
    try:
        with deadline.in_force():
            marginals = ExpectationPropagation()._solve_marginals(model)
    except SpectralzError as error:
        yield answers.without(str(error), "ep")
        return
    yield answers.with_answer(Answer("ep", marginals.outcome, clock.seconds() - began, lambda: marginals))


def pass_messages(problem: Problem, deadline: Deadline, answers: Answers) -> Iterator[Answers]:
    """Run belief propagation if ep has no trusted answer; it is never trusted alone, but gives an error scale."""
    model, edges = problem.model, problem.model.edge_count
    if (
        isinstance(model, Polynomial)
        or model.n < policy.FEWEST_BP_SPINS
        or "bp" in (*problem.exclude, *answers.not_run)
    ):
        return
    if answers.trusts("ep") or answers.is_compressed(problem.tol):
        return
    if 2 * edges > policy.MOST_BP_DEGREE * model.n:
        yield answers.without("the graph is too dense for it", "bp")
        return
    needed = operations_of_bp(model.n, edges, policy.FEWEST_BP_ITERATIONS) / clock.OPERATIONS_PER_SECOND
    if needed > deadline.seconds:
        words = clock.in_words(needed), clock.in_words(deadline.seconds)
        yield answers.without(f"a few iterations would take about {words[0]}, and its share has {words[1]} left", "bp")
        return
    memory = 2 * edges * BYTES_PER_MESSAGE
    if memory > problem.max_memory:
        words = bytes_in_words(memory), bytes_in_words(problem.max_memory)
        yield answers.without(f"its messages need {words[0]}; max_memory is {words[1]}", "bp")
        return
    began = clock.seconds()
    method = BeliefPropagation(max_iter=policy.MOST_BP_ITERATIONS, damping=policy.BP_DAMPING, tol=policy.BP_TOL)
    with deadline.in_force():
        marginals, loops = method.solve_with_loops(model)
    if marginals.outcome.kind is Kind.EXACT and "exact" in problem.exclude:
        loops = "left out: it is exact here, and exact was excluded"
    if isinstance(loops, str):
        yield answers.without(loops, "bp")
        return
    outcome = _with_scale_of(loops, marginals.outcome)
    yield answers.with_answer(
        Answer("bp", outcome, clock.seconds() - began, lambda: replace(marginals, outcome=outcome))
    )


def _with_scale_of(loops: Loops, outcome: Outcome) -> Outcome:
    """Return Bethe's log Z with the scale of the loops that it leaves out; not trusted alone."""
    scale = f"{loops.signed:+.2g}, or ±{math.sqrt(loops.variance):.2g} with random signs"
    words = f"{outcome.status}; loops, which it leaves out, may add {scale}"
    return replace(
        outcome,
        kind=Kind.ESTIMATE,
        lower=None,
        upper=None,
        std_error=with_rounding(math.hypot(loops.scale, policy.LEAST_BP_ERROR), outcome.log_z),
        trusted=False,
        status=Status(words, converged=outcome.status.converged),
        details={**outcome.details, "loops": loops.signed, "loops_variance": loops.variance},
    )
