"""Columns of tables are spins by their labels: right or refused, never by chance of their order."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import spectralz as sz
from spectralz.errors import ModelError, OptionError

KINDS = ("numbers", "letters", "digits", "shuffled digits", "whole numbers", "mixed")
CHANGES = ("none", "order", "missing", "extra", "renamed", "case", "bare", "twice")


def names_of(kind, n, rng):
    letters = [f"s{k}" for k in range(n)]
    digits = [str(k) for k in rng.permutation(n)]
    return {
        "numbers": None,
        "letters": letters,
        "digits": [str(k) for k in range(n)],
        "shuffled digits": digits,
        "whole numbers": [int(k) for k in rng.permutation(n) + 5],
        "mixed": [letters[0], *range(1, n)],
    }[kind]


def model_of(kind, n, rng):
    edges = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.7]
    couplings = rng.normal(size=len(edges))
    return sz.Ising.from_edges(n, edges, couplings, field=rng.normal(size=n), names=names_of(kind, n, rng))


def by_hand(model, frame):
    """Return the states of a frame in the order of the model, NaN where there is no column; None to be refused."""
    names = range(model.n) if model.names is None else model.names
    texts = [str(name) for name in names]
    labels = [str(label) for label in frame.columns]
    if len(set(labels)) < len(labels) or not set(labels) <= set(texts):
        return None
    states = np.full((len(frame), model.n), np.nan)
    for k, text in enumerate(texts):
        for j, label in enumerate(labels):
            if text == label:
                states[:, k] = frame.to_numpy()[:, j]
    return states


def changed(frame, change, rng):
    """Return a frame with its columns in another order, renamed and so on."""
    labels = list(frame.columns)
    order = rng.permutation(len(labels))
    if change == "bare":
        return pd.DataFrame(frame.to_numpy())
    if change == "missing":
        order = order[: max(len(order) - 1, 1)]
    frame = frame if change == "none" else frame.iloc[:, order]
    k = int(rng.integers(frame.shape[1]))
    labels = list(frame.columns)
    if change == "extra":
        return frame.assign(**{"another": 1})
    if change == "renamed":
        labels[k] = "another"
    if change == "case":
        labels[k] = str(labels[k]).upper()
    if change == "twice":
        labels[k] = str(labels[k - 1])
    return frame.set_axis(labels, axis=1)


def cases(count, seed):
    rng = np.random.default_rng(seed)
    for kind, change in itertools.islice(itertools.cycle(itertools.product(KINDS, CHANGES)), count):
        model = model_of(kind, int(rng.integers(2, 6)), rng)
        states = 2.0 * rng.integers(2, size=(4, model.n)) - 1.0
        whole = pd.DataFrame(states, columns=model.names)
        yield kind, change, model, changed(whole, change, rng)


def outcome(call):
    try:
        return np.asarray(call(), dtype=float)
    except ModelError:
        return None


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_frames_are_read_right_or_refused(seed):
    """2,000 frames in all, against states that are put in order by hand."""
    seen = set()
    for kind, change, model, frame in cases(600 if seed else 192, seed):
        states = by_hand(model, frame)
        found = outcome(lambda m=model, f=frame: sz.log_prob(m, f))
        weights = outcome(lambda m=model, f=frame: m.log_weight(f))
        row = outcome(lambda m=model, f=frame: sz.log_prob(m, f.iloc[0]))
        where = (kind, change, list(frame.columns))
        if states is None:
            assert [found, weights, row] == [None] * 3, where
            seen.add((kind, change, "refused"))
            continue
        wanted = np.asarray(sz.log_prob(model, states))
        assert np.allclose(found, wanted, atol=1e-12), where
        assert np.allclose(row, wanted[:1], atol=1e-12), where
        seen.add((kind, change, "right"))
        if np.isnan(states).any():
            assert weights is None, where
        else:
            assert np.allclose(weights, model.log_weight(states), atol=1e-12), where
    assert len(seen) >= len(KINDS) * len(CHANGES)


@pytest.mark.parametrize("seed", range(2))
def test_other_verbs_read_frames_right_or_refuse_them(seed):
    for kind, change, model, frame in cases(60, 100 + seed):
        states, where = by_hand(model, frame), (kind, change, list(frame.columns))
        known = frame.astype(float).mask(np.eye(len(frame), frame.shape[1], dtype=bool))  # some cells to predict
        predicted = outcome(lambda m=model, f=known: sz.predict(m, f).probability)
        beta = outcome(lambda m=model, f=frame: sz.temperature(m, f, "pseudo").beta)
        if states is None:
            assert [predicted, beta] == [None] * 2, where
            continue
        wanted = sz.predict(model, by_hand(model, known)).to_pandas()
        columns = [[str(name) for name in wanted.columns].index(str(label)) for label in frame.columns]
        assert np.allclose(predicted, wanted.to_numpy()[:, columns], atol=1e-12), where
        if np.isnan(states).any():
            assert beta is None, where
        else:
            assert beta == pytest.approx(sz.temperature(model, states, "pseudo").beta, nan_ok=True), where


def spin_called(label, model):
    """Return the spin by its name, by its name's text, or by its number where no name is one; None to be refused."""
    names = list(range(model.n) if model.names is None else model.names)
    if label in names:
        return names.index(label)
    if not isinstance(label, int):
        return None
    if str(label) in names:
        return names.index(str(label))
    return label if label < model.n and not any(isinstance(name, int) for name in names) else None


@pytest.mark.parametrize("seed", range(2))
def test_evidence_goes_by_labels_or_is_refused(seed):
    for kind, change, model, frame in cases(60, 200 + seed):
        where = (kind, change, list(frame.columns))
        given = dict(frame.iloc[0, : max(frame.shape[1] - 1, 1)].items())
        spins = [spin_called(label, model) for label in given]
        found = outcome(lambda m=model, g=given: sz.log_z(m, given=g).log_z)
        if None in spins or len(set(spins)) < len(spins):
            assert found is None, where
        else:
            bare = sz.Ising.from_edges(model.n, *model.edges(), field=model.field)
            wanted = sz.log_z(bare, given=dict(zip(spins, map(int, given.values()), strict=True))).log_z
            assert found == pytest.approx(wanted, abs=1e-12), where


@pytest.fixture(scope="module")
def fitted():
    """Fits of three columns, for each kind of names."""
    rng = np.random.default_rng(5)
    data = np.where(rng.random((200, 3)) < [0.3, 0.5, 0.8], 1.0, -1.0)
    return {kind: sz.fit(pd.DataFrame(data, columns=names_of(kind, 3, rng))) for kind in KINDS}


@pytest.mark.parametrize("change", CHANGES)
def test_scores_go_by_labels_or_are_refused(change, fitted):
    rng = np.random.default_rng(CHANGES.index(change))
    for kind, fit in fitted.items():
        whole = pd.DataFrame(2.0 * rng.integers(2, size=(4, 3)) - 1.0, columns=fit.model.names)
        frame = changed(whole, change, rng)
        states, score = by_hand(fit.model, frame), outcome(lambda f=fit, x=frame: f.score(x))
        if states is None:
            assert score is None, kind
        else:
            assert score == pytest.approx(fit.score(states, columns="position"), abs=1e-12), kind


def test_the_report_of_a_silent_wrong_answer():
    model = sz.Ising.from_edges(3, [(0, 1)], [2.0], field=[0, 0, 1.0])
    frame = pd.DataFrame([[1, 1, -1.0]], columns=[0, 1, 2])
    assert sz.log_prob(model, frame[[2, 0, 1]]).mean == pytest.approx(-2.838, abs=1e-3)


def test_position_counts_where_it_is_asked_for():
    model = sz.Ising.from_edges(3, [(0, 1)], [0.5], field=[0.2, 0, 0.3], names=["a", "b", "c"])
    states = sz.sample(model, 40, seed=0).astype(float)
    bare = pd.DataFrame(states)
    with pytest.raises(ModelError, match=r'the columns are 0, 1, 2 and the spins a, b, c.*columns="position"'):
        sz.log_prob(model, bare)
    assert np.array_equal(sz.log_prob(model, bare, columns="position"), sz.log_prob(model, states))
    assert np.array_equal(sz.predict(model, bare, columns="position"), sz.predict(model, states))
    by_position = sz.temperature(model, bare, columns="position")
    assert by_position.beta == sz.temperature(model, states).beta
    fit = sz.fit(states, names=["a", "b", "c"])
    assert fit.score(bare, columns="position") == fit.score(states)
    with pytest.raises(OptionError, match="'labels' or 'position'"):
        sz.log_prob(model, bare, columns="order")
    with pytest.raises(ModelError, match="to_numpy"):
        model.log_weight(bare)


def test_labels_of_equal_text_are_refused():
    model = sz.Ising.from_edges(2, [(0, 1)], [1.0], names=[1, "1"])
    frame = pd.DataFrame([[1, -1]], columns=[1, "1"])
    with pytest.raises(ModelError, match="two spins are called '1'"):
        sz.log_prob(model, frame)
    with pytest.raises(ModelError, match="two columns are called '1'"):
        sz.fit(pd.DataFrame([[1, -1], [1, 1], [-1, 1]], columns=[1, "1"]))


def test_evidence_goes_by_names_that_are_texts_of_digits():
    model = sz.Ising.from_edges(3, [(0, 1)], [0.5], field=[0.1, 0.2, 0.3], names=["2", "0", "1"])
    assert sz.log_z(model, given={0: 1}).log_z == sz.log_z(model, given={"0": 1}).log_z
    assert model.index(0) == 1
    assert model.index(np.int64(2)) == 0


def test_polynomials_and_machines_go_by_labels():
    cubic = sz.Polynomial({("a", "b", "c"): 1.0, ("a",): 0.5})
    frame = pd.DataFrame([[1, -1, -1], [1, 1, -1]], columns=["b", "c", "a"])
    by_order = frame[list(cubic.names)].to_numpy()
    assert np.array_equal(cubic.log_weight(frame), cubic.log_weight(by_order))
    assert np.array_equal(sz.log_prob(cubic, frame), sz.log_prob(cubic, by_order))
    machine = sz.RBM([[1.0, -2.0], [0.5, 0.3], [0.1, 0.0]], [0.5, 0.0, -1.0], [0.0, 1.0])
    units = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]])
    for labels in ([0, 1, 2], ["v0", "v1", "v2"]):
        turned = pd.DataFrame(units, columns=labels).iloc[:, [2, 0, 1]]
        assert np.array_equal(machine.log_likelihood(turned).log_prob, machine.log_likelihood(units).log_prob)
        assert np.array_equal(sz.log_prob(machine, turned), sz.log_prob(machine, units))
    whole = pd.DataFrame([[1, 0, 1, 1, 0]], columns=["h0", "v2", "v1", "h1", "v0"])
    assert machine.log_weight(whole) == machine.log_weight([[0, 1, 0, 1, 1]])
    named = sz.RBM(machine.weights, names=["a", "b", "c", "h", "g"])
    with pytest.raises(ModelError, match="there is no spin '0'"):
        named.log_likelihood(pd.DataFrame(units))


def test_the_graph_of_a_fit_goes_by_names():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.integers(2, size=(200, 4)), columns=list("abcd"))
    first = sz.fit(frame, graph=[("a", "b"), ("c", "d")])
    turned = frame[["d", "b", "a", "c"]]
    again = sz.fit(turned, graph=first.model)
    names = again.model.names
    assert {frozenset((names[i], names[j])) for i, j in again.edges.tolist()} == {frozenset("ab"), frozenset("cd")}
    graph = nx.Graph([("a", "b"), ("c", "d")])
    assert np.array_equal(sz.fit(turned, graph=graph).edges, again.edges)
    with pytest.raises(ModelError, match="graph=model"):
        sz.fit(frame, graph=sz.generators.complete(n=4, strength=1.0, seed=0))
    bare = sz.fit(frame.to_numpy(), graph=first.model)  # an array has no labels
    assert np.array_equal(bare.edges, first.edges)


@pytest.mark.parametrize("labels", [list("abc"), None], ids=["letters", "numbers"])
def test_moments_keep_their_labels(labels):
    rng = np.random.default_rng(4)
    x = np.sign(rng.normal(size=(500, 3)) + rng.normal(size=(500, 1)) + [0.5, 0.0, -0.7])
    frame = pd.DataFrame(x, columns=labels)
    mean, pair = frame.mean(), frame.T @ frame / len(frame)
    wanted = sz.fit(frame).model
    order = [2, 0, 1]
    turned = pair.iloc[order, order[::-1]]
    model = sz.fit(moments={"mean": mean, "pair_mean": turned, "rows": 500}).model
    assert model.names == wanted.names
    assert np.allclose(model.field, wanted.field)
    assert np.allclose(model.coupling, wanted.coupling)
    with pytest.raises(ModelError, match="there is no spin 'x'"):
        sz.fit(moments={"mean": mean, "pair_mean": turned.set_axis(list("xyz")), "rows": 500})


def test_ratios_of_models_whose_names_differ_are_refused():
    model = sz.generators.complete(n=4, strength=1.0, seed=0)
    with pytest.raises(ModelError, match="names of a and b or their order differ"):
        sz.log_ratio(model.named(list("abcd")), model.named(list("bacd")))


# ------------------------------------------------------------------------------------------------------------ files


@pytest.fixture
def in_shell(run):
    rng = np.random.default_rng(5)
    model = sz.Ising.from_edges(3, [(0, 1), (1, 2)], [0.7, -0.4], field=[0.5, 0.0, -0.3])
    sz.write(model, Path("model.npz"))
    frame = pd.DataFrame(sz.sample(model, 30, seed=int(rng.integers(9))))

    def beta(table, *options, **to_csv):
        table.to_csv("states.csv", index=False, **to_csv)
        code, out, err = run("temperature", "model.npz", "states.csv", "-m", "pseudo", "--json", *options)
        return json.loads(out)["beta"] if code == 0 else (code, " ".join(err.split()))

    return frame, beta


def test_numbered_headers_name_columns(in_shell):
    frame, beta = in_shell
    wanted = beta(frame, header=False)
    assert beta(frame) == wanted
    assert beta(frame[[2, 0, 1]]) == wanted
    assert beta(frame[[1, 2]])[0] == 2  # a spin is missing
    code, words = beta(frame.set_axis([0, 1, 3], axis=1), "--header")
    assert code == 2
    assert "the columns are 0, 1, 3 and the spins 0, 1, 2" in words


def test_tables_in_files_are_read_right_or_refused(run):
    refused = 0
    for kind, change, model, frame in cases(24, 200):
        sz.write(model, Path("model.npz"))
        frame.to_csv("states.csv", index=False)
        states, where = by_hand(model, frame), (kind, change, list(frame.columns))
        code, out, err = run("temperature", "model.npz", "states.csv", "-m", "pseudo", "--json", "--header")
        if states is None or np.isnan(states).any():
            assert code == 2, where
            assert err, where
            refused += 1
            continue
        wanted = sz.temperature(model, states, "pseudo").beta
        assert json.loads(out)["beta"] == (pytest.approx(wanted) if np.isfinite(wanted) else str(wanted)), where
    assert 5 < refused < 20


def test_a_table_with_its_index_is_refused(in_shell, run):
    frame, _ = in_shell
    frame.to_csv("states.csv")
    code, _, err = run("temperature", "model.npz", "states.csv", "--header")
    assert code == 2
    assert "without its index" in " ".join(err.split())


def test_two_columns_are_data_unless_the_header_is_announced(run):
    model = sz.Ising.from_edges(2, [(0, 1)], [0.7], field=[0.5, -0.3])
    sz.write(model, Path("model.npz"))
    Path("states.csv").write_text("1,0\n0,1\n1,1\n0,0\n")
    rows = {
        option: json.loads(run("fit", "states.csv", "--penalty", "l2=0.1", "--json", *option)[1])["rows"]
        for option in ((), ("--header",))
    }
    assert rows == {(): 4, ("--header",): 3}
    found = run("fit", "states.csv", "--penalty", "l2=0.1", "--json", "--header")[1]
    assert json.loads(found)["model"]["names"] == ["1", "0"]
