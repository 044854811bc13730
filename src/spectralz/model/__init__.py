"""The model: a pairwise binary distribution, and the storage of its coupling."""

from spectralz.model.coupling import (
    Bipartite,
    Coupling,
    Dense,
    Entries,
    Factored,
    Factors,
    FloatArray,
    IntArray,
    Matrix,
    Sparse,
    coupling_of,
)
from spectralz.model.ising import Ising
from spectralz.model.rbm import RBM

__all__ = [
    "RBM",
    "Bipartite",
    "Coupling",
    "Dense",
    "Entries",
    "Factored",
    "Factors",
    "FloatArray",
    "IntArray",
    "Ising",
    "Matrix",
    "Sparse",
    "coupling_of",
]
