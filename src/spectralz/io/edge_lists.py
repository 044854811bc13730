"""Edge lists: text with one edge per line, in four formats. Lines that begin with ``#`` are comments.

**CSV**: two names and a weight, separated by commas, semicolons, tabs or blanks.

    source,target,weight
    a,b,0.5
    a,,-1.0

The weight of an edge is J, counted once: it adds +J x_i x_j to the log-weight. A line without target is a field, and a
line without both is the constant. The header may have these columns in any order; other columns are ignored. Without
a header there are three columns in this order. If all names are whole numbers, spins are in the order of the numbers,
and 0 to n - 1 are no names but the spins themselves. Other names are text, in the order of their first appearance.

**COO**, of dimod: a header, then one line per linear bias (u = v) or quadratic bias.

    # vartype=SPIN
    u v bias

Variables are whole numbers from 0. If a pair is listed again, in either order, its biases add up, as in dimod.
With v the spin (``SPIN``) or 0 or 1 (``BINARY``), the log-weight of a state is -beta E,

    E(v) = sum_u bias_uu v_u + sum_uw bias_uw v_u v_w.

The format has no place for a constant.

**Max-cut** instances of rudy, Gset and the Biq Mac library: the number of nodes and the number of edges, then for each
edge its two nodes, counted from 1, and its weight.

    n m
    i j w

The log-weight of a state is the weight of its cut,

    cut(x) = sum_ij w_ij (1 - x_i x_j) / 2,

so that J_ij = -w_ij / 2 and the offset is the sum of the weights over 2; at ``beta``, the log-weight is beta cut(x).

**Quadratic 0/1 programs**: the ``.sparse`` files of the Biq Mac library and the ``.qubo`` files of D-Wave's qbsolv.

Biq Mac: n and the number of entries, then the row and column, counted from 1, and the value of each entry. The matrix
is symmetric and each pair is listed once, so that an entry off the diagonal counts **twice**:

    E(b) = b' Q b = sum_i q_ii b_i + 2 sum_(i<j) q_ij b_i b_j,         b in {0, 1}^n.

qbsolv: lines ``c ...`` are comments; ``p qubo 0 maxNodes nNodes nCouplers``; then a line ``i i q`` for each node and
``i j q`` for each coupler, nodes counted from 0. Here each pair counts **once**:

    E(b) = sum_i q_ii b_i + sum_(i<j) q_ij b_i b_j.

Both are minimized, so the log-weight of a state is -beta E(b), with b_i = (1 + x_i) / 2.
"""

from __future__ import annotations

import csv
import math
import re
from io import StringIO
from itertools import chain
from os import fspath
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from spectralz.errors import ModelError
from spectralz.io.files import (
    Lines,
    PathName,
    PathOrSource,
    Source,
    finite_number,
    first_words,
    opened,
    pair_keys,
    quoted,
    save,
    separator_of,
    whole_number,
)
from spectralz.io.labels import energy_of_entries, numbered, symmetric
from spectralz.model import FloatArray, IntArray, Ising

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from spectralz.model.names import Names

COLUMNS = ("source", "target", "weight")

# Whole numbers, but not 01, which is a name, and with no more digits than an int64 holds.
WHOLE_NUMBER = re.compile(r"(?:0|-?[1-9][0-9]{0,17})")


def read_csv(path: PathOrSource) -> Ising:
    """Read an edge list, with or without header."""
    source = opened(path)
    lines, columns = _columns(Lines.of(source))
    names, ends = _spins(columns[:2])
    weights = lines.finite_numbers(columns[2], "a weight")
    first, second = ends.T
    edge, field, constant = second >= 0, (first >= 0) & (second < 0), (first < 0) & (second < 0)
    for line in np.flatnonzero((first < 0) & edge)[:1].tolist():
        lines.fail(line, "the source is empty; for a field leave the target empty")
    for line in np.flatnonzero((first == second) & edge)[:1].tolist():
        name = columns[0][line]
        lines.fail(line, f"{quoted(name)} is joined to itself; for a field leave the target empty: {name},,0.5")
    n = int(ends.max(initial=-1)) + 1
    # The key of a field is its spin paired with itself; the constant has a negative key.
    keys = pair_keys(np.column_stack([first, np.where(edge, second, first)]), n)
    lines.refuse_repeated(keys, lambda line: _in_words(columns[0][line], columns[1][line]))
    with source.making_a_model():
        theta = np.zeros(n)
        theta[first[field]] = weights[field]
        J = symmetric(n, ends[edge], weights[edge])
        return Ising(theta, J / 2.0, math.fsum(weights[constant].tolist()), names)


def _columns(lines: Lines) -> tuple[Lines, list[list[str]]]:
    """Return the lines of edges, and their columns source, target and weight, by the header or in this order."""
    if not len(lines):
        lines.source.fail("the file is empty; an edge list has a line 'source,target,weight' for each edge")
    separator = separator_of(lines.texts[0])
    cells = _split(lines, separator)[0]
    head = [cell.lower() for cell in cells]
    if not {"source", "target"} <= set(head):
        _refuse_other_heads(lines, cells)
        return lines, _all_columns(lines, separator, 3)
    if any(head.count(name) != 1 for name in COLUMNS):
        lines.fail(0, f"the header is {quoted(lines.texts[0])}; it must name source, target and weight, each once")
    lines = lines.after(1)
    columns = _all_columns(lines, separator, len(head))
    return lines, [columns[head.index(name)] for name in COLUMNS]


def _refuse_other_heads(lines: Lines, cells: list[str]) -> None:
    """Refuse a first line that is neither a header nor an edge."""
    if len(cells) > 3:
        lines.fail(
            0,
            f"the line has {len(cells)} columns; an edge list has three, source, target and weight: "
            "if there are others, a header must name these three",
        )
    if len(cells) == 3 and finite_number(cells[2]) is None:
        lines.fail(
            0, f"{quoted(cells[2])} is not a weight; a line is 'source,target,weight', and a header names these columns"
        )


def _all_columns(lines: Lines, separator: str | None, width: int) -> list[list[str]]:
    """Return all columns, without blanks around their cells."""
    if separator is None or '"' in lines.source.text:
        rows = _split(lines, separator, len(lines))
        _want_width(lines, [len(cells) for cells in rows], width)
        return [[cells[k] for cells in rows] for k in range(width)]
    _want_width(lines, [text.count(separator) + 1 for text in lines.texts], width)
    cells = separator.join(lines.texts).split(separator) if len(lines) else []
    return [list(map(str.strip, cells[k::width])) for k in range(width)]


def _want_width(lines: Lines, widths: list[int], width: int) -> None:
    """Refuse the first line that has another number of columns."""
    for line, columns in enumerate(widths):
        if columns < min(width, 3):
            lines.fail(line, "the line has no weight; add a third column, 1 for each edge if all weigh the same")
        if columns != width:
            lines.fail(line, f"the line has {columns} columns; it should have {width}")


def _split(lines: Lines, separator: str | None, count: int = 1) -> list[list[str]]:
    """Split the first lines into cells, which may be quoted unless blanks separate them."""
    texts = lines.texts[:count]
    if separator is None:
        return [text.split() for text in texts]
    reader = csv.reader(texts, delimiter=separator, skipinitialspace=True, strict=True)
    try:
        rows = [[cell.strip() for cell in row] for row in reader]
    except csv.Error as error:
        lines.fail(min(reader.line_num, count) - 1, f"the line cannot be split into cells: {error}")
    if len(rows) < len(texts):
        lines.source.fail("a quoted name continues after the end of its line; a name must be on one line")
    return rows


def _spins(columns: Sequence[list[str]]) -> tuple[Names, IntArray]:
    """Return the names, and the two spins of each line, -1 if there is none."""
    texts = dict.fromkeys(chain.from_iterable(zip(*columns, strict=True)))
    texts.pop("", None)
    names: Names
    if all(map(WHOLE_NUMBER.fullmatch, texts)):
        names, spins = numbered(np.array(list(map(int, texts)), dtype=np.int64))
        place = dict(zip(texts, spins.tolist(), strict=True))
    else:
        names, place = tuple(texts), {text: spin for spin, text in enumerate(texts)}
    place[""] = -1
    ends = [np.array(list(map(place.__getitem__, column)), dtype=np.int64) for column in columns]
    return names, np.column_stack(ends)


def _in_words(source: str, target: str) -> str:
    if target:
        return f"the pair {source} {target}"
    return f"the field of {quoted(source)}" if source else "the constant"


def write_csv(model: Ising, path: PathName) -> None:
    """Write ``model`` as an edge list with header, whole or not at all; with tabs if the suffix is ``.tsv``.

    Raises
    ------
    ModelError
        If reading the file would not return the names: they must be all whole numbers, or all text.
    """
    names = range(model.n) if model.names is None else model.names
    texts = _texts(names)
    pairs, J = model.edges()
    lonely = np.bincount(pairs.ravel(), minlength=model.n) == 0
    # Lines that keep the order of the names, and spins without edges.
    shown = (model.field != 0.0) | lonely if model.names is None else np.ones(model.n, dtype=bool)
    rows = [COLUMNS]
    rows += [("", "", repr(model.constant))] if model.constant else []
    rows += [(texts[i], "", repr(float(model.field[i] + 0.0))) for i in np.flatnonzero(shown)]
    rows += [(texts[i], texts[j], repr(w)) for (i, j), w in zip(pairs.tolist(), J.tolist(), strict=True)]
    separator = "\t" if ".tsv" in PurePath(fspath(path)).suffixes[-2:] else ","
    save(path, "".join(separator.join(row) + "\n" for row in rows).encode("utf-8"))


def _texts(names: Sequence[Hashable]) -> list[str]:
    if all(isinstance(name, int) and abs(name) < 10**18 for name in names):
        return [str(int(name)) for name in names]  # type: ignore[call-overload]
    for name in names:
        if not isinstance(name, str) or name != name.strip() or not name or not name.isprintable():
            raise ModelError(
                f"an edge list cannot give the name {name!r} back; it keeps whole numbers, or text without "
                "line ends and without blanks around it: write .json, or give other names with model.named(names)"
            )
    if all(WHOLE_NUMBER.fullmatch(str(name)) for name in names):
        raise ModelError(
            "the names are text but all read as numbers, and an edge list would give numbers back: "
            "write .json, or give numbers with model.named(map(int, model.names))"
        )
    return [_quoted_cell(str(name)) for name in names]


def _quoted_cell(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if re.search(r'[",#]', name) else name


def looks_like_csv(source: Source) -> bool:
    """Say whether the first line is a header, or two names and a weight."""
    line = next((text for text in StringIO(source.text) if text.lstrip()[:1] not in ("", "#")), "")
    cells = [cell.strip().strip('"') for cell in line.split(separator_of(line))]
    is_header = {"source", "target"} <= {cell.lower() for cell in cells}
    return is_header or (len(cells) == 3 and finite_number(cells[2]) is not None)


VARTYPE = re.compile(r"^[ \t\f]*#.*?vartype[:=][ \t]*([-_.a-zA-Z0-9]+)", re.MULTILINE)


def read_coo(path: PathOrSource) -> Ising:
    """Read the binary quadratic model of a COO file."""
    source = opened(path)
    is_binary = _is_binary(source)
    mentions, values = Lines.of(source).triples("u v bias", "a variable")
    names, pairs = numbered(mentions)
    with source.making_a_model():
        return energy_of_entries(is_binary, len(np.unique(pairs)), pairs, values, names)


def _is_binary(source: Source) -> bool:
    vartypes = set(VARTYPE.findall(source.text))
    if not vartypes:
        source.fail("there is no header '# vartype=SPIN' or '# vartype=BINARY'; add the right one as first line")
    if len(vartypes) > 1 or not vartypes <= {"SPIN", "BINARY"}:
        source.fail(f"the header says vartype {' and '.join(sorted(vartypes))}; it must be SPIN or BINARY")
    return vartypes == {"BINARY"}


def write_coo(model: Ising, path: PathName) -> None:
    """Write the energy of ``model``, minus its log-weight, with vartype SPIN; whole or not at all.

    Raises
    ------
    ModelError
        If the model has a constant, or names that are not whole numbers; the format has no place for these.
    """
    if model.constant:
        raise ModelError(f"the model has the constant {model.constant:.6g}, which a COO file cannot hold; write .json")
    labels = range(model.n) if model.names is None else model.names
    for label in labels:
        if not isinstance(label, int) or not 0 <= label < 10**18:
            raise ModelError(f"variables of a COO file are whole numbers from 0, not {label!r}; write .json")
    pairs, J = model.edges()
    lines = ["# vartype=SPIN"]
    # dimod reads no exponents and drops variables that are not listed, so all fields are written, with all digits.
    lines += [f"{u} {u} {_digits(-bias)}" for u, bias in zip(labels, model.field.tolist(), strict=True)]
    lines += [f"{labels[i]} {labels[j]} {_digits(-w)}" for (i, j), w in zip(pairs.tolist(), J.tolist(), strict=True)]
    save(path, ("\n".join(lines) + "\n").encode("ascii"))


def _digits(value: float) -> str:
    return np.format_float_positional(value + 0.0, trim="-")


def looks_like_coo(source: Source) -> bool:
    """Say whether a comment before the first line of numbers names the vartype."""
    return re.match(r"(?:[ \t\f]*(?:#.*)?\n)*?" + VARTYPE.pattern[1:], source.text) is not None


# A wrong number of nodes must not fill the memory.
MOST_NODES = 10**7


def read_maxcut(path: PathOrSource) -> Ising:
    """Read the graph of a max-cut instance."""
    source = opened(path)
    lines, n, pairs, weights = _read_entries(source)
    for line in np.flatnonzero(pairs[:, 0] == pairs[:, 1])[:1].tolist():
        lines.fail(
            line,
            f"an edge joins node {pairs[line, 0] + 1} to itself; no cut contains it. "
            "If the file is a quadratic 0/1 program and this is its diagonal, read it with format='qubo'",
        )
    with source.making_a_model():
        return Ising(None, symmetric(n, pairs, weights / -2.0) / 2.0, math.fsum((weights / 2.0).tolist()))


def _read_entries(source: Source) -> tuple[Lines, int, IntArray, FloatArray]:
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


def read_qubo(path: PathOrSource) -> Ising:
    """Read a quadratic 0/1 program, in either form."""
    source = opened(path)
    return _read_qbsolv(source) if _looks_like_qbsolv(source) else _read_biq_mac(source)


def _read_biq_mac(source: Source) -> Ising:
    _, n, pairs, values = _read_entries(source)
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


def _looks_like_qbsolv(source: Source) -> bool:
    """Say whether the first line that is not a comment is a program line."""
    first = first_words(source, 1, comment="c")
    return bool(first) and first[0][:2] == ["p", "qubo"]


def looks_like_qubo(source: Source) -> bool:
    """Say whether this is a program line, or ``n m`` and triples, some of them on the diagonal."""
    if _looks_like_qbsolv(source):
        return True
    return (
        looks_like_maxcut(source) and re.search(r"^[ \t]*(\d+)[ \t]+\1[ \t]+\S+[ \t]*$", source.text, re.M) is not None
    )
