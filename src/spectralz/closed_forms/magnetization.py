"""Equal couplings between all spins: a sum over magnetizations."""

from __future__ import annotations

import math

import numpy as np

from spectralz.closed_forms.logs import log_add, refuse_overflow
from spectralz.generators.checks import checked_count, checked_number

TERMS_AT_A_TIME = 2**20


def curie_weiss(n: int, strength: float = 1.0, field: float = 0.0) -> float:
    """Return log Z of :func:`spectralz.generators.curie_weiss`.

    C(n, k) states have magnetization M = 2k - n, and all of them have the same weight::

        Z = sum over k = 0..n of C(n, k) exp(strength (M^2 - n) / (2 n) + field M).

    Time is proportional to n, memory is constant; the relative error is about 1e-14.

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
    float
        log Z, a natural logarithm.

    See Also
    --------
    spectralz.generators.curie_weiss : the model.

    Examples
    --------
    >>> round(curie_weiss(n=1_000_000, strength=1.0), 6)
    693150.431835
    """
    n = checked_count(n, "n")
    strength, field = checked_number(strength, "strength"), checked_number(field, "field")
    refuse_overflow(n, abs(strength) + abs(field))
    if n == 0:
        return 0.0
    blocks = range(0, n + 1, TERMS_AT_A_TIME)
    return log_add(*(_log_terms(first, n, strength, field) for first in blocks))


def _log_terms(first: int, n: int, strength: float, field: float) -> float:
    """Return the log of a block of terms of the sum."""
    from scipy.special import gammaln

    k = np.arange(first, min(first + TERMS_AT_A_TIME, n + 1), dtype=np.float64)
    M = 2.0 * k - n
    terms = strength * ((M * M - n) / (2.0 * n)) + field * M - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    largest = terms.max()
    return math.lgamma(n + 1.0) + float(largest + np.log(np.exp(terms - largest).sum()))
