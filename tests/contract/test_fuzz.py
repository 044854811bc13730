"""The fuzzer itself: it draws what it should, and sees a NaN, a wrong bound and a refusal that was not predicted."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

import spectralz as sz
from spectralz.errors import ModelError
from spectralz.methods.base import Method, Outcome
from tests.contract.fuzz import METHODS, SELDOM, broken_promises, random_model, term_count, wrong_claims
from tests.reference import states

MODELS = {number: random_model(np.random.default_rng([1, number])) for number in range(100)}
FEW = {number: MODELS[number] for number in range(20)}


def answer_of(model):
    """Return log Z, and bounds that have room for its rounding and no more."""
    log_z = float(states.log_z(model))
    lower, upper = np.nextafter(log_z, -math.inf), np.nextafter(log_z, math.inf)
    return Outcome(log_z=log_z, kind=sz.Kind.EXACT, status=sz.Status("made up"), lower=float(lower), upper=float(upper))


def broken_by(solve, name="fake", models=FEW):
    """Return what is said of a method with these answers."""

    class Fake(Method):
        def _solve(self, model):
            return solve(model)

    Fake.name = name
    return broken_promises(models, {name: Fake()})


def test_the_table_has_every_method():
    """All but planar, which refuses most of these models and proves nothing."""
    names = set(sz.METHODS) - {"planar"}
    assert {method.name for method in METHODS.values()} == names
    assert set(METHODS) > {*names, *SELDOM}


def test_models_are_of_all_kinds_and_sizes():
    words = [model.storage.word for model in MODELS.values()]
    assert min(words.count(word) for word in ("dense", "sparse", "bipartite", "factors")) > 5
    factors = [model.factors for model in MODELS.values() if model.factors is not None]
    assert sum(len(vectors) > 1 and np.array_equal(vectors[0], vectors[-1]) for _, vectors, _ in factors) > 2
    assert sum(len(diagonal) > 1 and diagonal[0] == -diagonal[1] != 0.0 for _, _, diagonal in factors) > 2
    assert {model.n for model in MODELS.values()} == set(range(9))
    total = np.array([model.storage.total for model in MODELS.values()])
    for lowest, highest in ((1e-320, 1e-5), (0.1, 100.0), (1e15, 1e300)):
        assert np.sum((total > lowest) & (total < highest)) > 5


def test_a_method_that_is_right_breaks_nothing():
    assert broken_by(answer_of) == []


def test_a_nan_is_seen():
    broken = broken_by(lambda model: replace(answer_of(model), log_z=math.nan))
    assert sum("SolverError, fake gave log_z = nan" in sentence for sentence in broken) == len(FEW)
    # And where a result does not refuse it itself.
    nan = SimpleNamespace(log_z=0.0, kind=sz.Kind.ESTIMATE, lower=math.nan, upper=None, std_error=None)
    assert len(wrong_claims(nan, FEW[0], states.log_z(FEW[0]))) == 1


def test_a_wrong_bound_is_seen():
    """By the last digit."""
    for name, toward in (("lower", math.inf), ("upper", -math.inf)):
        broken = broken_by(
            lambda model, name=name, toward=toward: replace(
                answer_of(model), **{name: float(np.nextafter(float(states.log_z(model)), toward))}
            )
        )
        assert sum(f"{name} bound" in sentence for sentence in broken) == len(FEW)
    broken = broken_by(lambda model: replace(answer_of(model), log_z=1.001 * answer_of(model).log_z + 1.0))
    assert sum("exact" in sentence for sentence in broken) == len(FEW)


def refuse(_):
    raise ModelError("the coupling has 4 rank-1 terms; max_rank is 3: raise it")


def test_a_refusal_that_was_not_predicted_is_seen():
    assert sum("ModelError" in sentence for sentence in broken_by(refuse)) == len(FEW)
    of_low_rank = {number: model for number, model in MODELS.items() if term_count(model) <= 3}
    broken = broken_by(refuse, "quadrature", of_low_rank)
    assert sum("ModelError" in sentence for sentence in broken) == len(of_low_rank) > 50


def test_a_method_that_refuses_everything_is_seen():
    of_high_rank = {number: model for number, model in MODELS.items() if term_count(model) > 3}
    assert broken_by(refuse, "quadrature", of_high_rank) == [f"quadrature: answered 0 of {len(of_high_rank)} models"]
