"""Curves by compressed elimination: at each temperature log Z as ``mps`` gives it, and the means of its contraction."""

from __future__ import annotations

import math
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from spectralz._support import clock
from spectralz._support.deadline import LateError, stoppable
from spectralz._support.progress import report
from spectralz._support.threads import NO_MATRICES, using_threads
from spectralz.errors import TooLargeError, catching_interrupt
from spectralz.inference.moments import KNOWN, STENCIL, Moments, mean_energy, quantities
from spectralz.methods import MatrixProduct
from spectralz.parts.compressed.contraction import Compressed
from spectralz.portfolio import policy
from spectralz.portfolio.steps.compress import refusal_of_frontier, with_growing_bonds
from spectralz.sampling.spread import crew_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz._support.deadline import Deadline
    from spectralz.model import FloatArray, Ising
    from spectralz.parts.compressed.frontier import FrontierPlan

# Steps beside beta for the slope of the energy.
STEP = 1e-2
# Of the time for a temperature, so much goes into log Z. Contractions for the means take about this many times as long
# as those for log Z.
SHARE_OF_LOG_Z, TIMES_OF_MEANS = 0.6, 2.5
# Bonds are doubled until the error of the heat capacity is this share of it, or of 1.
GOOD_SHARE, CAPACITY = 2e-3, KNOWN.index("heat_capacity")
# No temperature gets more than this share of what is left: if it fails, others need the rest.
LARGEST_SHARE = 0.25
# After so many temperatures in a row without a trusted answer, colder ones are not tried.
MOST_FAILURES = 2


# Means of spins are known to so many digits at best.
LEAST = 1e-12

Pair = tuple[float, float]


class _FailedError(Exception):
    """Raised if a contraction has no means."""


@dataclass(frozen=True)
class Contracted:
    """Values and errors at those temperatures, by number, that are trusted; why there are no others."""

    rows: dict[int, list[Pair]]
    why: str = ""
    interrupted: bool = False


def contracted(model: Ising, betas: FloatArray, deadline: Deadline, seed: int) -> Contracted:
    """Contract a model at temperatures that rise and are above 0, several at once in threads."""
    refusal = refusal_of_frontier(model, deadline)
    if refusal:
        return Contracted({}, refusal)
    method = MatrixProduct(bond=policy.FIRST_BOND, samples=policy.MPS_SAMPLES, seed=seed)
    try:
        layout = method.plan(model)
    except TooLargeError as error:
        return Contracted({}, str(error))
    rows: list[list[Pair] | str] = []
    with stoppable() as stop, crew_for(None) as crew, using_threads(None, NO_MATRICES):
        threads = 1 if clock.counts_operations() else crew.threads
        with catching_interrupt() as interrupt:
            while len(rows) < len(betas) and not _has_failed(rows):
                report("contracting", len(rows) / len(betas))
                together = range(len(rows), min(len(rows) + threads, len(betas)))
                part = len(together) / (len(betas) - len(rows))
                limits = deadline.share(min(part, LARGEST_SHARE)), deadline.share(part)
                calls = [partial(copy_context().run, _at, model, betas[k], method, layout, *limits) for k in together]
                rows += [future.result() for future in [crew.pool.submit(call) for call in calls]]
        if interrupt.happened:
            stop.set()  # or the threads would go on
    found = {k: row for k, row in enumerate(rows) if not isinstance(row, str)}
    why = next((row for row in rows if isinstance(row, str)), "")
    return Contracted(found, why, interrupt.happened)


def _has_failed(rows: Sequence[list[Pair] | str]) -> bool:
    """Return whether the last temperatures have no answer."""
    return len(rows) >= MOST_FAILURES and all(isinstance(row, str) for row in rows[-MOST_FAILURES:])


def _at(
    model: Ising, beta: float, method: MatrixProduct, layout: FrontierPlan, deadline: Deadline, whole: Deadline
) -> list[Pair] | str:
    """Return values and errors at a temperature, or why there are none.

    If log Z is trusted, no other method has to be tried, and its means may take the ``whole`` of the time.
    """
    tol = policy.TOL_AT_TEN_SECONDS * math.sqrt(10.0 / max(deadline.seconds, 1e-9))
    with deadline.in_force():
        answer = with_growing_bonds(model.scaled(beta), method, layout, deadline.share(SHARE_OF_LOG_Z), tol)
    if isinstance(answer, str) or not answer.outcome.is_trusted:
        return answer if isinstance(answer, str) else str(answer.outcome.status)
    bond = int(answer.outcome.details["bond"])
    try:
        with whole.in_force():
            found = _means(model, beta, layout, method.cutoff, bond, whole)
    except (_FailedError, LateError) as failure:
        return str(failure)
    if isinstance(found, str):
        return found
    log_z, error = answer.outcome.log_z, answer.outcome.std_error or 0.0
    _, (energy, off), _, (capacity, off_capacity), *others = found
    # The checks of log Z see more than half the bond does, such as rounding.
    off, off_capacity = off + error / beta, off_capacity + error / STEP
    entropy = log_z + beta * energy, error + beta * off
    return [(log_z, error), (energy, off), entropy, (capacity, off_capacity), *others]


def _means(
    model: Ising, beta: float, layout: FrontierPlan, cutoff: float, bond: int, deadline: Deadline
) -> list[Pair] | str:
    """Return what follows from the means of contractions; the bond doubles until they are good, or time is up."""
    per_operation = TIMES_OF_MEANS * (len(STENCIL) + 1) / clock.OPERATIONS_PER_SECOND
    if per_operation * layout.operations(bond) > deadline.left:
        return f"the means would take about {clock.in_words(per_operation * layout.operations(bond))}"
    with_bond = partial(_contraction, model, layout, cutoff)
    coarse = quantities(model, beta, partial(with_bond, max(bond // 2, 1)), STEP)
    while True:
        began = clock.now()
        fine = quantities(model, beta, partial(with_bond, bond), STEP)
        found = _compared(fine, coarse, beta)
        per_operation = (clock.now() - began) / layout.operations(bond)
        capacity, error = found[CAPACITY]
        is_good = error <= GOOD_SHARE * max(capacity, 1.0)
        bond, coarse = 2 * bond, fine
        is_largest = bond > min(2 * layout.largest_bond, policy.MOST_BOND)
        if is_good or is_largest or per_operation * layout.operations(bond) > deadline.left:
            return found


def _contraction(model: Ising, layout: FrontierPlan, cutoff: float, bond: int, beta: float) -> Moments:
    """Return log Z and the means that a contraction with a bond gives."""
    chain = Compressed(model.scaled(beta), layout, bond, cutoff)
    contraction = chain.contract(remembers=True)
    means = chain.means() if contraction.is_positive else None
    if means is None or not means.is_found:
        raise _FailedError("a contraction came out negative, or has lost the means of some spins")
    mean = means.probability[:, 1] - means.probability[:, 0]
    log_z = contraction.log_z + beta * model.constant
    return Moments(log_z, mean_energy(model, mean, means.pair_mean), mean, 0.0)


def _compared(fine: list[Pair], coarse: list[Pair], beta: float) -> list[Pair]:
    """Return values of a bond with errors: how far they are from those of half the bond.

    Differences may vanish where they change their signs. So each also includes that of the integral over beta: log Z
    for the energy, the energy for the heat capacity.
    """
    off = [abs(one - other) + error for (one, error), (other, _) in zip(fine, coarse, strict=True)]
    log_z, energy, _, capacity, *means = off
    energy += log_z / beta
    energy += LEAST * abs(fine[1][0])
    errors = [log_z, energy, log_z + beta * energy, capacity + beta * energy, *(max(mean, LEAST) for mean in means)]
    return [(value, error) for (value, _), error in zip(fine, errors, strict=True)]
