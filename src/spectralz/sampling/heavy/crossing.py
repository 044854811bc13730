"""Cross states: where two of them differ in separate regions, each region is taken from the state that does better.

Flipping a set of spins in a state changes its log-weight by a sum over the set's connected components, since spins of
different components are not coupled. On a sparse graph two good states often differ in dozens of them. Taking the best
of each, which no path of single flips does, gives a state at least as heavy as both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.kernels.terms import NO_TERMS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.coupling import Couplings
    from spectralz.kernels.terms import Terms
    from spectralz.model import FloatArray

# With fewer regions than this, states are mixed otherwise.
FEWEST_REGIONS = 4


def graph_of(couplings: Couplings) -> Any:
    """Return the graph of sparse couplings as a matrix of scipy."""
    import scipy.sparse as sp

    n = len(couplings.indptr) - 1
    return sp.csr_array((couplings.data, couplings.indices, couplings.indptr), shape=(n, n))


def regions_of(couplings: Couplings, spins: NDArray[np.int64], higher: Terms = NO_TERMS) -> NDArray[np.int64]:
    """Return the number of the connected component of each of some spins, on the graph of these spins alone.

    Terms of three and more spins connect those of them.
    """
    from scipy.sparse import csgraph

    if couplings.is_dense:
        return np.zeros(len(spins), dtype=np.int64)
    graph = graph_of(couplings)
    if higher.number:
        import scipy.sparse as sp

        is_one = np.zeros(graph.shape[0], dtype=np.bool_)
        is_one[spins] = True
        first, second = higher.chains(is_one[higher.spin])
        graph = graph + sp.coo_array((np.ones(len(first)), (first, second)), graph.shape).tocsr()
    _, labels = csgraph.connected_components(graph[spins][:, spins], directed=False)
    return np.asarray(labels, dtype=np.int64)


def best_of_both(
    theta: FloatArray,
    couplings: Couplings,
    x: NDArray[np.int8],
    other: NDArray[np.int8],
    higher: Terms = NO_TERMS,
) -> NDArray[np.int8]:
    """Return ``x`` with every region taken from the other state that makes it heavier."""
    spins = np.flatnonzero(x != other)
    if not len(spins):
        return x
    regions = regions_of(couplings, spins, higher)
    # The field that a spin has from all that is the same in both states.
    common = np.where(x == other, x, 0).astype(np.float64)
    fields = (theta + couplings.times(common))[spins]
    gains: FloatArray = np.asarray(np.bincount(regions, weights=(other[spins] - x[spins]) * fields), dtype=np.float64)
    if higher.number:
        gains = gains + _gains_of_terms(higher, x, other, spins, regions)
    taken = spins[gains[regions] > 0.0]
    if not len(taken):
        return x
    child = x.copy()
    child[taken] = other[taken]
    return child


def _gains_of_terms(
    higher: Terms, x: NDArray[np.int8], other: NDArray[np.int8], spins: NDArray[np.int64], regions: NDArray[np.int64]
) -> FloatArray:
    """Return what each region gains by terms: those with an odd number of its spins turn their signs.

    The spins of a term that differ share it, and so are all in one region.
    """
    region = np.full(len(x), -1)
    region[spins] = regions
    of_term = np.maximum.reduceat(region[higher.spin], higher.start[:-1])
    before, after = higher.products(np.stack([x, other]))
    turned = np.flatnonzero(before != after)
    gains = -2.0 * higher.weight[turned] * before[turned]
    return np.asarray(np.bincount(of_term[turned], weights=gains, minlength=int(regions.max()) + 1), dtype=np.float64)


def mixed(
    couplings: Couplings, x: NDArray[np.int8], other: NDArray[np.int8], rng: np.random.Generator
) -> NDArray[np.int8]:
    """Return a state that has parts of two states at random.

    Parts are the regions in which they differ, if there are several; otherwise, on a sparse graph, all that is near
    some spin; and single spins where all are coupled.
    """
    child, spins = x.copy(), np.flatnonzero(x != other)
    if not len(spins):
        return child
    if couplings.is_dense:
        taken = spins[rng.random(len(spins)) < 0.5]
    else:
        regions = regions_of(couplings, spins)
        count = int(regions.max()) + 1
        has_many = count >= FEWEST_REGIONS
        taken = spins[(rng.random(count) < 0.5)[regions]] if has_many else _near_one_spin(couplings, rng)
    child[taken] = other[taken]
    return child


def _near_one_spin(couplings: Couplings, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return up to half of all spins, those nearest to one of them."""
    from scipy.sparse import csgraph

    n = len(couplings.indptr) - 1
    nearest = csgraph.breadth_first_order(graph_of(couplings), rng.integers(n), return_predecessors=False)
    return np.asarray(nearest[: rng.integers(1, n // 2 + 2)], dtype=np.int64)
