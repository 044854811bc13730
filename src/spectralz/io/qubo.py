"""Quadratic 0/1 programs: the ``.sparse`` files of the Biq Mac library and the ``.qubo`` files of D-Wave's qbsolv.

Biq Mac: n and the number of entries, then the row and column, counted from 1, and the value of each entry. The matrix
is symmetric and each pair is listed once, so that an entry off the diagonal counts **twice**:

    E(b) = b' Q b = sum_i q_ii b_i + 2 sum_(i<j) q_ij b_i b_j,         b in {0, 1}^n.

qbsolv: lines ``c ...`` are comments; ``p qubo 0 maxNodes nNodes nCouplers``; then a line ``i i q`` for each node and
``i j q`` for each coupler, nodes counted from 0. Here each pair counts **once**:

    E(b) = sum_i q_ii b_i + sum_(i<j) q_ij b_i b_j.

Both are minimized, so the log-weight of a state is -beta E(b), with b_i = (1 + x_i) / 2.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from spectralz.io.files import PathOrSource, Source, opened
from spectralz.io.labels import energy_of_entries, numbered
from spectralz.io.lines import Lines, first_words, quoted, whole_number
from spectralz.io.maxcut import looks_like_maxcut, read_entries

if TYPE_CHECKING:
    from spectralz.model import Ising


def read_qubo(path: PathOrSource) -> Ising:
    """Read a quadratic 0/1 program, in either form."""
    source = opened(path)
    return _read_qbsolv(source) if looks_like_qbsolv(source) else _read_biq_mac(source)


def _read_biq_mac(source: Source) -> Ising:
    _, n, pairs, values = read_entries(source)
    off = pairs[:, 0] != pairs[:, 1]
    values = np.where(off, 2.0 * values, values)  # q_ij and q_ji
    with source.making_a_model():
        return energy_of_entries(True, n, pairs, values)


def _read_qbsolv(source: Source) -> Ising:
    lines = Lines.of(source, comment="c")
    form = "p qubo 0 maxNodes nNodes nCouplers"
    head = lines.texts[0].split()
    counts = [whole_number(word) for word in head[3:]]
    if len(counts) != 3 or None in counts:
        lines.fail(0, f"{quoted(lines.texts[0])} stands where a line of the form {form!r} should be")
    if head[2] not in ("0", "unconstrained"):
        lines.fail(0, f"the program is of kind {quoted(head[2])}; only unconstrained ones, of kind 0, can be read")
    nodes, couplers = counts[1:]
    lines = lines.after(1)
    mentions, values = lines.triples("i j weight", "a node")
    names, pairs = numbered(mentions)
    on_diagonal = int(np.count_nonzero(pairs[:, 0] == pairs[:, 1]))
    if (on_diagonal, len(lines) - on_diagonal) != (nodes, couplers):
        source.fail(
            f"the file announces {nodes} nodes and {couplers} couplers and has {on_diagonal} and "
            f"{len(lines) - on_diagonal}; is it truncated?"
        )
    n = len(np.unique(pairs))
    lines.refuse_repeated_pairs(pairs, n)
    with source.making_a_model():
        return energy_of_entries(True, n, pairs, values, names)


def looks_like_qbsolv(source: Source) -> bool:
    """Say whether the first line that is not a comment is a program line."""
    first = first_words(source, 1, comment="c")
    return bool(first) and first[0][:2] == ["p", "qubo"]


def looks_like_qubo(source: Source) -> bool:
    """Say whether this is a program line, or ``n m`` and triples, some of them on the diagonal."""
    if looks_like_qbsolv(source):
        return True
    return (
        looks_like_maxcut(source) and re.search(r"^[ \t]*(\d+)[ \t]+\1[ \t]+\S+[ \t]*$", source.text, re.M) is not None
    )
