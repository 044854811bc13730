"""Curves at temperatures between those that were asked for, from the states kept there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock
from spectralz.inference.estimated_curves import as_fields, stacked
from spectralz.result import Kind, Status, Thermodynamics

if TYPE_CHECKING:
    from spectralz.inference.estimated_curves import Found
    from spectralz.model import FloatArray
    from spectralz.sampling.curves.observables import Histograms


@dataclass(frozen=True, eq=False)
class Between:
    """Give the curves between the temperatures of others: errors are at least those of both neighbors."""

    found: Found
    histograms: Histograms
    n: int

    def __call__(self, betas: FloatArray) -> Thermodynamics:
        """Return the curves at these temperatures."""
        passed = clock.stopwatch()
        known, rows, trusted = self.found, [], []
        for beta in betas.tolist():
            after = int(np.clip(np.searchsorted(known.betas, beta), 1, max(len(known.betas) - 1, 1)))
            neighbors = [after - 1, min(after, len(known.betas) - 1)]
            pairs, is_enough = self.histograms.at(beta)
            for name, (value, error) in pairs.items():
                of_neighbors = known.quantities[name][1][neighbors].reshape(len(neighbors), -1)
                pairs[name] = value, np.maximum(error, of_neighbors.max(axis=0))
            rows.append(pairs)
            trusted.append(is_enough and bool(known.trusted[neighbors].all()))
        words = f"from the states kept at {len(known.betas)} temperatures"
        if not all(trusted):
            words += f"; {trusted.count(False)} temperatures are not to be trusted: the others are not, or too far away"
        return Thermodynamics(
            n=self.n,
            beta=betas,
            **as_fields(stacked(rows)),
            kind=Kind.ESTIMATE,
            trusted=np.array(trusted),
            status=Status(words, converged=all(trusted)),
            method="annealing",
            **passed(),
        )
