"""Ganak, a model counter (extra ``counting``), in a process of its own, which can be ended at any time.

Ganak tells formulas that it has counted before by hashes of them, and the Python package has no way to turn that off:
a count is wrong with a probability that its authors put below one in a billion.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.extras import from_extra
from spectralz._support.progress import report
from spectralz.errors import SolverError, TooLargeError
from spectralz.model.constraints import Clause

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spectralz._support.deadline import Deadline
    from spectralz.model.constraints import Constraint

SECONDS_PER_REPORT = 0.1
# It prints more than the count, which comes last. Python converts hexadecimal numbers of any size.
PROGRAM = """
import json, sys
from pyganak import Counter
sys.set_int_max_str_digits(0)
n, clauses = json.load(sys.stdin)
counter = Counter()
counter.new_vars(n)
counter.add_clauses(clauses)
count = counter.count()
print("\\n" + hex(count), flush=True)
"""


def is_installed() -> bool:
    """Say whether the package is there."""
    return find_spec("pyganak") is not None


def count_by_ganak(n: int, constraints: Iterable[Constraint], deadline: Deadline) -> int:
    """Return how many states of ``n`` spins satisfy constraints.

    Raises
    ------
    TooLargeError
        If it takes longer than until the deadline.
    MissingDependencyError
        If the package is not installed.
    """
    if not is_installed():
        from_extra("pyganak", "counting", "counting by Ganak")
    clauses, variables = as_clauses(n, constraints)
    task = json.dumps([variables, clauses])
    command = [sys.executable, "-c", PROGRAM]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            text: str | None = task
            while True:
                if not deadline.left:
                    raise TooLargeError(f"Ganak had not counted after {deadline.seconds:.2g} s")
                report("counting by Ganak", deadline.done)
                try:
                    printed, problem = process.communicate(text, min(SECONDS_PER_REPORT, deadline.left))
                    break
                except subprocess.TimeoutExpired:
                    text = None
        finally:
            process.kill()
    if process.returncode:
        raise SolverError(f"Ganak ended with exit code {process.returncode}: {problem.strip()[-200:]}")
    return int(printed.split()[-1], 16)


def as_clauses(n: int, constraints: Iterable[Constraint]) -> tuple[list[list[int]], int]:
    """Return clauses that say the same as constraints of ``n`` spins, and the number of variables with further ones.

    Spin i is variable i + 1, and its negative the lower value. The values of the further variables follow from those of
    the spins.
    """
    further = itertools.count(n)
    clauses = []
    for constraint in constraints:
        if isinstance(constraint, Clause):
            clauses.append([sign * (i + 1) for i, sign in zip(constraint.scope, constraint.wanted, strict=True)])
            continue
        for table in constraint.narrow(further):
            for broken in np.argwhere(~table.allowed).tolist():
                clauses.append([-(i + 1) if up else i + 1 for i, up in zip(table.scope, broken, strict=True)])
    return clauses, next(further)
