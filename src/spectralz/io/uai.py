"""UAI files: models, evidence and answers of the UAI inference competitions.

A model is ``MARKOV`` or ``BAYES``, the number of variables, their numbers of states, the number of factors, the scope
of each, and the table of each with its last variable running fastest. We read those with binary variables and factors
of at most two. State 0 is spin -1 and state 1 is spin +1. A factor's table is turned into logs and then into

    log t(x_i, x_j) = c + a x_i + b x_j + J x_i x_j,

four numbers for four entries, so that the conversion is exact and Z is that of the file: c goes to the offset.

Answers: ``PR`` and then log10 of Z (the one place where this package does not use natural logarithms); ``MAR`` and then
the number of variables and for each its number of states and their probabilities.
"""

from __future__ import annotations

import bisect
import math
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from spectralz.errors import FormatError, ModelError
from spectralz.io.files import write_whole
from spectralz.model import Ising

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from numpy.typing import NDArray

__all__ = ["read_evidence", "read_uai", "write_mar", "write_pr", "write_uai"]

# The largest exponent put into one table entry, as exp(500) and exp(-500) are both ordinary numbers; a larger weight is
# written as several equal factors, whose product is the same.
LARGEST_EXPONENT = 500.0
MOST_COPIES = 1000


def read_uai(path: str | PathLike[str]) -> Ising:
    """Read a MARKOV or BAYES network with binary variables and factors of at most two of them."""
    tokens = _Tokens(path)
    kind = tokens.word("the network type, MARKOV or BAYES")
    if kind.upper() not in ("MARKOV", "BAYES"):
        tokens.fail(f"the file begins with {kind!r}; a UAI model begins with MARKOV or BAYES")
    n = tokens.count("the number of variables")
    for variable in range(n):
        states = tokens.count(f"the number of states of variable {variable}")
        if states != 2:
            tokens.fail(f"variable {variable} has {states} states; only binary variables, with 2 states, can be read")
    scopes = [_scope(tokens, factor, n) for factor in range(tokens.count("the number of factors"))]
    sums = _Sums(n)
    for factor, scope in enumerate(scopes):
        sums.add(scope, _log_table(tokens, factor, len(scope)))
    tokens.end()
    return sums.model(path)


def _scope(tokens: _Tokens, factor: int, n: int) -> list[int]:
    size = tokens.count(f"the number of variables of factor {factor}")
    if size > 2:
        tokens.fail(
            f"factor {factor} has {size} variables; only factors of at most two can be read: "
            "write the model with pairwise factors, adding variables where needed"
        )
    scope = [tokens.count(f"variable {k + 1} of factor {factor}") for k in range(size)]
    for variable in scope:
        if variable >= n:
            tokens.fail(f"factor {factor} names variable {variable}; variables run from 0 to {n - 1}")
    if size == 2 and scope[0] == scope[1]:
        tokens.fail(f"factor {factor} names variable {scope[0]} twice; a factor's variables must differ")
    return scope


def _log_table(tokens: _Tokens, factor: int, size: int) -> list[float]:
    entries = tokens.count(f"the table size of factor {factor}")
    if entries != 1 << size:
        tokens.fail(
            f"factor {factor} has a table of {entries} entries; with {size} binary variables it has {1 << size}"
        )
    logs = []
    for k in range(entries):
        value = tokens.number(f"entry {k + 1} of the table of factor {factor}")
        if value == 0.0:
            tokens.fail(
                f"factor {factor} has a zero in its table; a state of probability zero has no finite weight here: "
                "put a small positive number in its place"
            )
        if value < 0.0:
            tokens.fail(f"factor {factor} has the negative entry {value:g}; entries of a table are positive")
        logs.append(math.log(value))
    return logs


class _Sums:
    """The factors read so far, added up as field, edge weights and constant."""

    def __init__(self, n: int) -> None:
        self.field = [0.0] * n
        self.weight: dict[tuple[int, int], float] = {}
        self.constants: list[float] = []

    def add(self, scope: list[int], logs: list[float]) -> None:
        if not scope:
            self.constants.append(logs[0])
        elif len(scope) == 1:
            minus, plus = logs
            self.constants.append(minus / 2.0 + plus / 2.0)
            self.field[scope[0]] += plus / 2.0 - minus / 2.0
        else:
            i, j = scope
            l00, l01, l10, l11 = (value / 4.0 for value in logs)
            self.constants.append(math.fsum((l00, l01, l10, l11)))
            self.field[i] += (l10 - l00) + (l11 - l01)
            self.field[j] += (l01 - l00) + (l11 - l10)
            pair = (min(i, j), max(i, j))
            self.weight[pair] = self.weight.get(pair, 0.0) + ((l00 - l01) + (l11 - l10))

    def model(self, path: str | PathLike[str]) -> Ising:
        weights = np.array(list(self.weight.values()))
        try:
            return Ising.from_edges(len(self.field), list(self.weight), weights, self.field, math.fsum(self.constants))
        except ModelError as error:
            raise FormatError(str(error), path) from None


def read_evidence(path: str | PathLike[str], n: int) -> dict[int, int]:
    """Read an evidence file of a model with ``n`` variables, as :meth:`Ising.condition` takes it.

    The file holds the number of observed variables and then each with its state; older files put the number of samples
    (which must be one) before that.
    """
    tokens = _Tokens(path)
    numbers = [tokens.count("a variable or its state") for _ in range(len(tokens))]
    if not numbers:
        tokens.fail("the file is empty; evidence begins with the number of observed variables, 0 for none")
    if len(numbers) == 1 + 2 * numbers[0]:
        pairs = numbers[1:]
    elif len(numbers) >= 2 and numbers[0] == 1 and len(numbers) == 2 + 2 * numbers[1]:
        pairs = numbers[2:]
    else:
        tokens.fail(
            f"the file holds {len(numbers)} numbers; {numbers[0]} observed variables take "
            f"{1 + 2 * numbers[0]}: the count, then each variable with its state"
        )
    evidence: dict[int, int] = {}
    for variable, state in zip(pairs[::2], pairs[1::2], strict=True):
        if variable >= n:
            tokens.fail(f"variable {variable} is observed; this model's variables run from 0 to {n - 1}")
        if state not in (0, 1):
            tokens.fail(f"variable {variable} is observed in state {state}; its states are 0 and 1")
        if variable in evidence:
            tokens.fail(f"variable {variable} is observed twice; name each variable once")
        evidence[variable] = 2 * state - 1
    return evidence


def write_uai(model: Ising, path: str | PathLike[str]) -> None:
    """Write ``model`` as a MARKOV network with the same Z, whole or not at all.

    Numbers survive to a few units in the last place of 1; ``.npz`` keeps them to the last bit.
    """
    edges, J = model.edges()
    factors: list[tuple[list[int], list[float]]] = []
    for variable, theta in enumerate(model.field.tolist()):
        factors += [([variable], [-part, part]) for part in _parts(theta, f"the field of spin {variable}")]
    for (i, j), weight in zip(edges.tolist(), J.tolist(), strict=True):
        factors += [([i, j], [part, -part, -part, part]) for part in _parts(weight, f"the weight of edge {(i, j)}")]
    factors += [([], [part]) for part in _parts(model.constant, "the constant")]
    lines = ["MARKOV", str(model.n), " ".join(["2"] * model.n), str(len(factors))]
    lines += [" ".join(map(str, [len(scope), *scope])) for scope, _ in factors]
    for _, logs in factors:
        lines += ["", str(len(logs)), " " + " ".join(repr(math.exp(value)) for value in logs)]
    write_whole(path, ("\n".join(lines) + "\n").encode("ascii"))


def _parts(value: float, name: str) -> list[float]:
    """Divide an exponent into equal parts that a table entry can hold; none if it is zero."""
    copies = math.ceil(abs(value) / LARGEST_EXPONENT)
    if copies > MOST_COPIES:
        raise ModelError(
            f"{name} is {value:.6g}; a UAI table holds exponents up to {LARGEST_EXPONENT:g}, "
            f"{MOST_COPIES} times over: write an .npz file instead"
        )
    return [value / copies] * copies if copies else []


def write_pr(log_z: float, path: str | PathLike[str]) -> None:
    """Write a ``PR`` answer: log10 of Z, from the natural logarithm that is given."""
    write_whole(path, f"PR\n{log_z / math.log(10.0)!r}\n".encode("ascii"))


def write_mar(
    probability: NDArray[np.float64], path: str | PathLike[str], evidence: Mapping[int, int] | None = None
) -> None:
    """Write a ``MAR`` answer: for each variable of the file the probabilities of its states 0 and 1.

    Parameters
    ----------
    probability
        P(x_i = -1) and P(x_i = +1) of the free spins, in order, as :class:`Marginals` has them.
    path
        The file to write.
    evidence
        The fixed spins, as `read_evidence` gives them, which the answer lists too.
    """
    fixed = evidence or {}
    certain = {-1: (1.0, 0.0), +1: (0.0, 1.0)}
    free = iter(np.asarray(probability, dtype=np.float64).tolist())
    n = len(probability) + len(fixed)
    words = [str(n)]
    for variable in range(n):
        zero, one = certain[fixed[variable]] if variable in fixed else next(free)
        words += ["2", f"{zero:.12g}", f"{one:.12g}"]
    write_whole(path, ("MAR\n" + " ".join(words) + "\n").encode("ascii"))


class _Tokens:
    """The words of a file, one after the other, knowing their lines."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = path
        content = Path(path).read_bytes()
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            raise FormatError("this is not a text file", path) from None
        # A comment is a line that begins with c; no word of the format does.
        lines = [[] if line.lstrip()[:1] == "c" else line.split() for line in text.splitlines()]
        self._words = [word for line in lines for word in line]
        self._line_ends = list(accumulate(len(line) for line in lines))
        self._next = 0

    def __len__(self) -> int:
        return len(self._words)

    def fail(self, message: str) -> NoReturn:
        """Raise a FormatError at the word read last."""
        line = bisect.bisect_right(self._line_ends, max(self._next - 1, 0)) + 1
        raise FormatError(message, self._path, min(line, max(len(self._line_ends), 1)))

    def word(self, what: str) -> str:
        if self._next == len(self._words):
            self.fail(f"the file ends where {what} should stand; is it truncated?")
        self._next += 1
        return self._words[self._next - 1]

    def count(self, what: str) -> int:
        word = self.word(what)
        if not (word.isascii() and word.isdigit() and len(word) <= 18):
            self.fail(f"{word[:40]!r} stands where {what} should be, a whole number from 0 on")
        return int(word)

    def number(self, what: str) -> float:
        word = self.word(what)
        try:
            value = float(word) if word.isascii() and "_" not in word else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self.fail(f"{word[:40]!r} stands where {what} should be, a finite number")
        return value

    def end(self) -> None:
        if self._next < len(self._words):
            self._next += 1
            self.fail(
                f"{self._words[self._next - 1][:40]!r} stands after the last table; is the number of factors right?"
            )
