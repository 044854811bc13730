"""Read bytes from files and standard input, decompressed; write them whole or not at all; lines and columns of text.

Whole columns are turned into numbers at once, so that a million lines take seconds; only if a column has an error is
it searched for the line.
"""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import math
import os
import stat
import sys
import tempfile
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from spectralz._support.options import bytes_in_words
from spectralz.errors import FormatError, ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from spectralz.model import FloatArray, IntArray

PathName = str | os.PathLike[str]

STANDARD = "-"
"""The name that stands for standard input and standard output."""

GZIP_MAGIC = b"\x1f\x8b"

# Compressed content may unpack to this many bytes, or to this many times its own size if that is more. Numbers that
# differ compress to a tenth; zeros, and files made to fill the memory, compress to a thousandth.
UNPACKED_IN_ANY_CASE = 4 * 2**30
MOST_TIMES_PACKED = 100
CHUNK = 2**20


@dataclass(frozen=True)
class Source:
    """The content of a file, decompressed, and the file's name for messages."""

    path: PathName
    content: bytes

    @cached_property
    def text(self) -> str:
        """The content as text, without a byte order mark and with plain line ends."""
        try:
            text = self.content.decode("utf-8-sig")
        except UnicodeDecodeError:
            if self.content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                self.fail("this text is encoded in UTF-16; save it in UTF-8")
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
        """Raise a FormatError that names the file and, if there is one, the line."""
        raise FormatError(message, "standard input" if os.fspath(self.path) == STANDARD else self.path, line)

    @contextmanager
    def making_a_model(self) -> Iterator[None]:
        """Turn an error about the model's numbers into one about the file that they come from."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # sums that are too large are refused by their size
                yield
        except ModelError as error:
            self.fail(str(error))
        except OverflowError:
            self.fail("its numbers are so large that their sum overflows; scale them down")


PathOrSource = PathName | Source


def opened(path: PathOrSource) -> Source:
    """Read a file, or standard input for ``-``, and decompress gzip; a source is returned as it is."""
    if isinstance(path, Source):
        return path
    if "\0" in str(path):
        raise FileNotFoundError(errno.ENOENT, "no file can have a null character in its name", repr(path))
    try:
        source = Source(path, _content(path))
    except OSError as error:  # a file that cannot be read to its end is an error that names no file
        name = "standard input" if os.fspath(path) == STANDARD else os.fspath(path)
        raise OSError(error.errno, error.strerror or str(error), error.filename or name) from error
    content = source.content if source.content[:2] != GZIP_MAGIC else _unpacked(source)
    return Source(path, b"" if content.isspace() else content)  # a gigabyte of blanks takes readers minutes


def _content(path: PathName) -> bytes:
    if os.fspath(path) == STANDARD:
        if sys.stdin is None:
            Source(path, b"").fail("it is closed; give the name of a file")
        return sys.stdin.buffer.read()
    mode = os.stat(path).st_mode
    if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not os.path.samefile(path, os.devnull)):
        Source(path, b"").fail("this is a device, which may have no end; give the name of a file, or - for a pipe")
    return Path(path).read_bytes()


def _unpacked(source: Source) -> bytes:
    """Decompress gzip content, but stop if it is far larger than files usually are."""
    limit = most_unpacked(len(source.content))
    parts, size = [], 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(source.content)) as file:
            while part := file.read(CHUNK):
                parts.append(part)
                size += len(part)
                if size > limit:
                    refuse_unpacked(source, size, "unpack it with gunzip first")
    except (EOFError, zlib.error, gzip.BadGzipFile):
        source.fail("this gzip file is damaged or cut off; fetch or write it again")
    return b"".join(parts)


def most_unpacked(packed: int) -> int:
    """Return the most bytes to which a file of this many bytes may unpack."""
    return max(UNPACKED_IN_ANY_CASE, MOST_TIMES_PACKED * packed)


def refuse_unpacked(source: Source, size: int, way_out: str) -> NoReturn:
    """Refuse a file that unpacks to at least this many bytes."""
    source.fail(
        f"this file of {bytes_in_words(len(source.content))} unpacks to {bytes_in_words(size)} or more, beyond "
        f"{bytes_in_words(most_unpacked(len(source.content)))}; if this is intended, {way_out}"
    )


def save(path: PathName, content: bytes) -> None:
    """Write a file whole or not at all, compressed by gzip if its name ends in ``.gz``; ``-`` is standard output."""
    if os.fspath(path) == STANDARD:
        if sys.stdout is None:
            raise FormatError("it is closed; give the name of a file", "standard output")
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    # Without the time of writing, the same model gives the same bytes.
    write_whole(path, gzip.compress(content, mtime=0) if is_packed(path) else content)


def is_packed(path: PathName) -> bool:
    """Say whether a name is that of a gzip file."""
    return os.fspath(path).lower().endswith(".gz")


def write_whole(path: PathName, content: bytes) -> None:
    """Write ``content`` beside ``path`` and move it there in one step, so that no reader ever sees a part of it.

    If ``path`` is not a plain file, such as ``/dev/stdout``, it is written to directly.
    """
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(content)
        else:
            _replace(target.resolve(), content)  # a link is followed, not replaced
    except OSError as error:  # for example a full disk, an error that names no file
        raise OSError(error.errno, error.strerror or str(error), os.fspath(path)) from error


def _replace(target: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}."[:60])
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


SEPARATORS = "\t;,"


@dataclass(frozen=True)
class Lines:
    """The lines of a source that are neither empty nor comments, and their numbers."""

    source: Source
    numbers: Sequence[int]
    texts: Sequence[str]

    @classmethod
    def of(cls, source: Source, comment: str = "#") -> Lines:
        """Return the lines of a source without empty lines and comments."""
        texts = source.text.split("\n")
        kept = [number for number, text in enumerate(texts) if text.lstrip()[:1] not in ("", comment)]
        return cls(source, [number + 1 for number in kept], [texts[number] for number in kept])

    def __len__(self) -> int:
        return len(self.texts)

    def after(self, count: int) -> Lines:
        """Return the lines without the first ones."""
        return Lines(self.source, self.numbers[count:], self.texts[count:])

    def fail(self, line: int, message: str) -> NoReturn:
        """Raise a FormatError that names a line."""
        self.source.fail(message, self.numbers[line])

    def triples(self, form: str, node: str, first: int = 0, last: int | None = None) -> tuple[IntArray, FloatArray]:
        """Return pairs of whole numbers, each from ``first`` to ``last``, minus ``first``, and the number of each pair.

        In messages ``form`` names the three words of a line, such as ``u v bias``, and ``node`` what is paired.
        """
        for line, text in enumerate(self.texts):
            if len(text.split()) != 3:
                self.fail(line, f"{quoted(text.strip())} stands where a line of the form {form!r} should be")
        words = " ".join(self.texts).split()
        ends = [self.whole_numbers(words[end::3], node, first, last) for end in (0, 1)]
        return np.column_stack(ends), self.finite_numbers(words[2::3], f"a {form.split()[2]}")

    def whole_numbers(self, words: list[str], what: str, first: int = 0, last: int | None = None) -> IntArray:
        """Return a column of whole numbers, each from ``first`` to ``last``, minus ``first``."""
        joined = "".join(words)
        if joined.isdigit() and joined.isascii() and max(map(len, words)) <= 18:
            values = np.array(list(map(int, words)), dtype=np.int64)
            if values.min() >= first and (last is None or values.max() <= last):
                return values - first
        span = f", {first} or more" if last is None else f" from {first} to {last}"
        for line, word in enumerate(words):
            value = whole_number(word)
            if value is None or value < first or (last is not None and value > last):
                self.fail(line, f"{quoted(word)} stands where {what} should be, a whole number{span}")
        return np.zeros(0, dtype=np.int64)  # there are none

    def finite_numbers(self, words: list[str], what: str) -> FloatArray:
        """Return a column of finite numbers."""
        try:
            values = np.array(list(map(float, words)), dtype=np.float64)
        except ValueError:
            values = np.array([math.nan])
        joined = "".join(words)
        if joined.isascii() and "_" not in joined and np.all(np.isfinite(values)):
            return values
        for line, word in enumerate(words):
            if finite_number(word) is None:
                self.fail(line, f"{quoted(word)} stands where {what} should be, a finite number such as -0.5")
        return values

    def refuse_repeated_pairs(self, pairs: IntArray, n: int) -> None:
        """Refuse the first line whose pair stands on a line before it, in either order."""
        self.refuse_repeated(pair_keys(pairs, n), lambda line: f"the pair {' '.join(self.texts[line].split()[:2])}")

    def refuse_repeated(self, keys: IntArray, what: Callable[[int], str]) -> None:
        """Refuse the first line that has the same key as a line before it."""
        order = np.argsort(keys, kind="stable")
        again = np.sort(order[1:][np.diff(keys[order]) == 0])
        if len(again):
            line = int(again[0])
            before = self.numbers[int(np.flatnonzero(keys == keys[line])[0])]
            self.fail(line, f"{what(line)} is listed again, after line {before}; list each once, in either order")


def pair_keys(pairs: IntArray, n: int) -> IntArray:
    """Return one number per pair of n spins, the same in either order."""
    keys: IntArray = pairs.min(axis=1) * max(n, 1) + pairs.max(axis=1)
    return keys


def separator_of(line: str) -> str | None:
    """Return what separates the cells of a line: a tab, a semicolon, a comma, or None for blanks."""
    return next((mark for mark in SEPARATORS if mark in line), None)


def first_words(source: Source, count: int, comment: str = "#") -> list[list[str]]:
    """Return the words of the first lines only, to detect the format of a file."""
    split = (text.split() for text in StringIO(source.text))
    return list(islice((words for words in split if words and words[0][0] != comment), count))


def whole_number(word: str) -> int | None:
    """Return the whole number, 0 or more, that a word stands for, or None."""
    return int(word) if word.isdigit() and word.isascii() and len(word) <= 18 else None


def finite_number(word: str) -> float | None:
    """Return the finite number that a word stands for, or None."""
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) and word.isascii() and "_" not in word else None


def quoted(text: str) -> str:
    """Return the beginning of a text in quotes, for messages."""
    return repr(text if len(text) <= 40 else text[:37] + "...")
