"""Proven bounds: first of all, and again in the end if no method gave an answer, since they are then all there is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from spectralz.portfolio import policy
from spectralz.portfolio.bounders import NAMES, hopeless
from spectralz.portfolio.bracket import bracket

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spectralz._support.deadline import Deadline
    from spectralz.portfolio.answers import Answers, Problem


def bound(problem: Problem, deadline: Deadline, answers: Answers) -> Iterator[Answers]:
    """Tighten the bounds, unless there is a better answer already."""
    if answers.by_method or not deadline.left:
        return
    # The sum over states comes later, from the same populations as the rest. In the end all others are worth a try.
    is_first = len(answers.bounds.rows) == 1
    exclude = {*problem.exclude, "states", *(hopeless(problem.model) if is_first else ())} & set(NAMES)
    if problem.sums_out_many:
        deadline = deadline.share(policy.BOUNDS_PART_OF_SIDES)
    bounds = bracket(problem.model, deadline, exclude, known=answers.bounds, tells_of_exact=False)
    yield replace(answers, bounds=bounds, is_interrupted=bounds.interrupted)
