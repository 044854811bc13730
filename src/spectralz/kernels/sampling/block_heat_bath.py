"""Heat bath of whole blocks: redraw the spins of a subgraph of small treewidth jointly, given all others.

With strong couplings, spins move in clusters and single spins are held by their neighbors. A block of width w is
eliminated spin by spin into tables of at most 2^w entries and then drawn backwards, exactly and independently of its
previous state (Hamze and de Freitas, "From fields to trees", 2004, for w = 1). If the choice of the block does not
depend on the state, the distribution stays invariant, as with single spins.

Tables hold log-weights relative to the best value of each term: a field f adds 0 to the side it favors and -2 beta |f|
to the other, and a coupling likewise. So a huge field or coupling does not swamp small ones, and nothing overflows
unless the model's absolute weights do.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled, inlined
from spectralz.kernels.elimination.order import eliminate
from spectralz.kernels.elimination.tree import EliminationTree
from spectralz.kernels.logsum import exp_minus, log_add_exp
from spectralz.kernels.sampling.heat_bath import CERTAIN, GOLDEN, uniform

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.kernels.arrays import ColumnArray, FloatArray, IntArray, SpinArray, WordArray
    from spectralz.kernels.coupling import Couplings
    from spectralz.kernels.elimination.tree import Adjacency

# Number of states that are eliminated together, entry by entry: a few vector registers.
LANES = 16


class Block(NamedTuple):
    """A set of spins with an elimination order, laid out for the kernel; independent of the weights.

    The table of a step has an entry for each configuration of its separator, with bit q set if the q-th spin of the
    separator is +1. A step works on twice as many entries, the upper half with its own spin at +1.

    Attributes
    ----------
    spins
        The spins in order of elimination.
    separators, separators_from
        The spins of each step's table; those of step k are ``separators[separators_from[k] : separators_from[k + 1]]``.
    tables_from
        Where each step's table begins. Its working entries begin at twice that.
    pairs, pairs_from
        For each step, the couplings to its separator: rows of bit and place in the data of the CSR matrix.
    outside, outside_from
        For each step, the couplings to spins outside the block: rows of spin and place.
    children, children_from
        For each step, the earlier ones whose tables it uses up: rows of step and where its map begins in ``maps``.
    maps
        For each child, the entry of its table that belongs to each working entry of its parent.
    """

    spins: IntArray
    separators: IntArray
    separators_from: IntArray
    tables_from: IntArray
    pairs: IntArray
    pairs_from: IntArray
    outside: IntArray
    outside_from: IntArray
    children: IntArray
    children_from: IntArray
    maps: ColumnArray

    @property
    def entries(self) -> int:
        """Entries of all tables."""
        return int(self.tables_from[-1])

    @property
    def width(self) -> int:
        """Spins in the widest separator."""
        return int(np.diff(self.separators_from).max(initial=0))


def choose_blocks(adjacency: Adjacency, width: int, count: int, rng: np.random.Generator) -> list[list[int]]:
    """Return the elimination orders of random blocks of at most ``width``; a single block if it holds all spins.

    Later blocks prefer spins that earlier blocks left out, so that hubs are included too.
    """
    times_left_out = np.zeros(len(adjacency), dtype=np.int64)
    blocks: list[list[int]] = []
    while len(blocks) < count:
        order = _choose_block(adjacency, width, times_left_out, rng)
        blocks.append(order)
        if len(order) == len(adjacency):
            return [order]
        times_left_out += 1
        times_left_out[order] -= 1
    return blocks


def _choose_block(adjacency: Adjacency, width: int, times_left_out: IntArray, rng: np.random.Generator) -> list[int]:
    """Repeatedly eliminate a spin with the fewest neighbors; if that has more than ``width``, leave a spin out.

    The spin left out is the one with the most neighbors, discounted by how often it was left out before.
    """
    tie: list[float] = rng.random(len(adjacency)).tolist()
    share: list[float] = (1.0 / (1.0 + times_left_out)).tolist()
    graph = {v: set(neighbors) for v, neighbors in enumerate(adjacency)}
    fewest: list[tuple[int, float, int]] = []
    most: list[tuple[float, float, int, int]] = []

    def count(v: int) -> None:
        degree = len(graph[v])
        heapq.heappush(fewest, (degree, tie[v], v))
        heapq.heappush(most, (-degree * share[v], tie[v], v, degree))

    for v in graph:
        count(v)
    order = []
    while graph:
        degree, _, v = fewest[0]
        if v not in graph or len(graph[v]) != degree:
            heapq.heappop(fewest)
        elif degree <= width:
            order.append(v)
            for u in eliminate(v, graph):
                count(u)
        else:
            _, _, v, degree = heapq.heappop(most)
            if v in graph and len(graph[v]) == degree:
                for u in graph.pop(v):
                    graph[u].discard(v)
                    count(u)
    return order


def block_of(order: Sequence[int], adjacency: Adjacency, couplings: Couplings) -> Block:
    """Eliminate a block symbolically along an order, and lay out the arrays for the kernel."""
    members = set(order)
    inner: Adjacency = [neighbors & members if v in members else set() for v, neighbors in enumerate(adjacency)]
    tree = EliminationTree.of_order(order, inner)
    rank = {v: step for step, v in enumerate(tree.order)}
    children: list[list[int]] = [[] for _ in tree.order]
    for step, separator in enumerate(tree.separators):
        if separator:
            children[rank[separator[0]]].append(step)
    pairs: list[list[tuple[int, int]]] = []
    outside: list[list[tuple[int, int]]] = []
    maps: list[ColumnArray] = []
    begins: list[list[tuple[int, int]]] = []
    reached = 0
    for v, separator, below in zip(tree.order, tree.separators, children, strict=True):
        begin, end = couplings.indptr[v : v + 2].tolist()
        row = range(len(adjacency)) if couplings.is_dense else couplings.indices[begin:end].tolist()
        place = {u: begin + k for k, u in enumerate(row)}
        pairs.append([(bit, place[u]) for bit, u in enumerate(separator) if u in adjacency[v]])
        outside.append([(u, place[u]) for u in sorted(adjacency[v] - members)])
        bit_of = {u: bit for bit, u in enumerate([*separator, v])}
        entries = np.arange(2 << len(separator), dtype=np.int32)
        begins.append([])
        for child in below:
            image = np.zeros_like(entries)
            for bit, u in enumerate(tree.separators[child]):
                image |= (entries >> bit_of[u] & 1) << bit
            maps.append(image)
            begins[-1].append((child, reached))
            reached += len(image)
    sizes = [1 << len(separator) for separator in tree.separators]
    return Block(
        np.array(tree.order, dtype=np.int64),
        np.array([u for separator in tree.separators for u in separator], dtype=np.int64),
        _starts([len(separator) for separator in tree.separators]),
        _starts(sizes),
        *_rows(pairs),
        *_rows(outside),
        *_rows(begins),
        np.concatenate([*maps, np.empty(0, np.int32)]),
    )


def _starts(lengths: Sequence[int]) -> IntArray:
    return np.concatenate([[0], np.cumsum(np.array(lengths, dtype=np.int64))]).astype(np.int64)


def _rows(lists: Sequence[Sequence[tuple[int, int]]]) -> tuple[IntArray, IntArray]:
    """Concatenate lists of pairs, and return where each begins."""
    flat = np.array([pair for pairs in lists for pair in pairs], dtype=np.int64).reshape(-1, 2)
    return flat, _starts([len(pairs) for pairs in lists])


class _Room(NamedTuple):
    """Work arrays; numbers of the lanes are stored side by side, 16 numbers for 16 states.

    Attributes
    ----------
    terms
        What the couplings within a block add to the working entries of each step: 0 or -2 beta |J| per coupling.
    tables, work
        The tables of all steps, and the working entries of one.
    fields
        The log-odds of a block's spins from their fields and the spins outside alone.
    log_odds
        Of one step's spin, given its separator and all spins outside.
    """

    terms: FloatArray
    tables: FloatArray
    work: FloatArray
    fields: FloatArray
    log_odds: FloatArray


@compiled
def block_heat_bath(
    x: SpinArray, counters: WordArray, beta: float, block: Block, theta: FloatArray, couplings: Couplings
) -> None:
    """Redraw a block of every state, given its other spins, at inverse temperature ``beta``.

    A state uses one of its random numbers per spin of the block.
    """
    size, entries, widest = len(x), block.tables_from[-1], 0
    for step in range(len(block.spins)):
        widest = max(widest, block.separators_from[step + 1] - block.separators_from[step])
    terms, tables, work = np.zeros(2 * entries), np.empty(LANES * entries), np.empty(LANES * (2 << widest))
    room = _Room(terms, tables, work, np.zeros(LANES * len(block.spins)), np.empty(LANES))
    _add_pairs(beta, couplings.data, block, room.terms)
    for first in range(0, size, LANES):
        # Unused lanes at the end keep their old fields, and are not drawn.
        last = first + LANES if first + LANES < size else size
        for step in range(len(block.spins)):
            for r in range(first, last):
                field = theta[block.spins[step]]
                for k in range(block.outside_from[step], block.outside_from[step + 1]):
                    field += couplings.data[block.outside[k, 1]] * x[r, block.outside[k, 0]]
                room.fields[step * LANES + r - first] = 2.0 * beta * field
        _eliminate(block, room)
        for step in range(len(block.spins) - 1, -1, -1):
            i = block.spins[step]
            _look_up(x, first, last, step, block, room)
            for r in range(first, last):
                field = room.log_odds[r - first]
                counters[r] += GOLDEN
                if field > CERTAIN:
                    spin = 1
                elif field < -CERTAIN:
                    spin = -1
                else:
                    # P(x_i = sign of the field) = 1 / (1 + exp(-|field|))
                    likely = uniform(counters[r]) * (1.0 + exp_minus(abs(field))) < 1.0
                    spin = 1 if likely == (field >= 0.0) else -1
                x[r, i] = spin


@inlined
def _add_pairs(beta: float, data: FloatArray, block: Block, terms: FloatArray) -> None:
    for step in range(len(block.spins)):
        begin = 2 * block.tables_from[step]
        half = block.tables_from[step + 1] - block.tables_from[step]
        for k in range(block.pairs_from[step], block.pairs_from[step + 1]):
            bit = block.pairs[k, 0]
            J = data[block.pairs[k, 1]]
            for entry in range(2 * half):
                is_equal = (entry >= half) == ((entry >> bit & 1) == 1)
                if is_equal != (J > 0.0):
                    terms[begin + entry] -= 2.0 * beta * abs(J)


@inlined
def _eliminate(block: Block, room: _Room) -> None:
    """Fill the tables of all steps."""
    terms, tables, work, fields, _ = room
    for step in range(len(block.spins)):
        begin = block.tables_from[step]
        half = block.tables_from[step + 1] - begin
        if half == 1:
            continue  # nothing depends on the table of a last spin
        for entry in range(half):
            for lane in range(LANES):
                field = fields[step * LANES + lane]
                down, up = entry * LANES + lane, (half + entry) * LANES + lane
                work[down] = terms[2 * begin + entry] - (field if field > 0.0 else 0.0)
                work[up] = terms[2 * begin + half + entry] + (field if field < 0.0 else 0.0)
        for k in range(block.children_from[step], block.children_from[step + 1]):
            table = block.tables_from[block.children[k, 0]]
            image = block.children[k, 1]
            for entry in range(2 * half):
                source = (table + block.maps[image + entry]) * LANES
                for lane in range(LANES):
                    work[entry * LANES + lane] += tables[source + lane]
        # In a separate loop, instead of lane by lane, the compiler vectorizes it.
        for i in range(half * LANES):
            tables[begin * LANES + i] = log_add_exp(work[half * LANES + i], work[i])


@inlined
def _look_up(x: SpinArray, first: int, last: int, step: int, block: Block, room: _Room) -> None:
    begin, end = block.separators_from[step], block.separators_from[step + 1]
    half = 1 << (end - begin)
    for r in range(first, last):
        lane = r - first
        entry = 0
        for q in range(begin, end):
            entry |= (x[r, block.separators[q]] > 0) << (q - begin)
        place = 2 * block.tables_from[step] + entry
        field = room.fields[step * LANES + lane] + (room.terms[place + half] - room.terms[place])
        for k in range(block.children_from[step], block.children_from[step + 1]):
            table = block.tables_from[block.children[k, 0]]
            image = block.children[k, 1] + entry
            up, down = table + block.maps[image + half], table + block.maps[image]
            field += room.tables[up * LANES + lane] - room.tables[down * LANES + lane]
        room.log_odds[lane] = field
