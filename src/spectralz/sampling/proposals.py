"""Where phases might be: states from which chains may stay where a population has hardly been.

Collective states lie along the leading directions of the couplings: of all spins, and of parts that strong couplings
hold together, one at a time, since the leading directions of near copies are mixtures. Directions of terms come from
the terms themselves, in any gauge. Quenches of random states and heavy states show what no direction does, and linear
algebra modulo 2 what no quench finds. Phases that were found are recombined: spins that they hold alike are a block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from spectralz._support import clock
from spectralz.parts.leading import collective_directions, leading_directions
from spectralz.sampling.sweeps import quench
from spectralz.sampling.symmetries import bits_of, eliminated, equations_of, satisfied

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Model
    from spectralz.sampling.engines.lanes import Parallel
    from spectralz.sampling.path import Path
    from spectralz.sampling.population import Population

    # A state and where it comes from: phases that several sources lead to are likely all there are.
    Proposal = tuple[frozenset[str], NDArray[np.int8]]

# Leading directions, and spins that belong to one: their entries are this share of the largest.
DIRECTIONS, LARGE = 4, 0.5
# Directions in which so many states vary most.
STATES_THAT_VARY, DIRECTIONS_OF_STATES = 256, 2
# Random starts of the directions of terms, and their steps.
STARTS_OF_TERMS, STEPS_OF_TERMS = 4, 12
# Parts are held together by couplings above a gap: logarithms of sizes differ by this much, with none in between. The
# widest gaps are tried, in couplings of up to so many entries; parts have at least so many spins.
WIDE_GAP, MOST_GAPS, MOST_ENTRIES, FEWEST_SPINS, MOST_PARTS = 0.4, 3, 2_000_000, 6, 12
# Ordinary states in which each block is put or turned.
STATES_PER_BLOCK = 2
# Heavy states of each population, quenched random states, states of other populations, and states that satisfy terms.
HEAVY, RANDOM, OF_OTHERS, SATISFYING = 2, 16, 6, 4
# Terms are satisfied if all of them, times spins and states, are at most so many.
MOST_BITS = 1e7
# So many proposals come before those of other populations.
FIRST = 16
# A block of phases that was recombined has at least so many spins.
FEWEST_IN_BLOCK = 3


def first_proposals(
    path: Path,
    ordinary: Population,
    others: Sequence[Population],
    rng: np.random.Generator,
    parallel: Parallel,
) -> list[Proposal]:
    """Return states in which phases may lie: along parts and directions, of other populations, heavy and random."""
    model = path.model
    some = _drawn(ordinary, 2 * STATES_PER_BLOCK, rng)
    starts = [*_along_parts(model, some), *_along_directions(model, ordinary, some, rng)]
    up = np.ones(path.n, dtype=np.int8)
    starts += [("fields", np.where(model.field >= 0.0, up, -up)), ("up", up), ("down", -up)]
    heavy = _heavy(model, [ordinary, *others])
    starts += [(f"heavy {k}", x) for k, x in enumerate([*heavy, *-heavy])]
    coins = rng.choice(np.array([-1, 1], dtype=np.int8), (RANDOM, path.n))
    starts += [(f"random {k}", x) for k, x in enumerate(coins)]
    starts += [(f"parities {k}", x) for k, x in enumerate(satisfying_states(model, SATISFYING, rng))]
    of_others = [
        (frozenset([f"population {k}, state {r}"]), x)
        for k, population in enumerate(others)
        for r, x in enumerate(_drawn(population, OF_OTHERS, rng))
    ]
    found = quenched(path, starts, parallel)
    return [*found[:FIRST], *of_others, *found[FIRST:]]


def recombined(model: Model, centers: FloatArray, ordinary: Population, rng: np.random.Generator) -> list[Proposal]:
    """Return states of valleys in which a block is turned or as in an ordinary state, and the other way round.

    ``centers`` are the means of valleys and phases. Blocks are spins that all of them hold alike, or that a leading
    direction has.
    """
    signs = np.sign(np.round(centers))
    first = signs[np.argmax(signs != 0, axis=0), np.arange(model.n)]
    kinds, kind = np.unique(signs * np.where(first == 0, 1, first), axis=1, return_inverse=True)
    blocks = [np.flatnonzero(kind.ravel() == k) for k in range(kinds.shape[1]) if kinds[:, k].any()]
    blocks += [np.flatnonzero(_is_large(v)) for v in collective_directions(model, 2 * DIRECTIONS)]
    proposals: list[Proposal] = []
    for number, block in enumerate(b for b in blocks if FEWEST_IN_BLOCK <= len(b) < model.n):
        for place, mean in enumerate(centers):
            inside, again = np.where(rng.random((2, model.n)) < 0.5 * (1.0 + mean), 1, -1).astype(np.int8)
            outside, other = _drawn(ordinary, 2, rng)
            turned, left, entered = inside.copy(), again.copy(), outside.copy()
            turned[block], left[block], entered[block] = -inside[block], other[block], inside[block]
            states = {"turned": turned, "left": left, "entered": entered}
            name = f"block {number} of center {place}"
            proposals += [(frozenset([f"{name} {how}"]), state) for how, state in states.items()]
    return [proposals[k] for k in rng.permutation(len(proposals)).tolist()]


def quenched(path: Path, starts: Sequence[tuple[str, NDArray[np.int8]]], parallel: Parallel) -> list[Proposal]:
    """Return the distinct states that some states are quenched to, in their order, with all that led to each."""
    x = quench(path, np.array([start for _, start in starts], dtype=np.int8), parallel)
    together: dict[bytes, list[int]] = {}
    for k, state in enumerate(x):
        together.setdefault(state.tobytes(), []).append(k)
    return [(frozenset(starts[k][0] for k in same), x[same[0]]) for same in together.values()]


def _drawn(population: Population, count: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Return states of a population, drawn by their weights."""
    return population.x[rng.choice(population.size, size=count, p=population.weights())]


def _heavy(model: Model, populations: Sequence[Population]) -> NDArray[np.int8]:
    """Return the heaviest of some states of each population."""
    heavy = []
    for population in populations:
        x = population.x[:: max(population.size // STATES_THAT_VARY, 1)]
        heavy.append(x[np.argsort(-model.log_weight(x), kind="stable")[:HEAVY]])
    return np.concatenate(heavy)


def _is_large(direction: FloatArray) -> NDArray[np.bool_]:
    return np.asarray(np.abs(direction) > LARGE * np.abs(direction).max())


def _along_directions(
    model: Model, ordinary: Population, some: NDArray[np.int8], rng: np.random.Generator
) -> Iterator[tuple[str, NDArray[np.int8]]]:
    """Yield states along directions, roughly along them, and ordinary states in which a direction's spins are along."""
    directions = {
        "direction": leading_directions(model.storage, DIRECTIONS),
        "direction of terms": directions_of_terms(model, rng),
        "direction of states": directions_of_states(ordinary, rng),
    }
    named = [(f"{kind} {k}", v) for kind, vectors in directions.items() for k, v in enumerate(vectors)]
    for name, direction in named:
        block = _is_large(direction)
        noise = np.sqrt(np.mean(direction**2)) * rng.standard_normal(model.n)
        for sign in (1.0, -1.0):
            along = np.where(sign * direction >= 0.0, 1, -1)
            yield f"{name} times {sign:g}", along
            yield f"roughly {name} times {sign:g}", np.where(sign * direction + noise >= 0.0, 1, -1)
            if block.sum() < 0.8 * model.n:
                for k, x in enumerate(some[:STATES_PER_BLOCK]):
                    yield f"{name} times {sign:g} within state {k}", np.where(block, along, x)


def satisfying_states(model: Model, count: int, rng: np.random.Generator) -> list[NDArray[np.int8]]:
    """Return states in which the terms of a model have the right signs, strong ones first; none if that takes long.

    A term that contradicts those before it is left out. Equally strong ones come in an order of its own for each state:
    where not all can be satisfied, there are as many phases as ways to leave one out. Spins that the terms leave free
    are drawn at random.
    """
    bits = count * model.n * (model.higher.number + model.edge_count)
    if not model.higher.number or bits > MOST_BITS:
        return []
    clock.charge(float(bits))
    rows, weights = equations_of(model)
    states = []
    for _ in range(count):
        order = np.lexsort((rng.random(len(rows)), -np.abs(weights)))
        random = int.from_bytes(rng.bytes(model.n // 8 + 1), "little")
        minus = bits_of(satisfied(eliminated((rows[k] for k in order.tolist()), model.n), random), model.n)
        states.append(np.where(minus, -1, 1).astype(np.int8))
    return states


def directions_of_states(population: Population, rng: np.random.Generator) -> list[FloatArray]:
    """Return the directions in which the states of a population vary most."""
    x = _drawn(population, STATES_THAT_VARY, rng).astype(np.float64)
    clock.charge(float(x.size) * len(x))
    _, _, vectors = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    return list(vectors[:DIRECTIONS_OF_STATES])


def directions_of_terms(model: Model, rng: np.random.Generator) -> list[FloatArray]:
    """Return directions along which the terms of three and more spins are large, of length sqrt(n).

    The power method from random starts, for the terms of each size apart: v becomes the gradient of
    sum_terms c prod_i v_i, so it follows any gauge.
    """
    terms = model.higher
    found: list[FloatArray] = []
    if not terms.number:
        return found
    scale = terms.weight / np.abs(terms.weight).max()
    for size in np.unique(terms.sizes):
        which = np.flatnonzero(terms.sizes == size)
        spins = terms.spin[(terms.start[which, None] + np.arange(size))]  # (terms, size)
        clock.charge(float(STARTS_OF_TERMS * STEPS_OF_TERMS * spins.size * size))
        for _ in range(STARTS_OF_TERMS):
            v = rng.standard_normal(model.n)
            for _ in range(STEPS_OF_TERMS):
                entries, slope = v[spins], np.zeros(model.n)
                for place in range(size):
                    others = np.delete(entries, place, axis=1).prod(axis=1)
                    slope += np.bincount(spins[:, place], weights=scale[which] * others, minlength=model.n)
                slope += 0.1 * np.abs(slope).max() * v / max(np.abs(v).max(), 1e-300)  # no cycle of two steps
                norm = float(np.linalg.norm(slope))
                if not norm > 0.0:
                    break
                v = slope * (np.sqrt(model.n) / norm)
            if not any(abs(float(v @ other)) > 0.95 * model.n for other in found):
                found.append(v)
    return found


def _along_parts(model: Model, some: NDArray[np.int8]) -> Iterator[tuple[str, NDArray[np.int8]]]:
    """Yield ordinary states in which a part is along its own leading direction, one part at a time."""
    for k, part in enumerate(parts_of(model)):
        inside = np.flatnonzero(part)
        block = model.storage.written_out.block(inside, inside)
        matrix = block if isinstance(block, np.ndarray) else block.toarray()
        matrix = matrix - np.diag(np.diag(matrix))
        direction = np.linalg.eigh(matrix)[1][:, -1] if len(inside) <= 600 else np.ones(len(inside))
        for sign in (1.0, -1.0):
            along = np.where(sign * direction >= 0.0, 1, -1)
            for x in some[:STATES_PER_BLOCK]:
                state = x.copy()
                state[inside] = along
                yield f"part {k} times {sign:g}", state


def parts_of(model: Model) -> list[NDArray[np.bool_]]:
    """Return the parts that couplings above a gap hold together, the largest first."""
    edges, J = model.edges()
    sizes = np.abs(J)
    if not len(edges) or len(edges) > MOST_ENTRIES:
        return []
    ordered = np.sort(sizes[sizes > 0.0])[::-1]
    apart = -np.diff(np.log(ordered))
    gaps = [k for k in np.argsort(-apart, kind="stable")[:MOST_GAPS] if apart[k] >= WIDE_GAP]
    parts: dict[bytes, NDArray[np.bool_]] = {}
    for k in gaps:
        kept = edges[sizes >= ordered[k]]
        graph = sp.coo_array((np.ones(len(kept)), kept.T), shape=(model.n, model.n))
        _, member = connected_components(graph, directed=False)
        counts = np.bincount(member)
        for number in np.flatnonzero((counts >= FEWEST_SPINS) & (counts < model.n)):
            part = member == number
            parts[part.tobytes()] = part
    return sorted(parts.values(), key=lambda part: -int(part.sum()))[:MOST_PARTS]
