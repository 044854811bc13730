"""The core: from a model to the evidence on its log Z, as a written-out list of actions over a value.

1. Pilots choose the base of the path, its points and the sweeps at each.
2. A population from that base is counted.
3. Phases that it has missed are looked for.
4. Populations from all bases are counted, each for its share of the time.

Every action takes the work so far and returns more of it, so an interrupt between two of them loses nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock
from spectralz._support.deadline import Deadline
from spectralz._support.progress import reporter_of
from spectralz.errors import catching_interrupt
from spectralz.sampling.cells import (
    NO_CELLS,
    Cells,
    SamplingEvidence,
    as_they_count,
    by_size,
    evidence_of,
    hardly_known,
    row_of,
    shares_of,
    stays,
)
from spectralz.sampling.path import Path, from_coins, from_subgraph, path_to, weak_biases, width_of
from spectralz.sampling.penalties import breaks_hard_terms, may_have_hard_terms
from spectralz.sampling.phases_found import (
    APART,
    FEWEST_HELD,
    LEFT,
    NO_TIME,
    TOGETHER,
    Missing,
    Search,
    are_alike,
    cost_of_proposal,
    search,
)
from spectralz.sampling.population import (
    FEWEST_POINTS,
    GROUPS,
    Pilot,
    Population,
    Run,
    joined,
    layout_of,
    pilot,
    populations,
)
from spectralz.sampling.symmetries import images_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from spectralz.model import FloatArray, Model
    from spectralz.sampling.cells import Row
    from spectralz.sampling.population import Layout
    from spectralz.sampling.spread import Crew

# States of a pilot; fewer, down to those that are swept together, if they would take more than this share of the time.
PILOT_STATES, PILOT_SHARE = 1024, 0.05
# The share of the time after which pilots hurry.
PILOTS_TIME = 0.3
# Operations of the first pilot from each base.
QUICK_OPERATIONS = 6e7
# Sweeps at each point, and more, doubled, if fewer pilot states than this share are independent families.
SWEEPS, MOST_SWEEPS, FEW_FAMILIES = 2, 16, 0.02
# Twice the sweeps have to keep so many times the families.
WORTH_MORE = 1.5
# Bases agree if their pilots differ by no more than so many of their joint errors.
AGREE = 2.5
# Fields of a base are at most this large: a state that they exclude would never be met.
LARGEST_FIELD = 3.0
# Shares of the work: of the first population, and of a search at most.
FIRST_SHARE, LONGEST_SEARCH = 0.25, 0.5
# A second population from the ordinary base is worth while if it is as large as this part of the first.
LEAST_AGAIN = 0.1
# Seconds of an operation by a clock that has not moved.
LEAST_PACE = 1e-15
# Groups are resampled apart: those that hold hardly a family each waste states. There are at least so many groups.
FAMILIES_PER_GROUP, FEWEST_GROUPS = 8.0, 12
# Populations may have so many more states than the wanted error asks for.
AMPLE = 1.3


@dataclass(frozen=True, eq=False)
class Limits:
    """How much may be done, and the numbers of trust by which phases are looked for.

    Attributes
    ----------
    deadline
        When all has to be done.
    states
        Most states of a population, for the memory.
    tol
        The error that is good enough.
    sweeps
        Sweeps at each point; None to choose.
    layout
        The population to count first, if it was requested; as many states are then counted again if there are phases.
    is_hasty
        Whether there is time for the shortest path only.
    enough, light, most_phases
        Families of a population that has met a phase, nats by which a phase may be left out, and most phases.
    keep
        Is told after groups how to get the work so far, so that a killed call can be continued.
    """

    deadline: Deadline
    enough: float
    light: float
    most_phases: int
    states: float = math.inf
    tol: float = 0.0
    sweeps: int | None = None
    layout: Layout | None = None
    is_hasty: bool = False
    keep: Callable[[Callable[[], Work]], None] | None = None


@dataclass(frozen=True, eq=False)
class Base:
    """Where a population begins: its name, its pilot, and the cell that it stays at one image of, if it does."""

    name: str
    pilot: Pilot
    own: int | None = None

    @property
    def cost(self) -> float:
        """Operations of a state."""
        return cost_of_state(self.pilot)


@dataclass(frozen=True, eq=False)
class Work:
    """What was done so far.

    Attributes
    ----------
    model, crew, rng, limits
        The model, who does the work, random numbers, and how much may be done.
    bases, counted
        The bases, the ordinary one first, and the populations counted from each.
    others
        Pilots from ordinary bases that were not chosen.
    cells
        The cells; the first one is that of the ordinary population.
    found
        What the search did.
    coefficients, times
        How much each base counts in each cell, and its share of the time.
    pace, spent
        Seconds per operation, as measured, and the operations of what was counted.
    is_interrupted
        Whether an interrupt ended a population.
    splits
        Centers that were added after all phases, because populations contradicted each other.
    earlier, sources
        What earlier calls have counted: bases, numbers of states, and rows of the table; and what led to the cells.
    """

    model: Model
    crew: Crew
    rng: np.random.Generator
    limits: Limits
    bases: tuple[Base, ...] = ()
    counted: tuple[tuple[Population, ...], ...] = ()
    others: tuple[Pilot, ...] = ()
    cells: Cells = NO_CELLS
    found: Search = field(default_factory=lambda: Search(was_made=False))
    coefficients: FloatArray = field(default_factory=lambda: np.ones((1, 1)))
    times: FloatArray = field(default_factory=lambda: np.ones(1))
    pace: float = 1.0 / clock.OPERATIONS_PER_SECOND
    spent: float = 0.0
    is_interrupted: bool = False
    splits: int = 0
    earlier: tuple[tuple[int, int, Row], ...] = ()
    sources: tuple[int, ...] | None = None

    @property
    def left(self) -> float:
        """Operations that are left, by the plan and by the time."""
        layout = self.limits.layout
        planned = math.inf if layout is None else 2.0 * layout.size * self.bases[0].cost
        return max(min(planned - self.spent, self.limits.deadline.left / self.pace), 0.0)

    @property
    def path(self) -> Path:
        """The path of the ordinary base."""
        return self.bases[0].pilot.path


def cost_of_state(measured: Pilot) -> float:
    """Return the operations of a state on the path of a pilot."""
    return len(measured.points) * measured.sweeps * measured.path.engine.operations


def pace_of(measured: Pilot) -> float:
    """Return the seconds of an operation, by a pilot."""
    return measured.seconds / cost_of_state(measured)


# ------------------------------------------------------------------------------------------------ 1: pilots


def choose_base(work: Work, paths: dict[str, Path] | None = None) -> Work:
    """Let pilots choose the base: of those that agree with the largest log Z, the one with most families per work."""
    paths = paths or ordinary_paths(work.model, is_hasty=work.limits.is_hasty)
    sweeps = work.limits.sweeps or SWEEPS
    quick = {name: _in_time(work, path, quick_size(path, sweeps), sweeps, len(paths)) for name, path in paths.items()}
    in_time = {name: first for name, first in quick.items() if not first.hurried} or quick
    work = replace(work, pace=min(map(pace_of, in_time.values())))
    pilots = {name: _larger(work, first) for name, first in in_time.items()}
    name = best_of(pilots)
    chosen = pilots[name] if work.limits.sweeps else _with_more_sweeps(work, pilots[name])
    others = tuple(other for name_of_other, other in pilots.items() if name_of_other != name)
    return replace(work, bases=(Base(name, chosen),), counted=((),), others=others, pace=pace_of(chosen))


def _with_more_sweeps(work: Work, chosen: Pilot) -> Pilot:
    """Return a pilot with more sweeps at each point, as long as few families are left, and more sweeps keep more."""
    size = chosen.population.size
    while chosen.families_per_state < FEW_FAMILIES and 2 * chosen.sweeps <= MOST_SWEEPS:
        if size > _states_of_pilot(work, chosen):
            break
        slower = _in_time(work, chosen.path, size, 2 * chosen.sweeps)
        if slower.hurried or slower.families_per_state < WORTH_MORE * chosen.families_per_state:
            break
        chosen = slower
    return chosen


def ordinary_paths(model: Model, *, is_hasty: bool = False) -> dict[str, Path]:
    """Return the paths to a model from which pilots choose: from coins, from the model's fields, or those of an RBM."""
    coins = from_coins(model)
    if coins.sides is not None:
        paths = {"coins": coins}
        if model.field.any():
            paths = {"base rates": path_to(model), **paths}
        flips = {f"{name}, flips": replace(path, flips=True) for name, path in paths.items()}
        biases = replace(coins, base=weak_biases(model), flips=True)
        return {**paths, **flips, "weak biases, flips": biases}
    fields = np.clip(model.field, -LARGEST_FIELD, LARGEST_FIELD)
    has_subgraph = coins.can_begin_from_subgraph
    paths = {"a subgraph": from_subgraph(coins, width_of(model.n))} if has_subgraph else {}
    if is_hasty and paths:
        return paths
    paths["coins"] = coins
    return paths | {"fields": replace(coins, base=fields)} if fields.any() else paths


def quick_size(path: Path, sweeps: int) -> int:
    """Return the states of a first pilot: as many as hardly take longer than the fewest."""
    together = path.engine.together
    size = QUICK_OPERATIONS / (path.engine.operations * sweeps * 4 * FEWEST_POINTS)
    return int(np.clip(size, together, max(PILOT_STATES // 2, together))) // together * together


def best_of(pilots: dict[str, Pilot]) -> str:
    """Return the name of the best pilot.

    Unbiased estimates of Z are rarely much too large. So where pilots disagree, the one that found most is right.
    """
    families = {name: max(p.population.families(), 1.0) for name, p in pilots.items()}
    log_z = {name: p.population.mean_log_z for name, p in pilots.items()}
    largest = max(log_z, key=lambda name: log_z[name])

    def agrees(name: str) -> bool:
        error = math.sqrt(1.0 / families[name] + 1.0 / families[largest])
        return log_z[largest] - log_z[name] <= AGREE * error

    return max(
        filter(agrees, pilots),
        key=lambda name: families[name] / pilots[name].population.size / cost_of_state(pilots[name]),
    )


def _in_time(work: Work, path: Path, size: int, sweeps: int, count: int = 1) -> Pilot:
    """Return a pilot; one of so many that share some time hurries once its part is over."""
    with work.limits.deadline.share(PILOTS_TIME / count).in_force():
        return pilot(path, size, work.rng, work.crew.parallel, sweeps=sweeps)


def _states_of_pilot(work: Work, measured: Pilot) -> float:
    """Return how many states a pilot may have, by the work to be done."""
    layout = work.limits.layout
    if layout is not None:
        return 2.0 * PILOT_SHARE * layout.size
    return PILOT_SHARE * work.left / cost_of_state(measured)


def _larger(work: Work, first: Pilot) -> Pilot:
    """Return a pilot with as many states as it may have, by the cost of a first one."""
    together = first.path.engine.together
    size = int(min(PILOT_STATES, _states_of_pilot(work, first), work.limits.states)) // together * together
    if size <= first.population.size:
        return first
    larger = _in_time(work, first.path, size, first.sweeps)
    return first if larger.hurried else larger


# --------------------------------------------------------------------------------------------- 2: a population


def count_first(work: Work) -> Work:
    """Count a population from the ordinary base, with a part of the work, or as large as the wanted error asks for."""
    layout = work.limits.layout or layout_for(work, work.bases[0], FIRST_SHARE * work.left)
    if not begun(work):
        work = replace(work, cells=Cells.around(np.zeros(work.model.n), images_of(work.model)))
    return _count(work, 0, layout)


def layout_for(work: Work, base: Base, operations: float) -> Layout:
    """Return how large a population may be."""
    wanted = AMPLE / max(work.limits.tol**2 * base.pilot.families_per_state, 1e-300)
    size = min(operations / base.cost, work.limits.states, max(wanted, base.pilot.population.size))
    groups = size * base.pilot.families_per_state / FAMILIES_PER_GROUP
    return layout_of(base.pilot.path.engine, size, fewest=int(np.clip(groups, FEWEST_GROUPS, GROUPS)))


def _count(work: Work, number: int, layout: Layout) -> Work:
    """Count a population from a base; what is done before an interrupt counts."""
    base, began, parts = work.bases[number], clock.now(), []
    path, points = base.pilot.path, base.pilot.points
    tell = reporter_of("annealing" if not number else f"annealing towards phase {number}")
    making = populations(work.crew, path, points, layout, work.rng, sweeps=base.pilot.sweeps, tell=tell)
    with catching_interrupt() as interrupt:
        for part in making:
            parts.append(part)
            if work.limits.keep is not None:
                work.limits.keep(partial(_with_counted, work, number, parts, clock.now() - began))
    if not parts and not begun(work):
        raise KeyboardInterrupt
    if parts:  # otherwise earlier populations count
        work = _with_counted(work, number, parts, clock.now() - began)
    return replace(work, is_interrupted=interrupt.happened)


def _with_counted(work: Work, number: int, parts: list[Population], seconds: float) -> Work:
    """Return the work with one more population, made of some parts in so many seconds."""
    done = joined(parts)
    cost = done.size * work.bases[number].cost
    counted = list(work.counted)
    counted[number] = (*counted[number], done)
    cells = work.cells if begun(work) else Cells.around(done.mean_of_families(), work.cells.images)
    pace, spent = max(seconds / cost, LEAST_PACE), work.spent + cost
    return replace(work, counted=tuple(counted), cells=cells, spent=spent, pace=pace)


# ------------------------------------------------------------------------------------------------ 3: the search


def look_for_phases(work: Work) -> Work:
    """Look for phases, and take those that weigh something as bases and cells."""
    limits, ordinary = work.limits, work.counted[0][0]
    path = work.path
    if path.n < FEWEST_HELD:  # too few spins for a phase
        return replace(work, found=Search())
    deadline = time_to_search(work, path, LONGEST_SEARCH)
    if deadline is None:
        return replace(work, found=NO_TIME)
    top = max(ordinary.mean_log_z, *(p.population.mean_log_z for p in (work.bases[0].pilot, *work.others)))
    rest = 0.0 if limits.layout is not None else (1.0 - LONGEST_SEARCH) * work.left
    # Of all states from the ordinary base only a part was counted, if no phase is found.
    others, enough = [p.population for p in work.others], limits.enough * (work.spent / (work.spent + rest))
    numbers = top, enough, limits.light, limits.most_phases
    with deadline.in_force():
        found = search(Missing(path, work.cells, ordinary, others, *numbers, work.rng, work.crew.parallel))
    cells = work.cells
    for mean in found.met:
        if not any(are_alike(mean, phase.mean, cells.images) for phase in found.phases):
            cells = cells.with_center(mean, 0)
    for phase in found.phases:
        cells = cells.with_center(phase.mean)
    bases = [
        Base(f"phase {k}", phase.pilot, k if stays(phase.pilot.population, cells, k, LEFT) else None)
        for k, phase in enumerate(found.phases, start=1)
    ]
    work = replace(
        work,
        bases=(*work.bases, *bases),
        counted=(*work.counted, *((),) * len(bases)),
        cells=cells,
        found=found,
        earlier=() if bases else work.earlier,  # their states are gone, and nobody knows in which cells they were
        sources=None,
    )
    return _shared_out(work)


def time_to_search(work: Work, path: Path, share: float) -> Deadline | None:
    """Return until when a search may take a share of all work; None if that is too little for any.

    Without a deadline the clock must not decide: the same seed gives the same answer.
    """
    limits, operations = work.limits, share * (work.left + work.spent)
    if limits.layout is not None and limits.deadline.left == math.inf:
        return Deadline()
    if TOGETHER * cost_of_proposal(path) > operations:
        return None
    return Deadline.after(min(operations * work.pace, 0.8 * limits.deadline.left))


def _shared_out(work: Work) -> Work:
    coefficients, times = shares_of(
        [row_of(base.pilot.population, work.cells, base.own) for base in work.bases],
        [base.pilot.population.size for base in work.bases],
        np.array([base.cost for base in work.bases]),
    )
    return replace(work, coefficients=coefficients, times=times)


# ------------------------------------------------------------------------------------------- 4: all populations


def count_on(work: Work) -> Work:
    """Count populations from all bases, each for its share of all work, the first population included."""
    if work.limits.layout is not None and len(work.bases) == 1:
        return work
    costs = np.array([base.cost for base in work.bases])
    first = sum(p.size for p in work.counted[0]) * costs[0]
    due = work.times * (work.left + first)
    due[0] -= first
    bases, before = np.array(sizes_of(work), dtype=np.int64).reshape(-1, 2).T
    # Groups of few states scatter much more than their number says, so that a few more are of no use.
    least = LEAST_AGAIN * np.bincount(bases, before, minlength=len(costs)) * costs
    for number in np.argsort(-due, kind="stable").tolist():
        if due[number] > least[number]:
            work = _count(work, number, layout_for(work, work.bases[number], due[number]))
            if work.is_interrupted:
                break
    return work


ACTIONS: tuple[Callable[[Work], Work], ...] = (choose_base, count_first, look_for_phases, count_on)


def expected_families(work: Work) -> float:
    """Return how many families will be left, if all work goes to one population."""
    return work.bases[0].pilot.families_per_state * min(work.left / work.bases[0].cost, work.limits.states)


def begun(work: Work) -> bool:
    """Return whether a population was counted."""
    return bool(work.earlier or (work.counted and work.counted[0]))


def sizes_of(work: Work) -> list[tuple[int, int]]:
    """Return the base and the number of states of each population, those of earlier calls first."""
    earlier = [(k, size) for k, size, _ in work.earlier]
    return earlier + [(k, p.size) for k, counted in enumerate(work.counted) for p in counted]


def evidence(work: Work) -> SamplingEvidence:
    """Return the evidence of the populations that were counted; those of one base count by their numbers of states."""
    rows = [row for _, _, row in work.earlier]
    constraints = work.model.constraints
    kept = [[p.under(constraints) for p in counted] for counted in work.counted]
    rows += [row_of(p, work.cells, work.bases[k].own) for k, counted in enumerate(kept) for p in counted]
    bases, sizes = zip(*sizes_of(work), strict=True)
    sources = (0, *(len(phase.sources) for phase in work.found.phases), *(0,) * work.splits)
    why = work.found.cut_short or ("" if work.found.was_made else "phases were not looked for")
    if len(work.bases) > 1:
        why = why or hardly_known([row for row, k in zip(rows, bases, strict=True) if not k], work.limits.enough)
    if not constraints and _breaks_hard_terms(work):
        why = "the heaviest states break terms of 50 nats and more, so that heavier ones may be missing"
    if not set(np.flatnonzero(work.times)) <= set(bases):
        why = "phases were found that are not measured yet"
    counts = by_size(work.coefficients, bases, sizes)
    satisfying = [math.exp(a.mean_log_z - b.mean_log_z) for a, b in zip(kept[0], work.counted[0], strict=True)]
    share = max(satisfying, default=0.0 if constraints else 1.0)
    return evidence_of(rows, counts, work.sources or sources, work.found.light, why, share)


def _breaks_hard_terms(work: Work) -> bool:
    if not may_have_hard_terms(work.model):  # so that most models need not weigh their states here
        return False
    x = np.concatenate([p.x for counted in work.counted for p in counted] or [np.empty((0, work.model.n), np.int8)])
    return len(x) > 0 and breaks_hard_terms(work.model, x[np.argmax(work.model.log_weight(x))])


def split(work: Work, number: int, cell: int) -> Work:
    """Return the work with one more cell, around the states of a population that others contradict in a cell.

    If that is where the center of the cell is already, the others' states become a center of their own.
    """
    populations = [p for ps in work.counted for p in ps]
    own = populations[number]
    means = [own.mean(work.cells.places(own.x)[0] == cell)]
    means += [p.mean(work.cells.places(p.x)[0] == cell) for p in populations if p is not own]
    centers = work.cells.centers[work.cells.cell == cell]
    new = next((m for m in means if np.abs(centers - m).max(axis=1).min() > APART), means[0])
    return _shared_out(replace(work, cells=work.cells.with_center(new), splits=work.splits + 1))


def half_of(work: Work, half: int) -> Work:
    """Return the work with every second group of its populations."""
    counted = tuple(tuple(p.selected(np.arange(half, p.groups, 2)) for p in ps if p.groups > 1) for ps in work.counted)
    return replace(work, counted=counted)


def run_of(work: Work, coefficients: FloatArray) -> Run:
    """Return all states that count as one weighted population; ``coefficients`` are those of the populations.

    If no state satisfies the constraints of the model, all states count.
    """
    counted = [(work.bases[k].own, p.under(work.model.constraints)) for k, ps in enumerate(work.counted) for p in ps]
    scale = max(p.mean_log_z for _, p in counted)
    if scale == -math.inf:
        return run_of(replace(work, model=work.model.unconstrained), coefficients)
    parts, begin, first = [], 0, 0
    for c, (own, p) in zip(coefficients, counted, strict=True):
        x, counts = as_they_count(p.x, work.cells, c, own, work.rng)
        weight = counts * p.weights() * np.exp(p.mean_log_z - scale)
        group = np.repeat(np.arange(first, first + p.groups), p.share.shape[1])
        kept = weight > 0.0
        parts.append((x[kept], weight[kept], p.family[kept] + begin, group[kept]))
        begin, first = begin + p.size, first + p.groups
    states, weights, families, groups = (np.concatenate(part) for part in zip(*parts, strict=True))
    family = np.unique(families, return_inverse=True)[1]
    return Run(states, weights / float(weights.sum()), family, groups if np.ptp(groups) else family)
