"""What holds for every method, whatever it computes. A new method is tested here by being registered."""

from __future__ import annotations

import ast
import inspect
import json
import math
import pickle
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spectralz as sz
from tests.helpers import with_slow
from tests.reference import states
from tests.strategies import low_rank_models, models, planar_models

EVERY = pytest.mark.parametrize("name", sz.METHODS)
# Methods that refuse what is not of low rank, or not planar, are given only models that are.
SUITED = {name: models() for name in sz.METHODS} | {
    "quadrature": low_rank_models(),
    "low_rank": low_rank_models(),
    "planar": planar_models(),
}
OPTIONS: dict[str, dict[str, object]] = {
    "low_rank": {"max_cells": 10**9, "step": 0.3},
    "spectral": {"tol": 1e-12},  # what is left of the gap depends on the start
    "annealing": {"population": 32},
    "states": {"population": 100, "quenches": 50},
}


def quantised(result):
    """How far two runs on one model may differ: eigenvectors are rounded, and an SDP's D is good to its gap's root."""
    gap = result.details.get("gap") or 0.0
    if result.method.name in ("annealing", "states", "mps"):  # other random numbers after a flip
        return 5.0 * (result.std_error or 0.0)
    return result.details.get("quantisation", 0.0) + math.sqrt(gap) * max(1.0, abs(result.log_z))


def log_z(model, name):
    return sz.log_z(model, name, **OPTIONS.get(name, {}))


def test_the_registry_and_the_folder_agree():
    folder = Path(sz.methods.__file__).parent
    files = {f"spectralz.methods.{path.stem}" for path in folder.glob("*.py")}
    files -= {"spectralz.methods.__init__", "spectralz.methods.base"}
    modules = [method.__module__ for method in sz.METHODS.values()]
    assert sorted(modules) == sorted([*files, "spectralz.portfolio.auto"])  # exactly one in each
    assert all(hasattr(sz, method.__name__) for method in sz.METHODS.values())


@EVERY
def test_options_are_frozen_named_and_documented(name):
    method = sz.METHODS[name]()
    assert method.name == name
    assert pickle.loads(pickle.dumps(method)) == method
    for option in fields(method):
        with pytest.raises(FrozenInstanceError):
            setattr(method, option.name, None)
        assert f"\n{option.name}\n" in inspect.getdoc(method), f"{option.name} is not documented"
    for section in ("Parameters", "Examples"):
        assert section in method.__doc__
    with pytest.raises(sz.errors.OptionError, match=r"its options are|it has none"):
        sz.log_z(sz.Ising([], []), name, no_such_option=1)


@EVERY
@given(data=st.data())
@settings(max_examples=40)
def test_the_result_keeps_its_promises(name, data):
    model = data.draw(SUITED[name])
    truth, _, _ = states.solve(model)
    result = log_z(model, name)
    assert math.isfinite(result.log_z)
    assert result.seconds >= 0
    assert result.status
    assert str(result.status) == result.status
    assert type(result.trusted) is bool
    if result.kind is sz.Kind.EXACT or name in ("quadrature", "low_rank"):
        assert result.trusted
    elif name in ("auto", "ep", "annealing", "states", "mps", "planar"):
        assert result.trusted or not result.status.converged
    else:
        assert result.trusted is (result.kind is not sz.Kind.ESTIMATE)
    slack = 1e-11 * max(1.0, abs(truth))  # what rounding may add to a bound that claims no rounding analysis
    if result.kind is sz.Kind.EXACT:
        assert abs(result.log_z - truth) <= 1e-10 * max(1.0, abs(truth), np.abs(states.dense(model)).sum())
    if result.kind is sz.Kind.LOWER_BOUND:
        assert result.log_z <= truth + slack
    if result.kind is sz.Kind.UPPER_BOUND:
        assert result.log_z >= truth - slack
    if result.lower is not None:
        assert result.lower <= truth + slack
    if result.upper is not None:
        assert result.upper >= truth - slack
    json.dumps(result.to_dict(), allow_nan=False)


@EVERY
@given(data=st.data())
@settings(max_examples=20)
def test_offset_and_diagonal_add_a_constant(name, data):
    model = data.draw(SUITED[name])
    shifted = sz.Ising(model.field, model.coupling, model.offset + 2.5).shift_diagonal(0.25)
    a, b = log_z(model, name), log_z(shifted, name)
    assert abs(b.log_z - a.log_z - 2.5 - 0.25 * model.n) <= quantised(a) + quantised(b) + 1e-8 * max(1.0, abs(a.log_z))


@EVERY
@given(data=st.data())
@settings(max_examples=20)
def test_flipping_a_spin_and_its_signs_changes_nothing(name, data):
    model = data.draw(SUITED[name])
    signs = np.where(np.arange(model.n) % 3 == 0, -1.0, 1.0)
    flipped = sz.Ising(signs * model.field, np.outer(signs, signs) * states.dense(model), model.offset)
    a, b = log_z(model, name), log_z(flipped, name)
    assert abs(b.log_z - a.log_z) <= quantised(a) + quantised(b) + 1e-9 * max(1.0, abs(a.log_z))


@EVERY
def test_the_model_is_not_changed_and_the_answer_is_the_same_twice(name):
    model = sz.generators.rank_one(8, 0.5, seed=1)
    if name == "planar":
        model = sz.Ising(None, np.diag(np.ones(7), 1) + np.diag(np.ones(7), -1))
    field, A = model.field.copy(), model.coupling.copy()
    first, second = log_z(model, name), log_z(model, name)
    assert first.log_z == second.log_z
    assert np.array_equal(model.field, field)
    assert np.array_equal(model.coupling, A)


@pytest.mark.parametrize("name", with_slow(sz.METHODS, ["mps", "wmbe"]))
@given(data=st.data())
@settings(max_examples=20)
def test_marginals_have_their_shapes_and_ranges(name, data):
    model = data.draw(SUITED[name])
    if not sz.METHODS[name].gives_marginals:
        pytest.skip(f"{name} gives no marginals")
    found = sz.marginals(model, name, **OPTIONS.get(name, {}))
    assert found.mean.shape == (model.n,)
    assert found.probability.shape == (model.n, 2)
    assert np.array_equal(found.edges, model.edges()[0])
    assert found.pair_mean.shape == (len(found.edges),)
    assert np.all(np.abs(found.mean) <= 1)
    assert np.all(np.abs(found.pair_mean) <= 1)
    assert np.allclose(found.probability.sum(axis=1), 1.0)
    assert np.allclose(found.probability @ [-1, 1], found.mean, atol=1e-12)
    _, mean, pair_mean = states.solve(model)
    if found.kind is sz.Kind.EXACT:
        assert np.allclose(found.mean, mean, atol=1e-9)
        assert np.allclose(found.pair_mean, pair_mean[tuple(found.edges.T)], atol=1e-9)


def test_every_method_has_an_example_that_shows_its_name():
    for method in sz.METHODS.values():
        source = Path(__import__(method.__module__, fromlist=["_"]).__file__).read_text()
        assert ast.get_docstring(ast.parse(source))
        examples = inspect.getdoc(method).split("Examples\n--------\n")[1]
        assert f'"{method.name}"' in examples or f"sz.{method.__name__}(" in examples
