"""Tables of data: one row per line, cells separated by commas, semicolons, tabs or blanks, with or without a header.

The first line is a header if one of its cells is neither a number nor missing, or if it numbers three columns or more
from 0 on, in any order. Empty cells, NA and NaN are missing, and become NaN. Lines that begin with ``#`` are comments.
Arrays of numpy (``.npy``) are read too.
"""

from __future__ import annotations

import csv
import io
import math
import warnings
from typing import TYPE_CHECKING

import numpy as np

from spectralz.io.files import Lines, PathOrSource, Source, finite_number, opened, quoted, separator_of, whole_number
from spectralz.io.npz import disagreement, read_header

if TYPE_CHECKING:
    from spectralz.model import FloatArray

# Cells of missing values, in small letters.
MISSING = frozenset({"", "na", "n/a", "nan", "<na>", "null", "none", ".", "?"})
NUMPY_MAGIC = b"\x93NUMPY"


def read_table(path: PathOrSource, *, header: bool | None = None) -> tuple[FloatArray, list[str] | None]:
    r"""Read rows of numbers, and the names of their columns if there is a ``header``; None to see whether there is.

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
    if is_header(rows[0]) if header is None else header:
        if "" in rows[0]:
            lines.fail(0, "a cell of the header is empty; name every column, and write a table without its index")
        names, rows, lines = rows[0], rows[1:], lines.after(1)
        if not rows:
            source.fail("there is a header and no rows below it")
    width = len(names or rows[0])
    for k, row in enumerate(rows):
        if len(row) != width:
            lines.fail(k, f"the line has {len(row)} cells and the first one {width}; every row needs all of them")
    try:
        numbers = [["nan" if is_missing(cell) else cell for cell in row] for row in rows]
        return np.array(numbers, dtype=np.float64), names
    except ValueError:
        known = ((k, cell) for k, row in enumerate(rows) for cell in row if not is_missing(cell))
        k, cell = next((k, cell) for k, cell in known if finite_number(cell) is None)
        lines.fail(k, f"{quoted(cell)} is not a number; a cell is 0 or 1, -1 or +1, or empty or NA if it is missing")


def is_header(cells: list[str]) -> bool:
    """Say whether a first line has the names of columns, or numbers them.

    Examples
    --------
    >>> is_header(["rain", "1"]), is_header(["2", "0", "1"]), is_header(["0", "1"]), is_header(["1", "-1", "NA"])
    (True, True, False, False)
    """
    if any(finite_number(cell) is None and not is_missing(cell) for cell in cells):
        return True
    return len(cells) > 2 and {whole_number(cell) for cell in cells} == set(range(len(cells)))


def is_missing(cell: str) -> bool:
    """Say whether a cell of a table says that its value is missing."""
    return cell.lower() in MISSING


def _cells(lines: Lines) -> list[list[str]]:
    separator = separator_of(lines.texts[0])
    if separator is None:
        return [text.split() for text in lines.texts]
    reader = csv.reader(lines.texts, delimiter=separator)
    try:
        return [[cell.strip() for cell in row] for row in reader]
    except csv.Error as error:  # for example a cell that is longer than 131,072 characters
        lines.fail(reader.line_num - 1, f"the line cannot be split into cells: {error}; a cell is a number, or a name")


def _array(source: Source) -> FloatArray:
    """Read an array of numpy, if its header is sound and announces no more than the file holds."""
    file = io.BytesIO(source.content)
    try:
        shape, dtype = read_header(file)
    except Exception:  # numpy parses a header as Python, so that damage shows as almost any error
        source.fail("this array cannot be read, its header is damaged; save it again by numpy.save")
    if len(shape) != 2 or dtype.kind not in "biuf":
        source.fail(f"the array has shape {shape} and type {dtype}; it must be rows x variables of numbers")
    numbers = len(source.content) - file.tell()
    if min(shape) < 0 or math.prod(shape) * dtype.itemsize > numbers:
        source.fail(f"the array {disagreement(shape, dtype, numbers)}; is it damaged? Save it again by numpy.save")
    file.seek(0)
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", UserWarning)  # a header written by Python 2 is accepted
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False), dtype=np.float64)
