"""Compressed elimination within a budget: which models it takes on, how bonds grow, and what cold ones get instead."""

from __future__ import annotations

import pytest

import spectralz as sz
from spectralz._support.clock import counting_operations
from spectralz._support.deadline import Deadline
from spectralz.portfolio import policy
from spectralz.portfolio.answers import Answer, Answers, Problem
from spectralz.portfolio.bracket import trivial_bounds
from spectralz.portfolio.steps import compress


def compressed(model, seconds=3.0):
    """Return the answer of the step, or why there is none."""
    with counting_operations():
        problem = Problem(model=model, tol=1e-3, max_memory=2**30)
        [answers] = compress.compress(problem, Deadline.after(seconds), Answers(trivial_bounds(model)))
    return answers.not_run.get("mps") or answers.by_method["mps"]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (sz.generators.complete(40, 0.1, 0), "neighbors on average"),
        (sz.generators.random_regular(6000, 3, 1.0, 0), "at the same distance from one"),
        (sz.generators.spin_glass_3d(8, 1.0, 0), "of its weight, which falls too slowly"),
    ],
)
def test_models_without_a_small_frontier_are_left_alone(model, words):
    assert words in compressed(model)


def test_no_time_is_a_reason():
    assert "would take about" in compressed(sz.generators.grid(60, 1.0, 0), seconds=1e-3)
    assert "would take about" in compressed(sz.generators.grid(60, 1.0, 0), seconds=0.2)


@pytest.mark.slow
def test_bonds_grow_while_the_answer_is_not_good_enough(monkeypatch):
    """A king's graph wants a bond of 32: at 8 the error is a hundredth, and it ends below the tolerance."""
    bonds = []
    solve_plan = sz.MatrixProduct.solve_plan

    def watched(self, model, layout):
        bonds.append(self.bond)
        return solve_plan(self, model, layout)

    monkeypatch.setattr(sz.MatrixProduct, "solve_plan", watched)
    model = sz.generators.kings(11, 11, 0.5, 1)
    found = compressed(model, seconds=20.0)
    assert bonds == [policy.FIRST_BOND * 2**k for k in range(len(bonds))] or bonds[0] > policy.FIRST_BOND
    assert len(bonds) >= 2
    assert found.is_as_good_as(1e-3)
    assert abs(found.outcome.log_z - sz.log_z(model, "exact").log_z) <= 5.0 * found.error
    assert found.marginals().mean.shape == (model.n,)


def test_cold_models_are_summed_up_over_frontier_states(monkeypatch):
    model = sz.generators.grid(14, 8.0, 7)
    truth = sz.log_z(model, "exact").log_z
    monkeypatch.setattr(compress, "with_growing_bonds", lambda *_: "left out")
    found = compressed(model, seconds=10.0)
    assert isinstance(found, Answer)
    assert found.outcome.trusted
    assert found.outcome.lower <= truth <= found.outcome.upper


def test_the_better_one_is_trusted_or_has_the_smaller_error():
    warm = compressed(sz.generators.grid(8, 0.3, 0))
    rough = compressed(sz.generators.grid(12, 1.0, 0), seconds=0.5)
    assert compress._is_better(warm, rough) == (warm.error <= rough.error)
    assert not warm.is_as_good_as(0.0)
