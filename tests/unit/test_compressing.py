"""Compressed elimination within a budget: which models it takes on, how bonds grow, and what cold ones get instead."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

import spectralz as sz
from spectralz._support.clock import charge, counting_operations
from spectralz._support.deadline import Deadline
from spectralz.methods.base import estimated
from spectralz.portfolio import policy
from spectralz.portfolio.answers import Answer, Answers, Problem
from spectralz.portfolio.bracket import trivial_bounds
from spectralz.portfolio.steps import before_annealing
from spectralz.trust.judgment import Judgment


def compressed(model, seconds=3.0):
    """Return the answer of the step, or why there is none."""
    with counting_operations():
        problem = Problem(model=model, tol=1e-3, max_memory=2**30)
        answers = before_annealing.compress(problem, Deadline.after(seconds), Answers(trivial_bounds(model)))
    return answers.not_run.get("mps") or answers.by_method["mps"]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (sz.generators.complete(40, 0.1, 0), "neighbors on average"),
        (sz.generators.random_regular(6000, 3, 1.0, 0), "at the same distance"),
        (sz.generators.spin_glass_3d(8, 1.0, 0), "no affordable bond is large enough"),
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
    monkeypatch.setattr(before_annealing, "with_growing_bonds", lambda *_: "left out")
    found = compressed(model, seconds=10.0)
    assert isinstance(found, Answer)
    assert found.outcome.trusted
    assert found.outcome.lower <= truth <= found.outcome.upper


def test_the_better_one_is_trusted_or_has_the_smaller_error():
    warm = compressed(sz.generators.grid(8, 0.3, 0))
    rough = compressed(sz.generators.grid(12, 1.0, 0), seconds=0.5)
    assert before_annealing._is_better(warm, rough) == (warm.error <= rough.error)
    assert not warm.is_as_good_as(0.0)


# ------------------------------------------------------------------------------------------- which bonds are tried


@dataclass(frozen=True)
class Layout:
    """A plan whose contractions take a tenth of a second at bond 8, and eight times as long at twice the bond."""

    largest_bond: int = 1024

    def operations(self, bond):
        return 0.1e9 * (bond / 8) ** 3 / policy.MPS_TIMES


@dataclass(frozen=True)
class Contractions:
    """A method whose errors and discarded weights at the bonds 8, 16, 32, ... are given."""

    errors: tuple[float, ...]
    discarded: tuple[float, ...]
    bond: int = 8
    cutoff: float = 0.0

    def solve_plan(self, model, layout):
        charge(policy.MPS_TIMES * layout.operations(self.bond))
        k = int(math.log2(self.bond / 8))
        judged = Judgment(1.0, self.errors[k], self.errors[k] < 1.0, "")
        return estimated(judged, f"bond {self.bond}", details={"discarded": self.discarded[k]})


def grown(monkeypatch, method, seconds, whole, first=8):
    """Return the bond of the answer."""
    monkeypatch.setattr(before_annealing, "_first_bond", lambda *_: first)
    with counting_operations():
        deadlines = Deadline.after(seconds), Deadline.after(whole)
        model = sz.generators.grid(3, 1.0, 0)
        answer = before_annealing.with_growing_bonds(model, method, Layout(), deadlines[0], 1e-3, deadlines[1])
    return int(str(answer.outcome.status).split(";")[0].split()[-1])


def test_bonds_grow_as_long_as_less_and_less_is_discarded(monkeypatch):
    """Where it is cold errors fall late: 17, 10, 0.3 on a Chimera graph."""
    cold = Contractions((17.0, 10.0, 0.3), (3e-4, 9e-6, 5e-8))
    stuck = Contractions((17.0, 10.0, 0.3), (3e-1, 2e-1, 5e-8))
    assert grown(monkeypatch, cold, 20.0, 20.0) == 32
    assert grown(monkeypatch, stuck, 20.0, 20.0) == 16


def test_bonds_that_converge_get_the_whole_of_the_time(monkeypatch):
    cold = Contractions((17.0, 10.0, 0.3), (3e-4, 9e-6, 5e-8))
    assert grown(monkeypatch, cold, 2.0, 2.0) == 16  # 32 would take 6.4 seconds
    assert grown(monkeypatch, cold, 2.0, 10.0) == 32
    slow = Contractions((17.0, 8.0, 0.3), (3e-4, 2e-4, 5e-8))
    assert grown(monkeypatch, slow, 2.0, 10.0) == 16


@pytest.mark.parametrize(
    ("discarded", "seconds", "bond"),
    [
        ({8: 1e-4}, 1.0, 8),
        ({8: 0.2, 16: 5e-4}, 1.0, 16),
        ({8: 0.2}, 0.5, 8),  # little would be discarded at 16, for which there is no time
        ({8: 0.4}, 0.5, None),
        ({8: 0.2, 16: 0.1}, 1.0, 16),
        ({8: 2.0, 16: 1.0}, 1.0, None),  # it falls too slowly
    ],
)
def test_the_first_bond_is_one_there_is_time_for(monkeypatch, discarded, seconds, bond):
    class Fake:
        def __init__(self, model, layout, bond, cutoff):
            self.discarded = discarded[bond]

        def contract(self):
            return self

    monkeypatch.setattr(before_annealing, "Compressed", Fake)
    with counting_operations():
        found = before_annealing._first_bond(None, Contractions((), ()), Layout(), Deadline.after(seconds))
    assert found == bond if bond else isinstance(found, str)
