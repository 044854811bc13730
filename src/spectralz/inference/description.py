"""What is worth knowing of a model before solving it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.inference.asked import Asked
from spectralz.methods import Exact
from spectralz.result import Description

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from spectralz.model import RBM, Ising

# What takes a few seconds at most.
MOST_EDGES_TO_PEEL = 1_000_000
MOST_EDGES_TO_SWEEP = 20_000

__all__ = ["describe"]


def describe(model: Ising | RBM, *, given: Mapping[Any, int] | None = None) -> Description:
    """Return what is worth knowing of a model before solving it: size, strength, structure, and what exact would cost.

    ``treewidth_lower`` and ``treewidth_upper`` enclose the treewidth; ``exact_memory`` and ``exact_terms`` are those of
    log Z by the best order found. What could not be had in seconds, or by no machine, is None.
    With evidence (``given``, as in :func:`log_z`) it is the model of the free spins.

    Examples
    --------
    >>> import spectralz as sz
    >>> about = sz.describe(sz.generators.grid(side=5, strength=1.0, seed=0))
    >>> about.edges, about.components, about["treewidth_lower"], about["treewidth_upper"]
    (40, 1, 2, 5)
    """
    free = Asked.about(model, given).free
    n = free.n
    edges, J = free.edges()
    degree = np.bincount(edges.ravel(), minlength=n)
    components = free.components()
    # An answer nobody can afford is still worth predicting; what counts is that the search for orders ends.
    plan = Exact(algorithm="elimination", max_memory=2**63, max_terms=2**60).plan(free)
    known = plan.refusal is None
    widths = [_swept_width(n, edges, components), plan.width if known else None]
    return Description(
        spins=n,
        edges=len(edges),
        density=2.0 * len(edges) / (n * (n - 1)) if n > 1 else 0.0,
        degree_mean=float(degree.mean()) if n else 0.0,
        degree_max=int(degree.max(initial=0)),
        coupling_mean=float(np.abs(J).mean()) / 2.0 if len(J) else 0.0,
        coupling_max=float(np.abs(J).max(initial=0.0)) / 2.0,
        field_mean=float(np.abs(free.field).mean()) if n else 0.0,
        field_max=float(np.abs(free.field).max(initial=0.0)),
        offset=free.offset,
        trace=float(free.diagonal.sum()),
        storage=free.storage.word,
        components=len(components),
        largest_component=max((len(spins) for spins in components), default=0),
        is_forest=len(edges) == n - len(components),
        treewidth_lower=_degeneracy(n, edges),
        treewidth_upper=min((width for width in widths if width is not None), default=None),
        exact_order=" and ".join(plan.orders) if known else None,
        exact_memory=plan.memory if known else None,
        exact_terms=plan.terms if known else None,
    )


def _degeneracy(n: int, edges: NDArray[np.int64]) -> int:
    """Return a lower bound on the treewidth: the degeneracy, or of very many edges half the mean degree."""
    from spectralz.kernels.elimination.order import adjacency_of, degeneracy

    return degeneracy(range(n), adjacency_of(n, edges)) if len(edges) <= MOST_EDGES_TO_PEEL else -(-len(edges) // n)


def _swept_width(n: int, edges: NDArray[np.int64], components: list[NDArray[np.int64]]) -> int | None:
    """Return an upper bound on the treewidth from a sweep that only counts, or None where that would take long."""
    from spectralz.kernels.elimination.order import ORDERS, adjacency_of
    from spectralz.kernels.elimination.tree import EliminationTree

    if len(edges) > MOST_EDGES_TO_SWEEP:
        return None
    adjacency = adjacency_of(n, edges)
    swept = (ORDERS["banded"](spins.tolist(), adjacency, n) for spins in components)
    return max((EliminationTree.of_order(order[0], adjacency).width for order in swept if order), default=0)
