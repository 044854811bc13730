"""Estimated curves over temperature: each temperature has its answer from the first way that is trusted there."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock
from spectralz.errors import OptionError, TooLargeError, catching_interrupt
from spectralz.inference.contracted import contracted
from spectralz.inference.moments import KNOWN, at_infinite_temperature, quantities, with_what_is_certain
from spectralz.trust.strata import judge_strata, summary_of_strata

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from spectralz._support.deadline import Deadline
    from spectralz.model import FloatArray, Ising, Model

# Of the time that is left, so much goes into contractions if other ways may have to answer as well.
CONTRACTING_SHARE = 0.9
# A way begins only if so much of the time is left; others have answered by then.
LEAST_LEFT = 0.2
# The time of curves to show after an interrupt, and how long they take at least.
QUICK_SHARE, QUICK_SECONDS_PER_SPIN = 0.05, 2e-4


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
    """

    quantities: dict[str, tuple[FloatArray, FloatArray]]
    trusted: NDArray[np.bool_]
    by: tuple[str, ...]
    words: dict[str, str]
    betas: FloatArray
    interrupted: bool = False

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


def with_infinite_temperature(model: Model, found: Found) -> Found:
    """Add beta = 0 to temperatures above it; the size of the magnetization has no short formula there."""
    at_zero = dict(zip(KNOWN, quantities(model, 0.0, lambda _: at_infinite_temperature(model), 0.0), strict=True))
    pairs = {
        name: (np.append(at_zero[name][0], value), np.append(at_zero[name][1], error))
        for name, (value, error) in found.quantities.items()
        if name in at_zero
    }
    return replace(
        found,
        quantities=pairs,
        trusted=np.append(True, found.trusted),
        by=(found.by[0], *found.by),
        betas=np.append(0.0, found.betas),
    )


def first_of(model: Model, betas: FloatArray, ways: Mapping[str, Way], deadline: Deadline, seed: int) -> Found:
    """Return the answer of each temperature from the first way that is trusted there, or from the last one.

    After an interrupt, temperatures without an answer are left out.
    """
    if not ways:
        raise OptionError(
            "no exact method can do it in time, and all others are left out; exclude less, or raise budget"
        )
    found, left, quick = None, np.ones(len(betas), dtype=bool), None
    with catching_interrupt() as interrupt:
        quick = _quickly(model, betas, deadline, seed)
        if quick is not None and quick.interrupted:
            raise KeyboardInterrupt
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
    if quick is not None:
        found = quick if found is None else found.replaced_by(quick.only(left), left)
    if found is None:
        raise KeyboardInterrupt
    return replace(found.only(np.isfinite(found.quantities["log_z"][0])), interrupted=True)


def _quickly(model: Model, betas: FloatArray, deadline: Deadline, seed: int) -> Found | None:
    """Return something to show after an interrupt, not to be trusted, if that takes a small share of the time."""
    share = deadline.share(QUICK_SHARE)
    if clock.counts_operations() or QUICK_SECONDS_PER_SPIN * model.n > share.left:
        return None
    found = _cooled(model, betas, share, seed, is_last=False)
    return replace(found, trusted=np.zeros(len(betas), dtype=bool))


def _contracted(model: Ising, betas: FloatArray, deadline: Deadline, seed: int, *, is_last: bool) -> Found | None:
    """Contract at each temperature; those without an answer are not trusted, and not numbers."""
    found = contracted(model, betas, deadline.share(1.0 if is_last else CONTRACTING_SHARE), seed)
    rows = found.rows
    if is_last and len(rows) < len(betas) and not found.interrupted:
        raise TooLargeError(
            f"mps has a trusted answer at {len(rows)} of {len(betas)} temperatures: {found.why}; "
            'ask for method "auto", or give it more time'
        )
    if not rows:
        if found.interrupted:
            raise KeyboardInterrupt
        return None
    empty = [(math.nan, math.nan)] * len(KNOWN)
    values, errors = np.array([rows.get(k, empty) for k in range(len(betas))]).transpose(2, 1, 0)
    values, errors = with_what_is_certain(model.n, values, errors)
    trusted = np.array([k in rows for k in range(len(betas))])
    pairs = dict(zip(KNOWN, zip(values, errors, strict=True), strict=True))
    words = f"{len(rows)} temperatures by contractions of compressed tables"
    return Found(pairs, trusted, ("mps",) * len(betas), {"mps": words}, betas, found.interrupted)


def _cooled(model: Model, betas: FloatArray, deadline: Deadline, seed: int, *, is_last: bool) -> Found:
    """Anneal through all temperatures, and judge log Z at each as that of any runs."""
    from spectralz.sampling.curves import curves

    del is_last  # it always answers
    cooled = curves(model, betas, deadline.share(1.0), np.random.default_rng(seed))
    log_z, error = cooled.log_z
    judged = [judge_strata(summary_of_strata(groups), phases, groups, 0.0) for phases, groups in cooled.strata]
    errors = np.maximum(error, [verdict.std_error for verdict in judged])
    pairs = {
        name: pair
        for name in (*KNOWN, "abs_magnetization")
        if (pair := (log_z, errors) if name == "log_z" else getattr(cooled, name)) is not None
    }
    runs = "1 run" if cooled.runs == 1 else f"{cooled.runs} runs"
    words = f"{cooled.states} states in {runs} through {cooled.points} points"
    words += ", too few to be checked" if cooled.is_rough else ", and through half as many"
    is_checked = not (cooled.interrupted or cooled.is_rough)
    trusted = np.array([verdict.trusted and is_checked for verdict in judged])
    return Found(pairs, trusted, ("annealing",) * len(betas), {"annealing": words}, betas, cooled.interrupted)


# Ways that take pairs of spins only.
PAIRWISE_WAYS = ("mps",)
WAYS: dict[str, Way] = {"mps": _contracted, "annealing": _cooled}
