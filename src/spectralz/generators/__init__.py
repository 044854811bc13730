"""Random and standard models, each from a seed: the same seed gives the same model, bit for bit, on every machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spectralz.generators.checks import parameter_help
from spectralz.generators.frustrated_loops import Planted, planted, planted_state
from spectralz.generators.graphs import (
    bipartite,
    complete,
    curie_weiss,
    erdos_renyi,
    hopfield,
    random_regular,
    rank_one,
    rbm,
    sk,
)
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
from spectralz.generators.polynomials import hypertree, p_spin, parity, plaquettes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from spectralz.model import Ising, Polynomial

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
    "hypertree",
    "kings",
    "p_spin",
    "parameter_help",
    "parity",
    "planted",
    "planted_state",
    "plaquettes",
    "random_regular",
    "rank_one",
    "rbm",
    "sk",
    "spin_glass_3d",
    "square",
    "torus",
    "triangular",
]

GENERATORS: Mapping[str, Callable[..., Ising | Polynomial]] = {
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
        p_spin,
        hypertree,
        plaquettes,
        parity,
    )
}
