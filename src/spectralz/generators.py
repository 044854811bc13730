"""Random and standard models, each from a seed: the same seed gives the same model, bit for bit, on every machine.

To that end nothing here depends on the versions of numpy or of the C library: the raw words of PCG64, which numpy
guarantees, are turned into numbers with operations that IEEE arithmetic rounds in only one way.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz.errors import OptionError
from spectralz.model import Ising

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

__all__ = [
    "GENERATORS",
    "bipartite",
    "complete",
    "curie_weiss",
    "erdos_renyi",
    "grid",
    "rank_one",
    "rbm",
    "spin_glass_3d",
]


def complete(n: int, strength: float, seed: int, field_strength: float = 1.0) -> Ising:
    """Complete graph: theta ~ U[-1, 1], A_ij ~ U[-strength, strength] (paper, Sec. 4.1).

    Parameters
    ----------
    n
        Number of spins.
    strength
        Largest |A_ij|; an edge counted once weighs up to twice that.
    seed
        Any whole number from 0 on.
    field_strength
        Largest |theta_i|.

    Examples
    --------
    >>> complete(n=20, strength=1.0, seed=0)
    Ising(n=20, edges=190, density=1, |A| mean 0.52 max 0.994, |field| max 0.995, dense)
    """
    n = _count(n, "n")
    stream = _Stream(seed)
    field = stream.uniform(n, _scale(field_strength, "field_strength"))
    i, j = np.triu_indices(n, k=1)
    A = np.zeros((n, n))
    A[i, j] = A[j, i] = stream.uniform(len(i), _scale(strength, "strength"))
    return Ising(field, A)


def erdos_renyi(n: int, p: float, strength: float, seed: int, field_strength: float = 1.0) -> Ising:
    """Erdos-Renyi graph, each pair an edge with probability ``p``; weights as in :func:`complete` (paper, Sec. 4.4)."""
    n, p = _count(n, "n"), _scale(p, "p")
    if p > 1.0:
        raise OptionError(f"p is {p}; a probability is at most 1")
    stream = _Stream(seed)
    field = stream.uniform(n, _scale(field_strength, "field_strength"))
    i, j = np.triu_indices(n, k=1)
    present = stream.unit(len(i)) < p
    return _sparse(n, i[present], j[present], stream, strength, field)


def bipartite(n: int, strength: float, seed: int, field_strength: float = 1.0) -> Ising:
    """Complete bipartite graph, n/2 + n/2 spins (n odd: the first part smaller); weights as in :func:`complete`."""
    n = _count(n, "n")
    stream = _Stream(seed)
    field = stream.uniform(n, _scale(field_strength, "field_strength"))
    A = stream.uniform((n // 2) * (n - n // 2), _scale(strength, "strength"))
    return Ising.from_bipartite(2.0 * A.reshape(n // 2, n - n // 2), field)


def grid(side: int, strength: float, seed: int, periodic: bool = False, field_strength: float = 1.0) -> Ising:
    """Square grid, side x side, spin ``row * side + column``; weights as in :func:`complete` (paper, Sec. 4.4).

    With ``periodic`` the last row and column are joined to the first (from side 3 on, where these are new edges).
    """
    side = _count(side, "side")
    stream = _Stream(seed)
    field = stream.uniform(side * side, _scale(field_strength, "field_strength"))
    i, j = _lattice_edges((side, side), periodic)
    return _sparse(side * side, i, j, stream, strength, field)


def rank_one(n: int, strength: float, seed: int, field_strength: float = 1.0) -> Ising:
    """Rank-1 coupling ``lambda v v'`` with a random direction and sign, theta ~ U[-1, 1] (paper, Sec. 4.3).

    ``strength`` is the sum of |A_ij| over i != j divided by n (n + 1), as the paper prints it.
    """
    n = _count(n, "n")
    if n < 2:
        raise OptionError(f"n is {n}; a rank-1 model's strength is that of its pairs, so it needs 2 spins or more")
    stream = _Stream(seed)
    field = stream.uniform(n, _scale(field_strength, "field_strength"))
    sign = 1.0 if stream.unit(1)[0] < 0.5 else -1.0
    v = stream.normal(n)
    # fsum is rounded once, so that no machine's order of summation shows.
    v /= math.sqrt(math.fsum(v * v))
    pairs = math.fsum(np.abs(np.outer(v, v))[~np.eye(n, dtype=bool)])
    lam = sign * (_scale(strength, "strength") * (n * (n + 1)) / pairs)
    return Ising(field, lam * np.outer(v, v))


def curie_weiss(n: int, strength: float = 1.0, field: float = 0.0) -> Ising:
    """Curie-Weiss model: every pair has A_ij = strength / (2 n), so that 1 is the critical strength; zero diagonal.

    Examples
    --------
    >>> curie_weiss(n=1000, strength=1.0, field=0.5)
    Ising(n=1000, rank 1 plus diagonal, |A| at most 0.0005, |field| max 0.5)
    """
    n = _count(n, "n")
    weight = _number(strength, "strength") / (2.0 * n) if n else 0.0
    return Ising.from_factors(np.full(n, _number(field, "field")), [weight], np.ones((1, n)), -weight)


def rbm(visible: int, hidden: int, scale: float, seed: int) -> Ising:
    """Restricted Boltzmann machine: edge weights J (counted once) and fields ~ N(0, scale^2), visible spins first."""
    visible, hidden = _count(visible, "visible"), _count(hidden, "hidden")
    scale = _scale(scale, "scale")
    stream = _Stream(seed)
    field = scale * stream.normal(visible + hidden)
    return Ising.from_bipartite(scale * stream.normal(visible * hidden).reshape(visible, hidden), field)


def spin_glass_3d(side: int, strength: float, seed: int, periodic: bool = True, couplings: str = "gaussian") -> Ising:
    """Edwards-Anderson spin glass on a cubic lattice, side^3 spins, without field.

    Parameters
    ----------
    side
        Spins along an edge of the cube.
    strength
        J counted once is ``strength`` times a standard normal number (``couplings="gaussian"``) or times a random
        sign (``"bimodal"``).
    seed
        Any whole number from 0 on.
    periodic
        Whether opposite faces are joined (from side 3 on, where these are new edges).
    couplings
        ``"gaussian"`` or ``"bimodal"``.
    """
    side, strength = _count(side, "side"), _scale(strength, "strength")
    stream = _Stream(seed)
    i, j = _lattice_edges((side, side, side), periodic)
    if couplings == "gaussian":
        J = stream.normal(len(i))
    elif couplings == "bimodal":
        J = np.where(stream.unit(len(i)) < 0.5, 1.0, -1.0)
    else:
        raise OptionError(f"couplings is {couplings!r}; it must be 'gaussian' or 'bimodal'")
    return Ising.from_edges(side**3, np.column_stack([i, j]), strength * J)


GENERATORS: Mapping[str, Callable[..., Ising]] = {
    generator.__name__.replace("_", "-"): generator
    for generator in (complete, erdos_renyi, bipartite, grid, rank_one, curie_weiss, rbm, spin_glass_3d)
}


def _sparse(
    n: int, i: NDArray[Any], j: NDArray[Any], stream: _Stream, strength: float, field: NDArray[np.float64]
) -> Ising:
    A = stream.uniform(len(i), _scale(strength, "strength"))
    return Ising.from_edges(n, np.column_stack([i, j]), 2.0 * A, field)


def _lattice_edges(shape: tuple[int, ...], periodic: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the edges of a lattice in rows, site by site, each site's last direction first."""
    site = np.arange(math.prod(shape)).reshape(shape)
    starts, ends, direction = [], [], []
    for axis in reversed(range(len(shape))):
        next_site = np.roll(site, -1, axis=axis)
        inside = np.ones(shape, dtype=bool)
        if not periodic or shape[axis] < 3:
            inside[(slice(None),) * axis + (slice(-1, None),)] = False
        starts.append(site[inside])
        ends.append(next_site[inside])
        direction.append(np.full(int(inside.sum()), -axis))
    i, j = np.concatenate(starts), np.concatenate(ends)
    order = np.lexsort((np.concatenate(direction), i))
    return i[order], j[order]


class _Stream:
    """Random numbers that are the same everywhere."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(_count(seed, "seed"))

    def unit(self, count: int) -> NDArray[np.float64]:
        """Return numbers from [0, 1), multiples of 2^-53."""
        words = np.atleast_1d(self._bits.random_raw(count)).astype(np.uint64)
        return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def uniform(self, count: int, largest: float) -> NDArray[np.float64]:
        """Return numbers from [-largest, largest)."""
        return largest * (2.0 * self.unit(count) - 1.0)

    def normal(self, count: int) -> NDArray[np.float64]:
        """Return standard normal numbers, as ratios of uniforms (Kinderman and Monahan 1977).

        The number itself is only a quotient; the logarithm, which libraries round differently, merely decides
        whether it is accepted.
        """
        found: list[NDArray[np.float64]] = []
        have = 0
        while have < count:
            pair = self.unit(2 * (count - have)).reshape(-1, 2)
            u = 1.0 - pair[:, 0]
            x = (2.0 * pair[:, 1] - 1.0) * 0.8577638849607068 / u  # sqrt(2 / e)
            accepted = x[x * x <= -4.0 * np.log(u)]
            found.append(accepted)
            have += len(accepted)
        return np.concatenate(found) if found else np.empty(0)


def _count(value: Any, name: str) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        raise OptionError(f"{name} is {value!r}; it must be a whole number") from None
    if count < 0:
        raise OptionError(f"{name} is {count}; it cannot be negative")
    return count


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise OptionError(f"{name} is {value!r}; it must be a number")
    if not math.isfinite(value):
        raise OptionError(f"{name} is {value}; it must be finite")
    return float(value)


def _scale(value: Any, name: str) -> float:
    number = _number(value, name)
    if number < 0.0:
        raise OptionError(f"{name} is {number}; it cannot be negative")
    return number
