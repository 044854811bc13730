"""No wrong bound, no false "exact", no number that is none: thousands of models against whole numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests import fuzzed
from tests.reference import states

EACH = 200
MODELS = 10_000


@pytest.fixture(autouse=True)
def coarse_grids(monkeypatch):
    """The dynamic program, where the quadrature hands over to it, proves as much on a coarser grid."""
    for method in ("spectral", "quadrature"):
        monkeypatch.setattr(f"spectralz.methods.{method}.CELLS_FOR_HANDOVER", 20_000)


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(EACH, MODELS, EACH))]
)
def test_what_is_proven_of_fuzzed_models_is_true(first):
    models = {index: fuzzed.fuzzed(np.random.default_rng([1, index])) for index in range(first, first + EACH)}
    broken = {index: words for index, model in models.items() if (words := fuzzed.broken_promises(model))}
    assert not broken


def test_broken_promises_are_found():
    """A sum that loses a term is a wrong bound, and so is one that is off by a unit of the last place."""
    model = fuzzed.fuzzed(np.random.default_rng(3))
    result = fuzzed.PROVING["exact"].run(model)
    truth = states.log_z(model)
    assert fuzzed.broken(result, truth, 1.0) == []
    beyond = np.nextafter(float(truth), np.inf)
    assert len(fuzzed.broken(replace(result, lower=beyond), truth, 1.0)) == 1
    assert len(fuzzed.broken(replace(result, upper=np.nextafter(float(truth), -np.inf)), truth, 1.0)) == 1
    assert len(fuzzed.broken(replace(result, log_z=result.log_z + 1e-3), truth, 1.0)) == 1
