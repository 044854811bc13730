"""When the answer of populations is trusted.

Every cell that matters is well measured, nobody contradicts it, and the search for phases was complete.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spectralz.sampling.cells import log_mean
from spectralz.sampling.sweeps import LARGEST_DEVIATION, deviation_of
from spectralz.trust.judgment import RULES, Judgment, Rules, with_rounding

if TYPE_CHECKING:
    from spectralz.model import FloatArray
    from spectralz.sampling.cells import SamplingEvidence


def contradicted(evidence: SamplingEvidence, rules: Rules = RULES) -> list[tuple[int, int]]:
    """Return (population, cell) where a population that counts finds significantly less than another one."""
    totals, families = evidence.totals, evidence.families
    lost = []
    for k in range(totals.shape[1]):
        able = np.flatnonzero(families[:, k] >= rules.few_families)
        if not len(able):
            continue
        most = int(able[np.argmax(totals[able, k])])
        for g in map(int, np.flatnonzero(evidence.coefficients[:, k] > 0.0)):
            error = math.sqrt(1.0 / families[most, k] + 1.0 / max(families[g, k], 1.0))
            error = with_rounding(error, float(totals[most, k]))
            if g != most and totals[most, k] - totals[g, k] > rules.contradiction * error:
                lost.append((g, k))
    return lost


def without_losers(evidence: SamplingEvidence, rules: Rules = RULES) -> SamplingEvidence:
    """Return the evidence in which those who find significantly less in a cell do not count there."""
    coefficients = evidence.coefficients.copy()
    for g, k in contradicted(evidence, rules):
        coefficients[g, k] = 0.0
    totals = np.where(evidence.families >= rules.few_families, evidence.totals, -np.inf)
    for k in map(int, np.flatnonzero(coefficients.sum(axis=0) == 0.0)):
        coefficients[int(np.argmax(totals[:, k])), k] = 1.0
    return replace(evidence, coefficients=coefficients / coefficients.sum(axis=0))


def judge(evidence: SamplingEvidence, rules: Rules = RULES) -> Judgment:
    """Return log Z by the evidence, without the model's constant, its error, and whether it is trusted."""
    if not np.isfinite(evidence.totals).any():
        nothing = "no state was found that satisfies all constraints: this says nothing of Z"
        return Judgment(-math.inf, math.inf, False, f"; {nothing}", nothing)
    lost = contradicted(evidence, rules)
    counted = without_losers(evidence, rules) if lost else evidence
    c, totals, families = counted.coefficients, counted.totals, counted.families
    by_group = [_log_sum(groups, c[g]) for g, groups in enumerate(counted.log_z)]
    means = np.array([float(log_mean(groups[:, None])[0]) for groups in by_group])
    log_z = float(np.logaddexp.reduce(means))
    parts = np.exp(totals - log_z)  # of Z, by population and cell
    shares = (c * parts).sum(axis=0)
    variances = np.divide((c * parts) ** 2, families, out=np.zeros_like(parts), where=families > 0.0)
    cell_families = shares**2 / np.maximum(variances.sum(axis=0), np.finfo(float).tiny)
    scatter = math.sqrt(sum(_squared_error(groups, log_z) for groups in by_group))
    left_out = float(np.exp(np.array(counted.light) - log_z).sum()) if counted.light else 0.0
    in_units = [float(row @ covariance @ row) for row, covariance in zip(c, counted.covariances, strict=True)]
    scales = np.array(counted.log_scales) - log_z
    with np.errstate(divide="ignore", over="ignore"):
        of_families = math.sqrt(np.exp(np.log(np.maximum(in_units, 0.0)) + 2.0 * scales).sum())
    error = max(scatter, of_families) + left_out
    std_error = error + float(np.exp(means - log_z) @ [_shortfall(groups) for groups in by_group])
    error = min(error, float(shares.max()))  # the largest cell matters, however large the error
    why = _weak_cells(counted, shares, parts, cell_families, error, rules)
    doubts = _incomplete(counted, shares, error, rules)
    contradicted_shares = {k: shares[k] for _, k in lost if shares[k] > rules.matters * error}
    doubts += [f"populations contradict each other on {share:.2g} of Z" for share in contradicted_shares.values()]
    words = "".join(f"; {reason}" for reason in (*why, *doubts))
    if evidence.satisfying < 1.0:  # constraints divide the states, and single spins do not lead from part to part
        doubts += why
    return Judgment(log_z, with_rounding(std_error, log_z), not words, words, "; ".join(doubts), left_out)


def _log_sum(groups: FloatArray, c: FloatArray) -> FloatArray:
    """Return log sum_k c_k exp(groups_k) of each group."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.logaddexp.reduce(groups + np.log(c), axis=1))


def _squared_error(by_group: FloatArray, log_z: float) -> float:
    """Return the squared standard error of the mean over groups, relative to Z."""
    with np.errstate(over="ignore"):
        parts = np.exp(by_group - log_z)
    return float(parts.var(ddof=1)) / len(parts) if len(parts) > 1 else math.inf


def _shortfall(groups: FloatArray) -> float:
    """Return how far the log of the mean over groups is likely below that of all possible groups.

    If logs are normal with deviation s, that is s^2 / 2 above their mean; G groups reach s sqrt(2 log G) - log G there
    at most, as in Derrida's random energy model.
    """
    if len(groups) < 2 or not np.isfinite(groups).all():
        return 0.0
    deviation = min(float(deviation_of(groups)), LARGEST_DEVIATION)
    return max(deviation - math.sqrt(2.0 * math.log(len(groups))), 0.0) ** 2 / 2.0


def _weak_cells(
    evidence: SamplingEvidence,
    shares: FloatArray,
    parts: FloatArray,
    cell_families: FloatArray,
    std_error: float,
    rules: Rules,
) -> list[str]:
    """Return why cells that matter are not well measured."""
    why = []
    least = rules.matters * std_error
    if min(map(len, evidence.log_z)) < rules.fewest_groups:
        why.append(f"fewer than {rules.fewest_groups} groups do not show their scatter")
    for k in np.flatnonzero(shares > least):
        name = "the model" if len(shares) == 1 else f"phase {k}" if k else "the ordinary states"
        if cell_families[k] < rules.families:
            why.append(
                f"only {cell_families[k]:.3g} independent families hold {name} ({shares[k]:.2g} of Z), "
                f"{rules.families:g} are needed"
            )
        heaviest = float(((evidence.coefficients * parts)[:, k] * evidence.heaviest[:, k]).max() / shares[k])
        if heaviest > rules.heaviest:
            why.append(f"one family holds {heaviest:.0%} of {name}")
    excess = np.where(evidence.families >= rules.excess_families, parts, 0.0).max(axis=0)
    for k in np.flatnonzero(excess > np.maximum(rules.excess * shares, rules.excess_share)):
        why.append(f"a population that does not count finds {excess[k]:.2g} of Z in phase {k}, not {shares[k]:.2g}")
    return why


def _incomplete(evidence: SamplingEvidence, shares: FloatArray, std_error: float, rules: Rules) -> list[str]:
    """Return why there may be phases that were not found."""
    why = [evidence.search] if evidence.search else []
    if evidence.satisfying < rules.satisfying:
        why.append(f"only {evidence.satisfying:.2g} of the states on the way satisfy all constraints")
    if evidence.satisfying < 1.0 and any(evidence.sources):
        why.append("constraints divide the states into parts, some of which a population has missed: there may be more")
    matter = [s for s, share in zip(evidence.sources, shares, strict=True) if s and share > rules.matters * std_error]
    once, twice = matter.count(1), matter.count(2)
    if once * (once - 1) / (2.0 * (twice + 1)) >= rules.seen_once:
        why.append(f"{once} of {len(matter)} phases were found only once, so there are likely others")
    largest = max([share for s, share in zip(evidence.sources, shares, strict=True) if s == 1], default=0.0)
    if largest > rules.once_share:
        why.append(f"a phase that holds {largest:.0%} of Z was found only once")
    return why
