"""Models whose coupling is a few rank-1 terms."""

from __future__ import annotations

import math

import numpy as np

from spectralz.errors import OptionError
from spectralz.generators.checks import checked_count, checked_number, checked_scale
from spectralz.generators.streams import Stream
from spectralz.model import Ising


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
