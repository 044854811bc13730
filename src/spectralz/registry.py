"""All methods by name, and the settings of the paper's figures; a new method is one line in this table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spectralz import methods
from spectralz.portfolio.auto import Auto

if TYPE_CHECKING:
    from collections.abc import Mapping


__all__ = ["METHODS", "PAPER_SETTINGS", "REMOVED_METHODS"]

METHODS: Mapping[str, type[methods.Method]] = {
    method.name: method
    for method in (
        Auto,
        methods.Exact,
        methods.Quadrature,
        methods.LowRank,
        methods.Planar,
        methods.MatrixProduct,
        methods.Annealing,
        methods.States,
        methods.Spectral,
        methods.BeliefPropagation,
        methods.ExpectationPropagation,
        methods.MeanField,
        methods.MiniBucket,
        methods.WeightedMiniBucket,
        methods.TreeReweighted,
        methods.SDPBound,
        methods.ConvexMeanField,
    )
}
"""The classes of all methods by their short names: ``METHODS["bp"](max_iter=50)`` is a method."""

PAPER_SETTINGS: Mapping[str, methods.Method] = {
    "Ours": methods.Spectral(factor="dp", restarts=0),
    "BP-200": methods.BeliefPropagation(max_iter=200),
    "MF-1000": methods.MeanField(max_iter=1000),
    "MBE-10": methods.MiniBucket(ibound=10),
    "WMBE-10": methods.WeightedMiniBucket(ibound=10),
}
"""Methods by the labels of the paper's figures (Sec. 4.1); log_z and compare take them as names."""

REMOVED_METHODS: Mapping[str, str] = {"tempering": "tempering was removed in 0.3: use annealing"}
"""What replaces methods of earlier versions, by their names."""
