"""The grids and RBMs of the UAI 2014 competition: log Z to 1e-6, answers to their printed digits."""

from __future__ import annotations

import math

import numpy as np
import pytest

import spectralz as sz
from tests.helpers import with_slow

EXACT = {
    "Grids_11": 390.077166474,
    "Grids_12": 697.881205530,
    "Grids_13": 767.500738113,
    "Grids_14": 1146.142774692,
    "Grids_15": 671.739257013,
    "Grids_16": 1531.487262533,
    "Grids_17": 3020.954470870,
    "Grids_18": 4519.921660760,
    "DBN_11": 134.771832332,
    "DBN_12": 145.400677667,
    "DBN_13": 153.245747827,
}


def same_digits(value: float, printed: str) -> bool:
    """Whether a value rounds to a number as printed, with six significant digits."""
    return abs(value - float(printed)) <= 0.5000001 * 10.0 ** (math.floor(math.log10(abs(float(printed)))) - 5)


@pytest.mark.parametrize("name", EXACT)
def test_log_z(uai_folder, name):
    path = uai_folder / f"{name}.uai"
    result = sz.log_z(sz.read(path, evidence=f"{path}.evid"))
    assert abs(result.log_z - EXACT[name]) <= 1e-6
    printed = (uai_folder / f"{name}.uai.PR").read_text().split()[1]
    assert same_digits(result.log_z / math.log(10), printed)
    assert result.details["memory"] < 2**30


@pytest.mark.parametrize("name", with_slow(EXACT, ["Grids_15", "Grids_16", "DBN_12", "DBN_13"]))
def test_marginals(uai_folder, name):
    reference = uai_folder / f"{name}.uai.MAR"
    if not reference.is_file():
        pytest.skip(f"no published marginals for {name}")
    words = reference.read_text().split()[2:]
    printed = np.array(words).reshape(-1, 3)[:, 1:]
    found = sz.marginals(sz.read(uai_folder / f"{name}.uai"))
    for p, digits in zip(found.probability.ravel(), printed.ravel(), strict=True):
        assert same_digits(p, digits)
