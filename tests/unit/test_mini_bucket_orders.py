from __future__ import annotations

import heapq
import itertools

import numpy as np
import pytest

import spectralz as sz
from spectralz.kernels.elimination.order import adjacency_of, min_degree
from spectralz.kernels.forest import post_order
from spectralz.kernels.mini_buckets.cover import cover_by_scope
from spectralz.kernels.mini_buckets.order import MOST_SPINS_FOR_SEVERAL, orders_of
from tests.reference import mini_buckets


def narrow_order(n, edges, limit):
    """Sets and a heap: fewest neighbors first, which are joined if they are at most ``limit``."""
    graph = dict(enumerate(adjacency_of(n, edges)))
    heap = [(len(neighbors), v) for v, neighbors in graph.items()]
    heapq.heapify(heap)
    order = []
    while heap:
        degree, v = heapq.heappop(heap)
        if v not in graph or len(graph[v]) != degree:
            continue
        order.append(v)
        separator = graph.pop(v)
        for u in separator:
            graph[u] |= separator if degree <= limit else set()
            graph[u] -= {u, v}
            heapq.heappush(heap, (len(graph[u]), u))
    return order


def order_of(model, name, ibound):
    edges, _ = model.edges()
    return orders_of(name, model.components(), edges, np.zeros(model.n), ibound)[name].tolist()


def star_of_rings():
    """A hub with very many neighbors, whose list has to grow."""
    ring = [(i, i % 60 + 1) for i in range(1, 61)]
    return sz.Ising.from_edges(121, [*ring, *((0, i) for i in range(1, 61)), *((i, i + 60) for i in range(1, 61))], 0.1)


GRAPHS = {
    "grid": sz.generators.grid(9, 1.0, seed=0),
    "sparse": sz.generators.erdos_renyi(150, 0.02, 1.0, seed=1),
    "denser": sz.generators.erdos_renyi(60, 0.2, 1.0, seed=2),
    "complete": sz.generators.complete(12, 1.0, seed=3),
    "hub": star_of_rings(),
    "apart": sz.Ising.from_edges(9, [(0, 5), (5, 7), (7, 0), (2, 8)], 1.0),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("ibound", [2, 3, 6, 10])
def test_the_narrow_order_is_the_literal_one(name, ibound):
    model = GRAPHS[name]
    assert order_of(model, "narrow", ibound) == narrow_order(model.n, model.edges()[0], ibound - 1)


@pytest.mark.parametrize("name", ["grid", "denser", "hub"])
def test_min_degree_is_that_of_exact_elimination(name):
    model = GRAPHS[name]
    adjacency = adjacency_of(model.n, model.edges()[0])
    assert order_of(model, "min-degree", 4) == min_degree(range(model.n), adjacency, model.n)[0]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("ibound", [2, 4, 200])
def test_the_cover_is_first_fit_and_its_sequence_post_order(name, ibound):
    model = GRAPHS[name]
    edges, _ = model.edges()
    order = order_of(model, "narrow", min(ibound, 10))
    cover = cover_by_scope(order, edges, ibound)
    assert cover.buckets(edges) == mini_buckets.first_fit(model, order, ibound)
    start, child = cover.children
    children = [child[a:b].tolist() for a, b in itertools.pairwise(start)]
    roots = np.flatnonzero(cover.parent < 0).tolist()
    assert cover.sequence.tolist() == post_order(cover.sizes.tolist(), children, roots, in_place=True)


def test_large_graphs_have_one_order_unless_a_front_is_narrow():
    size = MOST_SPINS_FOR_SEVERAL // 4 + 1
    strip = sz.Ising.from_edges(
        4 * size,
        [*((i, i + 4) for i in range(4 * size - 4)), *((i, i + 1) for i in range(4 * size) if i % 4 < 3)],
        0.1,
    )
    edges, _ = strip.edges()
    for ibound, names in ((5, {"narrow", "banded"}), (4, {"narrow"})):
        assert set(orders_of("best", strip.components(), edges, np.zeros(strip.n), ibound)) == names
    assert sz.log_z(strip, "wmbe", ibound=5).kind is sz.Kind.EXACT
