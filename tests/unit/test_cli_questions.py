"""What a command asks of which model: names, evidence, temperature and formats, and the answers as JSON and pages.

The truth is a sum over all states of a small model with names, state by state.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import spectralz as sz
from spectralz.cli import main
from spectralz.cli.console import print_json
from spectralz.cli.files import load, parse_given
from spectralz.cli.options import methods_with_options
from spectralz.errors import ModelError, OptionError
from tests.helpers import tried_estimate

NAMES = ("a", "b", "a=b", "c,d")
DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = sz.Ising.from_edges(
        4, [(0, 1), (1, 2), (2, 3), (0, 3)], [0.5, -1.0, 0.25, 0.75], [0.3, -0.2, 0.1, 0.0], 0.5, names=NAMES
    )
    sz.write(made, "m.json")
    sz.write(made.named(None), "m.uai")
    Path("m.evid").write_text("1 3 1")
    return made


def answer(run, *arguments):
    code, out, err = run(*arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def summed(model, beta=1.0, **fixed):
    """Return log Z and the means, from every state that agrees with what is given."""
    states = [x for x in itertools.product([-1, 1], repeat=4) if all(x[NAMES.index(n)] == v for n, v in fixed.items())]
    logs = np.array([beta * model.log_weight(x) for x in states])
    log_z = math.log(math.fsum(np.exp(logs)))
    return log_z, np.exp(logs - log_z) @ np.array(states)


def test_given_spins_are_summed_over_no_more(run, model):
    wanted, means = summed(model, **{"a": 1, "a=b": -1})
    found = answer(run, "solve", "m.json", "--given", "a=+1", "-g", "a=b=-1", "--marginals")
    assert found["log_z"] == pytest.approx(wanted, rel=1e-12)
    assert (found["n"], found["free"], found["given"]) == (4, 2, {"a": 1, "a=b": -1})
    assert [each["name"] for each in found["marginals"]] == list(NAMES)
    assert np.allclose([each["mean"] for each in found["marginals"]], means, atol=1e-12)
    assert np.allclose([each["probability"] for each in found["marginals"]], (1 + means) / 2, atol=1e-12)


@pytest.mark.slow
def test_every_command_takes_evidence_beta_and_format(run, model):
    Path("m.txt").write_text(Path("m.json").read_text())
    asked = ["m.txt", "--format", "json", "-e", "m.evid", "-g", "b=-1", "--beta", "0.5"]
    wanted, means = summed(model, 0.5, **{"b": -1, "c,d": 1})
    for method in ("auto", "exact"):
        assert answer(run, "solve", *asked, "-m", method)["log_z"] == pytest.approx(wanted, rel=1e-12)
    assert answer(run, "compare", *asked, "-m", "exact")["reference"] == pytest.approx(wanted, rel=1e-12)
    bounds = answer(run, "bounds", *asked, "--work", "1e6")
    assert bounds["lower"] - 1e-12 <= wanted <= bounds["upper"] + 1e-12
    about = answer(run, "info", *asked)
    assert (about["n"], about["free"], about["spins"]) == (4, 2, 2)
    assert run("convert", *asked[:1], "rest.npz", *asked[1:])[0] == 0
    assert sz.log_z(sz.read("rest.npz"), "exact").log_z == pytest.approx(wanted, rel=1e-12)
    assert sz.read("rest.npz").names == ("a", "a=b")
    assert answer(run, "sample", *asked[:1], "x.npy", *asked[1:], "-n", "4000")["free"] == 2
    states = np.load("x.npy")
    assert states.shape == (4000, 4)
    assert np.allclose(states.mean(axis=0), means, atol=0.08)  # five standard errors


def test_positions_are_names_where_there_are_none(run, model):
    wanted, _ = summed(model, **{"a": 1, "c,d": -1})
    found = answer(run, "solve", "m.uai", "-g", "0=1", "-g", "3=-1", "--marginals")
    assert found["log_z"] == pytest.approx(wanted, rel=1e-12)
    assert found["given"] == {"0": 1, "3": -1}
    assert [each["name"] for each in found["marginals"]] == [0, 1, 2, 3]
    assert "given spin 0 = +1, spin 3 = -1" in run("solve", "m.uai", "-g", "0=1", "-g", "3=-1")[1]


def test_a_mar_answer_has_all_spins(run, model):
    _, means = summed(model, **{"a": 1, "c,d": 1})
    assert run("solve", "m.json", "-g", "a=+1", "-e", "m.evid", "--mar", "m.MAR")[0] == 0
    table = np.array(Path("m.MAR").read_text().split()[2:], float).reshape(4, 3)
    assert np.allclose(table[:, 2], (1 + means) / 2, atol=1e-11)


@pytest.mark.parametrize(
    ("file", "given", "sentence"),
    [
        ("m.json", ["a"], "--given 'a' is not a spin and its value; write NAME=+1 or NAME=-1"),
        ("m.json", ["a=2"], "write NAME=+1 or NAME=-1"),
        ("m.json", ["=+1"], "write NAME=+1 or NAME=-1"),
        ("m.json", ["a=+1", "a=-1"], "a is given twice; give each spin once"),
        ("m.json", ["c,d=+1"], "c,d is given twice"),  # by the file of evidence
        ("m.json", ["q=+1"], "no spin is called 'q'; its names a, b, a=b"),
        ("m.json", ["0=+1"], "no spin is called '0'"),
        pytest.param(
            "m.uai",
            ["a=+1"],
            "this model has no names, its spins are named by integers from 0 to 3",
            marks=pytest.mark.slow,
        ),
        ("m.uai", ["4=+1"], "there is no spin 4; spins run from 0 to 3"),
        ("m.uai", ["-1=+1"], "no spin is called '-1'"),
    ],
)
@pytest.mark.usefixtures("model")
def test_bad_evidence_names_the_spin(run, file, given, sentence):
    flags = [word for text in given for word in ("-g", text)]
    code, out, err = run("solve", file, "-e", "m.evid", *flags)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert sentence in err


def test_names_are_matched_as_text():
    mixed = sz.Ising([0.0] * 3, np.zeros((3, 3)), names=[1, "1", (2, "x")])
    assert parse_given("(2, 'x')=-1", mixed) == (2, -1)
    with pytest.raises(OptionError, match=r"'1', which could be 2 spins \(int and str\)"):
        parse_given("1=+1", mixed)
    with pytest.raises(ModelError, match="no spin is called '0'"):
        parse_given("0=+1", sz.Ising([0.0, 0.0], np.zeros((2, 2)), names=["10", "20"]))


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("beta", ["nan", "inf"])
def test_beta_must_be_finite(run, beta):
    code, _, err = run("solve", "m.json", "--beta", beta)
    assert (code, err) == (2, f"error: --beta is {beta}; it must be a finite number\n")


def test_evidence_counts_from_zero_whatever_the_names(model):
    sz.write(model.named([3, 2, 1, 0]), "n.json")
    problem = load(Path("n.json"), Path("m.evid"), ["3=-1"])
    assert problem.fixed == {3: 1, 0: -1}
    assert problem.given == {0: 1, 3: -1}  # the names of spins 3 and 0


def test_many_given_spins_are_counted(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sz.write(sz.generators.grid(4, 0.5, seed=0), "g.uai")
    flags = [word for i in range(7) for word in ("-g", f"{i}=+1")]
    assert "sparse), 7 of them given\n" in run("solve", "g.uai", *flags)[1]


# --------------------------------------------------------------------------------------- standard input and output


def test_models_come_through_pipes(run, model, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(Path("m.json").read_bytes()))))
    found = answer(run, "solve", "-")
    assert (found["file"], found["n"]) == ("-", 4)
    assert found["log_z"] == pytest.approx(summed(model)[0], rel=1e-12)


@pytest.mark.usefixtures("model")
def test_models_go_through_pipes(capfdbinary):
    with pytest.raises(SystemExit) as ended:
        main(["convert", "m.json", "-", "--to", "json"])
    assert not ended.value.code
    said = capfdbinary.readouterr()
    assert (said.out, said.err) == (Path("m.json").read_bytes(), b"")


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("convert m.json -", "standard output has no suffix; give the format, such as --to npz"),
        ("solve - -e -", "model and evidence cannot both come from standard input"),
        ("convert m.json m.rud", "maxcut files are only read"),
        ("convert m.json m.mc --to maxcut", "maxcut files are only read"),
        ("solve m.json --format wai", "there is no format 'wai'; there are npz"),
        ("solve m.json --mar -", "standard output is for the answer; give the name of a file"),
        ("sample m.json -", "standard output is for the answer; give the name of a file"),
        ("solve m.json --html m.txt", "the name has the suffix '.txt'; a page is .html"),
        ("compare m.json --html no/such.html", "the folder no does not exist"),
        ("compare m.json --html x.html --plot ./x.html", "--plot and --html name the same file"),
        ("sample m.json x.csv.bz2", r"states are written to .npy or .csv, and .gz of either"),
        ("compare m.json -m mf --budget 3", "none of the methods compared has the option 'budget'; these methods"),
        ("compare m.json --set color=red", "`spectralz methods` lists the options of each"),
        ("compare m.json -m mf,BP-200 --set max_iter=0", "max_iter is 0"),
        ("compare m.json -x magic", "a name of --exclude is 'magic'; it must be one of"),
        ("bounds m.json -s ibound=3", "a key of --set is 'ibound'; it must be one of 'budget', 'work'"),
        ("bounds m.json -s budget=3 -b 2", "--budget and --set budget were both given"),
        ("bounds m.json -s budget=soon", "budget is 'soon'"),
        ("sample m.json x.npy -s color=red", "no option 'color'"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(run, line, sentence):
    before = sorted(Path().iterdir())
    code, out, err = run(*line.split())
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert sentence in err
    assert sorted(Path().iterdir()) == before


# ------------------------------------------------------------------------------------------------ options of methods


def test_options_go_to_the_methods_that_have_them():
    exact, mbe, label, wmbe = methods_with_options(["exact", "mbe", "MBE-10", "wmbe"], {"ibound": 3, "max_iter": 7})
    assert (exact, label) == ("exact", "MBE-10")
    assert (mbe.ibound, wmbe.ibound, wmbe.max_iter) == (3, 3, 7)


@pytest.mark.usefixtures("model")
def test_compare_takes_options_and_leaves_methods_out(run):
    rows = answer(run, "compare", "m.json", "-m", "auto,mbe,exact,BP-200", "-x", "exact", "-b", "3", "-s", "ibound=2")
    assert [row["name"] for row in rows["rows"]] == ["auto", "mbe", "BP-200"]
    assert rows["rows"][1]["options"]["ibound"] == 2
    assert rows["version"] == sz.__version__
    assert (rows["file"], rows["n"]) == ("m.json", 4)
    asked = answer(run, "compare", "m.json", "-m", "auto", "-w", "1e6", "-s", "exclude=exact,quadrature")["rows"][0]
    assert asked["options"]["work"] == 1e6
    everything = answer(run, "compare", "m.json", "-x", "sdp, trw")["rows"]
    assert [row["name"] for row in everything] == [name for name in sz.METHODS if name not in ("auto", "sdp", "trw")]


@pytest.mark.usefixtures("model")
def test_bounds_takes_its_options_by_set_too(run):
    found = [
        answer(run, "bounds", "m.json", *words)
        for words in (["-w", "1e6", "-x", "trw,sdp"], ["-s", "work=1e6", "-s", "exclude=trw,sdp", "-s", "threads=1"])
    ]
    for each in found:
        assert not {"trw", "sdp"} & {row["method"] for row in each["rows"]}
        each.pop("seconds")
        for row in each["rows"]:
            row.pop("seconds")
    assert found[0] == found[1]


@pytest.mark.usefixtures("model")
def test_sample_takes_options(run):
    found = answer(run, "sample", "m.json", "x.npy", "-n", "5", "-s", "seed=4", "-x", "quadrature", "-w", "1e7")
    assert (found["method"], found["options"]["seed"], found["options"]["exclude"]) == ("auto", 4, ["quadrature"])
    assert (found["out"], found["states"], found["seed"], found["warnings"]) == ("x.npy", 5, 0, [])


# -------------------------------------------------------------------------------------------------------- the answers


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.npy", "x.npy.gz"])
def test_states_have_the_names_as_header(run, model, name):
    assert run("sample", "m.json", name, "-n", "30", "--seed", "3")[0] == 0
    content = Path(name).read_bytes()
    content = gzip.decompress(content) if name.endswith(".gz") else content
    wanted = sz.sample(model, 30, seed=3)
    if ".npy" in name:
        assert np.array_equal(np.load(io.BytesIO(content)), wanted)
        return
    header, *rows = csv.reader(content.decode().splitlines())
    assert tuple(header) == NAMES
    assert np.array_equal(np.array(rows, int), wanted)


def test_states_of_a_model_without_names_have_no_header(run, model):
    assert run("sample", "m.uai", "x.csv", "-n", "3")[0] == 0
    assert np.array_equal(np.loadtxt("x.csv", delimiter=","), sz.sample(model.named(None), 3))


def test_marginals_are_a_table_with_names(run, model):
    _, means = summed(model, b=1)
    out = run("solve", "m.json", "-g", "b=+1", "--marginals")[1]
    for name, mean in zip(NAMES, means, strict=True):
        row = f" {name} {mean:+.6f} {(1 + mean) / 2:.6g}".split()
        assert row in [line.split() for line in out.splitlines()]
    assert "given b = +1" in out


@pytest.mark.usefixtures("model")
def test_pairs_are_shown_if_asked_for(run):
    truth = sz.marginals(sz.read("m.json"))
    for line in ("--pairs", "--marginals --pairs"):
        found = answer(run, "solve", "m.json", *line.split())
        assert len(found["marginals"]) == 4
        assert [tuple(each["names"]) for each in found["pairs"]] == [
            tuple(NAMES[i] for i in pair) for pair in truth.edges.tolist()
        ]
        assert np.allclose([each["mean"] for each in found["pairs"]], truth.pair_mean, atol=1e-12)
    for line in ("--marginals", "--marginals --no-pairs"):
        assert "pairs" not in answer(run, "solve", "m.json", *line.split())
    out = run("solve", "m.json", "--pairs")[1]
    assert "mean of the product" in out
    assert f"{truth.pair_mean[0]:+.6f}" in out


def test_numbers_that_json_does_not_have_are_null_or_text(capsys):
    print_json({"lower": -math.inf, "rows": [{"x": math.nan, "y": (1.5, None)}]})
    assert json.loads(capsys.readouterr().out) == {
        "version": sz.__version__,
        "lower": "-inf",
        "rows": [{"x": None, "y": [1.5, None]}],
    }


@pytest.mark.usefixtures("model")
def test_every_json_object_says_what_and_by_which_version_and_the_page_names_its_fields(run, monkeypatch):
    monkeypatch.setattr(sz, "warm_up", lambda: sz.compilation.Compilation(kernels=3, compiled=0, folder=None))
    fields = set(re.findall(r"`(\w+)`", (DOCS / "command-line.md").read_text().split("## JSON")[1]))
    for line in (
        "solve m.json -g a=+1 --marginals --pairs",
        "compare m.json -m exact",
        "bounds m.json -w 1e6",
        "info m.json",
        "sample m.json x.npy",
        "methods",
        "warm-up",
    ):
        found = answer(run, *line.split())
        assert next(iter(found)) == "version"
        assert found["version"] == sz.__version__
        if "m.json" in line:
            assert (found["file"], found["n"]) == ("m.json", 4)
        if not line.startswith("info"):  # whose fields are those of describe
            assert set(found) <= fields, line
    assert set(sz.describe(sz.read("m.json"))) <= set(answer(run, "info", "m.json"))


@pytest.mark.slow
@pytest.mark.usefixtures("model")
def test_solve_and_compare_write_pages(run):
    code, _, err = run("solve", "m.json", "-g", "a=+1", "--marginals", "--html", "answer.html")
    assert (code, err) == (0, "wrote answer.html\n")
    page = Path("answer.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "m.json: 4 spins, given a = +1" in page
    assert "c,d" in page  # a spin, by name
    assert "c,d" not in page_of(run, "solve", "m.json")
    page = page_of(run, "compare", "m.json", "-m", "exact,mf")
    assert "m.json: 4 spins" in page
    assert "convex_mf" not in page


def page_of(run, *arguments):
    assert run(*arguments, "--html", "page.html")[0] == 0
    return Path("page.html").read_text()


@pytest.mark.usefixtures("model")
def test_an_interrupted_answer_is_a_page_too(run, monkeypatch):
    monkeypatch.setattr(sz, "log_z", lambda *_, **__: tried_estimate(interrupted=True))
    assert run("solve", "m.json", "--html", "page.html")[0] == 130
    assert "annealing" in Path("page.html").read_text()


def test_a_missing_file_says_so(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command in ("solve", "info", "compare", "bounds"):
        assert run(command, "missing.uai") == (2, "", "error: missing.uai: No such file or directory\n")
    Path("unknown.txt").write_text("hello world")
    code, _, err = run("solve", "unknown.txt")
    assert code == 2
    assert "docs/your-model.md" in err


def test_convert_says_where_names_are_lost(run, tmp_path):
    source = tmp_path / "edges.csv"
    source.write_text("a,b,1.0\n")
    code, _, err = run("convert", str(source), str(tmp_path / "out.uai"))
    assert code == 0
    assert "warning: this format has no place for the names of spins" in err
    code, _, err = run("convert", str(source), str(tmp_path / "out.json"))
    assert "warning" not in err
    assert sz.read(tmp_path / "out.json").names == ("a", "b")


FORMULA = "p cnf 3 2\n1 -2 0\n2 3 0\nc p weight 1 1/3 0\n"


def test_count_prints_the_number_in_full(run, tmp_path):
    path = tmp_path / "x.cnf"
    path.write_text(FORMULA)

    def printed(*words):
        code, out, err = run("count", *map(str, words))
        assert (code, err) == (0, "")
        return out

    assert "count = 4\n" in printed(path)
    (tmp_path / "wide.cnf").write_text("p cnf 20000 0\n")
    assert len(re.search(r"count = (\d+)", printed(tmp_path / "wide.cnf"))[1]) == 6021
    answer = json.loads(printed(path, "--json", "--budget", 60, "-m", "elimination"))
    assert (answer["value"], answer["method"], answer["estimate"]["kind"]) == ("4", "elimination", "exact")
    assert "count = 1\n" in printed(path, "-g", "1=0")
    assert "count = 5/3\n" in printed(path, "--weighted")
    assert run("solve", str(path), "-m", "exact")[0] == 0
    assert run("count", "-", "--weighted")[0] == 2
