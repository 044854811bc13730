"""What contractions and samples say together: every rule of trust on numbers made up for it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from spectralz.trust.importance import Contractions, Weighted, judge_contractions, log_mixture, missed_share

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
        found = judge_contractions(SAME, sample)
        assert found.trusted
        assert found.log_z == 10.0
        assert 1e-6 < found.std_error < 1e-4


def test_where_contractions_disagree_the_sample_decides_with_what_it_cannot_see():
    found = judge_contractions(replace(SAME, reverse=10.05), SAMPLE)
    assert found.trusted
    assert found.log_z == SAMPLE.log_z
    assert found.std_error == pytest.approx(0.3 * 3.0 * 0.05)
    # Five draws: what is rarer may be missing.
    assert judge_contractions(replace(SAME, reverse=10.005), SAMPLE).std_error == pytest.approx(5.0 / 400)
    assert not judge_contractions(replace(SAME, reverse=10.05), None).trusted


@pytest.mark.parametrize(
    ("contractions", "sample", "why"),
    [
        (
            SAME,
            replace(SAMPLE, log_weight=np.append(np.zeros(399), 20.0)),
            "independent ones: do not trust, the bond is too small",
        ),
        (SAME, replace(SAMPLE, negative=np.full(400, 0.2)), "negative"),
        (SAME, replace(SAMPLE, missed=0.1), "the samples miss heavy states with 0.1 of Z"),
        (SAME, replace(SAMPLE, alone=((10.0, 0.01), (12.0, 0.01))), "in the two orders give different answers"),
        (replace(SAME, reverse=4.0), SAMPLE, "differ by 6: do not trust, the bond is too small"),
        (replace(SAME, log_z=10.3, coarse=10.3, reverse=10.3), SAMPLE, "more than their errors: do not trust"),
        (replace(SAME, reverse=None), SAMPLE, "no second contraction checked it"),
        (replace(SAME, coarse=None), None, "no second contraction checked it"),
        (replace(SAME, coarse=11.0), None, "disagree by 1"),
    ],
)
def test_what_is_not_believed_says_why_and_has_an_error_that_covers_all(contractions, sample, why):
    found = judge_contractions(contractions, sample)
    assert not found.trusted
    assert why in found.why
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


# ------------------------------------- constants, on both sides of each: neither half of it nor twice as much would do


def test_the_share_of_a_coarse_error_that_counts():
    """It falls as the root of what was discarded, three times that, from 0.3 down to 0.01."""
    found = Contractions(10.0, coarse=11.0, reverse=10.0, rounding=0.0)
    assert found.error == pytest.approx(0.3)
    assert replace(found, discarded=1e-12, discarded_coarsely=1e-8).error == pytest.approx(3.0 * 1e-2)
    assert replace(found, discarded=1e-12, discarded_coarsely=1e-12).error == pytest.approx(0.3)
    assert replace(found, discarded_coarsely=1e-8).error == pytest.approx(0.01)


def test_a_reverse_order_is_poor_if_it_discards_a_thousand_times_as_much():
    found = Contractions(10.0, coarse=10.0, reverse=10.02, rounding=0.0, discarded_in_reverse=1e-4)
    # Its difference is within three roots of what it discards, and only the order's own three roots are left.
    assert replace(found, discarded=0.8e-7).error == pytest.approx(3.0 * math.sqrt(0.8e-7))
    assert replace(found, discarded=0.8e-7, reverse=10.04).error == pytest.approx(3.0 * (0.04 - 3.0 * 1e-2))
    assert replace(found, discarded=1.2e-7).error == pytest.approx(3.0 * 0.02)
    assert replace(found, discarded=1.2e-7, reverse=10.0).error == pytest.approx(3.0 * 1e-2)


def even(worth, count):
    """So many states, of which some have all of the weight, equally."""
    return Weighted(
        np.append(np.full(worth, 10.0), np.full(count - worth, -90.0)), np.arange(count) % 2, np.zeros(count)
    )


@pytest.mark.parametrize(
    ("believed", "doubted", "why"),
    [
        (even(60, 60), even(40, 40), "; 40 samples are worth only 40.0 independent ones"),
        (even(240, 2000), even(160, 2000), "; 2000 samples are worth only 160.0 independent ones"),
        (replace(SAMPLE, negative=np.full(400, 0.04)), replace(SAMPLE, negative=np.full(400, 0.06)), "negative"),
        (replace(SAMPLE, missed=0.8e-3), replace(SAMPLE, missed=1.2e-3), "the samples miss heavy states"),
        (  # four joint errors, with five draws in 400
            replace(SAMPLE, alone=((10.0, 0.3), (11.8, 0.4))),
            replace(SAMPLE, alone=((10.0, 0.3), (12.3, 0.4))),
            "different answers",
        ),
        (  # the five draws alone
            replace(SAMPLE, alone=((10.0, 0.0), (10.04, 0.0))),
            replace(SAMPLE, alone=((10.0, 0.0), (10.06, 0.0))),
            "different answers",
        ),
    ],
)
def test_samples_are_doubted_from_a_constant_on(believed, doubted, why):
    assert believed.complaint == ""
    assert why in doubted.complaint


def test_states_with_fewer_than_five_expected_draws_may_be_missing():
    x, log_weight = np.array([[1, 1], [1, -1]], dtype=np.int8), np.log([0.3, 0.3])
    for q, missed in ((0.006, 0.0), (0.004, 2.0 * (0.3 - 0.004))):
        assert missed_share(x, log_weight, np.log([q, q]), 0.0, 1000) == pytest.approx(missed)


def test_contractions_alone_are_trusted_up_to_an_error_and_a_spread():
    found = Contractions(10.0, coarse=10.0, reverse=10.0, rounding=0.0, discarded_coarsely=1.0)
    assert judge_contractions(replace(found, reverse=10.005), None).trusted
    assert not judge_contractions(replace(found, reverse=10.008), None).trusted
    assert judge_contractions(replace(found, coarse=10.15), None).trusted
    assert not judge_contractions(replace(found, coarse=10.25), None).trusted


def test_contractions_and_a_sample_differ_by_so_much_that_the_bond_is_too_small():
    for apart, why in ((0.4, "0.4, more than their errors"), (0.6, "differ by 0.6: do not")):
        answers = {"log_z": 10.0 + apart, "coarse": 10.0 + apart, "reverse": 10.0 + apart}
        assert why in judge_contractions(replace(SAME, **answers), SAMPLE).why


def test_the_error_of_a_sample_covers_a_share_of_its_difference_from_the_contraction():
    """Both distributions may lose the same region: then the sample is too small by more than its weights scatter."""
    even = replace(SAMPLE, log_weight=np.full(400, 10.0))
    answer = 10.006
    found = judge_contractions(replace(SAME, log_z=answer, coarse=answer + 0.1, reverse=answer), even)
    assert found.trusted
    assert found.log_z == pytest.approx(10.0)
    assert found.std_error == pytest.approx(0.3 * 0.006)  # without the difference, 0.01 times 0.1


def test_contractions_and_a_sample_agree_up_to_four_errors():
    uneven = replace(SAMPLE, log_weight=10.0 + np.tile([-1.5, 1.5], 200))
    for errors, trusted in ((3.6, True), (4.4, False)):
        answer = uneven.log_z + errors * uneven.std_error
        found = judge_contractions(replace(SAME, log_z=answer, coarse=answer, reverse=answer), uneven)
        assert found.trusted == trusted
        assert found.log_z == (answer if trusted else uneven.log_z)
