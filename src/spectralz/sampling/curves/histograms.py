"""Means between the temperatures of a curve, from the states kept at all of them (multiple histograms).

A state kept at temperature k stands for the distribution there. All states together, each by its weight under the
mixture of these distributions, stand for any temperature in between (Ferrenberg and Swendsen 1989; Shirts and Chodera
2008). The log Z of the temperatures are those of the curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from spectralz.sampling.curves.observables import BLOCKS, magnetization_of, powers, with_errors
from spectralz.sampling.populations import systematic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Model
    from spectralz.sampling.curves.observables import Pair, Sample

# States kept at each temperature.
KEPT = 2048
# Means are trusted if they rest on this share of all blocks; where temperatures are too far apart, few states count.
ENOUGH_BLOCKS = 0.5


@dataclass(frozen=True, eq=False)
class Kept:
    """Equally likely states of a temperature: their energies, magnetizations per spin and blocks."""

    energy: FloatArray
    m: FloatArray
    block: NDArray[np.int64]

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> Kept:
        """Draw states from those of populations, by their weights."""
        weight = np.concatenate([sample.weight / sample.groups.sum() for sample in samples])
        rows = np.repeat(np.arange(len(weight)), systematic(weight / weight.sum(), 0.5, KEPT))
        m = np.concatenate([magnetization_of(sample.x) for sample in samples])
        energy, block = (np.concatenate([getattr(sample, name) for sample in samples]) for name in ("energy", "block"))
        return cls(energy[rows], m[rows], block[rows])

    @classmethod
    def coins(cls, model: Model, rng: np.random.Generator) -> Kept:
        """Draw states at beta = 0."""
        x = 2 * rng.integers(2, size=(KEPT, model.n), dtype=np.int8) - 1
        energy = -np.asarray(model.log_weight(x), dtype=np.float64)
        return cls(energy, magnetization_of(x), np.arange(KEPT) % BLOCKS)


@dataclass(frozen=True, eq=False)
class Histograms:
    """The states kept at each of K temperatures, which rise, and log Z there."""

    betas: FloatArray
    log_z: FloatArray
    kept: tuple[Kept, ...]

    def with_coins(self, model: Model, rng: np.random.Generator) -> Histograms:
        """Return the same with states at beta = 0."""
        log_z = np.append(model.n * np.log(2.0), self.log_z)
        return Histograms(np.append(0.0, self.betas), log_z, (Kept.coins(model, rng), *self.kept))

    def at(self, beta: float) -> tuple[dict[str, Pair], bool]:
        """Return means at a temperature between these, with errors, and whether enough states say so.

        The errors are those of the jackknife over blocks.
        """
        energy, m = (np.concatenate([getattr(part, name) for part in self.kept]) for name in ("energy", "m"))
        block = np.concatenate([part.block for part in self.kept])
        mixture = logsumexp(-np.outer(self.betas, energy) - self.log_z[:, None], axis=0)
        log_weight = -beta * energy - mixture - np.log(KEPT)
        scale = float(logsumexp(log_weight))
        weight = np.exp(log_weight - scale)
        middle = float(weight @ energy)
        columns = weight[:, None] * powers(m, energy - middle)
        sums = np.array([np.bincount(block, column, minlength=BLOCKS) for column in columns.T]).T
        share = np.bincount(block, minlength=BLOCKS) / len(block)
        total, blocks = sums.sum(axis=0), np.flatnonzero(share)
        # Without the last factor the error of log Z would be that of how many states each block has kept.
        without = [(total - sums[b]) / (1.0 - share[b]) for b in blocks if share[b] < 1.0]
        pairs = with_errors(total, without, beta, middle)
        for name in ("log_z", "entropy"):
            pairs[name] = pairs[name][0] + scale, pairs[name][1]
        return pairs, 1.0 / float((sums[:, 0] ** 2).sum()) >= ENOUGH_BLOCKS * len(blocks)
