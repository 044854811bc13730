"""Bracket log Z with all methods that prove bounds, by a deadline.

Cheap bounds come first. A more expensive bound is computed only if its predicted cost fits into the time left. Bounds
that have been found are kept, whatever happens later. A bounder yields proven bounds, cheap ones first, by a deadline.

In the schedule they come first of all, and again in the end if no method gave an answer: they are then all there is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectralz._support import clock, costs
from spectralz._support.deadline import Deadline, NotAffordableError
from spectralz._support.options import checked_names
from spectralz._support.progress import report
from spectralz._support.threads import using_threads
from spectralz.errors import SpectralzError, is_interrupt
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.methods.convex_mean_field import ConvexMeanField
from spectralz.methods.exact import Exact
from spectralz.methods.mean_field import MeanField
from spectralz.methods.sdp_bound import SDPBound
from spectralz.methods.tree_reweighted import MOST_DENSE_SPINS, TREES, TreeReweighted
from spectralz.methods.weighted_mini_bucket import WeightedMiniBucket
from spectralz.model import Ising, Model, Polynomial
from spectralz.parts.elimination.constrained import with_tables
from spectralz.parts.mini_buckets.bounds import WeightedBound
from spectralz.parts.propagation.attractive import bethe_bounds, signs_of
from spectralz.portfolio import policy
from spectralz.portfolio.exact_costs import operations_of_plan
from spectralz.result import Bounds, BoundsRow
from spectralz.sampling.heavy.pool import MOST_STATES, fill, state_pool
from spectralz.sampling.heavy.pool import search as search_neighbors
from spectralz.sampling.path import path_to
from spectralz.sampling.penalties import penalized
from spectralz.sampling.population import pilot
from spectralz.sampling.spread import crew_for
from spectralz.sampling.sweeps import seconds_per_state, seconds_per_sweep

if TYPE_CHECKING:
    from spectralz.methods.base import Method
    from spectralz.portfolio.answers import Answers, Problem
    from spectralz.result import Estimate


class Bound(NamedTuple):
    """A proven bound on one side or both, and how it was obtained."""

    lower: float | None
    upper: float | None
    status: str


# Takes a model of the kind that it is for (``in_order``).
Bounder = Callable[[Any, "Deadline"], Iterator[Bound]]


def _bound(estimate: Estimate) -> Bound:
    return Bound(estimate.lower, estimate.upper, str(estimate.status))


def _run(
    method: Method, model: Model, deadline: Deadline, cost: Callable[[Estimate], float] | None = None
) -> tuple[Estimate, float]:
    """Run a method until it ends or its time is up; return its result, and the time it took.

    ``cost`` gives the seconds of work in a result beyond what the method itself charges; they are charged if operations
    are counted.
    """
    began = clock.now()
    with deadline.in_force():
        estimate = method.run(model)
    if cost is not None:
        clock.charge(clock.OPERATIONS_PER_SECOND * cost(estimate))
    return estimate, clock.now() - began


def trivial(model: Model, deadline: Deadline) -> Iterator[Bound]:
    """Bound from the spins without couplings: these add at most sum |A_ij|, and by Jensen at least their mean there."""
    from spectralz.kernels.single_spin import log_2cosh

    theta = np.asarray(model.field)
    mean = np.tanh(theta)
    sizes, sums = model.storage.written_out.row_sums(mean)
    parts = [*log_2cosh(theta).tolist(), model.constant]
    alone, most, mean_weight = math.fsum(parts), math.fsum(sizes.tolist()), math.fsum((mean * sums).tolist())
    if model.higher.number:
        most += model.higher.total
        mean_weight += float(model.higher.log_weight(mean[None])[0])
        parts.append(float(model.higher.number + model.higher.largest) * model.higher.total)  # as many roundings
    scale = float(np.abs(parts).sum()) + (model.n + 16.0) * most
    rounding = 8.0 * UNIT_ROUNDOFF * (model.n + scale) + model.rounding
    lower = -math.inf if model.constraints else alone + mean_weight - rounding
    yield Bound(lower, alone + most + rounding, "spins without their couplings")


def _mean_field(model: Model, deadline: Deadline) -> Iterator[Bound]:
    """Start from zero, annealed, along leading eigenvectors and at random; then use wider and wider blocks.

    Any number of sweeps gives a bound. All starts end when their share is spent, those of single spins earlier.
    """
    whole = deadline.share(policy.LARGEST_SHARE)
    of_single_spins = whole.share(policy.SINGLE_SPINS_SHARE)

    def run(method: MeanField) -> tuple[Estimate, float]:
        return _run(method, model, whole if method.block_width else of_single_spins)

    yield _bound(run(MeanField())[0])
    begun, seconds = clock.now(), 0.0
    allowed = policy.RESTARTS_SHARE * policy.LARGEST_SHARE * deadline.left
    for start in ("leading", "annealed"):
        if of_single_spins.left:
            latest, seconds = run(MeanField(start=start))
            yield _bound(latest)
    for seed in range(policy.BOUNDING_RESTARTS):
        if not of_single_spins.left or (seed and clock.now() - begun + seconds > allowed):
            break
        latest, seconds = run(MeanField(start="random", seed=seed))
        yield _bound(latest)
    if _is_sparse(model) and isinstance(model, Ising):  # in a dense graph blocks hold hardly any couplings
        yield from _blocks(model, run, whole)


def _blocks(model: Ising, run: Callable[[MeanField], tuple[Estimate, float]], deadline: Deadline) -> Iterator[Bound]:
    """Widen the blocks as long as the predicted time fits, then try other starts with the widest."""
    width, slower = policy.FIRST_BLOCK_WIDTH, 1.0
    predicted = costs.BLOCK_SECONDS * model.n
    while predicted < deadline.left and not model.storage.couples_nothing:
        method = MeanField(block_width=width, start="annealed", max_iter=policy.BLOCK_SWEEPS, tol=policy.BLOCK_TOL)
        latest, took = run(method)
        yield _bound(latest)
        if latest.upper is not None:  # one block holds all
            return
        left, slower = deadline.left, max(slower, took / predicted)
        tables = costs.BLOCK_ENTRY_SECONDS * latest.details["entries"]
        times = [slower * (costs.BLOCK_SECONDS * model.n + 2.0**k * tables) for k in range(policy.BLOCK_WIDTH_STEP + 1)]
        wider = max((k for k, seconds in enumerate(times) if seconds < left), default=0)
        wider = min(wider, policy.MOST_BLOCK_WIDTH - width)
        if not wider:
            restarts = _within(left / max(took, policy.TICK), 0, policy.BLOCK_RESTARTS)
            if restarts > 1:
                yield _bound(run(replace(method, restarts=restarts))[0])
            return
        width, predicted = width + wider, times[wider]


def _bethe(model: Ising, deadline: Deadline) -> Iterator[Bound]:
    """Pass messages if that gives a bound; any number of iterations does."""
    signs = signs_of(model)
    if signs is None:
        return
    deadline.require(costs.MESSAGE_SECONDS * 2.0 * model.edge_count)
    with deadline.share(policy.LARGEST_SHARE).in_force():
        for lower, status in bethe_bounds(model, signs):
            yield Bound(lower, None, status)


def _states(model: Model, deadline: Deadline) -> Iterator[Bound]:
    """Sum over the states found by a quick annealing and quenches, then also over their neighbors."""

    def seconds() -> float:
        return policy.STATES_SHARE * policy.LARGEST_SHARE * deadline.left

    with deadline.share(policy.LARGEST_SHARE).in_force():
        path = path_to(penalized(model))
        with crew_for(path) as crew:
            one = seconds_per_state(path, policy.QUICK_STEP, seconds_per_sweep(path, parallel=crew.parallel))
            deadline.require(2.0 * policy.FEWEST_STATES * one)
            size = _within(seconds() / one, policy.FEWEST_STATES, policy.MOST_ANNEALED)
            rng = np.random.default_rng(0)
            x = pilot(path, size, rng, crew.parallel, sweeps=1, variance=policy.QUICK_STEP).population.x
            pool = state_pool(model, MOST_STATES)
            fill(pool, path, x, size, rng, crew.parallel)
            for seconds_to_search in (0.0, seconds()):
                search_neighbors(pool, path, seconds_to_search, crew.parallel)
                if len(pool):
                    yield Bound(pool.lower, None, f"{len(pool)} states")


def _sdp(model: Ising, deadline: Deadline) -> Iterator[Bound]:
    seconds = _sdp_seconds(model)
    deadline.require(seconds)
    yield _bound(_run(SDPBound(tol=policy.SDP_TOL), model, deadline, lambda _: seconds)[0])


def _convex_mean_field(model: Ising, deadline: Deadline) -> Iterator[Bound]:
    one = 1.5 * _sdp_seconds(model)
    deadline.require(one)
    rounds = 3 if 4.0 * one <= policy.LARGEST_SHARE * deadline.left else 0
    method = ConvexMeanField(rounds=rounds, tol=policy.SDP_TOL)
    yield _bound(_run(method, model, deadline, lambda _: (rounds + 1) * one)[0])


def _tree_reweighted(model: Ising, deadline: Deadline) -> Iterator[Bound]:
    """Use uniform trees, then trees chosen for the model if there is time."""
    n, messages = model.n, 2.0 * model.edge_count
    trees = costs.INVERSE_SECONDS * n**3 if n <= MOST_DENSE_SPINS else costs.TREE_SECONDS * TREES * model.edge_count
    iteration = costs.MESSAGE_SECONDS * max(messages, 1.0)
    deadline.require(trees + policy.LEAST_ITERATIONS * iteration)
    iterations = _within(
        (policy.LARGEST_SHARE * deadline.left - trees) / iteration, policy.LEAST_ITERATIONS, policy.MOST_ITERATIONS
    )

    def seconds_of(estimate: Estimate) -> float:
        return float(trees + iteration * (estimate.iterations or 0))

    first, seconds = _run(TreeReweighted(max_iter=iterations), model, deadline, seconds_of)
    yield _bound(first)
    deadline.require((policy.EDGE_STEPS + 1) * seconds)
    chosen = TreeReweighted(max_iter=iterations, optimize_edges=policy.EDGE_STEPS)
    yield _bound(_run(chosen, model, deadline, seconds_of)[0])


def _weighted_mini_bucket(model: Model, deadline: Deadline) -> Iterator[Bound]:
    """Use the largest tables that can be tightened a little; alternate rounds from above and below while they pay.

    Then start again with larger tables, if there is time.
    """
    narrow = with_tables(model)
    plain = costs.BUCKET_SECONDS * (narrow.n + narrow.pair_count)
    deadline.require(plain + (round_seconds(narrow, narrow.higher.largest) if narrow.higher.number else 0.0))
    share = deadline.share(policy.LARGEST_SHARE)
    ibound = affordable_ibound(narrow, policy.FEW_ROUNDS, share.left - plain)
    while True:
        clock.charge(clock.OPERATIONS_PER_SECOND * plain)
        upper = WeightedBound.of_model(narrow, WeightedMiniBucket(ibound=ibound, order="narrow"), is_lower=False)
        yield _side(upper)
        if upper.is_exact:
            return
        yield from _tightened(upper, share)
        larger = affordable_ibound(narrow, policy.FEW_ROUNDS, share.left - plain)
        if larger <= ibound or upper.interrupted:
            return
        ibound = larger


def _tightened(upper: WeightedBound, deadline: Deadline) -> Iterator[Bound]:
    """Alternate rounds from above and from below, as long as they pay."""
    first = upper.value
    lower: WeightedBound | None = None
    sides = [upper]
    while sides and deadline.left:
        for side in list(sides):
            before = side.value
            with deadline.in_force():
                side.run(policy.ROUNDS_AT_ONCE)
            yield _side(side)
            if side.interrupted:
                raise KeyboardInterrupt
            # How far the bounds still are from log Z: no more than from each other, and hardly more than the gain so
            # far.
            width = upper.value - lower.value if lower else math.inf
            far = policy.MOST_WIDTH_PER_SPIN * upper.model.n
            loose = width if width <= far else policy.LOOSE_PART * (first - upper.value)
            pays = abs(side.value - before) > policy.LEAST_GAIN_OF_ROUNDS * loose
            if side.is_at_rest or not pays or (side is lower and width > far):
                sides.remove(side)
        few = policy.ROUNDS_AT_ONCE * round_seconds(upper.model, upper.prepared.cover.widest)
        if lower is None and few < deadline.left and not upper.model.constraints:  # minima are zero with these
            lower = upper.from_below()
            sides.append(lower)


def _side(bound: WeightedBound) -> Bound:
    outcome = bound.outcome(details=False)
    return Bound(outcome.lower, outcome.upper, f"from below, {outcome.status}" if bound.is_lower else outcome.status)


def affordable_ibound(model: Model, rounds: int, seconds: float) -> int:
    """Return for how many spins tables can be tightened for so many rounds in the given seconds."""
    ibound = max(policy.LEAST_IBOUND, model.higher.largest)
    while ibound < policy.MOST_IBOUND and rounds * round_seconds(model, ibound + 1) <= seconds:
        ibound += 1
    return ibound


def _sdp_seconds(model: Ising) -> float:
    """Predict the time of the SDP from the size; if it takes longer, the deadline ends it."""
    n, edges = model.n, model.edge_count
    if edges > policy.SPARSE_DENSITY * n**2 / 2.0:
        return float(costs.DENSE_SDP_SECONDS * (n / 1000.0) ** costs.DENSE_SDP_POWER)
    return float(costs.SPARSE_SDP_SECONDS * (edges / 5000.0) ** costs.SPARSE_SDP_POWER)


def round_seconds(model: Model, ibound: int) -> float:
    """Predict the time of a round over the tables of mini-buckets, about one for each spin and ``ibound`` edges."""
    tables = model.n + 2.0 * model.pair_count / ibound
    return float(tables * (costs.TABLE_SECONDS + costs.ENTRY_SECONDS * 2.0 ** min(ibound, UNAFFORDABLE)))


def _is_sparse(model: Model) -> bool:
    return 2 * model.pair_count <= policy.MOST_SPARSE_DEGREE * model.n


def _within(value: float, least: int, most: int) -> int:
    return int(min(max(value, least), most))


def in_order(model: Model) -> list[str]:
    """Return the bounders for a model, with cheap ones and those likely to give the best bounds first."""
    order = SPARSE_ORDER if _is_sparse(model) else DENSE_ORDER
    if model.constraints:
        blind = [] if isinstance(model, Polynomial) else policy.BLIND_BOUNDERS
        return sorted([*policy.BOUNDERS_OF_CONSTRAINTS, *blind], key=SPARSE_ORDER.index)
    if isinstance(model, Polynomial):
        return sorted(policy.BOUNDERS_OF_TERMS, key=order.index)
    names = [name for name in BOUNDERS if name != "bethe" or signs_of(model) is not None]
    return sorted(names, key=order.index)


def bounder_of(name: str, model: Model) -> Bounder:
    """Return the bounder of this name; one that cannot see the constraints of the model bounds it without them."""
    is_blind = bool(model.constraints) and name in policy.BLIND_BOUNDERS
    return partial(_without_constraints, BOUNDERS[name]) if is_blind else BOUNDERS[name]


def _without_constraints(bounder: Bounder, model: Model, deadline: Deadline) -> Iterator[Bound]:
    """Bound log Z of all states from above, those included that break a constraint."""
    for bound in bounder(model.unconstrained, deadline):
        yield Bound(None, bound.upper, f"{bound.status}; of the model without its constraints")


def hopeless(model: Model) -> set[str]:
    """Return the bounders that hardly ever give the best bound on a dense model, after those of the SDP.

    Without fields the relaxation of ``convex_mf`` has its maximum at zero means, where it is the bound of the SDP. On a
    complete graph the tables of ``wmbe`` hold a small part of the couplings.
    """
    if isinstance(model, Polynomial) or _is_sparse(model):
        return set()
    names, couplings = {"trw"}, model.storage.for_kernels()
    if not model.field.any():
        names.add("convex_mf")
    if couplings.is_dense and model.n * couplings.mean_strength > policy.MOST_STRENGTH_OF_TABLES:
        names.add("wmbe")
    return names


# A new bounder needs one line here and a place below; `trivial` is run before all others.
BOUNDERS: Mapping[str, Bounder] = {
    "mf": _mean_field,
    "bethe": _bethe,
    "states": _states,
    "sdp": _sdp,
    "convex_mf": _convex_mean_field,
    "trw": _tree_reweighted,
    "wmbe": _weighted_mini_bucket,
}
# Tables over so many spins cost more than any budget.
UNAFFORDABLE = 1000
SPARSE_ORDER = ("wmbe", "bethe", "mf", "trw", "states", "sdp", "convex_mf")
DENSE_ORDER = ("sdp", "convex_mf", "bethe", "mf", "states", "wmbe", "trw")
# Names that may be excluded; without "exact" no method counts if it happens to be exact.
NAMES = ("exact", *BOUNDERS)


# ------------------------------------------------------------------------------------------------------------- bounders


def trivial_bounds(model: Model) -> Bounds:
    """Return the bounds that every model has at once."""
    row = _row("trivial", trivial, model, Deadline(), 0.0)
    return Bounds.best_of((row,), row.seconds)


def bracket(
    model: Model, deadline: Deadline, exclude: Any = (), *, known: Bounds | None = None, tells_of_exact: bool = True
) -> Bounds:
    """Return the best proven bounds on log Z found in time, with one row per bounder.

    Bounds that are ``known`` are improved. If the bounds leave a gap that ``exact`` could close, one more row says so,
    unless ``tells_of_exact`` is False.

    An interrupt (Ctrl-C) ends the search but not the call: the bounds found so far are returned, with ``interrupted``
    set.
    """
    left_out = checked_names(exclude, "exclude", NAMES)
    known = trivial_bounds(model) if known is None else known
    began = clock.seconds()
    rows = {row.method: row for row in known.rows}
    names = [name for name in in_order(model) if name not in left_out]
    is_interrupted = False
    for k, name in enumerate(names):
        with using_threads(None, model.n):
            row = _row(name, bounder_of(name, model), model, deadline, k / len(names), "exact" not in left_out)
        rows[name] = better_of(rows[name], row) if name in rows else row
        is_interrupted = row.interrupted
        if is_interrupted:
            break
    best = Bounds.best_of(tuple(rows.values()), 0.0)
    if tells_of_exact and "exact" not in left_out and not is_interrupted and best.width > policy.CLOSED_BRACKET:
        rows |= {row.method: row for row in _row_of_exact(model, deadline)}
    seconds = known.seconds + clock.seconds() - began
    return Bounds.best_of(tuple(rows.values()), seconds, interrupted=is_interrupted)


def _row_of_exact(model: Model, deadline: Deadline) -> list[BoundsRow]:
    """Return a row without bounds with the predicted time of ``exact``; none if it cannot run or planning is slow."""
    most_seconds = policy.EXACT_HINT_SHARE * deadline.seconds
    if 1e-9 * costs.ORDER_SEARCH_NANOSECONDS * (model.n + model.pair_count) ** 2 > most_seconds:
        return []
    started = clock.seconds()
    plan = Exact().plan(model, most_search_seconds=most_seconds)
    if plan.refusal is not None:
        return []
    seconds = clock.in_words(operations_of_plan(plan, with_means=False) / clock.OPERATIONS_PER_SECOND)
    status = f'not run: exact would solve this model in about {seconds}: log_z(model, "exact")'
    return [BoundsRow("exact", None, None, clock.seconds() - started, status)]


def better_of(first: BoundsRow, second: BoundsRow) -> BoundsRow:
    """Combine two rows of one bounder: the tighter bound on each side, and the total time."""
    lower = max((row.lower for row in (first, second) if row.lower is not None), default=None)
    upper = min((row.upper for row in (first, second) if row.upper is not None), default=None)
    is_better = (second.lower, second.upper) != (None, None) and (second.lower == lower or second.upper == upper)
    status = second.status if is_better or (lower, upper) == (None, None) else first.status
    return BoundsRow(first.method, lower, upper, first.seconds + second.seconds, status, second.interrupted)


def _row(
    name: str, bounder: Bounder, model: Model, deadline: Deadline, done: float, takes_exact: bool = True
) -> BoundsRow:
    """Run one bounder as far as it goes, and keep its best bound on each side.

    A result with both sides at once is exact.
    """
    started = clock.seconds()
    lower, upper, status, is_interrupted = None, None, "found nothing", False
    report(f"bounding by {name}", done)
    try:
        for bound in bounder(model, deadline):
            if not takes_exact and bound.lower is not None and bound.upper is not None:
                if (lower, upper) == (None, None):
                    status = "left out: it is exact here, and exact was excluded"
                break
            if bound.lower is not None and (lower is None or bound.lower > lower):
                lower, status = bound.lower, bound.status
            if bound.upper is not None and (upper is None or bound.upper < upper):
                upper, status = bound.upper, bound.status
    except NotAffordableError as refusal:
        status = status if (lower, upper) != (None, None) else str(refusal)
    except SpectralzError as error:
        if name == "trivial":  # no bounder can do without the coupling's entries
            raise
        status = f"refused: {error}"
    except (KeyboardInterrupt, SystemError) as error:
        if name == "trivial" or not is_interrupt(error):  # nothing to return yet
            raise
        status = "interrupted" if (lower, upper) == (None, None) else f"{status}; then interrupted"
        is_interrupted = True
    return BoundsRow(name, lower, upper, clock.seconds() - started, status, is_interrupted)


# ------------------------------------------------------------------------------------------------------------- the step


def bound(problem: Problem, deadline: Deadline, answers: Answers) -> Answers:
    """Tighten the bounds, unless there is a better answer already."""
    if answers.by_method or not deadline.left:
        return answers
    # The sum over states comes later, from the same populations as the rest. In the end all others are worth a try.
    is_first = len(answers.bounds.rows) == 1
    exclude = {*problem.exclude, "states", *(hopeless(problem.model) if is_first else ())} & set(NAMES)
    if problem.sums_out_many:
        deadline = deadline.share(policy.BOUNDS_PART_OF_SIDES)
    bounds = bracket(problem.model, deadline, exclude, known=answers.bounds, tells_of_exact=False)
    return replace(answers, bounds=bounds, is_interrupted=bounds.interrupted)
