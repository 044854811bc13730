"""Bytes from files and standard input, unpacked, and back: whole or not at all."""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from spectralz.errors import FormatError, ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["STANDARD", "PathOrSource", "Source", "is_packed", "opened", "save", "write_whole"]

STANDARD = "-"
"""The name that stands for standard input and standard output."""

GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class Source:
    """What a file holds, unpacked, and the file's name for messages."""

    path: str | os.PathLike[str]
    content: bytes

    @cached_property
    def text(self) -> str:
        """The content as text, without a byte order mark and with plain line ends."""
        try:
            text = self.content.decode("utf-8-sig")
        except UnicodeDecodeError:
            self.fail("this is not a text file")
        return text.replace("\r\n", "\n").replace("\r", "\n")

    @cached_property
    def is_text(self) -> bool:
        """Whether the content can be read as text."""
        try:
            return "\0" not in self.text
        except FormatError:
            return False

    def fail(self, message: str, line: int | None = None) -> NoReturn:
        """Raise a FormatError that names the file and, where there is one, the line."""
        raise FormatError(message, "standard input" if os.fspath(self.path) == STANDARD else self.path, line)

    @contextmanager
    def making_a_model(self) -> Iterator[None]:
        """Turn a complaint about the model's numbers into one about the file that they come from."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # what is too large is refused by its size
                yield
        except ModelError as error:
            self.fail(str(error))
        except OverflowError:
            self.fail("its numbers are so large that their sum overflows; scale them down")


PathOrSource = str | os.PathLike[str] | Source


def opened(path: PathOrSource) -> Source:
    """Read a file, or standard input for ``-``; what gzip has packed is unpacked. A source stays as it is."""
    if isinstance(path, Source):
        return path
    content = sys.stdin.buffer.read() if os.fspath(path) == STANDARD else Path(path).read_bytes()
    if content[:2] != GZIP_MAGIC:
        return Source(path, content)
    try:
        return Source(path, gzip.decompress(content))
    except (EOFError, zlib.error, gzip.BadGzipFile):
        Source(path, content).fail("this gzip file is damaged or cut off; fetch or write it again")


def save(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file whole or not at all, packed by gzip if its name ends in ``.gz``; ``-`` is standard output."""
    if os.fspath(path) == STANDARD:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    # Without the time of writing, the same model gives the same bytes.
    write_whole(path, gzip.compress(content, mtime=0) if is_packed(path) else content)


def is_packed(path: str | os.PathLike[str]) -> bool:
    """Say whether a name is that of a gzip file."""
    return os.fspath(path).lower().endswith(".gz")


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write ``content`` beside ``path`` and move it there in one step, so that no reader ever sees a part of it.

    What is not a plain file, such as ``/dev/stdout``, is written to directly.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    target = target.resolve()  # a link is followed, not replaced
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, target.stat().st_mode if target.exists() else 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
