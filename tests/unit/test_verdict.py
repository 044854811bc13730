"""The verdict on answers that are made up: a pure function, without a portfolio, a model or a clock."""

from __future__ import annotations

import math

import pytest

import spectralz as sz
from spectralz.portfolio.answers import conclude
from spectralz.result import Bounds, BoundsRow
from tests.helpers import answer, bracket, verdicts


def judged(lower=0.0, upper=20.0, **answers):
    """Judge answers, each given as (log Z, std_error, trusted)."""
    return conclude([answer(name, *values) for name, values in answers.items()], bracket(lower, upper), {})


def test_the_smallest_error_bar_is_chosen_where_all_agree():
    found = judged(ep=(10.0, 0.5, True), annealing=(10.1, 0.1, True), states=(10.3, 0.3, True))
    assert found.chosen == "annealing"
    assert (found.log_z, found.std_error) == (10.1, 0.1)
    assert verdicts(found) == {
        "ep": "agrees",
        "annealing": "chosen",
        "states": "agrees",
        "mf": "bound",
        "sdp": "bound",
    }
    assert found.trusted
    assert found.why.startswith("annealing has the smallest error bar; ep (10.000000 ± 0.5) and states ")
    assert found.why.endswith(" agree")


def test_a_disagreement_is_reported_and_covered_by_two_standard_errors():
    found = judged(states=(10.0, 0.01, True), annealing=(11.0, 0.1, True))
    assert found.chosen == "states"
    assert found.log_z == 10.0
    assert found.std_error == pytest.approx(0.5)
    assert verdicts(found)["annealing"] == "disagrees"
    assert not found.trusted
    assert "annealing (11.000000 ± 0.1)" in found.why


def test_samples_win_over_a_smaller_error_that_is_not_theirs():
    found = judged(ep=(10.0, 0.001, True), annealing=(11.0, 0.1, True))
    assert (found.chosen, found.log_z) == ("annealing", 11.0)
    assert found.std_error == pytest.approx(0.5)
    assert verdicts(found)["ep"] == "disagrees"
    assert not found.trusted
    assert "of those with samples" in found.why
    agreeing = judged(ep=(10.9, 0.001, True), annealing=(11.0, 0.1, True))
    assert (agreeing.chosen, agreeing.trusted) == ("ep", True)


def test_an_answer_without_samples_needs_more_than_a_sampler_in_doubt_that_contradicts_it():
    found = judged(ep=(10.0, 0.001, True), annealing=(11.0, 0.1, False))
    assert (found.chosen, found.log_z, found.trusted) == ("ep", 10.0, False)
    assert found.std_error == pytest.approx(0.5)
    assert verdicts(found)["annealing"] == "disagrees"
    assert found.why.endswith(" disagrees, and nothing confirms this answer: do not trust")
    outside = judged(ep=(10.0, 0.001, True), annealing=(-5.0, 0.1, False))
    assert (outside.log_z, outside.std_error, outside.trusted) == (10.0, 0.001, False)
    assert " lies outside the proven bounds, and nothing confirms this" in outside.why
    agreeing = judged(ep=(10.0, 0.001, True), annealing=(10.3, 0.2, False))
    assert (agreeing.chosen, agreeing.trusted) == ("ep", True)
    assert agreeing.why.endswith(" agrees despite failed checks")
    # An error so wide that half of Z could be missing is no check, and is not called one: like none at all.
    vague = judged(ep=(10.0, 0.001, True), annealing=(11.0, 0.5, False))
    assert (vague.chosen, vague.trusted) == ("ep", True)
    assert vague.why.endswith(" is too large for a check")
    alone = judged(ep=(10.0, 0.001, True))
    assert alone.trusted
    assert alone.why.endswith("there was no second method to check it")


CHECKED = [
    ({"mps": (10.0, 0.001, True), "annealing": (10.1, 0.1, True)}, ("annealing",)),
    (
        {"annealing": (10.1, 0.1, True), "mps": (10.0, 0.001, True), "states": (10.1, 0.2, True)},
        ("annealing", "states"),
    ),
    ({"annealing": (10.0, 0.01, True), "ep": (10.1, 0.1, True)}, ("ep",)),
    # The two share their populations.
    ({"states": (10.0, 0.01, True), "annealing": (10.1, 0.1, True)}, ()),
    ({"states": (10.0, 0.01, True), "annealing": (10.1, 0.1, True), "ep": (10.0, 0.1, True)}, ("ep",)),
    # Neither has samples.
    ({"ep": (10.0, 0.01, True), "bp": (10.1, 0.1, True)}, ()),
    # A sampler in doubt checks what has no samples, and nothing else.
    ({"ep": (10.0, 0.01, True), "annealing": (10.1, 0.1, False)}, ("annealing",)),
    ({"mps": (10.0, 0.01, True), "annealing": (10.1, 0.1, False)}, ()),
    ({"ep": (10.0, 0.01, True), "mps": (10.1, 0.1, True), "annealing": (10.1, 0.1, False)}, ("mps",)),
    # log 2 / 3 is 0.231.
    ({"ep": (10.0, 0.01, True), "annealing": (10.1, 0.23, True)}, ("annealing",)),
    ({"ep": (10.0, 0.01, True), "annealing": (10.1, 0.24, True)}, ()),
    ({"ep": (10.0, 0.01, True), "annealing": (10.1, 0.24, False)}, ()),
    ({"ep": (10.0, 0.01, True)}, ()),
]


@pytest.mark.parametrize(("answers", "names"), CHECKED)
def test_a_check_is_an_accurate_answer_of_another_kind_that_agrees(answers, names):
    found = judged(**answers)
    assert (found.trusted, found.checked_by) == (True, names)


UNTRUSTED = [
    {"mps": (10.0, 0.01, True), "annealing": (10.01, 0.1, True), "ep": (12.0, 0.1, True)},
    {"ep": (10.0, 0.01, True), "annealing": (12.0, 0.1, False)},
    {"ep": (0.0, 0.1, True), "annealing": (-0.2, 0.01, False)},  # it agrees, but the bounds forbid it
    {"mps": (10.0, 0.01, False), "annealing": (10.01, 0.1, False)},
    {},
]


@pytest.mark.parametrize("answers", UNTRUSTED)
def test_what_is_not_trusted_is_not_called_checked(answers):
    found = judged(**answers)
    assert (found.trusted, found.checked_by) == (False, ())


def test_three_joint_errors_apart_is_still_agreement():
    agree = judged(a=(10.0, 0.03, True), b=(10.149, 0.04, True))
    differ = judged(a=(10.0, 0.03, True), b=(10.151, 0.04, True))
    assert verdicts(agree)["b"] == "agrees"
    assert agree.trusted
    assert verdicts(differ)["b"] == "disagrees"
    assert not differ.trusted


def test_what_the_bounds_forbid_is_not_believed():
    found = judged(ep=(25.0, 0.01, True), annealing=(10.0, 0.1, True))
    assert found.chosen == "annealing"
    assert verdicts(found)["ep"] == "not trusted"
    row = next(row for row in found.tried if row.method == "ep")
    assert row.why == "outside the proven bounds"
    # Two standard errors outside may be chance, and the answer is then moved to the bound.
    found = judged(annealing=(20.15, 0.1, True))
    assert found.log_z == 20.0


def test_where_nothing_is_trusted_the_error_is_widened_but_not_beyond_the_bracket():
    found = judged(annealing=(10.0, 0.1, False), ep=(10.5, 0.3, False))
    assert found.chosen == "annealing"
    assert found.std_error == pytest.approx(0.125)
    assert not found.trusted
    assert found.why.endswith("annealing has the smallest error, widened 1.25 times")
    far = judged(annealing=(10.0, 0.1, False), ep=(14.0, 1.0, False))
    assert far.std_error == pytest.approx(2.0)
    assert far.why.endswith("widened to cover the others")
    vague = judged(annealing=(10.0, 0.1, False), ep=(14.0, 3.0, False))
    assert vague.std_error == pytest.approx(0.125)
    narrow = judged(9.9, 10.2, annealing=(10.0, 0.08, False))
    assert narrow.std_error == pytest.approx(0.3 / math.sqrt(12.0))
    assert "widened" not in narrow.why
    assert narrow.why.endswith(", limited by the width of the proven bounds")


def test_without_any_answer_it_is_the_middle_of_the_bounds():
    found = judged(2.0, 6.0)
    assert found.chosen is None
    assert found.log_z == 4.0
    assert found.std_error == pytest.approx(4.0 / math.sqrt(12.0))
    assert not found.trusted


def test_an_exact_answer_has_the_error_of_its_enclosure_and_wins():
    exact = answer("states", 10.0, None, None, sz.Kind.EXACT, lower=10.0 - 1e-12, upper=10.0 + 1e-12)
    found = conclude([answer("annealing", 10.05, 0.1, True), exact], bracket(0.0, 20.0), {})
    assert found.chosen == "states"
    assert found.std_error == pytest.approx(1e-12, rel=1e-3)


def test_an_answer_without_an_error_is_never_chosen():
    found = judged(ep=(10.0, None, False), annealing=(12.0, 1.0, False))
    assert found.chosen == "annealing"
    assert judged(ep=(10.0, None, False)).chosen is None


def test_what_was_not_run_has_its_row_and_so_has_a_bounder_that_found_nothing():
    rows = (BoundsRow("mf", 0.0, 9.0, 0.1, "half"), BoundsRow("trw", None, None, 0.2, "not run: too long"))
    found = conclude([], Bounds.best_of(rows, 0.3), {"ep": "would take an hour"})
    ep, mf, trw = found.tried
    assert (ep.method, ep.verdict, ep.why) == ("ep", "not run", "would take an hour")
    assert (mf.verdict, mf.lower, mf.upper, mf.seconds) == ("bound", 0.0, 9.0, 0.1)
    assert (trw.verdict, trw.why) == ("not run", "not run: too long")


def test_a_single_answer_says_that_nothing_checked_it():
    assert judged(annealing=(10.0, 0.1, True)).why.endswith("there was no second method to check it")
