"""Temper a glass on which annealing is not trusted, for most of the time that is left."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from spectralz._support import clock
from spectralz.methods.tempering import SHARE_OF_CLIMB, Tempering
from spectralz.model import Ising
from spectralz.portfolio import policy
from spectralz.portfolio.answers import Answer
from spectralz.sampling.populations import marginals_of
from spectralz.sampling.tempering import COPIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spectralz.portfolio.answers import Answers
    from spectralz.portfolio.steps.way import Way


def suits_ladder(way: Way, answers: Answers) -> bool:
    """Return whether copies of the model could climb a ladder often enough in the time that is left, and have not yet.

    On a device states are annealed much faster than copies change places, and where a side is summed out annealing has
    moves of its own.
    """
    path = way.path
    if "tempering" in (*way.problem.exclude, *answers.by_method) or path.sides is not None or path.device is not None:
        return False
    if path.in_double or path.n < policy.FEWEST_TO_TEMPER or way.problem.model.higher.number:
        return False
    return _rounds(way) >= policy.ROUNDS_PER_SPIN * path.n


def temper(way: Way, answers: Answers) -> Iterator[Answers]:
    """Yield the answers with that of tempering."""
    model, began = way.problem.model, clock.seconds()
    assert isinstance(model, Ising)
    with way.deadline.share(policy.TEMPERING_SHARE).in_force():
        outcome, run = Tempering(sweeps=int(_rounds(way)), seed=way.problem.seed).climb(model)
    seconds = clock.seconds() - began
    yield answers.with_answer(Answer("tempering", outcome, seconds, lambda: marginals_of(model, [run], outcome)))
    if outcome.interrupted:
        raise KeyboardInterrupt


def _rounds(way: Way) -> float:
    """Return how many sweeps of all copies fit into the time; a ladder has about as many rungs as the root of spins."""
    one = COPIES * math.sqrt(way.path.n) * way.pace * policy.TEMPERING_TIMES
    return policy.TEMPERING_SHARE * SHARE_OF_CLIMB * way.deadline.left / max(one, policy.TICK)
