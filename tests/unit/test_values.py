"""Models made from 0/1 data take evidence and states as their owner writes them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import spectralz as sz
from tests.reference.states import all_states

RNG = np.random.default_rng(0)
Q = {("a", "a"): -1.0, ("a", "b"): 2.0, ("b", "c"): -0.5}


def _of_dimod():
    dimod = pytest.importorskip("dimod")
    return sz.from_dimod(dimod.BinaryQuadraticModel({"a": 1.0, "b": 0.0, "c": 0.5}, {("a", "b"): -2.0}, 0.5, "BINARY"))


MADE = {
    "from_qubo": lambda: sz.from_qubo(Q),
    "from_binary": lambda: sz.Ising.from_binary([1.0, 0.0, 0.3], [[0, 2, 0], [0, 0, -1], [0, 0, 0]], names=list("abc")),
    "fit": lambda: sz.fit(RNG.integers(2, size=(60, 3)), names=list("abc")).model,
    "machine": lambda: sz.RBM([[1.0], [2.0]], [0.1, 0.2], [0.3], names=list("abc")).to_ising(),
    "dimod": _of_dimod,
}


@pytest.mark.parametrize("name", MADE)
def test_zero_is_the_spin_below(name):
    model = MADE[name]()
    assert model.values == "01"
    assert sz.log_z(model, given={"a": 0}).log_z == sz.log_z(model, given={"a": -1}).log_z
    assert sz.log_z(model, given={"a": 0}).log_z != sz.log_z(model, given={"a": 1}).log_z
    bits = (all_states(3) + 1) // 2
    assert np.array_equal(model.log_weight(bits), model.log_weight(all_states(3)))
    assert np.array_equal(sz.log_prob(model, bits).log_prob, sz.log_prob(model, all_states(3)).log_prob)


def test_it_stays_with_the_model(tmp_path):
    model = sz.from_qubo(Q, beta=0.5)
    sz.write(model, tmp_path / "model.npz")
    for other in (
        model.scaled(2.0),
        model.condition({"b": 0}),
        model.named(list("xyz")),
        model + model,
        pickle.loads(pickle.dumps(model)),
        sz.read(tmp_path / "model.npz"),
    ):
        assert other.values == "01"
    assert sz.read(tmp_path / "model.npz").lost == model.lost
    assert sz.Ising([0.0]).values == "pm1"
    assert sz.Ising(model.field, model.coupling, model.offset, model.names) == model  # == ignores it


@pytest.mark.parametrize("word", ["zero", 3])
def test_a_file_with_other_values_is_refused(tmp_path, word):
    sz.write(sz.from_qubo(Q), tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as arrays:
        np.savez(tmp_path / "bad.npz", **{**arrays, "variables": word})
    with pytest.raises(sz.errors.FormatError, match="'01' or 'pm1'"):
        sz.read(tmp_path / "bad.npz")


@pytest.mark.parametrize(
    ("model", "given", "words"),
    [
        (sz.from_qubo(Q), {"a": 0, "b": -1}, "both 0 and -1; a variable of this model is 0 or 1, or -1 and"),
        (sz.from_qubo(Q), {"a": 2}, "sets spin 'a' to 2; a variable of this model is 0 or 1"),
        (sz.Ising([0.0, 1.0]), {0: 0}, r"sets spin 0 to 0; a spin is -1 or \+1, by 2\*v - 1 for 0/1 values"),
    ],
)
def test_an_error_names_both_spellings(model, given, words):
    with pytest.raises(sz.errors.ModelError, match=words):
        sz.log_z(model, given=given)


def test_states_are_written_in_one_way():
    model = sz.from_qubo(Q)
    for states in ([[0, -1, 1]], [[0, 2, 1]], [["a", "b", "c"]]):
        with pytest.raises(sz.errors.ModelError, match="a variable of this model is 0 or 1"):
            model.log_weight(states)
    with pytest.raises(sz.errors.ModelError, match="only models made from 0/1 data"):
        sz.Ising([0.0, 0.0, 1.0]).log_weight([0, 1, 1])
    with pytest.raises(sz.errors.ModelError, match="only -1 and"):
        sz.log_prob(model, [[0, 1, 1]], values="pm1")


# ------------------------------------------------------------------------------------------- conditional answers


@pytest.mark.parametrize("model", [sz.generators.complete(4, 1.0, seed=0), sz.from_qubo(Q)])
def test_probabilities_given_a_spin_add_up_and_contradictions_have_none(model):
    states, first = all_states(model.n), 0 if model.names is None else "a"
    found = sz.log_prob(model, states, given={first: 1})
    assert np.all(found.log_prob[states[:, 0] == -1] == -np.inf)
    assert np.exp(found.log_prob).sum() == pytest.approx(1.0, rel=1e-12)
    joint = sz.log_prob(model, states).log_prob
    wanted = joint - np.log(np.exp(joint[states[:, 0] == 1]).sum())
    assert found.log_prob[states[:, 0] == 1] == pytest.approx(wanted[states[:, 0] == 1], rel=1e-12)


def test_ratios_take_evidence():
    model = sz.generators.complete(6, 1.0, seed=0)
    found = sz.log_ratio(1.3 * model, model, given={2: -1})
    wanted = sz.log_z(1.3 * model, given={2: -1}).log_z - sz.log_z(model, given={2: -1}).log_z
    assert float(found) == pytest.approx(wanted, rel=1e-12)


def test_a_ratio_without_digits_is_not_exact():
    model = sz.generators.complete(n=6, strength=1e17, seed=4)
    found = sz.log_ratio(1.0001 * model, model)
    assert not found.trusted


def test_the_likelihood_of_rows_refuses_evidence():
    with pytest.raises(sz.errors.OptionError, match="given"):
        sz.RBM([[1.0], [2.0]]).log_likelihood([[0, 1]], given={"v0": 1})


def test_evidence_on_the_command_line():
    from spectralz.cli.files import parse_given

    model = sz.from_qubo(Q)
    assert parse_given("a=0", model) == (0, -1)
    assert parse_given("a=-1", model) == (0, -1)
    assert parse_given("b=1", model) == (1, 1)
    with pytest.raises(sz.errors.OptionError, match=r"NAME=\+1 or NAME=-1$"):
        parse_given("0=0", sz.Ising([0.0]))
    with pytest.raises(sz.errors.OptionError, match=r"NAME=1 and NAME=0"):
        parse_given("a=2", model)
