"""Files that commands write: refused before any work is done if they cannot be written, and never written in part."""

from __future__ import annotations

import csv
import io
import os
import re
import shlex
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from spectralz.cli.console import as_text, say, say_error, sentence_of
from spectralz.cli.helping import TYPED
from spectralz.errors import FormatError, SpectralzError
from spectralz.io.files import STANDARD, save, write_whole
from spectralz.show.canvas import FORMATS

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
