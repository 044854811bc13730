"""Random and standard models, each from a seed: the same seed gives the same model, bit for bit, on every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spectralz.generators.graphs import bipartite, complete, erdos_renyi, rbm
from spectralz.generators.help import parameter_help
from spectralz.generators.lattices import grid, spin_glass_3d
from spectralz.generators.low_rank import curie_weiss, rank_one

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from spectralz.model import Ising

__all__ = [
    "GENERATORS",
    "bipartite",
    "complete",
    "curie_weiss",
    "erdos_renyi",
    "grid",
    "parameter_help",
    "rank_one",
    "rbm",
    "spin_glass_3d",
]

GENERATORS: Mapping[str, Callable[..., Ising]] = {
    generator.__name__.replace("_", "-"): generator
    for generator in (complete, erdos_renyi, bipartite, grid, rank_one, curie_weiss, rbm, spin_glass_3d)
}
