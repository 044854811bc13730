"""Sweeps as values and as TOML, their tasks, and the means of their rows."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest

import spectralz as sz
from spectralz.errors import FormatError, OptionError
from spectralz.sweeps import Contestant, Row, Sweep, Task, read_config, read_rows, summarise
from spectralz.sweeps.rows import COLUMNS, cells_of, header, to_csv

BP = Contestant(label="BP", method="bp")


def make_sweep(**changes):
    return Sweep(
        **{
            "name": "test",
            "contestants": (BP,),
            "generator": "complete",
            "parameters": {"n": 4},
            "values": (0.5, 1.0),
            **changes,
        }
    )


def make_row(**changes):
    empty = dict.fromkeys(COLUMNS)
    text = dict.fromkeys(("instance", "label", "method", "options", "kind", "status", "failure", "versions"), "")
    return Row(**{**empty, **text, "x": 1.0, "repeat": 0, "seed": 0, **changes})


# Tasks.


def test_tasks_are_the_product_of_values_and_repeats():
    tasks = list(make_sweep(repeats=2, seed=7).tasks())
    assert [(task.x, task.repeat, task.seed) for task in tasks] == [(0.5, 0, 7), (0.5, 1, 8), (1.0, 0, 7), (1.0, 1, 8)]
    expected = sz.generators.complete(n=4, strength=0.5, seed=8)
    np.testing.assert_array_equal(tasks[1].model().coupling, expected.coupling)


def test_names_of_tasks_are_unique_where_six_digits_are_not():
    values = (0.5, 0.1234567, 0.1234568)
    names = [task.instance for task in make_sweep(values=values).tasks()]
    assert names[0] == "complete-strength=0.5-seed=0"
    assert len(set(names)) == 3


def test_names_of_files_are_unique(tmp_path):
    files = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        files.append(str(tmp_path / folder / "model.npz"))
    tasks = list(make_sweep(generator=None, parameters={}, values=(), files=(*files, "other.npz")).tasks())
    assert [task.instance for task in tasks] == [*files, "other.npz"]
    assert [task.x for task in tasks] == [1.0, 2.0, 3.0]


def test_sizes_on_the_axis_are_whole_numbers():
    models = [task.model() for task in make_sweep(axis="n", values=(3, 5.0), parameters={"strength": 1.0}).tasks()]
    assert [model.n for model in models] == [3, 5]


def test_a_generator_without_seed_gets_none():
    (task,) = make_sweep(generator="curie-weiss", values=(1.0,)).tasks()
    assert task.model().n == 4
    with pytest.raises(OptionError, match="no seed"):
        make_sweep(generator="curie-weiss", repeats=2)


def test_instances_are_sets_of_parameters():
    instances = ({"side": 2, "strength": 1.0}, {"side": 3, "strength": 2.0, "periodic": True})
    sweep = make_sweep(generator="grid", parameters={}, values=(), axis="model", instances=instances, repeats=2)
    assert [(task.x, task.model().edge_count) for task in sweep.tasks()] == [(1, 4), (1, 4), (2, 18), (2, 18)]


def test_a_tiny_task_is_of_the_same_family():
    grid = Task(
        instance="", x=1.0, repeat=0, seed=0, generator="grid", parameters={"side": 99, "strength": 1, "seed": 3}
    )
    assert grid.tiny().model().n == 9
    for generator, parameters, n in (
        ("random-regular", {"n": 100, "degree": 51}, 8),
        ("planted", {"rows": 40, "columns": 50, "shortest": 20}, 9),
        ("cubic", {"rows": 10, "columns": 20, "layers": 2}, 18),
    ):
        task = Task(
            instance="", x=0, repeat=0, seed=0, generator=generator, parameters={**parameters, "strength": 1, "seed": 0}
        )
        assert task.tiny().model().n == n
    file = Task(instance="", x=1.0, repeat=0, seed=0, path="nowhere.uai")
    assert file.tiny().model().is_sparse


# The edge convention: "code" halves the couplings, and nothing else.


@pytest.mark.parametrize(
    ("axis", "values", "parameters"),
    [
        ("strength", (2.0,), {"n": 4}),
        ("n", (4,), {"strength": 2.0}),
        ("field_strength", (1.0,), {"n": 4, "strength": 2}),
    ],
)
def test_the_code_convention_halves_couplings_whatever_the_axis(axis, values, parameters):
    text, code = (
        next(make_sweep(axis=axis, values=values, parameters=parameters, edge_convention=convention).tasks())
        for convention in ("text", "code")
    )
    np.testing.assert_array_equal(code.model().coupling, text.model().coupling / 2.0)
    np.testing.assert_array_equal(code.model().field, text.model().field)
    assert (code.x, code.instance) == (text.x, text.instance)


@pytest.mark.parametrize("generator", ["spin-glass-3d", "curie-weiss"])
def test_the_code_convention_is_refused_where_strength_is_something_else(generator):
    size = {"side": 2} if generator == "spin-glass-3d" else {"n": 4}
    make_sweep(generator=generator, parameters=size)
    with pytest.raises(OptionError, match="convention of its own"):
        make_sweep(generator=generator, parameters=size, edge_convention="code")


# What is no sweep.


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"generator": "gird"}, "'gird'; known are complete"),
        ({"generator": None}, "either a generator or files"),
        ({"files": ("a.uai",)}, "either a generator or files"),
        ({"values": ()}, "values"),
        ({"values": (1.0, 1.0)}, "values"),
        ({"values": (math.inf,)}, "values"),
        ({"repeats": 0}, "repeats is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"edge_convention": "both"}, "'both'; it must be one of 'text', 'code'"),
        ({"parameters": {}}, "needs the parameter 'n'"),
        ({"parameters": {"n": 4, "side": 3}}, "no parameter 'side'"),
        ({"parameters": {"n": 4, "seed": 3}}, "own seed"),
        ({"parameters": {"n": 4, "strength": 3}}, "'strength' is both the axis and a parameter"),
        ({"axis": "side"}, "no parameter 'side'"),
        ({"contestants": ()}, "at least one"),
        ({"contestants": (BP, BP)}, "own label"),
        ({"contestants": (Contestant(label="a\nb", method="bp"),)}, "printable"),
        ({"contestants": (Contestant(label="a", method="bp", options={"dampin": 1}),)}, "no option 'dampin'"),
        ({"contestants": (Contestant(label="a", method="sdp", options={"step": 1}),)}, "'sdp' has no option 'step'"),
    ],
)
def test_what_is_no_sweep_is_refused(changes, words):
    with pytest.raises(OptionError, match=words):
        make_sweep(**changes)


def test_a_sweep_goes_through_json_and_pickle():
    sweep = make_sweep(contestants=(BP, Contestant(label="S", method="spectral", options={"tol": 1e-5}, is_ours=True)))
    assert Sweep.from_dict(json.loads(json.dumps(sweep.to_dict()))) == sweep
    assert pickle.loads(pickle.dumps(sweep)) == sweep


# TOML.

CONFIG = """
name = "mine"
methods = ["exact", "BP-200", "sdp"]
axis = "n"
values = [3, 4]
repeats = 2
seed = 5
truth = false
edge_convention = "code"

[model]
generator = "complete"
strength = 1.5

[[contestants]]
label = "damped"
method = "bp"
options = { damping = 0.5, max_iter = 50 }
is_ours = true
"""


@pytest.fixture
def configured(tmp_path):
    def read(text):
        path = tmp_path / "config.toml"
        path.write_text(text)
        return read_config(path)

    return read


def test_a_configuration_says_all_of_a_sweep(configured):
    assert configured(CONFIG) == Sweep(
        name="mine",
        contestants=(
            Contestant(label="exact", method="exact"),
            Contestant(label="BP-200", method="BP-200"),
            Contestant(label="sdp", method="sdp"),
            Contestant(label="damped", method="bp", options={"damping": 0.5, "max_iter": 50}, is_ours=True),
        ),
        generator="complete",
        parameters={"strength": 1.5},
        axis="n",
        values=(3.0, 4.0),
        repeats=2,
        seed=5,
        truth=False,
        edge_convention="code",
    )


def test_short_forms_and_defaults(configured):
    sweep = configured('methods = ["bp"]\nstrengths = [1]\n[model]\ngenerator = "grid"\nparameters = {side = 2}')
    assert sweep == Sweep(
        name="config",
        contestants=(Contestant(label="bp", method="bp"),),
        generator="grid",
        parameters={"side": 2},
        values=(1.0,),
    )


def test_instances_in_toml(configured):
    sweep = configured(
        'methods = ["bp"]\n[model]\ngenerator = "grid"\nperiodic = true\n'
        "[[model.instances]]\nside = 2\nstrength = 1\n[[model.instances]]\nside = 3\nstrength = 2"
    )
    assert [(task.x, task.model().n) for task in sweep.tasks()] == [(1.0, 4), (2.0, 9)]


def test_files_are_relative_to_the_configuration(configured, tmp_path, monkeypatch):
    (tmp_path / "models").mkdir()
    for name in ("b", "a", "c"):
        sz.write(sz.generators.grid(2, 1.0, seed=0), tmp_path / "models" / f"{name}.npz")
    monkeypatch.chdir("/")
    sweep = configured('methods = ["bp"]\n[model]\nfiles = ["models/c.npz", "models/*.npz"]')
    assert [task.instance for task in sweep.tasks()] == ["c.npz", "a.npz", "b.npz"]
    assert all(task.model().n == 4 for task in sweep.tasks())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("name =", "name : "), "this is not TOML.*line 2"),
        (("repeats", "repeat"), "repeat is not a key of a sweep; known are name, methods"),
        (("repeats = 2", "repeats = 2.5"), "repeats is 2.5; it must be a whole number"),
        (("repeats = 2", "repeats = true"), "repeats is True; it must be a whole number"),
        (("repeats = 2", "repeats = 0"), "repeats is 0; it must be a whole number, 1 or more"),
        (("values = [3, 4]", 'values = [3, "4"]'), r"values is \[3, '4'\]; it must be a list of numbers"),
        (("values = [3, 4]", "values = [3, 4.5]"), "n is 4.5; it must be a whole number"),
        (("values = [3, 4]", "strengths = [3, 4]"), "strengths stands for axis and values, and axis is given too"),
        (("truth = false", 'truth = "no"'), "truth is 'no'; it must be true or false"),
        (('"code"', '"print"'), "edge_convention is 'print'; it must be one of 'text', 'code'"),
        (('["exact", ', '["exat", '), r"methods\[1\]: no method is called 'exat'; did you mean 'exact'"),
        (("damping =", "dampin ="), r"contestants\[1\]: method 'bp' has no option 'dampin'; its options are"),
        (("damping = 0.5", "damping = 7"), r"contestants\[1\]: damping is 7"),
        (("is_ours", "ours"), r"contestants\[1\].ours is not a key of a sweep; known are label, method"),
        (('method = "bp"', ""), r"contestants\[1\].method is missing"),
        (("[model]", "[modell]"), "modell is not a key"),
        (("[model]", "[[model]]"), "model is .* it must be a table"),
        (('generator = "complete"', ""), "model.generator is missing; it is one of complete, erdos-renyi"),
        (('"complete"', '"complet"'), "'complet'; known are complete"),
        (("strength = 1.5", "strenght = 1.5"), "no parameter 'strenght' to set: it has n, strength"),
        (("strength = 1.5", 'strength = "1.5"'), "strength is '1.5'; it must be a number"),
        (("strength = 1.5", "strength = -1.5"), "strength is -0.75; it cannot be negative"),
        (('generator = "complete"\nstrength = 1.5', 'files = ["a.npz"]'), "axis has no meaning for model.files"),
        (('generator = "complete"', 'files = ["a.npz"]'), "model.files stands alone"),
    ],
)
def test_errors_name_file_and_key_and_what_is_wanted(configured, change, words):
    assert change[0] in CONFIG
    with pytest.raises(FormatError, match=words) as caught:
        configured(CONFIG.replace(*change))
    assert "config.toml" in str(caught.value)


def test_missing_parts_are_named(configured):
    with pytest.raises(FormatError, match=r"\[model\] is missing"):
        configured('methods = ["bp"]')
    with pytest.raises(FormatError, match="no methods are given"):
        configured('strengths = [1]\n[model]\ngenerator = "grid"\nside = 2')
    with pytest.raises(FormatError, match=r"model.files names 'no\*.uai', and there is no such file"):
        configured('methods = ["bp"]\n[model]\nfiles = ["no*.uai"]')


# Rows.


def test_rows_go_through_a_file(tmp_path):
    rows = [
        make_row(instance='a "b", c', n=3, edges=2, log_z=0.1 + 0.2, converged=False, x=0.1, failure="", label="BP"),
        make_row(instance="b", x=-0.0, lower=1e-300, upper=1 / 3, converged=True, failure="no"),
    ]
    path = tmp_path / "rows.csv"
    path.write_text(header() + to_csv(rows))
    assert read_rows(path) == rows


@pytest.mark.parametrize("text", ["=1+1", "+1", "-x", "@a", "\t=1", "'=1", "''-", "'", "'a", "=", "a=b", " =1", ""])
def test_text_that_spreadsheets_would_compute_is_escaped_and_read_back(tmp_path, text):
    row = make_row(instance="a", label=text, failure=text, log_z=-0.5)
    content = to_csv([row])
    (tmp_path / "rows.csv").write_text(header() + content)
    assert read_rows(tmp_path / "rows.csv") == [row]
    cells = cells_of(content.rstrip("\n"))
    assert cells[COLUMNS.index("label")][:1] not in ("=", "+", "-", "@", "\t")
    assert cells[COLUMNS.index("log_z")] == "-0.5"


def test_a_row_is_one_line(tmp_path):
    text = to_csv([make_row(failure="one\r\ntwo\n\nthree")])
    assert text.count("\n") == 1
    (tmp_path / "rows.csv").write_text(header() + text)
    assert read_rows(tmp_path / "rows.csv")[0].failure == "one two three"


def test_a_line_being_written_is_left_out_and_a_wrong_one_is_named(tmp_path):
    path = tmp_path / "rows.csv"
    row = make_row(instance="a")
    path.write_text(header() + to_csv([row, row])[:-10])
    assert read_rows(path) == [row]
    path.write_text(header() + "a,b\n" + to_csv([row]))
    with pytest.raises(FormatError, match=r"rows.csv, line 2: this is not a row"):
        read_rows(path)
    path.write_text("instance,x\n")
    with pytest.raises(FormatError, match="its columns are 'instance,x'"):
        read_rows(path)


def test_means_are_those_of_numpy():
    errors = np.array([1.0, -3.0, 0.5])
    seconds = np.array([1.0, 2.0, 6.0])
    rows = [make_row(label="B", x=2.0, log_z=5.0, error=e, seconds=s) for e, s in zip(errors, seconds, strict=True)]
    rows += [make_row(label="B", x=2.0, failure="no"), make_row(label="A", x=1.0, log_z=1.0, error=2.0, seconds=3.0)]
    rows += [make_row(label="B", x=1.0, log_z=1.0, seconds=3.0)]
    first, second, third = summarise(rows)
    assert [(s.label, s.x) for s in (first, second, third)] == [("B", 1.0), ("B", 2.0), ("A", 1.0)]
    assert (second.count, second.failures) == (3, 1)
    spread = np.std(np.abs(errors), ddof=1)
    found = (second.mean, second.spread, second.standard_error, second.signed, second.seconds, second.seconds_spread)
    expected = (1.5, spread, spread / np.sqrt(3), -0.5, 3.0, np.std(seconds, ddof=1))
    np.testing.assert_allclose(found, expected, rtol=1e-14)  # sums of three numbers
    assert (third.mean, third.spread, third.standard_error, third.seconds_spread) == (2.0, 0.0, 0.0, 0.0)
    assert (first.count, first.failures) == (1, 0)
    assert all(map(math.isnan, (first.mean, first.spread, first.standard_error, first.signed)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('name = ".."', "names a folder"),
        ('name = "a/b"', "names a folder"),
        ('name = ""', "names a folder"),
        ("seed = 1" + 400 * "0", "seed is too large"),
        ("strengths = [1" + 400 * "0" + "]", "too large"),
        ("deep = " + 5000 * "[", "not TOML"),
        ("long = " + 5000 * "1", "not TOML"),
        ('[[contestants]]\nmethod = "bp"\nlabel = ""', "1 to 200 characters"),
        ('[[contestants]]\nmethod = "bp"\nlabel = "' + 300 * "a" + '"', "1 to 200 characters"),
        ('[[contestants]]\nmethod = "sdp"\noptions = { tol = -1.0 }', "tol is -1.0"),
        ('[[contestants]]\nmethod = "sdp"\noptions = { seed = "q" }', "seed is 'q'"),
    ],
)
def test_what_hostile_configurations_are_answered_with(tmp_path, text, words):
    path = tmp_path / "c.toml"
    values = "" if "strengths" in text else "strengths = [0.5]\n"
    head, tables = (text, "") if not text.startswith("[") else ("", text)
    path.write_text(f'{values}methods = ["mf"]\n{head}\n[model]\ngenerator = "complete"\nn = 5\n{tables}\n')
    with pytest.raises(FormatError, match=words):
        read_config(path)


def test_files_are_files_with_names_that_are_text(tmp_path):
    (tmp_path / "folder.uai").mkdir()
    path = tmp_path / "c.toml"
    path.write_text('methods = ["mf"]\n[model]\nfiles = ["*.uai"]\n')
    with pytest.raises(FormatError, match="no such file"):
        read_config(path)


def test_the_convention_of_the_code_is_refused_where_it_means_nothing():
    with pytest.raises(OptionError, match="not for files and instances"):
        Sweep(
            name="x",
            contestants=(Contestant(label="a", method="mf"),),
            generator="complete",
            instances=({"n": 3, "strength": 1.0},),
            edge_convention="code",
        )
