"""Size, strength and structure of a model, and the cost of an exact answer, before solving it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectralz.inference.evidence import ModelWithEvidence
from spectralz.methods import Exact
from spectralz.methods.exact import ENTRY_BYTES
from spectralz.result import Description

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spectralz.model import RBM, IntArray, Ising, Model, Polynomial

# Models that take a few seconds at most: for a sweep that only counts, and for a full plan.
MOST_EDGES_TO_SWEEP = 20_000
MOST_SPINS_TO_PLAN = 50_000
# For larger models only the cost of eliminating spins of least degree first is counted, up to this width.
MOST_WIDTH_TO_COUNT = 36


def describe(model: Ising | RBM | Polynomial, *, given: Mapping[Any, int] | None = None) -> Description:
    """Return size, strength and structure of a model, and what an exact answer would cost, without solving it.

    ``treewidth_lower`` and ``treewidth_upper`` enclose the treewidth. ``exact_memory`` and ``exact_terms`` are the cost
    of log Z by the best order found. A value is None if it cannot be found in seconds, or if no machine could do it.
    Beyond 50,000 spins these numbers come from a quick count, and are None if it needs tables of more than 36 spins.

    Parameters
    ----------
    model
        The model: an Ising, an RBM or a Polynomial.
    given
        Evidence, as in :func:`log_z`: the model of the free spins is described.

    Returns
    -------
    Description
        The numbers as attributes, and as entries of a dict.

    Raises
    ------
    ModelError
        If ``model`` is not a model, or if ``given`` names a spin that it does not have.

    See Also
    --------
    Auto.choose : the method that would run.
    log_z : the answer itself.

    Examples
    --------
    >>> import spectralz as sz
    >>> about = sz.describe(sz.generators.grid(side=5, strength=1.0, seed=0))
    >>> about.edges, about.components, about["treewidth_lower"], about["treewidth_upper"]
    (40, 1, 2, 5)
    """
    conditioned = ModelWithEvidence.checked(model, given)
    free, left = conditioned.given, conditioned.free
    n = free.n
    edges, J = free.graph, free.edges()[1]
    sizes = np.abs(free.higher.weight)
    degree = np.bincount(edges.ravel(), minlength=n)
    components = free.components()
    cost = _cost(left)
    widths = [_swept_width(left.n, left.graph, left.components()), cost.width]
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
        trace=float(free.storage.diagonal.sum()),
        storage=free.storage.word,
        components=len(components),
        largest_component=max((len(spins) for spins in components), default=0),
        is_forest=len(edges) == n - len(components),
        treewidth_lower=_degeneracy(left),
        treewidth_upper=min((width for width in widths if width is not None), default=None),
        exact_order=cost.order,
        exact_memory=cost.memory,
        exact_terms=cost.terms,
        terms=free.higher.number,
        largest_term=free.higher.largest,
        term_mean=float(sizes.mean()) if len(sizes) else 0.0,
        term_max=float(sizes.max(initial=0.0)),
        constraints=len(free.constraints),
        presolve=conditioned.presolved.words,
    )


class _Cost(NamedTuple):
    """The width of an elimination, and the cost of the exact answer that would be made, as far as they are known."""

    width: int | None = None
    order: str | None = None
    memory: int | None = None
    terms: int | None = None


def _cost(model: Model) -> _Cost:
    """Predict the cost of an exact answer; for a large model by counting along one order."""
    if model.n > MOST_SPINS_TO_PLAN:
        rows = model.connections.for_kernels()
        if rows.is_dense:
            return _Cost()
        from spectralz.kernels.elimination.screening import count_min_degree

        count = count_min_degree(rows.indptr, rows.indices, MOST_WIDTH_TO_COUNT)
        if not count.is_narrow:
            return _Cost()
        # All tables at once are more than is needed.
        return _Cost(count.width, "min-degree", ENTRY_BYTES * int(count.terms), int(count.terms))
    done = whole = Exact().plan(model)
    if done.refusal is not None or done.enumerated or done.sliced:
        # The cost of an unaffordable answer is still worth predicting; but the search for orders must end.
        whole = Exact(algorithm="elimination", max_memory=2**63, max_terms=2**60).plan(model)
    if done.refusal is not None:
        done = whole
    if done.refusal is not None:
        return _Cost()
    width = whole.width if whole.refusal is None else None
    return _Cost(width, " and ".join(done.orders) or None, done.memory, done.terms)


def _degeneracy(model: Model) -> int:
    """Return a lower bound on the treewidth: the degeneracy."""
    from spectralz.kernels.elimination.screening import core_of

    if not model.connections.edge_count:
        return 0
    adjacency = model.connections.written_out.as_sparse().doubled()
    return int(core_of(adjacency.indptr, adjacency.indices))


def _swept_width(n: int, edges: IntArray, components: list[IntArray]) -> int | None:
    """Return an upper bound on the treewidth from a sweep that only counts, or None if that would take long."""
    from spectralz.kernels.elimination.order import ORDERS, adjacency_of
    from spectralz.kernels.elimination.tree import EliminationTree

    if len(edges) > MOST_EDGES_TO_SWEEP:
        return None
    adjacency = adjacency_of(n, edges)
    swept = (ORDERS["banded"](spins.tolist(), adjacency, n) for spins in components)
    return max((EliminationTree.of_order(order[0], adjacency).width for order in swept if order), default=0)
