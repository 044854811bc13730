"""Elimination along a linear order that keeps only the heaviest frontier states, compiled.

Spins are added one after the other. For each state s of the frontier, the table holds the log of the sum of the weights
of all that has been summed out. Mini-buckets eliminate in the reverse order, from the last spin to the first. Their
tables at the time when spin t is the next to be added bound the sum over the future of s from above. One number is kept
per state, the *score* of s,

    score(s) = log-weight(s) + bound on the future(s) - bound on log Z.

Adding spin v changes it by a sum over the mini-buckets m of v,

    f_m(x_v, s) - table_m(s) - shift_m,    table_m(s) + shift_m = w_m log sum over x_v of exp( f_m(x_v, s) / w_m ),

since the tables that f_m takes in no longer belong to the future, and neither does the one that it leaves. All tables
cancel along a path: in the end the score is log Z minus the bound, whatever rounding did to the tables. By Hoelder's
inequality the scores of a state's successors add up to no more than its own. So the score of a dropped state bounds its
weight from above, and the remaining sum bounds Z from below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled, inlined, inner
from spectralz.kernels.logsum import exp_minus, log1p_exp_minus, log_add_exp
from spectralz.kernels.mini_buckets.passes import fill
from spectralz.kernels.sampling.heat_bath import GOLDEN, MIX_1, MIX_2, SHIFT_1, SHIFT_2, SHIFT_3

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spectralz.kernels.arrays import FloatArray, IntArray
    from spectralz.kernels.elimination.frontier_bits import Bits
    from spectralz.kernels.mini_buckets.passes import Steps

    Words = NDArray[np.uint64]
    Places = NDArray[np.int32]

EMPTY = np.int32(-1)
NO_WORD = np.uint64(0)
# The largest argument of exp_minus; a share below exp(-700) counts as exp(-700).
LARGEST = 700.0


@compiled
def changes_of(
    bits: Bits,
    t: int,
    steps: Steps,
    h: FloatArray,
    J: FloatArray,
    power: FloatArray,
    tables: FloatArray,
    where: IntArray,
    minus: FloatArray,
    plus: FloatArray,
    places: IntArray,
    out: FloatArray,
) -> float:
    """Write the change of a score when the t-th spin is added, for its states -1 and +1 side by side.

    There is one block for each of its mini-buckets, in the order of the bits of a frontier state. Returns the sum of
    the shifts.
    """
    begin = 0
    total = 0.0
    for p in range(bits.part_start[t], bits.part_start[t + 1]):
        m = bits.part[p]
        fill(steps, m, h, J, tables, where, minus, plus, places)
        shift = plus[0] if plus[0] > minus[0] else minus[0]
        if power[m] > 0.0:
            shift += power[m] * log1p_exp_minus(abs(plus[0] - minus[0]) / power[m])
        total += shift
        size = 1 << steps.width[m]
        for i in range(size):
            message = tables[where[m] + i] + shift
            plus[i] -= message
            minus[i] -= message
        first = bits.bit_start[p]
        for j in range(size):
            i = 0
            for b in range(steps.width[m]):
                i |= ((j >> b) & 1) << bits.bit[first + b]
            out[begin + 2 * j] = minus[i]
            out[begin + 2 * j + 1] = plus[i]
        begin += 2 * size
    return total


@inner
def _scores(
    bits: Bits, t: int, steps: Steps, changes: FloatArray, keys: Words, k: int, score: float
) -> tuple[float, float]:
    """Return the scores of state k with the t-th spin down, and with it up."""
    down, up = score, score
    begin = 0
    for p in range(bits.part_start[t], bits.part_start[t + 1]):
        place = NO_WORD
        for r in range(bits.run_start[p], bits.run_start[p + 1]):
            place |= ((keys[k, bits.run_word[r]] >> bits.run_shift[r]) & bits.run_mask[r]) << bits.run_at[r]
        at = begin + 2 * np.int64(place)
        down += changes[at]
        up += changes[at + 1]
        begin += 2 << steps.width[bits.part[p]]
    return down, up


@inlined
def _slot_of(key: Words, keys: Words, table: Places, mask: int) -> np.int64:
    """Return the slot of the table that holds a key, or the empty one where it belongs."""
    words = len(key)
    z = GOLDEN
    for w in range(words):
        z = (z ^ key[w]) * MIX_1
        z = (z ^ (z >> SHIFT_1)) * MIX_2
        z = (z ^ (z >> SHIFT_2)) + GOLDEN
    slot = np.int64(z ^ (z >> SHIFT_3)) & mask
    while table[slot] != EMPTY:
        w = 0
        while w < words and keys[table[slot], w] == key[w]:
            w += 1
        if w == words:
            break
        slot = (slot + 1) & mask
    return slot


@compiled
def extend(
    bits: Bits,
    t: int,
    steps: Steps,
    changes: FloatArray,
    keys: Words,
    score: FloatArray,
    count: int,
    table: Places,
    new_keys: Words,
    new_score: FloatArray,
    target: Places,
) -> int:
    """Add the t-th spin to ``count`` states, sum out finished spins, and return the number of distinct states.

    ``target`` receives the successor of each state with the spin down and with the spin up. The number of slots of
    ``table`` is a power of two, at least twice the largest possible number of new states.
    """
    words = keys.shape[1]
    mask = 1
    while mask < 4 * count:
        mask *= 2
    mask = min(mask, len(table)) - 1
    for slot in range(mask + 1):
        table[slot] = EMPTY
    key = np.empty(words, dtype=np.uint64)
    new = 0
    for k in range(count):
        down, up = _scores(bits, t, steps, changes, keys, k, score[k])
        for spin in range(2):
            value = up if spin else down
            for w in range(words):
                key[w] = keys[k, w] & bits.stays[t, w]
                if spin:
                    key[w] |= bits.own[t, w]
            slot = _slot_of(key, new_keys, table, mask)
            if table[slot] == EMPTY:
                table[slot] = new
                for w in range(words):
                    new_keys[new, w] = key[w]
                new_score[new] = value
                new += 1
            else:
                at = table[slot]
                new_score[at] = log_add_exp(new_score[at], value)
            target[2 * k + spin] = table[slot]
    return new


@compiled
def keep(
    keys: Words,
    score: FloatArray,
    count: int,
    threshold: float,
    ties: int,
    kept_keys: Words,
    kept_score: FloatArray,
    target: Places,
    number: Places,
) -> tuple[int, float]:
    """Keep the states above a threshold and a given number of those at it, and update the targets.

    Returns the number kept, and the log of the sum of what is dropped.
    """
    words = keys.shape[1]
    kept = 0
    largest = -np.inf
    for k in range(count):
        is_kept = score[k] > threshold
        if score[k] == threshold and ties > 0:
            ties -= 1
            is_kept = True
        if is_kept:
            for w in range(words):
                kept_keys[kept, w] = keys[k, w]
            kept_score[kept] = score[k]
            number[k] = kept
            kept += 1
        else:
            largest = score[k] if score[k] > largest else largest
            number[k] = EMPTY
    dropped = 0.0
    if kept < count:
        for k in range(count):
            if number[k] == EMPTY:
                # Every dropped state counts: exp_minus never returns less than exp(-700).
                dropped += exp_minus(largest - score[k])
        for k in range(len(target)):
            target[k] = number[target[k]]
        return kept, largest + np.log(dropped) if largest > -np.inf else largest
    return kept, -np.inf


@inner
def _share(part: float, whole: float) -> float:
    """Return the share of one term in the sum."""
    below = whole - part
    return exp_minus(below if below > 0.0 else 0.0) if below < LARGEST else 0.0


@compiled
def add_means(
    bits: Bits,
    t: int,
    steps: Steps,
    changes: FloatArray,
    keys: Words,
    score: FloatArray,
    new_score: FloatArray,
    target: Places,
    probability: FloatArray,
    before: FloatArray,
    pair_mean: FloatArray,
) -> tuple[float, float]:
    """Undo the t-th step: divide the probability of each state after it among the states before it.

    Writes these probabilities to ``before``, adds the means of the spin's products with earlier neighbors, and returns
    the probabilities that the spin is down and up.
    """
    is_down = is_up = 0.0
    for k in range(len(score)):
        down, up = _scores(bits, t, steps, changes, keys, k, score[k])
        either = aligned = 0.0
        for spin in range(2):
            at = target[2 * k + spin]
            if at != EMPTY:
                share = probability[at] * _share(up if spin else down, new_score[at])
                either += share
                aligned += share if spin else -share
        before[k] = either
        is_up += 0.5 * (either + aligned)
        is_down += 0.5 * (either - aligned)
        for e in range(bits.pair_start[t], bits.pair_start[t + 1]):
            is_other_up = (keys[k, bits.pair_word[e]] >> bits.pair_shift[e]) & np.uint64(1)
            pair_mean[bits.pair_edge[e]] += aligned if is_other_up else -aligned
    return is_down, is_up
