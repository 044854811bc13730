"""Numbers and brackets as text for a terminal: pure functions, no colour and no printing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["bracket_line", "with_error"]

# Below this share of log Z a bracket's width is rounding, and a picture of it says nothing.
ROUNDING = 1e-9
LEAST_CELLS = 20


def with_error(value: float, std_error: float | None, plus_minus: str = "±") -> str:
    """Write a number with the digits that its standard error leaves: two of the error's, and those above.

    Examples
    --------
    >>> with_error(386.412491, 0.0123)
    '386.412 ± 0.012'
    >>> with_error(386.412491, None)
    '386.412491'
    """
    if std_error is None:
        return f"{value:.12g}"
    if std_error <= 1e-12 * abs(value):  # more digits than the number has
        return f"{value:.12g} {plus_minus} {std_error:.2g}"
    exponent = int(f"{std_error:.1e}".split("e")[1])  # of the error as rounded: 0.0996 is 0.10
    decimals = max(0, 1 - exponent)
    return f"{value:.{decimals}f} {plus_minus} {std_error:.{decimals}f}"


def bracket_line(
    log_z: float,
    lower: float | None,
    upper: float | None,
    std_error: float | None = None,
    *,
    width: int = 80,
    ascii_only: bool = False,
) -> str:
    """Draw proven bounds to scale with the answer between them and its bar of two standard errors either way.

    Labels are rounded outwards, and go below the bar where the line has no room for them. The bar ends at a proven
    bound; a side without one is an arrow. Nothing is drawn, and an empty text returned, where there is no bound, or
    where all there is to see is of the size of rounding.

    Examples
    --------
    >>> print(bracket_line(13.5, 12.314, 14.9, 0.15, width=60))
    lower 12.31 ├───────────[═══●═══]──────────────┤ upper 14.90
    >>> print(bracket_line(13.5, 12.314, None, 0.15, width=60, ascii_only=True))
    lower 12.31 |----------------[=====*=====]--> no upper bound
    """
    ends = _ends(log_z, lower, upper, std_error)
    if ends is None:
        return ""
    decimals = max(0, 2 - math.floor(math.log10(ends[1] - ends[0])))
    left = "no lower bound" if lower is None else f"lower {_rounded(lower, decimals, math.floor)}"
    right = "no upper bound" if upper is None else f"upper {_rounded(upper, decimals, math.ceil)}"
    cells = width - len(left) - len(right) - 2
    if cells >= LEAST_CELLS:
        return f"{left} {_bar(ends, log_z, lower, upper, std_error, cells, ascii_only)} {right}"
    cells = max(width, LEAST_CELLS)
    gap = " " * max(1, cells - len(left) - len(right))
    return f"{_bar(ends, log_z, lower, upper, std_error, cells, ascii_only)}\n{left}{gap}{right}"


def _ends(
    log_z: float, lower: float | None, upper: float | None, std_error: float | None
) -> tuple[float, float] | None:
    """Return the values at the two ends of the bar, or None where there is nothing to draw."""
    if lower is None and upper is None:
        return None
    # A side without a bound shows the whole bar of the error, and some way beyond.
    seen = [log_z, *(bound for bound in (lower, upper) if bound is not None)]
    beyond = max(3.0 * (std_error or 0.0), 0.25 * (max(seen) - min(seen)))
    left = min(seen) if lower is not None else log_z - beyond
    right = max(seen) if upper is not None else log_z + beyond
    return (left, right) if right - left > ROUNDING * max(1.0, abs(log_z)) else None


def _rounded(value: float, decimals: int, towards: Callable[[float], int]) -> str:
    return f"{towards(value * 10.0**decimals) / 10.0**decimals:.{decimals}f}"


def _bar(
    ends: tuple[float, float],
    log_z: float,
    lower: float | None,
    upper: float | None,
    std_error: float | None,
    cells: int,
    ascii_only: bool,
) -> str:
    line, fill, marker, open_left, left_end, right_end, open_right = "-=*<||>" if ascii_only else "─═●◀├┤▶"

    def cell(value: float) -> int:
        return round((value - ends[0]) / (ends[1] - ends[0]) * (cells - 1))

    bar = [" "] * cells  # blank where a bound excludes an answer that lies there all the same
    start, stop = 0 if lower is None else cell(lower), cells - 1 if upper is None else cell(upper)
    bar[start : stop + 1] = line * (stop - start + 1)
    if std_error is not None:
        low, high = log_z - 2.0 * std_error, log_z + 2.0 * std_error
        first, last = cell(max(low, ends[0])), cell(min(high, ends[1]))
        bar[first : last + 1] = fill * (last - first + 1)
        if low > ends[0]:
            bar[first] = "["
        if high < ends[1]:
            bar[last] = "]"
    bar[start] = open_left if lower is None else left_end
    bar[stop] = open_right if upper is None else right_end
    bar[cell(log_z)] = marker
    return "".join(bar)
