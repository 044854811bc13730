"""Data to models: maximum likelihood of fields and couplings, and the machines of two layers."""

from spectralz.learning.estimator import IsingEstimator
from spectralz.learning.fitting import fit

__all__ = ["IsingEstimator", "fit"]
