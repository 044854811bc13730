"""The model: a pairwise binary distribution, and the storage of its coupling."""

from spectralz.model.coupling.base import Coupling, Factors, FloatArray, IntArray, Matrix, SpinArray
from spectralz.model.coupling.entries import Entries
from spectralz.model.ising import Ising
from spectralz.model.rbm import RBM

__all__ = ["RBM", "Coupling", "Entries", "Factors", "FloatArray", "IntArray", "Ising", "Matrix", "SpinArray"]
