"""Find the leading directions of a coupling, along which lie collective states that cooling may miss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.sparse import issparse

from spectralz._support import clock, costs, deadline
from spectralz.model.coupling.entries import coupling_of, symmetric

if TYPE_CHECKING:
    from spectralz.model import Coupling, FloatArray, Model

# Number of directions along which collective states are searched for.
DIRECTIONS = 2
# Beyond this many spins or entries the search takes longer than it is worth.
MOST_SPINS, MOST_ENTRIES = 200_000, 50_000_000
# A direction is only a starting point: a few digits suffice, with at most this many products with the coupling.
TOLERANCE = 1e-3
MOST_STEPS, STEPS_PER_LOOK = 60, 10
# Decimal places that are kept of a direction, whose entries are about 1.
DIGITS = 6
# A remainder this small relative to the coupling is rounding.
LEAST_REST = 1e-12
# Up to this many spins the coupling is fully diagonalized.
FEW_SPINS = 50


def leading_directions(storage: Coupling, count: int = DIRECTIONS) -> list[FloatArray]:
    """Return the eigenvectors of the largest positive eigenvalues, each of length sqrt(n), without the diagonal.

    None if no pair is coupled, if finding them would take long, or if the time is up before (``_support/clock.py``).
    """
    if storage.couples_nothing or storage.n > MOST_SPINS or storage.edge_count > MOST_ENTRIES:
        return []
    entries = storage.without_diagonal()
    largest = entries.largest
    if largest == 0.0:
        return []
    # Divided by the largest entry, so that no power of huge or tiny couplings overflows or underflows.
    with np.errstate(over="ignore"):  # older releases of numpy wrongly report this for tiny numbers
        scaled = entries.mapped(lambda entry: entry / largest)
    if storage.n <= FEW_SPINS:
        values, vectors = np.linalg.eigh(scaled.dense())
        values, vectors = values[::-1][:count], vectors[:, ::-1][:, :count]
    else:
        pairs = _by_lanczos(scaled.matrix, count)
        if pairs is None:
            return []
        values, vectors = pairs
    scale = math.sqrt(storage.n)
    # Rounding in linear algebra depends on memory layout; results would differ in the last digits.
    rounded = np.round(scale * vectors.T, DIGITS)
    return [vector for value, vector in zip(values, rounded, strict=True) if value > 0.0]


def collective_directions(model: Model, count: int = DIRECTIONS) -> list[FloatArray]:
    """Return the leading directions of a model's coupling.

    With terms of three and more spins, each of them counts as a coupling of its weight between any two of its spins. So
    the ordered states of terms that all want the same sign lie along the first direction or opposite to it.
    """
    if not model.higher.number:
        return leading_directions(model.storage, count)
    if model.n > MOST_SPINS or len(model.higher.spin) * model.higher.largest > MOST_ENTRIES:
        return []
    edges, J = model.edges()
    pairs, weights = model.higher.all_pairs()
    both, sizes = np.concatenate([edges, pairs]), np.concatenate([J, weights])
    return leading_directions(coupling_of(symmetric(model.n, both, sizes / 2.0)), count)


def _by_lanczos(matrix: Any, count: int) -> tuple[FloatArray, FloatArray] | None:
    """Return the largest eigenvalues and their vectors, as accurately as a few dozen products give them.

    Isolated eigenvalues, such as those of collective states, have converged by then. Within the bulk of a spectrum
    ARPACK would continue for hundreds of products, which are not needed here.
    """
    n = matrix.shape[0]
    entries = matrix.nnz if issparse(matrix) else n * n
    basis = np.empty((min(n, MOST_STEPS) + 1, n))
    start = np.random.default_rng(0).standard_normal(n)  # the same in every run
    basis[0] = start / np.linalg.norm(start)
    diagonal, beside, is_whole = [], [], False
    for step in range(len(basis) - 1):
        if deadline.is_past():
            break
        clock.charge(entries + costs.LANCZOS_SPIN * n)
        rest = np.asarray(matrix @ basis[step])
        diagonal.append(float(basis[step] @ rest))
        for _ in range(2):  # a second time, to remove what rounding left
            rest -= basis[: step + 1].T @ (basis[: step + 1] @ rest)
        beside.append(float(np.linalg.norm(rest)))
        is_whole = beside[-1] <= LEAST_REST * max(map(abs, diagonal))  # nothing is left in the span of the start
        if is_whole or (step + 1) % STEPS_PER_LOOK == 0:
            values, vectors = eigh_tridiagonal(diagonal, beside[:-1])
            last = slice(max(len(values) - count, 0), None)
            if is_whole or np.all(beside[-1] * np.abs(vectors[-1, last]) <= TOLERANCE * np.abs(values[last])):
                break
        basis[step + 1] = rest / beside[-1]
    if len(diagonal) < STEPS_PER_LOOK and not is_whole:  # the time is up
        return None
    values, vectors = eigh_tridiagonal(diagonal, beside[:-1])
    last = slice(-1, -count - 1, -1)
    return values[last], basis[: len(diagonal)].T @ vectors[:, last]
