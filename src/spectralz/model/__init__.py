"""The model: a pairwise binary distribution, and how its coupling is kept."""

from spectralz.model.ising import MOST_DENSE_SPINS, Coupling, Factors, FloatArray, IntArray, Ising

__all__ = ["MOST_DENSE_SPINS", "Coupling", "Factors", "FloatArray", "IntArray", "Ising"]
