"""Heat-bath sweeps over 64 states at once, compiled: one spin of all states is a loop without branches.

States are stored spin by spin, 64 lanes side by side, so that the compiler vectorizes a spin's fields, random numbers
and exponentials. One state at a time takes 30 times as long on a sparse graph. Fields and probabilities are in single
precision: the conditional distribution of a spin is accurate to 1e-7. Energies, which determine the weights, are summed
in double precision.

Models lie on a path from a base, whose Z is known, to the model: at ``beta`` the weight of a state is exp(E_0(x) + beta
(E(x) - E_0(x))). The log-weight of a step along the path is the step times E - E_0, the energies recorded here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled, inner, intrinsic, ir, types

if TYPE_CHECKING:
    from spectralz.kernels.arrays import ColumnArray, FloatArray, IntArray, RandomArray, SingleArray, SpinArray


LANES = 64
# Number of spins of a dense coupling whose flips are passed to all others together, by one matrix product.
SPINS_TOLD_TOGETHER = 32

ONE, TWO, ZERO, QUARTER = np.float32(1.0), np.float32(2.0), np.float32(0.0), np.float32(0.25)
LAST_OF_24_BITS = np.float32(2.0**-24)
# exp(-d) = 2^k p(f) for f in (-1, 0]; below exp(-87) the other state of a spin has a probability below any number
# drawn.
MINUS_LOG2_E, SMALLEST_EXPONENT = np.float32(-1.4426950408889634), np.float32(-126.0)
# 2^f on [-1, 0] as 1 + P1 f + ... + P6 f^6: the polynomial with the smallest maximum error, 2e-7 with rounding.
P1, P2, P3 = np.float32(0.693147179), np.float32(0.2402263676), np.float32(0.05550088122)
P4, P5, P6 = np.float32(0.009600473551), np.float32(0.001294516779), np.float32(0.0001157359239)
# Blackman and Vigna's xoshiro128++.
U7, U8, U9, U11, U21, U25 = (np.uint32(k) for k in (7, 8, 9, 11, 21, 25))


class SparsePath(NamedTuple):
    """The models on a path, on a sparse graph: fields and couplings J = 2 A of the base, and what is added to them.

    Attributes
    ----------
    field, field_change
        Of the base, and of the model minus the base.
    data, data_change
        Entries of the couplings' CSR matrix, likewise.
    indices, indptr
        Its columns, and where its rows begin.
    cold_from
        The point of the path from which on spins turn nearly by Metropolis' rule instead of the heat bath.
    """

    field: FloatArray
    field_change: FloatArray
    data: FloatArray
    data_change: FloatArray
    indices: ColumnArray
    indptr: IntArray
    cold_from: float = math.inf


class DensePath(NamedTuple):
    """The models on a path whose base has fields alone; the coupling is an array in single precision.

    Attributes
    ----------
    base
        Fields of the base.
    field, coupling
        Of the model.
    cold_from
        The point of the path from which on spins turn nearly by Metropolis' rule instead of the heat bath.
    """

    base: SingleArray
    field: SingleArray
    coupling: SingleArray
    cold_from: float = math.inf


@intrinsic
def _times_power_of_two(typingctx: Any, p: Any, k: Any) -> Any:
    """Return p 2^k for a float of single precision about 1, by its bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = builder.add(
            builder.bitcast(args[0], ir.IntType(32)), builder.shl(args[1], ir.Constant(ir.IntType(32), 23))
        )
        return builder.bitcast(bits, ir.FloatType())

    return types.float32(types.float32, types.int32), codegen


@inner
def next_word(state: RandomArray, lane: int) -> Any:
    """Return the next 32 random bits of a lane."""
    s0, s1, s2, s3 = state[0, lane], state[1, lane], state[2, lane], state[3, lane]
    word = np.uint32(s0 + s3)
    word = np.uint32(((word << U7) | (word >> U25)) + s0)
    shifted = np.uint32(s1 << U9)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = np.uint32((s3 << U11) | (s3 >> U21))
    state[0, lane], state[1, lane], state[2, lane], state[3, lane] = s0, s1, s2, s3
    return word


@inner
def _exp_minus(d: Any) -> Any:
    """Return exp(-d) for d >= 0 in single precision; d beyond 87 counts as 87."""
    exponent = d * MINUS_LOG2_E
    exponent = exponent if exponent > SMALLEST_EXPONENT else SMALLEST_EXPONENT
    k = np.int32(exponent)
    f = exponent - np.float32(k)
    return _times_power_of_two((((((P6 * f + P5) * f + P4) * f + P3) * f + P2) * f + P1) * f + ONE, k)


@inner
def drawn(log_odds: Any, word: Any) -> Any:
    """Draw a spin that is +1 with the given log-odds, from 24 random bits."""
    unlikely = _exp_minus(abs(log_odds))
    u = np.float32(np.int32(word >> U8)) * LAST_OF_24_BITS
    likely = ONE if log_odds >= ZERO else -ONE
    # P(x = the likely side) = 1 / (1 + exp(-|log-odds|))
    return likely if u * (ONE + unlikely) < ONE else -likely


@inner
def flipped(spin: Any, log_odds: Any, word: Any, is_cold: Any) -> Any:
    """Return a spin that may have turned, from 24 random bits.

    With q = P(unlikely side) / P(likely side) it turns to the likely side with probability 1 / (1 + w q), to the
    unlikely side with q / (1 + w q). Where it is warm w is 1, the heat bath: spins drawn anew forget most. Where it is
    cold w is 1/4, nearly Metropolis' rule: spins without much of a field turn more often, but not every time.
    """
    against = -spin * log_odds
    unlikely = _exp_minus(abs(against))
    u = np.float32(np.int32(word >> U8)) * LAST_OF_24_BITS
    bound = ONE + (QUARTER if is_cold else ONE) * unlikely
    return -spin if u * bound < (ONE if against >= ZERO else unlikely) else spin


@compiled
def draw_spins(x: Any, state: RandomArray, field: FloatArray) -> None:
    """Draw independent spins with the given fields into ``x``, (n, 64) of any type."""
    for i in range(len(x)):
        log_odds = np.float32(2.0 * field[i])
        for lane in range(LANES):
            x[i, lane] = drawn(log_odds, next_word(state, lane))


@compiled
def take(x: Any, places: IntArray, taken: Any, chunk: int) -> None:
    """Copy states into a chunk so that ``places[r]`` becomes the r-th; arrays are (chunks, n, 64), lane r % 64."""
    _, n, _ = x.shape
    chunks, lanes = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    for lane in range(LANES):
        place = places[chunk * LANES + lane]
        chunks[lane], lanes[lane] = place // LANES, place % LANES
    for i in range(n):
        for lane in range(LANES):
            taken[chunk, i, lane] = x[chunks[lane], i, lanes[lane]]


@compiled
def sweep_sparse(x: SpinArray, state: RandomArray, betas: FloatArray, sweeps: int, path: SparsePath) -> FloatArray:
    """Sweep over 64 states at each point of the path in turn; return their energies there, (len(betas), 64).

    ``x`` is (n, 64), ``state`` (4, 64).
    """
    energies = np.empty((len(betas), LANES))
    scaled, log_odds = np.empty(len(path.data), np.float32), np.empty(LANES, np.float32)
    n = len(x)
    for k in range(len(betas)):
        beta = betas[k]
        is_cold = beta >= path.cold_from
        for place in range(len(scaled)):
            scaled[place] = 2.0 * (path.data[place] + beta * path.data_change[place])
        for _ in range(sweeps):
            for i in range(n):
                field = np.float32(2.0 * (path.field[i] + beta * path.field_change[i]))
                for lane in range(LANES):
                    log_odds[lane] = field
                for place in range(path.indptr[i], path.indptr[i + 1]):
                    j, coupling = path.indices[place], scaled[place]
                    for lane in range(LANES):
                        log_odds[lane] += coupling * np.float32(x[j, lane])
                for lane in range(LANES):
                    x[i, lane] = np.int8(
                        flipped(np.float32(x[i, lane]), log_odds[lane], next_word(state, lane), is_cold)
                    )
        record_energies(x, path, energies, k)
    return energies


@inner
def record_energies(x: SpinArray, path: SparsePath, energies: FloatArray, k: int) -> None:
    """Write E - E_0 of the states into row k."""
    for lane in range(LANES):
        energies[k, lane] = 0.0
    for i in range(len(x)):
        field = path.field_change[i]
        if field != 0.0:
            for lane in range(LANES):
                energies[k, lane] += field * np.float64(x[i, lane])
        for place in range(path.indptr[i], path.indptr[i + 1]):
            j, coupling = path.indices[place], path.data_change[place]
            if j > i and coupling != 0.0:
                for lane in range(LANES):
                    energies[k, lane] += coupling * np.float64(np.int32(x[i, lane] * x[j, lane]))


@compiled
def sweep_dense(
    x: SingleArray, h: SingleArray, state: RandomArray, betas: FloatArray, sweeps: int, path: DensePath
) -> FloatArray:
    """Sweep over 64 states at each point of the path in turn; return their energies there, (len(betas), 64).

    ``x`` and the fields ``h`` of the model are (n, 64). Spins are drawn in blocks of 32. Flips update the fields within
    the block at once, and all other fields by one matrix product with the rows of the spins that flipped in some state:
    nearly all of them when hot, few when cold.
    """
    n = len(x)
    energies = np.empty((len(betas), LANES))
    pushes, rows = np.empty((n, LANES), np.float32), np.empty((SPINS_TOLD_TOGETHER, n), np.float32)
    turned = np.empty((SPINS_TOLD_TOGETHER, LANES), np.float32)
    for k in range(len(betas)):
        is_cold = betas[k] >= path.cold_from
        of_base, of_model = np.float32(2.0 * (1.0 - betas[k])), np.float32(2.0 * betas[k])
        for _ in range(sweeps):
            for begin in range(0, n, SPINS_TOLD_TOGETHER):
                end = begin + SPINS_TOLD_TOGETHER if begin + SPINS_TOLD_TOGETHER < n else n
                count = 0
                for i in range(begin, end):
                    field = of_base * path.base[i]
                    turns = np.int32(0)
                    for lane in range(LANES):
                        spin = flipped(x[i, lane], field + of_model * h[i, lane], next_word(state, lane), is_cold)
                        change = spin - x[i, lane]
                        x[i, lane] = spin
                        turned[count, lane] = change
                        turns += np.int32(change != ZERO)
                    if turns == 0:
                        continue
                    for j in range(begin, end):
                        coupling = path.coupling[i, j]
                        for lane in range(LANES):
                            h[j, lane] += coupling * turned[count, lane]
                    for j in range(n):
                        rows[count, j] = path.coupling[i, j]
                    count += 1
                if count > 0:
                    np.dot(rows[:count].T, turned[:count], pushes)
                    for j in range(begin):
                        for lane in range(LANES):
                            h[j, lane] += pushes[j, lane]
                    for j in range(end, n):
                        for lane in range(LANES):
                            h[j, lane] += pushes[j, lane]
        for lane in range(LANES):
            energies[k, lane] = 0.0
        for i in range(n):
            base, field = path.base[i], path.field[i]
            for lane in range(LANES):
                # x_i (theta_i + h_i) / 2 adds up to E(x), x_i theta_i of the base to E_0(x)
                energies[k, lane] += 0.5 * x[i, lane] * (np.float64(field) + h[i, lane] - TWO * base)
    return energies
