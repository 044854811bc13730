"""Log-sum-exp of two numbers as straight-line arithmetic, which the compiler can vectorize.

The functions are exp(-d), log(1 + exp(-d)), log(exp(a) + exp(b)) and log 2cosh. The C library's versions are as
accurate but are called one number at a time, which makes them four to seven times slower in the loops of enumeration
and elimination (``benchmarks/logsum.py`` measures it).
"""

from __future__ import annotations

from typing import Any

from spectralz._support.compiling import inner, intrinsic, ir, types

LOG2_E = 1.4426950408889634
# ln 2 in two parts: the first ends in zero bits, so that k * LN2_HIGH is exact for |k| < 2^20.
LN2_HIGH = 0.6931471803691238
LN2_LOW = 1.9082149292705877e-10
# Adding 1.5 * 2^52 rounds a double to an integer, which then stands in its lowest bits.
ROUNDER = 6755399441055744.0
# exp(-700) is still a normal number; anything smaller is negligible next to the 1 that it is added to.
LARGEST = 700.0
HALF_OF_LARGEST = 350.0


@intrinsic
def as_bits(typingctx: Any, x: Any) -> Any:
    """Return the bits of a double as an integer."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


@intrinsic
def as_float(typingctx: Any, bits: Any) -> Any:
    """Return the double that has the bits of an integer."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


@inner
def exp_minus(d: float) -> float:
    """Return exp(-d) for d >= 0, with a relative error of at most 2 units of 2^-53; d beyond 700 counts as 700."""
    d = d if d < LARGEST else LARGEST
    shifted = -d * LOG2_E + ROUNDER
    k = shifted - ROUNDER
    r = (-d - k * LN2_HIGH) - k * LN2_LOW  # |r| <= ln(2)/2, and exp(-d) = 2^k exp(r)
    # Taylor's series of exp; the next term, r^14 / 14!, is below 5e-18.
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return as_float(as_bits(p) + (as_bits(shifted) << 52))


@inner
def log1p_exp_minus(d: float) -> float:
    """Return log(1 + exp(-d)) for d >= 0, with a relative error of at most 8 units of 2^-53 (1e-152 beyond 350)."""
    # The squares of smaller numbers would underflow, which is slow on processors.
    e = exp_minus(d if d < HALF_OF_LARGEST else HALF_OF_LARGEST)
    z = e / (2.0 + e)  # log(1 + e) = 2 artanh(z), 0 < z <= 1/3
    w = z * z
    # Taylor's series of 2 artanh(z) / z; the next term, 2 w^17 / 35, is below 4e-18.
    p = 2.0 / 33.0
    p = p * w + 2.0 / 31.0
    p = p * w + 2.0 / 29.0
    p = p * w + 2.0 / 27.0
    p = p * w + 2.0 / 25.0
    p = p * w + 2.0 / 23.0
    p = p * w + 2.0 / 21.0
    p = p * w + 2.0 / 19.0
    p = p * w + 2.0 / 17.0
    p = p * w + 2.0 / 15.0
    p = p * w + 2.0 / 13.0
    p = p * w + 2.0 / 11.0
    p = p * w + 2.0 / 9.0
    p = p * w + 2.0 / 7.0
    p = p * w + 2.0 / 5.0
    p = p * w + 2.0 / 3.0
    p = p * w + 2.0
    return p * z


@inner
def log_add_exp(a: float, b: float) -> float:
    """Return log(exp(a) + exp(b))."""
    larger = a if a > b else b
    return larger + log1p_exp_minus(abs(a - b))


@inner
def log_2cosh(x: float) -> float:
    """Return log(2 cosh x)."""
    size = abs(x)
    return size + log1p_exp_minus(2.0 * size)


@inner
def log_2cosh_excess(h: float, push: float) -> float:
    """Return log(2 cosh(h + push)) - h for h >= 0, to a few units in the last place of |push| and of 1."""
    # |h + push| - h is just the push unless the sign changes, and then h is less than |push|. Testing for an h of
    # either sign would take four times as long, because no compiler vectorizes it.
    beyond = -2.0 * h - push
    change = push if push > beyond else beyond
    return change + log1p_exp_minus(2.0 * abs(h + push))
