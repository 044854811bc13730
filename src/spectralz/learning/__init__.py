"""Learn models from data: maximum likelihood of fields and couplings, and restricted Boltzmann machines."""

from spectralz.learning.estimator import IsingEstimator
from spectralz.learning.fitting import fit

__all__ = ["IsingEstimator", "fit"]
