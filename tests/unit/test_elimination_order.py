from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spectralz as sz
from spectralz.kernels.elimination.best_order import RULES as ORDERS
from spectralz.kernels.elimination.best_order import best_order
from spectralz.kernels.elimination.order import adjacency_of, degeneracy
from spectralz.kernels.elimination.tree import EliminationTree, forest_of


def literal_separators(order, adjacency):
    """Eliminate by the definition: join all remaining neighbors of each vertex in turn."""
    graph = {v: set(adjacency[v]) for v in order}
    separators = {}
    for v in order:
        separators[v] = graph.pop(v)
        for u in separators[v]:
            graph[u] |= separators[v]
            graph[u] -= {u, v}
    return separators


def literal_min_fill(spins, adjacency):
    graph = {v: set(adjacency[v]) for v in spins}
    order = []
    while graph:

        def fill(v):
            around = sorted(graph[v])
            return sum(b not in graph[a] for k, a in enumerate(around) for b in around[k + 1 :])

        v = min(graph, key=lambda v: (fill(v), len(graph[v]), v))
        order.append(v)
        around = graph.pop(v)
        for u in around:
            graph[u] |= around
            graph[u] -= {u, v}
    return order


@st.composite
def connected_graphs(draw):
    n = draw(st.integers(1, 14))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tree = [(int(rng.integers(k)), k) for k in range(1, n)]
    extra = [(i, j) for j in range(n) for i in range(j) if rng.random() < draw(st.sampled_from([0.0, 0.1, 0.5]))]
    return n, adjacency_of(n, np.array(sorted(set(tree + extra)), dtype=np.int64).reshape(-1, 2))


@given(connected_graphs(), st.sampled_from(sorted(ORDERS)))
def test_the_tree_is_the_elimination_written_out(graph, name):
    n, adjacency = graph
    order, terms = ORDERS[name](list(range(n)), adjacency, n)
    assert sorted(order) == list(range(n))
    tree = EliminationTree.of_order(order, adjacency)
    assert tree.terms == terms
    # Post-order changes the order but not the fill.
    wanted = literal_separators(tree.order, adjacency)
    assert [set(s) for s in tree.separators] == [wanted[v] for v in tree.order]
    assert sorted(map(len, tree.separators)) == sorted(map(len, literal_separators(order, adjacency).values()))
    rank = {v: k for k, v in enumerate(tree.order)}
    for separator in tree.separators:
        assert separator == sorted(separator, key=rank.__getitem__)


@given(connected_graphs(), st.sampled_from(sorted(ORDERS)))
def test_live_tables_are_a_stack_of_the_predicted_height(graph, name):
    n, adjacency = graph
    tree = EliminationTree.of_order(ORDERS[name](list(range(n)), adjacency, n)[0], adjacency)
    stack, most = [], 0
    for step, separator in enumerate(tree.separators):
        assert sum(1 << len(tree.separators[s]) for s in stack) == tree.stack_heights()[step]
        most = max(most, tree.stack_heights()[step] + (1 << len(separator)))
        children = tree.children[step]
        assert stack[len(stack) - len(children) :] == children
        assert all(tree.separators[child][0] == tree.order[step] for child in children)
        del stack[len(stack) - len(children) :]
        if tree.slots[step] != step:
            assert stack[-1] == tree.slots[step]
            assert tree.separators[step] == tree.separators[stack[-1]]
        elif separator:
            stack.append(step)
    assert not stack
    assert tree.peak == most


@given(connected_graphs())
def test_min_fill_is_min_fill(graph):
    n, adjacency = graph
    assert ORDERS["min-fill"](list(range(n)), adjacency, n)[0] == literal_min_fill(range(n), adjacency)


@given(connected_graphs(), st.sampled_from(sorted(ORDERS)), st.integers(0, 5))
def test_an_order_that_grows_too_wide_is_given_up(graph, name, limit):
    n, adjacency = graph
    full = ORDERS[name](list(range(n)), adjacency, n)
    cut = ORDERS[name](list(range(n)), adjacency, limit)
    width = EliminationTree.of_order(full[0], adjacency).width
    if name == "banded":  # gives up by the size of its front, which its separators do not exceed
        assert width <= limit or cut is None
    else:
        assert cut == (full if width <= limit else None)


@given(connected_graphs())
def test_degeneracy_is_below_every_width(graph):
    n, adjacency = graph
    least = degeneracy(range(n), adjacency)
    for name in ORDERS:
        assert EliminationTree.of_order(ORDERS[name](list(range(n)), adjacency, n)[0], adjacency).width >= least


@pytest.mark.parametrize("side", [5, 10, 20])
def test_on_a_grid_the_banded_order_is_as_wide_as_a_side_and_wins(side):
    model = sz.generators.grid(side, 1.0, seed=0)
    adjacency = adjacency_of(model.n, model.edges()[0])
    trees = {
        name: EliminationTree.of_order(f(list(range(model.n)), adjacency, 60)[0], adjacency)
        for name, f in ORDERS.items()
    }
    assert trees["banded"].width == side
    if side >= 15:
        assert best_order(list(range(model.n)), adjacency, 1 << 40)[0] == "banded"
        assert trees["banded"].terms < min(trees["min-fill"].terms, trees["min-degree"].terms) / 5


def test_a_forest_keeps_its_trees_apart():
    trees = []
    for k, model in enumerate([sz.generators.grid(3, 1.0, seed=0), sz.generators.complete(4, 1.0, seed=0)]):
        adjacency = adjacency_of(model.n, model.edges()[0])
        shifted = [{v + 9 * k for v in around} for around in adjacency]
        names = [v + 9 * k for v in range(model.n)]
        whole = [set()] * (9 * k) + shifted
        trees.append(best_order(names, whole, 1 << 20)[1])
    forest = forest_of(trees)
    assert forest.terms == sum(tree.terms for tree in trees)
    assert forest.peak == max(tree.peak for tree in trees)
    assert forest.order == trees[0].order + trees[1].order


def test_sisters_with_one_separator_share_a_table():
    """The hidden spins of an RBM leave tables over all the visible ones; only one is ever kept."""
    model = sz.generators.rbm(visible=6, hidden=6, scale=1.0, seed=0)
    adjacency = adjacency_of(model.n, model.edges()[0])
    tree = best_order(list(range(12)), adjacency, 1 << 20, ["min-degree"])[1]
    assert tree.peak == 2 << 6


def test_random_ties_of_min_fill_are_still_min_fill_and_pay():
    """On large sparse graphs the best of several random orders is cheaper; it is found the same every time."""
    rng = np.random.default_rng(0)
    n = 200
    pairs = np.unique(np.sort(rng.integers(n, size=(350, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    adjacency = adjacency_of(n, pairs.astype(np.int64))
    spins = max(sz.Ising.from_edges(n, pairs, 1.0).components(), key=len).tolist()
    first = best_order(spins, adjacency, 1 << 40)[1]
    assert first == best_order(spins, adjacency, 1 << 40)[1]
    plain = min(ORDERS[name](spins, adjacency, n)[1] for name in ORDERS)
    assert first.terms < plain
    order, terms = ORDERS["min-fill"](spins, adjacency, 60, seed=3)
    graph = {v: set(adjacency[v]) for v in spins}
    for v in order:  # every spin has the least fill of all at its turn, whichever of the tied it is
        fill = {u: sum(b not in graph[a] for a in graph[u] for b in graph[u] if a < b) for u in graph}
        assert fill[v] == min(fill.values())
        around = graph.pop(v)
        for u in around:
            graph[u] |= around
            graph[u] -= {u, v}
    assert terms == EliminationTree.of_order(order, adjacency).terms
