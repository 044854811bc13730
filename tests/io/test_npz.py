from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import spectralz as sz
from spectralz.errors import FormatError
from tests.reference import states
from tests.strategies import models


@given(models(max_spins=6))
def test_every_bit_survives(tmp_path_factory, model):
    path = tmp_path_factory.mktemp("npz") / "model.npz"
    sz.write(model, path)
    again = sz.read(path)
    assert again.is_sparse == model.is_sparse
    assert again.offset == model.offset
    assert np.array_equal(again.field, model.field)
    assert np.array_equal(states.dense(again), states.dense(model))
    X = states.all_states(model.n)
    assert np.array_equal(again.log_weight(X), model.log_weight(X))


GOOD = {"format": "spectralz-ising", "version": 1, "field": np.zeros(2), "offset": 0.0}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": np.zeros(3)}, "not a spectralz model"),
        (GOOD | {"version": 99, "coupling": np.zeros((2, 2))}, "upgrade"),
        (GOOD, "'edges' is missing"),
        (GOOD | {"coupling": np.array([[0, 1], [2, 0]])}, "not symmetric"),
        (GOOD | {"coupling": np.zeros((3, 3))}, "lengths must agree"),
        (GOOD | {"edges": np.array([[0, 5]]), "values": np.ones(1)}, "outside 0 to 1"),
        (GOOD | {"edges": np.array([[0, 1]]), "values": np.ones(2)}, "must be"),
        (GOOD | {"edges": np.array([[0, 1], [0, 1]]), "values": np.ones(2)}, "every pair once"),
        (GOOD | {"edges": np.array([[1, 0]]), "values": np.ones(1)}, "the smaller spin first"),
        (GOOD | {"edges": np.array([[0, 1]]), "values": np.array(["a"])}, "real numbers"),
        (GOOD | {"edges": np.array([[0.0, 1.0]]), "values": np.ones(1)}, "integers"),
        ({k: v for k, v in GOOD.items() if k != "field"} | {"coupling": np.zeros((2, 2))}, "'field' is missing"),
        (GOOD | {"offset": np.nan, "coupling": np.zeros((2, 2))}, "finite number"),
    ],
)
def test_broken_archives(tmp_path, arrays, message):
    np.savez(tmp_path / "m.npz", **arrays)
    with pytest.raises(FormatError, match=message) as caught:
        sz.read(tmp_path / "m.npz")
    assert "m.npz" in str(caught.value)


def test_pickles_are_never_loaded(tmp_path):
    np.savez(tmp_path / "m.npz", format=np.array({"a": 1}, dtype=object))
    with pytest.raises(FormatError, match="not a readable"):
        sz.read(tmp_path / "m.npz")


def test_a_single_array_and_a_cut_archive(tmp_path):
    with open(tmp_path / "m.npz", "wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(FormatError, match="single numpy array"):
        sz.read(tmp_path / "m.npz")
    sz.write(sz.generators.complete(30, 1.0, 0), tmp_path / "cut.npz")
    whole = (tmp_path / "cut.npz").read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 5):
        (tmp_path / "cut.npz").write_bytes(whole[:length])
        with pytest.raises(FormatError, match=r"cut\.npz"):
            sz.read(tmp_path / "cut.npz")
