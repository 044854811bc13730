"""The folder of a sweep: ``sweep.json`` is the configuration, ``rows.csv`` has the results; one writer at a time.

All rows of a model are appended in one write and flushed to the disk before the next. Torn or incomplete rows are
dropped when the sweep continues, and their model is run again; so are rows with a corrupt cell. Once all models are
done, the rows are in the order of the tasks, so that equal sweeps have equal files except for times, memory and
versions.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
from typing import TYPE_CHECKING, Any

from spectralz.errors import OptionError
from spectralz.io.files import write_whole
from spectralz.sweeps.rows import cells_of, header, is_sound, row_of, to_csv

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from spectralz.sweeps.rows import Row
    from spectralz.sweeps.sweep import Sweep

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
