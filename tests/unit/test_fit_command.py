"""``spectralz fit``: tables in, models, pictures and JSON out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import spectralz as sz
from spectralz.errors import FormatError
from spectralz.io.csv_table import read_table
from spectralz.io.files import Source


@pytest.fixture
def run(run):
    """Run the command line in a folder with the files that it reads."""
    X = (sz.sample(sz.generators.complete(n=4, strength=0.4, seed=0), 500, seed=1) + 1) // 2
    Path("data.csv").write_text("a;b;c;d\n" + "\n".join(";".join(map(str, row)) for row in X.tolist()))
    np.save("data.npy", X)
    return run


def test_a_table_becomes_a_model_and_a_picture(run):
    code, out, err = run("fit", "data.csv", "--out", "model.npz", "--plot", "fit.png", "--tests")
    assert code == 0
    fit = sz.fit(np.load("data.npy"), names=list("abcd"))
    assert sz.read("model.npz") == fit.model
    assert Path("fit.png").read_bytes()[:4] == b"\x89PNG"
    assert f"{fit.log_likelihood:.6f} per row" in out
    assert "a - b" in out
    assert "against saturated" in out
    assert err.count("wrote") == 2


def test_json_has_the_fit(run):
    code, out, _ = run("fit", "data.npy", "--json", "--penalty", "l2=0.1")
    found = json.loads(out)
    fit = sz.fit(np.load("data.npy"), penalty="l2", strength=0.1)
    assert code == 0
    assert found["log_likelihood"] == pytest.approx(fit.log_likelihood)
    assert found["model"]["weights"] == pytest.approx(fit.model.edges()[1].tolist())
    assert found["strength"] == 0.1


def test_weights_and_pairs_come_from_files(run):
    Path("counts.csv").write_text("a,times,b\n0,3,0\n0,2,1\n1,4,0\n1,7,1\n")
    found = json.loads(run("fit", "counts.csv", "--weights", "times", "--json")[1])
    assert found["rows"] == 16
    assert found["model"]["weights"] == pytest.approx([np.log(3 * 7 / (2 * 4)) / 4])  # of the log odds ratio
    Path("pairs.csv").write_text("source,target,weight\na,b,1\n2,3,0\n")
    found = json.loads(run("fit", "data.csv", "--graph", "pairs.csv", "--json")[1])
    assert found["model"]["edges"] == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("none.csv",), "none.csv"),
        (("data.csv", "--out", "model.xyz"), "xyz"),
        (("data.csv", "--out", "data.csv"), "input"),
        (("data.csv", "--penalty", "l3=1"), "l2=0.01"),
        (("data.csv", "--weights", "z"), "the header has a, b, c, d"),
        (("data.csv", "--graph", "data.csv"), "is not a pair"),
        (("bad.csv",), "line 3"),
        (("wide.csv", "--penalty", "l1=ebic"), 'method="sampled" has no l1 penalty'),
        (("data.csv", "--penalty", "l2=ebic", "--graph", "chosen"), '"ebic" with "l1"'),
        (("long.csv",), "long.csv, line 2: the line cannot be split into cells: field larger than field limit"),
        (("long.npy",), "long.npy: this array cannot be read, its header is damaged"),
    ],
)
def test_bad_input_is_a_sentence(run, arguments, words):
    Path("bad.csv").write_text("a,b\n0,1\n0,yes\n")
    Path("wide.csv").write_text("\n".join(",".join(str((i * j) % 3 // 2) for j in range(1, 41)) for i in range(60)))
    Path("long.csv").write_text(f"a,b\n0,{'1' * 200_000}\n")
    Path("long.npy").write_bytes(Path("data.npy").read_bytes()[:60])
    code, out, err = run("fit", *arguments)
    assert (code, out) == (2, "")
    assert words in err


def test_a_fit_that_has_no_maximum_is_said_and_strict_fails(run):
    rows = [x for x in np.ndindex(2, 2, 2) if 0 < sum(x) < 3] * 20
    Path("apart.csv").write_text("\n".join(",".join(map(str, row)) for row in rows))
    code, out, err = run("fit", "apart.csv")
    assert (code, "NOT CONVERGED" in out) == (0, True)
    assert "no maximum" in err
    assert run("fit", "apart.csv", "--strict")[0] == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0,1\n1,1\n", ([[0, 1], [1, 1]], None)),
        ("# data\n+1 -1\n-1 -1\n", ([[1, -1], [-1, -1]], None)),
        ('"a b"\tc\n1\t0\n', ([[1, 0]], ["a b", "c"])),
    ],
)
def test_tables_are_read(text, expected):
    X, names = read_table(Source("data.csv", text.encode()))
    assert (X.tolist(), names) == expected


@pytest.mark.parametrize("text", ["", "a,b\n", "0,1\n1\n", "0,1\n1,x\n"])
def test_broken_tables_are_refused(text):
    with pytest.raises(FormatError):
        read_table(Source("data.csv", text.encode()))
