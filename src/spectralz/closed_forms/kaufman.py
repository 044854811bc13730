"""The Ising model on a torus: Kaufman's formula.

There are N rows of M spins; K_h is the coupling within a row, K_v that between rows, both positive. The transfer matrix
from row to row describes free fermions with momenta q_k = pi k / M and energies gamma_k >= 0,

    2 sinh(gamma_k / 2)^2 = (D^2 + 2 sinh(2 K_h) sin(q_k / 2)^2) / sinh(2 K_v),
    D = sinh(K_v) exp(K_h) - cosh(K_v) exp(-K_h).

Let C_odd be the product of (2 sinh(2 K_v))^(N/2) 2 cosh(N gamma_k / 2) over the odd k = 0..2M-1, S_odd the same with
sinh, C_even and S_even those over the even k, where S_even has the sign of D: k = 0 changes it at the critical point.
With periodic spins

    Z = (C_odd + S_odd + C_even + S_even) / 2,

with the sign reversed where the last spin of each row meets the first

    Z = (C_odd - S_odd + C_even - S_even) / 2,

and with the sign reversed also where the last row meets the first

    Z = (S_odd - C_odd + C_even - S_even) / 2.

An antiferromagnet is a ferromagnet with such a seam across each odd side. The differences C - S of the second formula
are computed without loss as C (1 - exp(-delta)), where delta is a sum of positive terms. In the third formula those
differences cancel once more, so it is summed with many digits.
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz.closed_forms.logs import log_add, log_decay, log_with_decay, refuse_overflow
from spectralz.closed_forms.transfer_matrix import chain
from spectralz.errors import OptionError, TooLargeError
from spectralz.generators.checks import checked_count, checked_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Most digits times modes of the sum in many digits: a few seconds.
MOST_DIGITS = 300_000


def torus(rows: int, columns: int, strength: float, field: float = 0.0) -> float:
    """Return log Z of :func:`spectralz.generators.torus` without field, by Kaufman's formula [1]_.

    With K = ``strength`` > 0, M columns and N rows, both 3 or more::

        Z = (2 sinh(2K))^(M N / 2) (C_odd + S_odd + C_even + S_even) / 2,
        C = product of 2 cosh(N gamma_k / 2), S = product of 2 sinh(N gamma_k / 2), over odd or even k = 0..2M-1,
        cosh(gamma_k) = cosh(2K) coth(2K) - cos(pi k / M), gamma_0 = 2K + log(tanh(K)).

    A side of 2, joined once, enters as two edges of weight K / 2, and a side of 1 leaves a ring. Negative K with even
    sides is the same as positive K; with an odd side the signs of the four terms change. If both sides are odd the
    terms cancel, and the sum is computed with as many digits as needed.

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
    TooLargeError
        If an antiferromagnet with two odd sides would need too many digits: from about 140 x 140 on, for some
        strengths.

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
        return _two_seams(short, long, -K)
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


def _two_seams(width: int, height: int, K: float) -> float:
    """Return log Z of an antiferromagnet with two odd sides; the terms cancel up to exp(-2 K (width + height))."""
    coldest = _ground_states(width, height, K)
    # The total weight of the lowest excitations, paths with two more steps, is at most this times that of the ground
    # states.
    if math.exp(-4.0 * K) * (width + height) ** 2 / 4.0 < 2.0**-54 * coldest:
        return coldest
    digits = 40 + math.ceil(2.0 * K * (width + height) / math.log(10.0))
    if digits * width > MOST_DIGITS:
        raise TooLargeError(
            f"the formula for {width} x {height} spins, both sides odd, at strength {-K} takes {digits} digits, too "
            "many for a few seconds; make a side even, or shorter"
        )
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = digits, MAX_EMAX, MIN_EMIN
        return float(2 * Decimal(K) * width * height + _two_seams_in_digits(width, height, Decimal(K)).ln())


def _ground_states(width: int, height: int, K: float) -> float:
    """Return log Z where only ground states count.

    One edge of each row and of each column is violated. On the dual lattice these form a path once around in both
    directions, with monotonic steps: one of M N C(M + N, M) / (M + N) rising paths or as many falling ones. The M N
    crosses of a row and a column are both. Two states have the same path.
    """
    around = width + height
    log_paths = (
        math.lgamma(around + 1.0) - math.lgamma(width + 1.0) - math.lgamma(height + 1.0) - math.log(around / 2.0)
    )
    log_count = math.log(2.0 * width * height) + log_paths + math.log1p(-math.exp(-log_paths))
    return 2.0 * K * (width * height - around) + log_count


def _two_seams_in_digits(width: int, height: int, K: Decimal) -> Decimal:
    """Return Z exp(-2 K M N) in the digits of the context."""
    e = (-2 * K).exp()
    D = ((1 - e) - (1 + e) * e) / 2
    scale = (1 - e * e) * e
    cosh, sinh = [Decimal(1)] * 2, [Decimal(1)] * 2  # the products over even and over odd momenta
    for k, cosine in enumerate(_cosines(width)):
        numerator = D * D + scale * (1 - cosine) / 2
        larger = numerator.sqrt() + (numerator + scale).sqrt()
        u, v = larger**height, (scale / larger) ** height
        times = 1 if k in (0, width) else 2  # k and 2 M - k are alike
        cosh[k % 2] *= (u + v) ** times
        sinh[k % 2] *= (u - v) ** times
    return (cosh[0] - sinh[0].copy_sign(D) - cosh[1] + sinh[1]) / 2


def _cosines(width: int) -> list[Decimal]:
    """Return cos(pi k / width) for k = 0..width."""
    x = _pi() / width
    term = first = Decimal(1)
    k = 0
    while first + term != first or not k:
        k += 2
        term *= -x * x / (k * (k - 1))
        first += term
    cosines = [Decimal(1), first]
    for _ in range(width - 1):
        cosines.append(2 * first * cosines[-1] - cosines[-2])
    return cosines


def _pi() -> Decimal:
    """Return pi in the digits of the context, by arithmetic-geometric means (Brent and Salamin)."""
    a, b, t, p = Decimal(1), Decimal("0.5").sqrt(), Decimal("0.25"), 1
    for _ in range(20):  # each doubles the digits
        a, b, t, p = (a + b) / 2, (a * b).sqrt(), t - p * ((a - b) / 2) ** 2, 2 * p
    return (a + b) ** 2 / (4 * t)
