"""Trust in parallel tempering: enough visitors from the base, no drift, and no phase that the copies have missed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spectralz.sampling.tempering import FEWEST_VISITORS, LAG_SHARE, STUDENT, drift, error_of, integrated
from spectralz.trust.judgment import Judgment, with_rounding

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.sampling.tempered_curves import TemperedCurves
    from spectralz.sampling.tempering import Tempered

# The mean energies of both halves of the rounds differ by more of their errors than this only if copies still drift.
LARGEST_DRIFT = 5.0
# The integral of mean log-weights may differ by so many errors, by so much per temperature, and by this share of what
# the curvature of the integrand adds.
MOST_APART, APART_PER_STEP, CURVATURE_SHARE = 3.0, 0.01, 0.25
# No more than this share of the copies at the model may have stayed since before the run.
MOST_STAYED = 0.1


def trusted_temperatures(curves: TemperedCurves) -> NDArray[np.bool_]:
    """Return at which temperatures curves are trusted; copies that drift at one bring their drift to colder ones."""
    is_still = curves.drift <= LARGEST_DRIFT
    return np.asarray((curves.visitors >= FEWEST_VISITORS) & is_still & ~curves.missed)


def judge_tempered(tempered: Tempered, constant: float) -> Judgment:
    """Judge log Z at the end of a ladder; ``constant`` is added to it."""
    log_z, _ = tempered.log_z
    noise, lag = _noise(tempered), 0.0
    if len(tempered.early.on):
        before = replace(tempered, passed=tempered.early)
        change = before.log_z[0][-1] - log_z[-1]
        lag = LAG_SHARE * math.sqrt(max(change**2 - noise**2 - _noise(before) ** 2, 0.0))
    visitors = int(tempered.visitors[-1])
    error = math.hypot(noise, lag, 1.0 / max(visitors, 1))
    other, curvature = integrated(tempered)
    allowed = MOST_APART * error + APART_PER_STEP * len(tempered.steps) + CURVATURE_SHARE * curvature
    doubts = []
    if visitors < FEWEST_VISITORS:
        doubts.append(f"at least {FEWEST_VISITORS} are needed")
    if not has_mixed(tempered):
        doubts.append(f"{tempered.stayed:.0%} of the copies at the model have never been at the base")
    if drift(tempered).max() > LARGEST_DRIFT:
        doubts.append("mean energies still drift")
    if abs(other - log_z[-1]) > allowed:
        doubts.append(f"integrating mean energies gives {other + constant:.6g} instead")
    value = float(log_z[-1]) + constant
    why = "".join(f"; {doubt}" for doubt in doubts) + (": do not trust, more sweeps are needed" if doubts else "")
    return Judgment(value, with_rounding(error, value), not doubts, why)


def has_mixed(tempered: Tempered) -> bool:
    """Return whether nearly all copies at the model have come from the base during the run."""
    return tempered.stayed <= MOST_STAYED


def _noise(tempered: Tempered) -> float:
    """Return the error of log Z at the model from the scatter of groups, or of blocks of rounds if that is larger."""
    in_time = np.array([step.off_in_time for step in tempered.steps]).sum(axis=0)
    return STUDENT * max(float(error_of(tempered.log_z[1][-1])), float(error_of(in_time)))
