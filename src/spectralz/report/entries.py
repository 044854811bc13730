"""The entries of a folder: one per sweep, with its rows, its configuration and its figure, if it is one."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from spectralz.errors import FormatError
from spectralz.sweeps import read_rows, summarise
from spectralz.sweeps.store import ROWS, SWEEP

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from spectralz.report.figure import Figure
    from spectralz.sweeps import Row, Summary, Sweep


@dataclass(frozen=True)
class Entry:
    """One sweep of the folder: its rows, its configuration, and its figure of the paper, if any."""

    name: str
    anchor: str
    rows: list[Row]
    sweep: Mapping[str, Any]
    figure: Figure | None

    @property
    def title(self) -> str:
        """The heading."""
        return f"Sweep {self.name}" if self.figure is None else self.figure.title

    @property
    def notes(self) -> str:
        """The choices of the figure that the paper does not print."""
        return "" if self.figure is None else self.figure.notes

    @property
    def axis(self) -> str:
        """The name of the quantity along the axis."""
        return "file" if self.files else str(self.sweep.get("axis", "x"))

    @property
    def files(self) -> list[str]:
        """The model files that were read, without their folders."""
        return [re.split(r"[/\\]", str(path))[-1] for path in self.sweep.get("files", ())]

    @property
    def contestants(self) -> list[Mapping[str, Any]]:
        """The methods in the configuration."""
        return list(self.sweep.get("contestants", ()))

    @cached_property
    def summaries(self) -> list[Summary]:
        """The means of the rows."""
        return summarise(self.rows)

    @property
    def rows_wanted(self) -> int:
        """How many rows the finished sweep has."""
        values = self.sweep.get("instances") or self.sweep.get("values", ())
        models = len(self.files) or len(values) * int(self.sweep.get("repeats", 1))
        return models * len(self.contestants)

    def place(self, x: float) -> str:
        """Return the label at ``x``: a number, or the name of a file."""
        return self.files[int(x) - 1] if 0 < x <= len(self.files) else f"{x:g}"

    def is_setting(self, sweep: Sweep) -> bool:
        """Return whether the stored sweep is this one, apart from files and the edge convention, which have flags."""
        apart = {"name", "files", "edge_convention"}
        if self.files:
            apart |= {"generator", "parameters", "axis", "values", "instances", "repeats", "seed"}
        wanted = json.loads(json.dumps(sweep.to_dict()))
        return bool(self.sweep) and all(self.sweep.get(key) == wanted[key] for key in wanted.keys() - apart)

    @property
    def is_quick(self) -> bool:
        """Whether this is a figure at its quick setting."""
        return self.figure is not None and self.is_setting(self.figure.quick) and not self.is_setting(self.figure.full)

    @property
    def is_full(self) -> bool:
        """Whether this is a figure at its full setting."""
        return self.figure is not None and self.is_setting(self.figure.full)


def read_folder(folder: Path, figures: Mapping[str, Figure]) -> list[Entry]:
    """Read all sweeps in a folder, figures first and in their order."""
    if not folder.is_dir():
        raise FormatError("there is no such folder; give the one that `spectralz paper` or `sweep` wrote into", folder)
    entries: list[Entry] = []
    for place in _places(folder, list(figures)):
        name = _name(folder, place)
        rows, sweep = _read_rows(place / ROWS), _read_sweep(place / SWEEP)
        figure = figures.get(place.name)
        if figure is not None and sweep.get("files") and not figure.full.files:
            figure = figure.of_files()
        entries.append(Entry(name, f"{_slug(name)}-{len(entries) + 1}", rows, sweep, figure))
    if not any(entry.rows for entry in entries):
        raise FormatError(
            f"no {ROWS} with rows here or one folder below; run `spectralz paper NAME --out {folder}` first", folder
        )
    return entries


def _places(folder: Path, order: list[str]) -> list[Path]:
    """Return the folders with rows: those named in ``order``, then others, then the folder itself."""
    places = [place for place in folder.iterdir() if (place / ROWS).is_file() and not place.name.startswith(".")]
    places.sort(key=lambda place: (order.index(place.name) if place.name in order else len(order), place.name))
    if (folder / ROWS).is_file():  # the folder of a single sweep
        places.append(folder)
    return places


def _name(folder: Path, place: Path) -> str:
    name = place.resolve().name or "sweep"
    taken = place == folder and (name == "rows" or (folder / name / ROWS).is_file())
    return f"{name}-sweep" if taken else name  # rows.csv itself must never be overwritten


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower() or "sweep"


def _read_rows(path: Path) -> list[Row]:
    advice = "delete the file, or the line, and run the sweep again: it adds what is missing"
    try:
        rows = read_rows(path)
    except FormatError as error:  # it names the file and the line
        raise FormatError(f"{error}; {advice}") from error
    except (OSError, ValueError, csv.Error) as error:
        raise FormatError(f"this is not a table of rows ({error}); {advice}", path) from error
    for line, row in enumerate(rows, start=2):
        if not row.label or row.x is None:
            raise FormatError(f"the row has no label or no x; {advice}", path, line)
    return rows


def _read_sweep(path: Path) -> Mapping[str, Any]:
    """Read the configuration without checks: a report of old rows must not need old methods."""
    if not path.exists():
        return {}
    try:
        sweep = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(sweep, dict):
            raise ValueError(f"it holds a {type(sweep).__name__}")
    except (OSError, ValueError) as error:
        raise FormatError(
            f"this is not a sweep in JSON ({error}); remove its folder and run the sweep again", path
        ) from error
    return sweep
