"""Candidates for phases: states from which chains may stay away from a population that was cooled from random states.

Collective states lie along the leading eigenvectors of the coupling: of all spins, and of parts that strong couplings
hold together. In a state of the population one part after the other is turned. Quenches of random states find what no
eigenvector shows, and linear algebra modulo 2 what no quench finds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from spectralz._support import clock
from spectralz.model import Polynomial
from spectralz.parts.leading import collective_directions
from spectralz.sampling.heavy.pool import fill, search, state_pool
from spectralz.sampling.heavy.quench import quench
from spectralz.sampling.heavy.state_space import distinct
from spectralz.sampling.proposals import satisfying_states

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Model
    from spectralz.sampling.engines.protocol import Parallel
    from spectralz.sampling.path import Path

# Entries of an eigenvector are large from this share of their root mean square on.
LARGE = 0.5
# Parts of fewer spins are turned by sweeps.
FEWEST_SPINS = 6
# Parts are held together by couplings above a gap: logarithms of sizes that differ by this much, with none in between.
# At most this many of the widest gaps are tried, in couplings of up to this many entries.
WIDE_GAP, MOST_GAPS, MOST_ENTRIES = 0.4, 3, 2_000_000
# Most parts that are turned.
MOST_PARTS = 6
# Of quenched random states, as many of the heaviest and as many others are candidates; so many are quenched for each.
HEAVIEST, OTHERS, QUENCHES_EACH = 8, 4, 16
# States that are cooled from fair coins, and the points that they are cooled through, from this share of the model on.
COOLED, COOLING_POINTS, HOTTEST = 64, 48, 0.02
# States that satisfy terms.
SATISFYING = 4
# To search for heavy states of a side: most states to keep, most entries of the coupling in all their log-weights, and
# random states to begin with.
STATES_OF_SIDE, ENTRIES_OF_STATES, QUENCHES_OF_SIDE = 20_000, 4e9, 30
# However little time there is, so many are returned.
FEWEST = 2

# A state, and the spins that may tell it from others.
Candidate = tuple["NDArray[np.int8]", "NDArray[np.bool_]"]


def turned_candidates(
    path: Path,
    x: NDArray[np.int8],
    directions: Sequence[FloatArray],
    rng: np.random.Generator,
    most: float,
    parallel: Parallel,
) -> list[Candidate]:
    """Return at most so many quenched states that may lie in phases of their own, with the spins that may show it.

    ``x`` are states of a population, and ``directions`` leading eigenvectors of the coupling. States in which few spins
    were turned come first.
    """
    turned = list(_turned(path.model, x, directions, rng))[: int(max(most, FEWEST))]
    return _quenched(path, sorted(turned, key=lambda start: int(start[1].sum())), parallel)


def random_candidates(
    path: Path,
    tried: Sequence[NDArray[np.int8]],
    rng: np.random.Generator,
    parallel: Parallel,
    most: float = HEAVIEST + OTHERS,
) -> list[Candidate]:
    """Return quenched random states that were not tried: the heaviest, and some others.

    The heaviest lead to valleys that few quenches find, the others to phases that hold their share of Z by entropy.
    """
    most = max(min(most, HEAVIEST + OTHERS), 0)
    random = rng.choice(np.array([-1, 1], dtype=np.int8), size=(int(QUENCHES_EACH * most), path.n))
    return _heaviest_and_others(path, random, tried, most, parallel)


def cooled_candidates(
    path: Path, tried: Sequence[NDArray[np.int8]], rng: np.random.Generator, parallel: Parallel, most: float
) -> list[Candidate]:
    """Return states that were cooled from fair coins, if the path begins from fields: these may hide a phase.

    Of the states that were not tried, they are the heaviest, and some others.
    """
    most = max(min(most, HEAVIEST + OTHERS), 0)
    if most < 1 or not path.base.any():
        return []
    from_coins = replace(path, base=np.zeros(path.n), clusters=False, subgraph=None)
    betas = np.geomspace(HOTTEST, 1.0, COOLING_POINTS)
    clock.charge(COOLED * len(betas) * from_coins.engine.operations)
    chains = from_coins.engine.start(COOLED, rng, parallel)
    chains.sweep(betas, betas, betas, 1)
    return _heaviest_and_others(path, chains.states(), tried, most, parallel)


def _heaviest_and_others(
    path: Path, states: NDArray[np.int8], tried: Sequence[NDArray[np.int8]], most: float, parallel: Parallel
) -> list[Candidate]:
    """Return so many of what states are quenched to and that was not tried: the heaviest, and some others."""
    known = {state.tobytes() for state in tried}
    everywhere = np.ones(path.n, dtype=np.bool_)
    found = _quenched(path, [(state, everywhere) for state in states], parallel)
    new = [start for start in found if start[0].tobytes() not in known]
    weights = path.model.log_weight(np.array([state for state, _ in new], dtype=np.int8).reshape(-1, path.n))
    heaviest = np.argsort(-weights, kind="stable")[: int(most * HEAVIEST / (HEAVIEST + OTHERS))].tolist()
    others = [k for k in range(len(new)) if k not in heaviest][: int(most) - len(heaviest)]
    return [new[k] for k in (*heaviest, *others)]


def satisfying_candidates(
    path: Path, tried: Sequence[NDArray[np.int8]], rng: np.random.Generator, parallel: Parallel, most: float
) -> list[Candidate]:
    """Return states that give strong terms the right signs, if the model has terms of three and more spins."""
    most = max(min(most, SATISFYING), 0)
    if most < 1 or not isinstance(path.model, Polynomial):
        return []
    states = np.array(satisfying_states(path.model, int(most), rng), dtype=np.int8).reshape(-1, path.n)
    return _heaviest_and_others(path, states, tried, most, parallel)


def heavy_candidates(
    path: Path, x: NDArray[np.int8], rng: np.random.Generator, parallel: Parallel, most: float, seconds: float
) -> list[Candidate]:
    """Return the heaviest states that no flip makes heavier, if a side is summed out, found by a search.

    They are searched for among the neighbors of states ``x`` of a population and of quenched random ones: strong
    weights freeze whole states long before.
    """
    if path.sides is None or most < 1.0:
        return []
    pool = state_pool(path.model, int(min(STATES_OF_SIDE, ENTRIES_OF_STATES / max(path.entries, 1))))
    fill(pool, path, x[:0], QUENCHES_OF_SIDE, rng, parallel)
    pool.add(x)
    search(pool, path, seconds, parallel)
    ends = distinct(pool.space.quench(pool.heaviest(len(pool))))
    ends = ends[np.argsort(-pool.space.log_weight(ends), kind="stable")[: int(most)]]
    everywhere = np.ones(path.n, dtype=np.bool_)
    return [(state, everywhere) for state in np.where(pool.space.given(ends).mean >= 0.0, 1, -1).astype(np.int8)]


def _quenched(path: Path, starts: Sequence[Candidate], parallel: Parallel) -> list[Candidate]:
    """Return the different ones of states that were quenched."""
    if not starts:
        return []
    ends = quench(path, np.array([start for start, _ in starts], dtype=np.int8), parallel)
    different = {(end.tobytes(), where.tobytes()): (end, where) for end, (_, where) in zip(ends, starts, strict=True)}
    return list(different.values())


def _turned(
    model: Model, x: NDArray[np.int8], directions: Sequence[FloatArray], rng: np.random.Generator
) -> Iterator[Candidate]:
    """Yield states along directions: of all spins, and of parts in states of the population."""
    for direction in directions:
        yield from _along(direction, np.ones(model.n, dtype=np.bool_), x[0])
    for direction in directions:
        large = np.abs(direction) >= LARGE
        if FEWEST_SPINS <= large.sum() < model.n:
            yield from _along(direction, large, x[rng.integers(len(x))])
    for part in _parts(model):
        for inside in collective_directions(model.submodel(np.flatnonzero(part)), 1):
            direction = np.zeros(model.n)
            direction[part] = inside
            yield from _along(direction, part, x[rng.integers(len(x))])


def _along(direction: FloatArray, where: NDArray[np.bool_], state: NDArray[np.int8]) -> Iterator[Candidate]:
    for sign in (1.0, -1.0):
        yield np.where(where, np.where(sign * direction >= 0.0, 1, -1), state).astype(np.int8), where


def strongest_forest(model: Model) -> NDArray[np.int64]:
    """Return the edges of a spanning forest of the strongest couplings, none if finding it would take long."""
    if _entries(model) > MOST_ENTRIES:
        return np.empty((0, 2), dtype=np.int64)
    edges, strengths = _strengths(model)
    order = np.argsort(-strengths, kind="stable")
    # The strongest have the smallest weight, which must not be 0.
    rank = np.empty(len(strengths))
    rank[order] = np.arange(1.0, len(strengths) + 1.0)
    i, j = edges.T.astype(np.int32)  # older releases of scipy find no tree otherwise
    tree = minimum_spanning_tree(sp.csr_array((rank, (i, j)), shape=(model.n, model.n)))
    return np.column_stack(tree.nonzero()).astype(np.int64)


def _entries(model: Model) -> int:
    """Return about how many pairs of spins are coupled, each counted twice."""
    return len(model.storage.for_kernels().data) + len(model.higher.spin) * model.higher.largest


def _strengths(model: Model) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the pairs of spins that share a term, and how strongly: the sizes of these terms, added up."""
    edges, J = model.edges()
    if not model.higher.number:
        return edges, np.abs(J)
    pairs, weights = model.higher.all_pairs()
    distinct, place = np.unique(np.concatenate([edges, pairs]), axis=0, return_inverse=True)
    strengths = np.bincount(place.ravel(), np.abs(np.concatenate([J, weights])))
    return distinct, np.asarray(strengths, dtype=np.float64)


def _parts(model: Model) -> list[NDArray[np.bool_]]:
    """Return the parts that couplings above a gap hold together, the largest first."""
    if _entries(model) > MOST_ENTRIES:
        return []
    edges, strengths = _strengths(model)
    sizes = np.sort(strengths)[::-1]
    apart = -np.diff(np.log(np.maximum(sizes, np.finfo(float).tiny)))
    gaps = [k for k in np.argsort(-apart, kind="stable")[:MOST_GAPS] if apart[k] >= WIDE_GAP]
    parts = []
    for k in gaps:
        kept = edges[strengths >= sizes[k]]
        graph = sp.coo_array((np.ones(len(kept)), (kept[:, 0], kept[:, 1])), shape=(model.n, model.n))
        _, member = connected_components(graph, directed=False)
        parts += [member == p for p, size in enumerate(np.bincount(member)) if FEWEST_SPINS <= size < model.n]
    different = {part.tobytes(): part for part in parts}
    return sorted(different.values(), key=lambda part: -int(part.sum()))[:MOST_PARTS]
