"""Answers on the components of a model, put together to one on the whole."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spectralz.parts.outcome import MarginalOutcome, Outcome, impossible_outcome
from spectralz.parts.pairs import are_pairs_wanted, pairs_of, terms_of
from spectralz.result import Kind, Status
from spectralz.trust.judgment import WIDTHS_PER_DEVIATION

if TYPE_CHECKING:
    from spectralz.model import IntArray, Model


def parts_of(model: Model) -> list[IntArray]:
    """Return the components to solve separately, spins without couplings as one: none if there is only one."""
    if model.storage.terms is not None:
        return []
    components = model.components()
    lone = [spins for spins in components if len(spins) == 1]
    parts = [spins for spins in components if len(spins) > 1] + ([np.concatenate(lone)] if lone else [])
    return parts if len(parts) > 1 else []


def added(model: Model, outcomes: list[Outcome]) -> Outcome:
    """Add up the log Z of components; there are bounds if all have them, and the sum is exact if all are."""
    if any(outcome.kind is Kind.EXACT and outcome.log_z == -math.inf for outcome in outcomes):
        return impossible_outcome("components solved separately")
    lowers = [outcome.lower for outcome in outcomes if outcome.lower is not None]
    uppers = [outcome.upper for outcome in outcomes if outcome.upper is not None]
    names = [outcome.method.name if outcome.method else "auto" for outcome in outcomes]
    words = ", ".join(f"{names.count(name)} by {name}" for name in dict.fromkeys(names))
    doubts = [str(outcome.status) for outcome in outcomes if not outcome.status.converged]
    tried = tuple(
        replace(trial, why=f"component {k}: {trial.why}")
        for k, outcome in enumerate(outcomes)
        for trial in outcome.tried
    )
    # Sums of rounded numbers: one unit in the last place per component is more than fsum needs.
    slack = (
        2.0**-52
        * (abs(model.offset) + math.fsum(abs(outcome.log_z) for outcome in outcomes if outcome.log_z > -math.inf))
        + model.lost.in_constant
    )
    return Outcome(
        log_z=math.fsum([model.offset, *(outcome.log_z for outcome in outcomes)]),
        kind=Kind.EXACT if {outcome.kind for outcome in outcomes} == {Kind.EXACT} else Kind.ESTIMATE,
        status=Status("; ".join([f"components solved separately: {words}", *doubts[:3]]), converged=not doubts),
        lower=math.fsum([model.offset, *lowers]) - slack if len(lowers) == len(outcomes) else None,
        upper=math.fsum([model.offset, *uppers]) + slack if len(uppers) == len(outcomes) else None,
        std_error=error_of_sum(outcomes),
        trusted=all(
            outcome.is_trusted and (outcome.kind is Kind.EXACT or outcome.std_error is not None) for outcome in outcomes
        ),
        checked_by=_checks_of_all(outcomes),
        interrupted=any(outcome.interrupted for outcome in outcomes),
        tried=tried,
        details={"components": [dict(outcome.details) for outcome in outcomes]},
    )


def _checks_of_all(outcomes: list[Outcome]) -> tuple[str, ...]:
    """Return the methods that checked every component that is not exact, since an exact one needs no check."""
    first, *others = [outcome.checked_by for outcome in outcomes if outcome.kind is not Kind.EXACT] or [()]
    return tuple(name for name in first if all(name in checked_by for checked_by in others))


def error_of_sum(outcomes: list[Outcome]) -> float | None:
    """Return the error of a sum, None if all are exact.

    Errors of independent answers are added in quadrature, those of doubtful ones linearly, because doubtful answers are
    likely to be wrong in the same direction. An estimate without an error gets that of a number anywhere between its
    bounds.
    """
    errors = [(_error_of(outcome), outcome.status.converged) for outcome in outcomes if outcome.kind is not Kind.EXACT]
    if not errors:
        return None
    independent = math.hypot(*(error for error, converged in errors if converged))
    return independent + math.fsum(error for error, converged in errors if not converged)


def _error_of(outcome: Outcome) -> float:
    """Return the error of an estimate: its own, or that of its bounds."""
    if outcome.std_error is not None:
        return outcome.std_error
    if outcome.lower is None or outcome.upper is None:
        return abs(outcome.log_z)  # nothing is known
    return (outcome.upper - outcome.lower) / WIDTHS_PER_DEVIATION


def joined(model: Model, parts: list[IntArray], marginals: list[MarginalOutcome]) -> MarginalOutcome:
    """Put the marginals of components together."""
    edges, terms = pairs_of(model), terms_of(model)
    first_spins = terms.spin[terms.start[:-1]]
    places = edges[:, 0] * model.n + edges[:, 1]  # in order, as edges are
    mean, probability, pair_mean = np.empty(model.n), np.empty((model.n, 2)), np.empty(len(edges) + terms.number)
    error, pair_error = np.zeros(model.n), np.zeros(len(pair_mean))
    for spins, part in zip(parts, marginals, strict=True):
        mean[spins], probability[spins] = part.mean, part.probability
        error[spins] = 0.0 if part.std_error is None else part.std_error
        if are_pairs_wanted():
            pairs = spins[model.submodel(spins).edges()[0]]
            here = np.searchsorted(places, pairs[:, 0] * model.n + pairs[:, 1])
            here = np.concatenate([here, len(edges) + np.flatnonzero(np.isin(first_spins, spins))])
            pair_mean[here] = part.pair_mean
            pair_error[here] = 0.0 if part.pair_std_error is None else part.pair_std_error
    kinds = {part.kind for part in marginals}
    is_exact = kinds == {Kind.EXACT}
    has_errors = not is_exact and all(part.kind is Kind.EXACT or part.std_error is not None for part in marginals)
    return MarginalOutcome(
        probability=probability,
        mean=mean,
        pair_mean=pair_mean,
        kind=Kind.EXACT if is_exact else Kind.ESTIMATE,
        outcome=added(model, [part.outcome for part in marginals]),
        std_error=error if has_errors else None,
        pair_std_error=pair_error if has_errors else None,
    )
