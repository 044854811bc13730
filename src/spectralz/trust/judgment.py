"""What every rule of trust returns, every number by which populations are trusted, and when several answers agree.

``portfolio/answers.py`` chooses among answers by these rules. Also here: the likelihood of data under a Boltzmann
machine, where annealing forwards and backwards must agree; and a proven bracket from the heaviest frontier states. If
that is narrow, the answer is its middle, with half of its width as the error. Otherwise the lower bound is much closer
than the upper one: the answer is the lower bound, and its growth with the number of states shows how much may be
missing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spectralz.kernels import UNIT_ROUNDOFF

if TYPE_CHECKING:
    from collections.abc import Sequence


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


# ------------------------------------------------------------------------------------------- the numbers of populations


@dataclass(frozen=True)
class Rules:
    """The numbers by which :func:`spectralz.trust.judge` decides, and by which phases are looked for.

    ``python -m benchmarks.honesty`` measures what they are worth: how many answers are trusted, and how many of these
    are wrong.

    Attributes
    ----------
    families
        A cell that matters has at least so many effective families, and a population has met a phase if it has so many
        there. Beside phases, the populations of the ordinary base have so many over all cells.
    heaviest
        The heaviest family holds at most this share of a cell that matters.
    matters
        A cell matters if its share of Z exceeds this part of the error.
    contradiction
        Two populations contradict each other in a cell if they differ by so many of their joint errors.
    few_families
        A population with fewer families than this in a cell contradicts nobody there; it may be contradicted.
    excess, excess_share, excess_families
        A population that does not count in a cell, with so many families there, may find so many times what counts, or
        this share of Z.
    seen_once
        With f1 and f2 phases that one or two sources led to, f1 (f1 - 1) / (2 (f2 + 1)) estimates how many were not
        found (Chao); it has to be below this.
    once_share
        No phase that a single source led to holds more than this part of Z.
    light
        Phases lighter than Z by more nats are left out, and their bounds added to the error.
    most_phases
        Most phases that are measured.
    fewest_groups
        Fewer groups than this do not show their scatter.
    satisfying
        At least this share of the ordinary population satisfies all constraints; otherwise what does may be where the
        population has hardly been.
    """

    families: float = 30.0
    heaviest: float = 0.5
    matters: float = 0.5
    contradiction: float = 3.5
    few_families: float = 10.0
    excess: float = 20.0
    excess_share: float = 0.5
    excess_families: float = 3.0
    seen_once: float = 1.0
    once_share: float = 0.5
    light: float = 7.0
    most_phases: int = 12
    fewest_groups: int = 8
    satisfying: float = 0.1


RULES = Rules()


# ------------------------------------------------------------------------------------------------------ several answers


# Two answers agree if they are at most this many of their joint standard errors apart: normal errors are farther apart
# in 0.3% of all cases.
AGREEMENT = 3.0
# Agreement with a less certain answer is no check: it would agree even if a phase with half of Z were missing.
LARGEST_CHECKING_ERROR = math.log(2.0) / AGREEMENT
# An answer may lie outside the proven bounds by as many of its errors. Where a bound is tight, as that of a sum over
# nearly all of P(x) is, right answers are outside by 2 errors once in 40 times.
OUTSIDE_BOUNDS = AGREEMENT
# An error bar that its own method does not trust is widened by this factor, but not beyond the standard deviation of a
# number uniform between the bounds: their width divided by the second constant. Methods have already included what
# their runs show. `benchmarks.honesty` lists the bars of untrusted answers relative to their errors.
DOUBT = 1.25
WIDTHS_PER_DEVIATION = math.sqrt(12.0)


def agree(first: tuple[float, float], second: tuple[float, float]) -> bool:
    """Return whether two answers, each with its error, agree.

    Examples
    --------
    >>> agree((1.0, 0.1), (1.2, 0.1)), agree((1.0, 0.1), (2.0, 0.1))
    (True, False)
    """
    return abs(first[0] - second[0]) <= AGREEMENT * math.hypot(first[1], second[1])


def is_within(log_z: float, error: float, lower: float, upper: float) -> bool:
    """Return whether an answer is consistent with proven bounds, within its error."""
    slack = OUTSIDE_BOUNDS * error
    return lower - slack <= log_z <= upper + slack


# -------------------------------------------------------------------------------------------------- likelihoods of data


# How far forwards and backwards may differ, in nats per row, which is little beside what machines differ by, and in
# standard errors: normal ones are larger in 6 of 100,000 cases. Not measured, since no machine of known likelihood is
# hard for both.
LARGEST_DIFFERENCE, LARGEST_Z = 0.1, 4.0


def agree_per_row(forwards: float, error: float, backwards: float, noise: float) -> bool:
    """Return whether two estimates of the likelihood per row agree, each with its error.

    Examples
    --------
    >>> agree_per_row(-80.0, 0.01, -80.05, 0.01), agree_per_row(-80.0, 0.01, -81.0, 0.01)
    (True, False)
    """
    return abs(forwards - backwards) <= max(LARGEST_DIFFERENCE, LARGEST_Z * math.hypot(error, noise))


# ------------------------------------------------------------------------------------------ brackets of frontier states


# A bracket as narrow as this is trusted: the width is an error that is proven, not measured.
NARROW = 0.02
# The growth of the lower bound with four times as many states, times this, is the scale of what is still missing.
# Measured by `benchmarks.trust` (docs/measurements/trust.md).
GROWTHS = 2.0


def judge_bracket(lower: float, upper: float, lower_bounds: Sequence[float]) -> Judgment:
    """Judge a bracket; ``lower_bounds`` are those of sums over more and more states.

    Examples
    --------
    >>> judge_bracket(1.0, 1.01, [0.9, 1.0]).trusted, judge_bracket(1.0, 2.0, [0.9, 1.0]).std_error
    (True, 0.19999999999999996)
    """
    gap = upper - lower
    if gap <= NARROW:
        return Judgment(0.5 * (lower + upper), 0.5 * gap, True)
    grown = GROWTHS * abs(lower_bounds[-1] - lower_bounds[-2]) if len(lower_bounds) > 1 else gap
    return Judgment(lower, min(max(grown, NARROW), gap), False, ": too wide, do not trust")
