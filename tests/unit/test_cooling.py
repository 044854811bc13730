"""Compiled simulated annealing: its random numbers, and the law that states follow at one temperature."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import spectralz as sz
from spectralz.kernels.sampling import tabu
from spectralz.kernels.sampling.term_sweeps import cool
from tests.reference.states import all_states, places_of


def test_random_numbers_are_those_of_marsaglias_xorshift():
    @numba.njit
    def draw(state, count):
        return np.array([tabu.random_number(state) for _ in range(count)])

    drawn, x = draw(np.array([2026], dtype=np.uint32), 50), 2026
    for number in drawn.tolist():
        x ^= x << 13 & 0xFFFFFFFF
        x ^= x >> 17
        x ^= x << 5 & 0xFFFFFFFF
        assert number == x


@pytest.mark.parametrize("is_dense", [False, True])
def test_states_follow_the_law_at_one_temperature(is_dense):
    model = sz.generators.complete(4, 0.8, seed=1) if is_dense else sz.generators.chain(4, 0.7, 0.3)
    couplings, beta = model.storage.for_kernels(), 1.3
    assert couplings.is_dense == is_dense
    weights = np.exp(beta * model.log_weight(all_states(4)))
    counts = np.zeros(16)
    x, random = np.ones(4, dtype=np.int8), np.array([7], dtype=np.uint32)
    h = model.field + couplings.times(x.astype(float))
    size = 20_000
    for _ in range(size):
        cool(x, h, couplings, model.terms_by_spin, np.full(3, beta), random)
        counts[places_of(x[None])[0]] += 1
    assert h == pytest.approx(model.field + couplings.times(x.astype(float)), abs=1e-9)
    expected = size * weights / weights.sum()
    # Neighboring states are alike, so the sum of squares is somewhat above that of independent ones, about 15.
    assert ((counts - expected) ** 2 / expected).sum() < 60.0


def test_cooling_ends_in_heavy_states():
    model = sz.generators.complete(14, 1.0, seed=2)
    couplings, best = model.storage.for_kernels(), -np.inf
    for seed in range(1, 21):
        x = np.random.default_rng(seed).choice(np.array([-1, 1], dtype=np.int8), size=14)
        h = model.field + couplings.times(x.astype(float))
        cool(x, h, couplings, model.terms_by_spin, np.geomspace(0.1, 5.0, 300), np.array([seed], dtype=np.uint32))
        best = max(best, float(model.log_weight(x)))
    assert best == pytest.approx(float(np.max(model.log_weight(all_states(14)))))
