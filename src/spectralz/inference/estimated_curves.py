"""Estimated curves over temperature: each temperature has its answer from the first way that is trusted there.

By compressed elimination log Z at each temperature is as ``mps`` gives it, with the means of its contraction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support import clock
from spectralz._support.deadline import Deadline, LateError, stoppable
from spectralz._support.progress import report
from spectralz._support.threads import NO_MATRICES, using_threads
from spectralz.errors import NotConvergedError, OptionError, TooLargeError, catching_interrupt
from spectralz.inference.moments import (
    KNOWN,
    NEARLY_ZERO,
    STENCIL,
    Moments,
    at_infinite_temperature,
    mean_energy,
    of_coins,
    quantities,
    with_what_is_certain,
)
from spectralz.inference.planar_curves import are_trusted, planar_rows
from spectralz.methods import MatrixProduct
from spectralz.methods.annealing import limits_of
from spectralz.parts.compressed.contraction import Compressed
from spectralz.parts.compressed.frontier import cancels
from spectralz.portfolio import policy
from spectralz.portfolio.steps.before_annealing import refusal_of_frontier, with_growing_bonds
from spectralz.result import Kind, Status, Thermodynamics
from spectralz.sampling.curves.cooling import cooled, evidence_by_temperature, observed
from spectralz.sampling.curves.observables import Histograms
from spectralz.sampling.path import from_coins
from spectralz.sampling.penalties import penalized
from spectralz.sampling.spread import crew_for
from spectralz.sampling.sweeps import bytes_per_state
from spectralz.trust.populations import judge

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from spectralz.inference.all_states import Pairs
    from spectralz.model import FloatArray, Ising, Model
    from spectralz.parts.compressed.frontier import FrontierPlan
    from spectralz.parts.planar.graph import PlanarGraph
    from spectralz.sampling.curves.cooling import Cooling
    from spectralz.sampling.curves.observables import Kept
    from spectralz.trust.judgment import Judgment


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


def _contracted(model: Ising, betas: FloatArray, deadline: Deadline, seed: int, *, is_last: bool) -> Found | None:
    """Contract at temperatures that rise and are above 0, several at once in threads.

    Those without a trusted answer are not numbers.
    """
    within = deadline.share(1.0 if is_last else CONTRACTING_SHARE)
    rows: list[list[Pair] | str] = []
    is_interrupted, why = False, refusal_of_frontier(model, within)
    method = MatrixProduct(bond=policy.FIRST_BOND, samples=policy.MPS_SAMPLES, seed=seed)
    try:
        layout = None if why else method.plan(model)
    except TooLargeError as error:
        layout, why = None, str(error)
    if layout is not None:
        rows, is_interrupted = _in_threads(model, betas, within, method, layout)
    found = {k: row for k, row in enumerate(rows) if not isinstance(row, str)}
    if is_last and len(found) < len(betas) and not is_interrupted:
        why = next((row for row in rows if isinstance(row, str)), why)
        raise TooLargeError(
            f"mps has a trusted answer at {len(found)} of {len(betas)} temperatures: {why}; "
            'ask for method "auto", or give it more time'
        )
    if not found and is_interrupted:
        raise KeyboardInterrupt
    words = f"{len(found)} temperatures by contractions of compressed tables"
    return _of_rows("mps", model.n, betas, found, found.keys(), words, is_interrupted) if found else None


def _in_threads(
    model: Ising, betas: FloatArray, deadline: Deadline, method: MatrixProduct, layout: FrontierPlan
) -> tuple[list[list[Pair] | str], bool]:
    """Return what contractions give at one temperature after the other, and whether an interrupt ended them."""
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
    return rows, interrupt.happened


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
    if cancels(model.scaled(beta)):
        raise _FailedError(
            "fields cancel couplings by many nats, as penalties do, which takes digits from contractions"
        )
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


# --------------------------------------------------------------------------------------------------------- contractions


# Of the time that is left, so much goes into contractions if other ways may have to answer as well.
CONTRACTING_SHARE = 0.9
# A way begins only if so much of the time is left; others have answered by then.
LEAST_LEFT = 0.2
# Populations get this share of the time, and what is made of them at most this memory. Means over states take at most
# this share, and so many seconds; there a state takes so many operations per neighbor and per spin.
POPULATIONS_SHARE, MOST_BYTES, OBSERVED_SHARE, LONGEST_OBSERVED = 0.85, 4e9, 0.1, 60.0
OBSERVED_ENTRY, OBSERVED_SPIN = 0.25, 10.0


@dataclass(frozen=True)
class Found:
    """What a method gives at K temperatures.

    Attributes
    ----------
    quantities
        Pairs of values and errors, K numbers each, by name.
    trusted
        K times whether to trust them.
    by
        The name of the method at each.
    words
        How they were found, a sentence by method.
    betas
        The temperatures.
    interrupted
        Whether an interrupt ended it.
    histograms
        States kept at each temperature, if all are of populations.
    """

    quantities: Pairs
    trusted: NDArray[np.bool_]
    by: tuple[str, ...]
    words: dict[str, str]
    betas: FloatArray
    interrupted: bool = False
    histograms: Histograms | None = None

    def only(self, where: NDArray[np.bool_]) -> Found:
        """Return some of the temperatures."""
        pairs = {name: (value[where], error[where]) for name, (value, error) in self.quantities.items()}
        by = tuple(np.array(self.by, dtype=object)[where])
        return Found(pairs, self.trusted[where], by, self.words, self.betas[where], self.interrupted)

    def replaced_by(self, other: Found, where: NDArray[np.bool_]) -> Found:
        """Return this with another method's numbers at some temperatures, all that ``other`` has, in order."""
        together: dict[str, tuple[FloatArray, FloatArray]] = {}
        for name in self.quantities.keys() & other.quantities.keys():
            value, error = (mine.copy() for mine in self.quantities[name])
            value[where], error[where] = other.quantities[name]
            together[name] = value, error
        trusted, by = self.trusted.copy(), np.array(self.by, dtype=object)
        trusted[where], by[where] = other.trusted, other.by
        words = {**self.words, **other.words}
        words = {name: words[name] for name in words if name in by}
        return Found(together, trusted, tuple(by), words, self.betas, other.interrupted)


Way = Callable[..., Found | None]


def with_infinite_temperature(model: Model, found: Found, seed: int) -> Found:
    """Add beta = 0 to temperatures above it."""
    at_zero = dict(zip(KNOWN, quantities(model, 0.0, lambda _: at_infinite_temperature(model), 0.0), strict=True))
    known: dict[str, Any] = {name: pair[0] for name, pair in at_zero.items()} | of_coins(model.n)
    pairs = {
        name: (np.concatenate([np.array([known[name]]), value]), np.concatenate([np.zeros_like(error[:1]), error]))
        for name, (value, error) in found.quantities.items()
    }
    return replace(
        found,
        quantities=pairs,
        trusted=np.append(True, found.trusted),
        by=(found.by[0], *found.by),
        betas=np.append(0.0, found.betas),
        histograms=found.histograms and found.histograms.with_coins(model, np.random.default_rng(seed)),
    )


def first_of(model: Model, betas: FloatArray, ways: Mapping[str, Way], deadline: Deadline, seed: int) -> Found:
    """Return the answer of each temperature from the first way that is trusted there, or from the last one.

    After an interrupt, temperatures without an answer are left out.
    """
    if not ways:
        raise OptionError(
            "no exact method can do it in time, and all others are left out; exclude less, or raise budget"
        )
    found, left = None, np.ones(len(betas), dtype=bool)
    with catching_interrupt() as interrupt:
        for name, way in ways.items():
            is_late = deadline.left < LEAST_LEFT * deadline.seconds
            if is_late and found is not None and np.isfinite(found.quantities["log_z"][0]).all():
                break
            new = way(model, betas[left], deadline, seed, is_last=name == list(ways)[-1])
            if new is None:
                continue
            found = new if found is None else found.replaced_by(new, left)
            left = ~found.trusted
            if new.interrupted or not left.any():
                break
    if found is not None and not (interrupt.happened or found.interrupted):
        return found
    if found is None:
        raise KeyboardInterrupt
    return replace(found.only(np.isfinite(found.quantities["log_z"][0])), interrupted=True)


def _planar(
    model: Ising, betas: FloatArray, deadline: Deadline, seed: int, *, is_last: bool, graph: PlanarGraph | None = None
) -> Found:
    """Sum over all states of a planar model; its graph is drawn if that is not done yet."""
    del deadline, seed, is_last  # it always takes the time it needs
    rows, is_interrupted = planar_rows(model, betas, graph)
    trusted = np.flatnonzero(are_trusted(rows))
    words = f"{len(trusted)} temperatures by sums over all states of a planar graph"
    if len(trusted) < len(rows):
        first = next(k for k in range(len(rows)) if k not in trusted)
        words += f"; from beta = {betas[first]:.3g} on rounding leaves too few digits"
    return _of_rows("planar", model.n, betas, dict(enumerate(rows)), trusted, words, is_interrupted)


def _of_rows(
    name: str,
    n: int,
    betas: FloatArray,
    rows: Mapping[int, list[Pair]],
    trusted: Collection[int],
    words: str,
    is_interrupted: bool,
) -> Found:
    """Return what rows of values and errors say, by the numbers of their temperatures; others are not numbers."""
    empty, count = [(math.nan, math.nan)] * len(KNOWN), range(len(betas))
    values, errors = with_what_is_certain(n, *np.array([rows.get(k, empty) for k in count]).transpose(2, 1, 0))
    pairs = dict(zip(KNOWN, zip(values, errors, strict=True), strict=True))
    is_trusted = np.array([k in trusted for k in count])
    return Found(pairs, is_trusted, (name,) * len(betas), {name: words}, betas, is_interrupted)


def _annealed(model: Model, betas: FloatArray, deadline: Deadline, seed: int, *, is_last: bool) -> Found:
    """Take populations through all temperatures, and judge log Z at each as that of any populations."""
    del is_last  # it always answers
    if model.constraints:
        return _annealed_alone(model, betas, deadline, seed)
    path, rng = from_coins(model.scaled(float(betas[-1]))), np.random.default_rng(seed)
    states = MOST_BYTES / (2.0 * (bytes_per_state(path) + (len(betas) + 2) * max(model.n, 1)))
    limits = limits_of(deadline.share(POPULATIONS_SHARE), states=states)
    with crew_for(path) as crew:
        done = cooled(model, betas, path, crew, limits, rng)
    per_state = OBSERVED_ENTRY * path.entries + OBSERVED_SPIN * model.n + 1.0
    seconds = OBSERVED_SHARE * min(deadline.seconds, LONGEST_OBSERVED)
    most = 0.0 if done.is_interrupted else seconds * clock.OPERATIONS_PER_SECOND / (per_state * len(betas))
    seen = []
    for k, (beta, evidence) in enumerate(zip(betas.tolist(), evidence_by_temperature(done), strict=True)):
        report("means over states", k / len(betas))
        seen.append(_observed(done, k, judge(evidence), beta * model.constant, most, rng))
    sizes = [population.size for _, population in done.at(0)]
    words = f"{sum(sizes)} states through {len(done.routes[0].legs[0].points)} temperatures"
    if done.phases:
        words += f", some of them towards {len(done.phases)} phases that others missed"
    return _of_populations(betas, seen, words, done.is_interrupted)


def _annealed_alone(model: Model, betas: FloatArray, deadline: Deadline, seed: int) -> Found:
    """Take populations to each temperature of a model with constraints, which are as hard at all of them."""
    rng, seen = np.random.default_rng(seed), []
    with catching_interrupt() as interrupt:
        for k, beta in enumerate(np.maximum(betas, NEARLY_ZERO).tolist()):
            share = Deadline.after(deadline.left / (len(betas) - k))
            with share.in_force():
                soft = penalized(model.scaled(beta))
            path = from_coins(soft)
            limits = limits_of(share.share(POPULATIONS_SHARE), states=MOST_BYTES / (2.0 * bytes_per_state(path)))
            with crew_for(path) as crew:
                done = cooled(soft, np.ones(1), path, crew, limits, rng)
            judged = judge(evidence_by_temperature(done)[0])
            if judged.log_z == -math.inf:
                raise NotConvergedError(f"at beta = {beta:.3g} no state was found that satisfies the constraints")
            # The penalties are 0 in all states that count, so that energies are those of the model.
            there = replace(done, model=model.unconstrained, betas=np.array([beta]))
            most = share.seconds * clock.OPERATIONS_PER_SECOND
            seen.append(_observed(there, 0, judged, soft.constant, most, rng))
            if done.is_interrupted:
                raise KeyboardInterrupt
    if not seen:
        raise KeyboardInterrupt
    words = f"populations to each of {len(seen)} temperatures"
    return _of_populations(betas[: len(seen)], seen, words, interrupt.happened)


def _observed(
    done: Cooling, k: int, judged: Judgment, constant: float, most: float, rng: np.random.Generator
) -> tuple[Judgment, Pairs, Kept]:
    """Return the judgment of log Z at a temperature, and what the states there say; ``constant`` is added to log Z."""
    judged = replace(judged, trusted=judged.trusted and not done.is_interrupted)
    pairs, kept = observed(done, k, judged.std_error, constant, most, rng)
    return judged, pairs | {"log_z": (np.array([judged.log_z + constant]), np.array([judged.std_error]))}, kept


def _of_populations(
    betas: FloatArray, seen: Sequence[tuple[Judgment, Pairs, Kept]], words: str, is_interrupted: bool
) -> Found:
    """Return what populations say at all temperatures."""
    judgments, rows, kept = zip(*seen, strict=True)
    found, trusted = stacked(rows), np.array([judged.trusted for judged in judgments])
    words += next((judged.why for judged in judgments if judged.why), "")
    histograms = Histograms(betas, found["log_z"][0], kept)
    return Found(found, trusted, ("annealing",) * len(betas), {"annealing": words}, betas, is_interrupted, histograms)


@dataclass(frozen=True, eq=False)
class Between:
    """Give the curves between the temperatures of others, from the states kept there.

    Errors are at least those of both neighbors.
    """

    found: Found
    histograms: Histograms
    n: int

    def __call__(self, betas: FloatArray) -> Thermodynamics:
        """Return the curves at these temperatures."""
        passed = clock.stopwatch()
        known, rows, trusted = self.found, [], []
        for beta in betas.tolist():
            after = int(np.clip(np.searchsorted(known.betas, beta), 1, max(len(known.betas) - 1, 1)))
            neighbors = [after - 1, min(after, len(known.betas) - 1)]
            pairs, is_enough = self.histograms.at(beta)
            for name, (value, error) in pairs.items():
                of_neighbors = known.quantities[name][1][neighbors].reshape(len(neighbors), -1)
                pairs[name] = value, np.maximum(error, of_neighbors.max(axis=0))
            rows.append(pairs)
            trusted.append(is_enough and bool(known.trusted[neighbors].all()))
        words = f"from the states kept at {len(known.betas)} temperatures"
        if not all(trusted):
            words += f"; {trusted.count(False)} temperatures are not to be trusted: the others are not, or too far away"
        return Thermodynamics(
            n=self.n,
            beta=betas,
            **as_fields(stacked(rows)),
            kind=Kind.ESTIMATE,
            trusted=np.array(trusted),
            status=Status(words, converged=all(trusted)),
            method="annealing",
            **passed(),
        )


def stacked(rows: Sequence[Pairs]) -> Pairs:
    """Return the values and errors of all temperatures by name, one number or one row for each."""
    return {name: _stacked([row[name] for row in rows]) for name in rows[0]}


def _stacked(pairs: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    value, error = (np.array(part) for part in zip(*pairs, strict=True))
    return (value[:, 0], error[:, 0]) if value.shape[1] == 1 else (value, error)


def as_fields(quantities: Pairs) -> dict[str, Any]:
    """Return values and errors by the names of the fields of a result."""
    return {name + end: pair[k] for name, pair in quantities.items() for k, end in enumerate(("", "_error"))}


# Ways that take pairs of spins only.
PAIRWISE_WAYS = ("planar", "mps")
WAYS: dict[str, Way] = {"planar": _planar, "mps": _contracted, "annealing": _annealed}
