from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralz as sz
from spectralz.errors import MissingDependencyError, OptionError
from spectralz.kernels.elimination import annealed_order as annealing
from spectralz.kernels.elimination.best_order import Search, cheapest_order
from spectralz.kernels.elimination.contraction import order_of_contraction
from spectralz.kernels.elimination.order import ORDERS, adjacency_of
from spectralz.kernels.elimination.tree import EliminationTree
from tests.reference import states
from tests.unit.test_elimination_order import connected_graphs, literal_separators


@given(connected_graphs(), st.integers(0, 100))
@settings(max_examples=60)
def test_turned_trees_are_those_of_their_orders(graph, seed):
    """However the tree was turned, its separators are those of eliminating by the definition."""
    n, adjacency = graph
    order = np.random.default_rng(seed).permutation(n).tolist()
    spins = list(range(n))
    tree = annealing._Tree.of_order(order, spins, adjacency)
    cost = annealing._anneal(tree, np.array([0.5, 1.0]), 5, 60, seed)
    best = annealing._order_of(spins, tree.best_parent)
    assert sorted(best) == list(range(n))
    widths = [len(separator) for separator in literal_separators(best, adjacency).values()]
    wanted = sum(2.0**width for width in widths) * 2.0 ** (annealing.PRICE_OF_WIDTH * max(widths))
    assert cost == pytest.approx(wanted, rel=1e-12)
    # Where the walk ended, too, and in every bit.
    last = literal_separators(annealing._order_of(spins, tree.parent), adjacency)
    for v in range(n):
        bits = sum(int(word) << (64 * k) for k, word in enumerate(tree.separator[v].tolist()))
        assert {u for u in range(n) if bits >> u & 1} == last[v]
        assert tree.width[v] == len(last[v])


@given(connected_graphs())
@settings(max_examples=30)
def test_small_graphs_come_out_as_narrow_as_any_order(graph):
    """The least width of all orders, by dynamic programming over the sets of eliminated spins."""
    n, adjacency = graph
    n = min(n, 9)
    adjacency = [{u for u in adjacency[v] if u < n} for v in range(n)]

    def reached(v, gone):
        seen, stack = {v}, [v]
        while stack:
            for u in adjacency[stack.pop()]:
                if u not in seen:
                    seen.add(u)
                    if gone >> u & 1:
                        stack.append(u)
        return sum(u != v and not gone >> u & 1 for u in seen)

    least = [0] + [math.inf] * ((1 << n) - 1)
    for gone in range(1 << n):
        for v in range(n):
            if not gone >> v & 1:
                after = gone | 1 << v
                least[after] = min(least[after], max(least[gone], reached(v, gone)))
    order = annealing.annealed_order([list(range(n))], adjacency, 20_000, 60, lambda _: None)
    assert EliminationTree.of_order(order, adjacency).width == least[-1]


def plan(model, **options):
    return sz.Exact(max_memory=2**60, max_terms=2**50, **options).plan(model)


@pytest.mark.slow
def test_the_search_finds_narrow_orders():
    """Known widths: a torus of 12 x 12 takes 23, and the rules of thumb find these random graphs at 25 and 32."""
    torus = sz.generators.square(12, 12, 1.0, seed=0, periodic=True)
    assert plan(torus, search=4_000_000).width <= 23
    for n, width, steps in ((150, 22, 2_000_000), (200, 28, 4_000_000)):
        model = sz.generators.random_regular(n, 3, 1.0, seed=0)
        assert plan(model, search=0).width > width + 1
        assert plan(model, search=steps).width <= width
    kings = sz.generators.kings(14, 14, 1.0, seed=0)
    assert plan(kings).width <= 17


@pytest.mark.slow
def test_a_chimera_graph_takes_its_row_sweep():
    model = sz.generators.chimera(5, 5, 1.0, seed=0)
    assert plan(model, search=0).width <= 24
    assert plan(model, search=10_000_000).width <= 20


def test_the_search_is_the_same_every_time_and_no_search_is_none():
    model = sz.generators.random_regular(60, 3, 1.0, seed=1)
    first, second = (plan(model, search=100_000).tree.order for _ in range(2))
    assert first == second
    assert plan(model, search=0).orders != ("annealed",)
    assert plan(model, order="min-fill").orders == ("min-fill",)
    assert plan(model, order="min-fill", search=100_000).orders == ("annealed",)


def test_the_search_is_short_where_the_sum_is():
    graph = adjacency_of(30, sz.generators.random_regular(30, 3, 1.0, seed=0).edges()[0])
    search = Search(reach=40)
    assert search.steps_for(2**12, 30) == 0
    assert 0 < search.steps_for(2**24, 30) < search.steps_for(2**31, 30) == search.steps_for(2**40, 30)
    assert search._replace(most_time=1e6).steps_for(2**30, 30) < search.steps_for(2**30, 30) / 100
    name, _ = cheapest_order(list(range(30)), graph, 1 << 30, tuple(ORDERS), search)
    assert name != "annealed"


@pytest.mark.parametrize("seed", range(5))
def test_any_given_order_gives_the_same_log_z(seed):
    model = sz.generators.erdos_renyi(11, 0.4, 1.0, seed=seed)
    wanted, mean, _ = states.solve(model)
    order = np.random.default_rng(seed).permutation(11)
    for steps in (order, order.tolist(), tuple(order.tolist())):
        result = sz.log_z(model, "exact", order=steps, algorithm="elimination")
        assert result.lower <= wanted <= result.upper
    found = sz.marginals(model, "exact", order=order.tolist(), algorithm="elimination")
    assert np.allclose(found.mean, mean, rtol=0, atol=1e-11)


def test_a_given_order_is_followed():
    model = sz.generators.grid(3, 1.0, seed=0)
    order = [4, 0, 1, 2, 3, 5, 6, 7, 8]  # the middle first, which leaves a table over its four neighbors
    found = sz.Exact(order=order, algorithm="elimination").plan(model)
    adjacency = adjacency_of(9, model.edges()[0])
    wanted = literal_separators(order, adjacency)
    assert {v: set(s) for v, s in zip(found.tree.order, found.tree.separators, strict=True)} == wanted
    assert found.orders == ("given",)
    with pytest.raises(OptionError, match="names 9 spins; the model has 4"):
        sz.log_z(sz.generators.grid(2, 1.0, seed=0), "exact", order=order)


def test_an_order_from_a_contraction():
    model = sz.generators.grid(3, 1.0, seed=0)
    pairs = [tuple(pair) for pair in model.edges()[0].tolist()]
    path = [(0, 1)] + [(k, len(pairs) + k - 2) for k in range(2, len(pairs))]  # one edge after the other
    order = order_of_contraction(pairs, path)
    assert sorted(order) == list(range(9))
    # Spin v is summed out with its last edge, so in the order of these.
    last = [max(k for k, pair in enumerate(pairs) if v in pair) for v in order]
    assert last == sorted(last)
    assert sz.log_z(model, "exact", order=order).log_z == pytest.approx(sz.log_z(model).log_z, rel=1e-13)


def test_cotengra_is_asked_for_by_its_extra():
    try:
        import cotengra  # noqa: F401
    except ImportError:
        with pytest.raises(MissingDependencyError, match=r"spectralz\[orders\]"):
            sz.log_z(sz.generators.grid(3, 1.0, seed=0), "exact", order="cotengra")
    else:
        model = sz.generators.random_regular(40, 3, 1.0, seed=0)
        found = sz.log_z(model, "exact", order="cotengra")
        assert found.details["orders"] == ("cotengra",)
        assert found.log_z == pytest.approx(sz.log_z(model, "exact").log_z, rel=1e-13)
