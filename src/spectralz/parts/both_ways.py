"""Anneal to the model and back: log Z from the middle of both, where the weights of single runs are not usable.

With many spins the log-weights of annealed states vary by much more than 1, and no number of states finds the heavy
states that dominate the mean weight. The mean log-weight is too small, because the states lag behind equilibrium; that
of states going back from the model to the base is too large. Near equilibrium both lags are equal: the middle is right,
and the gap between the two is the mean of both variances (Jarzynski; Crooks; Hendrix and Jarzynski). The deviation from
this relation sets the scale of the remaining error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock
from spectralz.parts.outcome import Outcome
from spectralz.parts.populations import Annealed, variance_of, with_rounding
from spectralz.parts.survey import neighbors
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Ising
    from spectralz.parts.annealer import Annealer
    from spectralz.parts.chains import Chains

__all__ = ["BothWays", "anneal_both_ways", "both_ways_in_runs"]

# Sweeps at the model before going back, as a share of the points of the path.
RELAXING_SHARE = 0.25
# The way back starts from states along a leading eigenvector if their log-weights exceed those of the annealed states
# by this many of their joint errors.
DEVIATIONS_BETTER = 3.0
# The error, as a share of the inconsistency between the gap and the variances, and of the gap itself, since the two
# lags are equal only to first order. Measured on lattices with a closed form, at the critical point and on both sides
# of it.
ERROR_PER_INCONSISTENCY, ERROR_PER_GAP = 1.0 / 3.0, 1.0 / 16.0
# Above this an inconsistency is more than noise.
NOISE_DEVIATIONS = 2.0
# A smaller inconsistency does not count, however small the noise is.
LEAST_INCONSISTENCY = 0.05


@dataclass(frozen=True)
class BothWays:
    """Log-weights of states on their way to the model and back.

    Attributes
    ----------
    there, back
        log Z from each state alone: too small on the way there, too large on the way back.
    x
        The states at the model, one per row.
    is_ordered
        Whether the way back began in states along a leading eigenvector.
    """

    there: FloatArray
    back: FloatArray
    x: NDArray[np.int8]
    is_ordered: bool = False

    @property
    def log_z(self) -> float:
        """The middle of both ways, offset and trace not included."""
        return 0.5 * float(self.there.mean() + self.back.mean())

    @property
    def gap(self) -> float:
        """The excess of the way back over the way there."""
        return float(self.back.mean() - self.there.mean())

    @cached_property
    def _variances(self) -> tuple[float, float]:
        return float(variance_of(self.there)), float(variance_of(self.back))

    @property
    def scatter(self) -> float:
        """Standard error of the middle, from the scatter of the states."""
        return 0.5 * math.sqrt(sum(self._variances) / max(len(self.there) - 1, 1))

    @property
    def inconsistency(self) -> float:
        """How far the gap is from the mean of the variances, and the variances from each other."""
        there, back = self._variances
        return abs(self.gap - 0.5 * (there + back)) + 0.5 * abs(there - back)

    @property
    def noise(self) -> float:
        """The inconsistency expected from the noise of the variances."""
        return math.hypot(*self._variances) * math.sqrt(2.0 / max(len(self.there) - 1, 1))

    @property
    def std_error(self) -> float:
        """Scatter and lag together."""
        return math.hypot(self.scatter, ERROR_PER_INCONSISTENCY * self.inconsistency, ERROR_PER_GAP * self.gap)

    @property
    def is_trusted(self) -> bool:
        """Whether both ways stay near equilibrium, judging by their variances."""
        return self.inconsistency <= NOISE_DEVIATIONS * self.noise + LEAST_INCONSISTENCY

    def as_annealed(self) -> Annealed:
        """Return the states at the model, all with the same weight."""
        size = len(self.x)
        return Annealed(
            log_z=self.log_z,
            x=self.x,
            weight=np.full(size, 1.0 / size),
            family=np.arange(size),
            variance=self.scatter**2,
        )

    def outcome(self, model: Ising, words: str) -> Outcome:
        """Return the estimate of log Z from both ways; ``words`` describe the runs."""
        log_z = self.log_z + model.constant
        words += f"; the two estimates differ by {self.gap:.3g}, which their variances miss by {self.inconsistency:.2g}"
        if not self.is_trusted:
            words += ": out of equilibrium, do not trust"
        return Outcome(
            log_z=log_z,
            kind=Kind.ESTIMATE,
            status=Status(words, converged=self.is_trusted),
            std_error=with_rounding(self.std_error, log_z),
            trusted=self.is_trusted,
            details={"gap": self.gap, "scatter": self.scatter, "inconsistency": self.inconsistency},
        )


def anneal_both_ways(
    annealer: Annealer,
    betas: FloatArray,
    size: int,
    rng: np.random.Generator,
    ordered: NDArray[np.int8] | None = None,
    tell: Callable[[float], None] = lambda _: None,
) -> BothWays:
    """Take states to the model, let them relax there, and take them back.

    ``ordered`` are states along leading eigenvectors. If they have larger log-weights after relaxing than the annealed
    states, which may be stuck with domain walls, the way back starts from them.
    """
    # Where clusters are turned few sweeps are needed, and they take long.
    share = RELAXING_SHARE * (annealer.engine.slow_share or 1.0)
    relaxing = max(int(share * len(betas)), 1)
    clock.charge(annealer.operations(2 * len(betas) + relaxing, size))
    base = annealer.engine.log_z_of_base
    chains = annealer.engine.start(size, rng)
    there = base + _log_weights(annealer, chains, betas, lambda done: tell(0.45 * done))
    energy = _relax(annealer, chains, relaxing)
    x = chains.states()
    is_ordered = False
    if ordered is not None and len(ordered):
        clock.charge(annealer.operations(relaxing, size))
        others = annealer.engine.start_from(ordered[np.arange(size) % len(ordered)], rng)
        better = _relax(annealer, others, relaxing)
        error = math.sqrt((float(variance_of(energy)) + float(variance_of(better))) / size)
        is_ordered = bool(better.mean() - energy.mean() > DEVIATIONS_BETTER * error)
        chains = others if is_ordered else chains
    back = base - _log_weights(annealer, chains, betas[::-1], lambda done: tell(0.55 + 0.45 * done))
    return BothWays(there, back, x, is_ordered)


def both_ways_in_runs(
    annealer: Annealer,
    betas: FloatArray,
    size: int,
    count: int,
    rng: np.random.Generator,
    ordered: NDArray[np.int8] | None = None,
    tell: Callable[[float], None] = lambda _: None,
) -> BothWays:
    """Take ``count`` times ``size`` states to the model and back: with the annealer's workers, or in this process."""
    if annealer.workers and count > 1:
        streams = rng.spawn(count)
        runs = annealer.workers.runs(anneal_both_ways, annealer, betas, size, streams, ordered, tell=tell)
        found = list(runs)
        if found:
            return BothWays(
                np.concatenate([run.there for run in found]),
                np.concatenate([run.back for run in found]),
                np.concatenate([run.x for run in found]),
                any(run.is_ordered for run in found),
            )
    return anneal_both_ways(annealer, betas, size * count, rng, ordered, tell)


def _log_weights(annealer: Annealer, chains: Chains, points: FloatArray, tell: Callable[[float], None]) -> FloatArray:
    """Take states along points of the path, and return the log-weights that they collect."""
    before, after = neighbors(points)
    total = np.zeros(chains.size)
    for part in annealer.parts(len(points), chains.size):
        _, on = chains.sweep(before[part], points[part], after[part], annealer.sweeps)
        total += on.sum(axis=0)
        tell(part.stop / len(points))
    return total


def _relax(annealer: Annealer, chains: Chains, sweeps: int) -> FloatArray:
    """Sweep at the model; return log-weights minus those of the base."""
    ones = np.ones(sweeps)
    for part in annealer.parts(sweeps, chains.size):
        chains.sweep(ones[part], ones[part], ones[part], 1)
    back, _ = chains.sweep(np.zeros(1), np.ones(1), np.ones(1), 1)
    return np.asarray(-back[0])
