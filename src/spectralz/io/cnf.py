"""DIMACS CNF: clauses, parities, and the weights of the model counting competitions.

    c a comment
    p cnf 3 3
    1 -2 0
    2 3 0
    x1 2 -3 0
    c p weight 1 0.3 0
    c p weight -1 7/10 0

``p cnf`` has the numbers of variables and clauses. A clause is a list of literals that ends with 0, on one or several
lines: a variable, or minus it where it is to be false. A line that begins with ``x`` (CryptoMiniSat) says that an odd
number of its literals is true. Variable v is the spin with the name v, +1 where it is true.

``c p weight`` has the weight of a literal, a decimal number or a fraction. If only one literal of a variable has a
weight W, the other has 1 - W; without both, each has 1. Counters differ here, and the competition advises to write
both. The weight of a state is the product of its literals' weights; a literal of weight 0 is excluded.

Projections (``c p show``, ``c ind``) are refused: they count states of some of the variables.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from spectralz.errors import ModelError
from spectralz.io.files import PathName, PathOrSource, Source, first_words, opened, quoted, save, whole_number
from spectralz.model import Ising
from spectralz.model.constraints import Clause, Constraint, Constraints, Parity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spectralz.model import Model

# A wrong number of variables must not fill the memory.
MOST_VARIABLES = 10**7
NUMBER = re.compile(r"\+?(\d{1,1000}/\d{1,1000}|(\d{1,1000}\.?\d{0,1000}|\.\d{1,1000})([eE][+-]?\d{1,4})?)", re.ASCII)
LITERAL = re.compile(r"-?\d{1,18}", re.ASCII)
HEAD = "p cnf VARIABLES CLAUSES"

Weights = dict[int, tuple[Fraction, Fraction]]


class Formula(NamedTuple):
    """What a file says: the number of variables, constraints by spin index, and weights by variable.

    Weights are those of false and true; variables without any are left out.
    """

    source: Source
    n: int
    constraints: list[Constraint]
    weights: Weights


def read_cnf(path: PathOrSource) -> Ising:
    """Read clauses, parities and weights as a model of constraints and fields."""
    formula = read_formula(path)
    field, constants, fixed = np.zeros(formula.n), [], list[Constraint]()
    for variable, (low, up) in formula.weights.items():
        fixed += [Clause((variable - 1,), (sign,)) for sign, w in ((1, low), (-1, up)) if not w]
        logs = [math.log(w.numerator) - math.log(w.denominator) for w in (low or up, up or low) if w] or [0.0]
        constants.append((logs[0] + logs[-1]) / 2.0)
        field[variable - 1] = (logs[-1] - logs[0]) / 2.0
    with formula.source.making_a_model():
        model = Ising(field, offset=math.fsum(constants), names=range(1, formula.n + 1))
        return model._changed(values="01", constraints=Constraints.of([*formula.constraints, *fixed]))


def read_weights(path: PathOrSource) -> Weights:
    """Return the exact weights of a file: for each variable that has any, those of false and of true.

    They are what ``weights`` of :func:`spectralz.count` takes.
    """
    return read_formula(path).weights


def read_formula(path: PathOrSource) -> Formula:
    """Read what a file says."""
    source = opened(path)
    rows = list(_rows(source))
    head = next((row for row in rows if not row.is_comment), None)
    if head is None:
        source.fail(f"there is no line {HEAD!r}; is this a CNF file?")
    n, announced = _head(head)
    constraints, clause = list[Constraint](), list[int]()
    weights: WeightsOfLiterals = {}
    begun, found = head, 0
    for row in rows:
        if row.is_comment:
            _take_statement(row, n, weights)
        elif row.words[0] == "p":
            if row is not head:
                row.fail(f"a second line of the form {HEAD!r}; the first is line {head.line}")
        elif row.words[0][0] == "x":
            if clause:
                row.fail("a parity stands in the middle of a clause; is the clause's last 0 missing?")
            constraints.append(_parity(row, n))
            found += 1
        else:
            for literal in row.literals(row.words, n):
                begun = begun if clause else row
                if literal:
                    clause.append(literal)
                    continue
                constraints += _clause(clause)
                found += 1
                clause = []
    if clause:
        begun.fail("the clause that begins here does not end with 0; is the file truncated?")
    if found != announced:
        head.fail(f"the file announces {announced} clauses and has {found}; is it truncated?")
    return Formula(source, n, constraints, _pairs(weights))


class _Row(NamedTuple):
    """A line that is not empty, as words."""

    source: Source
    line: int
    words: list[str]

    @property
    def is_comment(self) -> bool:
        return self.words[0][0] == "c"

    def fail(self, message: str) -> NoReturn:
        self.source.fail(message, self.line)

    def literals(self, words: list[str], n: int) -> list[int]:
        """Return words as literals, 0 among them."""
        for word in words:
            if not LITERAL.fullmatch(word) or abs(int(word)) > n:
                self.fail(f"{quoted(word)} stands where a literal should be: a variable from 1 to {n}, minus one, or 0")
        return [int(word) for word in words]


WeightsOfLiterals = dict[int, tuple[Fraction, _Row]]


def _rows(source: Source) -> Iterator[_Row]:
    for number, text in enumerate(source.text.split("\n"), 1):
        if text.strip() == "%":  # the end of SATLIB's files, after which a 0 follows
            return
        if words := text.split():
            yield _Row(source, number, words)


def _head(row: _Row) -> tuple[int, int]:
    """Return the numbers of variables and clauses."""
    numbers = [whole_number(word) for word in row.words[2:]]
    if row.words[:2] != ["p", "cnf"] or len(numbers) != 2 or None in numbers:
        row.fail(f"{quoted(' '.join(row.words))} stands where {HEAD!r} should be")
    n, clauses = (int(number or 0) for number in numbers)
    if n > MOST_VARIABLES:
        row.fail(f"the file announces {n} variables; up to {MOST_VARIABLES} can be read")
    return n, clauses


def _clause(literals: list[int]) -> list[Constraint]:
    """Return a clause with each literal once; nothing if it always holds."""
    signs = {abs(literal): 1 if literal > 0 else -1 for literal in sorted(set(literals), key=abs)}
    if any(-literal in literals for literal in literals):
        return []
    return [Clause(tuple(variable - 1 for variable in signs), tuple(signs.values()))]


def _parity(row: _Row, n: int) -> Constraint:
    """Return the constraint that an odd number of literals is true; a variable that stands there twice cancels."""
    first = row.words[0][1:]
    *literals, last = row.literals([first, *row.words[1:]] if first else row.words[1:], n) or [1]
    if last or 0 in literals:
        row.fail("a line that begins with x is one parity that ends with 0, such as 'x1 2 -3 0'")
    times = Counter(map(abs, literals))
    scope = tuple(sorted(variable - 1 for variable, count in times.items() if count % 2))
    # The product of spins is -1 for each that is false; a minus sign and the word "odd" turn it.
    is_turned = (len(scope) + 1 + sum(literal < 0 for literal in literals)) % 2
    return Parity(scope, -1 if is_turned else 1)


def _take_statement(row: _Row, n: int, weights: WeightsOfLiterals) -> None:
    """Take a weight from a comment; refuse what would change the meaning of a count."""
    match row.words:
        case ["c", "p", "show", *_] | ["c", "ind", *_]:
            row.fail(
                "this line asks for the states of some of the variables (projected counting), which is not supported; "
                "delete it to count the states of all"
            )
        case ["c", "p", "weight", *rest]:
            if len(rest) != 3 or rest[2] != "0" or not NUMBER.fullmatch(rest[1]):
                row.fail(
                    f"{quoted(' '.join(row.words))} stands where 'c p weight LITERAL WEIGHT 0' should be; a weight "
                    "is 0 or more, such as 0.3 or 1/3"
                )
            (literal,) = row.literals(rest[:1], n)
            if not literal or literal in weights:
                row.fail(f"literal {literal} has a second weight" if literal else "the literal 0 has a weight")
            try:
                weights[literal] = Fraction(rest[1]), row
            except ZeroDivisionError:
                row.fail(f"the weight {rest[1]} divides by zero")


def _pairs(weights: WeightsOfLiterals) -> Weights:
    """Return the weights of false and true of each variable that has any."""
    for literal, (weight, row) in weights.items():
        if weight > 1 and -literal not in weights:
            row.fail(
                f"literal {literal} has the weight {row.words[-2]} and {-literal} has none, which stands for 1 minus "
                "that; write both"
            )
    whole = {literal: weight for literal, (weight, _) in weights.items()}
    whole = {-literal: 1 - weight for literal, weight in whole.items()} | whole
    return {variable: (whole[-variable], whole[variable]) for variable in sorted(whole) if variable > 0}


def write_cnf(model: Model, path: PathName) -> None:
    """Write the constraints of a model without weights, whole or not at all.

    Raises
    ------
    ModelError
        If the model has weights, or constraints that are neither clauses nor parities.
    """
    if model.field.any() or model.edges()[1].any() or model.higher.number or model.constant:
        raise ModelError("a CNF file is written for constraints alone, and this model has weights; write .json")
    lines = [f"p cnf {model.n} {len(model.constraints)}"]
    for constraint in model.constraints:
        variables = [i + 1 for i in constraint.scope]
        if isinstance(constraint, Clause):
            lines.append(
                " ".join(str(v * sign) for v, sign in zip([*variables, 0], [*constraint.wanted, 1], strict=True))
            )
        elif isinstance(constraint, Parity):
            # An odd number of literals is to be true: if need be, the first one is turned.
            is_turned = (constraint.product < 0) != (len(variables) % 2 == 0)
            variables[0] *= -1 if is_turned else 1
            lines.append("x" + " ".join(map(str, [*variables, 0])))
        else:
            raise ModelError(
                f"a CNF file holds clauses and parities, and this model has a constraint of another kind "
                f"({constraint.kind}); write .json"
            )
    save(path, ("\n".join(lines) + "\n").encode("ascii"))


def looks_like_cnf(source: Source) -> bool:
    """Say whether the first line that is no comment begins with ``p cnf``."""
    first = first_words(source, 1, comment="c")
    return bool(first) and first[0][:2] == ["p", "cnf"]
