"""Partition functions of binary models, and how far each answer can be trusted."""

import spectralz._support.interrupts  # isort: skip  # noqa: F401  (imported first, so that an interrupt is quiet)
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from spectralz import closed_forms, errors, generators
from spectralz.compilation import Compilation, warm_up
from spectralz.errors import SpectralzError
from spectralz.inference import (
    bounds,
    compare,
    describe,
    energy,
    entropy,
    log_prob,
    log_ratio,
    log_z,
    map_state,
    marginals,
    predict,
    sample,
    temperature,
    thermodynamics,
)
from spectralz.io import read, write
from spectralz.io.interop import from_dimod, from_networkx, from_pandas, from_polynomial, from_qubo
from spectralz.learning import IsingEstimator, fit
from spectralz.methods import (
    Annealing,
    BeliefPropagation,
    ConvexMeanField,
    Exact,
    ExpectationPropagation,
    LowRank,
    MatrixProduct,
    MeanField,
    Method,
    MiniBucket,
    Quadrature,
    SDPBound,
    Spectral,
    States,
    TreeReweighted,
    WeightedMiniBucket,
)
from spectralz.model import RBM, Ising, Polynomial
from spectralz.parts.sdp.diagonal import DiagonalSDP, diagonal_sdp
from spectralz.portfolio.auto import Auto
from spectralz.registry import METHODS, PAPER_SETTINGS
from spectralz.result import (
    Bounds,
    BoundsRow,
    Comparison,
    ComparisonRow,
    Description,
    Estimate,
    Fit,
    Interval,
    Kind,
    LogProb,
    MapState,
    Marginals,
    Populations,
    Prediction,
    Quantity,
    Status,
    Temperature,
    Thermodynamics,
    Trial,
    Verdict,
)

if _TYPE_CHECKING:
    from spectralz import plots as plots

__version__ = "0.2.0"

__all__ = [
    "METHODS",
    "PAPER_SETTINGS",
    "RBM",
    "Annealing",
    "Auto",
    "BeliefPropagation",
    "Bounds",
    "BoundsRow",
    "Comparison",
    "ComparisonRow",
    "Compilation",
    "ConvexMeanField",
    "Description",
    "DiagonalSDP",
    "Estimate",
    "Exact",
    "ExpectationPropagation",
    "Fit",
    "Interval",
    "Ising",
    "IsingEstimator",
    "Kind",
    "LogProb",
    "LowRank",
    "MapState",
    "Marginals",
    "MatrixProduct",
    "MeanField",
    "Method",
    "MiniBucket",
    "Polynomial",
    "Populations",
    "Prediction",
    "Quadrature",
    "Quantity",
    "SDPBound",
    "Spectral",
    "SpectralzError",
    "States",
    "Status",
    "Temperature",
    "Thermodynamics",
    "TreeReweighted",
    "Trial",
    "Verdict",
    "WeightedMiniBucket",
    "__version__",
    "bounds",
    "closed_forms",
    "compare",
    "describe",
    "diagonal_sdp",
    "energy",
    "entropy",
    "errors",
    "fit",
    "from_dimod",
    "from_networkx",
    "from_pandas",
    "from_polynomial",
    "from_qubo",
    "generators",
    "log_prob",
    "log_ratio",
    "log_z",
    "map_state",
    "marginals",
    "plots",
    "predict",
    "read",
    "sample",
    "temperature",
    "thermodynamics",
    "warm_up",
    "write",
]


def __getattr__(name: str) -> _Any:
    if name == "plots":  # imported on first use: answers need no pictures
        from importlib import import_module

        return import_module("spectralz.plots")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
