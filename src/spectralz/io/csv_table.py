"""Tables of data: one row per line, cells separated by commas, semicolons, tabs or blanks, with or without a header.

The first line is a header if one of its cells is not a number. Lines that begin with ``#`` are comments. Arrays of
numpy (``.npy``) are read too.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import numpy as np

from spectralz.io.files import PathOrSource, Source, opened
from spectralz.io.lines import Lines, finite_number, quoted, separator_of

if TYPE_CHECKING:
    from spectralz.model import FloatArray

NUMPY_MAGIC = b"\x93NUMPY"


def read_table(path: PathOrSource) -> tuple[FloatArray, list[str] | None]:
    r"""Read rows of numbers, and the names of their columns if there is a header.

    Examples
    --------
    >>> from spectralz.io.files import Source
    >>> X, names = read_table(Source("data.csv", b"rain,wet\n0,1\n1,1\n"))
    >>> X.tolist(), names
    ([[0.0, 1.0], [1.0, 1.0]], ['rain', 'wet'])
    """
    source = opened(path)
    if source.content.startswith(NUMPY_MAGIC):
        return _array(source), None
    lines = Lines.of(source)
    if not len(lines):
        source.fail("the file is empty; a table has one row per line, with 0 and 1 or -1 and +1")
    rows = _cells(lines)
    names = None
    if any(finite_number(cell) is None for cell in rows[0]):
        names, rows, lines = rows[0], rows[1:], lines.after(1)
        if not rows:
            source.fail("there is a header and no rows below it")
    width = len(names or rows[0])
    for k, row in enumerate(rows):
        if len(row) != width:
            lines.fail(k, f"the line has {len(row)} cells and the first one {width}; every row needs all of them")
    try:
        return np.array(rows, dtype=np.float64), names
    except ValueError:
        k, cell = next((k, cell) for k, row in enumerate(rows) for cell in row if finite_number(cell) is None)
        missing = "a cell is empty" if not cell else f"{quoted(cell)} is not a number"
        lines.fail(k, f"{missing}; a fit needs every value, 0 and 1 or -1 and +1")


def _cells(lines: Lines) -> list[list[str]]:
    separator = separator_of(lines.texts[0])
    if separator is None:
        return [text.split() for text in lines.texts]
    return [[cell.strip() for cell in row] for row in csv.reader(lines.texts, delimiter=separator)]


def _array(source: Source) -> FloatArray:
    try:
        array = np.load(io.BytesIO(source.content), allow_pickle=False)
    except (ValueError, EOFError, OSError):
        source.fail("this array cannot be read; it must be an array of numbers, saved by numpy.save")
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        source.fail(f"the array has shape {array.shape} and type {array.dtype}; it must be rows x variables of numbers")
    return np.asarray(array, dtype=np.float64)
