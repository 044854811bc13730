"""The methods, one file each; ``registry.py`` has the table of all of them, ``auto`` included."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from spectralz.methods.annealing import Annealing
from spectralz.methods.base import Method
from spectralz.methods.belief_propagation import BeliefPropagation
from spectralz.methods.convex_mean_field import ConvexMeanField
from spectralz.methods.exact import Exact
from spectralz.methods.expectation_propagation import ExpectationPropagation
from spectralz.methods.low_rank import LowRank
from spectralz.methods.mean_field import MeanField
from spectralz.methods.mini_bucket import MiniBucket
from spectralz.methods.quadrature import Quadrature
from spectralz.methods.sdp_bound import SDPBound
from spectralz.methods.spectral import Spectral
from spectralz.methods.states import States
from spectralz.methods.tree_reweighted import TreeReweighted
from spectralz.methods.weighted_mini_bucket import WeightedMiniBucket

__all__ = [
    "METHODS",
    "PAPER_SETTINGS",
    "Annealing",
    "Auto",
    "BeliefPropagation",
    "ConvexMeanField",
    "Exact",
    "ExpectationPropagation",
    "LowRank",
    "MeanField",
    "Method",
    "MiniBucket",
    "Quadrature",
    "SDPBound",
    "Spectral",
    "States",
    "TreeReweighted",
    "WeightedMiniBucket",
]

# What stands above the methods and was found here once; imported when asked for, so that imports go one way.
_ABOVE = {"Auto": "portfolio.auto", "METHODS": "registry", "PAPER_SETTINGS": "registry"}


def __getattr__(name: str) -> Any:
    if name in _ABOVE:
        return getattr(import_module(f"spectralz.{_ABOVE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
