"""Intervals of log Z that hold with a stated probability, from unbiased estimates of Z (``kernels/betting.py``).

Weights of states drawn from a weighted mini-bucket bound never exceed that bound, and give both ends. Annealing runs
have no such limit, and give the lower end (``sampling/intervals.py``). Both use double precision.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock, costs, deadline
from spectralz._support.progress import report, reporter_of
from spectralz._support.threads import thread_count
from spectralz.errors import SolverError, catching_interrupt
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.kernels.betting import Bets, lower_end
from spectralz.result import Interval

if TYPE_CHECKING:
    from spectralz.kernels.mini_buckets.drawing import Drawing
    from spectralz.kernels.mini_buckets.passes import Forest, Potentials
    from spectralz.model import FloatArray, Model

# This share of the states drawn from a bound, up to this many, are pilots, which determine the bets. This many spins of
# states are drawn between two looks at the clock, in at most this many blocks.
PILOT_SHARE, MOST_OF_PILOT = 1.0 / 16.0, 4096
SPINS_PER_LOOK, MOST_BLOCKS_PER_LOOK = 4_000_000, 16


@dataclass(frozen=True)
class Ends:
    """The ends found, or None, including rounding but not the constants of the model, and a description."""

    low: float
    high: float | None
    words: str
    is_interrupted: bool = False

    def interval(self, model: Model, level: float) -> Interval:
        """Return the interval of log Z of the whole model."""
        low = outwards(self.low, model, -1.0)
        return Interval(low, None if self.high is None else outwards(self.high, model, 1.0), level)


def outwards(end: float, model: Model, sign: float) -> float:
    """Add the constants of a model to an end, rounded to the safe side."""
    total = end + model.constant
    return total + sign * (2.0 * UNIT_ROUNDOFF * (abs(total) + abs(end)) + model.rounding)


# ------------------------------------------------------------------------------------- states drawn from a bound


def sampled_ends(
    forest: Forest, potentials: Potentials, rounding: float, delta: float, samples: int, seed: int
) -> Ends:
    """Draw up to a number of states from a weighted mini-bucket bound, and return both ends of log Z.

    ``rounding`` bounds the errors of the bound, and of the potentials relative to the model. Each end is wrong with
    probability at most ``delta`` / 2. Fewer states are drawn if the time is up or after an interrupt: bets are fair
    after any number of them.
    """
    from spectralz.kernels.mini_buckets.drawing import LANES, Drawing

    drawing = Drawing.of(forest, potentials, reporter_of("preparing to draw states"))
    blocks = max(-(-samples // LANES), 1)
    before, after = np.random.default_rng(seed).spawn(2)
    of_pilot = int(min(max(PILOT_SHARE * blocks, 1.0), MOST_OF_PILOT / LANES))
    pilot, _ = _log_weights(drawing, of_pilot, before, "drawing a pilot")
    states, is_interrupted = _log_weights(drawing, blocks, after, "drawing states")
    largest_log_q = max(float(np.abs(log_q).max(initial=0.0)) for _, log_q in (states, pilot))
    rounding += _rounding(forest, potentials, largest_log_q)
    top = drawing.bound.value + 4.0 * rounding
    logs, before_them = states[0] - states[1], pilot[0] - pilot[1]
    heaviest = max(float(logs.max()), float(before_them.max()))
    if heaviest > top:
        raise SolverError(
            f"a state drawn from the bound {drawing.bound.value} weighs {heaviest}, more than that; "
            "please report this model as a bug"
        )

    def end(log_w: FloatArray, earlier: FloatArray) -> float:
        return lower_end(log_w, delta / 2.0, Bets.for_many(earlier, len(log_w), delta / 2.0))

    low = end(logs, before_them) - rounding
    with np.errstate(divide="ignore"):  # the largest weight that the bound allows
        below = end(np.log(-np.expm1(logs - top)), np.log(-np.expm1(before_them - top)))
    high = top if below == -math.inf else top + math.log(-math.expm1(below))
    words = f"{len(logs)} states drawn from the bound"
    return Ends(low, high + rounding, words, is_interrupted)


def _log_weights(
    drawing: Drawing, blocks: int, rng: np.random.Generator, task: str
) -> tuple[tuple[FloatArray, FloatArray], bool]:
    """Draw blocks of states, each from its own stream; return log-weights, log-probabilities, and if interrupted.

    At least one block is drawn.
    """
    from spectralz.kernels.mini_buckets.drawing import LANES

    lookups = len(drawing.order.pair_rank) + sum(mask.bit_count() for mask in drawing.steps.term_mask.tolist())
    operations = LANES * (costs.BUCKET_LOOKUP * lookups + costs.BUCKET_DRAW * drawing.spins)
    together = int(min(max(SPINS_PER_LOOK / (LANES * max(drawing.spins, 1)), 1), MOST_BLOCKS_PER_LOOK))
    drawn = [drawing.draw(rng.spawn(1)[0])]  # the first, in this thread, compiles
    with catching_interrupt() as interrupt, ExitStack() as stack:
        several = thread_count() > 1 and blocks > 1
        spread = stack.enter_context(ThreadPoolExecutor(thread_count())).map if several else map
        while len(drawn) < blocks and not deadline.is_past():
            count = min(together, blocks - len(drawn))
            clock.charge(count * operations)
            drawn += list(spread(drawing.draw, rng.spawn(count)))
            report(task, len(drawn) / blocks)
    log_f, log_q = (np.concatenate([getattr(block, name) for block in drawn]) for name in ("log_f", "log_q"))
    return (log_f, log_q), interrupt.happened


def _rounding(forest: Forest, potentials: Potentials, largest_log_q: float) -> float:
    """Bound the rounding error of a log-weight, apart from that of the bound itself.

    A state's own weight is a sum of as many terms as there are mini-buckets, each a sum over a separator of at most 64
    spins and over its terms of more spins. The log of its probability is a sum of as many terms as there are spins, all
    of one sign.
    """
    higher, spins = forest.steps.term_weight, int(forest.rank.max(initial=-1)) + 1
    size = float(np.abs(potentials.h).sum() + np.abs(potentials.J).sum() + np.abs(higher).sum())
    terms = len(potentials.h) + 66.0 + float(np.diff(forest.steps.term_start).max(initial=0))
    return 1.01 * UNIT_ROUNDOFF * (terms * size + (spins + 16.0) * largest_log_q)
