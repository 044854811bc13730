"""Small random models of all kinds and sizes of numbers, and what every method owes to the truth about them.

Numbers of very different sizes meet in one model, since that is where roundings show. The truth is in whole numbers,
by ``tests/reference/states.py``. A method answers and is right, or refuses what ``REFUSALS`` says that it may refuse.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import mpmath
import numpy as np
import scipy.sparse as sp

import spectralz as sz
from spectralz.errors import InaccurateWarning, ModelError, SpectralzError, TooLargeError
from spectralz.methods.base import Method
from tests.reference import states

# --- models ---------------------------------------------------------------------------------------------------------

# Everyday sizes, and those at which sums, squares or everything overflows or is lost.
ORDINARY = (0.0, 1e-8, 1e-6, 0.01, 0.1, 0.1, 1.0, 1.0, 1.0, 1.0, 3.0, 10.0, 30.0, 100.0, 1e4, 1e7)
EXTREME = (1e-320, 1e-300, 1e-200, 1e-160, 1e-100, 1e-20, 1e-9, 1e-3, 1e3, 1e7, 1e8, 1e15, 1e16, 1e40, 1e100, 1e200)
# The square of a vector times a value must stay below 1e300.
LARGEST_VECTOR, LARGEST_VALUE = 1e50, 1e150


def random_model(rng: np.random.Generator) -> sz.Ising:
    """Draw a model: 0 to 8 spins; factors, or a matrix, sparse or dense, or two layers; any signs and sizes."""
    n = int(rng.integers(0, 9))
    share_of_extremes = rng.choice([0.0, 0.0, 0.3, 0.7])
    field = _numbers(rng, share_of_extremes, n) * rng.choice([0.0, 1.0, 1.0])
    offset = float(_numbers(rng, share_of_extremes, 1)[0]) * rng.choice([0.0, 0.0, 1.0])
    kind = rng.choice(["factors", "factors", "factors", "dense", "sparse", "two layers"])
    if kind == "two layers":
        first = int(rng.integers(0, n + 1))
        return sz.Ising.from_bipartite(_numbers(rng, share_of_extremes, first, n - first), field, offset)
    diagonal = _numbers(rng, share_of_extremes, n) * rng.choice([0.0, 1.0, 1.0])
    if n > 1 and rng.random() < 0.5:
        diagonal[0] = -diagonal[1]  # these cancel in log Z
    if kind == "factors":
        rank = int(rng.integers(0, 6))
        vectors = np.clip(_numbers(rng, share_of_extremes, rank, n), -LARGEST_VECTOR, LARGEST_VECTOR)
        values = np.clip(_numbers(rng, share_of_extremes, rank), -LARGEST_VALUE, LARGEST_VALUE)
        if rank > 1 and rng.random() < 0.2:
            vectors[-1] = vectors[0]
        return sz.Ising.from_factors(field, values, vectors, diagonal, offset)
    upper = np.triu(_numbers(rng, share_of_extremes, n, n), 1)
    coupling = upper + upper.T + np.diag(diagonal)
    return sz.Ising(field, sp.csr_array(coupling) if kind == "sparse" else coupling, offset)


def random_binary_model(rng: np.random.Generator) -> tuple[sz.Ising, mpmath.mpf]:
    """Draw a model of variables 0 and 1, of one or two layers, and its log Z without the detour over spins."""
    n = int(rng.integers(1, 8))
    share_of_extremes = rng.choice([0.0, 0.0, 0.3])
    bias = _numbers(rng, share_of_extremes, n)
    if rng.random() < 0.5:
        first = int(rng.integers(0, n + 1))
        block = _numbers(rng, share_of_extremes, first, n - first)
        weights = np.zeros((n, n))
        weights[:first, first:] = block
        return sz.RBM(block, bias[:first], bias[first:]).to_ising(), states.log_z_of_binary(bias, weights)
    weights = np.triu(_numbers(rng, share_of_extremes, n, n), 1)
    offset = float(_numbers(rng, share_of_extremes, 1)[0]) * rng.choice([0.0, 1.0])
    return sz.Ising.from_binary(bias, weights, offset), states.log_z_of_binary(bias, weights, offset)


def random_polynomial(rng: np.random.Generator) -> sz.Polynomial:
    """Draw a model of 3 to 8 spins with terms of up to 6 spins, at least one of three or more; any signs and sizes."""
    n = int(rng.integers(3, 9))
    share_of_extremes = rng.choice([0.0, 0.0, 0.3, 0.7])
    sizes = [int(rng.integers(3, min(n, 6) + 1)), *rng.integers(1, min(n, 6) + 1, int(rng.integers(0, 12))).tolist()]
    scopes = [tuple(rng.choice(n, size, replace=False).tolist()) for size in sizes]
    weights = np.clip(_numbers(rng, share_of_extremes, len(scopes)), -LARGEST_VALUE, LARGEST_VALUE)
    weights[0] = weights[0] or 1.0
    offset = float(_numbers(rng, share_of_extremes, 1)[0]) * rng.choice([0.0, 0.0, 1.0])
    model = sz.Polynomial(dict(zip(scopes, weights.tolist(), strict=True)), n, offset)
    return model if model.higher.number else random_polynomial(rng)


def _numbers(rng: np.random.Generator, share_of_extremes: float, *shape: int) -> np.ndarray:
    """Draw numbers of one size or of several, of one or both signs, some of them equal, some of them zero."""
    sizes = np.array([rng.choice(EXTREME if rng.random() < share_of_extremes else ORDINARY) for _ in range(4)])
    x = {
        "uniform": lambda: rng.uniform(-1.0, 1.0, shape),
        "normal": lambda: rng.normal(size=shape),
        "whole": lambda: rng.integers(-2, 3, shape).astype(float),
    }[rng.choice(["uniform", "uniform", "normal", "whole"])]()
    x *= rng.choice(sizes, shape) if rng.random() < 0.4 else sizes[0]
    x *= rng.random(shape) < rng.choice([0.3, 0.7, 1.0, 1.0])
    sign = rng.choice([0.0, 0.0, 1.0, -1.0])
    return x if sign == 0.0 else sign * np.abs(x)


# --- methods --------------------------------------------------------------------------------------------------------

# Few rounds, states and cells: what is tested is what they prove, not how close they come.
METHODS: dict[str, Method] = {
    "auto": sz.Auto(work=1e6),
    "auto, nothing exact": sz.Auto(work=1e6, exclude=["exact"]),
    "exact": sz.Exact(),
    "exact, elimination": sz.Exact(algorithm="elimination"),
    "quadrature": sz.Quadrature(max_nodes=100_000),
    "low_rank": sz.LowRank(max_cells=100_000),
    "mps": sz.MatrixProduct(),
    "mps, narrow": sz.MatrixProduct(bond=1, samples=0),
    "annealing": sz.Annealing(population=20, runs=2),
    "states": sz.States(population=20, runs=2, quenches=20),
    "spectral": sz.Spectral(restarts=1, tol=1e-3),
    "spectral, zero": sz.Spectral(diagonal="zero"),
    "spectral, max_eigenvalue": sz.Spectral(diagonal="max_eigenvalue"),
    "spectral, diagonally_dominant": sz.Spectral(diagonal="diagonally_dominant"),
    "bp": sz.BeliefPropagation(max_iter=20),
    "ep": sz.ExpectationPropagation(restarts=1),
    "mf": sz.MeanField(max_iter=50),
    "mf, blocks": sz.MeanField(block_width=2, start="annealed", max_iter=20),
    "mbe": sz.MiniBucket(ibound=3),
    "mbe, lower": sz.MiniBucket(ibound=3, bound="lower"),
    "wmbe": sz.WeightedMiniBucket(ibound=3, max_iter=2),
    "wmbe, lower": sz.WeightedMiniBucket(ibound=3, max_iter=3, bound="lower"),
    "trw": sz.TreeReweighted(max_iter=20),
    "sdp": sz.SDPBound(),
    "convex_mf": sz.ConvexMeanField(),
}
# Those that take terms of three and more spins; tables of mini-buckets have room for the largest.
METHODS_FOR_TERMS: dict[str, Method] = {
    "auto": METHODS["auto"],
    "auto, nothing exact": METHODS["auto, nothing exact"],
    "exact": METHODS["exact"],
    "exact, elimination": METHODS["exact, elimination"],
    "exact, enumeration": sz.Exact(algorithm="enumeration"),
    "exact, slices": sz.Exact(algorithm="elimination", max_memory=8 * 256),
    "annealing": METHODS["annealing"],
    "states": METHODS["states"],
    "bp": METHODS["bp"],
    "mf": METHODS["mf"],
    "mbe": sz.MiniBucket(ibound=6),
    "mbe, lower": sz.MiniBucket(ibound=6, bound="lower", partition="content"),
    "wmbe": sz.WeightedMiniBucket(ibound=6, max_iter=2),
    "wmbe, lower": sz.WeightedMiniBucket(ibound=6, max_iter=3, bound="lower"),
}
# These, and the marginals of all methods, take half of the time: every tenth model will do.
SELDOM = {
    "auto, nothing exact",
    "annealing",
    "ep",
    "mps",
    "spectral, zero",
    "spectral, max_eigenvalue",
    "spectral, diagonally_dominant",
}
EVERY = 10
# The dynamic program, where the quadrature hands over to it, proves as much on a coarser grid.
HANDOVERS = ("spectralz.methods.spectral.CELLS_FOR_HANDOVER", "spectralz.methods.quadrature.CELLS_FOR_HANDOVER")
CELLS_FOR_HANDOVER = 20_000


# --- refusals -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Refusal:
    """What a method may refuse: an error whose sentence has these words, on a model for which ``is_due`` holds."""

    error: type[SpectralzError]
    words: str
    is_due: Callable[[sz.Ising], bool]


def term_count(model: sz.Ising) -> int:
    """Return how many terms of rank 1 a model has at most, besides its diagonal."""
    if model.factors is not None:
        return int(np.count_nonzero(model.factors[0]))
    return max(model.n - 1, 0)  # an eigenvalue less than n, if it is taken off the diagonal


def has_negative_term(model: sz.Ising) -> bool:
    return model.factors is None or bool(np.any(model.factors[0] < 0.0))


# What is said of a rank, by both methods of low rank.
HIGH_RANK = (
    Refusal(ModelError, "raise max_rank", lambda model: term_count(model) > 3),
    Refusal(ModelError, "rank-1 terms; max_rank is", lambda model: term_count(model) > 3),
    # Terms that are found in a matrix, or combined, are rounded. What that may change grows with the weights; or a few
    # of many terms are left out.
    Refusal(ModelError, "only up to a residual", lambda model: model.storage.total > 1e3 or term_count(model) > 3),
)
# Methods that are not here refuse nothing.
REFUSALS: dict[str, tuple[Refusal, ...]] = {
    "quadrature": (
        *HIGH_RANK,
        # Nodes grow with the size of the couplings, to the power of the rank.
        Refusal(TooLargeError, "max_nodes", lambda model: model.storage.total > 0.1),
        Refusal(TooLargeError, "for marginals", lambda model: has_negative_term(model) and model.storage.total > 10.0),
    ),
    # With the steps of the paper a second direction is too much, however small the couplings are.
    "low_rank": (*HIGH_RANK, Refusal(TooLargeError, "max_cells", lambda model: term_count(model) > 1)),
    # Means need more tables at once, and there is no room for them.
    "exact, slices": (Refusal(TooLargeError, "exact marginals need", lambda model: model.n > 4),),
}
# Of many models, the share that a method must answer at least.
LEAST_ANSWERED = {"quadrature": 0.4, "low_rank": 0.4, "exact, slices": 0.5}


def is_predicted(name: str, model: sz.Ising, error: Exception) -> bool:
    """Say whether a method may refuse a model with this error; NaN is an error too, and never predicted."""
    return any(
        type(error) is refusal.error and refusal.words in str(error) and refusal.is_due(model)
        for refusal in REFUSALS.get(name, ())
    )


# --- what is owed ---------------------------------------------------------------------------------------------------

# What answers that are called exact may be off, relative to log Z if that is large.
LARGEST_ERROR = 1e-9
# The same of means, and a little for the truth, which is rounded to floats.
LARGEST_MEAN_ERROR = 1.1e-9
# What follows the name of a method whose marginals are asked for.
MARGINALS = ", marginals"

Solve = Callable[[sz.Ising], sz.Estimate | sz.Marginals]


def broken_promises(
    models: Mapping[int, sz.Ising],
    methods: Mapping[str, Method] = METHODS,
    truths: Mapping[int, mpmath.mpf] | None = None,
) -> list[str]:
    """Return what methods say of numbered models that is not so, and what they refuse that they should answer.

    ``truths`` are their log Z, where these are not those of the numbers in the model.
    """
    broken: list[str] = []
    asked: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for number, model in models.items():
        truth = states.log_z(model) if truths is None else truths[number]
        for name, solve in _questions(number, methods):
            asked[name] += 1
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    warnings.simplefilter("ignore", InaccurateWarning)  # an answer in doubt, which says so
                    answer = solve(model)
                if isinstance(answer, sz.Marginals):
                    sentences = [*wrong_claims(answer.estimate, model, truth), *wrong_means(answer, model)]
                else:
                    sentences = wrong_claims(answer, model, truth)
            except Exception as error:
                refused[name] += 1
                is_fine = is_predicted(name.removesuffix(MARGINALS), model, error)
                sentences = [] if is_fine else [f"{type(error).__name__}, {error}"]
            broken += [f"model {number}, {name}: {sentence}" for sentence in sentences]
    for name, count in asked.items():
        least = LEAST_ANSWERED.get(name.removesuffix(MARGINALS), 1.0)
        if count - refused[name] < least * count:
            broken.append(f"{name}: answered {count - refused[name]} of {count} models")
    return broken


def _questions(number: int, methods: Mapping[str, Method]) -> Iterator[tuple[str, Solve]]:
    """Yield what is asked about a model: a name, and what answers."""
    for name, method in methods.items():
        if name not in SELDOM or number % EVERY == 0:
            yield name, method.run
        if method.gives_marginals and number % EVERY == 0:
            yield name + MARGINALS, method.run_marginals


def wrong_claims(result: sz.Estimate, model: sz.Ising, truth: mpmath.mpf) -> list[str]:
    """Return what an answer claims that is not so; bounds are compared without any slack."""
    wrong = [f"lower bound {result.lower!r}"] if result.lower is not None and result.lower > truth else []
    wrong += [f"upper bound {result.upper!r}"] if result.upper is not None and result.upper < truth else []
    # The answer itself is rounded, what is proven is beside it.
    total = abs(model.offset) + float(np.abs(model.field).sum()) + model.storage.total + model.higher.total
    beyond, rounding = result.log_z - truth, 1e-12 * max(1.0, total)
    is_wrong = {
        sz.Kind.EXACT: abs(beyond) > LARGEST_ERROR * max(1.0, abs(truth)),
        sz.Kind.LOWER_BOUND: beyond > rounding,
        sz.Kind.UPPER_BOUND: beyond < -rounding,
    }
    wrong += [f"{result.kind} {result.log_z!r}"] if is_wrong.get(result.kind, False) else []
    values = (result.log_z, result.std_error, result.lower, result.upper)
    wrong += [] if all(math.isfinite(x) for x in values if x is not None) else [f"not a number in {values}"]
    return [f"{words}, truth {mpmath.nstr(truth, 25)}" for words in wrong]


def wrong_means(found: sz.Marginals, model: sz.Ising) -> list[str]:
    """Return what marginals claim that is not so."""
    wrong = []
    for name in ("mean", "pair_mean"):
        if not np.all(np.abs(getattr(found, name)) <= 1.0):  # nor is a NaN
            wrong.append(f"{name} beyond 1, {getattr(found, name)}")
    if found.term_mean is not None and not np.all(np.abs(found.term_mean) <= 1.0):
        wrong.append(f"term_mean beyond 1, {found.term_mean}")
    if found.kind is sz.Kind.EXACT and found.terms is not None:
        off = np.abs(found.term_mean - states.means_of(model, found.terms)).max()
        return wrong if off <= LARGEST_MEAN_ERROR else [*wrong, f"exact means of terms are off by {off:.2g}"]
    if found.kind is sz.Kind.EXACT:
        _, mean, pair_mean = states.solve(model)
        differences = [*(found.mean - mean), *(found.pair_mean - pair_mean[tuple(found.edges.T)])]
        if not np.all(np.abs(differences) <= LARGEST_MEAN_ERROR):
            wrong.append(f"exact means are off by {np.abs(differences).max():.2g}")
    return wrong


def assert_holds(model: sz.Ising, method: str, truth: mpmath.mpf, **options: Any) -> sz.Estimate:
    """Run a method with the options of the table and these, and compare what it claims with the truth."""
    found = replace(METHODS[method], **options).run(model)
    assert wrong_claims(found, model, truth) == []
    return found
