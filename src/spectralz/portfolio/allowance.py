"""A time allowance shared by several bounders, measured by the clock of budgets."""

from __future__ import annotations

from spectralz._support import clock
from spectralz.portfolio.policy import LARGEST_SHARE

__all__ = ["Allowance", "NotAffordableError"]


class NotAffordableError(Exception):
    """Raised if the next step would not fit into the allowance; earlier results stay."""


class Allowance:
    """Seconds that may be spent, counted from its creation."""

    def __init__(self, seconds: float) -> None:
        self.started = clock.now()
        self.seconds = seconds

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return clock.now() - self.started

    @property
    def left(self) -> float:
        """Seconds that have not been spent."""
        return max(self.seconds - self.spent, 0.0)

    @property
    def share(self) -> float:
        """The seconds that one bounder may plan with."""
        return LARGEST_SHARE * self.left

    def need(self, seconds: float) -> None:
        """Raise NotAffordableError if something would take longer than what is left."""
        left = self.left
        if seconds > left:
            needed, rest = clock.in_words(seconds), clock.in_words(left)
            raise NotAffordableError(f"not run: would take about {needed}, {rest} are left")
