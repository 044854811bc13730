"""Curves over temperature, by populations that pass through given temperatures.

The points of a path from fair coins are temperatures, so one population passes through all of them. A phase that it
misses is reached at one temperature, by a population from independent spins with the means of the phase, which goes on
from there to colder and to warmer ones. At each temperature the populations and their cells are evidence on log Z, as
in the core, and their states are samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support import clock
from spectralz._support.progress import reporter_of
from spectralz.errors import catching_interrupt
from spectralz.sampling.cells import Cells, by_size, evidence_of, hardly_known, row_of, shares_of, stays
from spectralz.sampling.core import (
    FIRST_SHARE,
    LEAST_AGAIN,
    LEAST_PACE,
    LONGEST_SEARCH,
    Work,
    choose_base,
    time_to_search,
)
from spectralz.sampling.curves.observables import Kept, means_of, sample_of
from spectralz.sampling.engines.lanes import one_after_the_other
from spectralz.sampling.path import from_coins
from spectralz.sampling.phases_found import FEWEST_HELD, LEFT, NO_TIME, Missing, Search, are_alike, search
from spectralz.sampling.population import FEWEST_POINTS, joined, layout_of, visit
from spectralz.sampling.spread import spread_runs
from spectralz.sampling.sweeps import operations, seconds_of_sweeps, seconds_per_sweep
from spectralz.sampling.symmetries import images_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from spectralz.model import FloatArray, Model
    from spectralz.sampling.cells import Row, SamplingEvidence
    from spectralz.sampling.core import Limits
    from spectralz.sampling.curves.observables import Pair
    from spectralz.sampling.engines.lanes import Parallel
    from spectralz.sampling.path import Path
    from spectralz.sampling.phases_found import Phase
    from spectralz.sampling.population import Layout, Population
    from spectralz.sampling.spread import Crew

# States of a phase's pilot through all temperatures, and the share of them that stay where the phase is one.
PILOT_STATES, STAYING = 128, 0.5
# Phases are looked for at the coldest temperature, and where families fall by the largest factor, if it is this large.
LARGE_FALL = 1.5
# States of independent spins that tell the energy of a phase by its means.
STATES_FOR_ENERGY = 64
# The fewest states pass fewer points, without pilots, if they would take more than this share of the time.
SHARE_OF_FEWEST = 0.25


class Leg(NamedTuple):
    """A path with the points to pass, and the temperatures to stop at, by the numbers of their points."""

    path: Path
    points: FloatArray
    stops: dict[int, int]


@dataclass(frozen=True, eq=False)
class Route:
    """How a population passes the temperatures: the first leg begins at the base, others where that one ends.

    Attributes
    ----------
    name
        In words.
    legs, sweeps
        The legs, and the sweeps at every point.
    phase
        The cell of the phase that it begins in; 0 for the ordinary population.
    """

    name: str
    legs: tuple[Leg, ...]
    sweeps: int
    phase: int = 0

    @property
    def path(self) -> Path:
        """The path of the first leg."""
        return self.legs[0].path

    @property
    def cost(self) -> float:
        """Operations of a state."""
        return sum(operations(leg.path.engine, len(leg.points), 1, self.sweeps) for leg in self.legs)


class Light(NamedTuple):
    """A phase that is left out: where it was found, its means, what it weighs there at most, and its energy."""

    found_at: int
    mean: FloatArray
    log_weight: float
    energy: float


# The states of a population at each temperature, by number.
Visited = dict[int, "Population"]


@dataclass(frozen=True, eq=False)
class Cooling:
    """What was done so far.

    Attributes
    ----------
    model, betas, work
        The model, its temperatures, which rise, and the pilots and limits, for the model at the coldest one.
    routes, counted
        The routes, the ordinary one first, and what was counted along each.
    pilots
        Small populations along each route, which choose coefficients.
    searches
        What searches for phases did, by temperature.
    phases, found_at, light
        The phases that were missed, and the temperature at which each was found; and those that are left out.
    shares
        The share of the work of each route.
    cells, coefficients
        The cells of each temperature, and how much each route counts in each.
    is_interrupted
        Whether an interrupt ended it.
    """

    model: Model
    betas: FloatArray
    work: Work
    routes: tuple[Route, ...] = ()
    counted: tuple[tuple[Visited, ...], ...] = ()
    pilots: tuple[Visited, ...] = ()
    searches: dict[int, Search] = field(default_factory=dict)
    phases: tuple[Phase, ...] = ()
    found_at: tuple[int, ...] = ()
    light: tuple[Light, ...] = ()
    shares: FloatArray = field(default_factory=lambda: np.ones(1))
    cells: tuple[Cells, ...] = ()
    coefficients: tuple[FloatArray, ...] = ()
    is_interrupted: bool = False

    def at(self, k: int) -> list[tuple[int, Population]]:
        """Return the populations that were counted at a temperature, with the numbers of their routes.

        States that break a constraint weigh nothing.
        """
        constraints = self.work.model.constraints
        batches = ((r, seen) for r, batches in enumerate(self.counted) for seen in batches)
        return [(r, seen[k].under(constraints)) for r, seen in batches if k in seen]

    def satisfying(self, k: int) -> float:
        """Return the share of the ordinary population at a temperature that satisfies the constraints."""
        before = [seen[k].mean_log_z for seen in self.counted[0] if k in seen]
        after = [population.mean_log_z for r, population in self.at(k) if r == 0]
        return max((math.exp(a - b) for a, b in zip(after, before, strict=True)), default=1.0)

    def own(self, r: int, k: int) -> int | None:
        """Return the cell that a route's pilot stays at one image of, if it does."""
        cell = self.routes[r].phase
        if not cell or cell not in self.cells[k].cell:
            return None
        return cell if stays(self.pilots[r][k], self.cells[k], cell, LEFT) else None


def cooled(
    model: Model, betas: FloatArray, path: Path, crew: Crew, limits: Limits, rng: np.random.Generator
) -> Cooling:
    """Take populations through the temperatures ``betas``, which rise and are above 0, on the path to the coldest."""
    work = Work(path.model, crew, rng, limits)
    one = seconds_of_sweeps(path.model, 1) or path.engine.together * seconds_per_sweep(path, parallel=crew.parallel)
    passed = SHARE_OF_FEWEST * limits.deadline.left / max(one, LEAST_PACE)
    if passed < 2 * FEWEST_POINTS:  # there is no time for pilots
        points = np.linspace(0.0, 1.0, max(int(passed), 2))
        cooling = with_ordinary_route(Cooling(model, betas, work), path, points, 1)
        return count(cooling, 0, layout_of(path.engine, path.engine.together))
    work = choose_base(work, {"coins": path})
    pilot = work.bases[0].pilot
    cooling = with_ordinary_route(Cooling(model, betas, work), path, pilot.points, pilot.sweeps)
    cooling = count(cooling, 0, _layout(cooling, 0, FIRST_SHARE * cooling.work.left))
    if cooling.is_interrupted:
        return cooling
    for action in (look_for_phases, measure_phases, count_on):
        with catching_interrupt() as interrupt:
            cooling = action(cooling)
        if interrupt.happened or cooling.is_interrupted:
            return replace(cooling, is_interrupted=True)
    return cooling


# ------------------------------------------------------------------------------------------------ the populations


def with_ordinary_route(cooling: Cooling, path: Path, points: FloatArray, sweeps: int) -> Cooling:
    """Return the work with the route of the ordinary population, from coins through some points."""
    betas = cooling.betas
    leg = _leg(path, points, betas / betas[-1], range(len(betas)))
    cells = Cells.around(np.zeros(cooling.model.n), images_of(cooling.model))
    return replace(
        cooling,
        routes=(Route("annealing", (leg,), sweeps),),
        counted=((),),
        pilots=({},),
        cells=(cells,) * len(betas),
        coefficients=(np.ones((1, 1)),) * len(betas),
    )


def _leg(path: Path, points: FloatArray, stops: FloatArray, numbers: range) -> Leg:
    """Return a leg through given points and stops, both in the order in which the ends of ``stops`` are passed."""
    points = np.union1d(points, stops)
    if len(stops) > 1 and stops[-1] < stops[0]:
        points = points[::-1]
    places = [int(np.flatnonzero(points == stop)[0]) for stop in stops]
    return Leg(path, points, dict(zip(places, numbers, strict=True)))


def along(
    route: Route,
    groups: int,
    each: int,
    rng: np.random.Generator,
    *,
    parallel: Parallel = one_after_the_other,
    tell: Callable[[float], None] = lambda _: None,
) -> Visited:
    """Carry some groups of states along a route, and return them as they are at each temperature."""
    seen: Visited = {}
    start: tuple[int, int] | Population = (groups, each)
    lengths = np.cumsum([0.0, *(len(leg.points) for leg in route.legs)])
    for number, leg in enumerate(route.legs):
        begin, end = lengths[number : number + 2] / lengths[-1]

        def tell_leg(share: float, begin: float = begin, end: float = end) -> None:
            tell(float(begin + (end - begin) * share))

        stops = sorted(leg.stops)
        options = partial(visit, sweeps=route.sweeps, parallel=parallel, tell=tell_leg)
        found = dict(zip(stops, options(leg.path, leg.points, stops, start, rng), strict=True))
        if number == 0:
            start = found[stops[-1]]
        seen |= {leg.stops[place]: population for place, population in found.items()}
    return seen


def count(cooling: Cooling, r: int, layout: Layout) -> Cooling:
    """Count a population along a route; what is done before an interrupt counts."""
    work, route, parts, began = cooling.work, cooling.routes[r], [], clock.now()
    run, tell = partial(along, route, layout.groups, layout.each), reporter_of(route.name)
    size = layout.groups * layout.each
    cost = size * route.cost
    with catching_interrupt() as interrupt:
        for part in spread_runs(work.crew, route.path, run, size, layout.parts, cost, work.rng, tell):
            parts.append(part)
    if not parts and not cooling.counted[0]:
        raise KeyboardInterrupt
    if not parts:
        return replace(cooling, is_interrupted=True)
    seen = {k: joined([part[k] for part in parts]) for k in parts[0]}
    done = len(parts) * cost
    pace = max((clock.now() - began) / done, LEAST_PACE)
    counted = list(cooling.counted)
    counted[r] = (*counted[r], seen)
    work = replace(work, spent=work.spent + done, pace=pace)
    return replace(cooling, counted=tuple(counted), work=work, is_interrupted=interrupt.happened)


def _layout(cooling: Cooling, r: int, affordable: float) -> Layout:
    route = cooling.routes[r]
    return layout_of(route.path.engine, min(affordable / route.cost, cooling.work.limits.states))


# ------------------------------------------------------------------------------------------------------ phases


def look_for_phases(cooling: Cooling) -> Cooling:
    """Look for phases at the coldest temperature, and where families fall most.

    If a search is not complete, warmer temperatures have one of their own.
    """
    last = len(cooling.betas) - 1
    if cooling.model.n < FEWEST_HELD:
        return replace(cooling, searches={last: Search()})
    cooling = _with_cells(cooling)
    families = np.array([cooling.counted[0][0][k].families() for k in range(last + 1)])
    falls = families[:-1] / np.maximum(families[1:], 1.0)
    places = [last]
    if last and falls.max() > LARGE_FALL and int(np.argmax(falls)) + 1 < last:
        places.append(int(np.argmax(falls)) + 1)
    share = LONGEST_SEARCH / (len(places) + 1.0)
    for k in places:
        cooling = _searched(cooling, k, share)
    warmer = last
    while warmer and cooling.searches[warmer].cut_short:
        warmer //= 2
        if warmer not in cooling.searches:
            cooling = _searched(cooling, warmer, share)
    return cooling


def _energy(model: Model, mean: FloatArray, rng: np.random.Generator) -> float:
    """Return the mean energy of independent spins with given means."""
    x = np.where(rng.random((STATES_FOR_ENERGY, len(mean))) < (1.0 + mean) / 2.0, 1, -1).astype(np.int8)
    return -float(np.mean(model.unconstrained.log_weight(x)))


def _searched(cooling: Cooling, k: int, share: float) -> Cooling:
    """Look for phases at a temperature, in a share of the work."""
    work, limits = cooling.work, cooling.work.limits
    ordinary = cooling.counted[0][0][k]
    path = from_coins(cooling.model.scaled(float(cooling.betas[k])))
    deadline = time_to_search(work, path, share)
    if deadline is None:
        return replace(cooling, searches={**cooling.searches, k: NO_TIME})
    cells, known = cooling.cells[k], cooling.phases
    enough = limits.enough * work.spent / (work.spent + (1.0 - LONGEST_SEARCH) * work.left)
    numbers = ordinary.mean_log_z, enough, limits.light, limits.most_phases - len(known)
    with deadline.in_force():
        found = search(Missing(path, cells, ordinary, [], *numbers, work.rng, work.crew.parallel))
    heavy = tuple(
        phase for phase in found.phases if not any(are_alike(phase.mean, other.mean, cells.images) for other in known)
    )
    left_out = zip(found.light_means, found.light, strict=True)
    light = [Light(k, mean, weight, _energy(cooling.model, mean, work.rng)) for mean, weight in left_out]
    found = replace(found, phases=heavy)
    return replace(
        cooling,
        light=(*cooling.light, *light),
        searches={**cooling.searches, k: found},
        phases=(*cooling.phases, *heavy),
        found_at=(*cooling.found_at, *(k,) * len(heavy)),
    )


def measure_phases(cooling: Cooling) -> Cooling:
    """Send a pilot along the route of each phase, and share out the work."""
    if not cooling.phases:
        return _with_cells(cooling)
    routes = [cooling.routes[0]]
    for number, (phase, k) in enumerate(zip(cooling.phases, cooling.found_at, strict=True), start=1):
        routes.append(_route_of_phase(cooling, phase, k, number))
    size = max(PILOT_STATES, routes[0].path.engine.together)
    parallel, rng = cooling.work.crew.parallel, cooling.work.rng
    pilots = tuple(along(route, 1, size, rng, parallel=parallel) for route in routes)
    counted = (*cooling.counted, *((),) * len(cooling.phases))
    return _shared_out(_with_cells(replace(cooling, routes=tuple(routes), pilots=pilots, counted=counted)))


def _route_of_phase(cooling: Cooling, phase: Phase, k: int, number: int) -> Route:
    """Return the route that reaches a phase at a temperature, and goes on to colder and to warmer ones."""
    ordinary, at = cooling.routes[0].legs[0], cooling.betas / cooling.betas[-1]
    last = len(at) - 1
    legs = [Leg(phase.pilot.path, phase.pilot.points, {len(phase.pilot.points) - 1: k})]
    if k < last:
        legs.append(_leg(ordinary.path, ordinary.points[ordinary.points > at[k]], at[k:], range(k, last + 1)))
    if k:
        between = ordinary.points[(ordinary.points > at[0]) & (ordinary.points < at[k])]
        legs.append(_leg(ordinary.path, between, at[k::-1], range(k, -1, -1)))
    sweeps = max(cooling.routes[0].sweeps, phase.pilot.sweeps)
    return Route(f"annealing towards phase {number}", tuple(legs), sweeps, number)


def _with_cells(cooling: Cooling) -> Cooling:
    """Return the work with the cells of each temperature.

    A phase that less than half of its pilot stays in is part of the ordinary cell.
    """
    cells = []
    for k in range(len(cooling.betas)):
        here = Cells.around(cooling.counted[0][0][k].mean_of_families(), cooling.cells[k].images)
        for known in cooling.searches.get(k, Search()).met:
            here = here.with_center(known, 0)
        for r, phase in enumerate(cooling.phases, start=1):
            here = here.with_center(phase.mean, r)
        cell = here.cell.copy()
        for r, seen in enumerate(cooling.pilots):
            if r and seen[k].weights() @ (here.places(seen[k].x)[0] == r) < STAYING:
                cell[cell == r] = 0
        cells.append(replace(here, cell=cell))
    return replace(cooling, cells=tuple(cells))


def _row(cooling: Cooling, r: int, k: int, population: Population) -> Row:
    return row_of(population, cooling.cells[k], cooling.own(r, k))


def _shared_out(cooling: Cooling) -> Cooling:
    """Let pilots say how much each route counts at each temperature, and its share of the work.

    One from a phase counts there alone: what it leaves behind on its way to other temperatures is not in equilibrium.
    """
    costs = np.array([route.cost for route in cooling.routes])
    coefficients, shares = [], np.zeros(len(costs))
    for k in range(len(cooling.betas)):
        rows = [_row(cooling, r, k, seen[k]) for r, seen in enumerate(cooling.pilots)]
        rows[1:] = [
            row._replace(families=row.families * (np.arange(len(row.families)) == r))
            for r, row in enumerate(rows[1:], start=1)
        ]
        counts, times = shares_of(rows, [seen[k].size for seen in cooling.pilots], costs)
        coefficients.append(counts)
        shares += times / len(cooling.betas)
    return replace(cooling, coefficients=tuple(coefficients), shares=shares)


def count_on(cooling: Cooling) -> Cooling:
    """Count populations along all routes, each for its share of all work, the first population included."""
    work = cooling.work
    first = work.spent
    due = cooling.shares * (work.left + first)
    due[0] -= first
    for r in np.argsort(-due, kind="stable").tolist():
        if due[r] > LEAST_AGAIN * first * (r == 0):
            cooling = count(cooling, r, _layout(cooling, r, due[r]))
            if cooling.is_interrupted:
                break
    return cooling


# ---------------------------------------------------------------------------------------------------- evidence


def evidence_by_temperature(cooling: Cooling) -> list[SamplingEvidence]:
    """Return the evidence on log Z at each temperature."""
    work, count = cooling.work, range(len(cooling.betas))
    rows = [[_row(cooling, r, k, population) for r, population in cooling.at(k)] for k in count]
    shares = [coefficients_at(cooling, k) for k in count]
    unmeasured = any(share > 0.0 and not done for share, done in zip(cooling.shares, cooling.counted, strict=True))
    sources = (0, *(len(phase.sources) for phase in cooling.phases))
    evidence = []
    for k in count:
        found = {s: search for s, search in cooling.searches.items() if s >= k}
        why = [search.cut_short for search in found.values()] or [NO_TIME.cut_short]
        words = "phases were found that are not measured yet" if unmeasured else min(why, key=len)
        if cooling.phases:
            ordinary = [row for row, (r, _) in zip(rows[k], cooling.at(k), strict=True) if not r]
            words = words or hardly_known(ordinary, work.limits.enough)
        light = [  # what they weigh changes by about their energies
            phase.log_weight + float(cooling.betas[phase.found_at] - cooling.betas[k]) * phase.energy
            for phase in cooling.light
            if phase.found_at >= k and not _is_center(cooling, phase, k)
        ]
        sources_here, share = sources[: cooling.cells[k].count], cooling.satisfying(k)
        evidence.append(evidence_of(rows[k], shares[k], sources_here, light, words, share))
    return evidence


def _is_center(cooling: Cooling, phase: Light, k: int) -> bool:
    """Return whether a phase that was left out somewhere is measured, or known to a population, at a temperature."""
    return any(are_alike(phase.mean, center, cooling.cells[k].images) for center in cooling.cells[k].centers)


def coefficients_at(cooling: Cooling, k: int) -> FloatArray:
    """Return how much each population counts in each cell; those of one route count by their numbers of states."""
    at = cooling.at(k)
    return by_size(cooling.coefficients[k], [r for r, _ in at], [population.size for _, population in at])


def observed(
    cooling: Cooling, k: int, error: float, constant: float, most: float, rng: np.random.Generator
) -> tuple[dict[str, Pair], Kept]:
    """Return the means over states at a temperature, with errors, by at most about so many states, and some states.

    What the ``error`` of log Z allows for may have the energy of another phase; ``constant`` is added to log Z.
    """
    at, cells, beta = cooling.at(k), cooling.cells[k], float(cooling.betas[k])
    scale = max(population.mean_log_z for _, population in at)
    samples = [
        sample_of(cooling.model, population, cells, c, cooling.own(r, k), scale, most / len(at), rng)
        for (r, population), c in zip(at, coefficients_at(cooling, k), strict=True)
    ]
    found = means_of(samples, beta, cooling.model.n)
    apart = max(abs(float(sample.energy.mean()) - float(found["energy"][0][0])) for sample in samples)
    reach = {"energy": apart, "entropy": 1.0 + beta * apart, "heat_capacity": (beta * apart) ** 2}
    for name, most_off in reach.items() if cooling.phases else ():
        found[name] = found[name][0], np.hypot(found[name][1], min(error, 1.0) * most_off)
    value, off = found["entropy"]
    return found | {"entropy": (value + scale + constant, off)}, Kept.of(samples)
