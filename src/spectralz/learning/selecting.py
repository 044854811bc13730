"""Choose a graph or the strength of a penalty from the data: a path of strengths, judged by EBIC or cross-validation.

Up to 14 variables the path uses the likelihood, beyond that the pseudo-likelihood, which needs no log Z; missing cells
are then completed once, under a first fit.
EBIC is ``-2 rows L + k log(rows) + 4 GAMMA k log(n)`` with k couplings and L the largest log-likelihood per row on that
graph (Foygel and Drton 2010; GAMMA for the pseudo-likelihood as in Barber and Drton 2015).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.progress import report
from spectralz.errors import OptionError
from spectralz.learning.expectations import Incomplete, PseudoLikelihood, Walsh, maximized, observed, table_completed
from spectralz.learning.likelihood import Likelihood
from spectralz.learning.minimizing import minimize
from spectralz.learning.problem import Penalty, Problem, problem_of, refuse_unbounded
from spectralz.parts.pairs import all_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spectralz.learning.table import Table
    from spectralz.model import FloatArray, IntArray

GAMMA = 0.25
MOST_SPINS_OF_LIKELIHOOD = 14
STRENGTHS, WEAKEST_SHARE = 25, 0.01
FOLDS = 5
FIRST_STRENGTH = 0.01
PATH_TOL = 1e-4
# A path ends after its criterion has risen this many times in a row: what follows is denser, slower and worse.
MOST_RISES = 4


@dataclass(frozen=True)
class _Path:
    """A problem without its penalty, and its data."""

    problem: Problem
    table: Table
    # Under these parameters missing cells are completed, for the pseudo-likelihood.
    first: FloatArray | None = None

    def objective(self, table: Table | None = None) -> Any:
        """Return the likelihood or the pseudo-likelihood, for other data if they are given."""
        data = self.table if table is None else table
        problem = replace(self.problem, moments=data.moments(self.problem.edges))
        if problem.n <= MOST_SPINS_OF_LIKELIHOOD:
            return Likelihood(Walsh.of(problem), observed(problem, data))
        return PseudoLikelihood(problem, self._completed(data))

    def _completed(self, table: Table) -> Table:
        """Return a table whose missing cells are completed under the first parameters."""
        data = observed(self.problem, table)
        if self.first is None or not isinstance(data, Incomplete):
            return table
        return table_completed(table, data, self.first, 0)

    def strengths(self, kind: str) -> FloatArray:
        """Return strengths from the one with all couplings zero (l1), or small (l2), down to a hundredth of it."""
        problem = self.problem
        is_free_pair = problem.free & (np.arange(problem.size) >= problem.n)
        without_pairs = replace(problem, free=problem.free & ~is_free_pair, penalty=Penalty())
        start = minimize(self.objective(), without_pairs, problem.start(), PATH_TOL, 200).parameters
        gradient = self.objective().value(start)[1][is_free_pair]
        largest = max(float(np.abs(gradient).max(initial=0.0)), 1e-6)
        top = largest if kind == "l1" else 10.0 * largest
        return np.geomspace(top, (WEAKEST_SHARE if kind == "l1" else 1e-4) * top, STRENGTHS)

    def parameters(self, kind: str, strengths: FloatArray, table: Table | None, task: str) -> Iterator[FloatArray]:
        """Yield the parameters for every strength; each search begins where the one before ended."""
        objective = self.objective(table)
        at = self.problem.start()
        for k, strength in enumerate(strengths.tolist()):
            problem = replace(self.problem, penalty=Penalty(**{kind: strength}))
            at = minimize(objective, problem, at, PATH_TOL, 200, task).parameters
            report(task, (k + 1) / len(strengths))
            yield at


def chosen_graph(table: Table, fixed: Any, criterion: str, seed: int) -> tuple[IntArray, dict[str, Any]]:
    """Return the edges that an l1 path leaves at its best strength."""
    path = _path_of(table, all_pairs(table.n), fixed)
    parameters, strength, details = _best(path, "l1", criterion, seed)
    n = path.problem.n
    kept = (parameters[n:] != 0.0) | ~path.problem.free[n:]
    return path.problem.edges[kept], {**details, "chosen_strength": strength}


def chosen_strength(
    table: Table, edges: IntArray, fixed: Any, kind: str, criterion: str, seed: int
) -> tuple[float, dict[str, Any]]:
    """Return the best strength of a penalty by a criterion."""
    return _best(_path_of(table, edges, fixed), kind, criterion, seed)[1:]


def _path_of(table: Table, edges: IntArray, fixed: Any) -> _Path:
    table.known_states("choosing a graph or a strength")
    problem = problem_of(table, edges, fixed, Penalty(l2=1.0))
    refuse_unbounded(problem, table)
    data = observed(problem, table)
    if not isinstance(data, Incomplete) or table.n <= MOST_SPINS_OF_LIKELIHOOD:
        return _Path(problem, table)
    mild = replace(problem, penalty=Penalty(l2=FIRST_STRENGTH))
    first = maximized(mild, table, data, problem.start(), PATH_TOL, 200, 0)
    return _Path(problem, table, first.parameters)


def _best(path: _Path, kind: str, criterion: str, seed: int) -> tuple[FloatArray, float, dict[str, Any]]:
    """Return the parameters of the best strength, that strength, and the scores; smaller is better."""
    count = len(path.table.weight)
    if criterion == "cv" and count < FOLDS:
        raise OptionError(f"cross-validation needs at least {FOLDS} rows, and there are {count}; give strength=")
    strengths = path.strengths(kind)
    task = "following the path"
    if criterion == "ebic":
        parameters, scores = _by_ebic(path, path.parameters(kind, strengths, None, task))
        return parameters[int(np.argmin(scores))], *_reported(strengths, scores, criterion)
    scores = _by_folds(path, kind, strengths, seed)
    whole = list(path.parameters(kind, strengths[: int(np.argmin(scores)) + 1], None, task))
    return whole[-1], *_reported(strengths, scores, criterion)


def _reported(strengths: FloatArray, scores: list[float], criterion: str) -> tuple[float, dict[str, Any]]:
    """Return the best strength, and those that were tried with their scores."""
    tried = strengths[: len(scores)]
    return float(tried[int(np.argmin(scores))]), {"strengths": tried.tolist(), criterion: scores}


def _has_risen(scores: list[float]) -> bool:
    return len(scores) > MOST_RISES and min(scores[-MOST_RISES:]) > min(scores)


def _by_ebic(path: _Path, whole: Iterator[FloatArray]) -> tuple[list[FloatArray], list[float]]:
    """Return EBIC of the graph of each strength, with parameters fitted anew and almost no penalty."""
    problem, rows = path.problem, path.table.rows
    objective, n = path.objective(), problem.n
    known: dict[bytes, float] = {}
    parameters: list[FloatArray] = []
    scores: list[float] = []
    for at in whole:
        parameters.append(at)
        kept = at[n:] != 0.0
        key = kept.tobytes()
        if key not in known:
            free = problem.free & np.concatenate([np.ones(n, dtype=bool), kept])
            # As strong as one row: the maximum of a graph's likelihood may be at infinity.
            given = np.where(free, 0.0, problem.given)
            refit = replace(problem, free=free, given=given, penalty=Penalty(l2=1.0 / rows))
            best = minimize(objective, refit, np.where(free, at, problem.given), PATH_TOL, 200, "judging graphs")
            edges = int((kept & problem.free[n:]).sum())
            price = edges * (math.log(rows) + 4.0 * GAMMA * math.log(n))
            known[key] = 2.0 * rows * objective.value(best.parameters)[0] + price
        scores.append(known[key])
        if _has_risen(scores):
            break
    return parameters, scores


def _by_folds(path: _Path, kind: str, strengths: FloatArray, seed: int) -> list[float]:
    """Return the mean negative log-likelihood per row of held-out data, until it has risen for a while."""
    count = len(path.table.weight)
    order = np.random.default_rng(seed).permutation(count)
    folds = []
    for k in range(FOLDS):
        out = np.isin(np.arange(count), order[k::FOLDS])
        train, test = path.table.part(np.flatnonzero(~out)), path.table.part(np.flatnonzero(out))
        # A column that never changes in a part would have an infinite field: its search ends at the largest allowed.
        found = path.parameters(kind, strengths, train, "cross-validation")
        folds.append((found, path.objective(test), test.rows / path.table.rows))
    scores: list[float] = []
    for _ in strengths:
        scores.append(sum(share * float(objective.value(next(found))[0]) for found, objective, share in folds))
        if _has_risen(scores):
            break
    return scores
