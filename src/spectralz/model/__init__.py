"""Models: pairwise binary ones and the storage of their couplings, machines of two layers, polynomials of spins."""

from typing import TypeAlias

from spectralz.model.coupling.base import Coupling, Factors, FloatArray, IntArray, Matrix, SpinArray
from spectralz.model.coupling.entries import Entries
from spectralz.model.from_tables import from_tables
from spectralz.model.ising import Ising
from spectralz.model.polynomial import Polynomial
from spectralz.model.rbm import RBM

# What methods see: an RBM is an Ising by then, and so is a polynomial without terms of more than two spins.
Model: TypeAlias = Ising | Polynomial

__all__ = [
    "RBM",
    "Coupling",
    "Entries",
    "Factors",
    "FloatArray",
    "IntArray",
    "Ising",
    "Matrix",
    "Model",
    "Polynomial",
    "SpinArray",
    "from_tables",
]
