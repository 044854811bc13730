"""Max-cut instances, in the format of rudy, Gset and the Biq Mac library.

The number of nodes and the number of edges, then for each edge its two nodes, counted from 1, and its weight:

    n m
    i j w

Lines that begin with ``#`` are comments. The log-weight of a state is the weight of its cut,

    cut(x) = sum_ij w_ij (1 - x_i x_j) / 2,

so that J_ij = -w_ij / 2 and the offset is the sum of the weights over 2; at ``beta``, the log-weight is beta cut(x).
"""

from __future__ import annotations

import math

import numpy as np

from spectralz.io.files import PathOrSource, Source, opened
from spectralz.io.labels import symmetric
from spectralz.io.lines import Lines, finite_number, first_words, quoted, whole_number
from spectralz.model import FloatArray, IntArray, Ising

# A wrong number of nodes must not fill the memory.
MOST_NODES = 10**7


def read_maxcut(path: PathOrSource) -> Ising:
    """Read the graph of a max-cut instance."""
    source = opened(path)
    lines, n, pairs, weights = read_entries(source)
    for line in np.flatnonzero(pairs[:, 0] == pairs[:, 1])[:1].tolist():
        lines.fail(
            line,
            f"an edge joins node {pairs[line, 0] + 1} to itself; no cut contains it. "
            "If the file is a quadratic 0/1 program and this is its diagonal, read it with format='qubo'",
        )
    with source.making_a_model():
        return Ising(None, symmetric(n, pairs, weights / -2.0) / 2.0, math.fsum((weights / 2.0).tolist()))


def read_entries(source: Source) -> tuple[Lines, int, IntArray, FloatArray]:
    """Read ``n m`` and m lines ``i j value``; return the lines, n, the pairs counted from 0, and the values."""
    lines = Lines.of(source)
    if not len(lines):
        source.fail("the file is empty; it should begin with 'n m', the numbers of nodes and entries")
    head = [whole_number(word) for word in lines.texts[0].split()]
    if len(head) != 2 or None in head:
        lines.fail(0, f"{quoted(lines.texts[0])} stands where 'n m' should be, the numbers of nodes and entries")
    n, m = (int(value or 0) for value in head)
    if n > MOST_NODES:
        lines.fail(0, f"the file announces {n} nodes; up to {MOST_NODES} can be read")
    lines = lines.after(1)
    pairs, values = lines.triples("i j weight", "a node", 1, n)
    if len(lines) != m:
        source.fail(f"the file announces {m} entries and has {len(lines)}; is it truncated?")
    lines.refuse_repeated_pairs(pairs, n)
    return lines, n, pairs, values


def looks_like_maxcut(source: Source) -> bool:
    """Say whether the first lines are ``n m`` and ``i j w``."""
    head = first_words(source, 2)
    if not head or len(head[0]) != 2 or None in map(whole_number, head[0]):
        return False
    return len(head) == 1 or (len(head[1]) == 3 and None not in map(finite_number, head[1]))
