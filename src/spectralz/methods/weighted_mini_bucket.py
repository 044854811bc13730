"""Weighted mini-bucket elimination: bounds on log Z that can be tightened, and their beliefs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spectralz._support import deadline
from spectralz._support.options import (
    checked_bytes,
    checked_level,
    choice,
    count,
    option,
    or_none,
    repetitions,
    spin_order,
    threads_option,
)
from spectralz._support.progress import reporter_of
from spectralz.errors import OptionError
from spectralz.methods.base import MarginalOutcome, Method, Outcome
from spectralz.parts.elimination.constrained import of_first_spins, with_tables
from spectralz.parts.mini_buckets.bounds import ORDER_NAMES, PARTITIONS, SIDES, WeightedBound
from spectralz.parts.outcome import saying, with_kind_of_means
from spectralz.result import Interval, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.model import Model

# If the time is limited and states are drawn from the bound, the bound may take this share of the time left.
SHARE_OF_BOUND = 0.5


@dataclass(frozen=True, kw_only=True)
class WeightedMiniBucket(Method):
    r"""Bound log Z from above or below by weighted mini-bucket elimination; gives marginals too.

    As in mini-bucket elimination, the functions of a spin are divided into mini-buckets of at most ``ibound`` spins.
    The spin x is eliminated from each by a power sum. By Hoelder's inequality, with weights that add up to 1,

    .. math::

       \sum_x \prod_k f_k(x) \le \prod_k \Bigl( \sum_x f_k(x)^{1 / w_k} \Bigr)^{w_k}

    if all weights are positive; if one is positive and the others are negative, the right side is a lower bound [1]_.
    ``max_iter`` rounds of L-BFGS then tighten the bound. They change the weights, and how fields and couplings are
    shared between the mini-buckets that have them in common (cost shifting; terms of more spins stay whole). The bound
    is valid at every stage and never looser than with 0 rounds. Rounds end when they no longer gain anything. Marginals
    are the derivatives of the bound by the fields and couplings: estimates, and exact if no bucket had to be split.

    Parameters
    ----------
    ibound
        Most spins in a mini-bucket's table, before its spin is summed out: tables of up to 2^ibound numbers. At least
        as many as the largest term of the model has.
    order
        The order of elimination: ``"narrow"`` (fewest neighbors first, counting only what fits into ``ibound``),
        ``"min-fill"``, ``"min-degree"``, ``"banded"``, ``"best"`` (whichever of these gives the tightest bound,
        after the first five rounds if there are any; with more than 5,000 spins only narrow), or your own, a list of
        all spins.
    partition
        How to divide a bucket: ``"scope"`` puts each function, the widest first, into the first mini-bucket with room
        for it; ``"content"`` merges the pair of functions for which separate sums lose most. This is often tighter,
        but on dense graphs much slower (seconds at 80 spins, minutes at 300).
    max_iter
        Most rounds of optimization, each about twice the work of a plain bound; 0 for none.
    max_memory
        Most memory for tables, in bytes or like ``"512 MiB"``; refused before they are allocated. Marginals,
        optimization and lower bounds keep all tables at once.
    bound
        ``"upper"`` or ``"lower"``. Lower bounds need some rounds; without, they are often below those of mean field.
    threads
        Threads for branches of the tables, None for all cores; the result is the same for any number.
    level
        A probability such as 0.999, to get an ``interval`` that contains log Z with that probability: ``samples``
        states are drawn from the bound, and their weights never exceed it [2]_. All tables are kept. None for no
        interval.
    samples
        How many states to draw for the interval; fewer if the budget ends earlier.
    seed
        Seed of these states; the same seed gives the same states.

    Raises
    ------
    TooLargeError
        If the tables need more than ``max_memory``.

    See Also
    --------
    MiniBucket : uses sums and maxima, or minima for a lower bound.

    References
    ----------
    .. [1] Q. Liu, A. Ihler, "Bounding the partition function using Hoelder's inequality", ICML 2011.
    .. [2] Q. Liu, J. Fisher, A. Ihler, "Probabilistic variational bounds for graphical models", NIPS 2015.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.complete(n=20, strength=0.1, seed=0)
    >>> truth = sz.log_z(model, "exact").log_z
    >>> plain, optimized = sz.log_z(model, sz.WeightedMiniBucket()), sz.log_z(model, sz.WeightedMiniBucket(max_iter=20))
    >>> truth < optimized.upper < plain.upper
    True
    >>> optimized.upper - truth < 0.5
    True
    >>> low, high, level = sz.log_z(model, "wmbe", max_iter=20, level=0.999).interval
    >>> low < truth < high < optimized.upper, high - low < 0.05
    (True, True)
    >>> below = sz.log_z(model, sz.WeightedMiniBucket(max_iter=20, bound="lower"))
    >>> 0.0 < truth - below.lower < 0.5
    True
    """

    ibound: int = option(10, count(least=2))
    order: str | Sequence[int] = option("best", spin_order(ORDER_NAMES))
    partition: str = option("scope", choice(PARTITIONS))
    max_memory: int | str = option(4 * 2**30, checked_bytes)
    max_iter: int = option(0, count(least=0))
    bound: str = option("upper", choice(SIDES))
    threads: int | None = threads_option()
    level: float | None = option(None, or_none(checked_level))
    samples: int = option(65536, repetitions(least=1))
    seed: int = option(0, count(least=0))

    name: ClassVar[str] = "wmbe"
    takes_terms: ClassVar[bool] = True
    takes_constraints: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.level is not None and self.bound == "lower":
            raise OptionError("an interval is drawn from the upper bound; leave out bound='lower', or level")

    def _solve(self, model: Model) -> Outcome:
        narrow = with_tables(model)
        if self.level is None:
            return self._tightened(narrow, keep=self.max_iter > 0).outcome()
        with deadline.current().share(SHARE_OF_BOUND).in_force():
            bound = self._tightened(narrow, keep=True)
        return self._with_interval(narrow, bound)

    def _with_interval(self, model: Model, bound: WeightedBound) -> Outcome:
        """Return the outcome with an interval: from states drawn from the bound, or proven if nothing was split."""
        from spectralz.parts.mini_buckets.intervals import sampled_ends

        assert self.level is not None
        outcome = bound.outcome()
        assert outcome.upper is not None
        if outcome.lower is not None:
            return replace(outcome, interval=Interval(outcome.lower, outcome.upper, self.level))
        forest, rounding, delta = bound.prepared.forest, outcome.details["rounding"], 1.0 - self.level
        ends = sampled_ends(forest, bound.potentials, rounding, delta, self.samples, self.seed)
        interrupted = outcome.interrupted or ends.is_interrupted
        return saying(outcome, f"; {ends.words}", interval=ends.interval(model, self.level), interrupted=interrupted)

    def _tightened(self, model: Model, *, keep: bool) -> WeightedBound:
        bound = WeightedBound.of_model(model, self, is_lower=self.bound == "lower", keep=keep)
        bound.run(self.max_iter)
        return bound

    def _solve_marginals(self, model: Model) -> MarginalOutcome:
        from spectralz.kernels.mini_buckets.passes import beliefs_of

        narrow = with_tables(model)
        bound = self._tightened(narrow, keep=True)
        forest, outcome = bound.prepared.forest, bound.outcome()
        beliefs = beliefs_of(forest, bound.potentials, reporter_of("eliminating spins, forwards and back"))
        up, down = beliefs.up[forest.field_step], beliefs.down[forest.field_step]
        whole = up + down  # 1, but for rounding
        # Log-weights with an error of at most r change a mean by at most 2 r, and every digit if they are huge.
        kind = Kind.ESTIMATE
        if bound.is_exact:
            assert outcome.upper is not None
            outcome, kind = with_kind_of_means(outcome, 2.0 * (outcome.upper - outcome.log_z))
        probability = np.column_stack([down, up]) / whole[:, None]
        pair_mean = np.concatenate([beliefs.pair_mean[forest.edge_bit], beliefs.term_mean[forest.term_place]])
        found = MarginalOutcome(probability, (up - down) / whole, pair_mean, kind, outcome).within_limits()
        return of_first_spins(found, model.n)
