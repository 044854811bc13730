"""Estimates from data drawn again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import OptionError
from spectralz.result.kinds import Record

if TYPE_CHECKING:
    from collections.abc import Hashable

    from matplotlib.axes import Axes
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Bootstrap(Record):
    """Hold the estimates of fits to rows drawn again, with replacement, from the rows of the data.

    Attributes
    ----------
    parameters
        ``(name,)`` for a field, ``(name, name)`` for a coupling, in the order of ``fit.to_pandas()``.
    estimate
        The estimates from the data themselves.
    estimates
        One row per repetition, one column per parameter.
    unbounded
        In how many repetitions a parameter would have been infinite; it then has the largest value of the search.
    interrupted
        Whether an interrupt ended it, so that there are fewer repetitions than asked for.
    """

    parameters: tuple[tuple[Hashable, ...], ...]
    estimate: NDArray[np.float64]
    estimates: NDArray[np.float64]
    unbounded: int = 0
    interrupted: bool = False

    @property
    def std_error(self) -> NDArray[np.float64]:
        """The standard deviation of each parameter over the repetitions."""
        return np.asarray(self.estimates.std(axis=0, ddof=1))

    def intervals(self, level: float = 0.95) -> NDArray[np.float64]:
        """Return the range that holds a share ``level`` of the repetitions of each parameter: low and high.

        Examples
        --------
        >>> import spectralz as sz
        >>> fit = sz.fit(sz.sample(sz.generators.chain(n=3, strength=0.5), 500, seed=0))
        >>> found = fit.bootstrap(count=50)
        >>> low, high = found.intervals()[3]  # the first coupling
        >>> bool(low < 0.5 < high)
        True
        """
        if not 0.0 < level < 1.0:
            raise OptionError(f"level is {level}; it must be a probability between 0 and 1, such as 0.95")
        tail = (1.0 - level) / 2.0
        return np.quantile(self.estimates, [tail, 1.0 - tail], axis=0).T

    def to_pandas(self, level: float = 0.95) -> Any:
        """Return a DataFrame with one row per parameter: names, estimate, standard error and interval."""
        from spectralz.show import tables

        return tables.bootstrap_frame(self, level)

    def plot(self, ax: Axes | None = None, level: float = 0.95) -> Axes:
        """Draw the couplings in the order of their size, with their intervals; return the Axes."""
        from spectralz.show import fits

        return fits.draw_bootstrap(self, ax, level)

    def __repr__(self) -> str:
        return f"Bootstrap({len(self.estimates)} repetitions, {len(self.parameters)} parameters)"
