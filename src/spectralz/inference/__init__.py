"""What a person asks of a model: the verbs."""

from spectralz.inference.description import describe
from spectralz.inference.verbs import as_method, bounds, compare, log_z, marginals, sample

__all__ = ["as_method", "bounds", "compare", "describe", "log_z", "marginals", "sample"]
