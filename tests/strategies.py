"""Hypothesis strategies for small models of every shape."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

import spectralz as sz


@st.composite
def models(draw: st.DrawFn, max_spins: int = 9, scales: tuple[float, ...] = (0.0, 1e-3, 1.0, 30.0)) -> sz.Ising:
    """Draw a model: any density down to none, dense or sparse, with diagonal and offset, weak to strong."""
    n = draw(st.integers(0, max_spins))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from(scales))
    A = np.triu(
        rng.uniform(-scale, scale, (n, n)) * (rng.random((n, n)) < draw(st.sampled_from([0.0, 0.2, 0.6, 1.0]))), 1
    )
    A = A + A.T
    if draw(st.booleans()):
        A += np.diag(rng.uniform(-1, 1, n))
    field = rng.uniform(-1, 1, n) * draw(st.sampled_from([0.0, 1.0, 20.0]))
    offset = draw(st.sampled_from([0.0, -3.25]))
    return sz.Ising(field, sp.csr_array(A) if draw(st.booleans()) else A, offset)


@st.composite
def low_rank_models(draw: st.DrawFn, max_spins: int = 9, max_rank: int = 2) -> sz.Ising:
    """Draw a model of rank 0 to ``max_rank`` plus a diagonal, as matrix or as factors, signs mixed, weak to strong."""
    n = draw(st.integers(0, max_spins))
    rank = draw(st.integers(0, max_rank))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    vectors = rng.normal(size=(rank, n)) * draw(st.sampled_from([0.05, 0.5, 1.0]))
    values = rng.choice([-1.0, 1.0], size=rank)
    field = rng.uniform(-1, 1, n) * draw(st.sampled_from([0.0, 1.0, 20.0]))
    diagonal = rng.uniform(-1, 1, n) * draw(st.sampled_from([0.0, 1.0]))
    offset = draw(st.sampled_from([0.0, -3.25]))
    # The diagonal of so few spins is not always determined by the rest, so a matrix keeps its own.
    if rank and draw(st.booleans()):
        return sz.Ising.from_factors(field, values, vectors, diagonal, offset)
    return sz.Ising(field, (values[:, None] * vectors).T @ vectors, offset)


@st.composite
def planar_models(draw: st.DrawFn, max_spins: int = 9, scales: tuple[float, ...] = (0.0, 1e-3, 1.0, 10.0)) -> sz.Ising:
    """Draw a planar model without fields: each spin is joined to up to two that are joined already."""
    n = draw(st.integers(0, max_spins))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from(scales))
    edges = [(0, 1)] if n > 1 else []
    for new in range(2, n):
        one, two = edges[rng.integers(len(edges))]
        edges += [(one, new), (two, new)][: rng.integers(1, 3)]
    kept = [edge for edge in edges if rng.random() < 0.9]
    J = rng.uniform(-scale, scale, len(kept))
    return sz.Ising.from_edges(n, kept, J, offset=draw(st.sampled_from([0.0, -3.25])))
