"""Edge lists: separators, headers, names, fields; files of pandas and networkx."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spectralz as sz
from spectralz.errors import FormatError, ModelError
from tests.reference import states
from tests.strategies import models

ROWS = [("a", "b", 0.5), ("c", "a", -1.25), ("b", "", 2.0), ("d", "", 0.0)]


def literal_weight(rows, value):
    """The log-weight of a state: J x x for each edge once, theta x for each field, and the constant."""
    total = 0.0
    for source, target, weight in rows:
        total += weight * (value[source] if source else 1) * (value[target] if target else 1)
    return total


def assert_weights(model, rows, beta=1.0):
    names = range(model.n) if model.names is None else model.names
    for x in states.all_states(model.n):
        value = {str(name): int(spin) for name, spin in zip(names, x, strict=True)}
        assert model.log_weight(x) == beta * literal_weight(rows, value)


def text_of(rows, separator=",", header=False):
    lines = ["source,target,weight".replace(",", separator)] if header else []
    return "\n".join([*lines, *(separator.join(map(str, row)) for row in rows)]) + "\n"


@pytest.mark.parametrize("separator", [",", ";", "\t", ", ", " ; "])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("name", ["m.csv", "m.tsv", "m.edges", "m.txt", "m"])
def test_every_state_has_the_weight_of_the_list(tmp_path, separator, header, name):
    (tmp_path / name).write_text(text_of(ROWS, separator, header))
    model = sz.read(tmp_path / name, beta=2.0)
    assert model.names == ("a", "b", "c", "d")
    assert_weights(model, ROWS, beta=2.0)


@pytest.mark.parametrize("separator", [" ", "   ", "\t"])
def test_blanks_and_comments(tmp_path, separator):
    rows = [("a", "b", 0.5), ("c", "a", -1.25)]
    (tmp_path / "m.edges").write_text("# by hand\n\n  " + text_of(rows, separator).replace("\n", "  \n# more\n\n"))
    assert_weights(sz.read(tmp_path / "m.edges"), rows)


@pytest.mark.parametrize("order", list(itertools.permutations(["source", "target", "weight", "color"])))
def test_a_header_names_the_columns(tmp_path, order):
    lines = [",".join(order)]
    for row in ROWS:
        cells = dict(zip(("source", "target", "weight"), row, strict=True)) | {"color": "red"}
        lines.append(",".join(str(cells[column]) for column in order))
    (tmp_path / "m.csv").write_text("\ufeff" + "\r\n".join(lines).replace("source", "Source"), encoding="utf-8")
    assert_weights(sz.read(tmp_path / "m.csv"), ROWS)


def test_numbers_from_zero_on_are_the_spins(tmp_path):
    (tmp_path / "m.csv").write_text("2,0,1.5\n1,,0.25\n3,2,-1\n")
    model = sz.read(tmp_path / "m.csv")
    assert model.names is None
    assert_weights(model, [("2", "0", 1.5), ("1", "", 0.25), ("3", "2", -1.0)])


def test_other_numbers_are_names_in_their_order(tmp_path):
    (tmp_path / "m.csv").write_text("10,2,1.5\n-3,2,1\n")
    model = sz.read(tmp_path / "m.csv")
    assert model.names == (-3, 2, 10)
    assert_weights(model, [("10", "2", 1.5), ("-3", "2", 1.0)])
    (tmp_path / "m.csv").write_text("1,2,1.5\n01,2,1\n")
    assert sz.read(tmp_path / "m.csv").names == ("1", "2", "01")


def test_a_constant_has_neither_source_nor_target(tmp_path):
    (tmp_path / "m.csv").write_text("a,b,1\n,,0.5\n")
    model = sz.read(tmp_path / "m.csv")
    assert model.offset == 0.5
    assert_weights(model, [("a", "b", 1.0), ("", "", 0.5)])


def test_quoted_names(tmp_path):
    (tmp_path / "m.csv").write_text('"a, the first","say ""b""",1\n"#c","a, the first",2\n')
    assert sz.read(tmp_path / "m.csv").names == ("a, the first", 'say "b"', "#c")


@pytest.mark.parametrize("index", [True, False])
def test_a_file_of_pandas(tmp_path, index):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=["source", "target", "weight"]).replace("", None)
    frame = frame[["weight", "source", "target"]]
    frame.to_csv(tmp_path / "m.csv", index=index)
    assert_weights(sz.read(tmp_path / "m.csv"), ROWS)
    frame.to_csv(tmp_path / "m.tsv.gz", index=index, sep="\t")
    assert_weights(sz.read(tmp_path / "m.tsv.gz"), ROWS)


def test_a_file_of_networkx(tmp_path):
    networkx = pytest.importorskip("networkx")
    graph = networkx.gnm_random_graph(6, 9, seed=1)
    for k, (u, v) in enumerate(graph.edges):
        graph.edges[u, v]["weight"] = k / 4 - 1
    networkx.write_weighted_edgelist(graph, tmp_path / "m.edges")
    model = sz.read(tmp_path / "m.edges")
    assert_weights(model, [(str(u), str(v), w) for u, v, w in graph.edges(data="weight")])


NAMES = [None, ["b", "a", "d, e", 'f "g"', "#h", "é 7"], [5, 7, 11, 13, 17, 19], ["01", "2", "3", "4", "5", "6"]]


@given(models(max_spins=6), st.sampled_from(NAMES), st.sampled_from(["m.csv", "m.tsv", "m.tsv.gz", "m.edges"]))
def test_writing_and_reading_keeps_every_number(tmp_path_factory, model, names, name):
    path = tmp_path_factory.mktemp("csv") / name
    model = model.named(None if names is None else names[: model.n])
    sz.write(model, path)
    assert sz.read(path) == sz.Ising.from_edges(model.n, *model.edges(), model.field, model.constant, model.names)


def test_tabs_stand_where_the_name_promises_them(tmp_path):
    model = sz.Ising.from_edges(2, [(0, 1)], [0.5], field=[0.25, 0.0], names=["a", "b"])
    for name, separator in (("m.csv", ","), ("m.tsv", "\t")):
        sz.write(model, tmp_path / name)
        wanted = "source,target,weight\na,,0.25\nb,,0.0\na,b,0.5\n"
        assert (tmp_path / name).read_text() == wanted.replace(",", separator)


def test_names_that_would_not_come_back_are_refused(tmp_path):
    for names in (["a", 1], ["1", "2"], [("a", 1), "b"], ["a", " b"], ["a", ""], ["a", "b\nc"], [0.5, 1.5]):
        with pytest.raises(ModelError, match="edge list"):
            sz.write(sz.Ising([0.0, 1.0], names=names), tmp_path / "m.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n", "line 1: the line has no weight; add a third column"),
        ("a b\nb c\n", "line 1: the line has no weight"),
        ("a,b,1\nb,c\n", "line 2: the line has no weight"),
        ("source,target\na,b\n", "line 1: the header is 'source,target'; it must name source, target and weight"),
        ("source,target,weight,weight\na,b,1,2\n", "each once"),
        ("source,target,weight\na,b,1,2\n", "line 2: the line has 4 columns; it should have 3"),
        ("u,v,J\na,b,1\n", "line 1: 'J' is not a weight; .* a header names these columns"),
        ("a,b,1\n\nb,a,1\n", "line 3: the pair b a is listed again, after line 1"),
        ("a,b,1\na,b,1\n", "line 2: the pair a b is listed again, after line 1"),
        ("a,,1\na,,1\n", "line 2: the field of 'a' is listed again, after line 1"),
        (",,1\na,b,1\n,,1\n", "line 3: the constant is listed again, after line 1"),
        ("a,b,1\nb,b,1\n", "line 2: 'b' is joined to itself; for a field leave the target empty: b,,0.5"),
        (",b,1\n", "line 1: the source is empty"),
        ("a;b;1\na;c;0,5\n", "line 2: '0,5' stands where a weight should be, a finite number such as -0.5"),
        ("a,b,nan\n", "line 1: 'nan' is not a weight"),
        ("a,b,1\na,c,inf\n", "line 2: 'inf' stands where a weight"),
        ("# nothing\n\n", "the file is empty"),
        ('a,b,1\n"a,c,1\n', "line 2: the line cannot be split"),
        ('a,"b\nc",1\n', "line 1|after the end of its line"),
    ],
)
def test_broken_lists(tmp_path, text, message):
    (tmp_path / "m.csv").write_text(text)
    with pytest.raises(FormatError, match=message) as caught:
        sz.read(tmp_path / "m.csv")
    assert "m.csv" in str(caught.value)


def test_a_header_alone_is_a_model_without_spins(tmp_path):
    (tmp_path / "m.csv").write_text("source,target,weight\n")
    assert sz.read(tmp_path / "m.csv").n == 0


@pytest.mark.parametrize("called", [str, "n{}".format])
def test_many_edges_are_read_at_once(tmp_path, called):
    n, m = 3_000, 30_000
    rng = np.random.default_rng(0)
    i, j = np.divmod(rng.choice(n * n, size=3 * m, replace=False), n)
    i, j = i[i < j][:m], j[i < j][:m]
    w = rng.normal(size=len(i))
    rows = zip(map(called, i.tolist()), map(called, j.tolist()), w.tolist(), strict=True)
    (tmp_path / "m.csv").write_text(text_of(rows))
    model = sz.read(tmp_path / "m.csv")
    place = {str(k): k for k in range(n)} if model.names is None else {name: k for k, name in enumerate(model.names)}
    x = rng.choice([-1, 1], size=model.n)
    first, second = (np.array([place[called(k)] for k in ends.tolist()]) for ends in (i, j))
    assert model.log_weight(x) == pytest.approx(float(np.sum(w * x[first] * x[second])), abs=1e-9)
