"""A model as expectation propagation needs it, and the states that mean field finds in it: starts, and a check."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import costs, deadline
from spectralz._support.progress import report
from spectralz.kernels.coupling import Couplings
from spectralz.parts.leading import leading_directions
from spectralz.parts.mean_field.ascents import ascend_in_time, ascend_together_in_time, bound_at, bounds_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spectralz.model import FloatArray, Ising

# Beyond this many spins factorizations take most of the time: kernels/consistency_of_many.py needs only a few of them.
# Mean field climbs from all starts at once, and not as far, since its states are then only starting points.
MANY_SPINS = 500
# Phases are trusted if no coupling is larger than this.
LARGEST_OF_MANY = 0.2
# Sweeps and tolerance of a mean-field ascent; then those of an ascent of many spins.
SWEEPS, TOLERANCE = 300, 1e-8
FEW_SWEEPS, ROUGH_TOLERANCE = 100, 1e-5
# The share of the time that all ascents take.
STATES_SHARE = 0.4
# Optima of mean field whose means differ by less are the same.
SAME_MEAN = 1e-3


@dataclass(frozen=True)
class Problem:
    """theta; J = 2 A without its diagonal, dense; and the leading eigenvectors of J."""

    field: FloatArray
    J: FloatArray
    leading: list[FloatArray]

    @classmethod
    def of(cls, model: Ising) -> Problem:
        """Write out the couplings, and find their leading directions."""
        J = 2.0 * model.storage.without_diagonal().dense()
        return cls(np.array(model.field), J, leading_directions(model.storage))

    @property
    def n(self) -> int:
        """Number of spins."""
        return len(self.field)

    @property
    def has_many_spins(self) -> bool:
        """Whether factorizations take most of the time."""
        return self.n > MANY_SPINS

    @property
    def rows(self) -> Couplings:
        """J in the form that the mean-field kernels take."""
        return Couplings.of_dense(self.J)

    @cached_property
    def is_collective(self) -> bool:
        """Whether no single coupling matters: only then do phases belong to modes that many spins share.

        On lattices neighboring spins cause the transition, and a Gaussian puts it elsewhere.
        """
        return float(np.abs(self.J).max(initial=0.0)) <= LARGEST_OF_MANY

    @cached_property
    def is_weak(self) -> bool:
        """Whether the squares of a spin's couplings add up to less than 1, on average.

        With strong couplings and small correlations, as in antiferromagnets, whose sum of spins takes only a few
        values, the error is larger than any of the corrections shows.
        """
        return self.rows.mean_strength < 1.0

    @cached_property
    def total_weight(self) -> float:
        """The largest log-weight that a state could have."""
        return float(np.abs(self.field).sum() + 0.5 * np.abs(self.J).sum())


def step_operations(n: int) -> float:
    """Return the operations counted for one step."""
    cubic, square = costs.PROPAGATION_OF_MANY if n > MANY_SPINS else costs.PROPAGATION_OF_FEW
    return cubic * n**3 + square * n**2


@dataclass(frozen=True)
class State:
    """An end point of mean-field ascents: the bound there, lowered by rounding, and how many ascents ended there."""

    h: FloatArray
    lower: float
    hits: int = 1

    def is_at(self, h: FloatArray) -> bool:
        """Return whether the means are those of the fields ``h``."""
        return bool(np.abs(np.tanh(self.h) - np.tanh(h)).max(initial=0.0) <= SAME_MEAN)


def mean_field_states(problem: Problem, restarts: int, seed: int) -> list[State]:
    """Climb the mean-field bound from the fields and from random starts; return the distinct ends, best first."""
    rng = np.random.default_rng(seed)
    starts = [problem.field, *problem.leading, *rng.standard_normal((restarts, problem.n))]
    states: list[State] = []
    # The states only check the answer: enough time must be left for the answer itself.
    with deadline.current().share(STATES_SHARE).in_force():
        for end in _ends_of_many(problem, starts) if problem.has_many_spins else _ends_of_few(problem, starts):
            _count_in(states, end)
        # In a weak field a state and its opposite both matter, but the starts may reach only one of them.
        for state, end in zip(tuple(states), _opposite_ends(problem, tuple(states)), strict=False):
            if not any(other.is_at(end.h) for other in states):
                states.append(replace(end, hits=state.hits))
    return sorted(states, key=lambda state: -state.lower)


def _ends_of_few(problem: Problem, starts: list[FloatArray]) -> Iterator[State]:
    """Yield the ends from each start and its opposite, while there is time."""
    for k, h in enumerate(starts):
        if k and deadline.is_past():
            break
        for sign in (1.0, -1.0):
            yield mean_field(problem, sign * h)
        report("looking for states", (k + 1) / len(starts))


def _ends_of_many(problem: Problem, starts: list[FloatArray]) -> Iterator[State]:
    """Yield the same, from all starts at once."""
    if problem.field.any():
        yield from _mean_field_of_many(problem, [sign * h for h in starts for sign in (1.0, -1.0)])
    else:  # the opposite start would take the opposite way
        for end in _mean_field_of_many(problem, starts):
            yield from (end, replace(end, h=-end.h))


def _opposite_ends(problem: Problem, states: tuple[State, ...]) -> Iterator[State]:
    """Yield the ends from the opposite of each state, while there is time."""
    if not problem.has_many_spins:
        yield from (mean_field(problem, -state.h) for state in states if not deadline.is_past())
    elif problem.field.any() and not deadline.is_past():
        yield from _mean_field_of_many(problem, [-state.h for state in states])


def _count_in(states: list[State], end: State) -> None:
    """Add a state to the list, or count a hit if it is there already."""
    for place, state in enumerate(states):
        if state.is_at(end.h):
            states[place] = replace(state, hits=state.hits + end.hits)
            return
    states.append(end)


def mean_field(problem: Problem, start: FloatArray) -> State:
    """Climb the mean-field bound from the fields ``start``."""
    if problem.has_many_spins:
        return _mean_field_of_many(problem, [start])[0]
    h = start.copy()
    ascend_in_time(h, problem.field, problem.rows, SWEEPS, TOLERANCE)
    return state_at(problem, h)


def _mean_field_of_many(problem: Problem, starts: list[FloatArray]) -> list[State]:
    """Climb the mean-field bound from several fields at once."""
    h = np.array(starts).T.copy()

    def tell(sweeps: int) -> None:
        report("looking for states", sweeps / FEW_SWEEPS)

    ascend_together_in_time(h, problem.field, problem.J, FEW_SWEEPS, ROUGH_TOLERANCE, tell)
    values, roundings = bounds_at(h, problem.field, problem.rows)
    return [State(h[:, k].copy(), float(values[k] - roundings[k])) for k in range(len(starts))]


def state_at(problem: Problem, h: FloatArray) -> State:
    """Evaluate the mean-field bound, lowered by its rounding."""
    value, rounding = bound_at(h, problem.field, problem.rows)
    return State(h, value - rounding)
