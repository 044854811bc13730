"""Weighted mini-bucket elimination: an upper bound on log Z that can be tightened, and its beliefs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spectralz._support import clock
from spectralz._support.options import (
    checked_bytes,
    checked_level,
    choice,
    count,
    option,
    or_none,
    repetitions,
    spin_order,
)
from spectralz._support.progress import reporter_of
from spectralz.methods.base import MarginalOutcome, Method, Outcome
from spectralz.parts.mini_buckets import ORDER_NAMES, PARTITIONS, Division, Prepared, describe, outcome_of
from spectralz.parts.outcome import with_kind_of_means
from spectralz.result import Interval, Kind, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.kernels.mini_buckets.passes import Potentials
    from spectralz.model import Ising

__all__ = ["WeightedMiniBucket"]

# The order whose plain bound is the tightest is often not that whose bound can be tightened most; a few rounds tell.
ROUNDS_FOR_AN_ORDER = 5
# Of the time that is left, if it is limited, the bound may take this share where states are drawn from it.
SHARE_OF_BOUND = 0.5


@dataclass(frozen=True, kw_only=True)
class WeightedMiniBucket(Method):
    """An upper bound on log Z by weighted mini-bucket elimination, with beliefs.

    As in mini-bucket elimination the functions of a spin are divided into mini-buckets of at most ``ibound`` spins. The
    spin is taken out of each by a power sum (sum_x f(x)^(1/w))^w; with weights w that add up to 1 this is an upper
    bound by Hoelder's inequality [1]_. They start equal. ``max_iter`` rounds of L-BFGS then lower the bound over the
    weights and over how fields and couplings are shared between the mini-buckets of a spin that have them in common
    (cost shifting); the bound is valid at every stage, and never above that of 0 rounds. Marginals are the derivatives
    of the bound by the fields and couplings: estimates, and exact where no bucket had to be split.

    Parameters
    ----------
    ibound
        Most spins in a mini-bucket's table, before its spin is summed out: tables of up to 2^ibound numbers.
    order
        In which order to eliminate: ``"min-fill"``, ``"min-degree"``, ``"banded"``, ``"best"`` (the one of these that
        gives the tightest bound, after the first five rounds if there are any), or your own, a list of all spins.
    partition
        How to divide a bucket: ``"scope"``, the widest function first and each into the first mini-bucket that has
        room for it; or ``"content"``, merging the pair of functions whose product is furthest from being summed apart,
        often tighter, but on dense graphs much slower (seconds at 80 spins, minutes at 300).
    max_iter
        Most rounds of optimisation, each about three times the work of a plain bound; 0 for none.
    max_memory
        Most memory for tables, in bytes or like ``"512 MiB"``; refused before they are allocated. Marginals and
        optimisation keep all tables at once.
    level
        A probability such as 0.999, to get an ``interval`` that log Z lies in with that probability: ``samples`` states
        are drawn from the bound, whose weights never exceed it [2]_. All tables are kept. None for no interval.
    samples
        How many states are drawn for it, fewer if a budget ends before.
    seed
        Of these states; the same seed gives the same ones.

    Raises
    ------
    TooLargeError
        If the tables need more than ``max_memory``.

    See Also
    --------
    MiniBucket : sums and maxima, or minima for a lower bound.

    References
    ----------
    .. [1] Q. Liu, A. Ihler, "Bounding the partition function using Hoelder's inequality", ICML 2011.
    .. [2] Q. Liu, J. Fisher, A. Ihler, "Probabilistic variational bounds for graphical models", NIPS 2015.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.complete(n=20, strength=0.1, seed=0)
    >>> truth = sz.log_z(model, "exact").log_z
    >>> plain, optimised = sz.log_z(model, sz.WeightedMiniBucket()), sz.log_z(model, sz.WeightedMiniBucket(max_iter=20))
    >>> truth < optimised.upper < plain.upper
    True
    >>> optimised.upper - truth < 0.5
    True
    >>> low, high, level = sz.log_z(model, "wmbe", max_iter=20, level=0.999).interval
    >>> low < truth < high < optimised.upper, high - low < 0.05
    (True, True)
    """

    ibound: int = option(10, count(least=2))
    order: str | Sequence[int] = option("best", spin_order(ORDER_NAMES))
    partition: str = option("scope", choice(PARTITIONS))
    max_memory: int | str = option(4 * 2**30, checked_bytes)
    max_iter: int = option(0, count(least=0))
    level: float | None = option(None, or_none(checked_level))
    samples: int = option(65536, repetitions(least=1))
    seed: int = option(0, count(least=0))

    name: ClassVar[str] = "wmbe"
    gives_marginals: ClassVar[bool] = True

    def _powers(self, count: int) -> tuple[float, float]:
        return 1.0 / count, 1.0 / count

    def _looseness(self, prepared: Prepared) -> float:
        if not self.max_iter:
            return prepared.bound.value
        from spectralz.kernels.mini_buckets.tightening import tighten

        rounds = min(ROUNDS_FOR_AN_ORDER, self.max_iter)
        return tighten(prepared.forest, prepared.potentials, rounds, lambda _: None).bound.value

    def _solve(self, model: Ising) -> Outcome:
        if self.level is None:
            return self._run(model, keep=self.max_iter > 0)[2]
        with clock.within(SHARE_OF_BOUND):
            prepared, potentials, outcome = self._run(model, keep=True)
        return self._with_interval(model, prepared, potentials, outcome)

    def _with_interval(self, model: Ising, prepared: Prepared, potentials: Potentials, outcome: Outcome) -> Outcome:
        """Draw states from the bound; where nothing was split, what is proven is all there is to know."""
        from spectralz.parts.intervals import sampled_ends

        assert self.level is not None
        assert outcome.upper is not None
        if outcome.lower is not None:
            return replace(outcome, interval=Interval(outcome.lower, outcome.upper, self.level))
        rounding = outcome.details["rounding"]
        ends = sampled_ends(prepared.forest, potentials, rounding, 1.0 - self.level, self.samples, self.seed)
        status = Status(f"{outcome.status}; {ends.words}", converged=outcome.status.converged)
        interval = ends.interval(model, self.level)
        return replace(outcome, interval=interval, status=status, interrupted=ends.is_interrupted)

    def _run(self, model: Ising, *, keep: bool) -> tuple[Prepared, Potentials, Outcome]:
        prepared = Division(self, self._powers, self._looseness).prepare(model, keep=keep)
        details = prepared.details(model, keep=keep)
        if prepared.is_exact:
            outcome = outcome_of(
                model, Kind.EXACT, prepared.bound, describe(prepared), iterations=0, details={**details, "gain": 0.0}
            )
            return prepared, prepared.potentials, outcome
        potentials, bound, gain, rounds, at_rest = prepared.potentials, prepared.bound, 0.0, 0, True
        sentence = describe(prepared)
        if self.max_iter:
            from spectralz.kernels.mini_buckets.tightening import tighten

            found = tighten(prepared.forest, potentials, self.max_iter, reporter_of("tightening the bound"))
            potentials, rounds, at_rest = found.potentials, found.iterations, found.converged
            gain = bound.value - found.bound.value
            bound = replace(found.bound, rounding=found.bound.rounding + found.rounding)
            ending = "and came to rest" if at_rest else "and was not yet at rest"
            sentence = f"{sentence}; optimised for {rounds} rounds {ending}"
        details |= {"gain": gain, "weights": _weights_by_bucket(prepared, potentials)}
        outcome = outcome_of(
            model, Kind.UPPER_BOUND, bound, sentence, converged=at_rest, iterations=rounds, details=details
        )
        return prepared, potentials, outcome

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        from spectralz.kernels.mini_buckets.passes import beliefs_of

        prepared, potentials, outcome = self._run(model, keep=True)
        forest = prepared.forest
        beliefs = beliefs_of(forest, potentials, reporter_of("eliminating spins, forwards and back"))
        up, down = beliefs.up[forest.field_step], beliefs.down[forest.field_step]
        whole = up + down  # 1, but for rounding
        # Log-weights that are off by at most r change a mean by at most 2 r, and every digit if they are huge.
        kind = Kind.ESTIMATE
        if prepared.is_exact:
            assert outcome.upper is not None
            outcome, kind = with_kind_of_means(outcome, 2.0 * (outcome.upper - outcome.log_z))
        return MarginalOutcome(
            probability=np.clip(np.column_stack([down, up]) / whole[:, None], 0.0, 1.0),
            mean=np.clip((up - down) / whole, -1.0, 1.0),
            pair_mean=np.clip(beliefs.pair_mean[forest.edge_bit], -1.0, 1.0),
            kind=kind,
            outcome=outcome,
        )


def _weights_by_bucket(prepared: Prepared, potentials: Potentials) -> list[list[float]]:
    """Return the weights of each spin's mini-buckets, in the order of ``details["buckets"]``."""
    power = np.empty(prepared.forest.count)
    power[prepared.cover.sequence] = potentials.power
    ends = np.cumsum(prepared.cover.counts)
    return [part.tolist() for part in np.split(power, ends[:-1])]
