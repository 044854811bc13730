"""dimod's COO text and JSON: files written by dimod itself, against its own energies, and ours read by dimod."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spectralz as sz
from spectralz.errors import FormatError, ModelError
from tests.reference import states
from tests.strategies import models

dimod = pytest.importorskip("dimod")
coo = pytest.importorskip("dimod.serialization.coo")

LABELS = {
    "numbers": [0, 1, 2, 3],
    "gaps": [2, 0, 11, 5],
    "texts": ["a", "b", "7", "é"],
    "tuples": [(0, 0), (0, 1), ("a", 2), ("b", 1.5)],
    "mixed": ["a", 3, (0, 1), 2.5],
}


def quadratic_model(labels, vartype, offset=0.0, seed=0):
    rng = np.random.default_rng(seed)
    # Multiples of 1/64, which six decimals, all that dimod's COO writes, hold exactly.
    biases = iter((rng.integers(-200, 200, 99) / 64).tolist())
    pairs = [(labels[i], labels[j]) for i, j in [(0, 1), (2, 1), (3, 0)]]
    return dimod.BinaryQuadraticModel(
        {label: next(biases) for label in labels}, {pair: next(biases) for pair in pairs}, offset, vartype
    )


def assert_same_energies(bqm, model, beta=1.0):
    """Every state of dimod's has minus its energy, times beta, as log-weight."""
    names = range(model.n) if model.names is None else model.names
    assert set(names) == set(bqm.variables)
    low = -1 if bqm.vartype is dimod.SPIN else 0
    for x in states.all_states(model.n):
        sample = {name: 1 if spin > 0 else low for name, spin in zip(names, x, strict=True)}
        assert model.log_weight(x) == pytest.approx(-beta * bqm.energy(sample), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("vartype", ["SPIN", "BINARY"])
@pytest.mark.parametrize("labels", ["numbers", "gaps"])
@pytest.mark.parametrize("name", ["m.coo", "m.txt"])
def test_coo_of_dimod(tmp_path, vartype, labels, name):
    bqm = quadratic_model(LABELS[labels], vartype)
    with open(tmp_path / name, "w") as file:
        coo.dump(bqm, file, vartype_header=True)
    model = sz.read(tmp_path / name, beta=0.5)
    assert_same_energies(bqm, model, beta=0.5)
    assert model.names == (None if labels == "numbers" else (0, 2, 5, 11))


def test_biases_of_a_pair_listed_again_add_up_as_in_dimod(tmp_path):
    text = "# vartype=BINARY\n0 1 2\n1 0 0.5\n0 0 1\n0 0 -4\n"
    (tmp_path / "m.coo").write_text(text)
    assert_same_energies(coo.loads(text), sz.read(tmp_path / "m.coo"))


@pytest.mark.parametrize("vartype", ["SPIN", "BINARY"])
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("name", ["m.json", "m"])
def test_json_of_dimod(tmp_path, vartype, labels, name):
    bqm = quadratic_model(LABELS[labels], vartype, offset=0.75)
    (tmp_path / name).write_text(json.dumps(bqm.to_serializable()))
    model = sz.read(tmp_path / name, beta=2.0)
    assert_same_energies(bqm, model, beta=2.0)
    assert (model.names is None) == (labels == "numbers")


def test_json_of_the_schema_before(tmp_path):
    """Version 2 without bytes, which dimod reads too."""
    bqm = quadratic_model(LABELS["texts"], "SPIN", offset=0.75)
    document = bqm.to_serializable() | {"version": {"bqm_schema": "2.0.0"}}
    (tmp_path / "m.json").write_text(json.dumps(document))
    assert_same_energies(dimod.BinaryQuadraticModel.from_serializable(document), sz.read(tmp_path / "m.json"))


@given(models(max_spins=5), st.sampled_from([None, "texts", "tuples", "mixed"]))
def test_dimod_reads_our_json(tmp_path_factory, model, labels):
    path = tmp_path_factory.mktemp("json") / "m.json"
    names = None if labels is None else [*LABELS[labels], "last"][: model.n]
    model = model.named(names)
    sz.write(model, path)
    bqm = dimod.BinaryQuadraticModel.from_serializable(json.loads(path.read_text()))
    assert_same_energies(bqm, model)
    again = sz.read(path)
    assert (again.names or None) == (model.names or None)
    assert np.array_equal(again.field, model.field)
    assert again == sz.Ising.from_edges(model.n, *model.edges(), model.field, model.constant, names)


@pytest.mark.slow
@given(models(max_spins=5), st.booleans())
def test_dimod_reads_our_coo(tmp_path_factory, model, has_gaps):
    path = tmp_path_factory.mktemp("coo") / "m.coo"
    model = sz.Ising(model.field, model.coupling, -float(model.diagonal.sum()))
    model = sz.Ising.from_edges(
        model.n, *model.edges(), model.field, names=[3, 5, 8, 13, 21][: model.n] if has_gaps else None
    )
    sz.write(model, path)
    assert_same_energies(coo.loads(path.read_text()), model)
    assert sz.read(path) == model


def test_small_and_large_biases_survive_coo(tmp_path):
    """dimod's reader knows no exponents."""
    model = sz.Ising.from_edges(2, [(0, 1)], [1e-9], field=[2.5e22, 1 / 3])
    sz.write(model, tmp_path / "m.coo")
    assert "e" not in (tmp_path / "m.coo").read_text().split("\n", 1)[1]
    assert sz.read(tmp_path / "m.coo") == model
    assert coo.loads((tmp_path / "m.coo").read_text()).linear[0] == -2.5e22


def test_what_coo_cannot_hold_is_refused(tmp_path):
    for model in (sz.Ising([1.0], offset=1.0), sz.Ising([1.0], names=["a"]), sz.Ising([1.0], names=[-1])):
        with pytest.raises(ModelError, match=r"write \.json"):
            sz.write(model, tmp_path / "m.coo")
    assert not list(tmp_path.iterdir())


GOOD = {
    "type": "BinaryQuadraticModel",
    "version": {"bqm_schema": "3.0.0"},
    "use_bytes": False,
    "variable_labels": ["a", "b"],
    "variable_type": "SPIN",
    "offset": 0.0,
    "linear_biases": [1.0, 2],
    "quadratic_biases": [0.5],
    "quadratic_head": [0],
    "quadratic_tail": [1],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": {"bqm_schema": "1.0.0"}}, "version 1.0.0 of dimod's schema"),
        ({"version": {"bqm_schema": "4.0.0"}}, "version 4.0.0 of dimod's schema"),
        ({"version": 3}, "not a binary quadratic model"),
        ({"use_bytes": True}, "with bytes"),
        ({"variable_labels": ["a", "a"]}, "names a variable twice"),
        ({"variable_labels": ["a"]}, "1 variable_labels and 2 linear_biases"),
        ({"variable_labels": ["a", {}]}, "cannot be a name"),
        ({"variable_labels": ["a", None]}, "cannot be a name"),
        ({"variable_labels": None}, "missing, or not a list"),
        ({"variable_type": "DISCRETE"}, "'SPIN' or 'BINARY'"),
        ({"offset": "1"}, "offset must hold numbers"),
        ({"offset": float("nan")}, "finite"),
        ({"linear_biases": [1.0, True]}, "must hold numbers"),
        ({"linear_biases": [1.0, 10**400]}, "too large"),
        ({"linear_biases": [1.0, float("inf")]}, "finite"),
        ({"linear_biases": [1.5e308, 1.5e308]}, "large|overflow"),
        ({"quadratic_biases": []}, "1 quadratic_head, 1 quadratic_tail and 0 quadratic_biases"),
        ({"quadratic_head": [2]}, "outside 0 to 1"),
        ({"quadratic_head": [-1]}, "outside 0 to 1"),
        ({"quadratic_head": [0.0]}, "whole numbers"),
        ({"quadratic_head": [0, 1]}, "2 quadratic_head, 1 quadratic_tail and 1 quadratic_biases"),
        ({"quadratic_head": [1]}, "'b' has a quadratic bias with itself"),
        ({"quadratic_tail": None}, "whole numbers"),
    ],
)
def test_broken_json(tmp_path, change, message):
    (tmp_path / "m.json").write_text(json.dumps(GOOD | change))
    with pytest.raises(FormatError, match=message) as caught:
        sz.read(tmp_path / "m.json")
    assert "m.json" in str(caught.value)


def test_json_that_is_none(tmp_path):
    for text, line in (("{", 1), ('{"a":\n\n1,}', 3), ("[" * 100_000, None), ("{" + '"a":{' * 100_000, None)):
        (tmp_path / "m.json").write_text(text)
        with pytest.raises(FormatError, match="JSON") as caught:
            sz.read(tmp_path / "m.json")
        assert line is None or caught.value.line == line
    (tmp_path / "m.json").write_text(json.dumps([1]))
    with pytest.raises(FormatError, match="not a binary quadratic model"):
        sz.read(tmp_path / "m.json")


@pytest.mark.slow
def test_dimod_is_not_needed(tmp_path):
    (tmp_path / "m.json").write_text(json.dumps(GOOD))
    code = "import sys; sys.modules['dimod'] = None; import spectralz as sz; print(sz.read('m.json').names)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "('a', 'b')"
