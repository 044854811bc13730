"""Models from real objects of other libraries, state by state against their own energies."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import spectralz as sz
from spectralz.errors import MissingDependencyError, ModelError
from tests.reference import states
from tests.strategies import models

BETAS = [1.0, 0.3, -2.0]
numbers = st.floats(-5, 5, allow_subnormal=False)
LABELS = ["a", "b", 3, (0, 1), "e"]


@st.composite
def energies(draw):
    """Return labels, linear biases and quadratic biases by label."""
    n = draw(st.integers(0, 5))
    labels = LABELS[:n]
    linear = {name: draw(numbers) for name in labels}
    pairs = [(u, v) for k, u in enumerate(labels) for v in labels[k + 1 :]]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return labels, linear, {pair: draw(numbers) for pair in chosen}


# dimod.


@given(energies(), numbers, st.sampled_from(["SPIN", "BINARY"]), st.sampled_from(BETAS))
def test_every_energy_of_a_bqm(parts, offset, vartype, beta):
    dimod = pytest.importorskip("dimod", reason="dimod comes with the extra [dimod]")
    _, linear, quadratic = parts
    bqm = dimod.BinaryQuadraticModel(linear, quadratic, offset, vartype)
    model = sz.from_dimod(bqm, beta=beta)
    assert model.names == tuple(bqm.variables)
    for x in states.all_states(model.n):
        values = x if vartype == "SPIN" else (1 + x) // 2
        energy = float(bqm.energy(dict(zip(model.names, values.tolist(), strict=True))))
        assert model.log_weight(x) == pytest.approx(-beta * energy, abs=1e-9)


@given(models(max_spins=5))
def test_every_log_weight_as_an_energy_of_dimod(model):
    pytest.importorskip("dimod", reason="dimod comes with the extra [dimod]")
    bqm = model.to_dimod()
    assert list(bqm.variables) == list(range(model.n))
    X = states.all_states(model.n)
    for x, weight in zip(X, np.atleast_1d(model.log_weight(X)), strict=True):
        assert -float(bqm.energy(dict(enumerate(x.tolist())))) == pytest.approx(float(weight), rel=1e-9, abs=1e-9)
    if not model.diagonal.any():
        assert sz.from_dimod(bqm) == model


def test_models_of_dimods_own_generators():
    dimod = pytest.importorskip("dimod", reason="dimod comes with the extra [dimod]")
    for bqm in (
        dimod.generators.ran_r(3, 6, seed=1),
        dimod.generators.gnp_random_bqm(7, 0.5, "BINARY", random_state=2),
    ):
        model = sz.from_dimod(bqm)
        exact = dimod.ExactSolver().sample(bqm)
        truth = np.logaddexp.reduce(-np.asarray(exact.record.energy))
        assert sz.log_z(model).log_z == pytest.approx(truth, abs=1e-9)


def test_a_complete_bqm_is_kept_dense_and_a_chain_sparse():
    dimod = pytest.importorskip("dimod", reason="dimod comes with the extra [dimod]")
    complete = dimod.generators.ran_r(1, 8, seed=1)
    assert sz.from_dimod(complete).storage.word == "dense"
    chain = dimod.BinaryQuadraticModel({}, {(i, i + 1): 1.0 for i in range(9)}, "SPIN")
    assert sz.from_dimod(chain).storage.word == "sparse"


def test_what_is_no_bqm_is_refused():
    dimod = pytest.importorskip("dimod", reason="dimod comes with the extra [dimod]")
    for other in (dimod.ConstrainedQuadraticModel(), dimod.DiscreteQuadraticModel(), {}, None):
        with pytest.raises(ModelError, match=r"it must be a dimod\.BinaryQuadraticModel"):
            sz.from_dimod(other)


# QUBO.


def literal_qubo(Q, v):
    return sum(value * v[i] * v[j] for (i, j), value in Q.items())


@given(energies(), st.sampled_from(BETAS), st.booleans())
def test_every_energy_of_a_qubo_dictionary(parts, beta, has_both):
    labels, linear, quadratic = parts
    Q = {(name, name): value for name, value in linear.items()} | quadratic
    if has_both:  # (u, v) and (v, u) add up
        Q |= {(v, u): value / 3 for (u, v), value in quadratic.items()}
    model = sz.from_qubo(Q, beta=beta)
    assert set(model.names) == set(labels)
    for x in states.all_states(model.n):
        v = dict(zip(model.names, (1 + x) // 2, strict=True))
        assert model.log_weight(x) == pytest.approx(-beta * literal_qubo(Q, v), abs=1e-9)


@given(st.integers(0, 5), st.data(), st.sampled_from(BETAS), st.sampled_from([np.array, sp.csr_array, sp.coo_array]))
def test_every_energy_of_a_qubo_matrix(n, data, beta, kind):
    Q = np.array([[data.draw(numbers) for _ in range(n)] for _ in range(n)]).reshape(n, n)
    model = sz.from_qubo(kind(Q), beta=beta)
    assert model.names is None
    for x in states.all_states(n):
        v = (1 + x) / 2
        assert model.log_weight(x) == pytest.approx(-beta * float(v @ Q @ v), abs=1e-9)


def test_a_qubo_agrees_with_dimod():
    dimod = pytest.importorskip("dimod", reason="dimod comes with the extra [dimod]")
    Q = {("x", "x"): 1.5, ("x", "y"): -2.0, ("y", "x"): 0.25, ("z", "z"): 3.0}
    assert sz.from_qubo(Q, 0.7) == sz.from_dimod(dimod.BinaryQuadraticModel.from_qubo(Q), 0.7)


def test_labels_that_are_numbers_are_in_their_order():
    assert sz.from_qubo({(5, 1): 1.0, (0, 0): 1.0}).names == (0, 1, 5)
    assert sz.from_qubo({("b", "a"): 1.0}).names == ("b", "a")
    assert sz.from_qubo({}).n == 0


@pytest.mark.parametrize(
    ("Q", "message"),
    [
        ({"a": 1.0}, "keys are pairs"),
        ({("a", "b"): float("inf")}, "finite"),
        ({("a", "b"): "x"}, "real numbers"),
        (np.ones((2, 3)), "square"),
        (np.ones(3), "square"),
        (sp.csr_array(np.array([[np.nan]])), "finite"),
    ],
)
def test_bad_qubos_are_refused(Q, message):
    with pytest.raises(ModelError, match=message):
        sz.from_qubo(Q)


# networkx.


def literal_graph(G, x, weight="weight", field="field"):
    """Sum J x x over edges and h x over nodes, as the graph lists them."""
    edges = sum(data[weight] * x[u] * x[v] for u, v, data in G.edges(data=True))
    return edges + sum(data.get(field, 0.0) * x[u] for u, data in G.nodes(data=True))


@given(energies(), st.sampled_from(BETAS), st.sampled_from(["Graph", "MultiGraph"]))
def test_every_weight_of_a_graph(parts, beta, kind):
    nx = pytest.importorskip("networkx", reason="networkx comes with the extra [networkx]")
    labels, linear, quadratic = parts
    G = getattr(nx, kind)()
    G.add_nodes_from((name, {"field": value}) for name, value in linear.items())
    G.add_weighted_edges_from((u, v, value) for (u, v), value in quadratic.items())
    G.add_weighted_edges_from((v, u, value / 3) for (u, v), value in quadratic.items())  # parallel, or in their place
    G.add_weighted_edges_from((name, name, 0.5) for name in labels[:1])
    model = sz.from_networkx(G, beta=beta)
    assert model.names == tuple(labels)
    for x in states.all_states(model.n):
        wanted = beta * literal_graph(G, dict(zip(labels, x, strict=True)))
        assert model.log_weight(x) == pytest.approx(wanted, abs=1e-9)


def test_a_graph_of_networkx_is_not_counted_double():
    nx = pytest.importorskip("networkx", reason="networkx comes with the extra [networkx]")
    G = nx.grid_2d_graph(3, 3)
    nx.set_edge_attributes(G, 0.7, "J")
    model = sz.from_networkx(G, weight="J")
    assert model.names[4] == (1, 1)
    truth = np.logaddexp.reduce([literal_graph(G, dict(zip(G, x, strict=True)), "J") for x in states.all_states(9)])
    assert sz.log_z(model).log_z == pytest.approx(truth, abs=1e-10)
    assert sz.from_networkx(G, weight=None) == sz.from_networkx(G, weight="J", beta=1 / 0.7)


@given(models(max_spins=5))
def test_graphs_lead_back(model):
    pytest.importorskip("networkx", reason="networkx comes with the extra [networkx]")
    G = model.to_networkx()
    X = states.all_states(model.n)
    for x, weight in zip(X, np.atleast_1d(model.log_weight(X)), strict=True):
        assert literal_graph(G, x) + G.graph["offset"] == pytest.approx(float(weight), rel=1e-9, abs=1e-9)
    if not model.diagonal.any():
        assert sz.from_networkx(G) == model


def test_bad_graphs_are_refused():
    nx = pytest.importorskip("networkx", reason="networkx comes with the extra [networkx]")
    with pytest.raises(ModelError, match="to_undirected"):
        sz.from_networkx(nx.DiGraph([(0, 1)]))
    with pytest.raises(ModelError, match=r"edge \(0, 1\) has no attribute 'weight'.*weight=None"):
        sz.from_networkx(nx.path_graph(3))
    with pytest.raises(ModelError, match="no node has the attribute 'h'"):
        sz.from_networkx(nx.path_graph(3), weight=None, field="h")
    bad = nx.Graph([(0, 1, {"weight": "strong"})])
    with pytest.raises(ModelError, match=r"'weight' of edge \(0, 1\) is 'strong'"):
        sz.from_networkx(bad)
    with pytest.raises(ModelError, match="must be a networkx Graph"):
        sz.from_networkx([(0, 1)])


# pandas.


def literal_frame(rows, field, x):
    return sum(J * x[u] * x[v] for u, v, J in rows) + sum(h * x[u] for u, h in field.items())


@given(energies(), st.sampled_from(BETAS), st.booleans(), st.sampled_from(["names", "numbers"]))
def test_every_weight_of_an_edge_list(parts, beta, has_series, kind):
    pd = pytest.importorskip("pandas", reason="pandas comes with the extra [pandas]")
    labels, linear, quadratic = parts
    call = {name: f"s{k}" if kind == "names" else 10 * k for k, name in enumerate(labels)}
    rows = [(call[v], call[u], J) for (u, v), J in quadratic.items()]
    field = {call[name]: h for name, h in linear.items()}
    frame = pd.DataFrame(rows, columns=["to", "from", "J"]).sample(frac=1, random_state=0)
    given_field = pd.Series(field, dtype=float) if has_series else field
    model = sz.from_pandas(frame, "from", "to", "J", field=given_field, beta=beta)
    assert set(model.names) == set(field)
    for x in states.all_states(model.n):
        wanted = beta * literal_frame(rows, field, dict(zip(model.names, x, strict=True)))
        assert model.log_weight(x) == pytest.approx(wanted, abs=1e-9)


def test_a_row_without_target_is_a_field():
    pd = pytest.importorskip("pandas", reason="pandas comes with the extra [pandas]")
    frame = pd.DataFrame({"source": [1, 0], "target": [2, None], "weight": [1.5, -0.5]})
    model = sz.from_pandas(frame)
    assert model == sz.Ising.from_edges(3, [(1, 2)], [1.5], field=[-0.5, 0.0, 0.0])


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"source": ["a"], "target": ["b"]}, {}, "no column 'weight'"),
        ({"source": ["a", "b"], "target": ["b", "a"], "weight": [1.0, 1.0]}, {}, "more than once"),
        ({"source": ["a"], "target": ["a"], "weight": [1.0]}, {}, "to itself"),
        ({"source": ["a"], "target": ["b"], "weight": [np.nan]}, {}, "finite"),
        ({"source": ["a"], "target": ["b"], "weight": ["x"]}, {}, "real numbers"),
        ({"source": [None], "target": ["b"], "weight": [1.0]}, {}, "row 0 has no 'source'"),
        ({"source": ["a"], "target": ["b"], "weight": [1.0]}, {"field": "h"}, "a Series or a mapping"),
        ({"source": ["a"], "target": [None], "weight": [1.0]}, {"field": {"a": 1.0}}, "two fields"),
    ],
)
def test_bad_edge_lists_are_refused(columns, options, message):
    pd = pytest.importorskip("pandas", reason="pandas comes with the extra [pandas]")
    with pytest.raises(ModelError, match=message):
        sz.from_pandas(pd.DataFrame(columns), **options)
    with pytest.raises(ModelError, match="pandas DataFrame"):
        sz.from_pandas(columns)


# Extras.


@pytest.mark.parametrize("library", ["dimod", "networkx"])
def test_a_library_that_is_not_installed_is_named(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingDependencyError, match=rf"pip install 'spectralz\[{library}\]'"):
        getattr(sz.Ising(field=[0.0]), f"to_{library}")()
