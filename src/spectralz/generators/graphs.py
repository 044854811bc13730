"""Random models on dense and on random graphs."""

from __future__ import annotations

import numpy as np

from spectralz.errors import OptionError
from spectralz.generators.checks import checked_count, checked_scale
from spectralz.generators.streams import Stream
from spectralz.model import Ising

__all__ = ["bipartite", "complete", "erdos_renyi", "rbm"]


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
    n = checked_count(n, "n")
    stream = Stream(seed)
    field = stream.uniform(n, checked_scale(field_strength, "field_strength"))
    i, j = np.triu_indices(n, k=1)
    A = np.zeros((n, n))
    A[i, j] = A[j, i] = stream.uniform(len(i), checked_scale(strength, "strength"))
    return Ising(field, A)


def erdos_renyi(n: int, p: float, strength: float, seed: int, field_strength: float = 1.0) -> Ising:
    """Erdos-Renyi graph, each pair an edge with probability ``p``; weights as in :func:`complete` (paper, Sec. 4.4).

    Parameters
    ----------
    n
        Number of spins.
    p
        Probability that a pair is an edge, from 0 to 1.
    strength
        Largest |A_ij|; an edge counted once weighs up to twice that.
    seed
        Any whole number from 0 on.
    field_strength
        Largest |theta_i|.

    Examples
    --------
    >>> erdos_renyi(n=20, p=0.2, strength=1.0, seed=0)
    Ising(n=20, edges=35, density=0.184, |A| mean 0.52 max 0.977, |field| max 0.995, sparse)
    """
    n, p = checked_count(n, "n"), checked_scale(p, "p")
    if p > 1.0:
        raise OptionError(f"p is {p}; a probability is at most 1")
    stream = Stream(seed)
    field = stream.uniform(n, checked_scale(field_strength, "field_strength"))
    i, j = np.triu_indices(n, k=1)
    present = stream.unit(len(i)) < p
    A = stream.uniform(int(present.sum()), checked_scale(strength, "strength"))
    return Ising.from_edges(n, np.column_stack([i[present], j[present]]), 2.0 * A, field)


def bipartite(n: int, strength: float, seed: int, field_strength: float = 1.0) -> Ising:
    """Complete bipartite graph, n/2 + n/2 spins (n odd: the first part smaller); weights as in :func:`complete`.

    Parameters
    ----------
    n
        Number of spins, both parts together.
    strength
        Largest |A_ij|; an edge counted once weighs up to twice that.
    seed
        Any whole number from 0 on.
    field_strength
        Largest |theta_i|.

    Examples
    --------
    >>> bipartite(n=20, strength=1.0, seed=0).edge_count
    100
    """
    n = checked_count(n, "n")
    stream = Stream(seed)
    field = stream.uniform(n, checked_scale(field_strength, "field_strength"))
    A = stream.uniform((n // 2) * (n - n // 2), checked_scale(strength, "strength"))
    return Ising.from_bipartite(2.0 * A.reshape(n // 2, n - n // 2), field)


def rbm(visible: int, hidden: int, scale: float, seed: int) -> Ising:
    """Restricted Boltzmann machine: edge weights J (counted once) and fields ~ N(0, scale^2), visible spins first.

    Parameters
    ----------
    visible
        Number of visible spins, which come first.
    hidden
        Number of hidden spins.
    scale
        Standard deviation of the edge weights J, counted once, and of the fields.
    seed
        Any whole number from 0 on.

    Examples
    --------
    >>> rbm(visible=6, hidden=4, scale=0.5, seed=0).edge_count
    24
    """
    visible, hidden = checked_count(visible, "visible"), checked_count(hidden, "hidden")
    scale = checked_scale(scale, "scale")
    stream = Stream(seed)
    field = scale * stream.normal(visible + hidden)
    return Ising.from_bipartite(scale * stream.normal(visible * hidden).reshape(visible, hidden), field)
