"""The weights of models on any graph: couplings of one kind, and one field for all spins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.generators.checks import checked_choice, checked_number, checked_scale
from spectralz.model import Ising

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.generators.streams import Stream

COUPLINGS = ("gaussian", "bimodal", "uniform", "ferromagnetic", "antiferromagnetic")


class Weights:
    """Couplings of one kind and a field: checked when this is made, drawn when the edges are known."""

    def __init__(self, strength: Any, couplings: Any, field: Any) -> None:
        self.strength = checked_scale(strength, "strength")
        self.couplings = checked_choice(couplings, "couplings", COUPLINGS)
        self.field = checked_number(field, "field")

    def on(self, n: int, pairs: NDArray[np.int64], stream: Stream) -> Ising:
        """Return the model of n spins with these edges (m x 2)."""
        return Ising.from_edges(n, pairs, self.draw(len(pairs), stream), np.full(n, self.field))

    def draw(self, count: int, stream: Stream) -> NDArray[np.float64]:
        """Return this many couplings."""
        match self.couplings:
            case "gaussian":
                return self.strength * stream.normal(count)
            case "bimodal":
                return self.strength * stream.signs(count)
            case "uniform":
                return stream.uniform(count, self.strength)
            case "ferromagnetic":
                return np.full(count, self.strength)
            case _:
                return np.full(count, -self.strength)
