"""Random and standard models, each from a seed: the same seed gives the same model, bit for bit, on every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spectralz.generators.frustrated_loops import Planted, planted, planted_state
from spectralz.generators.graphs import bipartite, complete, erdos_renyi, random_regular, rbm, sk
from spectralz.generators.help import parameter_help
from spectralz.generators.lattices import (
    chain,
    chimera,
    cubic,
    dimers,
    grid,
    kings,
    spin_glass_3d,
    square,
    torus,
    triangular,
)
from spectralz.generators.low_rank import curie_weiss, hopfield, rank_one

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from spectralz.model import Ising

__all__ = [
    "GENERATORS",
    "Planted",
    "bipartite",
    "chain",
    "chimera",
    "complete",
    "cubic",
    "curie_weiss",
    "dimers",
    "erdos_renyi",
    "grid",
    "hopfield",
    "kings",
    "parameter_help",
    "planted",
    "planted_state",
    "random_regular",
    "rank_one",
    "rbm",
    "sk",
    "spin_glass_3d",
    "square",
    "torus",
    "triangular",
]

GENERATORS: Mapping[str, Callable[..., Ising]] = {
    generator.__name__.replace("_", "-"): generator
    for generator in (
        complete,
        erdos_renyi,
        bipartite,
        grid,
        rank_one,
        curie_weiss,
        rbm,
        spin_glass_3d,
        sk,
        hopfield,
        random_regular,
        square,
        triangular,
        kings,
        cubic,
        chimera,
        planted,
        torus,
        chain,
        dimers,
    )
}
