"""No wrong bound, no false "exact", no number that is none: thousands of models against whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tests import fuzzed

EACH = 300
MODELS = 10_000


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(EACH, MODELS, EACH))]
)
def test_what_is_proven_of_fuzzed_models_is_true(first):
    models = {index: fuzzed.fuzzed(np.random.default_rng([1, index])) for index in range(first, first + EACH)}
    broken = {index: words for index, model in models.items() if (words := fuzzed.broken_promises(model))}
    assert not broken
