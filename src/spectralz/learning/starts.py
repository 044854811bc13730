"""Search from several starts: with missing cells the likelihood may have more than one maximum."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import deadline
from spectralz.learning.minimizing import INTERRUPTED, Minimum, Objective, minimize

if TYPE_CHECKING:
    from spectralz.learning.problem import Problem
    from spectralz.model import FloatArray

# How many more starts, how far from the first, and which difference of values per row shows another minimum.
MORE_STARTS, DISTANCE, SAME_VALUE = 3, 0.5, 1e-7


def best_of_starts(
    objective: Objective, problem: Problem, first: Minimum, tol: float, max_iter: int, seed: int
) -> tuple[Minimum, str]:
    """Return the lowest of some minima, and words about the others if they differ.

    Parameters
    ----------
    objective
        What is minimized, such as the negative log-likelihood per row.
    problem
        The problem, with its penalty.
    first
        A minimum that was found before.
    tol, max_iter
        As in ``minimize``.
    seed
        Seed of the other starts.
    """
    rng = np.random.default_rng(seed)
    degree = max(1.0, 2.0 * len(problem.edges) / problem.n)
    size = np.where(np.arange(problem.size) < problem.n, DISTANCE, DISTANCE / math.sqrt(degree))
    ends = [first]
    for _ in range(MORE_STARTS):
        if ends[-1].is_interrupted or deadline.is_past():
            break
        start = np.where(problem.free, problem.start() + size * rng.normal(size=problem.size), problem.given)
        ends.append(minimize(objective, problem, start, tol, max_iter, "from another start"))
    reached = [end for end in ends if end.residual <= 10.0 * tol] or [first]
    values = [_penalized(objective, problem, end.parameters) for end in reached]
    best = reached[int(np.argmin(values))]
    if ends[-1].is_interrupted:
        best = replace(best, stopped=INTERRUPTED)
    others = sum(value > min(values) + SAME_VALUE for value in values)
    if not others:
        return best, ""
    words = f"{others} of {len(reached)} starts ended in a lower maximum, by {max(values) - min(values):.2g} per row"
    return best, f"; {words}, so that there may be a higher one"


def _penalized(objective: Objective, problem: Problem, at: FloatArray) -> float:
    J, penalty = at[problem.n :], problem.penalty
    return objective.value(at)[0] + penalty.l1 * float(np.abs(J).sum()) + penalty.l2 / 2.0 * float(J @ J)
