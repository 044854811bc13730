"""Cells: a rule, fixed before states are counted, that says for every state which of some centers it is closest to.

A center is a phase or the ordinary population, as the means of its spins. A state belongs to the center whose
independent spins explain it best. So no state is left out, and no threshold is needed; the border between two centers
lies near an overlap of a half. Turning the spins of an image (``symmetries.py``) leaves a model as it is, so a center
and its images are one cell.

What populations say of the cells is the evidence on log Z, one value that trust alone reads. Pilots decide, before
anything is counted, whose estimate counts in which cell, and who gets how much of the time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from spectralz.model import FloatArray, IntArray
    from spectralz.sampling.population import Population

# The surest mean of a spin of a center: what a few states say of it is not known better.
SUREST = 0.9
# Numbers that are computed together.
AT_ONCE = 20_000_000
# A pilot that has been in a cell with fewer families hardly knows it, and one that would add less than this part of the
# best one's families does not count.
HARDLY, LEAST_PART = 2.0, 0.1
# Rounds in which coefficients and times are fitted to each other, and the least share of the time, of a base that
# counts in some cell.
ROUNDS, LEAST_TIME = 4, 0.03


@dataclass(frozen=True, eq=False)
class Cells:
    """The centers of some cells, and the images of a state that weigh the same.

    Attributes
    ----------
    centers
        Means of the spins, one center per row.
    images
        Which spins are turned, -1 for these and 1 for others, one image per row; the first one turns none.
    cell
        The cell that each center belongs to. The ordinary cell, 0, has one for each valley that is known to be in it.
    """

    centers: FloatArray
    images: NDArray[np.int8]
    cell: IntArray

    @classmethod
    def around(cls, mean: FloatArray, images: NDArray[np.int8]) -> Cells:
        """Return a single cell; where there are images its center is at zero means."""
        return cls(mean[None] * (len(images) == 1), images, np.zeros(1, dtype=np.int64))

    @property
    def count(self) -> int:
        """Number of cells."""
        return int(self.cell.max()) + 1

    def with_center(self, mean: FloatArray, cell: int | None = None) -> Cells:
        """Return the cells with one more center, in a cell of its own or in a given one."""
        number = self.count if cell is None else cell
        return replace(self, centers=np.vstack([self.centers, mean]), cell=np.append(self.cell, number))

    def places(self, x: NDArray[np.int8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the cell of each state, and which image of the center it is closest to."""
        fields = np.arctanh(np.clip(self.centers, -SUREST, SUREST)).astype(np.float32)
        norm = np.log(np.cosh(fields.astype(np.float64))).sum(axis=1)
        cell, image = np.empty(len(x), np.int64), np.empty(len(x), np.int64)
        turned = (self.images[:, None, :] * fields).reshape(len(self.images) * len(self.centers), x.shape[1])
        together = max(AT_ONCE // max(x.shape[1] + len(turned), 1), 1)
        for begin in range(0, len(x), together):
            part = slice(begin, begin + together)
            score = x[part].astype(np.float32) @ turned.T - np.tile(norm, len(self.images))
            best = np.argmax(score, axis=1)
            cell[part], image[part] = self.cell[best % len(self.centers)], best // len(self.centers)
        return cell, image


NO_CELLS = Cells(np.empty((0, 0)), np.empty((0, 0), np.int8), np.empty(0, np.int64))


class Row(NamedTuple):
    """What one population says of the cells: a row of the table.

    Attributes
    ----------
    log_z
        Logs of each group's estimate of the weight of each cell, (groups, cells); -inf where no state is.
    families
        Effective number of families in each cell.
    heaviest
        The share of the heaviest family in each cell.
    covariance, log_scale
        The covariance of the estimates for the cells, from the weights of the families: sum over families of
        (W_k - mean)(W_l - mean), in units of exp(2 log_scale).
    """

    log_z: FloatArray
    families: FloatArray
    heaviest: FloatArray
    covariance: FloatArray
    log_scale: float


def row_of(population: Population, cells: Cells, own: int | None = None) -> Row:
    """Return what a population says of the cells.

    ``own`` is the cell whose base the population began from, if it stays at one of its images: what is found there
    counts as often as there are images, and what has left for the others not at all.
    """
    cell, image = cells.places(population.x)
    times = np.ones(population.size)
    if own is not None:
        times = np.where(cell == own, len(cells.images) * (image == 0), 1.0)
    share = population.share * times.reshape(population.share.shape)
    log_z = np.full((population.groups, cells.count), -np.inf)
    which = cell.reshape(share.shape)
    weights = population.weights() * times
    by_family = np.zeros((population.size, cells.count))
    for k in range(cells.count):
        with np.errstate(divide="ignore"):
            log_z[:, k] = np.log((share * (which == k)).sum(axis=1)) + population.log_z
        by_family[:, k] = np.bincount(population.family, weights=weights * (cell == k), minlength=population.size)
    totals, squares = by_family.sum(axis=0), by_family.T @ by_family
    apart = np.diag(squares)
    families = np.divide(totals**2, apart, out=np.zeros(cells.count), where=apart > 0.0)
    heaviest = np.divide(by_family.max(axis=0), totals, out=np.zeros(cells.count), where=totals > 0.0)
    covariance = squares - np.outer(totals, totals) / population.size
    return Row(log_z, families, heaviest, covariance, population.mean_log_z)


def as_they_count(
    x: NDArray[np.int8], cells: Cells, coefficients: FloatArray, own: int | None, rng: np.random.Generator
) -> tuple[NDArray[np.int8], FloatArray]:
    """Return states of a population, and how much each counts by the coefficient of its cell.

    A population that stays at one image of its ``own`` cell stands for all of them: its states there are turned at
    random.
    """
    cell, image = cells.places(x)
    if own is None:
        return x, coefficients[cell]
    inside, x = cell == own, x.copy()
    x[inside] *= cells.images[rng.integers(len(cells.images), size=int(inside.sum()))]
    return x, coefficients[cell] * np.where(inside, len(cells.images) * (image == 0), 1.0)


def stays(population: Population, cells: Cells, own: int, share: float) -> bool:
    """Return whether the states of a population in its own cell stay at one image of it, but for this share."""
    if len(cells.images) == 1:
        return False
    cell, image = cells.places(population.x)
    weight = population.weights() * (cell == own)
    return bool(weight.sum() > 0.0 and weight @ (image == 0) >= (1.0 - share) * weight.sum())


# ----------------------------------------------------------------------------------------------- the evidence


@dataclass(frozen=True, eq=False)
class SamplingEvidence:
    """The evidence on log Z: a table of what each population found in each cell, and what the search did.

    Attributes
    ----------
    log_z
        For each population, logs of its groups' estimates of the weight of each cell, (groups, cells), without the
        model's constant; -inf where no state is.
    families, heaviest
        Effective number of families of each population in each cell, and the share of the heaviest there.
    covariances, log_scales
        For each population, the covariance of its estimates for the cells by the weights of its families, in units of
        exp(2 log_scale).
    coefficients
        How much the estimate of each population counts in each cell, as pilots chose; every column adds up to 1.
    sources
        For each cell, how many proposals of different sources led to it; 0 for the ordinary population's.
    light
        Log-weights that phases which were left out have at most.
    search
        Why the search was not made or not completed; empty if it was.
    satisfying
        The share of the ordinary population's weight that satisfies the constraints of the model.
    """

    log_z: tuple[FloatArray, ...]
    families: FloatArray
    heaviest: FloatArray
    covariances: tuple[FloatArray, ...]
    log_scales: tuple[float, ...]
    coefficients: FloatArray
    sources: tuple[int, ...]
    light: tuple[float, ...] = ()
    search: str = ""
    satisfying: float = 1.0

    @property
    def totals(self) -> FloatArray:
        """Logs of the mean estimates, (populations, cells)."""
        return np.array([log_mean(groups) for groups in self.log_z])


def log_mean(log_z: FloatArray) -> FloatArray:
    """Return the logs of means over the first axis; -inf where all are."""
    top = log_z.max(axis=0)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(safe + np.log(np.exp(log_z - safe).mean(axis=0)))


def hardly_known(ordinary: Sequence[Row], enough: float) -> str:
    """Return why ordinary populations cannot say that all phases were found; empty if they can.

    In a glass few families reach the model. Each of its valleys then looks like a phase, and those that neither a
    family nor the search has met count nowhere.
    """
    families = sum(float(row.families.sum()) for row in ordinary)
    if families >= enough:
        return ""
    return f"only {families:.3g} ordinary families are left, too few to say that no valley is missed"


def evidence_of(
    rows: Sequence[Row],
    coefficients: FloatArray,
    sources: Sequence[int],
    light: Sequence[float] = (),
    search: str = "",
    satisfying: float = 1.0,
) -> SamplingEvidence:
    """Return the evidence; ``rows`` are those of the populations, (populations, cells) their coefficients."""
    log_z, families, heaviest, covariances, log_scales = zip(*rows, strict=True)
    each = np.array(families), np.array(heaviest), covariances, log_scales
    return SamplingEvidence(log_z, *each, coefficients, tuple(sources), tuple(light), search, satisfying)


# ------------------------------------------------------------------------------------------------- who counts


def shares_of(rows: Sequence[Row], sizes: Sequence[int], costs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return how much each base counts in each cell, (bases, cells), and its share of the time.

    ``rows`` and ``sizes`` are those of the pilots, and ``costs`` those of a state. In a cell estimates count by the
    families that they will have: states times families per pilot state. The time goes as the root of the variance that
    a base adds per state, times its cost (Neyman).
    """
    families = np.array([row.families for row in rows])
    per_state = families / np.array(sizes)[:, None]
    times = np.full(len(rows), 1.0 / len(rows))
    coefficients = np.ones_like(per_state)
    for _ in range(ROUNDS):
        states = times / costs
        coefficients = _coefficients(families, per_state * states[:, None])
        weights = _weights(rows, coefficients)
        added = np.divide((coefficients * weights) ** 2, per_state, out=np.zeros_like(per_state), where=per_state > 0.0)
        times = np.sqrt(added.sum(axis=1) * costs)
        times = np.where(times > 0.0, np.maximum(times / times.sum(), LEAST_TIME), 0.0)
        times = times / times.sum()
    return coefficients, times


def _coefficients(families: FloatArray, expected: FloatArray) -> FloatArray:
    counts = np.where((families >= HARDLY) & (expected >= LEAST_PART * expected.max(axis=0)), expected, 0.0)
    for k in np.flatnonzero(counts.sum(axis=0) == 0.0):
        counts[int(np.argmax(families[:, k])), k] = 1.0
    return np.asarray(counts / counts.sum(axis=0))


def _weights(rows: Sequence[Row], coefficients: FloatArray) -> FloatArray:
    """Return the share of Z that each cell holds, by the pilots."""
    with np.errstate(divide="ignore"):
        logs = np.array([row.log_z[0] for row in rows]) + np.log(coefficients)
    cells = np.logaddexp.reduce(logs, axis=0)
    return np.asarray(np.exp(cells - np.logaddexp.reduce(cells)))


def by_size(coefficients: FloatArray, bases: Sequence[int], sizes: Sequence[int]) -> FloatArray:
    """Return how much each population counts in each cell: those of one base count by their numbers of states."""
    base, size = np.array(bases), np.array(sizes, dtype=np.float64)
    c = coefficients[base] * (size / np.bincount(base, size)[base])[:, None]
    c[0, c.sum(axis=0) <= 0.0] = 1.0  # only after an interrupt
    return np.asarray(c / c.sum(axis=0))
