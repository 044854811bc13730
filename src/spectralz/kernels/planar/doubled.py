"""Arithmetic on numbers of 106 bits: sums of two doubles, of which the second is what rounding took from the first.

Nothing here may be contracted or reordered by the compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spectralz._support.compiling import compiled, intrinsic, types

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray


@intrinsic
def _fused(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, rounded once."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), codegen


def _exactly(function: Any) -> Any:
    return compiled(function, fastmath=False, no_cpython_wrapper=True, _nrt=False)


@_exactly
def add_product(
    high: float, low: float, a_high: float, a_low: float, b_high: float, b_low: float
) -> tuple[float, float]:
    """Return the first number plus the product of two others."""
    product = a_high * b_high
    lost = _fused(a_high, b_high, -product) + (a_high * b_low + a_low * b_high)
    total = high + product
    other = total - high
    lost += ((high - (total - other)) + (product - other)) + low
    result = total + lost
    return result, lost - (result - total)


@_exactly
def reciprocal(high: float, low: float) -> tuple[float, float]:
    """Return one over a number."""
    first = 1.0 / high
    rest, tail = add_product(1.0, 0.0, -first, 0.0, high, low)
    return add_product(first, 0.0, rest, tail, first, 0.0)


@_exactly
def add_rows(
    high: FloatArray,
    low: FloatArray,
    first: int,
    end: int,
    a: float,
    a_low: float,
    v: FloatArray,
    v_low: FloatArray,
    b: float,
    b_low: float,
    w: FloatArray,
    w_low: FloatArray,
) -> None:
    """Add a v + b w to a row, from the entry ``first`` up to ``end``."""
    for j in range(first, end):
        one, two = a * v[j], b * w[j]
        lost = _fused(a, v[j], -one) + _fused(b, w[j], -two) + low[j]
        lost = _fused(a, v_low[j], _fused(a_low, v[j], lost))
        lost = _fused(b, w_low[j], _fused(b_low, w[j], lost))
        total = high[j] + one
        other = total - high[j]
        lost += (high[j] - (total - other)) + (one - other)
        result = total + two
        other = result - total
        lost += (total - (result - other)) + (two - other)
        high[j] = result + lost
        low[j] = lost - (high[j] - result)
