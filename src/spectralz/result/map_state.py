"""The heaviest state of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectralz.result.kinds import Record

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from spectralz.result.kinds import Status


@dataclass(frozen=True, kw_only=True, eq=False)
class MapState(Record):
    """Hold the heaviest state found: the mode of P(x), the ground state in physics, the optimum of a QUBO.

    Attributes
    ----------
    state
        The state, -1 and +1; for an RBM, the values of its units.
    log_weight
        Its log-weight; the energy is minus this number.
    upper
        Proven upper bound on the log-weight of any state.
    proven
        Whether it is proven that no state is heavier, up to rounding.
    method
        Which method found it.
    status
        How it was found.
    seconds
        Wall-clock time.
    names
        One name per spin, or None.

    Examples
    --------
    >>> import spectralz as sz
    >>> heaviest = sz.map_state(sz.generators.grid(side=10, strength=1.0, seed=0))
    >>> heaviest
    MapState(log-weight 171.510557, proven, by exact in ... s)
    """

    state: NDArray[np.int8]
    log_weight: float
    upper: float
    proven: bool
    method: str
    status: Status
    seconds: float
    names: tuple[Hashable, ...] | None = None

    @property
    def gap(self) -> float:
        """How much heavier another state could be at most; 0 if it is proven that none is."""
        return 0.0 if self.proven else max(self.upper - self.log_weight, 0.0)

    def __repr__(self) -> str:
        words = "proven" if self.proven else f"at most {self.upper:.9g}"
        return f"MapState(log-weight {self.log_weight:.9g}, {words}, by {self.method} in {self.seconds:.2g} s)"

    def __str__(self) -> str:
        words = "proven: no state is heavier" if self.proven else f"no state is above {self.upper:.12g}, proven"
        ups = int(np.count_nonzero(self.state == 1))
        return (
            f"heaviest state  log-weight {self.log_weight:.12g} ({words})\n"
            f"spins           {ups} of {len(self.state)} are +1\n"
            f"run             {self.method}, {self.seconds:.2f} s; {self.status}"
        )
