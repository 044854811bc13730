"""Convert models from and to the objects of other libraries: one module per library."""

from spectralz.io.interop.dimod import from_dimod, to_dimod
from spectralz.io.interop.networkx import from_networkx, to_networkx
from spectralz.io.interop.pandas import from_pandas
from spectralz.io.interop.polynomial import from_polynomial
from spectralz.io.interop.qubo import from_qubo

__all__ = [
    "from_dimod",
    "from_networkx",
    "from_pandas",
    "from_polynomial",
    "from_qubo",
    "to_dimod",
    "to_networkx",
]
