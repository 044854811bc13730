"""Tabu search for heavy states, compiled: the best flip at every step, and not back again for a while.

Unlike a quench it does not end at a local maximum. It leaves by the flip that loses least, and what has just been
flipped is tabu, so that it does not return at once. A penalty that a flip breaks is mended by the next ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectralz._support.compiling import compiled, inner
from spectralz.kernels.sampling.heat_bath import tell_neighbors

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, IntArray, RandomArray, SpinArray
    from spectralz.kernels.coupling import Couplings

SCALE = 2.0**-32
# Gains below this share of the largest field are rounding errors.
ROUNDING = 1e-11


@inner
def random_number(state: RandomArray) -> float:
    """Return a random whole number below 2^32, by Marsaglia's xorshift of 32 bits; the state is never 0."""
    x = state[0]
    x = np.uint32(x ^ np.uint32(x << np.uint32(13)))  # compiled shifts have 64 bits
    x = np.uint32(x ^ (x >> np.uint32(17)))
    x = np.uint32(x ^ np.uint32(x << np.uint32(5)))
    state[0] = x
    return float(x)


@inner
def random_below(most: int, state: RandomArray) -> int:
    """Return a random number from 0 to most - 1."""
    return int(random_number(state) * SCALE * most)


@inner
def flip(i: int, x: SpinArray, h: FloatArray, couplings: Couplings) -> None:
    """Flip spin i, and update the fields of its neighbors."""
    x[i] = -x[i]
    tell_neighbors(i, x[i], h, couplings)


@inner
def largest_size(h: FloatArray) -> float:
    """Return the largest of the sizes of some numbers; numpy's functions take seconds to compile."""
    largest = 0.0
    for i in range(len(h)):
        largest = max(largest, abs(h[i]))
    return largest


@inner
def copy_state(x: SpinArray, to: SpinArray) -> None:
    """Copy a state."""
    for i in range(len(x)):
        to[i] = x[i]


@compiled
def search(
    x: SpinArray,
    h: FloatArray,
    couplings: Couplings,
    most: int,
    patience: int,
    tenures: IntArray,
    random: RandomArray,
    best: SpinArray,
) -> int:
    """Search from the state ``x`` with the fields ``h``, both changed; write the heaviest state met to ``best``.

    The search ends after ``most`` steps, or ``patience`` steps without a heavier state; the number of steps is
    returned. A spin is tabu for a random number of steps between the two ``tenures``.
    """
    n = len(x)
    until = np.zeros(n, dtype=np.int64)
    gain, heaviest, last = 0.0, 0.0, 0
    least = ROUNDING * largest_size(h)
    copy_state(x, best)
    for step in range(most):
        chosen, largest, ties = -1, -np.inf, 1
        for i in range(n):
            change = -2.0 * x[i] * h[i]
            if change < largest or (until[i] > step and gain + change <= heaviest + least):
                continue
            if change > largest:
                chosen, largest, ties = i, change, 1
            else:  # of equal ones each is as likely
                ties += 1
                if random_below(ties, random) == 0:
                    chosen = i
        if chosen < 0:  # all are tabu
            chosen = random_below(n, random)
            largest = -2.0 * x[chosen] * h[chosen]
        flip(chosen, x, h, couplings)
        gain += largest
        until[chosen] = step + tenures[0] + random_below(tenures[1] - tenures[0] + 1, random)
        if gain > heaviest + least:
            heaviest, last = gain, step
            copy_state(x, best)
        elif step - last >= patience:
            return step + 1
    return most


@compiled
def exchange(x: SpinArray, h: FloatArray, couplings: Couplings, with_pairs: bool) -> None:
    """Flip single spins, and pairs of coupled spins if asked for, as long as that makes the state heavier.

    A pair of opposite spins that are strongly coupled to be opposite changes places: what a penalty demands is kept.
    """
    data, indices, indptr, is_dense = couplings
    n = len(x)
    least = ROUNDING * largest_size(h)
    moved = True
    while moved:
        moved = False
        for i in range(n):
            if -2.0 * x[i] * h[i] > least:
                flip(i, x, h, couplings)
                moved = True
            begin = indptr[i]
            for place in range(begin, indptr[i + 1] if with_pairs else begin):
                j = place - begin if is_dense else indices[place]
                # Both flips together leave the term of the pair as it was.
                if j > i and -2.0 * (x[i] * h[i] + x[j] * h[j]) + 4.0 * data[place] * x[i] * x[j] > least:
                    flip(i, x, h, couplings)
                    flip(j, x, h, couplings)
                    moved = True
