"""Random numbers that are the same on every machine.

Nothing here depends on the versions of numpy or of the C library: the raw words of PCG64, which numpy guarantees, are
turned into numbers by operations that IEEE arithmetic always rounds in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.generators.checks import checked_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

WORDS_AT_A_TIME = 1024


class Stream:
    """The random numbers of a seed, one after the other."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(checked_whole(seed, "seed"))

    def unit(self, count: int) -> NDArray[np.float64]:
        """Return numbers from [0, 1), multiples of 2^-53."""
        words = np.atleast_1d(self._bits.random_raw(count)).astype(np.uint64)
        return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def units(self) -> Iterator[float]:
        """Yield numbers from [0, 1) endlessly, for choices that depend on each other."""
        while True:
            yield from self.unit(WORDS_AT_A_TIME).tolist()

    def uniform(self, count: int, largest: float) -> NDArray[np.float64]:
        """Return numbers from [-largest, largest)."""
        return largest * (2.0 * self.unit(count) - 1.0)

    def signs(self, count: int) -> NDArray[np.float64]:
        """Return +1 and -1, each with probability 1/2."""
        return np.where(self.unit(count) < 0.5, 1.0, -1.0)

    def shuffled(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values in a random order."""
        return values[np.argsort(self.unit(len(values)), kind="stable")]

    def normal(self, count: int) -> NDArray[np.float64]:
        """Return standard normal numbers, as ratios of uniforms (Kinderman and Monahan 1977).

        The number itself is only a quotient; the logarithm, which libraries round differently, only decides
        whether the number is accepted.
        """
        blocks: list[NDArray[np.float64]] = []
        have = 0
        while have < count:
            pair = self.unit(2 * (count - have)).reshape(-1, 2)
            u = 1.0 - pair[:, 0]
            x = (2.0 * pair[:, 1] - 1.0) * 0.8577638849607068 / u  # sqrt(2 / e)
            accepted = x[x * x <= -4.0 * np.log(u)]
            blocks.append(accepted)
            have += len(accepted)
        return np.concatenate(blocks) if blocks else np.empty(0)
