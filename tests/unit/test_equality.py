"""When two results are equal: arrays entry by entry, NaN equals NaN, and seconds do not count."""

from __future__ import annotations

import math
import pickle
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

import spectralz as sz
from spectralz import result
from spectralz.errors import TooLargeError
from spectralz.result.kinds import Compared, same

MODEL = sz.generators.complete(n=5, strength=0.1, seed=0)
DATA = sz.sample(MODEL, 500, seed=0)

ANSWERS = {
    "exact": lambda: sz.log_z(MODEL),
    "annealing": lambda: sz.log_z(MODEL, "annealing", population=64),
    "spectral": lambda: sz.log_z(MODEL, "spectral"),
    "wmbe": lambda: sz.log_z(MODEL, "wmbe"),
    "auto": lambda: sz.log_z(sz.generators.complete(12, 0.3, seed=0), exclude=["exact"], work=1e8),
    "marginals": lambda: sz.marginals(MODEL),
    "map": lambda: sz.map_state(MODEL),
    "bounds": lambda: sz.bounds(MODEL, work=1e8),
    "curves": lambda: sz.thermodynamics(MODEL, [0.5, 1.0]),
    "energy": lambda: sz.energy(MODEL),
    "log_prob": lambda: sz.log_prob(MODEL, DATA[:3]),
    "prediction": lambda: sz.predict(MODEL, np.where(DATA[:3] > 0, 1.0, np.nan)),
    "temperature": lambda: sz.temperature(MODEL, DATA),
    "compare": lambda: sz.compare(MODEL, ["exact", "bp", sz.Exact(max_memory=1)]),
    "fit": lambda: sz.fit(DATA),
    "wald": lambda: sz.fit(DATA).wald(),
    "goodness": lambda: sz.fit(DATA).goodness(),
    "describe": lambda: sz.describe(MODEL),
    "diagonal": lambda: sz.diagonal_sdp(MODEL.coupling),
    "likelihood": lambda: sz.RBM([[1.0, -0.5]], [0.25], [0.0, 1.0]).log_likelihood([[0], [1]], check=False),
}


def slower(value):
    """Return a result with other seconds, at any depth."""
    if isinstance(value, dict) and not is_dataclass(value):
        return {key: 99.0 if key == "seconds" else slower(entry) for key, entry in value.items()}
    if type(value) is tuple:
        return tuple(map(slower, value))
    if not isinstance(value, Compared):
        return value
    changes = {entry.name: slower(getattr(value, entry.name)) for entry in fields(value)}
    return replace(value, **changes | ({"seconds": 99.0} if hasattr(value, "seconds") else {}))


@pytest.mark.parametrize("name", ANSWERS)
def test_equal_answers_are_equal_whatever_time_they_took(name):
    first, second = ANSWERS[name](), ANSWERS[name]()
    assert first == second
    assert first == pickle.loads(pickle.dumps(second))
    assert slower(first) == first
    assert first != "something else"
    assert first != 1


def test_every_value_counts():
    means = sz.marginals(MODEL)
    assert means != replace(means, mean=means.mean + 1e-16 + 1e-9)
    assert means != replace(means, edges=means.edges[1:], pair_mean=means.pair_mean[1:])
    assert means != replace(means, estimate=replace(means.estimate, details={}))
    assert means != replace(means, names=tuple("abcde"))
    estimate = means.estimate
    assert estimate != replace(estimate, status=sz.Status(str(estimate.status), converged=False))
    assert estimate != replace(estimate, method=sz.Exact(max_memory=7))
    assert estimate != replace(estimate, checked_by=("ep",))
    found = sz.fit(DATA)
    assert found != replace(found, table=sz.fit(-DATA).table)
    rows = sz.bounds(MODEL, work=1e8)
    assert rows != replace(rows, rows=rows.rows[1:])
    assert rows != replace(rows, rows=(replace(rows.rows[0], status="other"), *rows.rows[1:]))


def test_nan_equals_nan_and_errors_are_equal_if_they_say_the_same():
    nan = sz.Quantity(math.nan, float("nan"), sz.Kind.ESTIMATE, False, sz.Status("no"))
    again = sz.Quantity(float("nan"), math.nan, sz.Kind.ESTIMATE, False, sz.Status("no"))
    assert nan == again
    assert hash(nan) == hash(again)
    rows = [sz.ComparisonRow(sz.Exact(), None, TooLargeError(words)) for words in ("a", "a", "b")]
    assert rows[0] == rows[1] != rows[2]
    assert hash(rows[0]) == hash(rows[1])
    assert same(np.array([1.0, math.nan]), np.array([1.0, math.nan]))
    assert not same(np.array([1.0, math.nan]), np.array([math.nan, 1.0]))
    assert same(np.array([1, "a", None], dtype=object), np.array([1, "a", None], dtype=object))
    assert not same({"a": 1}, {"a": 1, "b": 2})
    assert not same([1], (1,))
    assert not same(np.zeros(2), np.zeros((2, 1)))


@pytest.mark.parametrize("name", ["bounds", "energy", "fit"])
def test_equal_answers_have_equal_hashes(name):
    first, second = ANSWERS[name](), ANSWERS[name]()
    assert len({first, second, slower(first)}) == 1


@pytest.mark.parametrize("name", ["exact", "marginals", "map", "curves"])
def test_answers_with_arrays_have_no_hash(name):
    with pytest.raises(TypeError, match="unhashable"):
        hash(ANSWERS[name]())


def test_all_results_are_compared_by_one_function():
    exported = [*(getattr(result, name) for name in result.__all__), sz.DiagonalSDP]
    frozen = [kind for kind in exported if is_dataclass(kind) and kind is not sz.Description]
    assert len(frozen) > 12
    for kind in frozen:
        assert kind.__eq__ is Compared.__eq__, kind
