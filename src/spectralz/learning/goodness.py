"""How far a fit can be trusted: errors of estimates, data drawn again, predictions beside the data."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.options import checked_count
from spectralz._support.progress import report
from spectralz._support.settings import using_settings
from spectralz._support.threads import NO_MATRICES, thread_count, using_threads
from spectralz.errors import ModelError, OptionError, catching_interrupt, showing_interrupts
from spectralz.inference import as_method, sample
from spectralz.inference.rows import columns_of, rows_under
from spectralz.learning import expectations, sampled
from spectralz.learning.expectations import Incomplete, PseudoLikelihood, observed, probabilities, walsh
from spectralz.learning.likelihood import Likelihood, exact_moments
from spectralz.learning.minimizing import LARGEST, minimize
from spectralz.learning.table import Table, of_states, spins_of
from spectralz.model.coupling.entries import symmetric
from spectralz.parts.pairs import all_pairs
from spectralz.result import Bootstrap, Fit, Goodness, Predictability

if TYPE_CHECKING:
    from spectralz.learning.problem import Problem
    from spectralz.model import FloatArray, IntArray, SpinArray
    from spectralz.model.columns import Columns


# The inverse of a larger matrix takes minutes.
MOST_PARAMETERS = 3000
# A regular parameter never has this large an error: a cell of a table that was seen once fixes it to about one.
LARGEST_ERROR = 20.0


@dataclass(frozen=True)
class Precision:
    """Covariance of all parameters (0 for given ones), or None with the reason; and their effective number."""

    covariance: FloatArray | None
    parameters: float
    why: str = ""

    @property
    def error(self) -> FloatArray | None:
        """The standard errors."""
        return None if self.covariance is None else np.sqrt(np.diag(self.covariance))

    @property
    def is_singular(self) -> bool:
        """Whether the data do not determine all parameters."""
        return self.why == SINGULAR


SINGULAR = "the data do not determine all parameters"


def precision_of(
    problem: Problem, hessian: FloatArray, rows: float, scores: FloatArray | None = None, states: int | None = None
) -> Precision:
    """Return standard errors from the Hessian H of the mean negative log-likelihood per row.

    The covariance is ``(H + R)^-1 V (H + R)^-1' / rows``, where R is the penalty's part and V the covariance of the
    rows' scores. For the likelihood V is H itself, and without a penalty H^-1 / rows remains. For the sandwich it is
    that of the pseudo-likelihood.

    Parameters
    ----------
    problem
        The problem.
    hessian
        H, of all parameters.
    rows
        Number of rows.
    scores
        V; H itself by default.
    states
        The number of states from which H was estimated; the inverse of such a matrix is too large by a known factor.
    """
    free = np.flatnonzero(problem.free)
    curvature = hessian[np.ix_(free, free)]
    spread = curvature if scores is None else scores[np.ix_(free, free)]
    ridged = curvature + np.diag(problem.ridge[free])
    covariance = np.zeros((problem.size, problem.size))
    if not len(free):
        return Precision(covariance, 0.0)
    try:
        np.linalg.cholesky((ridged + ridged.T) / 2.0)
        inverse = np.linalg.inv(ridged)
    except np.linalg.LinAlgError:
        return Precision(None, float(len(free)), SINGULAR)
    of_free = inverse @ spread @ inverse.T / rows
    if states is not None:
        of_free *= max(states - len(free) - 2, 1) / states
    parameters = float(len(free)) if problem.penalty.l2 == 0.0 else float(np.sum(inverse * curvature.T))
    # If the likelihood has no maximum, the scores vanish with the curvature, so that a sandwich would hide it.
    flat = problem.penalty.is_none and np.diag(inverse).max() > LARGEST_ERROR**2 * max(rows, 1.0)
    if flat or not np.all(np.isfinite(of_free)) or np.diag(of_free).min() < 0.0:
        return Precision(None, parameters, SINGULAR)
    covariance[np.ix_(free, free)] = of_free
    return Precision(covariance, parameters)


def precision_by_states(problem: Problem, states: SpinArray, rows: float, lost: FloatArray | float = 0.0) -> Precision:
    """Return standard errors from states of the fitted model: H is the covariance of x_i and x_i x_j over them.

    ``lost`` is the information that is lost with missing cells.
    """
    x = states.astype(np.float64)
    features = np.hstack([x, x[:, problem.edges[:, 0]] * x[:, problem.edges[:, 1]]])
    features -= features.mean(axis=0)
    return precision_of(problem, features.T @ features / len(x) - lost, rows, states=len(x))


MOST_SPINS_OF_STATES = 20
MOST_TRIPLES = 4000
STATES = 20_000
# The chi-squared distribution of G^2 needs about this many rows per state.
ROWS_PER_STATE = 5.0


def goodness_of(fit: Fit, seed: int = 0) -> Goodness:
    """Return predictions and observations of a fit."""
    table: Table = fit.table.distinct()
    states = table.known_states("the goodness of a fit")
    share = table.weight / table.rows
    n = table.n
    pairs, triples = all_pairs(n), _triples(n, seed)
    observed, seen = _of_states(states, share, pairs, triples)
    is_exact = n <= MOST_SPINS_OF_STATES and table.is_complete
    if is_exact:
        p = probabilities(fit.model)
        predicted = _of_probabilities(p, pairs, triples)
        test = _against_saturated(fit, p, states, share)
    else:
        drawn = sample(fit.model, STATES, seed=seed)
        if not table.is_complete:  # as many values are missing as in the data, and at the same places
            drawn = drawn * (states[np.random.default_rng(seed).choice(len(states), STATES, p=share)] != 0)
        predicted, _ = _of_states(drawn, np.full(len(drawn), 1.0 / len(drawn)), pairs, triples)
        test = {"why": f"there are 2^{n} states, far more than rows" if table.is_complete else "values are missing"}
    third = np.where(seen > 0.0, observed[2] - predicted[2], 0.0)
    variance = np.maximum(1.0 - predicted[2] ** 2, 1.0 / table.rows)
    rows = np.maximum(seen * table.rows, 1.0)
    error = np.sqrt(variance / rows + (0.0 if is_exact else variance / (np.maximum(seen, 1e-3) * STATES)))
    return Goodness(
        mean_observed=observed[0],
        mean_predicted=predicted[0],
        pairs=pairs,
        pair_observed=observed[1],
        pair_predicted=predicted[1],
        triples=triples,
        third_observed=observed[2],
        third_predicted=predicted[2],
        active_observed=observed[3],
        active_predicted=predicted[3],
        third_z=float(np.sqrt(np.mean((third / error) ** 2))) if len(triples) else None,
        is_exact=is_exact,
        **{"statistic": None, "df": None, "p_value": None, **test},
    )


def log_probabilities(fit: Fit, X: Any, columns: Columns = "labels") -> FloatArray:
    """Return log P of every row of ``X``, of its known part if cells are missing, in the values of the fit's data."""
    if fit.log_z is None:
        raise OptionError("this fit was made with likelihood=False, so log Z is not known; fit again without it")
    states, _ = spins_of(X, fit.values)
    places = columns_of(X, fit.model, columns)
    if states.ndim != 2 or (states.shape[1] != fit.model.n and places is None):
        raise ModelError(f"X has shape {states.shape}; give rows of {fit.model.n} variables")
    if places is not None:  # variables without a column are missing
        known, states = states, np.zeros((len(states), fit.model.n), dtype=np.int8)
        states[:, places] = known
    return rows_under(fit.model, states, as_method("auto", {}), cells=False).log_weight - fit.log_z


def predictability_of(fit: Fit, seed: int = 0) -> Predictability:
    """Return the share of each variable's variance that the others explain: of t = E[x | others], Var(t) / Var(x)."""
    model = fit.model
    names = tuple(range(model.n)) if model.names is None else model.names
    if model.n <= MOST_SPINS_OF_STATES:
        p = probabilities(model)
        return Predictability(names=names, share=np.array([_share_over_states(p, i) for i in range(model.n)]))
    edges, J = model.edges()
    x = sample(model, STATES, seed=seed).astype(np.float64)
    t = np.tanh(np.asarray(x @ symmetric(model.n, edges, J).tocsr()) + model.field)
    mean = t.mean(axis=0)
    variance = np.maximum(1.0 - mean**2, 1.0 / STATES)
    share = np.clip(t.var(axis=0) / variance, 0.0, 1.0)
    # To first order in the deviations of the means of t and of t^2.
    error = (t**2 - 2.0 * mean * (1.0 - share) * t).std(axis=0) / variance / np.sqrt(STATES)
    return Predictability(names=names, share=share, std_error=error)


def _share_over_states(p: FloatArray, i: int) -> float:
    """Return the share for spin i from the probabilities of all states: t is the difference of two over their sum."""
    down, up = p.reshape(-1, 2, 1 << i).transpose(1, 0, 2).reshape(2, -1)
    total, difference = up + down, up - down
    mean = float(difference.sum())
    second = float(np.divide(difference**2, total, out=np.zeros_like(total), where=total > 0.0).sum())
    variance = 1.0 - mean**2
    return float(np.clip((second - mean**2) / variance, 0.0, 1.0)) if variance > 0.0 else 0.0


def _triples(n: int, seed: int) -> IntArray:
    if comb(n, 3) <= MOST_TRIPLES:
        return np.array(list(combinations(range(n), 3)), dtype=np.int64).reshape(-1, 3)
    rng = np.random.default_rng(seed)
    drawn = np.sort(np.array([rng.choice(n, 3, replace=False) for _ in range(MOST_TRIPLES)]), axis=1)
    return np.unique(drawn, axis=0).astype(np.int64)


def _of_states(
    states: SpinArray, share: FloatArray, pairs: IntArray, triples: IntArray
) -> tuple[tuple[Any, Any, Any, Any], FloatArray]:
    """Return means, mean products of pairs and of triples, and the distribution of the number of +1.

    Means are those of the rows that have the values; the last result is the share of rows that have each triple.
    """
    x = states.astype(np.float64)
    sums, seen = _moments(x, share, pairs, triples), _moments(np.abs(x), share, pairs, triples)
    means = [np.divide(a, b, out=np.zeros_like(a), where=b > 0.0) for a, b in zip(sums, seen, strict=True)]
    active = np.bincount((states > 0).sum(axis=1), weights=share, minlength=x.shape[1] + 1)
    return (means[0], means[1], means[2], active), seen[2]


def _moments(x: FloatArray, share: FloatArray, pairs: IntArray, triples: IntArray) -> tuple[Any, Any, Any]:
    weighted = x * share[:, None]
    third = np.array([np.dot(weighted[:, i] * x[:, j], x[:, k]) for i, j, k in triples.tolist()])
    return weighted.sum(axis=0), (weighted.T @ x)[pairs[:, 0], pairs[:, 1]], third


def _of_probabilities(p: FloatArray, pairs: IntArray, triples: IntArray) -> tuple[Any, Any, Any, Any]:
    """Return the same from the probabilities of all states."""
    products = walsh(p)
    n = len(p).bit_length() - 1
    bits = 1 << np.arange(n, dtype=np.int64)
    active = np.zeros(1, dtype=np.int64)
    for _ in range(n):
        active = np.concatenate([active, active + 1])
    counts = np.bincount(active, weights=p, minlength=n + 1)
    return products[bits], products[bits[pairs].sum(axis=1)], products[bits[triples].sum(axis=1)], counts


def _against_saturated(fit: Fit, p: FloatArray, states: SpinArray, share: FloatArray) -> dict[str, Any]:
    """Return the likelihood ratio against the model with one parameter per state."""
    from scipy.special import chdtrc

    df = len(p) - 1 - round(fit.parameters)
    if fit.method == "pseudo" or fit.penalty is not None:
        return {"why": "the test needs a maximum-likelihood fit without a penalty"}
    if fit.rows < ROWS_PER_STATE * len(p):
        return {"why": f"{fit.rows:g} rows are few for {len(p)} states; the test needs about {ROWS_PER_STATE:g} each"}
    if df < 1:
        return {"why": "the model has as many parameters as there are states, and fits any data"}
    place = (states > 0) @ (1 << np.arange(states.shape[1], dtype=np.int64))
    statistic = 2.0 * fit.rows * float(share @ (np.log(share) - np.log(p[place])))
    return {"statistic": statistic, "df": df, "p_value": float(chdtrc(df, max(statistic, 0.0)))}


# Repetitions stop at a distance from their maximum that is small beside their own spread.
TOL = 1e-6
TOL_OF_EXPECTATIONS = 1e-3
MOST_ITERATIONS = 200


@dataclass(frozen=True)
class _Again:
    """What all repetitions share: the problem, its rows, the estimates to begin from, and how to search."""

    problem: Problem
    table: Table
    start: FloatArray
    method: str
    engine: Any
    population: Any
    seed: int

    def parameters(self, k: int) -> FloatArray:
        """Return the estimates of repetition k."""
        rng = np.random.default_rng([self.seed, k])
        count = max(1, round(self.table.rows))
        drawn = rng.multinomial(count, self.table.weight / self.table.weight.sum())
        kept = np.flatnonzero(drawn)
        states = self.table.known_states("a bootstrap")[kept]
        table = of_states(states, drawn[kept].astype(np.float64), self.table.names, self.table.values)
        problem = replace(self.problem, moments=table.moments(self.problem.edges))
        data = observed(problem, table)
        with using_settings(threads=1):  # repetitions are in threads already
            if self.method == "sampled":
                return sampled.climbed_again(problem, data, self.start, self.population, rng)
            if self.method == "exact":
                return minimize(Likelihood(self.engine, data), problem, self.start, TOL, MOST_ITERATIONS).parameters
            if isinstance(data, Incomplete):
                tol = TOL_OF_EXPECTATIONS / np.sqrt(count)
                best = expectations.maximized(problem, table, data, self.start, tol, MOST_ITERATIONS, self.seed)
                return best.parameters
            return minimize(PseudoLikelihood(problem, table), problem, self.start, TOL, MOST_ITERATIONS).parameters


def bootstrapped(fit: Fit, count: int, seed: int) -> Bootstrap:
    """Return the estimates of ``count`` repetitions, or of those made before an interrupt."""
    count, seed = checked_count(count, "count", least=2), checked_count(seed, "seed", least=0)
    again = _again(fit, seed)
    found: dict[int, FloatArray] = {}
    with (
        showing_interrupts(),
        using_threads(None, NO_MATRICES),
        ThreadPoolExecutor(thread_count()) as pool,
        catching_interrupt() as interrupt,
    ):
        futures = {pool.submit(again.parameters, k): k for k in range(count)}
        try:
            for future in as_completed(futures):
                found[futures[future]] = future.result()
                report("bootstrap", len(found) / count)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    if len(found) < 2:
        raise KeyboardInterrupt
    estimates = np.array([found[k] for k in sorted(found)])
    return Bootstrap(
        parameters=again.problem.keys(),
        estimate=again.start,
        estimates=estimates,
        unbounded=int((np.abs(estimates).max(axis=1, initial=0.0) > LARGEST / 2.0).sum()),
        interrupted=interrupt.happened,
    )


def _again(fit: Fit, seed: int) -> _Again:
    """Return what repetitions share; for sampled fits this includes a population at the estimates."""
    problem, parameters = fit.recipe.problem, fit.recipe.parameters
    table: Table = fit.table.distinct()
    table.known_states("a bootstrap")
    engine, population = None, None
    if fit.method == "exact":
        engine = exact_moments(problem)
    elif fit.method == "sampled":
        population = sampled.population_at(problem, observed(problem, table), parameters, table.rows, seed)
    return _Again(problem, table, parameters, fit.method, engine, population, seed)
