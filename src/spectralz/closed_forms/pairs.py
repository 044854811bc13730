"""Models of pairs: chains and dimers, equal couplings between all spins, and tori by Kaufman's formula; sums in logs.

A torus has N rows of M spins; K_h is the coupling within a row, K_v that between rows, both positive. The transfer
matrix from row to row describes free fermions with momenta q_k = pi k / M and energies gamma_k >= 0,

    2 sinh(gamma_k / 2)^2 = (D^2 + 2 sinh(2 K_h) sin(q_k / 2)^2) / sinh(2 K_v),
    D = sinh(K_v) exp(K_h) - cosh(K_v) exp(-K_h).

Let C_odd be the product of (2 sinh(2 K_v))^(N/2) 2 cosh(N gamma_k / 2) over the odd k = 0..2M-1, S_odd the same with
sinh, C_even and S_even those over the even k, where S_even has the sign of D: k = 0 changes it at the critical point.
With periodic spins

    Z = (C_odd + S_odd + C_even + S_even) / 2,

with the sign reversed where the last spin of each row meets the first

    Z = (C_odd - S_odd + C_even - S_even) / 2,

An antiferromagnet with one odd side is a ferromagnet with such a seam. The differences C - S of the second formula are
computed without loss as C (1 - exp(-delta)), where delta is a sum of positive terms. With two seams those differences
cancel once more, down to exp(-6000) of them, so there is no formula for two odd sides here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectralz.errors import OptionError
from spectralz.generators.checks import checked_count, checked_flag, checked_number, checked_pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_TOTAL_WEIGHT = 1e300
# From here on log(coth(x / 2)) is 2 exp(-x) to the last digit.
LARGE = 40.0


def log_cosh(x: float) -> float:
    """Return log cosh(x)."""
    return abs(x) + math.log1p(math.exp(-2.0 * abs(x))) - math.log(2.0)


def log_sinh(x: float) -> float:
    """Return log sinh(abs(x)), minus infinity for 0."""
    return abs(x) + math.log(-math.expm1(-2.0 * abs(x))) - math.log(2.0) if x else -math.inf


def log_add(*logs: float) -> float:
    """Return log of the sum of exp(logs)."""
    return float(np.logaddexp.reduce(logs))


def log_decay(x: Any) -> NDArray[np.float64]:
    """Return log(-log(tanh(x / 2))) for x >= 0: the log of what a factor tanh(x / 2) takes from a logarithm."""
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(divide="ignore", over="ignore"):
        return np.asarray(np.where(x > LARGE, math.log(2.0) - x, np.log(np.log1p(2.0 / np.expm1(x)))))


def log_with_decay(log_delta: float, sign: float) -> float:
    """Return log(1 + sign * exp(-delta)) for sign +1 or -1 and delta = exp(log_delta) >= 0."""
    delta = math.exp(min(log_delta, 700.0))
    if sign > 0.0:
        return math.log1p(math.exp(-delta))
    return math.log(-math.expm1(-delta)) if delta > 1e-300 else log_delta


def refuse_overflow(n: int, weight: float) -> None:
    """Raise an error if the weights of n spins are so large that their sums overflow, as models do."""
    if n > LARGEST_TOTAL_WEIGHT:
        raise OptionError("the number of spins is too large for a floating-point number; give fewer")
    if n * weight > LARGEST_TOTAL_WEIGHT:
        raise OptionError(
            f"the weights of all spins add up to more than {LARGEST_TOTAL_WEIGHT:.0e}, where their sums overflow; "
            "lower strength or field"
        )


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


def torus(rows: int, columns: int, strength: float, field: float = 0.0) -> float:
    """Return log Z of :func:`spectralz.generators.torus` without field, by Kaufman's formula [1]_.

    With K = ``strength`` > 0, M columns and N rows, both 3 or more::

        Z = (2 sinh(2K))^(M N / 2) (C_odd + S_odd + C_even + S_even) / 2,
        C = product of 2 cosh(N gamma_k / 2), S = product of 2 sinh(N gamma_k / 2), over odd or even k = 0..2M-1,
        cosh(gamma_k) = cosh(2K) coth(2K) - cos(pi k / M), gamma_0 = 2K + log(tanh(K)).

    A side of 2, joined once, enters as two edges of weight K / 2, and a side of 1 leaves a ring. Negative K with even
    sides is the same as positive K; with an odd side the signs of the four terms change. If both sides are odd they
    cancel almost completely, and there is no formula here.

    Time is proportional to the shorter side, or to the odd one of an antiferromagnet.

    Parameters
    ----------
    rows, columns
        Number of rows and of columns.
    strength
        J of every edge, counted once; negative for an antiferromagnet.
    field
        Must be 0: no formula is known in a field.

    Returns
    -------
    float
        log Z, a natural logarithm.

    Raises
    ------
    OptionError
        If there is a field, or an antiferromagnet has two odd sides of 3 or more.

    See Also
    --------
    spectralz.generators.torus : the model.

    References
    ----------
    .. [1] Kaufman, "Crystal statistics. II. Partition function evaluated by spinor analysis", Physical Review 76,
       1232 (1949).

    Examples
    --------
    >>> critical = math.log(1 + math.sqrt(2)) / 2
    >>> round(torus(rows=1000, columns=1000, strength=critical) / 1e6, 9)  # Onsager: 0.929695398 for infinite sides
    0.929696038
    """
    rows, columns = checked_count(rows, "rows"), checked_count(columns, "columns")
    K = checked_number(strength, "strength")
    if checked_number(field, "field") != 0.0:
        raise OptionError(f"field is {field}; no formula is known for a torus in a field, so leave it 0")
    short, long = sorted((rows, columns))
    refuse_overflow(rows * columns, 2.0 * abs(K))
    if short == 0:
        return 0.0
    if short == 1:
        return chain(long, K, periodic=True)
    odd = [side for side in (short, long) if side % 2 and K < 0.0]
    if len(odd) == 2:
        raise OptionError(
            f"the formula loses all digits for antiferromagnets with two odd sides, such as {rows} x {columns}; make a "
            "side even, or take the method exact"
        )
    width = odd[0] if odd else short
    return _one_seam_or_none(width, rows + columns - width, abs(K), has_seam=bool(odd))


class _Modes(NamedTuple):
    """The fermions of a row, k = 0..2M-1."""

    log_factor: NDArray[np.float64]  # log of exp(gamma_k / 2) sqrt(2 sinh(2 K_v))
    gamma: NDArray[np.float64]
    is_ordered: bool  # whether D > 0


def _one_seam_or_none(width: int, height: int, K: float, has_seam: bool) -> float:
    modes = _modes(width, *(K / 2.0 if side == 2 else K for side in (width, height)))
    sign = -1.0 if has_seam else 1.0
    odd = _half_sum(modes.log_factor[1::2], modes.gamma[1::2], height, sign)
    even = _half_sum(modes.log_factor[0::2], modes.gamma[0::2], height, sign if modes.is_ordered else -sign)
    return log_add(odd, even) - math.log(2.0)


def _half_sum(log_factor: NDArray[np.float64], gamma: NDArray[np.float64], height: int, sign: float) -> float:
    """Return log(C + sign S) of the odd or of the even momenta: S = C exp(-delta)."""
    log_delta = float(np.logaddexp.reduce(log_decay(height * gamma)))
    log_cosh = height * float(np.sum(log_factor)) + float(np.sum(np.log1p(np.exp(-height * gamma))))
    return log_cosh + log_with_decay(log_delta, sign)


def _modes(width: int, K_h: float, K_v: float) -> _Modes:
    """Return the fermions; all exponentials are divided by exp(2 K_v + 2 K_h), so that none overflows."""
    h, v = math.exp(-2.0 * K_h), math.exp(-2.0 * K_v)
    sin_squared = np.sin(np.arange(2 * width) * (math.pi / (2 * width))) ** 2
    D = 0.5 * (-math.expm1(-2.0 * K_v) - (1.0 + v) * h)
    numerator = D * D - math.expm1(-4.0 * K_h) * v * sin_squared
    scale = -math.expm1(-4.0 * K_v) * h  # 2 sinh(2 K_v)
    log_factor = K_h + K_v + np.log(np.sqrt(numerator) + np.sqrt(numerator + scale))
    with np.errstate(divide="ignore"):
        log_scale = 2.0 * K_v + np.log(-np.expm1(-4.0 * K_v))
    gamma = np.maximum(2.0 * log_factor - log_scale, 0.0)
    return _Modes(log_factor, gamma, D > 0.0)
