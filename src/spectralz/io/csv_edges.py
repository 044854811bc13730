"""Edge lists: one edge per line, two names and a weight, separated by commas, semicolons, tabs or blanks.

    source,target,weight
    a,b,0.5
    a,,-1.0

The weight of an edge is J, counted once: it adds +J x_i x_j to the log-weight. A line without target is a field, and a
line without both is the constant. The header may have these columns in any order; other columns are ignored. Without
a header there are three columns in this order. Lines that begin with ``#`` are comments.

If all names are whole numbers, spins are in the order of the numbers, and 0 to n - 1 are no names but the spins
themselves. Other names are text, in the order of their first appearance.
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
from spectralz.io.files import PathName, PathOrSource, Source, opened, save
from spectralz.io.labels import numbered, symmetric
from spectralz.io.lines import Lines, finite_number, pair_keys, quoted, separator_of
from spectralz.model import IntArray, Ising

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
