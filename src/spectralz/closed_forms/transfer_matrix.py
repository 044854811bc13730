"""Chains and dimers: products of 2 x 2 transfer matrices."""

from __future__ import annotations

import math

from spectralz.closed_forms.logs import log_add, log_cosh, log_decay, log_sinh, log_with_decay, refuse_overflow
from spectralz.generators.checks import checked_count, checked_flag, checked_number, checked_pairs


def chain(n: int, strength: float, field: float = 0.0, periodic: bool = False) -> float:
    """Return log Z of :func:`spectralz.generators.chain`.

    With J = ``strength`` and h = ``field``, the transfer matrix has the eigenvalues::

        t + q and t - q,    t = exp(J) cosh(h),    q = sqrt(exp(2J) sinh(h)^2 + exp(-2J)),

    and a ring of n >= 3 spins has ``Z = (t + q)^n + (t - q)^n``. An open chain, with free ends, has::

        Z = (cosh(h) + s) (t + q)^(n-1) + (cosh(h) - s) (t - q)^(n-1),    s = (exp(J) sinh(h)^2 + exp(-J)) / q,

    and without a field ``Z = 2 (2 cosh(J))^(n-1)``. The ratios of the second terms to the first are exp(-delta) up to
    sign; delta is summed in logs, so that terms that almost cancel lose no digits.

    Parameters
    ----------
    n
        Number of spins.
    strength
        J of every edge, counted once; negative for an antiferromagnet.
    field
        theta, the same for all spins.
    periodic
        Whether the last spin is joined to the first (from n = 3 on, where this is a new edge).

    Returns
    -------
    float
        log Z, a natural logarithm.

    See Also
    --------
    spectralz.generators.chain : the model.

    Examples
    --------
    >>> chain(n=2, strength=0.0) / math.log(2)
    2.0
    >>> round(chain(n=1_000_000, strength=-1.0, field=0.5, periodic=True), 6)
    1144179.312603
    """
    n, is_periodic = checked_count(n, "n"), checked_flag(periodic, "periodic")
    J, h = checked_number(strength, "strength"), checked_number(field, "field")
    refuse_overflow(n, abs(J) + abs(h))
    if n < 2:
        return n * (math.log(2.0) + log_cosh(h))
    log_t = J + log_cosh(h)
    log_q = 0.5 * log_add(2.0 * J + 2.0 * log_sinh(h), -2.0 * J)
    is_ring = is_periodic and n >= 3
    steps = n if is_ring else n - 1
    log_ends, log_delta = (0.0, -math.inf) if is_ring else _ends(J, h, log_q)
    # |t - q| / (t + q) = tanh(gap / 2), and each step multiplies by that.
    log_delta = log_add(log_delta, math.log(steps) + float(log_decay(abs(log_t - log_q))))
    sign = -1.0 if J < 0.0 and steps % 2 else 1.0
    return log_ends + steps * log_add(log_t, log_q) + log_with_decay(log_delta, sign)


def _ends(J: float, h: float, log_q: float) -> tuple[float, float]:
    """Return log(cosh(h) + s), and log delta of the ratio (cosh(h) - s) / (cosh(h) + s) = exp(-delta)."""
    log_s = log_add(J + 2.0 * log_sinh(h), -J) - log_q
    return log_add(log_cosh(h), log_s), float(log_decay(max(log_cosh(h) - log_s, 0.0)))


def dimers(n: int, strength: float, field: float = 0.0) -> float:
    """Return log Z of :func:`spectralz.generators.dimers`.

    Each of the n / 2 pairs has the factor::

        exp(J + 2h) + exp(J - 2h) + 2 exp(-J),    J = strength, h = field.

    Parameters
    ----------
    n
        Number of spins, even.
    strength
        J of every edge, counted once; negative for an antiferromagnet.
    field
        theta, the same for all spins.

    Returns
    -------
    float
        log Z, a natural logarithm.

    See Also
    --------
    spectralz.generators.dimers : the model.

    Examples
    --------
    >>> dimers(n=2_000_000, strength=0.0) / math.log(2)
    2000000.0
    """
    n = checked_pairs(n)
    J, h = checked_number(strength, "strength"), checked_number(field, "field")
    refuse_overflow(n, abs(J) + abs(h))
    return n // 2 * (math.log(2.0) + log_add(J + log_cosh(2.0 * h), -J))
