"""The model: a pairwise binary distribution, and the storage of its coupling."""

from spectralz.model.coupling.base import Coupling, Factors, FloatArray, IntArray, Matrix
from spectralz.model.coupling.bipartite import Bipartite
from spectralz.model.coupling.entries import Entries
from spectralz.model.ising import Ising
from spectralz.model.rbm import RBM

__all__ = ["RBM", "Bipartite", "Coupling", "Entries", "Factors", "FloatArray", "IntArray", "Ising", "Matrix"]
