"""What populations and the search for phases say of log Z, as one value that trust alone reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.model import FloatArray
    from spectralz.sampling.cells import Row


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
) -> SamplingEvidence:
    """Return the evidence; ``rows`` are those of the populations, (populations, cells) their coefficients."""
    return SamplingEvidence(
        tuple(row.log_z for row in rows),
        np.array([row.families for row in rows]),
        np.array([row.heaviest for row in rows]),
        tuple(row.covariance for row in rows),
        tuple(row.log_scale for row in rows),
        coefficients,
        tuple(sources),
        tuple(light),
        search,
    )
