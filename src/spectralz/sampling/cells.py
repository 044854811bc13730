"""Cells: a rule, fixed before states are counted, that says for every state which of some centers it is closest to.

A center is a phase or the ordinary population, as the means of its spins. A state belongs to the center whose
independent spins explain it best. So no state is left out, and no threshold is needed; the border between two centers
lies near an overlap of a half. Turning the spins of an image (``symmetries.py``) leaves a model as it is, so a center
and its images are one cell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.model import FloatArray, IntArray
    from spectralz.sampling.population import Population

# The surest mean of a spin of a center: what a few states say of it is not known better.
SUREST = 0.9
# Numbers that are computed together.
AT_ONCE = 20_000_000


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


@dataclass(frozen=True, eq=False)
class Row:
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
