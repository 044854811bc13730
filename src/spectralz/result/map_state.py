"""The heaviest state of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.result.kinds import Record, entries

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from spectralz.result.kinds import Status


@dataclass(frozen=True, kw_only=True, eq=False)
class MapState(Record):
    """Hold the heaviest state found: the mode of P(x), the ground state in physics, the optimum of a QUBO.

    Attributes
    ----------
    states
        The heaviest states found, the heaviest first, -1 and +1; for an RBM, the values of its units.
    log_weights
        Their log-weights; energies are minus these numbers.
    upper
        Proven upper bound on the log-weight of any state.
    proven
        Whether it is proven that no state is heavier than the first, up to rounding; by ``exact`` so are the others.
    method
        Which method found it.
    status
        How it was found.
    seconds
        Wall-clock time.
    compile_seconds
        Wall-clock time that went into compiling, which ``seconds`` leave out.
    names
        One name per spin, or None.
    interrupted
        Whether the search was interrupted.

    Examples
    --------
    >>> import spectralz as sz
    >>> heaviest = sz.map_state(sz.generators.grid(side=10, strength=1.0, seed=0))
    >>> heaviest
    MapState(log-weight 171.510557, proven, by exact in ... s)
    """

    states: NDArray[np.int8]
    log_weights: NDArray[np.float64]
    upper: float
    proven: bool
    method: str
    status: Status
    seconds: float
    names: tuple[Hashable, ...] | None = None
    interrupted: bool = False
    compile_seconds: float = 0.0

    @property
    def state(self) -> NDArray[np.int8]:
        """The heaviest state."""
        return np.asarray(self.states[0])

    @property
    def log_weight(self) -> float:
        """Its log-weight."""
        return float(self.log_weights[0])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``; the heaviest state by itself, too."""
        return {**entries(self, "state log_weight"), **super().to_dict()}

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
