"""Plan the order in which spins arrive at a compressed frontier, and predict its cost.

The chain determines the cost of compressed elimination: how many sites lie between the neighbors of an arriving spin,
and how many spins of the past and of the future a bond separates. The best order is hard to find. Several sweeps
through the graph are tried, and the one with the smallest predicted cost is taken.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from spectralz.errors import OptionError
from spectralz.model.constraints import AtMostOne

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spectralz.kernels.compressed.placing import Steps
    from spectralz.kernels.propagation.messages import Graph
    from spectralz.model import FloatArray, Ising

# A name, the spins in order of arrival, and the coordinate by which their chain is sorted, if any.
Candidate = tuple[str, "NDArray[np.int64]", "FloatArray"]

ORDER_NAMES = ("best", "natural", "sweep", "narrow", "spectral")
NUMBER_BYTES = 8
# The methods for constraints of more spins.
WIDER = "auto, exact or wmbe"
# Fields that cancel couplings by more nats come with these, if this share of what pairs could cancel is cancelled:
# half of it is by couplings of random signs.
MOST_CANCELLED, LEAST_CANCELLED_SHARE = 2.0, 0.75
# Memory of a plan.
BYTES_PER_SPIN = 200
# Most sites of a chain, and most moves of sites while it is laid out: some seconds.
MOST_SITES, MOST_MOVES = 50_000, 3_000_000_000
# Components up to this size keep the order of their spins.
SMALL_COMPONENT = 8
# Largest components for which these kinds of order are tried, and fronts started at several spins.
MOST_FOR_NARROW, MOST_FOR_SPECTRAL, MOST_FOR_MANY_ROOTS = 20_000, 3_000, 400
MANY_ROOTS = 40
# Number of components, the largest ones, that are planned one by one.
MOST_LARGE_COMPONENTS = 100
# Number of shortest paths to a spin along a side; the far side of a ring has two.
MOST_WAYS = 2
# No coordinate to sort a chain by.
UNSORTED = np.empty(0)
# A component whose best order so far is cheaper than this per spin, in operations, needs no better one.
CHEAP_PER_SPIN = 5_000.0
# An opposite order that costs so many times as much as the order itself is not taken if there is a cheaper one.
DEAR_REVERSE = 3.0


@dataclass(frozen=True)
class Part:
    """Connected spins in their order of arrival, and the coordinate by which the chain is sorted."""

    name: str
    order: NDArray[np.int64]
    across: FloatArray
    steps: Steps
    width: int

    def operations(self, bond: int) -> float:
        """Predict the operations."""
        from spectralz.kernels.compressed.placing import predict

        return float(predict(self.steps, self.width, bond)[0])


@dataclass(frozen=True)
class FrontierPlan:
    """The steps of a compressed elimination, and what they cost.

    Attributes
    ----------
    graph
        The graph, laid out as for messages.
    parts
        The components, each with its order; small ones are taken together.
    steps
        The steps, one per spin.
    """

    graph: Graph = field(repr=False)
    parts: tuple[Part, ...] = field(repr=False)
    steps: Steps = field(repr=False)

    @classmethod
    def of_parts(cls, graph: Graph, candidates: list[Part | None]) -> FrontierPlan | None:
        """Combine parts one after the other; each begins and ends with a chain without sites. None if one is None."""
        from spectralz.kernels.compressed.placing import Steps

        parts = tuple(part for part in candidates if part is not None)
        if len(parts) < len(candidates):
            return None
        step, near = (np.concatenate(arrays) for arrays in zip(*(part.steps for part in parts), strict=True))
        edges = np.array([len(part.steps.near) for part in parts])
        before = np.repeat(np.cumsum(edges) - edges, [len(part.order) for part in parts])
        step["start"] += before
        step["end"] += before
        return cls(graph, parts, Steps(step, near))

    @property
    def name(self) -> str:
        """The kinds of order that were chosen."""
        return " and ".join(dict.fromkeys(part.name for part in self.parts))

    @property
    def order(self) -> NDArray[np.int64]:
        """The spins in the order of their arrival."""
        return self.steps.step["spin"]

    @property
    def width(self) -> int:
        """Most sites in the chain at once."""
        return max(part.width for part in self.parts)

    @property
    def longest_span(self) -> int:
        """Most sites that a step changes."""
        return int((self.steps.step["high"] - self.steps.step["low"]).max(initial=0)) + 1

    @property
    def largest_bond(self) -> int:
        """Return the largest bond dimension that a table over this many sites can have."""
        return 1 << min(self.width // 2, 30)

    def operations(self, bond: int) -> float:
        """Predict the operations of one contraction, at about one per nanosecond."""
        return float(self._predicted(bond)[0])

    def memory(self, bond: int) -> int:
        """Predict the bytes of one contraction that does not keep its tables."""
        bond = min(bond, self.largest_bond)
        in_span = NUMBER_BYTES * 2 * bond * bond * 4 * (self.longest_span + 4)  # with twice the bonds
        return self.memory_of_chain(bond) + in_span + BYTES_PER_SPIN * len(self.order)

    def memory_of_chain(self, bond: int) -> int:
        """Return the bytes of a chain."""
        return NUMBER_BYTES * 2 * min(bond, self.largest_bond) ** 2 * (self.width + 1)

    def kept(self, bond: int) -> int:
        """Predict the bytes of all tensors that a contraction changes, which sampling keeps if the memory allows."""
        return int(NUMBER_BYTES * self._predicted(bond)[1])

    def reversed(self, bond: int = 32) -> FrontierPlan | None:
        """Return a plan in which the spins arrive from the other end, or None if it is too wide.

        They arrive in the opposite order, unless that costs far more at this bond dimension and a sweep from the other
        end does not, as on a torus.
        """
        return FrontierPlan.of_parts(self.graph, [_from_other_end(self.graph, part, bond) for part in self.parts])

    def _predicted(self, bond: int) -> FloatArray:
        from spectralz.kernels.compressed.placing import predict

        return np.array(predict(self.steps, self.width, min(bond, self.largest_bond)))


def plan(model: Ising, order: str | tuple[int, ...] = "best", bond: int = 32) -> FrontierPlan | None:
    """Choose the order in which the spins of a model arrive; None if every frontier would be too wide.

    Parameters
    ----------
    model
        The model; only its graph matters.
    order
        A name of ``ORDER_NAMES``, or all spins in the order of their arrival.
    bond
        The bond dimension at which costs are compared.

    Examples
    --------
    >>> import spectralz as sz
    >>> found = plan(sz.generators.grid(side=10, strength=1.0, seed=0))
    >>> found.width <= 11, found.operations(8) < found.operations(16)
    (True, True)
    """
    from spectralz.kernels.propagation.messages import graph_of

    graph = graph_of(model.n, model.graph)
    if not isinstance(order, str):
        if len(order) != model.n:
            raise OptionError(f"order has {len(order)} spins and the model has {model.n}")
        return FrontierPlan.of_parts(graph, [_part("as given", graph, np.array(order, dtype=np.int64), UNSORTED)])
    components = sorted(model.components(), key=len, reverse=True)
    large = [spins for spins in components[:MOST_LARGE_COMPONENTS] if len(spins) > SMALL_COMPONENT]
    small = np.concatenate([np.empty(0, np.int64), *components[len(large) :]])
    parts = [] if len(small) == 0 and large else [_part("natural", graph, small, UNSORTED)]
    for spins in large:
        parts.append(_cheapest(graph, _candidates(graph, spins, order), bond, enough=CHEAP_PER_SPIN * len(spins)))
    return FrontierPlan.of_parts(graph, parts)


def weights_on_graph(model: Ising) -> FloatArray:
    """Return the weight of each pair of the graph of a model; 0 for pairs that have a constraint alone."""
    pairs, J = model.edges()
    if not model.constraints:
        return J
    weights, graph = np.zeros(len(model.graph)), model.graph
    weights[np.searchsorted(graph @ [model.n, 1], pairs @ [model.n, 1])] = J
    return weights


def shares_of_fields(model: Ising) -> FloatArray:
    """Return the fields of both spins of each pair of the graph, divided among a spin's pairs by their weights."""
    size, pairs = np.abs(weights_on_graph(model)), model.graph
    total = np.bincount(pairs.ravel(), weights=np.repeat(size, 2), minlength=model.n)
    return model.field[pairs] * (size[:, None] / np.where(total > 0.0, total, 1.0)[pairs])


def cancels(model: Ising) -> bool:
    """Return whether fields cancel couplings by many nats, as in penalties written in pairs.

    Examples
    --------
    >>> import spectralz as sz
    >>> [cancels(sz.from_qubo({(0, 1): penalty})) for penalty in (1.0, 20.0)]
    [False, True]
    """
    J, shares = weights_on_graph(model), shares_of_fields(model)
    possible = 2.0 * np.minimum(np.abs(J), np.abs(shares).min(axis=1, initial=np.inf))
    lost = possible[np.sign(J) * np.sign(shares).prod(axis=1) < 0.0]
    return bool(lost.max(initial=0.0) > MOST_CANCELLED and lost.sum() >= LEAST_CANCELLED_SHARE * possible.sum())


def tilted(model: Ising, layout: FrontierPlan) -> tuple[FloatArray, FloatArray]:
    """Return fields without a part that comes with the pairs, and this part for each slot of the graph.

    It is the share of the spin that arrives first. So the table never has a field without the coupling that cancels it.
    """
    graph, pairs, shares = layout.graph, model.graph, shares_of_fields(model)
    place = np.empty(model.n, dtype=np.int64)
    place[layout.order] = np.arange(model.n)
    row, first = np.arange(len(pairs)), np.argmin(place[pairs], axis=1)
    tilt, carried = np.zeros(len(graph.source)), shares[row, first]
    tilt[graph.slots[row, 1 - first]] = carried
    return model.field - np.bincount(pairs[row, first], weights=carried, minlength=model.n), tilt


def zeros_on_graph(model: Ising, graph: Graph) -> NDArray[np.int64]:
    """Return which states of each slot's spin and its neighbor the constraints of a model exclude, as bits."""
    zeros = np.zeros(len(graph.source), np.int64)
    place = {pair: k for k, pair in enumerate(map(tuple, model.graph.tolist()))} if model.constraints else {}
    for (i, j), allowed in tables_of_pairs(model):
        for slot in graph.slots[place[i, j]]:
            own_first = allowed if graph.source[slot] == j else allowed.T
            zeros[slot] |= int(~own_first.ravel() @ [1, 2, 4, 8])
    return zeros


def tables_of_pairs(model: Ising) -> Iterator[tuple[tuple[int, int], NDArray[np.bool_]]]:
    """Yield pairs of spins, ascending, with what the constraints of a model allow them; refuse larger constraints."""
    for constraint in model.constraints:
        size, tables = len(constraint.scope), [constraint]
        if isinstance(constraint, AtMostOne):
            tables = [AtMostOne(pair) for pair in itertools.combinations(constraint.scope, 2)]
        elif size != 2:
            raise OptionError(f"mps takes constraints of two spins only, and this model has one of {size}; use {WIDER}")
        for table in tables:
            i, j = table.scope
            yield (i, j), table.tabulated().allowed


def largest_layer(model: Ising) -> int:
    """Return the most spins at the same distance from a spin at the rim: no sweep has a smaller frontier.

    Examples
    --------
    >>> import spectralz as sz
    >>> largest_layer(sz.generators.grid(side=10, strength=1.0, seed=0))
    10
    """
    from spectralz.kernels.propagation.messages import graph_of

    graph = graph_of(model.n, model.graph)
    distance = distances_from_an_end(graph.start, graph.source)
    return int(np.bincount(distance[distance >= 0], minlength=1).max())


def distances_from_an_end(start: NDArray[np.int64], source: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the distances of all spins from the one that is farthest from the first; -1 if it cannot be reached."""
    from spectralz.kernels.compressed.sweeps import distances_from

    distance, _ = distances_from(start, source, 0)
    return np.asarray(distances_from(start, source, int(np.argmax(distance)))[0])


def _part(name: str, graph: Graph, order: NDArray[np.int64], across: FloatArray) -> Part | None:
    from spectralz.kernels.compressed.placing import place_spins

    placed = place_spins(graph.start, graph.source, order, across, MOST_SITES, MOST_MOVES)
    return None if placed is None else Part(name, order, across, *placed)


def _from_other_end(graph: Graph, part: Part, bond: int) -> Part | None:
    """Return a part in the opposite order, or by a sweep from the other end if that is much cheaper."""
    best = _part(part.name, graph, part.order[::-1].copy(), part.across)
    least = np.inf if best is None else best.operations(bond)
    if part.name != "sweep" or least <= DEAR_REVERSE * part.operations(bond):
        return best
    arrival = np.empty(int(part.order.max()) + 1, np.int64)
    arrival[part.order] = np.arange(len(part.order))
    sweeps = (sweep for sweep in _sweeps(graph, np.sort(part.order)) if arrival[sweep[1][0]] >= len(part.order) // 2)
    return _cheapest(graph, sweeps, bond, best)


def _cheapest(
    graph: Graph, candidates: Iterator[Candidate], bond: int, best: Part | None = None, enough: float = 0.0
) -> Part | None:
    """Return the cheapest of several orders, or None if all of them are too wide; one below ``enough`` is taken."""
    least = np.inf if best is None else best.operations(bond)
    for name, order, across in candidates:
        part = _part(name, graph, order, across)
        cost = np.inf if part is None else part.operations(bond)
        if cost < least:
            best, least = part, cost
        if least < enough:
            break
    return best


def _candidates(graph: Graph, spins: NDArray[np.int64], wanted: str) -> Iterator[Candidate]:
    """Yield named orders of a component with the coordinate that sorts the chain; the fastest to find come first."""
    if wanted in ("best", "natural"):
        yield "natural", spins, UNSORTED
    if wanted in ("best", "sweep"):
        yield from _sweeps(graph, spins)
    if wanted == "narrow" or (wanted == "best" and len(spins) <= MOST_FOR_NARROW):
        yield from _narrow_fronts(graph, spins)
    if wanted == "spectral" or (wanted == "best" and len(spins) <= MOST_FOR_SPECTRAL):
        yield from _spectral(graph, spins)


def _sweeps(graph: Graph, spins: NDArray[np.int64]) -> Iterator[Candidate]:
    """Yield sweeps away from one or two spins at the rim.

    On a lattice, the sum of the distances to two corners of a side counts its rows, and their difference the columns. A
    corner is far away from another corner on the same side, and only one shortest path leads to it.
    """
    views = [distance for distance, _ in corners(graph, spins)]
    for p, q in itertools.permutations(range(len(views)), 2):
        near, far = views[p], views[q]
        if p < q:
            total, across = near + far, (near - far).astype(np.float64)
            yield "sweep", spins[np.lexsort((across[spins], total[spins]))], across
        across = far.astype(np.float64)
        yield "sweep", spins[np.lexsort((across[spins], near[spins]))], across


def corners(graph: Graph, spins: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], FloatArray]]:
    """Return distances from a few spins at the rim (far ends, and those with one shortest path), and path counts."""
    from spectralz.kernels.compressed.sweeps import distances_from

    degree = np.diff(graph.start)[spins]

    def seen_from(spin: np.int64) -> tuple[NDArray[np.int64], FloatArray]:
        distance, ways = distances_from(graph.start, graph.source, int(spin))
        return distance, ways

    def farthest(score: NDArray[np.int64]) -> np.int64:
        return np.int64(spins[np.lexsort((degree, -score))[0]])

    first = spins[int(np.argmin(degree))]
    for _ in range(2):
        first = farthest(seen_from(first)[0][spins])
    distance, ways = seen_from(first)
    has_few_ways = ways[spins] <= MOST_WAYS
    second, third = farthest(distance[spins]), farthest(np.where(has_few_ways, distance[spins], 0))
    views = [(distance, ways), seen_from(second), seen_from(third)]
    fourth = farthest(np.where(has_few_ways, views[2][0][spins], 0))
    return [*views, seen_from(fourth)][: len({first, second, third, fourth})]


def _narrow_fronts(graph: Graph, spins: NDArray[np.int64]) -> Iterator[Candidate]:
    """Yield orders that keep the frontier small step by step, started at several spins of small graphs."""
    from spectralz.kernels.compressed.sweeps import distances_from, narrow_front

    degree = np.diff(graph.start)[spins]
    first = spins[int(np.argmin(degree))]
    for _ in range(2):
        first = spins[int(np.argmax(distances_from(graph.start, graph.source, int(first))[0][spins]))]
    roots = [first]
    if len(spins) <= MOST_FOR_MANY_ROOTS:
        roots += spins[:: max(len(spins) // MANY_ROOTS, 1)].tolist()
    for root in roots:
        order, is_found = narrow_front(graph.start, graph.source, int(root), len(spins), MOST_SITES)
        if is_found:
            yield "narrow", order, UNSORTED
            yield "narrow", order[::-1].copy(), UNSORTED


def _spectral(graph: Graph, spins: NDArray[np.int64]) -> Iterator[Candidate]:
    """Yield sweeps along the slowest diffusion modes of the graph, each sorted by another mode."""
    modes = _slow_modes(graph, spins)
    for k in range(modes.shape[1]):
        order = spins[np.argsort(modes[spins, k], kind="stable")]
        yield from (("spectral", order, modes[:, j].copy()) for j in range(modes.shape[1]) if j != k)
        yield "spectral", order, UNSORTED


def _slow_modes(graph: Graph, spins: NDArray[np.int64]) -> FloatArray:
    """Return eigenvectors of the graph's Laplacian with the smallest eigenvalues above 0, on the spins of a part."""
    import scipy.sparse as sp
    from scipy.sparse.linalg import ArpackError, eigsh

    n = len(graph.start) - 1
    matrix = sp.csr_array((np.ones(len(graph.source)), graph.source, graph.start), shape=(n, n))[spins][:, spins]
    laplacian = sp.csc_array(sp.diags_array(matrix.sum(axis=1)) - matrix)
    try:
        _, vectors = eigsh(laplacian, k=min(4, len(spins) - 1), sigma=-1e-3, v0=np.ones(len(spins)))
    except (ArpackError, RuntimeError):
        return np.zeros((n, 0))
    modes = np.zeros((n, vectors.shape[1] - 1))
    modes[spins] = vectors[:, 1:]
    return modes
