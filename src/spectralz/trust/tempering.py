"""Trust in parallel tempering: enough visitors from the base, no drift, and no phase that the copies have missed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.sampling.tempered_curves import TemperedCurves

# Fewer copies that came from the base may have missed a valley.
FEWEST_VISITORS = 30
# The mean energies of both halves of the rounds differ by more of their errors than this only if copies still drift.
LARGEST_DRIFT = 5.0


def trusted_temperatures(curves: TemperedCurves) -> NDArray[np.bool_]:
    """Return at which temperatures curves are trusted; copies that drift at one bring their drift to colder ones."""
    is_still = curves.drift <= LARGEST_DRIFT
    return np.asarray((curves.visitors >= FEWEST_VISITORS) & is_still & ~curves.missed)
