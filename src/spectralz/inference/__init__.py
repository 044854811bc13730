"""The verbs: questions about a model."""

from spectralz.inference.counting import count
from spectralz.inference.description import describe
from spectralz.inference.heaviest import map_state
from spectralz.inference.prediction import predict
from spectralz.inference.probabilities import log_prob
from spectralz.inference.ratio import log_ratio
from spectralz.inference.sample_temperature import temperature
from spectralz.inference.temperatures import energy, entropy, thermodynamics
from spectralz.inference.verbs import as_method, bounds, compare, log_z, marginals, sample

__all__ = [
    "as_method",
    "bounds",
    "compare",
    "count",
    "describe",
    "energy",
    "entropy",
    "log_prob",
    "log_ratio",
    "log_z",
    "map_state",
    "marginals",
    "predict",
    "sample",
    "temperature",
    "thermodynamics",
]
