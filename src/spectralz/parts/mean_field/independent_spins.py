"""Independent spins, each in its own field."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz.parts.outcome import MarginalOutcome, Outcome
from spectralz.parts.pairs import pairs_of
from spectralz.result import Kind

if TYPE_CHECKING:
    from spectralz.model import FloatArray, Ising


def probabilities(h: FloatArray) -> FloatArray:
    """Return P(x_i = -1) and P(x_i = +1) of spins in the fields h; small ones keep their digits."""
    from scipy.special import expit

    return np.column_stack([expit(-2.0 * h), expit(2.0 * h)])


def independent_spins(model: Ising, h: FloatArray, outcome: Outcome) -> MarginalOutcome:
    """Return the marginals of independent spins with the fields h; exact if the model's spins are independent."""
    mean = np.tanh(h)
    pairs = pairs_of(model)
    kind = Kind.EXACT if outcome.kind is Kind.EXACT else Kind.ESTIMATE
    return MarginalOutcome(probabilities(h), mean, mean[pairs[:, 0]] * mean[pairs[:, 1]], kind, outcome)
