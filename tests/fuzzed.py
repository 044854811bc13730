"""Small models of all kinds and sizes of numbers, at random, and what every method must hold on them.

Numbers of very different sizes meet in one model, since that is where roundings show. The truth is in whole numbers,
by ``tests/reference/states.py``.
"""

from __future__ import annotations

import math
import warnings

import mpmath
import numpy as np
import scipy.sparse as sp

import spectralz as sz
from tests.reference import states

# Few rounds and states: what is tested is what they prove, not how close they come.
PROVING = {
    "exact": sz.Exact(),
    "elimination": sz.Exact(algorithm="elimination"),
    "quadrature": sz.Quadrature(max_nodes=100_000),
    "low_rank": sz.LowRank(max_cells=100_000),
    "mf": sz.MeanField(max_iter=50),
    "mf, blocks": sz.MeanField(block_width=2, start="annealed", max_iter=20),
    "bp": sz.BeliefPropagation(max_iter=20),
    "convex_mf": sz.ConvexMeanField(),
    "sdp": sz.SDPBound(),
    "trw": sz.TreeReweighted(max_iter=20),
    "mbe": sz.MiniBucket(ibound=3),
    "mbe, lower": sz.MiniBucket(ibound=3, bound="lower"),
    "wmbe": sz.WeightedMiniBucket(ibound=3, max_iter=2),
    "wmbe, lower": sz.WeightedMiniBucket(ibound=3, max_iter=3, bound="lower"),
    "states": sz.States(population=20, runs=2, quenches=20),
    "spectral": sz.Spectral(restarts=1, tol=1e-3),
    "mps": sz.MatrixProduct(bond=1, samples=0),
}
# What only takes models of low rank may refuse the others, and grids that would be too large.
MAY_REFUSE = {"quadrature", "low_rank"}
ORDINARY = (0.0, 1e-6, 0.1, 1.0, 1.0, 1.0, 3.0, 10.0, 30.0)
EXTREME = (1e-320, 1e-200, 1e-100, 1e-9, 1e3, 1e7, 1e8, 1e15, 1e16, 1e100, 1e200)


def fuzzed(rng: np.random.Generator) -> sz.Ising:
    """Draw a model: 0 to 8 spins; a matrix, sparse or dense, or factors, or two layers; any signs and sizes."""
    n = int(rng.integers(0, 9))
    field = _numbers(rng, n)
    offset = float(_numbers(rng, 1)[0]) if rng.random() < 0.2 else 0.0
    kind = rng.choice(["dense", "sparse", "factors", "two layers"])
    if kind == "factors":
        rank = int(rng.integers(0, 4))
        # squares of vectors must stay below 1e300
        vectors = np.clip(_numbers(rng, rank * n), -1e50, 1e50).reshape(rank, n)
        diagonal = _numbers(rng, n) if rng.random() < 0.5 else np.zeros(n)
        values = np.clip(_numbers(rng, rank), -1e150, 1e150)
        return sz.Ising.from_factors(field, values, vectors, diagonal, offset)
    if kind == "two layers":
        first = int(rng.integers(0, n + 1))
        return sz.Ising.from_bipartite(_numbers(rng, first * (n - first)).reshape(first, n - first), field, offset)
    A = np.triu(_numbers(rng, n * n).reshape(n, n) * (rng.random((n, n)) < rng.choice([0.3, 0.7, 1.0])), 1)
    A = A + A.T + (np.diag(_numbers(rng, n)) if rng.random() < 0.3 else 0.0)
    return sz.Ising(field, sp.csr_array(A) if kind == "sparse" else A, offset)


def _numbers(rng: np.random.Generator, count: int) -> np.ndarray:
    """Draw numbers of one size, or in every fourth model of several, of one or both signs, some of them equal."""
    sizes = np.array([rng.choice(ORDINARY if rng.random() < 0.75 else EXTREME) for _ in range(4)])
    x = rng.uniform(-1.0, 1.0, count) if rng.random() < 0.7 else rng.integers(-2, 3, count).astype(float)
    x *= rng.choice(sizes, count) if rng.random() < 0.25 else sizes[0]
    sign = rng.choice(["any", "any", "positive", "negative"])
    return x if sign == "any" else np.abs(x) if sign == "positive" else -np.abs(x)


def broken_promises(model: sz.Ising) -> list[str]:
    """Return what methods say of a model that is not so."""
    truth = states.log_z(model)
    total = abs(model.offset) + float(np.abs(model.field).sum()) + model.storage.total
    found = []
    for name, method in PROVING.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                result = method.run(model)
        except (sz.errors.ModelError, sz.errors.TooLargeError) as refusal:
            found += [] if name in MAY_REFUSE else [f"{name}: refused, {refusal}"]
        except Exception as error:
            found.append(f"{name}: {type(error).__name__}, {error}")
        else:
            found += [f"{name}: {words}" for words in broken(result, truth, total)]
    return found


def broken(result: sz.Estimate, truth: mpmath.mpf, total: float) -> list[str]:
    """Return what one method says that is not so; ``total`` is the size of the weights that are added up."""
    bounds = [f"lower bound {result.lower!r}"] if result.lower is not None and result.lower > truth else []
    bounds += [f"upper bound {result.upper!r}"] if result.upper is not None and result.upper < truth else []
    # The answer itself is rounded, what is proven is beside it.
    beyond, rounding = result.log_z - truth, 1e-12 * max(1.0, total)
    is_wrong = {
        sz.Kind.EXACT: abs(beyond) > 1e-8 * max(1.0, abs(truth)),
        sz.Kind.LOWER_BOUND: beyond > rounding,
        sz.Kind.UPPER_BOUND: beyond < -rounding,
    }
    bounds += [f"{result.kind} {result.log_z!r}"] if is_wrong.get(result.kind, False) else []
    values = (result.log_z, result.std_error, result.lower, result.upper)
    bounds += [] if all(math.isfinite(x) for x in values if x is not None) else [f"not a number in {values}"]
    return [f"{words}, truth {mpmath.nstr(truth, 25)}" for words in bounds]
