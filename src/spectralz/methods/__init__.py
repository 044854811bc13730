"""The methods, one file each. This page is their table of contents; a new one is a line of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spectralz.methods.auto import Auto
from spectralz.methods.base import Method
from spectralz.methods.exact import Exact
from spectralz.methods.low_rank import LowRank
from spectralz.methods.quadrature import Quadrature
from spectralz.methods.spectral import Spectral

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["METHODS", "Auto", "Exact", "LowRank", "Method", "Quadrature", "Spectral"]

METHODS: Mapping[str, type[Method]] = {method.name: method for method in (Auto, Exact, Quadrature, LowRank, Spectral)}
