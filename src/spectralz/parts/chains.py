"""What annealing asks of the chains it runs: many states, swept together along a path of models.

A path leads from a base whose Z is known, at beta = 0, to the model, at beta = 1. How states are kept and swept is a
matter of the couplings: ``lanes.py`` for sparse and dense ones, ``rows.py`` in double precision, ``collapsed.py`` for
bipartite ones with a side summed out, ``device_chains.py`` for both of these on a GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from spectralz.model import FloatArray

__all__ = ["Chains", "Engine"]


class Chains(Protocol):
    """States of a population that are swept together, each with random numbers of its own."""

    size: int

    def sweep(
        self, before: FloatArray, at: FloatArray, after: FloatArray, sweeps: int
    ) -> tuple[FloatArray, FloatArray]:
        """Sweep at one point of the path after the other.

        Parameters
        ----------
        before, at, after
            For each of K points, where the path came from, where to sweep, and where it leads.
        sweeps
            Sweeps at each point.

        Returns
        -------
        back, on
            Arrays of K x size: by how much log-weights change from each point back to the one before, and on to the
            one after, for the states as they are after the sweeps.
        """

    def take(self, places: NDArray[np.int64]) -> None:
        """Let the state at ``places[r]`` become the r-th; random numbers stay where they are."""

    def states(self) -> NDArray[np.int8]:
        """Return the states, one a row."""


class Engine(Protocol):
    """Makes the chains of one model."""

    n: int
    # log Z of the base, offset and trace of the model not included.
    log_z_of_base: float
    # What a sweep over one state counts, in operations of some 1e-9 seconds each, and the memory of one state in bytes.
    operations: float
    bytes_per_state: int
    # Whether a sweep multiplies matrices, for which linear algebra must not have threads beside ours.
    multiplies: bool
    # Whether it is made faster by threads of ours, and how many states take about as long as one.
    takes_threads: bool
    together: int
    # The share of the path, at its end, on which a sweep takes longer than at its beginning.
    slow_share: float

    def start(self, size: int, rng: np.random.Generator) -> Chains:
        """Return states drawn from the base, exactly and independently."""

    def start_from(self, x: NDArray[np.int8], rng: np.random.Generator) -> Chains:
        """Return chains that begin in given states, one a row."""
