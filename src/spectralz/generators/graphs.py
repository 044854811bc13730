"""Models on complete, random and bipartite graphs, and models whose coupling has a low rank."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spectralz.errors import OptionError
from spectralz.generators.checks import Stream, Weights, checked_count, checked_number, checked_scale
from spectralz.model import Ising

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Up to this degree pairings are drawn until one is a simple graph; for 3, one in 7 is, for 4, one in 43.
MOST_REJECTED_DEGREE = 3


def complete(n: int, strength: float, seed: int, field_strength: float = 1.0) -> Ising:
    """Make a complete graph: theta ~ U[-1, 1], A_ij ~ U[-strength, strength] (paper, Sec. 4.1).

    Parameters
    ----------
    n
        Number of spins.
    strength
        Largest |A_ij|; an edge counted once weighs up to twice that.
    seed
        Any whole number, 0 or more.
    field_strength
        Largest |theta_i|.

    Returns
    -------
    Ising
        The model, stored as a dense matrix.

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
    """Make an Erdos-Renyi graph of edge probability ``p``; weights as in :func:`complete` (paper, Sec. 4.4).

    Parameters
    ----------
    n
        Number of spins.
    p
        Probability that a pair is an edge, from 0 to 1.
    strength
        Largest |A_ij|; an edge counted once weighs up to twice that.
    seed
        Any whole number, 0 or more.
    field_strength
        Largest |theta_i|.

    Returns
    -------
    Ising
        The model, stored as a sparse matrix.

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
    """Make a complete bipartite graph, n/2 + n/2 spins (n odd: first part smaller); weights as in :func:`complete`.

    Parameters
    ----------
    n
        Number of spins, both parts together.
    strength
        Largest |A_ij|; an edge counted once weighs up to twice that.
    seed
        Any whole number, 0 or more.
    field_strength
        Largest |theta_i|.

    Returns
    -------
    Ising
        The model, of which only the block of weights between the two parts is stored.

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
    """Make a restricted Boltzmann machine: edge weights J (counted once) and fields ~ N(0, scale^2), visible first.

    Parameters
    ----------
    visible
        Number of visible spins, which come first.
    hidden
        Number of hidden spins.
    scale
        Standard deviation of the edge weights J, counted once, and of the fields.
    seed
        Any whole number, 0 or more.

    Returns
    -------
    Ising
        The model, of which only the block of weights between the two parts is stored.

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


def sk(n: int, strength: float, seed: int, field: float = 0.0) -> Ising:
    """Make a Sherrington-Kirkpatrick model: J (counted once) ~ N(0, strength^2 / n); critical at strength 1.

    Parameters
    ----------
    n
        Number of spins.
    strength
        Inverse temperature: J of a pair, counted once, is ``strength / sqrt(n)`` times a standard normal number.
    seed
        Any whole number, 0 or more.
    field
        theta, the same for all spins.

    Returns
    -------
    Ising
        The model, stored as a dense matrix.

    Examples
    --------
    >>> sk(n=20, strength=1.0, seed=0)
    Ising(n=20, edges=190, density=1, |A| mean 0.0916 max 0.352, |field| max 0, dense)
    """
    n, strength, field = checked_count(n, "n"), checked_scale(strength, "strength"), checked_number(field, "field")
    stream = Stream(seed)
    i, j = np.triu_indices(n, k=1)
    A = np.zeros((n, n))
    A[i, j] = A[j, i] = 0.5 * (strength / math.sqrt(max(n, 1))) * stream.normal(len(i))
    return Ising(np.full(n, field), A)


def random_regular(
    n: int, degree: int, strength: float, seed: int, couplings: str = "gaussian", field: float = 0.0
) -> Ising:
    """Make a random regular graph: each spin has ``degree`` neighbors, and no pair is joined twice.

    The ends of edges are paired at random. Up to degree 3 this is repeated until the graph is simple, so that each
    regular graph is equally likely. From degree 4 on only the pairs that do not fit are drawn again [1]_; all graphs
    are equally likely in the limit of many spins. From degree (n - 1) / 2 on the complement of such a graph is taken.

    Parameters
    ----------
    n
        Number of spins.
    degree
        Neighbors of each spin, fewer than n; n times degree must be even.
    strength
        Scale of the weights J, counted once: their standard deviation, their size, or the largest of them.
    seed
        Any whole number, 0 or more.
    couplings
        ``gaussian``, ``bimodal``, ``uniform``, ``ferromagnetic`` or ``antiferromagnetic``, as in :func:`square`.
    field
        theta, the same for all spins.

    Returns
    -------
    Ising
        The model, stored as a sparse matrix.

    References
    ----------
    .. [1] Steger and Wormald, "Generating random regular graphs quickly", Combinatorics, Probability and Computing 8,
       377 (1999).

    Examples
    --------
    >>> random_regular(n=100, degree=3, strength=1.0, seed=0, couplings="bimodal")
    Ising(n=100, edges=150, density=0.0303, |A| mean 0.5 max 0.5, |field| max 0, sparse)
    """
    n, degree = checked_count(n, "n"), checked_count(degree, "degree")
    if degree and degree >= n:
        raise OptionError(f"degree is {degree} and n is {n}; a spin has at most n - 1 neighbors, so lower degree")
    if n * degree % 2:
        raise OptionError(f"degree is {degree} and n is {n}; an edge has two ends, so n times degree must be even")
    weights, stream = Weights(strength, couplings, field), Stream(seed)
    return weights.on(n, _regular_edges(n, degree, stream), stream)


def _regular_edges(n: int, degree: int, stream: Stream) -> NDArray[np.int64]:
    """Return the edges (m x 2, i < j, in order) of a random regular graph."""
    if 2 * degree > n - 1:
        i, j = np.triu_indices(n, k=1)
        absent = _regular_edges(n, n - 1 - degree, stream)
        is_edge = np.isin(i * n + j, absent @ [n, 1], invert=True)
        return np.column_stack([i[is_edge], j[is_edge]])
    keys = None
    while keys is None:
        keys = _pairing(n, degree, stream)
    return np.column_stack([keys // n, keys % n])


def _pairing(n: int, degree: int, stream: Stream) -> NDArray[np.int64] | None:
    """Pair the ends of edges at random; return keys i n + j of the edges in order, or None if they do not fit."""
    ends = np.repeat(np.arange(n), degree)
    keys = np.empty(0, dtype=np.int64)
    while len(ends):
        pairs = np.sort(stream.shuffled(ends).reshape(-1, 2), axis=1)
        drawn = pairs @ [n, 1]
        fits = np.zeros(len(pairs), dtype=bool)
        fits[np.unique(drawn, return_index=True)[1]] = True
        fits &= (pairs[:, 0] != pairs[:, 1]) & ~np.isin(drawn, keys)
        keys, ends = np.union1d(keys, drawn[fits]), pairs[~fits].ravel()
        if len(ends) and (degree <= MOST_REJECTED_DEGREE or not _can_be_paired(ends, keys, n)):
            return None
    return keys


def _can_be_paired(ends: NDArray[np.int64], keys: NDArray[np.int64], n: int) -> bool:
    """Say whether any two of these ends would make a new edge."""
    spins = np.unique(ends)
    i, j = np.triu_indices(len(spins), k=1)
    return not np.isin(spins[i] * n + spins[j], keys).all()


def rank_one(n: int, strength: float, seed: int, field_strength: float = 1.0) -> Ising:
    """Make a rank-1 coupling ``lambda v v'`` with random direction and sign, theta ~ U[-1, 1] (paper, Sec. 4.3).

    Parameters
    ----------
    n
        Number of spins, 2 or more.
    strength
        The sum of |A_ij| over i != j divided by n (n + 1), as the paper prints it.
    seed
        Any whole number, 0 or more.
    field_strength
        Largest |theta_i|.

    Returns
    -------
    Ising
        The model, stored as a dense matrix.

    Examples
    --------
    >>> rank_one(n=20, strength=0.1, seed=0).n
    20
    """
    n = checked_count(n, "n")
    if n < 2:
        raise OptionError(f"n is {n}; the strength of a rank-1 model is that of its pairs, so it needs 2 spins or more")
    stream = Stream(seed)
    field = stream.uniform(n, checked_scale(field_strength, "field_strength"))
    sign = 1.0 if stream.unit(1)[0] < 0.5 else -1.0
    v = stream.normal(n)
    # fsum is rounded once, so that the order of summation does not matter.
    v /= math.sqrt(math.fsum(v * v))
    pairs = math.fsum(np.abs(np.outer(v, v))[~np.eye(n, dtype=bool)])
    lam = sign * (checked_scale(strength, "strength") * (n * (n + 1)) / pairs)
    return Ising(field, lam * np.outer(v, v))


def curie_weiss(n: int, strength: float = 1.0, field: float = 0.0) -> Ising:
    """Make a Curie-Weiss model: every pair has A_ij = strength / (2 n), zero diagonal; the critical strength is 1.

    Parameters
    ----------
    n
        Number of spins.
    strength
        n times the weight J of a pair, counted once; negative for an antiferromagnet.
    field
        theta, the same for all spins.

    Returns
    -------
    Ising
        The model, of which only the rank-1 terms are stored.

    See Also
    --------
    spectralz.closed_forms.curie_weiss : its log Z.

    Examples
    --------
    >>> curie_weiss(n=1000, strength=1.0, field=0.5)
    Ising(n=1000, rank 1 plus diagonal, |A| at most 0.0005, |field| max 0.5)
    """
    n = checked_count(n, "n")
    weight = checked_number(strength, "strength") / (2.0 * n) if n else 0.0
    return Ising.from_factors(np.full(n, checked_number(field, "field")), [weight], np.ones((1, n)), -weight)


def hopfield(n: int, patterns: int, strength: float, seed: int, field: float = 0.0) -> Ising:
    """Make a Hopfield model: A = strength / (2 n) times the sum of ``xi xi'`` over random patterns, zero diagonal.

    The coupling is stored as factors: the patterns xi are the rows of ``model.factors.vectors``.

    Parameters
    ----------
    n
        Number of spins.
    patterns
        Number of patterns, each n random signs.
    strength
        Inverse temperature: J of a pair, counted once, is ``strength / n`` times the sum of ``xi_i xi_j``.
    seed
        Any whole number, 0 or more.
    field
        theta, the same for all spins.

    Returns
    -------
    Ising
        The model, of which only the rank-1 terms are stored.

    Examples
    --------
    >>> hopfield(n=1000, patterns=3, strength=1.5, seed=0)
    Ising(n=1000, rank 3 plus diagonal, |A| at most 0.00225, |field| max 0)
    """
    n, patterns = checked_count(n, "n"), checked_count(patterns, "patterns")
    strength, theta = checked_number(strength, "strength"), checked_number(field, "field")
    weight = strength / (2.0 * n) if n else 0.0
    xi = Stream(seed).signs(patterns * n).reshape(patterns, n)
    return Ising.from_factors(np.full(n, theta), np.full(patterns, weight), xi, -patterns * weight)
