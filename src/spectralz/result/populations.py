"""What the populations of an answer said, so that a later call can add to them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.result.kinds import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Populations(Record):
    """Hold what populations said of log Z, and how to send more of them: some kilobytes, without any states.

    ``log_z(model, more=answer)`` reads it, and so does a checkpoint.

    Attributes
    ----------
    probe
        Log-weights of a few fixed states, by which the model is known again.
    method
        The method that sent them.
    bases, points, sweeps, fields, own
        For each base its name, the points of its path, the sweeps at each, the fields of the independent spins that it
        begins from (None if the name says it), and the cell that it stays at one image of, or -1.
    centers, cell
        The centers of the cells, and the cell of each.
    coefficients, times
        How much each base counts in each cell, and its share of the time.
    base, size
        For each population its base, and its number of states.
    log_z
        For each population, logs of its groups' estimates of the weight of each cell; -inf where no state is.
    families, heaviest, covariances, log_scales
        What their families say of each cell, as in the evidence that trust reads.
    sources, light, search
        What the search for phases found, left out, and did not do.
    searched
        Whether that search was complete.
    calls, seconds, operations
        How many calls have sent populations, and the time and the counted operations of all.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.complete(n=12, strength=0.3, seed=0)
    >>> first = sz.log_z(model, "annealing", population=16)
    >>> second = sz.log_z(model, "annealing", population=16, more=first)
    >>> second.populations.calls, second.populations.size
    (2, (512, 512))
    >>> second.std_error < first.std_error
    True
    """

    probe: NDArray[np.float64]
    bases: tuple[str, ...]
    points: tuple[NDArray[np.float64], ...]
    sweeps: tuple[int, ...]
    fields: tuple[NDArray[np.float64] | None, ...]
    own: tuple[int, ...]
    centers: NDArray[np.float64]
    cell: NDArray[np.int64]
    coefficients: NDArray[np.float64]
    times: NDArray[np.float64]
    base: tuple[int, ...]
    size: tuple[int, ...]
    log_z: tuple[NDArray[np.float64], ...]
    families: NDArray[np.float64]
    heaviest: NDArray[np.float64]
    covariances: tuple[NDArray[np.float64], ...]
    log_scales: tuple[float, ...]
    sources: tuple[int, ...]
    light: tuple[float, ...]
    search: str
    searched: bool
    calls: int = 1
    method: str = ""
    seconds: float = 0.0
    operations: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``; None stands for -inf."""
        finite = [[[x if x > -np.inf else None for x in row] for row in groups.tolist()] for groups in self.log_z]
        return {**super().to_dict(), "log_z": finite}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Populations:
        """Return what :meth:`to_dict` has made plain."""
        found = {field.name: values[field.name] for field in fields(cls)}
        for name in ("probe", "centers", "coefficients", "times", "families", "heaviest"):
            found[name] = np.array(found[name], dtype=np.float64)
        found["cell"] = np.array(found["cell"], dtype=np.int64)
        for name in ("points", "covariances"):
            found[name] = tuple(np.array(part, dtype=np.float64) for part in found[name])
        found["fields"] = tuple(None if part is None else np.array(part, dtype=np.float64) for part in found["fields"])
        found["log_z"] = tuple(
            np.array([[-np.inf if x is None else x for x in row] for row in part]) for part in found["log_z"]
        )
        for name in ("bases", "sweeps", "own", "base", "size", "log_scales", "sources", "light"):
            found[name] = tuple(found[name])
        return cls(**found)
