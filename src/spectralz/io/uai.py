"""UAI files: models, evidence and answers of the UAI inference competitions.

A model is ``MARKOV`` or ``BAYES``, the number of variables, their numbers of states, the number of factors, the scope
of each, and the table of each, whose last variable changes fastest. Models with binary variables and factors of at most
sixteen can be read. State 0 is spin -1 and state 1 is spin +1. A factor's table is turned into logs and then into

    log t(x_i, x_j) = c + a x_i + b x_j + J x_i x_j,

four numbers for four entries, and likewise for more variables. So the conversion is exact and Z is that of the file:
c is added to the offset.

Zeros become constraints (:mod:`spectralz.model.from_tables`), and a constraint of up to sixteen variables is written as
a table of zeros and ones.

Answers: ``PR`` and then log10 of Z (the only place where this package does not use natural logarithms); ``MAR`` and
then the number of variables and, for each, its number of states and their probabilities.
"""

from __future__ import annotations

import bisect
import math
from itertools import accumulate
from typing import TYPE_CHECKING, NoReturn, TypeVar

import numpy as np

from spectralz.errors import ModelError
from spectralz.io.files import (
    PathName,
    PathOrSource,
    Source,
    finite_number,
    first_words,
    opened,
    quoted,
    save,
    whole_number,
)
from spectralz.model import FloatArray, Ising, Model, SpinArray
from spectralz.model.constraints import MOST_TABLE_SPINS
from spectralz.model.from_tables import Table, product_of_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from spectralz.model.constraints import Constraint


T = TypeVar("T")

# The largest exponent in one table entry, as exp(500) and exp(-500) are both ordinary numbers. A larger weight is
# written as several equal factors with the same product.
LARGEST_EXPONENT = 500.0
MOST_COPIES = 1000

_ENCODING = "write one binary variable for each state, and a factor that is zero unless exactly one of them is 1"


def read_uai(path: PathOrSource) -> Model:
    """Read a MARKOV or BAYES network with binary variables and factors of at most 16 of them.

    The model is an Ising if no term has more than two spins.
    """
    source = opened(path)
    n, tables = _network(source)
    with source.making_a_model():
        if not all(len(table.scope) <= 2 and all(table.numbers) for table in tables):
            return product_of_tables(n, tables).simplest()
        return _model_of(n, ((table.scope, [*map(math.log, table.numbers)]) for table in tables))


def _network(source: Source) -> tuple[int, list[Table]]:
    """Read the number of variables and the factors of a network with binary variables."""
    tokens = _Tokens(source)
    kind = tokens.word("the network type, MARKOV or BAYES")
    if kind.upper() not in ("MARKOV", "BAYES"):
        tokens.fail(f"the file begins with {quoted(kind)}; a UAI model begins with MARKOV or BAYES")
    n = tokens.count("the number of variables")
    for variable in range(n):
        states = tokens.count(f"the number of states of variable {variable}")
        if states != 2:
            way_out = _ENCODING if states > 2 else "leave the variable out"
            tokens.fail(
                f"variable {variable} has {states} states; only binary variables, with 2 states, can be read: {way_out}"
            )
    scopes = [_scope(tokens, factor, n) for factor in range(tokens.count("the number of factors"))]
    factors = [_factor(tokens, factor, scope) for factor, scope in enumerate(scopes)]
    tokens.end()
    return n, factors


def _scope(tokens: _Tokens, factor: int, n: int) -> list[int]:
    size = tokens.count(f"the number of variables of factor {factor}")
    if size > MOST_TABLE_SPINS:
        tokens.fail(
            f"factor {factor} has {size} variables; factors of at most {MOST_TABLE_SPINS} can be read: "
            "write the model with smaller factors, adding variables where needed"
        )
    scope = [tokens.count(f"variable {k + 1} of factor {factor}") for k in range(size)]
    for variable in scope:
        if variable >= n:
            tokens.fail(f"factor {factor} names variable {variable}; variables run from 0 to {n - 1}")
    for k, variable in enumerate(scope):
        if variable in scope[:k]:
            tokens.fail(f"factor {factor} names variable {variable} twice; a factor's variables must differ")
    return scope


def _factor(tokens: _Tokens, factor: int, scope: list[int]) -> Table:
    size = len(scope)
    entries = tokens.count(f"the table size of factor {factor}")
    if entries != 1 << size:
        tokens.fail(
            f"factor {factor} has a table of {entries} entries; with {size} binary variables it has {1 << size}"
        )
    numbers = []
    for k in range(entries):
        value = tokens.number(f"entry {k + 1} of the table of factor {factor}")
        if value < 0.0:
            tokens.fail(f"factor {factor} has the negative entry {value:g}; entries of a table are 0 or positive")
        numbers.append(value)
    return Table(scope, numbers)


def _model_of(n: int, factors: Iterable[tuple[Sequence[int], list[float]]]) -> Ising:
    """Return the model of factors, their scopes and log-tables, added up as field, edge weights and constant."""
    field = [0.0] * n
    weights: dict[tuple[int, int], float] = {}
    constants = []
    for scope, logs in factors:
        constants.append(_mean(logs) if scope else logs[0])
        if len(scope) == 1:
            minus, plus = logs
            field[scope[0]] += plus / 2.0 - minus / 2.0
        elif scope:
            i, j = scope
            l00, l01, l10, l11 = (value / 4.0 for value in logs)
            field[i] += (l10 - l00) + (l11 - l01)
            field[j] += (l01 - l00) + (l11 - l10)
            pair = (min(i, j), max(i, j))
            weights[pair] = weights.get(pair, 0.0) + ((l00 - l01) + (l11 - l10))
    return Ising.from_edges(n, list(weights), np.array(list(weights.values())), field, math.fsum(constants))


def _mean(logs: list[float]) -> float:
    """Return the constant of a table: the mean of its logs, or zero if they cancel within their precision.

    exp gives an entry to a unit in its last place: a relative error of 2^-52, and so 2^-52 in its log, which is rounded
    too. Fields and weights without a constant are written as tables of exp(t) and exp(-t): there the mean consists of
    these roundings only.
    """
    total = math.fsum(logs)
    known = math.fsum(2.0**-52 + math.ulp(value) for value in logs)
    return total / len(logs) if abs(total) > known else 0.0


def read_evidence(path: PathOrSource, n: int) -> dict[int, int]:
    """Read an evidence file of a model with ``n`` variables, as :meth:`Ising.condition` takes it.

    The file holds the number of observed variables, then each variable with its state. Older files put the number of
    samples (which must be one) before that.
    """
    tokens = _Tokens(opened(path))
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


def write_uai(model: Model, path: PathName) -> None:
    """Write ``model`` as a MARKOV network with the same Z, whole or not at all.

    Numbers are kept to a few units in the last place of 1; ``.npz`` keeps them to the last bit. The format has no place
    for names.
    """
    edges, J = model.edges()
    factors: list[tuple[list[int], list[float]]] = []
    for variable, theta in enumerate(model.field.tolist()):
        factors += [([variable], [-part, part]) for part in _parts(theta, f"the field of spin {variable}")]
    for (i, j), weight in zip(edges.tolist(), J.tolist(), strict=True):
        factors += [([i, j], [part, -part, -part, part]) for part in _parts(weight, f"the weight of edge {(i, j)}")]
    for scope, weight in model.higher.items():
        factors += [(list(scope), _table_of(scope, part)) for part in _parts(weight, f"the weight of term {scope}")]
    factors += [([], [part]) for part in _parts(model.constant, "the constant")]
    factors += [_zeros_of(constraint) for constraint in model.constraints]
    lines = ["MARKOV", str(model.n), " ".join(["2"] * model.n), str(len(factors))]
    lines += [" ".join(map(str, [len(scope), *scope])) for scope, _ in factors]
    for _, logs in factors:
        lines += ["", str(len(logs)), " " + " ".join(repr(math.exp(value)) for value in logs)]
    save(path, ("\n".join(lines) + "\n").encode("ascii"))


def _table_of(scope: Sequence[int], weight: float) -> list[float]:
    """Return the exponents of a term's table: the weight times the product of the spins."""
    _refuse_wide(scope, "term")
    logs = [weight]
    for _ in scope:
        logs = [-value for value in logs] + logs
    return logs


def _zeros_of(constraint: Constraint) -> tuple[list[int], list[float]]:
    """Return the spins of a constraint, and the logs of its table of zeros and ones."""
    _refuse_wide(constraint.scope, "constraint")
    return list(constraint.scope), np.where(constraint.tabulated().allowed, 0.0, -np.inf).ravel().tolist()


def _refuse_wide(scope: Sequence[int], what: str) -> None:
    if len(scope) > MOST_TABLE_SPINS:
        raise ModelError(
            f"the {what} of spins {tuple(scope)} has {len(scope)} spins; a UAI table is written for up to "
            f"{MOST_TABLE_SPINS}: write an .npz or a .json file instead"
        )


def _parts(value: float, name: str) -> list[float]:
    """Divide an exponent into equal parts that a table entry can hold; none if it is zero."""
    copies = math.ceil(abs(value) / LARGEST_EXPONENT)
    if copies > MOST_COPIES:
        raise ModelError(
            f"{name} is {value:.6g}; a UAI table holds exponents up to {LARGEST_EXPONENT:g}, "
            f"{MOST_COPIES} times over: write an .npz file instead"
        )
    return [value / copies] * copies if copies else []


def write_pr(log_z: float, path: PathName) -> None:
    """Write a ``PR`` answer: log10 of Z, from the natural logarithm."""
    save(path, f"PR\n{log_z / math.log(10.0)!r}\n".encode("ascii"))


def write_mar(probability: FloatArray, path: PathName, evidence: Mapping[int, int] | None = None) -> None:
    """Write a ``MAR`` answer: the probabilities of the states 0 and 1 of each variable of the file.

    Parameters
    ----------
    probability
        P(x_i = -1) and P(x_i = +1) of the free spins, in order, as in :class:`Marginals`.
    path
        The file to write.
    evidence
        The fixed spins, as returned by `read_evidence`; the answer lists them too.
    """
    fixed = evidence or {}
    certain = {-1: (1.0, 0.0), +1: (0.0, 1.0)}
    free = iter(np.asarray(probability, dtype=np.float64).tolist())
    n = len(probability) + len(fixed)
    words = [str(n)]
    for variable in range(n):
        zero, one = certain[fixed[variable]] if variable in fixed else next(free)
        words += ["2", f"{zero:.12g}", f"{one:.12g}"]
    save(path, ("MAR\n" + " ".join(words) + "\n").encode("ascii"))


def write_map(state: SpinArray, path: PathName) -> None:
    """Write a ``MAP`` answer: the number of variables, and the state of each, 0 for -1 and 1 for +1."""
    words = [str(len(state)), *("1" if spin > 0 else "0" for spin in state.tolist())]
    save(path, ("MAP\n" + " ".join(words) + "\n").encode("ascii"))


def read_map(path: PathOrSource, n: int) -> SpinArray:
    """Read a ``MAP`` answer about a model with ``n`` variables, as a state of -1 and +1."""
    tokens = _Tokens(opened(path))
    first = tokens.word("the word MAP")
    if first.upper() != "MAP":
        tokens.fail(f"{quoted(first)} stands where the word MAP should be; is this a MAP answer?")
    variables = tokens.count("the number of variables")
    if variables != n:
        tokens.fail(f"the answer is for {variables} variables; this model has {n}")
    states = [tokens.count("the state of a variable") for _ in range(n)]
    for variable, state in enumerate(states):
        if state not in (0, 1):
            tokens.fail(f"variable {variable} is in state {state}; its states are 0 and 1")
    return np.array([2 * state - 1 for state in states], dtype=np.int8)


class _Tokens:
    """The words of a file, one after the other, with their lines."""

    def __init__(self, source: Source) -> None:
        self._source = source
        # A comment is a line that begins with c; no word of the format does.
        lines = [[] if line.lstrip()[:1] == "c" else line.split() for line in source.text.split("\n")]
        self._words = [word for line in lines for word in line]
        self._line_ends = list(accumulate(len(line) for line in lines))
        self._next = 0

    def __len__(self) -> int:
        return len(self._words)

    def fail(self, message: str) -> NoReturn:
        """Raise a FormatError at the word read last."""
        self._source.fail(message, self.line)

    @property
    def line(self) -> int:
        """The line of the word read last."""
        line = bisect.bisect_right(self._line_ends, max(self._next - 1, 0)) + 1
        return min(line, max(len(self._line_ends), 1))

    def word(self, what: str) -> str:
        if self._next == len(self._words):
            self.fail(f"the file ends where {what} should be; is it truncated?")
        self._next += 1
        return self._words[self._next - 1]

    def count(self, what: str) -> int:
        return self._parsed(what, whole_number, "a whole number, 0 or more")

    def number(self, what: str) -> float:
        return self._parsed(what, finite_number, "a finite number")

    def _parsed(self, what: str, parse: Callable[[str], T | None], kind: str) -> T:
        word = self.word(what)
        value = parse(word)
        if value is None:
            self.fail(f"{quoted(word)} stands where {what} should be, {kind}")
        return value

    def end(self) -> None:
        if self._next < len(self._words):
            self._next += 1
            self.fail(
                f"{quoted(self._words[self._next - 1])} stands after the last table; is the number of factors right?"
            )


def looks_like_uai(source: Source) -> bool:
    """Say whether the first word that is not a comment is the type of a network."""
    first = first_words(source, 1, comment="c")
    return bool(first) and first[0][0].upper() in ("MARKOV", "BAYES")
