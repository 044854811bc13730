"""Means over the states of populations, with errors by the jackknife: one block of all groups is left out at a time.

Every population gives unbiased sums over its groups; choices, such as how much it counts, stay as pilots made them.

Means between the temperatures of a curve come from the states kept at all of them (multiple histograms). A state kept
at temperature k stands for the distribution there. All states together, each by its weight under the mixture of these
distributions, stand for any temperature in between (Ferrenberg and Swendsen 1989; Shirts and Chodera 2008). The log Z
of the temperatures are those of the curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.sampling.cells import as_they_count
from spectralz.sampling.population import MISSING_FAMILIES, systematic
from spectralz.sampling.sweeps import ROUNDINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, Model
    from spectralz.sampling.cells import Cells
    from spectralz.sampling.population import Population


# Blocks of groups, and states of each for the moments of overlaps.
BLOCKS, STATES_FOR_OVERLAPS = 32, 32

# A block that holds all but this share of the weight cannot be left out; the error is then what one family could hold.
LEAST_LEFT = 1e-9

Pair = tuple["FloatArray", "FloatArray"]


@dataclass(frozen=True, eq=False)
class Sample:
    """Weighted states of one population in blocks.

    Attributes
    ----------
    x, energy
        The states, and minus their log-weights.
    weight
        Their unbiased weights, relative to a scale that all populations of a temperature share.
    block
        The block of each.
    groups
        Number of groups in each block.
    families
        Effective number of families.
    """

    x: NDArray[np.int8]
    energy: FloatArray
    weight: FloatArray
    block: NDArray[np.int64]
    groups: FloatArray
    families: float


def sample_of(
    model: Model,
    population: Population,
    cells: Cells,
    coefficients: FloatArray,
    own: int | None,
    scale: float,
    most: float,
    rng: np.random.Generator,
) -> Sample:
    """Return the states of a population that count, thinned if they are more than ``most``."""
    groups, each = population.share.shape
    step = max(math.ceil(population.size / max(most, BLOCKS * STATES_FOR_OVERLAPS)), 1)
    rows = np.arange(int(rng.integers(step)), population.size, step)
    x, counts = as_they_count(population.x[rows], cells, coefficients, own, rng)
    weight = (population.share * np.exp(population.log_z - scale)[:, None]).ravel()[rows] * step * counts
    group = rows // each
    energy = -np.asarray(model.unconstrained.log_weight(x), dtype=np.float64)
    counts = np.bincount(np.arange(groups) % BLOCKS, minlength=BLOCKS).astype(float)
    return Sample(x, energy, weight, group % BLOCKS, counts, population.families())


def means_of(samples: Sequence[Sample], beta: float, n: int) -> dict[str, Pair]:
    """Return what the states at a temperature say, with errors; ``log_z`` is relative to the scale of their weights."""
    middle = float(np.mean([sample.energy.mean() for sample in samples]))
    sums = _Blocks.of(samples, lambda x, energy: powers(magnetization_of(x), energy - middle))
    total = sums.total
    found = with_errors(total, map(sums.without, sums.filled), beta, middle)
    families = sum(sample.families for sample in samples)
    rare, apart = 1.0 / max(families, 1.0), math.sqrt(max(found["heat_capacity"][0][0], 0.0)) / beta
    rounding = ROUNDINGS * UNIT_ROUNDOFF * abs(middle) / rare
    unseen = {
        "energy": apart + rounding,
        "entropy": 1.0 + beta * (apart + rounding),
        "heat_capacity": beta**2 * (apart + rounding) ** 2,
    }
    pairs = {
        name: (value, np.hypot(error * (1.0 + MISSING_FAMILIES * rare), rare * unseen.get(name, 1.0)))
        for name, (value, error) in found.items()
    }
    return pairs | _overlaps(samples, sums.filled, rare, n)


def magnetization_of(x: NDArray[np.int8]) -> FloatArray:
    """Return the mean spin of each state."""
    return np.asarray(x.sum(axis=1, dtype=np.float64) / max(x.shape[1], 1))


def powers(m: FloatArray, energy: FloatArray) -> FloatArray:
    """Return what is summed up over states, a column each, by their magnetizations and energies."""
    return np.column_stack([np.ones(len(m)), energy, energy**2, m, np.abs(m), m**2, m**4])


def with_errors(total: FloatArray, without: Iterable[FloatArray], beta: float, middle: float) -> dict[str, Pair]:
    """Return the quantities of sums over states, with errors by the same sums without one block each."""
    kept = [part for part in without if part[0] > LEAST_LEFT * total[0]]
    others = [_quantities(part, beta, middle) for part in kept]
    pairs = {}
    for name, one in _quantities(total, beta, middle).items():
        value = np.atleast_1d(one)
        pairs[name] = value, _jackknife(np.array([other[name] for other in others]).reshape(len(others), value.size))
    return pairs


def _quantities(sums: FloatArray, beta: float, middle: float) -> dict[str, FloatArray]:
    """Return the quantities of sums over states of the columns above, with energies counted from ``middle``."""
    total = max(float(sums[0]), np.finfo(float).tiny)
    energy, square, *moments = sums[1:] / total
    log_z = math.log(total)
    return {
        "log_z": np.asarray(log_z),
        "energy": np.asarray(middle + energy),
        "entropy": np.asarray(log_z + beta * (middle + energy)),
        "heat_capacity": np.asarray(beta**2 * max(square - energy**2, 0.0)),
        "magnetization": np.asarray(moments[0]),
        "abs_magnetization": np.asarray(moments[1]),
        "magnetization_moments": np.array(moments),
        "binder": np.asarray(binder_of(moments[2], moments[3])),
    }


def binder_of(square: float, fourth: float) -> float:
    """Return Binder's cumulant of a quantity by its second and fourth moments; 0 if it is always 0."""
    return 1.0 - fourth / (3.0 * square**2) if square > 0.0 else 0.0


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Sums over the states of each population in each block, and its groups there: (populations, blocks, ...)."""

    sums: FloatArray
    groups: FloatArray

    @classmethod
    def of(cls, samples: Sequence[Sample], columns: Callable[[NDArray[np.int8], FloatArray], FloatArray]) -> _Blocks:
        sums = []
        for sample in samples:
            values = columns(sample.x, sample.energy)
            order = np.argsort(sample.block, kind="stable")
            ends = np.searchsorted(sample.block[order], np.arange(BLOCKS + 1))
            weighted = sample.weight[:, None] * values
            sums.append([weighted[order[a:b]].sum(axis=0) for a, b in pairwise(ends)])
        return cls(np.array(sums), np.array([sample.groups for sample in samples]))

    @property
    def filled(self) -> list[int]:
        """The blocks that may be left out: those without which every population has groups."""
        rest = self.groups.sum(axis=1, keepdims=True) - self.groups
        return np.flatnonzero((self.groups.sum(axis=0) > 0.0) & (rest > 0.0).all(axis=0)).tolist()

    @property
    def total(self) -> FloatArray:
        """The sums over populations of their means over groups."""
        return np.asarray((self.sums.sum(axis=1) / self.groups.sum(axis=1)[:, None]).sum(axis=0))

    def without(self, block: int) -> FloatArray:
        """Return the same without a block."""
        rest = self.groups.sum(axis=1) - self.groups[:, block]
        return np.asarray(((self.sums.sum(axis=1) - self.sums[:, block]) / rest[:, None]).sum(axis=0))


def _jackknife(without: FloatArray) -> FloatArray:
    """Return the errors of values by those without one block each; none if there are fewer than two."""
    count = len(without)
    if count < 2:
        return np.zeros(without.shape[1:])
    apart = without - without.mean(axis=0)
    return np.asarray(np.sqrt((count - 1) / count * (apart**2).sum(axis=0)))


def _overlaps(samples: Sequence[Sample], filled: Sequence[int], rare: float, n: int) -> dict[str, Pair]:
    """Return the mean overlap and its moments over states of different blocks, which are independent."""
    x = np.concatenate([sample.x for sample in samples])
    block = np.concatenate([sample.block for sample in samples])
    weight = np.concatenate([sample.weight / sample.groups.sum() for sample in samples])
    by_block = np.where(block == np.arange(BLOCKS)[:, None], weight, 0.0)
    total = by_block.sum(axis=1)
    means = (by_block.astype(np.float32) @ x.astype(np.float32)).astype(np.float64)
    rows = np.concatenate([_drawn(part, share) for part, share in zip(by_block, total, strict=True) if share > 0.0])
    y, at = x[rows].astype(np.float32), block[rows]
    square = np.square((y @ y.T).astype(np.float64) / max(n, 1))
    both = np.outer(total, total)
    tables = [both, means @ means.T / max(n, 1), *(both * _between_blocks(q, at) for q in (square, square**2))]
    for table in tables:
        np.fill_diagonal(table, 0.0)

    def values(kept: NDArray[np.bool_]) -> FloatArray:
        pairs, *sums = (float(table[np.ix_(kept, kept)].sum()) for table in tables)
        moments = np.array(sums) / max(pairs, np.finfo(float).tiny)
        return np.append(moments, binder_of(moments[1], moments[2]))

    value = values(np.ones(BLOCKS, dtype=bool))
    error = _jackknife(np.array([values(np.arange(BLOCKS) != b) for b in filled]))
    error = np.hypot(error * (1.0 + MISSING_FAMILIES * rare), rare)
    places = {"overlap": slice(1), "overlap_moments": slice(1, 3), "overlap_binder": slice(3, 4)}
    return {name: (value[place], error[place]) for name, place in places.items()}


def _drawn(weight: FloatArray, total: float) -> NDArray[np.int64]:
    """Return the places of some states, drawn by their weights."""
    size = min(STATES_FOR_OVERLAPS, int((weight > 0.0).sum()))
    return np.repeat(np.arange(len(weight)), systematic(weight / total, 0.5, size))


def _between_blocks(values: FloatArray, block: NDArray[np.int64]) -> FloatArray:
    """Return the means of values of pairs of states over pairs of their blocks."""
    member = (block[:, None] == np.arange(BLOCKS)).astype(np.float64)
    member /= np.maximum(member.sum(axis=0), 1.0)
    return np.asarray(member.T @ values @ member)


# ------------------------------------------------------------------------------------------------- between temperatures


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
