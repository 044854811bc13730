"""What a run gives back: a number, what kind of number it is, and how far it can be trusted."""

from spectralz.result.bounds import Bounds, BoundsRow
from spectralz.result.comparison import Comparison, ComparisonRow
from spectralz.result.description import Description
from spectralz.result.estimate import Estimate
from spectralz.result.fit import Fit
from spectralz.result.fit_tests import Goodness, LikelihoodRatio, Wald
from spectralz.result.kinds import AnyMethod, Kind, Status, Trial, Verdict, plain
from spectralz.result.likelihood import DataLikelihood
from spectralz.result.marginals import Marginals

__all__ = [
    "AnyMethod",
    "Bounds",
    "BoundsRow",
    "Comparison",
    "ComparisonRow",
    "DataLikelihood",
    "Description",
    "Estimate",
    "Fit",
    "Goodness",
    "Kind",
    "LikelihoodRatio",
    "Marginals",
    "Status",
    "Trial",
    "Verdict",
    "Wald",
    "plain",
]
