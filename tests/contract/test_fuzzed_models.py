"""Random models of all sizes and scales: no method proves what is wrong, calls wrong numbers exact, or gives NaN.

Warnings are errors in these tests, those of numpy too. An error of ours is an answer.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

import spectralz as sz
from spectralz.errors import SpectralzError
from tests.contract.fuzz import CELLS_FOR_HANDOVER, HANDOVERS, assert_holds, assert_means_hold, random_model
from tests.helpers import with_slow
from tests.reference import states

RUNS = [(name, {}) for name in sz.METHODS]
RUNS += [("auto", {"exclude": ["exact"]})]
RUNS += [("spectral", {"diagonal": name}) for name in ("zero", "max_eigenvalue", "diagonally_dominant")]
MODELS, MODELS_IF_SLOW = 40, 440
# An answer that says itself that it is not to be trusted is none of these.
pytestmark = pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")
AT_A_TIME = 10


@pytest.fixture(autouse=True)
def quick_handovers(monkeypatch):
    for name in HANDOVERS:
        monkeypatch.setattr(name, CELLS_FOR_HANDOVER)


def check(seed: int) -> None:
    model = random_model(seed)
    if model is None:
        return
    truth = states.log_z(model)
    for method, options in RUNS:
        with suppress(SpectralzError):
            assert_holds(model, method, truth, **options)
        if sz.METHODS[method].gives_marginals:
            with suppress(SpectralzError):
                assert_means_hold(model, method, **options)


@pytest.mark.parametrize("first", with_slow(range(0, MODELS, AT_A_TIME), [0, 10, 30]))
def test_no_method_is_wrong_about_fuzzed_models(first):
    for seed in range(first, first + AT_A_TIME):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(MODELS, MODELS_IF_SLOW, AT_A_TIME))
def test_no_method_is_wrong_about_many_fuzzed_models(first):
    for seed in range(first, first + AT_A_TIME):
        check(seed)


def test_most_fuzzed_models_are_models():
    made = [random_model(seed) for seed in range(100)]
    assert sum(model is not None for model in made) > 80
    assert sum(model is not None and model.factors is not None for model in made) > 50
