"""The results of runs: a number, what kind of number it is, and how far it can be trusted."""

from spectralz.result.bootstrap import Bootstrap
from spectralz.result.bounds import Bounds, BoundsRow
from spectralz.result.comparison import Comparison, ComparisonRow
from spectralz.result.count import Count
from spectralz.result.description import Description
from spectralz.result.estimate import Estimate
from spectralz.result.fit import Fit
from spectralz.result.fit_tests import Goodness, LikelihoodRatio, Predictability, Wald
from spectralz.result.interval import Interval
from spectralz.result.kinds import AnyMethod, Kind, Status, Trial, Verdict, plain
from spectralz.result.likelihood import DataLikelihood
from spectralz.result.log_prob import LogProb
from spectralz.result.map_state import MapState
from spectralz.result.marginals import Marginals
from spectralz.result.populations import Populations
from spectralz.result.prediction import Prediction
from spectralz.result.quantity import Quantity
from spectralz.result.temperature import EnergyTest, Temperature
from spectralz.result.thermodynamics import Thermodynamics

__all__ = [
    "AnyMethod",
    "Bootstrap",
    "Bounds",
    "BoundsRow",
    "Comparison",
    "ComparisonRow",
    "Count",
    "DataLikelihood",
    "Description",
    "EnergyTest",
    "Estimate",
    "Fit",
    "Goodness",
    "Interval",
    "Kind",
    "LikelihoodRatio",
    "LogProb",
    "MapState",
    "Marginals",
    "Populations",
    "Predictability",
    "Prediction",
    "Quantity",
    "Status",
    "Temperature",
    "Thermodynamics",
    "Trial",
    "Verdict",
    "Wald",
    "plain",
]
