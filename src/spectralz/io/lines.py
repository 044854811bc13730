"""The lines of a text file that are not empty, and columns of numbers in them.

Whole columns are turned into numbers at once, so that a million lines take seconds; only if a column has an error is
it searched for the line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from typing import TYPE_CHECKING, NoReturn

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from spectralz.io.files import Source
    from spectralz.model import FloatArray, IntArray

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
