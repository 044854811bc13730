"""Estimate log Z from the heaviest frontier states, for models so cold that few states matter.

The bracket is proven. If it is narrow, the answer is its middle, with half of its width as the error. Otherwise the
lower bound is much closer than the upper one: the answer is the lower bound, and its growth with the number of states
shows how much may be missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spectralz.parts.heaviest_frontier import FutureBound, Narrowed
from spectralz.parts.outcome import MarginalOutcome, Outcome
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from spectralz.model import Ising

__all__ = ["ColdFrontier"]

# A bracket as narrow as this is trusted.
NARROW = 0.02
# The growth of the lower bound with four times as many states, times this, is the scale of what is still missing.
GROWTHS = 2.0


class ColdFrontier:
    """Sums over more and more of the heaviest frontier states, until the bracket is narrow or the time is up.

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

    def __init__(self, model: Ising, *, gap: float, most_states: int, max_memory: int) -> None:
        self.model = model
        self.max_memory = max_memory
        self.future = FutureBound.of_model(model, max_memory=max_memory)
        self.found: Narrowed = self.future.narrow(gap, most_states)

    @property
    def is_narrow(self) -> bool:
        """Whether the bracket is narrow enough to be trusted."""
        return self.found.gap <= NARROW

    @property
    def std_error(self) -> float:
        """Half of the bracket if it is narrow; otherwise the last growth of the lower bound, or the whole bracket."""
        if self.is_narrow:
            return 0.5 * self.found.gap
        lowers = [run.log_z_lower for run in self.found.runs if not run.is_late]
        grown = GROWTHS * abs(lowers[-1] - lowers[-2]) if len(lowers) > 1 else self.found.gap
        return min(max(grown, NARROW), self.found.gap)

    def outcome(self) -> Outcome:
        """Return the answer; the bounds are proven."""
        lower, upper = self.found.log_z_lower, self.found.log_z_upper
        states = self.found.runs[-1].most_states
        words = f"the {states} heaviest of the frontier's states; log Z is proven to within {self.found.gap:.2g}"
        if not self.is_narrow:
            words += ": too wide to be trusted"
        return Outcome(
            log_z=0.5 * (lower + upper) if self.is_narrow else lower,
            kind=Kind.ESTIMATE,
            status=Status(words, converged=self.is_narrow),
            lower=lower,
            upper=upper,
            std_error=self.std_error,
            trusted=self.is_narrow,
            details={"frontier_states": states, "gap": self.found.gap},
        )

    def marginals(self, outcome: Outcome) -> MarginalOutcome:
        """Return means under P(x) restricted to the states kept, as many as fit in memory."""
        per_state = 24 * max(self.model.n, 1)
        capacity = int(min(self.found.runs[-1].capacity, max(self.max_memory // per_state, 100)))
        means = self.future.run(capacity, remember=True, max_memory=2 * self.max_memory).marginals()
        return MarginalOutcome(
            probability=means.probability,
            mean=means.mean,
            pair_mean=means.pair_mean,
            kind=Kind.ESTIMATE,
            outcome=outcome,
        )
