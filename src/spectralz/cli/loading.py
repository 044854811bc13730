"""The model that a command is about: a file, evidence about its spins, and an inverse temperature."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from spectralz.cli.console import as_text
from spectralz.errors import FormatError, ModelError, OptionError
from spectralz.inference.rows import names_of_columns
from spectralz.io import by_name, read_evidence, read_given
from spectralz.io.csv_table import read_table
from spectralz.io.files import STANDARD, whole_number
from spectralz.model import FloatArray, Model
from spectralz.model.columns import places_of_labels
from spectralz.model.values import LOW

# Up to this many given spins are named in a line of text; otherwise only their number is printed.
MOST_NAMED = 6


@dataclass(frozen=True)
class Problem:
    """A model from a file, and its given spins.

    Attributes
    ----------
    path
        Where the model came from.
    model
        The whole model, with every log-weight multiplied by beta.
    fixed
        The given spins by their positions, -1 or +1 each.
    """

    path: Path
    model: Model
    fixed: dict[int, int]

    @property
    def given(self) -> dict[Hashable, int] | None:
        """Given spins in the model's own names, as the verbs take them; None if there are none."""
        return by_name(self.model, self.fixed) or None

    @property
    def source(self) -> str:
        """The file as text."""
        return "standard input" if str(self.path) == STANDARD else as_text(self.path)

    @property
    def title(self) -> str:
        """The file and its number of spins, as a heading."""
        name = self.source if str(self.path) == STANDARD else as_text(self.path.name)
        return f"{name}: {self.model.n} spins{self._given_in_words}"

    @property
    def in_words(self) -> str:
        """The model without its file."""
        return f"{self.model!r}{self._given_in_words}"

    def about(self) -> dict[str, Any]:
        """Return what every JSON object says about its model."""
        about: dict[str, Any] = {"file": str(self.path), "n": self.model.n}
        if self.fixed:
            about["free"] = self.model.n - len(self.fixed)
            about["given"] = {name_in_json(self.model, i): value for i, value in self.fixed.items()}
        return about

    @property
    def _given_in_words(self) -> str:
        if not self.fixed:
            return ""
        if len(self.fixed) > MOST_NAMED:
            return f", {len(self.fixed)} of them given"
        return ", given " + ", ".join(f"{self.model.label(i)} = {value:+d}" for i, value in self.fixed.items())


def name_in_json(model: Model, spin: int) -> str | int:
    """Return the name of a spin in JSON, as text unless it is a number; without names, its position."""
    name = spin if model.names is None else model.names[spin]
    return name if isinstance(name, int) else str(name)


def load(
    path: Path,
    evidence: Path | None = None,
    given: Sequence[str] | None = None,
    beta: float = 1.0,
    format: str | None = None,
) -> Problem:
    """Read a model and evidence about its spins, from a UAI evidence file, from ``NAME=VALUE``, or both."""
    if not math.isfinite(beta):
        raise OptionError(f"--beta is {beta}; it must be a finite number")
    if str(path) == str(evidence) == STANDARD:
        raise OptionError("model and evidence cannot both come from standard input; name a file for one of them")

    def known(model: Model) -> dict[int, int]:
        fixed = {} if evidence is None else dict(read_evidence(evidence, model.n))
        for text in given or ():
            spin, value = parse_given(text, model)
            if spin in fixed:
                raise OptionError(f"{model.label(spin)} is given twice; give each spin once")
            fixed[spin] = value
        return fixed

    return Problem(path, *read_given(path, known, format=format, beta=beta))


def parse_given(text: str, model: Model) -> tuple[int, int]:
    """Return the position of a spin and its value, from text such as ``a=+1``; the last ``=`` counts.

    Examples
    --------
    >>> import spectralz as sz
    >>> parse_given("a=b=-1", sz.Ising([0.0, 0.0], [[0, 1], [1, 0]], names=["a", "a=b"]))
    (1, -1)
    """
    name, equals, value = (part.strip() for part in text.rpartition("="))
    low = str(LOW[model.values])
    if not equals or not name or value not in ("+1", "1", "-1", low):
        also = "" if low == "-1" else " (or NAME=1 and NAME=0)"
        raise OptionError(f"--given {text!r} is not a spin and its value; write NAME=+1 or NAME=-1{also}")
    return _position(name, model), 1 if int(value) == 1 else -1


def _position(name: str, model: Model) -> int:
    """Find a spin by the text of its name; names that are not text, such as numbers, are matched as printed."""
    places = [i for i, known in enumerate(model.names or ()) if str(known) == name]
    if len(places) > 1:
        kinds = " and ".join(type(model.names[i]).__name__ for i in places) if model.names else ""
        raise OptionError(f"--given names {name!r}, which could be {len(places)} spins ({kinds}); rename one of them")
    if places:
        return places[0]
    position = whole_number(name) if model.names is None else None
    return model.index(name if position is None else position)


def refuse_both_from_standard_input(file: Path, data: Path) -> None:
    """Refuse a model and a table that both come from standard input."""
    if str(file) == str(data) == STANDARD:
        raise OptionError("model and table cannot both come from standard input; name a file for one of them")


def load_rows(path: Path, model: Model, header: bool | None = None) -> tuple[FloatArray, list[int]]:
    """Return the table with one column per variable, NaN where there is none, and where its own columns are."""
    X, names = read_table(path, header=header)
    if names is None:
        if X.shape[1] != model.n:
            raise FormatError(f"rows have {X.shape[1]} cells, and the model {model.n} variables; add a header", path)
        return X, list(range(model.n))
    try:
        columns = places_of_labels(names, names_of_columns(model, names), "rows without a header").tolist()
    except ModelError as error:
        raise FormatError(str(error), path) from None
    whole = np.full((len(X), model.n), np.nan)
    whole[:, columns] = X
    return whole, columns


def values_in(X: FloatArray) -> Literal["pm1", "01"]:
    """Return which two values a table has: any -1 means -1 and +1."""
    return "pm1" if np.any(X == -1.0) else "01"
