"""A number with its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spectralz.result.kinds import Kind, Record

if TYPE_CHECKING:
    from spectralz.result.kinds import Status


@dataclass(frozen=True, eq=False)
class Quantity(Record):
    """Hold a number with its error.

    Attributes
    ----------
    value
        The number; ``float(quantity)`` is the same.
    std_error
        Its standard error; for exact numbers, a bound on the rounding error.
    kind
        Whether it is exact or an estimate.
    trusted
        Whether value and error can be trusted.
    status
        How it was found.

    Examples
    --------
    >>> import spectralz as sz
    >>> energy = sz.energy(sz.Ising(field=[1.0]))
    >>> round(float(energy), 6), energy.kind
    (-0.761594, <Kind.EXACT: 'exact'>)
    """

    value: float
    std_error: float
    kind: Kind
    trusted: bool
    status: Status

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        words = "exact" if self.kind is Kind.EXACT else f"± {self.std_error:.2g}"
        return f"Quantity({self.value:.9g}, {words}{'' if self.trusted else ', not to be trusted'})"
