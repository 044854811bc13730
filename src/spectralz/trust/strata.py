"""Trust in a sum of strata: each is measured by runs of its own (``sampling/strata/``), or it may be missing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spectralz.sampling.strata.runs import is_measured
from spectralz.trust.judgment import Judgment
from spectralz.trust.runs import Summary, judge_runs, summary_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.sampling.populations import Run
    from spectralz.sampling.strata.phases import Phases

# An answer is distrusted if strata that no run has measured may hold this share of Z. A smaller share leaves it
# trusted, with an error of this many times the share. Measured by `benchmarks.honesty` and `benchmarks.trust`
# (docs/measurements/trust.md).
LARGEST_SHARE, ERRORS_PER_SHARE = 0.02, 2.0


def summary_of_strata(groups: Sequence[Sequence[Run]]) -> Summary:
    """Return what runs show together, given those that count for each stratum, first for what is in none.

    The weights of strata add up, and their errors in quadrature. A stratum with a share p of Z needs p times as many
    families as a population of all states. Excitations of a phase that are rarer than one in all its families are not
    seen, so the error of its log-weight is at least that.
    """
    if len(groups) == 1:
        return summary_of(groups[0])
    measured = [(k, summary_of(runs)) for k, runs in enumerate(groups) if is_measured(runs)]
    summaries = [summary for _, summary in measured]
    logs = np.array([summary.log_z for summary in summaries])
    log_z = float(np.logaddexp.reduce(logs))
    share = np.exp(logs - log_z)
    unseen = np.array([1.0 / summary.families if k else 0.0 for k, summary in measured])

    def together(errors: Sequence[float]) -> float:
        return float(np.linalg.norm(share * np.hypot(errors, unseen)))

    return Summary(
        log_z,
        together([summary.std_error for summary in summaries]),
        together([summary.family_error for summary in summaries]),
        together([summary.run_error for summary in summaries]),
        min(summary.families / max(part, 1e-300) for summary, part in zip(summaries, share, strict=True)),
        gap=float(share @ [summary.gap for summary in summaries]),
        gap_error=float(np.linalg.norm(share * [summary.gap_error for summary in summaries])),
    )


def judge_strata(summary: Summary, phases: Phases, groups: Sequence[Sequence[Run]], constant: float) -> Judgment:
    """Judge a sum of strata by what their runs show together; ``constant`` is added to their log Z."""
    return beside_unmeasured(judge_runs(summary, constant), phases, groups, constant)


def beside_unmeasured(judged: Judgment, phases: Phases, groups: Sequence[Sequence[Run]], constant: float) -> Judgment:
    """Take account of strata that may hold a share of Z, although no run has measured them.

    If the share is large, half of what they may add is added, with as large an error. If there are more phases than can
    be counted, those left out may hold as much as those that were measured.
    """
    log_z, error, trusted, why = judged.log_z, judged.std_error, judged.trusted, judged.why
    gain = may_add(phases, groups, log_z - constant)
    share = -math.expm1(-gain)
    if share < LARGEST_SHARE:
        error = max(error, ERRORS_PER_SHARE * share)
    else:
        log_z, error, trusted = log_z + 0.5 * gain, max(error, 0.5 * gain), False
        why += f"; a phase with up to {share:.0%} of Z was found but not measured: do not trust"
    if not phases.is_complete:
        error, trusted = max(error, math.log(2.0)), False
        why += "; there may be more phases than there was time to measure: do not trust"
    return Judgment(log_z, error, trusted, why)


def may_add(phases: Phases, groups: Sequence[Sequence[Run]], log_z: float) -> float:
    """Return by how much log Z, without constants, may exceed an estimate because of strata that were not measured."""
    made = [is_measured(runs) for runs in groups[1:]]
    left = [stratum.most for k, stratum in enumerate(phases.strata) if k >= len(made) or not made[k]]
    most = float(np.logaddexp.reduce([-math.inf, *left])) + (math.log(2.0) if phases.is_mirrored else 0.0)
    return float(np.logaddexp(log_z, most)) - log_z
