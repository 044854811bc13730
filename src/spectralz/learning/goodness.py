"""Predictions of a fitted model compared with its data."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import ModelError, OptionError
from spectralz.inference import as_method, sample
from spectralz.inference.rows import columns_of, rows_under
from spectralz.learning.table import Table, spins_of
from spectralz.learning.walsh import probabilities, walsh
from spectralz.model.coupling.entries import symmetric
from spectralz.parts.pairs import all_pairs
from spectralz.result import Fit, Goodness, Predictability

if TYPE_CHECKING:
    from spectralz.model import FloatArray, IntArray, SpinArray
    from spectralz.model.columns import Columns

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
