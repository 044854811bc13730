"""The methods, one file each; ``registry.py`` has the table of all of them, ``auto`` included."""

from __future__ import annotations

from typing import Any

from spectralz.methods.annealing import Annealing
from spectralz.methods.base import Method
from spectralz.methods.belief_propagation import BeliefPropagation
from spectralz.methods.convex_mean_field import ConvexMeanField
from spectralz.methods.exact import Exact
from spectralz.methods.expectation_propagation import ExpectationPropagation
from spectralz.methods.low_rank import LowRank
from spectralz.methods.matrix_product import MatrixProduct
from spectralz.methods.mean_field import MeanField
from spectralz.methods.mini_bucket import MiniBucket
from spectralz.methods.planar import Planar
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
    "MatrixProduct",
    "MeanField",
    "Method",
    "MiniBucket",
    "Planar",
    "Quadrature",
    "SDPBound",
    "Spectral",
    "States",
    "TreeReweighted",
    "WeightedMiniBucket",
]


def __getattr__(name: str) -> Any:
    """Import names that moved out of this module on first use; importing them at the top would be circular."""
    if name == "Auto":
        from spectralz.portfolio.auto import Auto

        return Auto
    if name in ("METHODS", "PAPER_SETTINGS"):
        from spectralz import registry

        return getattr(registry, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
