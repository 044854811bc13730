"""How many states satisfy the constraints of a model."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from spectralz.result.kinds import Shown, entries

if TYPE_CHECKING:
    from spectralz.result.estimate import Estimate
    from spectralz.result.kinds import Status


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Count(Shown):
    """Hold the number of states that satisfy all constraints of a model, or their weighted sum.

    Attributes
    ----------
    value
        The number, a Python int; with weights an int or a Fraction. None if there is only an estimate.
    estimate
        Its log, as an :class:`Estimate`: exact from the number, otherwise log Z of the constraints alone.
    method
        What counted: ``"elimination"``, ``"ganak"``, or the method of the estimate.
    status
        How it was found; if there is no value, why.
    seconds
        Wall-clock time.
    compile_seconds
        Wall-clock time that went into compiling, which ``seconds`` leave out.
    interrupted
        Whether an interrupt ended the work; the estimate is the best so far.

    Examples
    --------
    >>> import spectralz as sz
    >>> coins = sz.Ising([0.0] * 100).with_constraints(sz.constraints.clause({0: +1, 1: +1}))
    >>> print(sz.count(coins))
    count = 950737950171172051122527404032
    log = 69.0270359835 (exact)
    eliminated 2 spins modulo 1 number, widest table 2^1 entries
    elimination, ... s
    """

    value: int | Fraction | None
    estimate: Estimate
    method: str
    status: Status
    seconds: float
    compile_seconds: float = 0.0
    interrupted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values; ``value`` is text, since numbers in JSON lose digits."""
        return {
            "value": None if self.value is None else in_full(self.value),
            **entries(self, "estimate method status interrupted seconds compile_seconds"),
        }


def in_full(value: int | Fraction) -> str:
    """Return all digits of a number; Python's own conversion ends at 4,300.

    Examples
    --------
    >>> in_full(Fraction(1, 3)), len(in_full(10**5000))
    ('1/3', 5001)
    """
    number = Fraction(value)
    top, bottom = str(Decimal(number.numerator)), str(Decimal(number.denominator))
    return top if number.denominator == 1 else f"{top}/{bottom}"
