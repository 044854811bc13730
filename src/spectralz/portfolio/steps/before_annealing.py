"""What runs before annealing: compressed elimination, and expectation and belief propagation.

Bonds of compressed elimination grow while there is time and the answer still changes. Models that are too cold for it
are summed over the heaviest states of the frontier instead. Belief propagation runs where expectation propagation has
no trusted answer.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from spectralz._support import clock, costs
from spectralz._support.deadline import LateError
from spectralz._support.options import bytes_in_words
from spectralz._support.threads import NO_MATRICES, using_threads
from spectralz.errors import SpectralzError, TooLargeError
from spectralz.methods.belief_propagation import BYTES_PER_MESSAGE, BeliefPropagation, operations_of_bp
from spectralz.methods.expectation_propagation import ExpectationPropagation
from spectralz.methods.matrix_product import MOST_COLD_SPINS, MatrixProduct, frontier_outcome
from spectralz.model import Ising, Polynomial
from spectralz.model.constraints import AtMostOne
from spectralz.parts.compressed.contraction import Compressed
from spectralz.parts.compressed.frontier import largest_layer
from spectralz.parts.elimination.heaviest_frontier import cold_frontier
from spectralz.parts.expectation_propagation.problem import MANY_SPINS, step_operations
from spectralz.portfolio import policy
from spectralz.portfolio.answers import Answer, too_long
from spectralz.result import Kind, Status
from spectralz.trust.judgment import with_rounding

if TYPE_CHECKING:
    from spectralz._support.deadline import Deadline
    from spectralz.model import Model
    from spectralz.parts.compressed.frontier import FrontierPlan
    from spectralz.parts.outcome import Outcome
    from spectralz.parts.propagation.loops import Loops
    from spectralz.portfolio.answers import Answers, Problem


def compress(problem: Problem, deadline: Deadline, answers: Answers) -> Answers:
    """Eliminate with compressed tables, if the frontier is small."""
    if "mps" in problem.exclude:
        return answers
    if problem.model.higher.number:
        return answers.without(policy.PAIRS_ONLY, "mps")
    if problem.model.constraints and (problem.with_means or not _has_pairs_alone(problem.model)):
        return answers.without("with constraints it takes those of two spins, and gives log Z alone", "mps")
    began = clock.seconds()
    best = _best(problem, deadline)
    if isinstance(best, str):
        return answers.without(best, "mps")
    return answers.with_answer(replace(best, seconds=clock.seconds() - began))


def _has_pairs_alone(model: Model) -> bool:
    return all(len(part.scope) <= 2 or isinstance(part, AtMostOne) for part in model.constraints)


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
                return too_long(f"contractions with bond {bond}", needed, deadline.left)
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
            return too_long(f"contractions with bond {bond}", policy.MPS_TIMES * needed, deadline.left)
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


def _is_cold(model: Ising, layout: FrontierPlan) -> bool:
    return bool(
        not model.constraints
        and model.n <= MOST_COLD_SPINS
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


# ---------------------------------------------------------------------------------------------------------- propagation


def propagate(problem: Problem, deadline: Deadline, answers: Answers) -> Answers:
    """Run expectation propagation, unless couplings are so strong that it would not trust its answer."""
    model = problem.model
    if isinstance(model, Polynomial):
        why = "with terms of three and more spins the size of its error is not known"
        return answers.without(policy.PAIRS_ONLY, "ep").without(why, "bp")
    if model.constraints:
        why = "with constraints the size of its error is not known"
        return answers.without(policy.NO_CONSTRAINTS, "ep").without(why, "bp")
    if "ep" in problem.exclude:
        return answers
    if answers.is_compressed(problem.tol):
        return answers.without("not needed: mps has answered, and has samples of its own", "ep")
    strength = model.storage.for_kernels().mean_strength
    if problem.sums_out_many and strength > policy.STRONGEST_EP_OF_SIDES:
        return answers.without("annealing with one of the two sides summed out does better", "ep", "bp")
    if strength >= (policy.STRONGEST_EP if model.field.any() else policy.STRONGEST_EP_WITHOUT_FIELDS):
        return answers.without(
            f"couplings are too strong for it: sqrt(sum_j J_ij^2) is {strength:.2g} on average", "ep"
        )
    if model.n <= MANY_SPINS:
        deadline = deadline.share(policy.EP_PART_OF_FEW)
    needed = policy.FEWEST_EP_STEPS * step_operations(model.n) / clock.OPERATIONS_PER_SECOND
    if needed > deadline.left:
        return answers.without(too_long("a few steps", needed, deadline.left), "ep")
    began = clock.seconds()
    try:
        with deadline.in_force():
            marginals = ExpectationPropagation()._solve_marginals(model)
    except SpectralzError as error:
        return answers.without(str(error), "ep")
    return answers.with_answer(Answer("ep", marginals.outcome, clock.seconds() - began, lambda: marginals))


def pass_messages(problem: Problem, deadline: Deadline, answers: Answers) -> Answers:
    """Run belief propagation if ep has no trusted answer; it is never trusted alone, but gives an error scale."""
    model, edges = problem.model, problem.model.edge_count
    if (
        isinstance(model, Polynomial)
        or model.constraints
        or model.n < policy.FEWEST_BP_SPINS
        or "bp" in (*problem.exclude, *answers.not_run)
    ):
        return answers
    if answers.trusts("ep") or answers.is_compressed(problem.tol):
        return answers
    if 2 * edges > policy.MOST_BP_DEGREE * model.n:
        return answers.without("the graph is too dense for it", "bp")
    needed = operations_of_bp(model.n, edges, policy.FEWEST_BP_ITERATIONS) / clock.OPERATIONS_PER_SECOND
    if needed > deadline.seconds:
        return answers.without(too_long("a few iterations", needed, deadline.seconds), "bp")
    memory = 2 * edges * BYTES_PER_MESSAGE
    if memory > problem.max_memory:
        words = bytes_in_words(memory), bytes_in_words(problem.max_memory)
        return answers.without(f"its messages need {words[0]}; max_memory is {words[1]}", "bp")
    began = clock.seconds()
    method = BeliefPropagation(max_iter=policy.MOST_BP_ITERATIONS, damping=policy.BP_DAMPING, tol=policy.BP_TOL)
    with deadline.in_force():
        marginals, loops = method.solve_with_loops(model)
    if marginals.outcome.kind is Kind.EXACT and "exact" in problem.exclude:
        loops = "left out: it is exact here, and exact was excluded"
    if isinstance(loops, str):
        return answers.without(loops, "bp")
    outcome = _with_scale_of(loops, marginals.outcome)
    return answers.with_answer(
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
