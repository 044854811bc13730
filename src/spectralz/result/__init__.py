"""The results of runs: a number, what kind of number it is, and how far it can be trusted."""

from spectralz.result.comparison import Bounds, BoundsRow, Comparison, ComparisonRow, Description
from spectralz.result.estimate import Count, Estimate, Populations
from spectralz.result.fit import Fit
from spectralz.result.fit_tests import Bootstrap, DataLikelihood, Goodness, LikelihoodRatio, Predictability, Wald
from spectralz.result.kinds import AnyMethod, Interval, Kind, Status, Trial, Verdict, plain
from spectralz.result.marginals import LogProb, MapState, Marginals, Prediction
from spectralz.result.thermodynamics import EnergyTest, Quantity, Temperature, Thermodynamics

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
