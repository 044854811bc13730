"""Partition functions of pairwise binary models, and how far each answer can be trusted."""

from spectralz import start as start  # isort: skip  (the first, so that an interrupt of the others is quiet)
from spectralz import errors, generators
from spectralz.errors import SpectralzError
from spectralz.inference import bounds, compare, describe, log_z, marginals, sample
from spectralz.io import read, write
from spectralz.methods import (
    METHODS,
    PAPER_SETTINGS,
    Annealing,
    Auto,
    BeliefPropagation,
    ConvexMeanField,
    Exact,
    ExpectationPropagation,
    LowRank,
    MeanField,
    Method,
    MiniBucket,
    Quadrature,
    Spectral,
    States,
    TreeReweighted,
    WeightedMiniBucket,
)
from spectralz.model import Ising
from spectralz.result import Bounds, Comparison, Estimate, Kind, Marginals, Status
from spectralz.sdp import DiagonalSDP, diagonal_sdp

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "PAPER_SETTINGS",
    "Annealing",
    "Auto",
    "BeliefPropagation",
    "Bounds",
    "Comparison",
    "ConvexMeanField",
    "DiagonalSDP",
    "Estimate",
    "Exact",
    "ExpectationPropagation",
    "Ising",
    "Kind",
    "LowRank",
    "Marginals",
    "MeanField",
    "Method",
    "MiniBucket",
    "Quadrature",
    "Spectral",
    "SpectralzError",
    "States",
    "Status",
    "TreeReweighted",
    "WeightedMiniBucket",
    "__version__",
    "bounds",
    "compare",
    "describe",
    "diagonal_sdp",
    "errors",
    "generators",
    "log_z",
    "marginals",
    "read",
    "sample",
    "write",
]
