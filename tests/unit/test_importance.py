"""What contractions and samples say together: every rule of trust on numbers made up for it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from spectralz.parts.importance import Contractions, Weighted, judge, log_mixture, missed_share

SAME = Contractions(10.0, coarse=10.001, reverse=10.0, rounding=1e-12, discarded=1e-12, discarded_coarsely=1e-6)
SAMPLE = Weighted(np.linspace(9.99, 10.01, 400), np.repeat([0, 1], 200), np.zeros(400))


def test_a_sample_is_the_mean_of_its_weights():
    weights = np.array([1.0, 2.0, 6.0])
    sample = Weighted(np.log(weights), np.zeros(3, np.int64), np.zeros(3))
    assert sample.log_z == pytest.approx(math.log(3.0))
    assert sample.shares == pytest.approx(weights / 9.0)
    assert sample.effective == pytest.approx(81.0 / 41.0)
    relative = weights.std(ddof=1) / weights.mean() / math.sqrt(3.0)
    assert sample.std_error == pytest.approx(relative * (1.0 + 20.0 / sample.effective))


def test_contractions_that_agree_decide_alone_and_with_a_sample():
    for sample in (None, SAMPLE):
        found = judge(SAME, sample)
        assert found.is_trusted
        assert found.log_z == 10.0
        assert 1e-6 < found.std_error < 1e-4


def test_where_contractions_disagree_the_sample_decides_with_what_it_cannot_see():
    found = judge(replace(SAME, reverse=10.05), SAMPLE)
    assert found.is_trusted
    assert found.log_z == SAMPLE.log_z
    assert found.std_error == pytest.approx(0.3 * 3.0 * 0.05)
    # Five draws: what is rarer may be missing.
    assert judge(replace(SAME, reverse=10.005), SAMPLE).std_error == pytest.approx(5.0 / 400)
    assert not judge(replace(SAME, reverse=10.05), None).is_trusted


@pytest.mark.parametrize(
    ("contractions", "sample", "why"),
    [
        (SAME, replace(SAMPLE, log_weight=np.append(np.zeros(399), 20.0)), "too few to trust"),
        (SAME, replace(SAMPLE, negative=np.full(400, 0.2)), "negative"),
        (SAME, replace(SAMPLE, missed=0.1), "out of the sample's reach"),
        (SAME, replace(SAMPLE, alone=((10.0, 0.01), (12.0, 0.01))), "in its reverse give different answers"),
        (replace(SAME, reverse=4.0), SAMPLE, "the bond is too small"),
        (replace(SAME, log_z=10.3, coarse=10.3, reverse=10.3), SAMPLE, "too much for both"),
        (replace(SAME, reverse=None), SAMPLE, "not made"),
        (replace(SAME, coarse=None), None, "nothing to compare it with"),
        (replace(SAME, coarse=11.0), None, "disagree by 1"),
    ],
)
def test_what_is_not_believed_says_why_and_has_an_error_that_covers_all(contractions, sample, why):
    found = judge(contractions, sample)
    assert not found.is_trusted
    assert why in found.complaint
    answers = [each for each in (contractions.log_z, contractions.reverse) if each is not None]
    if sample is not None and why != "not made":
        answers.append(sample.log_z)
    assert all(abs(found.log_z - each) <= found.std_error for each in answers)


def test_heavy_states_count_once_and_only_where_q_is_too_small():
    x = np.array([[1, 1], [1, 1], [1, -1], [-1, -1]], dtype=np.int8)
    log_weight = np.log([0.1, 0.1, 0.2, 0.3])
    log_q = np.log([1e-6, 1e-6, 1e-7, 0.3])
    assert missed_share(x, log_weight, log_q, 0.0, 1000) == pytest.approx(0.3, abs=1e-5)


def test_a_mixture_is_the_mean_of_densities():
    densities = np.array([[0.1, 0.2], [0.3, 1e-300]])
    assert np.exp(log_mixture(np.log(densities))) == pytest.approx([0.2, 0.1])


def test_a_poor_reverse_order_does_not_spoil_a_good_one():
    """What it discards explains what it says; what that does not explain still counts, and so do equals."""
    good = {"log_z": 10.0, "coarse": 10.0, "rounding": 1e-12, "discarded": 1e-20}
    assert Contractions(**good, reverse=10.002, discarded_in_reverse=1e-6).error < 1e-9
    assert Contractions(**good, reverse=10.1, discarded_in_reverse=1e-6).error > 0.2
    alike = Contractions(10.0, coarse=10.0, reverse=10.002, rounding=1e-12, discarded=1e-7, discarded_in_reverse=1e-6)
    assert alike.error >= 0.003
