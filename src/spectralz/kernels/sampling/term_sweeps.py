"""Heat-bath sweeps of models with terms of three and more spins, and quenches and cooling of all models, compiled.

Beside the spins of 64 states stands the sign of every term, the product of its spins, which is kept up to date: a term
gives a spin the field c times its sign times the spin, and a spin that flips turns the signs of its terms. So each term
of a spin costs little more than a neighbor, however many spins it has. Pairs are as in ``lanes.py``, whose path, random
numbers and energies are used here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectralz._support.compiling import compiled, inlined, inner
from spectralz.kernels.sampling.double_lanes import drawn_in_double
from spectralz.kernels.sampling.heat_bath import tell_neighbors
from spectralz.kernels.sampling.lanes import LANES, SparsePath, drawn, next_word, record_energies
from spectralz.kernels.sampling.tabu import SCALE, random_number

if TYPE_CHECKING:
    from spectralz.kernels.arrays import FloatArray, RandomArray, SpinArray
    from spectralz.kernels.coupling import Couplings
    from spectralz.kernels.terms import SpinTerms


# Terms of up to so many spins are in the fields of single states; a flip turns only the signs of wider ones.
WIDEST_IN_FIELDS = 8
# A flip that loses more than this, in units of the temperature, is not even considered: its odds are those of a random
# number of 32 bits being zero.
HOPELESS = 22.0


class TermPath(NamedTuple):
    """The models on a path: fields and pairs of the base and what is added to them; and terms, which are added too."""

    pairs: SparsePath
    terms: SpinTerms


@compiled
def fill_signs(x: SpinArray, signs: SpinArray, terms: SpinTerms) -> None:
    """Write the product of the spins of each term to ``signs``, (m, 64); ``x`` is (n, 64)."""
    for k in range(len(signs)):
        begin = terms.start[k]
        for lane in range(LANES):
            signs[k, lane] = x[terms.spin[begin], lane]
        for place in range(begin + 1, terms.start[k + 1]):
            i = terms.spin[place]
            for lane in range(LANES):
                signs[k, lane] = np.int8(signs[k, lane] * x[i, lane])


@inlined
def _add_up(
    i: int, x: SpinArray, signs: SpinArray, field: Any, couplings: Any, weights: Any, path: TermPath, log_odds: Any
) -> None:
    """Write the log-odds of spin i in all lanes, given twice the field, couplings and weights at the point."""
    pairs, terms = path.pairs, path.terms
    for lane in range(LANES):
        log_odds[lane] = 0.0
    for place in range(terms.first[i], terms.first[i + 1]):
        k = terms.of_spin[place]
        weight = weights[k]
        for lane in range(LANES):
            log_odds[lane] += weight * np.float32(signs[k, lane])
    for lane in range(LANES):
        log_odds[lane] = log_odds[lane] * np.float32(x[i, lane]) + field
    for place in range(pairs.indptr[i], pairs.indptr[i + 1]):
        j, coupling = pairs.indices[place], couplings[place]
        for lane in range(LANES):
            log_odds[lane] += coupling * np.float32(x[j, lane])


@inner
def _turn_signs(i: int, turned: SpinArray, signs: SpinArray, terms: SpinTerms) -> None:
    """Turn the signs of the terms of spin i where it has flipped: ``turned`` is -1 there, otherwise 0."""
    for place in range(terms.first[i], terms.first[i + 1]):
        k = terms.of_spin[place]
        for lane in range(LANES):
            signs[k, lane] = np.int8((signs[k, lane] ^ turned[lane]) - turned[lane])


@inner
def _record(x: SpinArray, signs: SpinArray, path: TermPath, energies: FloatArray, k: int) -> None:
    """Write E - E_0 of the states into row k."""
    record_energies(x, path.pairs, energies, k)
    for term in range(len(signs)):
        weight = path.terms.weight[term]
        for lane in range(LANES):
            energies[k, lane] += weight * np.float64(np.int32(signs[term, lane]))


@compiled
def sweep_terms(
    x: SpinArray, signs: SpinArray, state: RandomArray, betas: FloatArray, sweeps: int, path: TermPath
) -> FloatArray:
    """Sweep over 64 states at each point of the path in turn; return their energies there, (len(betas), 64).

    ``x`` is (n, 64), ``state`` (4, 64), and ``signs``, those of the terms, (m, 64).
    """
    pairs, terms = path
    energies, log_odds, turned = np.empty((len(betas), LANES)), np.empty(LANES, np.float32), np.empty(LANES, np.int8)
    couplings, weights = np.empty(len(pairs.data), np.float32), np.empty(len(signs), np.float32)
    for k in range(len(betas)):
        beta = betas[k]
        for place in range(len(couplings)):
            couplings[place] = 2.0 * (pairs.data[place] + beta * pairs.data_change[place])
        for term in range(len(weights)):
            weights[term] = 2.0 * beta * terms.weight[term]
        for _ in range(sweeps):
            for i in range(len(x)):
                field = np.float32(2.0 * (pairs.field[i] + beta * pairs.field_change[i]))
                _add_up(i, x, signs, field, couplings, weights, path, log_odds)
                turns = np.int8(0)
                for lane in range(LANES):
                    spin = np.int8(drawn(log_odds[lane], next_word(state, lane)))
                    turned[lane] = np.int8((spin ^ x[i, lane]) >> 1)
                    turns |= turned[lane]
                    x[i, lane] = spin
                if turns != 0:
                    _turn_signs(i, turned, signs, terms)
        _record(x, signs, path, energies, k)
    return energies


@compiled
def sweep_terms_in_double(
    x: SpinArray, signs: SpinArray, state: RandomArray, betas: FloatArray, sweeps: int, path: TermPath
) -> FloatArray:
    """Sweep as :func:`sweep_terms` does, with all numbers in double precision."""
    pairs, terms = path
    energies, log_odds, turned = np.empty((len(betas), LANES)), np.empty(LANES), np.empty(LANES, np.int8)
    couplings, weights = np.empty(len(pairs.data)), np.empty(len(signs))
    for k in range(len(betas)):
        beta = betas[k]
        for place in range(len(couplings)):
            couplings[place] = 2.0 * (pairs.data[place] + beta * pairs.data_change[place])
        for term in range(len(weights)):
            weights[term] = 2.0 * beta * terms.weight[term]
        for _ in range(sweeps):
            for i in range(len(x)):
                field = 2.0 * (pairs.field[i] + beta * pairs.field_change[i])
                _add_up(i, x, signs, field, couplings, weights, path, log_odds)
                for lane in range(LANES):
                    spin = drawn_in_double(log_odds[lane], state, lane)
                    turned[lane] = np.int8((spin ^ x[i, lane]) >> 1)
                    x[i, lane] = spin
                _turn_signs(i, turned, signs, terms)
        _record(x, signs, path, energies, k)
    return energies


# ------------------------------------------------------------------------------------------ single states, and fields


@compiled
def add_fields(x: SpinArray, h: FloatArray, terms: SpinTerms) -> None:
    """Add to the fields of states, one per row, what the terms give them: c times the product of the other spins."""
    signs = np.empty(len(terms.weight), np.int8)
    for r in range(len(x)):
        _read_signs(x[r], signs, terms)
        _add_terms(x[r], h[r], signs, 0, 1.0, terms)


@inner
def _read_signs(x: SpinArray, signs: SpinArray, terms: SpinTerms) -> None:
    """Write the product of the spins of each term of one state."""
    for k in range(len(signs)):
        sign = np.int8(1)
        for place in range(terms.start[k], terms.start[k + 1]):
            sign = np.int8(sign * x[terms.spin[place]])
        signs[k] = sign


@inner
def _add_terms(x: SpinArray, h: FloatArray, signs: SpinArray, first: int, times: float, terms: SpinTerms) -> None:
    """Add to the fields of a state what the terms from the first one on give them, so many times."""
    for k in range(first, len(signs)):
        for place in range(terms.start[k], terms.start[k + 1]):
            i = terms.spin[place]
            h[i] += times * terms.weight[k] * signs[k] * x[i]


@inner
def _first_wide(terms: SpinTerms) -> int:
    """Return the number of the first term of those at the end that are wide; terms are in order of their sizes."""
    first = len(terms.weight)
    while first and terms.start[first] - terms.start[first - 1] > WIDEST_IN_FIELDS:
        first -= 1
    return first


@inner
def _gain(i: int, x: SpinArray, h: FloatArray, signs: SpinArray, first_wide: int, terms: SpinTerms) -> float:
    """Return spin i times its field, given its field without wide terms, and the signs of these."""
    gain = h[i] * x[i]
    place = terms.first[i + 1] - 1  # its terms are in order
    while place >= terms.first[i] and terms.of_spin[place] >= first_wide:
        gain += terms.weight[terms.of_spin[place]] * signs[terms.of_spin[place]]
        place -= 1
    return gain


@inner
def _flip(
    i: int, x: SpinArray, h: FloatArray, signs: SpinArray, first_wide: int, couplings: Couplings, terms: SpinTerms
) -> None:
    """Flip spin i; update the signs of its terms, and the fields of all that share a pair or a narrow term with it."""
    x[i] = -x[i]
    tell_neighbors(i, x[i], h, couplings)
    for place in range(terms.first[i], terms.first[i + 1]):
        k = terms.of_spin[place]
        signs[k] = -signs[k]
        if k < first_wide:
            signed = 2.0 * terms.weight[k] * signs[k]
            for other in range(terms.start[k], terms.start[k + 1]):
                j = terms.spin[other]
                if j != i:
                    h[j] += signed * x[j]


@compiled
def descend(x: SpinArray, h: FloatArray, sweeps: int, couplings: Couplings, terms: SpinTerms) -> None:
    """Flip spins that are opposite to their field until none is: a quench to a local maximum of the weight."""
    signs, wide = np.empty(len(terms.weight), np.int8), _first_wide(terms)
    for r in range(len(x)):
        state, fields = x[r], h[r]
        _read_signs(state, signs, terms)
        _add_terms(state, fields, signs, wide, -1.0, terms)
        for _ in range(sweeps):
            still = True
            for i in range(x.shape[1]):
                if _gain(i, state, fields, signs, wide, terms) < 0.0:
                    _flip(i, state, fields, signs, wide, couplings, terms)
                    still = False
            if still:
                break
        _add_terms(state, fields, signs, wide, 1.0, terms)


@compiled
def cool(
    x: SpinArray, h: FloatArray, couplings: Couplings, terms: SpinTerms, betas: FloatArray, random: RandomArray
) -> None:
    """Sweep a state with the fields ``h`` at one inverse temperature after the other, by Metropolis's rule.

    Where it is cold, few spins flip: a spin that stays costs a comparison, and only flips cost as much as they have
    neighbors. So slow cooling takes a fraction of the time of sweeps that sum up every field.
    """
    signs, wide = np.empty(len(terms.weight), np.int8), _first_wide(terms)
    _read_signs(x, signs, terms)
    _add_terms(x, h, signs, wide, -1.0, terms)
    for beta in betas:
        for i in range(len(x)):
            loss = 2.0 * beta * _gain(i, x, h, signs, wide, terms)
            if loss <= 0.0 or (loss < HOPELESS and random_number(random) * SCALE < np.exp(-loss)):
                _flip(i, x, h, signs, wide, couplings, terms)
    _add_terms(x, h, signs, wide, 1.0, terms)
