"""An interval that contains log Z with a stated probability."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from spectralz.errors import SolverError


class Interval(NamedTuple):
    """Hold an interval that contains log Z with a stated probability, over the random numbers drawn.

    Nothing else is assumed: no equilibrium, no normal distribution, no large sample. It is not proven, and is never
    mixed with ``lower`` and ``upper``, which are.

    Attributes
    ----------
    low, high
        log Z lies between them; ``high`` is None if only the lower end is known.
    level
        The probability of this, at least.

    Examples
    --------
    >>> interval = Interval(1.5, 1.75, 0.999)
    >>> low, high, level = interval
    >>> interval.width, 1.6 in interval, 2.0 in interval
    (0.25, True, False)
    """

    low: float
    high: float | None
    level: float

    @property
    def width(self) -> float | None:
        """The distance between the ends, or None if there is only one."""
        return None if self.high is None else self.high - self.low

    def __contains__(self, log_z: Any) -> bool:
        """Say whether a value lies inside."""
        return bool(self.low <= log_z and (self.high is None or log_z <= self.high))

    def check(self, who: str) -> None:
        """Refuse an interval that has no lower end, or is empty."""
        ends = [end for end in (self.low, self.high) if end is not None]
        if not all(map(math.isfinite, ends)) or ends != sorted(ends):
            raise SolverError(f"{who} gave the interval {self.low} to {self.high}; please report this model as a bug")

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        return dict(self._asdict())
