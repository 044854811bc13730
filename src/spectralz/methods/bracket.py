"""A bracket of log Z from all methods that prove bounds, as tight as a time allowance makes it.

Cheap bounds come first. What costs more is run only if its predicted cost fits into what is left of the allowance; a
bound that is found stays, whatever happens later.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectralz.errors import SpectralzError, is_interrupt
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.methods.annealing import Annealer
from spectralz.methods.convex_mean_field import ConvexMeanField
from spectralz.methods.couplings import without_diagonal
from spectralz.methods.mean_field import MeanField
from spectralz.methods.spectral import sdp_upper
from spectralz.methods.states import MOST_STATES, StatePool, fill, search
from spectralz.methods.tree_reweighted import MOST_DENSE_SPINS, TREES, TreeReweighted
from spectralz.methods.weighted_mini_bucket import WeightedMiniBucket
from spectralz.model import Ising
from spectralz.options import checked_names, checked_positive
from spectralz.progress import report
from spectralz.result import Bounds, BoundsRow
from spectralz.threads import one_thread_if_small

if TYPE_CHECKING:
    from spectralz.result import Estimate

__all__ = ["BOUNDERS", "NAMES", "bracket"]

SDP_TOL = 1e-6
# Seconds of the SDP at 1,000 spins of a dense coupling and at 2,500 of a grid, with the powers by which they grow, as
# measured (docs/sdp.md), times two.
DENSE_SDP_SECONDS, DENSE_SDP_POWER = 1.5, 2.2
SPARSE_SDP_SECONDS, SPARSE_SDP_POWER = 2.6, 1.6
SPARSE_DENSITY = 0.05
# Seconds a message of trw, an entry of the inverse that starts it to the power 3/2, and an edge of one spanning tree.
MESSAGE_SECONDS, INVERSE_SECONDS, TREE_SECONDS = 1.5e-7, 4e-10, 1e-6
LEAST_ITERATIONS, MOST_ITERATIONS = 20, 1000
EDGE_STEPS = 5
# Seconds of wmbe without tightening for an edge and for an entry of a table, and how much longer a round takes.
BUCKET_SECONDS, ENTRY_SECONDS, ROUND_TIMES = 4e-5, 1.5e-8, 2.5
LEAST_IBOUND, MOST_IBOUND = 4, 16
FIRST_ROUNDS, MOST_ROUNDS = 3, 50
RESTARTS, RESTARTS_SHARE = 50, 0.2
# Time enough to compile, while what is sized by it stays small.
LOADING_SECONDS = 1000.0
# A quick annealing: few temperatures, few states, and as many quenches.
QUICK_STEP = 1.0
FEWEST_STATES, MOST_ANNEALED = 20, 1000
STATES_SHARE = 0.3
# Up to this mean degree the bounds that live on edges are the tight ones, beyond it those of the SDP.
MOST_SPARSE_DEGREE = 10.0
# No single bounder plans to use more than this share of what is left, tables no more than the second one.
LARGEST_SHARE = 0.5
TABLES_SHARE = 0.01


class Found(NamedTuple):
    """A proven bound on either side, or both, and how it came about."""

    lower: float | None
    upper: float | None
    status: str


class _NotAffordableError(Exception):
    """Raised where the next step would not fit into the allowance; what was found before it stays."""


class Allowance:
    """Seconds that may be spent, counted from its making."""

    def __init__(self, seconds: float) -> None:
        self.started = time.perf_counter()
        self.seconds = seconds

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    @property
    def share(self) -> float:
        """What one bounder may plan with."""
        return max(LARGEST_SHARE * (self.seconds - self.spent), 0.0)

    def need(self, seconds: float) -> None:
        """Refuse what would take longer than what is left."""
        left = max(self.seconds - self.spent, 0.0)
        if seconds > left:
            raise _NotAffordableError(f"not run: would take about {seconds:.2g} s, {left:.2g} s are left")


Bounder = Callable[["Ising", Allowance], Iterator[Found]]


def bracket(model: Ising, budget: float, exclude: Any = ()) -> Bounds:
    """Return the best proven bounds on log Z that ``budget`` seconds buy, with a row for each bounder.

    An interrupt (Ctrl-C) ends the search, not the call: what has been found is returned, with ``interrupted`` set.
    """
    seconds = checked_positive(budget, "budget")
    left_out = checked_names(exclude, "exclude", NAMES)
    load_bounders()
    allowance = Allowance(seconds)
    rows = [_row("trivial", _trivial, model, Allowance(math.inf), 0.0)]
    names = [name for name in _in_order(model) if name not in left_out]
    for k, name in enumerate(names):
        with one_thread_if_small(model.n):
            row = _row(name, BOUNDERS[name], model, allowance, k / len(names))
        if "exact" in left_out and row.lower is not None and row.upper is not None:
            row = replace(row, lower=None, upper=None, status="left out: it is exact here, and exact was excluded")
        rows.append(row)
        if row.status.endswith("interrupted"):
            break
    return Bounds.best_of(tuple(rows), allowance.spent, interrupted=rows[-1].status.endswith("interrupted"))


@cache
def load_bounders() -> None:
    """Run every bounder once on small models: compiling, or loading what is compiled, is not the budget's business."""
    for model in small_models():
        for name, bounder in BOUNDERS.items():
            report(f"loading {name}", 0.0)
            for _ in bounder(model, Allowance(LOADING_SECONDS)):
                pass
        # Six spins fit into one table; what tightens is reached with smaller ones only.
        WeightedMiniBucket(ibound=2, order="min-degree", max_iter=2).run(model)


def small_models() -> tuple[Ising, Ising]:
    """Return a dense and a sparse model, both frustrated and cold, so that all code is reached."""
    field = np.linspace(-1.0, 1.0, 6)
    coupling = 2.0 * (-1.0) ** np.outer(np.arange(6), np.arange(6))
    ring = [(i, (i + 1) % 6) for i in range(6)]
    return Ising(field, coupling), Ising.from_edges(6, ring, [3.0, -3.0, 3.0, 3.0, 3.0, 3.0], field)


def _row(name: str, bounder: Bounder, model: Ising, allowance: Allowance, done: float) -> BoundsRow:
    """Run one bounder as far as it goes, and keep the best that it found on each side."""
    started = time.perf_counter()
    lower, upper, status = None, None, "found nothing"
    report(f"bounding by {name}", done)
    try:
        for found in bounder(model, allowance):
            if found.lower is not None and (lower is None or found.lower > lower):
                lower, status = found.lower, found.status
            if found.upper is not None and (upper is None or found.upper < upper):
                upper, status = found.upper, found.status
    except _NotAffordableError as refusal:
        status = status if (lower, upper) != (None, None) else str(refusal)
    except SpectralzError as error:
        if name == "trivial":  # no bounder can do without the coupling's entries
            raise
        status = f"refused: {error}"
    except (KeyboardInterrupt, SystemError) as error:
        if name == "trivial" or not is_interrupt(error):  # nothing to return yet
            raise
        status = "interrupted" if (lower, upper) == (None, None) else f"{status}; then interrupted"
    return BoundsRow(name, lower, upper, time.perf_counter() - started, status)


def _in_order(model: Ising) -> list[str]:
    """Return the bounders, those first that cost little or are likely to bound this model best."""
    is_sparse = 2 * model.edge_count <= MOST_SPARSE_DEGREE * model.n
    return sorted(BOUNDERS, key=(SPARSE_ORDER if is_sparse else DENSE_ORDER).index)


def _found(estimate: Estimate) -> Found:
    return Found(estimate.lower, estimate.upper, str(estimate.status))


# --- the bounders: each yields bounds, the cheap ones first ---------------------------------------------------------


def _trivial(model: Ising, allowance: Allowance) -> Iterator[Found]:
    """Take the spins without couplings: these add at most sum |A_ij|, and by Jensen at least their mean there."""
    from spectralz.kernels.convex_mean_field import log_2cosh

    C = without_diagonal(model)
    theta = np.asarray(model.field)
    mean = np.tanh(theta)
    sizes = np.asarray(abs(C).sum(axis=1))
    parts = [*log_2cosh(theta).tolist(), model.offset, *model.diagonal.tolist()]
    alone, most, mean_weight = math.fsum(parts), math.fsum(sizes.tolist()), math.fsum((mean * (C @ mean)).tolist())
    scale = float(np.abs(parts).sum()) + (model.n + 16.0) * most
    rounding = 8.0 * UNIT_ROUNDOFF * (model.n + scale)
    yield Found(alone + mean_weight - rounding, alone + most + rounding, "spins without their couplings")


def _mean_field(model: Ising, allowance: Allowance) -> Iterator[Found]:
    """From zero, then from some random starts; the first run may have loaded compiled code, and is no measure."""
    latest = MeanField().run(model)
    yield _found(latest)
    begun, allowed = allowance.spent, RESTARTS_SHARE * allowance.share
    for seed in range(RESTARTS):
        if latest.seconds > allowance.share or (seed and allowance.spent - begun + latest.seconds > allowed):
            return
        latest = MeanField(start="random", seed=seed).run(model)
        yield _found(latest)


def _states(model: Ising, allowance: Allowance) -> Iterator[Found]:
    """Sum over the states that a quick annealing and quenches find, then over their neighbours too."""
    with Annealer(model, step=QUICK_STEP, block_width=0) as annealer:
        one = annealer.seconds_per_state()
        allowance.need(2.0 * FEWEST_STATES * one)
        size = _within(STATES_SHARE * allowance.share / one, FEWEST_STATES, MOST_ANNEALED)
        rng = np.random.default_rng(0)
        population = annealer.anneal(annealer.temperatures(FEWEST_STATES, rng), size, rng)
        pool = StatePool(model, MOST_STATES)
        fill(pool, annealer, [population], size, rng)
        yield Found(pool.lower, None, f"{len(pool)} states")
        search(pool, annealer, STATES_SHARE * allowance.share)
        yield Found(pool.lower, None, f"{len(pool)} states")


def _sdp(model: Ising, allowance: Allowance) -> Iterator[Found]:
    allowance.need(_sdp_seconds(model))
    upper, status = sdp_upper(model, SDP_TOL)
    yield Found(None, upper, str(status))


def _convex_mean_field(model: Ising, allowance: Allowance) -> Iterator[Found]:
    one = 1.5 * _sdp_seconds(model)
    allowance.need(one)
    rounds = 3 if 4.0 * one <= allowance.share else 0
    yield _found(ConvexMeanField(rounds=rounds, tol=SDP_TOL).run(model))


def _tree_reweighted(model: Ising, allowance: Allowance) -> Iterator[Found]:
    """Uniform trees, then trees chosen for the model if there is time for that."""
    n, messages = model.n, 2.0 * model.edge_count
    trees = INVERSE_SECONDS * n**3 if n <= MOST_DENSE_SPINS else TREE_SECONDS * TREES * model.edge_count
    iteration = MESSAGE_SECONDS * max(messages, 1.0)
    allowance.need(trees + LEAST_ITERATIONS * iteration)
    iterations = _within((allowance.share - trees) / iteration, LEAST_ITERATIONS, MOST_ITERATIONS)
    first = TreeReweighted(max_iter=iterations).run(model)
    yield _found(first)
    allowance.need((EDGE_STEPS + 1) * first.seconds)
    yield _found(TreeReweighted(max_iter=iterations, optimize_edges=EDGE_STEPS).run(model))


def _weighted_mini_bucket(model: Ising, allowance: Allowance) -> Iterator[Found]:
    """Tables as large as suits the allowance, without tightening; then as many rounds of it as there is time for."""
    plain = BUCKET_SECONDS * (model.n + model.edge_count)
    allowance.need(plain)
    ibound = LEAST_IBOUND
    while ibound < MOST_IBOUND and _table_seconds(model, ibound + 1) <= TABLES_SHARE * allowance.share:
        ibound += 1
    order = "min-degree"
    first = WeightedMiniBucket(ibound=ibound, order=order).run(model)
    yield _found(first)
    if first.lower is not None:  # no bucket had to be split: exact
        return
    allowance.need(FIRST_ROUNDS * ROUND_TIMES * first.seconds)
    tight = WeightedMiniBucket(ibound=ibound, order=order, max_iter=FIRST_ROUNDS).run(model)
    yield _found(tight)
    rounds = int(min(allowance.share / (tight.seconds / FIRST_ROUNDS), MOST_ROUNDS))
    if rounds > 2 * FIRST_ROUNDS:
        yield _found(WeightedMiniBucket(ibound=ibound, order=order, max_iter=rounds).run(model))


def _sdp_seconds(model: Ising) -> float:
    """Predict the time of the SDP from the size."""
    n, edges = model.n, model.edge_count
    if edges > SPARSE_DENSITY * n**2 / 2.0:
        return float(DENSE_SDP_SECONDS * (n / 1000.0) ** DENSE_SDP_POWER)
    return float(SPARSE_SDP_SECONDS * (edges / 5000.0) ** SPARSE_SDP_POWER)


def _table_seconds(model: Ising, ibound: int) -> float:
    """Predict the time of one pass over the tables of mini-buckets, about one for each spin and ``ibound`` edges."""
    return float(ENTRY_SECONDS * 2.0**ibound * (model.n + 2.0 * model.edge_count / ibound))


def _within(value: float, least: int, most: int) -> int:
    return int(min(max(value, least), most))


# A new bounder is one line here and its place below; `trivial` is run before them all.
BOUNDERS: Mapping[str, Bounder] = {
    "mf": _mean_field,
    "states": _states,
    "sdp": _sdp,
    "convex_mf": _convex_mean_field,
    "trw": _tree_reweighted,
    "wmbe": _weighted_mini_bucket,
}
SPARSE_ORDER = ("wmbe", "mf", "trw", "states", "sdp", "convex_mf")
DENSE_ORDER = ("sdp", "convex_mf", "mf", "states", "wmbe", "trw")
# What may be left out; without "exact" no method counts where it happens to be exact.
NAMES = ("exact", *BOUNDERS)
