"""Search for the heaviest states of a model: by cooling states, and by tabu search from what that has found.

A pool keeps the heaviest states. States are cooled into it, more slowly each time, and on bipartite models also with
one side summed out. A part of the time goes to the states of the pool: two of them are crossed, and tabu search goes on
from there (``kernels/sampling/tabu.py``). Cooling finds the right valley of a glass, crossing puts together what
several states have found, and tabu search passes the barriers that penalties put around each state.

Where two states differ in separate regions, each region is taken from the state that does better. Flipping a set of
spins in a state changes its log-weight by a sum over the set's connected components, since spins of different
components are not coupled. On a sparse graph two good states often differ in dozens of them. Taking the best of each,
which no path of single flips does, gives a state at least as heavy as both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support import clock, costs
from spectralz._support.progress import report
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.terms import NO_TERMS
from spectralz.sampling.path import from_coins
from spectralz.sampling.population import carry
from spectralz.sampling.spread import crew_for
from spectralz.sampling.sweeps import MOST_DESCENTS, seconds_per_point

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from spectralz._support.deadline import Deadline
    from spectralz.kernels.coupling import Couplings
    from spectralz.kernels.terms import SpinTerms, Terms
    from spectralz.model import FloatArray, Model
    from spectralz.sampling.path import Path
    from spectralz.sampling.spread import Crew


# With fewer regions than this, states are mixed otherwise.
FEWEST_REGIONS = 4


def graph_of(couplings: Couplings) -> Any:
    """Return the graph of sparse couplings as a matrix of scipy."""
    import scipy.sparse as sp

    n = len(couplings.indptr) - 1
    return sp.csr_array((couplings.data, couplings.indices, couplings.indptr), shape=(n, n))


def regions_of(couplings: Couplings, spins: NDArray[np.int64], higher: Terms = NO_TERMS) -> NDArray[np.int64]:
    """Return the number of the connected component of each of some spins, on the graph of these spins alone.

    Terms of three and more spins connect those of them.
    """
    from scipy.sparse import csgraph

    if couplings.is_dense:
        return np.zeros(len(spins), dtype=np.int64)
    graph = graph_of(couplings)
    if higher.number:
        import scipy.sparse as sp

        is_one = np.zeros(graph.shape[0], dtype=np.bool_)
        is_one[spins] = True
        first, second = higher.chains(is_one[higher.spin])
        graph = graph + sp.coo_array((np.ones(len(first)), (first, second)), graph.shape).tocsr()
    _, labels = csgraph.connected_components(graph[spins][:, spins], directed=False)
    return np.asarray(labels, dtype=np.int64)


def best_of_both(model: Model, x: NDArray[np.int8], other: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return ``x`` with every region taken from the other state that makes it heavier."""
    couplings, higher, spins = model.storage.for_kernels(), model.higher, np.flatnonzero(x != other)
    if not len(spins):
        return x
    regions = regions_of(couplings, spins, higher)
    # The field that a spin has from all that is the same in both states.
    common = np.where(x == other, x, 0).astype(np.float64)
    fields = (model.field + couplings.times(common))[spins]
    gains: FloatArray = np.asarray(np.bincount(regions, weights=(other[spins] - x[spins]) * fields), dtype=np.float64)
    if higher.number:
        gains = gains + _gains_of_terms(higher, x, other, spins, regions)
    taken = spins[gains[regions] > 0.0]
    if not len(taken):
        return x
    child = x.copy()
    child[taken] = other[taken]
    return child


def _gains_of_terms(
    higher: Terms, x: NDArray[np.int8], other: NDArray[np.int8], spins: NDArray[np.int64], regions: NDArray[np.int64]
) -> FloatArray:
    """Return what each region gains by terms: those with an odd number of its spins turn their signs.

    The spins of a term that differ share it, and so are all in one region.
    """
    region = np.full(len(x), -1)
    region[spins] = regions
    of_term = np.maximum.reduceat(region[higher.spin], higher.start[:-1])
    before, after = higher.products(np.stack([x, other]))
    turned = np.flatnonzero(before != after)
    gains = -2.0 * higher.weight[turned] * before[turned]
    return np.asarray(np.bincount(of_term[turned], weights=gains, minlength=int(regions.max()) + 1), dtype=np.float64)


def mixed(
    couplings: Couplings, x: NDArray[np.int8], other: NDArray[np.int8], rng: np.random.Generator
) -> NDArray[np.int8]:
    """Return a state that has parts of two states at random.

    Parts are the regions in which they differ, if there are several; otherwise, on a sparse graph, all that is near
    some spin; and single spins where all are coupled.
    """
    child, spins = x.copy(), np.flatnonzero(x != other)
    if not len(spins):
        return child
    if couplings.is_dense:
        taken = spins[rng.random(len(spins)) < 0.5]
    else:
        regions = regions_of(couplings, spins)
        count = int(regions.max()) + 1
        has_many = count >= FEWEST_REGIONS
        taken = spins[(rng.random(count) < 0.5)[regions]] if has_many else _near_one_spin(couplings, rng)
    child[taken] = other[taken]
    return child


def _near_one_spin(couplings: Couplings, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return up to half of all spins, those nearest to one of them."""
    from scipy.sparse import csgraph

    n = len(couplings.indptr) - 1
    nearest = csgraph.breadth_first_order(graph_of(couplings), rng.integers(n), return_predecessors=False)
    return np.asarray(nearest[: rng.integers(1, n // 2 + 2)], dtype=np.int64)


# ------------------------------------------------------------------------------------------------------------ crossings


# States that are cooled or search together, which does not depend on the number of threads. The first are cooled in so
# many sweeps, the next in twice as many, up to a limit, and in no more than this share of what is left.
TOGETHER, FIRST_SWEEPS, GROWTH, MOST_SWEEPS, NEXT_SHARE = 8, 250, 2.0, 50_000, 0.5
# With this share of the time left, the search ends.
LEAST_LEFT = 0.03
# The first temperature is this many times the typical field of a spin; at the last one a typical coupling is this many
# times the temperature. In between, temperatures fall by equal factors.
HOTTEST, COLDNESS = 1.0, 4.0
# Couplings and fields below this share of the largest are ignored for that, and so are numbers that are practically
# zero.
LEAST_SHARE, LEAST_NUMBER = 1e-3, 1e-290
# States of the pool at least. If several states are wanted, their neighbors are added so many times.
POOL, MOST_EXPANSIONS = 32, 20
# With more couplings than this, pairs of spins are not exchanged.
MOST_ENTRIES = 2_000_000
# Steps per spin without a heavier state after which a tabu search ends, and for which there must be time.
PATIENCE, FEWEST_STEPS = 10, 2
# A spin is tabu for at least one step in so many spins, and up to so many steps more.
SPINS_PER_TENURE, MORE_TENURE = 100, 10
# Tabu search takes this share of the time that states were cooled, less on sparse graphs, and half of that whenever it
# has found nothing heavier, but no less than the last share.
TABU_SHARE, SPARSE_TABU_SHARE, LEAST_SHARE_OF_TABU = 1.0, 0.5, 0.05
# States of a bipartite model that are cooled with a side summed out, and the fewest points of their path.
FLIPPED, FEWEST_POINTS = 64, 16


@dataclass(frozen=True, eq=False)
class Pool:
    """The heaviest states found so far, without repeats, the heaviest first, and their log-weights."""

    states: NDArray[np.int8]
    weights: FloatArray

    def with_states(self, model: Model, states: NDArray[np.int8], most: int) -> Pool:
        """Return the heaviest of these states and others.

        Of those that break a constraint, which weigh nothing, those with the heaviest terms come first.
        """
        distinct = {state.tobytes(): state for state in (*self.states, *states)}
        states = np.array(list(distinct.values()))
        weights = np.asarray(model.log_weight(states))
        terms = np.asarray(model.unconstrained.log_weight(states)) if model.constraints else weights
        chosen = np.lexsort((-terms, -weights))[:most]
        return Pool(states[chosen], weights[chosen])


@dataclass(frozen=True, eq=False)
class _Search:
    """What a search works with: the path to the model, threads, random numbers, and the time.

    ``temperatures`` are the first and the last, and ``terms`` those of three and more spins.
    """

    path: Path
    terms: SpinTerms
    temperatures: tuple[float, float]
    crew: Crew
    rng: np.random.Generator
    deadline: Deadline
    most: int

    @property
    def model(self) -> Model:
        """The model."""
        return self.path.model

    @property
    def couplings(self) -> Couplings:
        """Its couplings."""
        return self.path.couplings

    def fields(self, x: NDArray[np.int8]) -> FloatArray:
        """Return the fields of the spins of a state."""
        from spectralz.kernels.sampling.term_sweeps import add_fields

        h = self.path.theta + self.couplings.times(x.astype(np.float64))
        add_fields(x[None], h[None], self.terms)
        return h

    def polish(self, x: NDArray[np.int8]) -> None:
        """Flip spins, and where there are pairs alone also pairs of them, as long as that makes a state heavier."""
        from spectralz.kernels.sampling import tabu, term_sweeps

        if len(self.terms.spin):
            term_sweeps.descend(x[None], self.fields(x)[None], MOST_DESCENTS, self.couplings, self.terms)
        else:
            tabu.exchange(x, self.fields(x), self.couplings, len(self.couplings.data) <= MOST_ENTRIES)

    def states_by(self, count: int, work: Callable[[int, np.random.Generator], NDArray[np.int8]]) -> NDArray[np.int8]:
        """Return states that are made by threads, each with random numbers of its own, polished by exchanges."""
        found, streams = np.empty((count, self.model.n), dtype=np.int8), self.rng.spawn(count)

        def make(k: int) -> None:
            found[k] = work(k, streams[k])
            self.polish(found[k])

        self.crew.parallel(make, range(count))
        clock.charge(costs.SEARCHED_STATE * count)
        return found


def by_search(
    model: Model,
    deadline: Deadline,
    rng: np.random.Generator,
    count: int = 1,
    starts: NDArray[np.int8] | None = None,
) -> Iterator[Pool]:
    """Yield the heaviest states found so far, at least ``count`` if there are as many, until the time is up.

    ``starts`` are states to begin from, beside those that are cooled.
    """
    path = from_coins(model)
    pool = Pool(np.empty((0, model.n), dtype=np.int8), np.empty(0))
    with crew_for(None) as crew:
        temperatures, most = _temperatures(model, path.couplings), max(POOL, count)
        search = _Search(path, model.terms_by_spin, temperatures, crew, rng, deadline, most)
        if starts is not None:
            pool = _absorbed(search, pool, search.states_by(len(starts), lambda k, _: starts[k]))
            yield pool
        usual = share = TABU_SHARE if path.couplings.is_dense else SPARSE_TABU_SHARE
        sweeps, flips, pace = float(FIRST_SWEEPS), False, _operations_of_sweep(search) / clock.OPERATIONS_PER_SECOND
        while True:
            began = clock.now()
            states = max(min(TOGETHER, int(NEXT_SHARE * deadline.left / pace)), 1)
            sweeps = max(min(sweeps, NEXT_SHARE * deadline.left / (pace * states)), 1.0)
            made = _flipped(search, pace * states * sweeps) if flips else _cooled(search, states, int(sweeps))
            spent = clock.now() - began
            pace = pace if flips else spent / (states * int(sweeps))
            pool = _absorbed(search, pool, made)
            yield pool
            until, before = clock.now() + min(share * spent, deadline.left), pool.weights[0]
            while not path.has_terms and (steps := _steps_in(until - clock.now(), search)) >= FEWEST_STEPS * model.n:
                pool = _absorbed(search, pool, _tabu(search, pool, steps))
                report("looking for the heaviest state", deadline.done)
            share = usual if pool.weights[0] > before else max(0.5 * share, LEAST_SHARE_OF_TABU)
            pool = with_neighbors(search, pool, count)
            yield pool
            report("looking for the heaviest state", deadline.done)
            if deadline.left <= LEAST_LEFT * deadline.seconds:
                return
            sweeps, flips = min(GROWTH * sweeps, MOST_SWEEPS), path.sides is not None and not flips


def _absorbed(search: _Search, pool: Pool, states: NDArray[np.int8]) -> Pool:
    """Add states to a pool; on a sparse graph the heaviest is also crossed with all of them, one after the other."""
    pool = pool.with_states(search.model, states, search.most)
    if search.couplings.is_dense:
        return pool
    x = before = pool.states[0]
    for other in states:
        if search.deadline.left <= 0.0:
            break
        clock.charge(costs.SPARSE_FIELD_ENTRY * (search.model.n + search.path.entries))
        x = best_of_both(search.model, x, other)
    return pool if x is before else pool.with_states(search.model, x[None], search.most)


def with_neighbors(search: _Search, pool: Pool, count: int) -> Pool:
    """Add single flips of the heaviest states as long as they are among the heaviest.

    Of several states the second heaviest may be no local maximum, which is what the search ends in.
    """
    for _ in range(MOST_EXPANSIONS if count > 1 else 0):
        x = pool.states
        weights = pool.weights[:, None] - 2.0 * x * np.array([search.fields(state) for state in x])
        heavy = np.argsort(-weights, axis=None)[: 2 * search.most]  # which has states of the pool again
        rows, spins = np.unravel_index(heavy, weights.shape)
        near = x[rows]
        near[np.arange(len(near)), spins] *= -1
        grown = pool.with_states(search.model, near, search.most)
        if np.array_equal(grown.states, x):
            break
        pool = grown
    return pool


# --------------------------------------------------------------------------------------------------------- cooling


def _operations_of_sweep(search: _Search) -> float:
    return costs.COOL_SPIN * search.model.n + costs.COOL_ENTRY * search.path.entries


def _cooled(search: _Search, count: int, sweeps: int) -> NDArray[np.int8]:
    """Return states that were cooled in so many sweeps."""
    from spectralz.kernels.sampling.term_sweeps import cool

    hottest, coldest = search.temperatures
    betas = np.geomspace(1.0 / hottest, 1.0 / coldest, sweeps)
    clock.charge(count * sweeps * _operations_of_sweep(search))

    def work(_: int, rng: np.random.Generator) -> NDArray[np.int8]:
        x = rng.choice(np.array([-1, 1], dtype=np.int8), size=search.model.n)
        cool(x, search.fields(x), search.couplings, search.terms, betas, _seed(rng))
        return x

    return search.states_by(count, work)


def _flipped(search: _Search, seconds: float) -> NDArray[np.int8]:
    """Return states of a bipartite model that were cooled in so many seconds, with one side summed out."""
    hottest, coldest = search.temperatures
    cold = replace(from_coins(search.model.scaled(1.0 / coldest)), sides=search.path.sides, flips=True)
    one = seconds_per_point(cold, FLIPPED, parallel=search.crew.parallel)
    points = np.geomspace(coldest / hottest, 1.0, int(max(seconds / max(one, 1e-9), FEWEST_POINTS)))
    rng, parallel = search.rng.spawn(1)[0], search.crew.parallel
    end = carry(cold, np.append(0.0, points), 1, FLIPPED, rng, resample_below=0.0, parallel=parallel)
    return search.states_by(FLIPPED, lambda k, _: end.x[k])


def _temperatures(model: Model, couplings: Couplings) -> tuple[float, float]:
    """Return the first temperature, at which fields of spins are small, and the last, at which spins are certain."""
    sizes, field, higher = np.abs(couplings.data), np.abs(model.field), np.abs(model.higher.weight)
    largest = max(float(size.max(initial=0.0)) for size in (sizes, field, higher))
    if largest <= LEAST_NUMBER:
        return 2.0, 1.0
    # The mean over those that count at all: tiny ones beside huge ones would make it too cold for any number.
    seen = [size[size > LEAST_SHARE * largest] for size in (sizes, field, higher)]
    coldest = float(sum(map(np.sum, seen)) / sum(map(len, seen))) / COLDNESS
    typical = largest * math.hypot(couplings.mean_strength / largest, math.sqrt(float(((field / largest) ** 2).mean())))
    if len(higher):
        typical = math.hypot(
            typical, largest * math.sqrt(float(model.higher.sizes @ (higher / largest) ** 2) / model.n)
        )
    return max(HOTTEST * typical, 2.0 * coldest), coldest


def _seed(rng: np.random.Generator) -> NDArray[np.uint32]:
    """Return a seed of a compiled search, which must not be 0."""
    return rng.integers(1, 2**32 - 1, size=1, dtype=np.uint32)


# ----------------------------------------------------------------------------------------------------- tabu search


def _operations_of_step(search: _Search) -> float:
    n = search.model.n
    return costs.TABU_SPIN * n + costs.TABU_ENTRY * len(search.couplings.data) / max(n, 1)


def _steps_in(seconds: float, search: _Search) -> int:
    """Return how many steps of all tabu searches of a batch take so many seconds, in one thread."""
    return int(seconds * clock.OPERATIONS_PER_SECOND / (TOGETHER * _operations_of_step(search)))


def _tabu(search: _Search, pool: Pool, steps: int) -> NDArray[np.int8]:
    """Return what tabu searches of up to so many steps have found, from crossings of states of a pool."""
    from spectralz.kernels.sampling import tabu

    n, couplings, patience = search.model.n, search.couplings, PATIENCE * search.model.n
    tenure = min(1 + n // SPINS_PER_TENURE, max(n // 4, 1))
    tenures = np.array([tenure, min(tenure + MORE_TENURE, max(n // 2, 1))])
    made = np.zeros(TOGETHER, dtype=np.int64)

    def work(k: int, rng: np.random.Generator) -> NDArray[np.int8]:
        first, second = rng.integers(len(pool.states), size=2)
        x = mixed(couplings, pool.states[first], pool.states[second], rng)
        best = np.empty_like(x)
        made[k] = tabu.search(x, search.fields(x), couplings, steps, patience, tenures, _seed(rng), best)
        return best

    found = search.states_by(TOGETHER, work)
    clock.charge(_operations_of_step(search) * float(made.sum()))
    return found


def rounding_of(model: Model) -> float:
    """Return a bound on the rounding error of a log-weight."""
    J = model.edges()[1]
    sizes = float(np.abs(model.field).sum() + np.abs(J).sum() + model.higher.total) + abs(model.constant)
    return (len(J) + model.higher.number + model.n + 16) * UNIT_ROUNDOFF * sizes + model.rounding
