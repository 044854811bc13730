"""The rows of a sweep: their content, how to read them, and their means.

``rows.csv`` has one row per model and method; ``truth``, ``error`` and the like are empty if there is none.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import FormatError
from spectralz.io.lines import finite_number, quoted
from spectralz.result import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Row:
    """Hold the result of one method on one model.

    Attributes
    ----------
    instance, x, repeat, seed
        The model, as in its :class:`~spectralz.sweeps.Task`.
    n, edges
        Its size.
    label, method, options
        The contestant's label, the method's name and all its options as JSON.
    log_z, truth, error
        The answer, the exact one, and their signed difference.
    kind, status, converged, lower, upper, std_error
        Those of the estimate.
    seconds
        Wall-clock time of the run, without compilation.
    peak_mib
        Peak memory of the worker's process up to the end of the run.
    failure
        Why there is no answer, if there is none.
    versions
        The versions of spectralz, numpy and Python.
    """

    instance: str
    x: float
    repeat: int
    seed: int
    n: int | None
    edges: int | None
    label: str
    method: str
    options: str
    log_z: float | None
    truth: float | None
    error: float | None
    kind: str
    status: str
    converged: bool | None
    lower: float | None
    upper: float | None
    std_error: float | None
    seconds: float | None
    peak_mib: float | None
    failure: str
    versions: str


COLUMNS = tuple(column.name for column in fields(Row))
_INTEGERS = {"repeat", "seed", "n", "edges"}
_NEEDED = {"x", "repeat", "seed"}
_WHOLE = re.compile(r"-?[0-9]{1,300}")
_TRUTHS = {"": None, "True": True, "False": False}
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBERS = {"x", "log_z", "truth", "error", "lower", "upper", "std_error", "seconds", "peak_mib"}


def header() -> str:
    """Return the first line of a file of rows."""
    return csv_line(COLUMNS)


def to_csv(rows: Iterable[Row]) -> str:
    """Return rows as lines of CSV, one line per row; numbers keep all their digits, and None is empty."""
    return "".join(csv_line([getattr(row, name) for name in COLUMNS]) for row in rows)


def csv_line(cells: Sequence[Any]) -> str:
    """Return cells as a line of CSV; text has no line breaks, so that every row is one line, and is no formula."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerow(
        [_escaped(cell) if isinstance(cell, str) else cell for cell in cells]
    )
    return file.getvalue()


def _escaped(text: str) -> str:
    """Return text that spreadsheets do not compute: an apostrophe comes before what would be a formula.

    Examples
    --------
    >>> _escaped("=1+1"), _escaped("a=b"), _plain(_escaped("'=1+1"))
    ("'=1+1", 'a=b', "'=1+1")
    """
    text = re.sub(r"[\r\n]+", " ", text)
    return f"'{text}" if _FORMULA.match(text) else text


def _plain(text: str) -> str:
    """Return the text that was escaped."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def read_rows(path: Path) -> list[Row]:
    """Read the rows of a file; a last line that is still being written is left out.

    Raises
    ------
    FormatError
        If the columns are not those of :class:`Row`, or a line is not one row.
    """
    try:
        first, *lines = path.read_bytes().decode("utf-8").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError:
        raise FormatError("this is not text; remove it and run the sweep again", path) from None
    if first != header().strip():
        raise FormatError(f"its columns are {first[:80]!r}; rows of a sweep have {header().strip()!r}", path)
    rows = []
    for number, line in enumerate(lines, start=2):
        cells = cells_of(line)
        if number == len(lines) + 1 and len(cells) < len(COLUMNS):
            break
        try:
            rows.append(row_of(cells))
        except ValueError as error:
            raise FormatError(f"this is not a row of a sweep: {error}", path, number) from None
    return rows


def row_of(cells: Sequence[str]) -> Row:
    """Return the row of a line's cells, or raise a ValueError that says which of them is none of a row."""
    if len(cells) != len(COLUMNS):
        raise ValueError(f"it has {len(cells)} cells and not {len(COLUMNS)}")
    return Row(**{name: _value(name, cell) for name, cell in zip(COLUMNS, cells, strict=True)})


def is_sound(row: Row) -> bool:
    """Say whether the numbers of a row belong together, as those of any row that was written do."""
    error = None if row.log_z is None or row.truth is None else row.log_z - row.truth
    is_bracket = row.lower is None or row.upper is None or row.lower <= row.upper + 1e-9 * abs(row.upper)
    is_answer = (row.log_z is None) == (row.kind == "") == (row.converged is None) == (row.seconds is None)
    return row.error == error and is_bracket and is_answer


def cells_of(line: str) -> list[str]:
    """Return the cells of a line of any length: options may hold one number per spin."""
    limit = csv.field_size_limit()
    csv.field_size_limit(max(limit, len(line)))
    try:
        return next(csv.reader([line]), [])
    finally:
        csv.field_size_limit(limit)


def _value(name: str, text: str) -> Any:
    """Return the value of a cell."""
    if name in _INTEGERS | _NUMBERS:
        if not text and name not in _NEEDED:
            return None
        value = finite_number(text) if name in _NUMBERS else int(text) if _WHOLE.fullmatch(text) else None
        if value is None:
            raise ValueError(f"{name} is {quoted(text)}, which is not {'a' if name in _NUMBERS else 'a whole'} number")
        return value
    if name == "converged":
        if text not in _TRUTHS:
            raise ValueError(f"converged is {quoted(text)}, which is neither True nor False")
        return _TRUTHS[text]
    if name == "kind" and text not in ("", *Kind):
        raise ValueError(f"kind is {quoted(text)}, which is none")
    return _plain(text)


@dataclass(frozen=True)
class Summary:
    """Hold the means of one method at one value of the axis.

    Attributes
    ----------
    count, failures
        Number of answers, and of runs without an answer.
    mean, spread, standard_error
        Mean of |error|, its standard deviation, and the standard error of the mean; NaN without truth.
    signed
        Mean of the signed error.
    seconds, seconds_spread
        Mean time of a run, and its standard deviation.
    """

    label: str
    x: float
    count: int
    failures: int
    mean: float
    spread: float
    standard_error: float
    signed: float
    seconds: float
    seconds_spread: float


def summarise(rows: Iterable[Row]) -> list[Summary]:
    """Return the means, by label in order of appearance and then by x."""
    groups: dict[tuple[str, float], list[Row]] = {}
    labels: dict[str, None] = {}
    for row in rows:
        labels.setdefault(row.label)
        groups.setdefault((row.label, row.x), []).append(row)
    order = sorted(groups, key=lambda key: (list(labels).index(key[0]), key[1]))
    return [_summary(label, x, groups[label, x]) for label, x in order]


def _summary(label: str, x: float, rows: list[Row]) -> Summary:
    errors = np.array([row.error for row in rows if row.error is not None], dtype=np.float64)
    seconds = np.array([row.seconds for row in rows if row.seconds is not None], dtype=np.float64)
    size = np.abs(errors)
    answers = [row for row in rows if row.log_z is not None]
    spread = float(size.std(ddof=1)) if len(size) > 1 else 0.0
    return Summary(
        label=label,
        x=x,
        count=len(answers),
        failures=len(rows) - len(answers),
        mean=float(size.mean()) if len(size) else float("nan"),
        spread=spread if len(size) else float("nan"),
        standard_error=spread / len(size) ** 0.5 if len(size) else float("nan"),
        signed=float(errors.mean()) if len(errors) else float("nan"),
        seconds=float(seconds.mean()) if len(seconds) else float("nan"),
        seconds_spread=float(seconds.std(ddof=1)) if len(seconds) > 1 else 0.0,
    )
