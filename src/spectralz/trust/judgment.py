"""What every rule of trust returns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from spectralz.kernels import UNIT_ROUNDOFF


@dataclass(frozen=True)
class Judgment:
    """An answer, its error, whether to trust it, and why not.

    Attributes
    ----------
    log_z, std_error
        The answer, and the scale of its error.
    trusted
        Whether the evidence supports the answer and its error.
    why
        The reason for distrust, as the end of a sentence that begins with a semicolon; empty if it is trusted.
    doubt
        Why something may be missing that no sum over known states would show; empty if nothing speaks for that.
    left_out
        The share of Z that phases which were left out hold at most; the error includes it.
    """

    log_z: float
    std_error: float
    trusted: bool
    why: str = ""
    doubt: str = field(default="", repr=False)
    left_out: float = field(default=0.0, repr=False)


def with_rounding(std_error: float, log_z: float) -> float:
    """Return a standard error that includes the rounding of a huge answer."""
    return math.hypot(std_error, 8.0 * UNIT_ROUNDOFF * log_z)
