"""Quantities of a model at many temperatures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.extras import from_extra
from spectralz.errors import OptionError, SolverError, shown
from spectralz.result.equality import Compared
from spectralz.result.kinds import entries

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from spectralz.result.kinds import Kind, Status

QUANTITIES = ("log_z", "energy", "entropy", "heat_capacity", "magnetization", "abs_magnetization", "overlap")
# What physicists plot to find transitions; the names of the columns of the first and third in tables.
MOMENTS = ("magnetization_moments", "binder", "overlap_moments", "overlap_binder")
COLUMNS = {
    "magnetization_moments": ("m1", "abs_m", "m2", "m4"),
    "overlap_moments": ("q2", "q4"),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Thermodynamics(Compared):
    """Hold the curves of a model over its temperature: K numbers and K standard errors of each quantity.

    At the inverse temperature beta, P(x) is proportional to exp(beta w(x)), where w is the log-weight of the model. The
    energy of a state is -w(x), as in physics.

    Attributes
    ----------
    beta
        The inverse temperatures, in the order in which they were asked for.
    log_z, log_z_error
        log of the sum over all states of exp(beta w(x)).
    energy, energy_error
        The mean of -w(x); the derivative of -log Z.
    entropy, entropy_error
        log Z + beta * energy, in nats.
    heat_capacity, heat_capacity_error
        beta^2 times the variance of the energy.
    magnetization, magnetization_error
        The mean of the spins' mean, between -1 and 1.
    abs_magnetization, abs_magnetization_error
        The mean of its absolute value, which is not zero without a field; None from eliminations and contractions, as
        are the moments below.
    overlap, overlap_error
        The mean overlap of two independent states per spin: sum_i E[x_i]^2 / n. None for sampled models with very many
        spins.
    magnetization_moments, magnetization_moments_error
        The means of m, abs(m), m^2 and m^4, where m is the mean of the spins of a state, -1 or 1 each: (K, 4).
    binder, binder_error
        Binder's cumulant, 1 - <m^4> / (3 <m^2>^2): 0 if m is normal, 2/3 if it has one size.
    overlap_moments, overlap_moments_error
        The means of q^2 and q^4, where q is the overlap per spin of two independent states: (K, 2).
    overlap_binder, overlap_binder_error
        1 - <q^4> / (3 <q^2>^2).
    kind
        Whether these numbers are exact, up to rounding, or an estimate.
    trusted
        Whether the errors can be trusted at each temperature, K times True or False.
    status
        How they were found.
    method
        The name of the method: ``exact``, ``quadrature``, ``mps`` or ``annealing``; several are joined
        by "and".
    seconds
        Wall-clock time.
    compile_seconds
        Wall-clock time that went into compiling, which ``seconds`` leave out.
    n
        The number of spins.
    interrupted
        Whether an interrupt (Ctrl-C) ended it; temperatures without an answer by then are left out.
    between
        What computes the curves at other temperatures, for :meth:`at`.

    Examples
    --------
    >>> import numpy as np, spectralz as sz
    >>> curves = sz.thermodynamics(sz.generators.grid(side=4, strength=1.0, seed=0), [0.5, 1.0, 2.0])
    >>> print(curves)
    16 spins at 3 temperatures (exact), by exact in ... s
      beta      log Z      energy   entropy  heat capacity  magnetization  size of the magnetization
       0.5  ...
    >>> bool(np.all(np.diff(curves.entropy) < 0))
    True
    """

    beta: NDArray[np.float64]
    log_z: NDArray[np.float64]
    log_z_error: NDArray[np.float64]
    energy: NDArray[np.float64]
    energy_error: NDArray[np.float64]
    entropy: NDArray[np.float64]
    entropy_error: NDArray[np.float64]
    heat_capacity: NDArray[np.float64]
    heat_capacity_error: NDArray[np.float64]
    magnetization: NDArray[np.float64]
    magnetization_error: NDArray[np.float64]
    abs_magnetization: NDArray[np.float64] | None = None
    abs_magnetization_error: NDArray[np.float64] | None = None
    overlap: NDArray[np.float64] | None = None
    overlap_error: NDArray[np.float64] | None = None
    magnetization_moments: NDArray[np.float64] | None = None
    magnetization_moments_error: NDArray[np.float64] | None = None
    binder: NDArray[np.float64] | None = None
    binder_error: NDArray[np.float64] | None = None
    overlap_moments: NDArray[np.float64] | None = None
    overlap_moments_error: NDArray[np.float64] | None = None
    overlap_binder: NDArray[np.float64] | None = None
    overlap_binder_error: NDArray[np.float64] | None = None
    kind: Kind
    trusted: NDArray[np.bool_]
    status: Status
    method: str
    seconds: float
    n: int
    interrupted: bool = False
    compile_seconds: float = 0.0
    between: Callable[[NDArray[np.float64]], Thermodynamics] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in (*self.names, *self.moments):
            for key in (name, f"{name}_error"):
                if not np.all(np.isfinite(getattr(self, key))):
                    raise SolverError(f"{self.method} gave a {key} that is not finite; please report this model")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the quantities present."""
        return tuple(name for name in QUANTITIES if getattr(self, name) is not None)

    @property
    def moments(self) -> tuple[str, ...]:
        """The names of the moments present."""
        return tuple(name for name in MOMENTS if getattr(self, name) is not None)

    def at(self, beta: ArrayLike) -> Thermodynamics:
        """Return the curves at other inverse temperatures, between the lowest and the highest of these.

        Curves by annealing are read off the states that were kept at all temperatures. Where temperatures are so far
        apart that these states say little, the numbers are not trusted. Other curves are computed again, by the same
        method with the same budget.

        Parameters
        ----------
        beta
            One inverse temperature or several.

        Raises
        ------
        OptionError
            If one is not between those of the curves.

        Examples
        --------
        >>> import spectralz as sz
        >>> curves = sz.thermodynamics(sz.generators.grid(side=4, strength=1.0, seed=0), [0.5, 1.0, 2.0])
        >>> print(curves.at(0.7))
        16 spins at 1 temperature (exact), by exact in ... s
          beta      log Z      energy   entropy  heat capacity  magnetization  size of the magnetization
           0.7  18.485783  ...
        """
        try:
            betas = np.array(beta, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            raise OptionError(f"beta is {shown(beta)}; give one inverse temperature or several") from None
        if not len(betas):
            raise OptionError("beta is empty; give one inverse temperature or several")
        low, high = self.beta.min(), self.beta.max()
        outside = ~((betas >= low) & (betas <= high))
        if outside.any():
            raise OptionError(
                f"beta is {betas[outside][0]:g}; these curves go from {low:g} to {high:g}: "
                "ask thermodynamics for temperatures beyond them"
            )
        if self.between is None:
            raise OptionError("nothing is kept of what is between these temperatures; ask thermodynamics for them")
        return self.between(betas)

    def to_pandas(self) -> Any:
        """Return a DataFrame with a row for each temperature and a column for each number and each error.

        The moments of the magnetization have the columns ``m1``, ``abs_m``, ``m2`` and ``m4``, those of the overlap
        ``q2`` and ``q4``.
        """
        pandas = from_extra("pandas", "pandas", "a table of curves")
        columns: dict[str, NDArray[Any]] = {"beta": self.beta}
        for name in (*self.names, *self.moments):
            for suffix in ("", "_error"):
                value = getattr(self, name + suffix)
                parts = COLUMNS.get(name, (name,))
                columns |= {part + suffix: value.reshape(len(value), -1)[:, k] for k, part in enumerate(parts)}
        return pandas.DataFrame(columns | {"trusted": self.trusted})

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        curves = " ".join(f"{name} {name}_error" for name in (*self.names, *self.moments))
        return entries(self, f"n method kind status seconds compile_seconds interrupted beta trusted {curves}")

    def __repr__(self) -> str:
        first, last = (f"{beta:g}" for beta in (self.beta.min(), self.beta.max()))
        return f"Thermodynamics(n={self.n}, {len(self.beta)} temperatures, beta {first} to {last}, {self.kind})"

    def __str__(self) -> str:
        from spectralz.show import thermodynamics

        return thermodynamics.as_text(self)

    def plot(self, axes: Any = None) -> NDArray[Any]:
        """Draw free energy, energy, entropy and heat capacity per spin over the temperature; return the four Axes."""
        from spectralz.show import thermodynamics

        return thermodynamics.plot(self, axes)

    def plot_of(self, name: str, ax: Axes | None = None) -> Axes:
        """Draw one quantity over beta, with its errors; return the Axes."""
        from spectralz.show import thermodynamics

        return thermodynamics.plot_of(self, name, ax)
