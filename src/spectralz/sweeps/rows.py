"""Rows of a sweep: what one run gave, as CSV, with means over repetitions, and their files in a folder."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import FormatError, OptionError
from spectralz.io.files import finite_number, quoted, write_whole
from spectralz.result import Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from spectralz.sweeps.sweep import Sweep


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


ROWS, SWEEP = "rows.csv", "sweep.json"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a second runner out of the folder; the lock ends with the process, in whatever way it ends."""
    try:
        import fcntl
    except ImportError:  # not a Unix
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise OptionError(
            f"another process is running a sweep in {folder}; wait for it, or use another folder"
        ) from None
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        os.close(handle)


def open_rows(sweep: Sweep, folder: Path) -> RowFile:
    """Return the rows of the sweep in this folder, ready to continue, or refuse a folder with another sweep."""
    configuration, path = folder / SWEEP, folder / ROWS
    for name in (SWEEP, ROWS):
        for left in folder.glob(f".{name}.*"):  # leftovers of a killed write_whole
            left.unlink()
    wanted = json.loads(json.dumps(sweep.to_dict()))
    if configuration.exists():
        _refuse_other(_saved(configuration), wanted, folder)
    elif path.exists():
        raise OptionError(f"{path} has rows, but there is no {SWEEP}; remove its folder or use another")
    else:
        write_whole(configuration, (json.dumps(wanted, indent=2) + "\n").encode())
    labels = [contestant.label for contestant in sweep.contestants]
    return RowFile(path, labels, [task.instance for task in sweep.tasks()])


def _saved(configuration: Path) -> dict[str, Any]:
    try:
        saved = json.loads(configuration.read_bytes())
    except ValueError:
        saved = None
    if not isinstance(saved, dict):
        raise OptionError(f"{configuration} is not the configuration of a sweep; remove its folder or use another")
    return saved


def _refuse_other(saved: dict[str, Any], wanted: dict[str, Any], folder: Path) -> None:
    for key in {**saved, **wanted}:
        if saved.get(key) != wanted.get(key):
            raise OptionError(
                f"{folder} holds a sweep with {key} = {saved.get(key)!r}, and this one has {wanted.get(key)!r}; "
                "use another folder for it"
            )


def _row(line: bytes) -> Row | None:
    """Return the row of a line, or None if the line is damaged."""
    try:
        row = row_of(cells_of(line.decode()))
    except (ValueError, csv.Error):
        return None
    return row if is_sound(row) else None


class RowFile:
    """The file of rows: its complete tasks, and appending to it."""

    def __init__(self, path: Path, labels: list[str], instances: list[str]) -> None:
        self.path = path
        self.labels = labels
        self.instances = instances
        content = path.read_bytes() if path.exists() else b""
        self._lines = self._whole_tasks(content)
        kept = self._content(self._lines)
        if kept != content:
            write_whole(path, kept)

    @property
    def done(self) -> Collection[str]:
        """The instances whose rows are complete."""
        return self._lines.keys()

    def append(self, rows: list[Row]) -> None:
        """Append the rows of a task at once and flush them to the disk; rows of a task already done are dropped."""
        instance = rows[0].instance
        if instance in self._lines:
            return
        content = to_csv(rows).encode()
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            if os.write(handle, content) < len(content):
                raise OSError(f"{self.path}: the disk took only a part of the rows; make room and run it again")
            os.fsync(handle)
        finally:
            os.close(handle)
        self._lines[instance] = content

    def settle(self) -> None:
        """Put the rows into the order of the tasks, if all are there."""
        if len(self._lines) == len(self.instances) and list(self._lines) != self.instances:
            self._lines = {instance: self._lines[instance] for instance in self.instances}
            write_whole(self.path, self._content(self._lines))

    def _content(self, lines: dict[str, bytes]) -> bytes:
        return header().encode() + b"".join(lines.values())

    def _whole_tasks(self, content: bytes) -> dict[str, bytes]:
        """Return the lines of each task that has all its rows, once and in order."""
        first = header().encode()
        if first.startswith(content):
            return {}
        if not content.startswith(first):
            raise OptionError(f"{self.path} has columns other than those of this version; use another folder")
        lines: dict[str, list[bytes]] = {}
        labels: dict[str, list[str]] = {}
        for line in content[len(first) :].split(b"\n")[:-1]:  # text after the last line break is torn
            row = _row(line)
            if row is not None:
                lines.setdefault(row.instance, []).append(line + b"\n")
                labels.setdefault(row.instance, []).append(row.label)
        known = set(self.instances)
        return {name: b"".join(lines[name]) for name in lines if labels[name] == self.labels and name in known}
