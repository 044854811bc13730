"""Trust in annealing runs: enough independent families, and no gap between the states before and after the sweeps.

Resampling multiplies heavy states, so that a population descends from few of its initial states once it has lost
contact with equilibrium. The growth of log Z along the path is estimated twice: from the states before the sweeps at
each point, and from those after them. In equilibrium both agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz.sampling.populations import MISSING_FAMILIES
from spectralz.trust.judgment import Judgment, with_rounding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.sampling.populations import Run

# Fewer independent families than this may have lost important states, and their error is not reliable. The error is
# widened by MISSING_FAMILIES over their number. Measured by `benchmarks.trust` (docs/measurements/trust.md), as are
# the constants below.
FEWEST_FAMILIES = 30.0
# A gap is noise up to this many of its errors, harmless up to this share of the answer's error, and ignored below the
# last of these.
GAP_DEVIATIONS, GAP_SHARE, LEAST_GAP = 3.0, 0.5, 0.05


@dataclass(frozen=True)
class Summary:
    """What several runs show together.

    Attributes
    ----------
    log_z
        Logarithm of the mean of their estimates of Z, weighted by effort; the mean is unbiased, as each of them is.
    std_error
        The larger of the two errors below, widened if families are few; or the shortfall of the weights if that is
        larger.
    family_error
        Standard error of log Z from the sizes of families within the runs.
    run_error
        The same from the scatter of the runs, 0 for a single run.
    families
        The effective number of independent states of all populations.
    gap, gap_error
        Mean of the runs' gaps, and its standard error, infinite for a single run.
    """

    log_z: float
    std_error: float
    family_error: float
    run_error: float
    families: float
    gap: float = 0.0
    gap_error: float = math.inf

    @property
    def is_closed(self) -> bool:
        """Whether the gap is noise, or less than the error, in which the rounding of a huge answer counts."""
        error = with_rounding(self.std_error, self.log_z)
        return abs(self.gap) <= max(GAP_DEVIATIONS * self.gap_error, GAP_SHARE * error, LEAST_GAP)


def judge_runs(summary: Summary, constant: float = 0.0) -> Judgment:
    """Judge runs by what they show together; ``constant`` is added to their log Z.

    Examples
    --------
    >>> good = Summary(10.0, 0.01, 0.01, 0.01, families=500.0, gap=0.001, gap_error=0.01)
    >>> from dataclasses import replace
    >>> judge_runs(good).trusted, judge_runs(replace(good, families=12.0)).why
    (True, '; only 12 independent families are left, 30 are needed: do not trust')
    """
    why = ""
    if summary.families < FEWEST_FAMILIES:
        why += (
            f"; only {summary.families:.0f} independent families are left, {FEWEST_FAMILIES:g} are needed: do not trust"
        )
    if not summary.is_closed:
        why += (
            f"; log Z differs by {summary.gap:.2g} between states before and after the sweeps: "
            "out of equilibrium, do not trust"
        )
    log_z = summary.log_z + constant
    return Judgment(log_z, with_rounding(summary.std_error, log_z), not why, why)


def summary_of(runs: Sequence[Run]) -> Summary:
    """Return the mean of runs, and two estimates of its error."""
    effort = np.array([run.effort for run in runs])
    share = effort / effort.sum()
    logs = np.array([run.log_z for run in runs])
    z = np.exp(logs - logs.max())
    mean = float(share @ z)
    family_error = math.sqrt(float((share * z) ** 2 @ [run.variance for run in runs])) / mean
    run_error = 0.0
    if len(runs) > 1:
        run_error = math.sqrt(float(share @ (z - mean) ** 2) / (len(runs) - 1)) / mean
    posterior = share * z / mean
    families = 1.0 / float(posterior**2 @ [1.0 / run.families for run in runs])
    std_error = max(family_error, run_error) * (1.0 + MISSING_FAMILIES / families)
    if families < FEWEST_FAMILIES:
        variance, states = float(share @ [run.spread[-1] for run in runs]), sum(run.size for run in runs)
        std_error = max(std_error, _shortfall(variance, states))
    gaps = np.array([run.gap for run in runs])
    gap = float(share @ gaps)
    largest = max(float(np.abs(gaps).max()), 1.0)  # factored out, since the squares may overflow
    gap_error = math.inf
    if len(runs) > 1:
        gap_error = largest * math.sqrt(float(share @ ((gaps - gap) / largest) ** 2) / (len(runs) - 1))
    return Summary(
        float(logs.max()) + math.log(mean), std_error, family_error, run_error, families, gap=gap, gap_error=gap_error
    )


def _shortfall(variance: float, states: int) -> float:
    """Return the scale by which the log of the mean of some weights is too small, given the variance of their logs.

    For a normal distribution of variance V the log of the mean is V / 2 above the mean log. With R weights it hardly
    exceeds the largest one, sqrt(2 V log R) above the mean log. The distribution has a finite range, so at most as much
    again is expected.
    """
    largest = math.sqrt(2.0 * variance * math.log(states))
    return min(max(0.5 * variance - largest, 0.0), largest)
