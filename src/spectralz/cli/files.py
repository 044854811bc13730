"""The files of commands: the model that a command is about, read with what is given of its spins, and what it writes.

Outputs are refused before any work is done if they cannot be written, and never written in part.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
import shlex
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

from spectralz.cli.console import as_text, say, say_error, sentence_of
from spectralz.cli.helping import TYPED
from spectralz.errors import FormatError, ModelError, OptionError, SpectralzError
from spectralz.inference.rows import names_of_columns
from spectralz.io import by_name, read_evidence, read_given
from spectralz.io.csv_table import read_table
from spectralz.io.files import STANDARD, save, whole_number, write_whole
from spectralz.model import FloatArray, Model
from spectralz.model.columns import places_of_labels
from spectralz.model.values import LOW
from spectralz.show.canvas import FORMATS

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


STATES = (".npy", ".csv", ".npy.gz", ".csv.gz")
# The suffixes that an option takes: a browser would not show a page that has another one.
PICTURE = tuple(f".{name}" for name in FORMATS), "a picture is .png, .svg or .pdf"
SUFFIXES = {
    "--network": PICTURE,
    "--plot": PICTURE,
    "--html": ((".html", ".htm"), "a page is .html"),
}


def check_output(path: Path | None, inputs: Iterable[Path | None] = ()) -> None:
    """Refuse, before any work is done, an output that cannot be written or that would destroy an input."""
    if path is None:
        return
    if str(path) == STANDARD:
        raise FormatError("standard output is for the answer; give the name of a file", path)
    for source in inputs:
        if source is not None and path.exists() and source.exists() and path.samefile(source):
            raise FormatError("this is also the input, which is never overwritten; give another name", path)
    if path.is_dir():
        raise FormatError("this is a folder; give the name of a file", path)
    if not path.parent.is_dir():
        raise FormatError(f"the folder {path.parent} does not exist; make it first", path)
    place = path if path.exists() and not path.is_file() else path.parent  # files are replaced, devices are written to
    if not os.access(place, os.W_OK):
        raise FormatError("this cannot be written to; choose another place, or ask for permission", place)


def check_outputs(outputs: Mapping[str, Path | None], inputs: Iterable[Path | None]) -> None:
    """Check each output, by the option that names it, and that no two are the same file."""
    flags: dict[Path, str] = {}
    for flag, path in outputs.items():
        check_output(path, inputs)
        if path is None:
            continue
        if path.resolve() in flags:
            raise FormatError(f"{flags[path.resolve()]} and {flag} name the same file; give each its own", path)
        flags[path.resolve()] = flag
    for flag, (suffixes, words) in SUFFIXES.items():
        output = outputs.get(flag)
        if output is not None and output.suffix.lower() not in suffixes:
            raise FormatError(f"the name has the suffix {output.suffix!r}; {words}", output)


def check_states(path: Path) -> None:
    """Refuse a file for states whose suffix is not that of a known format."""
    if not path.name.lower().endswith(STATES):
        raise FormatError(
            f"the name has the suffix {path.suffix!r}; states are written to .npy or .csv, and .gz of either", path
        )


def write_all(*outputs: tuple[Path | None, Callable[[Path], None]]) -> None:
    """Write each output that has a path; if one cannot be written, write the others and then raise its error."""
    failures: list[Exception] = []
    for path, write in outputs:
        try:
            if path is not None:
                write(path)
        except (SpectralzError, OSError, MemoryError) as error:
            failures.append(error)
    for failure in failures[:-1]:
        say_error(sentence_of(failure))
    if failures:
        raise failures[-1]


def write_picture(draw: Callable[[str], bytes], path: Path) -> None:
    """Draw a picture in the format that its name asks for, write it, and say so."""
    write_whole(path, draw(path.suffix.lower().lstrip(".")))
    say(f"wrote {as_text(path)}")


def command_as_typed(ctx: typer.Context) -> str:
    """Return the command line for a page: quoted for a shell, and without the folders of this machine.

    Examples
    --------
    >>> class Typed:
    ...     meta = {TYPED: ["spectralz", "solve", "/home/me/my models/a.uai", "--html=/tmp/a.html", "-s", "seed=2"]}
    >>> print(command_as_typed(Typed()))
    spectralz solve a.uai --html=a.html -s seed=2
    """
    return shlex.join(_without_folders(as_text(word)) for word in ctx.meta.get(TYPED, ()))


def _without_folders(word: str) -> str:
    """Shorten a word of a command line, if it is an absolute path or an option with one, to the file's name."""
    found = re.fullmatch(r"(--[\w-]+=|-\w=?)?((?:[A-Za-z]:)?[/\\].*)", word, flags=re.DOTALL)
    return word if found is None else (found[1] or "") + re.split(r"[/\\]", found[2].rstrip("/\\"))[-1]


def write_page(page: str, path: Path) -> None:
    """Write an HTML page and say so."""
    write_whole(path, page.encode("utf-8"))
    say(f"wrote {as_text(path)}")


def write_states(states: NDArray[Any], names: Sequence[Hashable] | None, path: Path) -> None:
    """Write states or other numbers, one row each; a table begins with a line of the spins' names, if they have any."""
    buffer = io.BytesIO()
    if path.name.lower().removesuffix(".gz").endswith(".npy"):
        np.save(buffer, states)
    else:
        if names is not None:
            line = io.StringIO()
            csv.writer(line, lineterminator="\n").writerow(map(str, names))
            buffer.write(line.getvalue().encode("utf-8"))
        np.savetxt(buffer, states, fmt="%.9g", delimiter=",")
    save(path, buffer.getvalue())
