"""Partition functions of pairwise binary models, and how far each answer can be trusted."""

from spectralz import errors, generators
from spectralz.errors import SpectralzError
from spectralz.inference import compare, describe, log_z, marginals, sample
from spectralz.io import read, write
from spectralz.methods import (
    METHODS,
    PAPER_SETTINGS,
    Auto,
    BeliefPropagation,
    Exact,
    LowRank,
    MeanField,
    Method,
    MiniBucket,
    Quadrature,
    Spectral,
    TreeReweighted,
    WeightedMiniBucket,
)
from spectralz.model import Ising
from spectralz.result import Comparison, Estimate, Kind, Marginals, Status
from spectralz.sdp import DiagonalSDP, diagonal_sdp

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "PAPER_SETTINGS",
    "Auto",
    "BeliefPropagation",
    "Comparison",
    "DiagonalSDP",
    "Estimate",
    "Exact",
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
    "Status",
    "TreeReweighted",
    "WeightedMiniBucket",
    "__version__",
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
