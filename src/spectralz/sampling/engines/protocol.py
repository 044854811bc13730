"""What annealing needs of the chains that it runs: many states, swept together along a path of models.

A path leads from a base whose Z is known, at beta = 0, to the model, at beta = 1. How states are kept and swept depends
on the couplings: ``sparse.py`` and ``dense.py``; ``double.py`` for both in double precision; ``terms.py`` for terms of
three and more spins; ``collapsed.py`` for bipartite models with a side summed out; ``device.py`` for dense and
bipartite models on a GPU, ``device_sparse.py`` for sparse ones; ``between.py`` for the way from one model to another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from spectralz.model import FloatArray

# Calls a function on each number of a sequence, in threads or not.
Parallel = Callable[[Callable[[int], None], Sequence[int]], None]


def one_after_the_other(work: Callable[[int], None], numbers: Sequence[int]) -> None:
    """Call a function on each number, in this thread."""
    for number in numbers:
        work(number)


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
            For each of K points, the previous point, the point itself, and the next point.
        sweeps
            Sweeps at each point.

        Returns
        -------
        back, on
            Arrays of K x size: the change of log-weights from each point to the previous one and to the next one, for
            the states after the sweeps.
        """

    def take(self, places: NDArray[np.int64]) -> None:
        """Replace the r-th state by the one at ``places[r]``; random numbers stay where they are."""

    def states(self) -> NDArray[np.int8]:
        """Return the states, one per row."""


class Engine(Protocol):
    """Makes chains for one path. It is a value: nothing in it changes after it was made."""

    @property
    def n(self) -> int:
        """Number of spins."""

    @property
    def log_z_of_base(self) -> float:
        """The log Z of the base, without the offset and the trace of the model."""

    @property
    def operations(self) -> float:
        """Cost of a sweep over one state, in operations of about 1e-9 seconds."""

    @property
    def bytes_per_state(self) -> int:
        """Memory of a state."""

    @property
    def multiplies(self) -> bool:
        """Whether a sweep multiplies matrices; linear algebra must then have no threads of its own."""

    @property
    def takes_threads(self) -> bool:
        """Whether our threads make it faster."""

    @property
    def together(self) -> int:
        """Number of states that take about as long as one."""

    @property
    def points_together(self) -> int:
        """Number of points that are passed together, because starting takes as long as several of them."""

    @property
    def slow_share(self) -> float:
        """The share of the path, at its end, on which a sweep takes longer than at its beginning."""

    def start(self, size: int, rng: np.random.Generator, parallel: Parallel = one_after_the_other) -> Chains:
        """Return states drawn from the base, exactly and independently; ``parallel`` spreads work over threads."""

    def start_from(
        self, x: NDArray[np.int8], rng: np.random.Generator, parallel: Parallel = one_after_the_other
    ) -> Chains:
        """Return chains that begin in given states, one per row."""
