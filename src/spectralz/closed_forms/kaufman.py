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

An antiferromagnet with one odd side is a ferromagnet with such a seam. The differences C - S of the second formula are
computed without loss as C (1 - exp(-delta)), where delta is a sum of positive terms. With two seams those differences
cancel once more, down to exp(-6000) of them, so there is no formula for two odd sides here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spectralz.closed_forms.logs import log_add, log_decay, log_with_decay, refuse_overflow
from spectralz.closed_forms.transfer_matrix import chain
from spectralz.errors import OptionError
from spectralz.generators.checks import checked_count, checked_number

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
