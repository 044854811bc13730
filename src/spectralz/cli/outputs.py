"""Files that commands write: refused before any work is done where they cannot be, written whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spectralz.cli.console import say
from spectralz.errors import FormatError
from spectralz.io.files import write_whole
from spectralz.show.plots import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["check_output", "check_outputs", "check_picture", "picture_format", "write_picture"]


def check_output(path: Path | None, inputs: Iterable[Path | None] = ()) -> None:
    """Refuse, before any work is done, an output that cannot be written or that would destroy an input."""
    if path is None:
        return
    for source in inputs:
        if source is not None and path.exists() and source.exists() and path.samefile(source):
            raise FormatError("this is also the input, which is never overwritten; give another name", path)
    if path.is_dir():
        raise FormatError("this is a folder; give the name of a file", path)
    if not path.parent.is_dir():
        raise FormatError(f"the folder {path.parent} does not exist; make it first", path)


def check_outputs(outputs: Mapping[str, Path | None], inputs: Iterable[Path | None]) -> None:
    """Check each output, and that no two are the same file."""
    flags: dict[Path, str] = {}
    for flag, path in outputs.items():
        check_output(path, inputs)
        if path is None:
            continue
        if path.resolve() in flags:
            raise FormatError(f"{flags[path.resolve()]} and {flag} name the same file; give each its own", path)
        flags[path.resolve()] = flag


def check_picture(path: Path | None) -> None:
    """Refuse a picture whose name has the suffix of no format."""
    if path is not None and picture_format(path) not in FORMATS:
        raise FormatError(f"the name has the suffix {path.suffix!r}; a picture is .png, .svg or .pdf", path)


def picture_format(path: Path) -> str:
    """Return the format that a picture's name asks for."""
    return path.suffix.lower().lstrip(".")


def write_picture(path: Path, picture: bytes) -> None:
    """Write a picture and say so."""
    write_whole(path, picture)
    say(f"wrote {path}")
