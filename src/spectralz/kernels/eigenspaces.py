"""Choose one basis for every eigenspace, whatever basis the library returns.

The eigenvectors of equal eigenvalues may be any orthonormal basis of their space. Which one is returned depends on
rounding, on the library and on its number of threads. Here each space gets a basis that depends on the space alone: the
coordinate vector closest to the space is projected into it, then the one closest to what is left, and so on. In a tie
the lowest spin is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray

# Eigenvalues closer than this share of the largest count as equal. They are not known more accurately if the diagonal
# solves an SDP to a relative gap of 1e-6.
EQUAL = 1e-6
# The last spin counts less than the first by this share. That is more than rounding, so rounding never decides a tie.
PREFERENCE = 0.01


def canonical_basis(values: FloatArray, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenpairs, values in ascending order, with the canonical basis of each eigenspace.

    A new vector's value is its Rayleigh quotient, so that the sum of the values stays the same.
    """
    new_values, new_vectors = values.copy(), vectors.copy()
    make_canonical(new_values, new_vectors)
    return new_values, new_vectors


def make_canonical(values: FloatArray, vectors: FloatArray) -> None:
    """Do the same in place: of tens of thousands of spins a copy takes as much room as the model."""
    from scipy.linalg import qr

    if len(values) < 2:
        return
    is_next = np.diff(values) > EQUAL * max(-values[0], values[-1])
    begins = np.concatenate([[0], np.flatnonzero(is_next) + 1, [len(values)]])
    weight = 1.0 - PREFERENCE * np.arange(len(vectors)) / len(vectors)
    for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
        if end - begin == 1:
            continue
        space = vectors[:, begin:end]
        # Row i holds the coordinates of spin i's projection; the pivots are spins, and Q is the basis in coordinates.
        turn, _, _ = qr((weight[:, None] * space).T, mode="economic", pivoting=True, check_finite=False)
        vectors[:, begin:end] = space @ turn
        values[begin:end] = values[begin:end] @ turn**2
