"""Numbers as text: with the digits that their error allows, and proven bounds rounded outwards."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING

from spectralz.result import Kind
from spectralz.result.estimate import in_full

if TYPE_CHECKING:
    from spectralz.result import Count, Interval

# Digits of proven bounds; more if the bounds are close together, up to all that a float has.
DIGITS = 8
ALL_DIGITS = 17
# Most digits after the point of a number with an error.
MOST_DECIMALS = 9
# A count with a larger error, in decades, is written as a power of ten.
LARGEST_DECADES = 0.1
# Outside this range a number is written with an exponent.
SMALL, LARGE = 1e-5, 1e15


def with_error(value: float, std_error: float | None, plus_minus: str = "±") -> str:
    """Return a number with the digits that its error allows: up to the second digit of the error.

    Examples
    --------
    >>> with_error(386.412491, 0.0123)
    '386.412 ± 0.012'
    >>> with_error(98.3, 312.0), with_error(0.0, 2e-12)
    ('100 ± 310', '0.000000000 ± 2e-12')
    >>> with_error(386.412491, None)
    '386.412491'
    """
    if std_error is None:
        return f"{value:.12g}"
    if std_error <= 1e-12 * abs(value):  # this would be more digits than the number has
        return f"{value:.12g} {plus_minus} {std_error:.2g}"
    exponent = int(f"{std_error:.1e}".split("e")[1])  # of the error as rounded: 0.0996 is 0.10
    decimals = 1 - exponent
    if decimals > MOST_DECIMALS:
        return f"{value:.{MOST_DECIMALS}f} {plus_minus} {std_error:.1g}"
    value, std_error = round(value, decimals) + 0.0, round(std_error, decimals)
    return f"{value:.{max(decimals, 0)}f} {plus_minus} {std_error:.{max(decimals, 0)}f}"


def proven(lower: float | None, upper: float | None, least_digits: int = DIGITS) -> str:
    """Return proven bounds on log Z as text, rounded outwards, so that what is printed is proven too.

    They have at least ``least_digits`` digits, and more if the bounds are close together.

    Examples
    --------
    >>> proven(420.650571691, 556.238295871)
    '420.65057 <= log Z <= 556.23830'
    >>> proven(20.0, None)
    'log Z >= 20'
    >>> proven(None, None)
    'no proven bounds'
    """
    digits = max(_telling_digits([bound for bound in (lower, upper) if bound is not None]), least_digits)
    low = "" if lower is None else rounded_down(lower, digits)
    high = "" if upper is None else rounded_up(upper, digits)
    if low and high:
        return f"{low} <= log Z <= {high}"
    return f"log Z >= {low}" if low else f"log Z <= {high}" if high else "no proven bounds"


def counted_states(result: Count) -> str:
    """Return a count as the right side of an equation: in full, or with powers of ten and its error.

    Examples
    --------
    >>> import spectralz as sz
    >>> exact = sz.count(sz.Ising([0.0] * 70))
    >>> counted_states(exact)
    '= 1180591620717411303424'
    >>> from dataclasses import replace
    >>> for error in (0.01, 2.0, None):
    ...     counted_states(replace(exact, value=None, estimate=replace(exact.estimate, std_error=error)))
    '≈ (1.181 ± 0.012)e+21'
    '≈ 10^(21.07 ± 0.87)'
    '≈ 1.18059e+21'
    """
    if result.value is not None:
        return f"= {in_full(result.value)}"
    power, error = (
        None if x is None else x / math.log(10.0) for x in (result.estimate.log_z, result.estimate.std_error)
    )
    assert power is not None
    if not math.isfinite(power):
        return "≈ 0"
    if error is not None and error > LARGEST_DECADES:
        return f"≈ 10^({with_error(power, error)})"
    exponent = math.floor(power)
    mantissa = 10.0 ** (power - exponent)
    digits = f"{mantissa:.6g}" if error is None else f"({with_error(mantissa, mantissa * math.log(10.0) * error)})"
    return f"≈ {digits}e{exponent:+d}"


def probability(level: float) -> str:
    """Return the probability of an interval as text.

    Examples
    --------
    >>> probability(0.999), probability(0.5)
    ('with probability 99.9%', 'with probability 50%')
    """
    return f"with probability {100.0 * level:.10g}%"


def probable(interval: Interval) -> str:
    """Return an interval as text, rounded outwards, with its probability.

    Examples
    --------
    >>> from spectralz.result import Interval
    >>> print(probable(Interval(420.650571691, 420.680571691, 0.999)))
    420.65057 <= log Z <= 420.68058 (with probability 99.9%, width 0.03)
    >>> print(probable(Interval(420.650571691, None, 0.9)))
    log Z >= 420.65057 (with probability 90%)
    """
    width = "" if interval.width is None else f", width {interval.width:.3g}"
    return f"{proven(interval.low, interval.high)} ({probability(interval.level)}{width})"


def rounded_down(value: float, digits: int) -> str:
    """Return a number with this many digits, rounded down.

    Examples
    --------
    >>> rounded_down(419.30486633, 7), rounded_up(419.30486633, 7)
    ('419.3048', '419.3049')
    """
    return _rounded(value, digits, ROUND_FLOOR)


def rounded_up(value: float, digits: int) -> str:
    """Return a number with this many digits, rounded up."""
    return _rounded(value, digits, ROUND_CEILING)


def number_of(kind: Kind, value: float, digits: int) -> str:
    """Return a number with this many digits; a bound is rounded outwards, so that what is printed is proven too.

    Examples
    --------
    >>> number_of(Kind.UPPER_BOUND, 419.30486633, 5), number_of(Kind.ESTIMATE, 419.30486633, 5)
    ('419.31', '419.3')
    """
    if kind is Kind.LOWER_BOUND:
        return rounded_down(value, digits)
    return rounded_up(value, digits) if kind is Kind.UPPER_BOUND else f"{value:.{digits}g}"


def sides_in_words(lower: float | None, upper: float | None, digits: int = 7) -> str:
    """Return proven bounds with signs as text, rounded outwards.

    Examples
    --------
    >>> sides_in_words(419.30486633, None), sides_in_words(1.0, 2.5)
    ('≥ 419.3048', '≥ 1, ≤ 2.5')
    """
    low = [] if lower is None else [f"≥ {rounded_down(lower, digits)}"]
    high = [] if upper is None else [f"≤ {rounded_up(upper, digits)}"]
    return ", ".join(low + high)


def bounds_or_dashes(lower: float | None, upper: float | None, digits: int) -> tuple[str, str]:
    """Return proven bounds with this many digits, rounded outwards, or a dash for a missing one.

    Examples
    --------
    >>> bounds_or_dashes(1.99999, None, 3), bounds_or_dashes(1.00001, 2.00001, 3)
    (('1.99', '-'), ('1.00', '2.01'))
    """
    low = "-" if lower is None else rounded_down(lower, digits)
    return low, "-" if upper is None else rounded_up(upper, digits)


def or_dash(value: float | None, digits: int) -> str:
    """Return a number with this many digits, or a dash if there is none."""
    return "-" if value is None else f"{value:.{digits}g}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in singular or plural.

    Examples
    --------
    >>> counted(1, "edge"), counted(0, "edge")
    ('1 edge', '0 edges')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _telling_digits(bounds: list[float]) -> int:
    """Return the number of digits that distinguish the bounds."""
    width = max(bounds, default=0.0) - min(bounds, default=0.0)
    if not 0.0 < width < math.inf:  # nor if one or both are minus infinity
        return DIGITS
    shared = math.log10(max(map(abs, bounds)) / width)
    return min(max(math.ceil(shared) + 3, DIGITS), ALL_DIGITS)


def _rounded(value: float, digits: int, rounding: str) -> str:
    if math.isinf(value):
        return f"{value:g}"
    rounded = Context(prec=digits, rounding=rounding).create_decimal(Decimal(value))
    return f"{rounded:f}" if SMALL < abs(value) < LARGE else f"{rounded.normalize()}"
