"""In which order to eliminate the spins of a graph, and what that will cost: no numbers, only the graph.

Eliminating a spin joins all its neighbours and leaves a table over them, its *separator*. The tables make a tree:
a spin's table is used up when the first spin of its separator is eliminated. Run in post-order, the live tables
form a stack, whose greatest height is the memory needed and is known beforehand.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from spectralz.kernels.forest import post_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

__all__ = [
    "ORDERS",
    "Adjacency",
    "EliminationTree",
    "adjacency_of",
    "best_order",
    "degeneracy",
    "forest_of",
    "lone_spins",
]

Adjacency = list[set[int]]
Order = tuple[list[int], int]  # the spins in order of elimination, and the table entries that this takes

# Below this many table entries any order is fast enough, and looking for a better one costs more than it saves.
CHEAP_TERMS = 4096
# Min-fill keeps the graph as a matrix of bits; beyond this many spins only the other orders are tried.
MOST_SPINS_FOR_MIN_FILL = 5000
# Min-fill has many ties, and other choices among them are sometimes ten times cheaper.
MOST_TRIES = 100
PATIENCE = 10  # tries in vain before giving up


def adjacency_of(n: int, edges: NDArray[np.int64]) -> Adjacency:
    """Return the set of neighbours of each vertex."""
    adjacency: Adjacency = [set() for _ in range(n)]
    for i, j in edges.tolist():
        adjacency[i].add(j)
        adjacency[j].add(i)
    return adjacency


def degeneracy(spins: Iterable[int], adjacency: Adjacency) -> int:
    """Return the largest least degree of any subgraph: no elimination order has a smaller widest separator."""
    degree = {v: len(adjacency[v]) for v in spins}
    heap = [(d, v) for v, d in degree.items()]
    heapq.heapify(heap)
    most = 0
    while heap:
        d, v = heapq.heappop(heap)
        if degree.get(v) != d:
            continue
        del degree[v]
        most = max(most, d)
        for u in adjacency[v]:
            if u in degree:
                degree[u] -= 1
                heapq.heappush(heap, (degree[u], u))
    return most


def min_degree(spins: Sequence[int], adjacency: Adjacency, max_width: int) -> Order | None:
    """Eliminate a spin with the fewest neighbours each time; None if a separator grows beyond ``max_width``."""
    graph = {v: set(adjacency[v]) for v in spins}
    heap = [(len(neighbours), v) for v, neighbours in graph.items()]
    heapq.heapify(heap)
    order = []
    terms = 0
    while heap:
        degree, v = heapq.heappop(heap)
        if v not in graph or len(graph[v]) != degree:
            continue
        if degree > max_width:
            return None
        order.append(v)
        terms += 1 << degree
        separator = graph.pop(v)
        for u in separator:
            neighbours = graph[u]
            neighbours |= separator
            neighbours.discard(u)
            neighbours.discard(v)
            heapq.heappush(heap, (len(neighbours), u))
    return order, terms


def min_fill(spins: Sequence[int], adjacency: Adjacency, max_width: int, seed: int | None = None) -> Order | None:
    """Eliminate a spin that joins the fewest new pairs each time; None if a separator grows beyond ``max_width``.

    Of several such spins the one with the fewest neighbours and then the first is taken, or with a seed a random one.
    """
    if len(spins) > MOST_SPINS_FOR_MIN_FILL:
        return None
    position = {v: k for k, v in enumerate(spins)}
    bits = np.zeros((len(spins), (len(spins) + 63) // 64), dtype=np.uint64)
    for v, k in position.items():
        for u in adjacency[v]:
            j = position[u]
            bits[k, j // 64] |= np.uint64(1 << (j % 64))
    random = seed is not None
    priority = np.random.default_rng(seed).permutation(len(spins)) if random else np.arange(len(spins))
    order, widths = _min_fill_of_bits(bits, priority, random, max_width)
    if len(order) < len(spins):
        return None
    return [spins[k] for k in order.tolist()], sum(1 << width for width in widths.tolist())


def banded(spins: Sequence[int], adjacency: Adjacency, max_width: int) -> Order | None:
    """Sweep a front through the graph from one end to the other; None if the front grows beyond ``max_width``.

    The front is what has been reached and not yet eliminated; the next spin is the one of the front that
    reaches the fewest new ones, the oldest if there are several. On a grid this is a diagonal sweep.
    """
    unreached = {v: len(adjacency[v]) for v in spins}
    order: list[int] = []
    front: dict[int, None] = {}  # in order of arrival
    reached: set[int] = set()

    def reach(v: int) -> None:
        reached.add(v)
        front[v] = None
        for u in adjacency[v]:
            unreached[u] -= 1

    reach(_far_end(spins, adjacency))
    while front:
        v = min(front, key=unreached.__getitem__)
        del front[v]
        order.append(v)
        for u in sorted(adjacency[v] - reached, key=unreached.__getitem__):
            reach(u)
        if len(front) > max_width:
            return None
    return order, sum(1 << len(separator) for separator in _symbolic(order, adjacency)[0])


ORDERS = {"min-degree": min_degree, "min-fill": min_fill, "banded": banded}


def _far_end(spins: Sequence[int], adjacency: Adjacency) -> int:
    """Return a vertex of small degree that is far from the others: the last of two breadth-first sweeps."""
    start = min(spins, key=lambda v: len(adjacency[v]))
    for _ in range(2):
        seen, last_level = {start}, [start]
        while True:
            level = []
            for v in last_level:
                for u in adjacency[v]:
                    if u not in seen:
                        seen.add(u)
                        level.append(u)
            if not level:
                break
            last_level = level
        start = min(last_level, key=lambda v: len(adjacency[v]))
    return start


@dataclass(frozen=True)
class EliminationTree:
    """An elimination order, put into post-order, with its separators and its cost.

    Attributes
    ----------
    order
        The spins, each after all the spins whose tables it uses up.
    separators
        For each step, the spins of the table that it leaves, in the order of their own elimination.
    slots
        For each step, the step in whose place its table is kept: its own, or that of the sister before it, onto
        whose table it is added if the two have the same separator (the hidden spins of an RBM all do).
    children
        For each step, the slots that it uses up: the top of the stack at that moment.
    """

    order: list[int]
    separators: list[list[int]]
    slots: list[int]
    children: list[list[int]]

    @classmethod
    def of_order(cls, order: Sequence[int], adjacency: Adjacency) -> EliminationTree:
        """Eliminate symbolically along ``order`` and rearrange it, at the same fill, for the lowest stack."""
        separators, children, roots = _symbolic(order, adjacency)
        sizes = [1 << len(separator) for separator in separators]
        steps = post_order(sizes, children, roots, in_place=False)
        at = {step: k for k, step in enumerate(steps)}
        rank = {order[step]: k for step, k in at.items()}
        slots = list(range(len(steps)))
        kept: list[list[int]] = []
        for step in steps:
            own: list[int] = []
            for child in sorted(children[step], key=at.__getitem__):
                if own and separators[child] == separators[steps[own[-1]]]:
                    slots[at[child]] = own[-1]
                else:
                    own.append(at[child])
            kept.append(own)
        return cls(
            [order[step] for step in steps],
            [sorted(separators[step], key=rank.__getitem__) for step in steps],
            slots,
            kept,
        )

    @property
    def width(self) -> int:
        """Spins in the widest separator: an upper bound on the treewidth."""
        return max((len(separator) for separator in self.separators), default=0)

    @property
    def terms(self) -> int:
        """Table entries to be filled."""
        return sum(1 << len(separator) for separator in self.separators)

    def stack_heights(self) -> list[int]:
        """Return the entries on the stack before each step, and after the last."""
        heights = [0]
        for step, (separator, children) in enumerate(zip(self.separators, self.children, strict=True)):
            used = sum(1 << len(self.separators[child]) for child in children)
            stays = bool(separator) and self.slots[step] == step
            heights.append(heights[-1] - used + (1 << len(separator) if stays else 0))
        return heights

    @property
    def peak(self) -> int:
        """The most table entries alive at once: a step writes its table before those it used are dropped."""
        heights = self.stack_heights()
        return max((h + (1 << len(s)) for h, s in zip(heights, self.separators, strict=False)), default=0)


def _symbolic(order: Sequence[int], adjacency: Adjacency) -> tuple[list[set[int]], list[list[int]], list[int]]:
    rank = {v: k for k, v in enumerate(order)}
    separators: list[set[int]] = []
    children: list[list[int]] = [[] for _ in order]
    roots = []
    for step, v in enumerate(order):
        separator = {u for u in adjacency[v] if rank[u] > step}
        for child in children[step]:
            separator |= separators[child]
        separator.discard(v)
        separators.append(separator)
        if separator:
            children[min(rank[u] for u in separator)].append(step)
        else:
            roots.append(step)
    return separators, children, roots


def _random_min_fill(spins: Sequence[int], adjacency: Adjacency, max_width: int, terms: int) -> Order | None:
    """Try min-fill with random ties for up to a quarter of the time that the ``terms`` of the best order would take.

    An entry takes about 6 ns and a try about 100 n^2 ns; counted and not timed, so that the choice is always the same.
    """
    tries = min(MOST_TRIES, 6 * terms // (400 * len(spins) ** 2))
    if not tries or len(spins) > MOST_SPINS_FOR_MIN_FILL or terms < 2 << degeneracy(spins, adjacency):
        return None  # not worth it, too large, or as narrow as any order can be
    best: Order | None = None
    vain = 0
    for seed in range(tries):
        order = min_fill(spins, adjacency, max_width, seed)
        if order is not None and order[1] < terms:
            best, terms, vain = order, order[1], 0
        else:
            vain += 1
        if vain == PATIENCE:
            break
    return best


def best_order(
    spins: Sequence[int], adjacency: Adjacency, max_entries: int, names: Iterable[str] = tuple(ORDERS)
) -> tuple[str, EliminationTree] | None:
    """Return the name and tree of the cheapest order for one connected component.

    None if with every order of ``names`` more than ``max_entries`` table entries would be alive at once.
    """
    max_width = max_entries.bit_length() - 1
    found: list[tuple[int, str, list[int]]] = []
    for name in names:
        order = ORDERS[name](spins, adjacency, max_width)
        if order is not None:
            found.append((order[1], name, order[0]))
            if order[1] <= CHEAP_TERMS:
                break
    if "min-fill" in names and found:
        order = _random_min_fill(spins, adjacency, max_width, min(found)[0])
        if order is not None:
            found.append((order[1], "min-fill", order[0]))
    for _, name, steps in sorted(found):
        tree = EliminationTree.of_order(steps, adjacency)
        if tree.peak <= max_entries:
            return name, tree
    return None


def lone_spins(spins: Sequence[int]) -> EliminationTree:
    """Return the forest of spins without neighbours."""
    return EliminationTree(list(spins), [[] for _ in spins], list(range(len(spins))), [[] for _ in spins])


def forest_of(trees: Sequence[EliminationTree]) -> EliminationTree:
    """Put the trees of several components one after the other."""
    order: list[int] = []
    separators: list[list[int]] = []
    slots: list[int] = []
    children: list[list[int]] = []
    for tree in trees:
        shift = len(order)
        order += tree.order
        separators += tree.separators
        slots += [slot + shift for slot in tree.slots]
        children += [[child + shift for child in below] for below in tree.children]
    return EliminationTree(order, separators, slots, children)


@intrinsic
def _count_bits(typingctx: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(builder.bitcast(args[0], ir.IntType(64)))

    return types.int64(types.uint64), codegen


@njit(cache=True)
def _has_bit(row: NDArray[np.uint64], k: int) -> bool:
    return bool((row[k >> 6] >> np.uint64(k & 63)) & np.uint64(1))


@njit(cache=True)
def _clear_bit(row: NDArray[np.uint64], k: int) -> None:
    row[k >> 6] &= ~(np.uint64(1) << np.uint64(k & 63))


@njit(cache=True)
def _fill_of(bits: NDArray[np.uint64], v: int) -> int:
    """Count the pairs of neighbours of v that are not joined yet."""
    n, words = bits.shape
    missing = 0
    for u in range(n):
        if _has_bit(bits[v], u):
            for w in range(words):
                missing += _count_bits(bits[v, w] & ~bits[u, w])
            missing -= 1  # u itself is a neighbour of v and not of u
    return missing // 2


@njit(cache=True)
def _degree_of(bits: NDArray[np.uint64], v: int) -> int:
    degree = 0
    for w in range(bits.shape[1]):
        degree += _count_bits(bits[v, w])
    return degree


@njit(cache=True)
def _min_fill_of_bits(
    bits: NDArray[np.uint64], priority: NDArray[np.int64], ignore_degree: bool, max_width: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the min-fill order (ties: fewest neighbours, then priority) and its widths, cut short where too wide."""
    n, words = bits.shape
    fill = np.empty(n, np.int64)
    degree = np.empty(n, np.int64)
    alive = np.ones(n, np.bool_)
    affected = np.empty(n, np.bool_)
    order = np.empty(n, np.int64)
    widths = np.empty(n, np.int64)
    for v in range(n):
        fill[v] = _fill_of(bits, v)
        degree[v] = _degree_of(bits, v)
    for step in range(n):
        best = -1
        for v in range(n):
            if not alive[v]:
                continue
            if best < 0 or fill[v] < fill[best]:
                best = v
            elif fill[v] == fill[best]:
                tied = ignore_degree or degree[v] == degree[best]
                if (tied and priority[v] < priority[best]) or (not tied and degree[v] < degree[best]):
                    best = v
        if degree[best] > max_width:
            return order[:step], widths[:step]
        order[step] = best
        widths[step] = degree[best]
        alive[best] = False
        affected[:] = False
        separator = bits[best].copy()
        for u in range(n):
            if _has_bit(separator, u):
                affected[u] = True
                for w in range(words):
                    bits[u, w] |= separator[w]
                _clear_bit(bits[u], u)
                _clear_bit(bits[u], best)
                degree[u] = _degree_of(bits, u)
        if fill[best] > 0:  # new edges change the fill of whoever sees both their ends
            for u in range(n):
                if _has_bit(separator, u):
                    for x in range(n):
                        if _has_bit(bits[u], x):
                            affected[x] = True
        for u in range(n):
            if affected[u]:
                fill[u] = _fill_of(bits, u)
    return order, widths
