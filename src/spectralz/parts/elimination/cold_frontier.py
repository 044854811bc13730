"""The heaviest frontier states of models so cold that few states matter, and the bracket of log Z that they prove."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spectralz.parts.elimination.heaviest_frontier import FutureBound, Narrowed
from spectralz.parts.outcome import MarginalOutcome
from spectralz.result import Kind

if TYPE_CHECKING:
    from spectralz.model import Ising
    from spectralz.parts.outcome import Outcome

__all__ = ["ColdFrontier", "cold_frontier"]


@dataclass(frozen=True)
class ColdFrontier:
    """Sums over more and more of the heaviest frontier states; :func:`cold_frontier` makes them.

    Attributes
    ----------
    model
        The model.
    future
        The bound on what the spins to come add.
    narrowed
        The sums, and the bracket that they prove.
    max_memory
        Most memory for marginals, in bytes.
    """

    model: Ising
    future: FutureBound
    narrowed: Narrowed
    max_memory: int

    @property
    def lower_bounds(self) -> list[float]:
        """The proven lower bounds, with more and more states, of the sums that ended in time."""
        return [run.log_z_lower for run in self.narrowed.runs if not run.is_late]

    def marginals(self, outcome: Outcome) -> MarginalOutcome:
        """Return means under P(x) restricted to the states kept, as many as fit in memory."""
        per_state = 24 * max(self.model.n, 1)
        capacity = int(min(self.narrowed.runs[-1].capacity, max(self.max_memory // per_state, 100)))
        means = self.future.run(capacity, remember=True, max_memory=2 * self.max_memory).marginals()
        return MarginalOutcome(
            probability=means.probability,
            mean=means.mean,
            pair_mean=means.pair_mean,
            kind=Kind.ESTIMATE,
            outcome=outcome,
        )


def cold_frontier(model: Ising, *, gap: float, most_states: int, max_memory: int) -> ColdFrontier:
    """Sum over more and more of the heaviest frontier states, until the bracket is narrow or the time is up.

    Parameters
    ----------
    model
        The model.
    gap
        Desired width of the bracket.
    most_states
        Most frontier states to keep.
    max_memory
        Most memory for mini-buckets and for marginals, in bytes.
    """
    future = FutureBound.of_model(model, max_memory=max_memory)
    return ColdFrontier(model, future, future.narrow(gap, most_states), max_memory)
