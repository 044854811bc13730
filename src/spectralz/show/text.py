"""Results as plain text: brackets to scale, and the text of ``print`` and ``repr``. Pure functions, no color."""

from __future__ import annotations

import math
import textwrap
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING

from spectralz.result import Kind
from spectralz.show import fits, tables, thermodynamics
from spectralz.show.numbers import counted, counted_states, probable, proven

if TYPE_CHECKING:
    from spectralz.result import Bounds, Comparison, Count, Description, Estimate, Fit, Marginals, Temperature
    from spectralz.show.tables import Table

# Below this share of log Z a bracket's width is rounding, and a picture of it shows nothing.
ROUNDING = 1e-9
LEAST_CELLS = 20
# Limits of what print shows: the length of a line, and the number of lines of a sentence and of a table.
COLUMNS = 100
SENTENCE_LINES = 3
MOST_ROWS = 20
GAP = "  "
# Most characters of a count in one line.
LONGEST_COUNT = 60


def estimate(result: Estimate) -> str:
    """Return an answer in a few lines: the number, what is proven, the status, and the method with its time.

    Examples
    --------
    >>> import spectralz as sz
    >>> print(estimate(sz.log_z(sz.generators.grid(side=4, strength=1.0, seed=0))))
    log Z = 24.598449167 (exact)
    proven to within ...
    exact: eliminated 16 spins by min-degree order, widest table 2^4 entries
    exact, ... s
    """
    lines = [tables.headline(result)]
    if proof := _proof(result):
        lines.append(proof)
    if result.interval is not None:
        lines.append(probable(result.interval))
    lines += _sentence(str(result.status), COLUMNS)
    stopped = ", interrupted: the best answer so far" if result.interrupted else ""
    lines.append(f"{result.method.name}, {result.seconds:.3g} s{stopped}")
    return "\n".join(_cut(line, COLUMNS) for line in lines)


def estimate_repr(result: Estimate) -> str:
    """Return an answer in one line."""
    head = tables.headline(result).replace(" (", ", ").removesuffix(")")
    return f"Estimate({head}, by {result.method.name} in {result.seconds:.3g} s)"


def disagreement(result: Estimate) -> str:
    """Return which of the methods that were tried disagree with the answer, as a sentence without its period."""
    others = [trial.method for trial in result.disagreeing]
    return f"{', '.join(others)} {'disagrees' if len(others) == 1 else 'disagree'} with this answer"


def bounds(result: Bounds) -> str:
    """Return a bracket in a few lines: what is proven, by which methods, an interval if there is one, and the time."""
    stopped = ", interrupted: more time may tighten them" if result.interrupted else ""
    of_interval = []
    if result.interval is not None:
        of_interval = [probable(result.interval), *_sentence(result.interval_status, COLUMNS)]
    lines = [
        f"{proven(result.lower, result.upper)} (proven, width {result.width:.3g})",
        f"lower by {result.lower_method}, upper by {result.upper_method}",
        *of_interval,
        f"{counted(len(result.rows), 'method')}, {result.seconds:.3g} s{stopped}",
    ]
    return "\n".join(lines)


def bounds_repr(result: Bounds) -> str:
    """Return a bracket in one line."""
    methods = f"{result.lower_method} and {result.upper_method}"
    interval = "" if result.interval is None else f"; {probable(result.interval)}"
    return f"Bounds({proven(result.lower, result.upper)}, by {methods} in {result.seconds:.3g} s{interval})"


def comparison(result: Comparison) -> str:
    """Return a comparison as a table, one line per method."""
    return aligned(tables.comparison(result))


def comparison_repr(result: Comparison) -> str:
    """Return the methods of a comparison in one line."""
    names = ", ".join(row.name for row in result) or "none"
    return f"Comparison({counted(len(result), 'method')}: {_cut(names, COLUMNS - 30)})"


def marginals(result: Marginals) -> str:
    """Return the range of the means, the most and the least certain spins, and the run."""
    return aligned(tables.marginals(result))


def marginals_repr(result: Marginals) -> str:
    """Return marginals in one line."""
    mean = result.mean
    ends = (tables.mean_in_words(result, end) for end in (mean.min(), mean.max())) if len(mean) else ()
    span = f", means {' to '.join(ends)}" if len(mean) else ""
    edges = f"edges={len(result.edges)}" if result.has_pairs else "pairs left out"
    edges = edges if result.terms is None else f"terms={len(result.terms)}"
    return f"Marginals(n={len(mean)}, {edges}, {result.kind}{span}, by {result.estimate.method.name})"


def fit(result: Fit) -> str:
    """Return a fit in a few lines."""
    return aligned(fits.table(result))


def fit_repr(result: Fit) -> str:
    """Return a fit in one line."""
    value = "" if result.log_likelihood is None else f", log-likelihood {fits.likelihood(result)} per row"
    how = "" if result.status.converged else ", not converged"
    return f"Fit(n={result.model.n}, edges={len(result.edges)}, {result.rows:g} rows{value}, by {result.method}{how})"


def temperature(result: Temperature) -> str:
    """Return the temperature of samples in a few lines."""
    return aligned(thermodynamics.temperature_table(result))


def temperature_repr(result: Temperature) -> str:
    """Return the temperature of samples in one line."""
    how = "" if result.trusted else ", not to be trusted"
    return f"Temperature({thermodynamics.beta_in_words(result)}, {result.samples:g} samples, by {result.method}{how})"


def count(result: Count) -> str:
    """Return a count in a few lines: the number in full, or with powers of ten, its log, and how it was found."""
    log = tables.headline(result.estimate).removeprefix("log Z")
    stopped = ", interrupted: the best answer so far" if result.interrupted else ""
    rest = [*_sentence(str(result.status), COLUMNS), f"{result.method}, {result.seconds:.3g} s{stopped}"]
    return "\n".join([f"count {counted_states(result)}", f"log{log}", *rest])


def count_repr(result: Count) -> str:
    """Return a count in one line."""
    number = _cut(counted_states(result).removeprefix("= "), LONGEST_COUNT)
    return f"Count({number}, by {result.method} in {result.seconds:.3g} s)"


def description(result: Description) -> str:
    """Return the description of a model, one line per fact."""
    return aligned(tables.description(result))


def aligned(table: Table, width: int = COLUMNS) -> str:
    """Return a table as lines of aligned columns, cut at ``width``.

    Examples
    --------
    >>> from spectralz.show.tables import Table
    >>> print(aligned(Table(headings=("method", "status"), rows=(("exact", "eliminated 16 spins"), ("bp", "-"))), 20))
    method  status
    exact   eliminate...
    bp      -
    """
    shown = [table.headings, *table.rows[:MOST_ROWS]] if table.headings else list(table.rows)
    sizes = [max(map(len, column)) for column in zip(*shown, strict=True)][:-1]
    lines = []
    for row in shown:
        start = "".join(cell.ljust(size) + GAP for cell, size in zip(row[:-1], sizes, strict=True))
        # A sentence is cut if there are other columns, and wrapped if there is only its name.
        last = " ".join(row[-1].split())
        rest = [last] if table.headings else _sentence(last, width - len(start))
        lines += [_cut((start if k == 0 else " " * len(start)) + part, width) for k, part in enumerate(rest)]
    if len(table.rows) > MOST_ROWS and table.headings:
        lines.append(f"... and {len(table.rows) - MOST_ROWS} more")
    return "\n".join(line.rstrip() for line in lines)


def _proof(result: Estimate) -> str:
    """Return what is proven beyond the answer itself, or an empty text."""
    lower, upper = result.lower, result.upper
    if result.log_z == -math.inf:
        return ""
    if result.kind is Kind.EXACT and lower is not None and upper is not None:
        return f"proven to within {max(upper - result.log_z, result.log_z - lower):.2g}"
    if (result.kind is Kind.LOWER_BOUND and upper is None) or (result.kind is Kind.UPPER_BOUND and lower is None):
        return ""
    return proven(lower, upper) + ("" if lower is None and upper is None else " (proven)")


def _sentence(text: str, width: int) -> list[str]:
    """Return a sentence in a few lines."""
    return textwrap.wrap(text, max(width, LEAST_CELLS), max_lines=SENTENCE_LINES, placeholder=" ...") or [""]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3].rstrip() + "..."


def bracket_line(
    log_z: float,
    lower: float | None,
    upper: float | None,
    std_error: float | None = None,
    *,
    width: int = 80,
    ascii_only: bool = False,
) -> str:
    """Draw proven bounds to scale, with the answer between them and a bar of twice its error to both sides.

    Labels are rounded outwards, and go below the bar if the line has no room for them. The bar ends at a proven
    bound; a side without a bound is an arrow. If there is no bound, or if everything is of the size of rounding, an
    empty text is returned.

    Examples
    --------
    >>> print(bracket_line(13.5, 12.314, 14.897, 0.15, width=60))
    lower 12.31 ├───────────[═══●═══]──────────────┤ upper 14.90
    >>> print(bracket_line(13.5, 12.314, None, 0.15, width=60, ascii_only=True))
    lower 12.31 |----------------[=====*=====]--> no upper bound
    """
    ends = _ends(log_z, lower, upper, std_error)
    if ends is None:
        return ""
    decimals = max(0, 2 - math.floor(math.log10(ends[1] - ends[0])))
    left = "no lower bound" if lower is None else f"lower {_rounded(lower, decimals, ROUND_FLOOR)}"
    right = "no upper bound" if upper is None else f"upper {_rounded(upper, decimals, ROUND_CEILING)}"
    cells = width - len(left) - len(right) - 2
    if cells >= LEAST_CELLS:
        return f"{left} {_bar(ends, log_z, lower, upper, std_error, cells, ascii_only)} {right}"
    cells = max(width, LEAST_CELLS)
    gap = " " * max(1, cells - len(left) - len(right))
    return f"{_bar(ends, log_z, lower, upper, std_error, cells, ascii_only)}\n{left}{gap}{right}"


def _ends(
    log_z: float, lower: float | None, upper: float | None, std_error: float | None
) -> tuple[float, float] | None:
    """Return the values at the two ends of the bar, or None if there is nothing to draw."""
    if lower is None and upper is None:
        return None
    # A side without a bound shows the whole error bar, and some space beyond.
    seen = [log_z, *(bound for bound in (lower, upper) if bound is not None)]
    beyond = max(3.0 * (std_error or 0.0), 0.25 * (max(seen) - min(seen)))
    left = min(seen) if lower is not None else log_z - beyond
    right = max(seen) if upper is not None else log_z + beyond
    return (left, right) if right - left > ROUNDING * max(1.0, abs(log_z)) else None


def _rounded(value: float, decimals: int, rounding: str) -> str:
    """Round the exact value of the float; a product of it could be rounded to the wrong side."""
    exponent = Decimal(1).scaleb(-decimals)
    return f"{Decimal(value).quantize(exponent, rounding, Context(prec=400)):f}"


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

    bar = [" "] * cells  # blank if the answer lies outside a bound
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
