"""All methods by name, and the settings of the paper's figures; a new method is one line in this table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spectralz.methods.annealing import Annealing
from spectralz.methods.belief_propagation import BeliefPropagation
from spectralz.methods.convex_mean_field import ConvexMeanField
from spectralz.methods.exact import Exact
from spectralz.methods.expectation_propagation import ExpectationPropagation
from spectralz.methods.low_rank import LowRank
from spectralz.methods.matrix_product import MatrixProduct
from spectralz.methods.mean_field import MeanField
from spectralz.methods.mini_bucket import MiniBucket
from spectralz.methods.quadrature import Quadrature
from spectralz.methods.sdp_bound import SDPBound
from spectralz.methods.spectral import Spectral
from spectralz.methods.states import States
from spectralz.methods.tree_reweighted import TreeReweighted
from spectralz.methods.weighted_mini_bucket import WeightedMiniBucket
from spectralz.portfolio.auto import Auto

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spectralz.methods.base import Method

__all__ = ["METHODS", "PAPER_SETTINGS"]

METHODS: Mapping[str, type[Method]] = {
    method.name: method
    for method in (
        Auto,
        Exact,
        Quadrature,
        LowRank,
        MatrixProduct,
        Annealing,
        States,
        Spectral,
        BeliefPropagation,
        ExpectationPropagation,
        MeanField,
        MiniBucket,
        WeightedMiniBucket,
        TreeReweighted,
        SDPBound,
        ConvexMeanField,
    )
}

# The labels of the paper's figures (Sec. 4.1); log_z and compare take them as names.
PAPER_SETTINGS: Mapping[str, Method] = {
    "Ours": Spectral(factor="dp", restarts=0),
    "BP-200": BeliefPropagation(max_iter=200),
    "MF-1000": MeanField(max_iter=1000),
    "MBE-10": MiniBucket(ibound=10),
    "WMBE-10": WeightedMiniBucket(ibound=10),
}
