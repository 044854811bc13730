"""Log-probabilities of data under a fitted model, in the values of the fit's own data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import ModelError, OptionError
from spectralz.learning.table import spins_of

if TYPE_CHECKING:
    from spectralz.model import FloatArray
    from spectralz.result import Fit

__all__ = ["log_probabilities"]


def log_probabilities(fit: Fit, X: Any) -> FloatArray:
    """Return log P of every row of ``X``."""
    if fit.log_z is None:
        raise OptionError("this fit was made with likelihood=False, so log Z is not known; fit again without it")
    states, _ = spins_of(X, fit.values)
    if states.ndim != 2 or states.shape[1] != fit.model.n:
        raise ModelError(f"X has shape {states.shape}; give rows of {fit.model.n} variables")
    own: FloatArray = np.asarray(fit.model.log_weight(states)) - fit.log_z
    return own
