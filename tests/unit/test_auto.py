"""The method that chooses: what it finds on real models, and how it ends. ``test_verdict.py`` has its judgment."""

from __future__ import annotations

import itertools
import json
import math
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

import spectralz as sz
from spectralz._support.deadline import Deadline
from spectralz._support.progress import listening
from spectralz.methods.base import Outcome
from spectralz.portfolio import auto, policy, schedule
from spectralz.portfolio.answers import Answers
from spectralz.portfolio.bracket import BOUNDERS
from spectralz.portfolio.components import added, error_of_sum
from tests.helpers import (
    answer,
    bracket,
    interrupted,
    interrupting,
    started,
    verdicts,
    wait_until,
    with_slow,
)

# What a budget buys is then the same on every machine, and nothing waits for it.
pytestmark = [
    pytest.mark.usefixtures("clock"),
    pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning"),  # test_budgets.py has it
]


def test_what_a_portfolio_found_becomes_one_outcome():
    whole = Deadline.after(1.0)
    ep, annealed = answer("ep", 10.0, 0.01, True), answer("annealing", 10.02, 0.1, True)
    answers = Answers(bracket(0.0, 20.0)).with_answer(ep)
    outcome = schedule.outcome_of(answers.with_answer(annealed), whole)
    assert (outcome.log_z, outcome.std_error) == (10.0, 0.01)
    assert (outcome.lower, outcome.upper) == (0.0, 20.0)
    assert outcome.status.converged
    assert (outcome.trusted, outcome.checked_by) == (True, ("annealing",))
    assert outcome.details["why"] == outcome.status
    assert outcome.details["budget"] == 1.0
    rival = schedule.outcome_of(answers.with_answer(answer("annealing", 11.0, 0.1, True)), whole)
    assert not rival.trusted
    assert not rival.status.converged
    stopped = schedule.outcome_of(replace(answers, is_interrupted=True), whole)
    assert stopped.interrupted
    assert stopped.trusted
    assert not stopped.status.converged
    assert stopped.status.startswith("interrupted: ep has")


# --------------------------------------------------------------------------------------------------- real models

FAMILIES = {
    "complete": lambda s, seed: sz.generators.complete(16, s, seed),
    "sparse": lambda s, seed: sz.generators.erdos_renyi(16, 0.5, s, seed),
    "bipartite": lambda s, seed: sz.generators.bipartite(16, s, seed),
}


@pytest.mark.parametrize(
    ("strength", "family"),
    with_slow(
        itertools.product([0.05, 0.3, 1.0, 8.0], FAMILIES),
        [(0.05, "complete"), (0.3, "sparse"), (1.0, "complete"), (8.0, "complete"), (8.0, "sparse")],
    ),
)
def test_answers_are_good_and_their_errors_honest(family, strength):
    model = FAMILIES[family](strength, 11)
    truth = sz.log_z(model, "exact").log_z
    result = sz.log_z(model, exclude=["exact"], work=2e9)
    assert abs(result.log_z - truth) <= 3 * result.std_error
    # The error of a sum over 39 states that hold all of P(x) covers what populations may have missed.
    assert result.std_error < (0.006 if (strength, family) == (8.0, "complete") else 0.003)
    assert result.lower <= truth <= result.upper
    assert result.kind is sz.Kind.ESTIMATE
    assert result.trusted
    for trial in result.tried:
        if trial.verdict in ("chosen", "agrees"):
            # All states of one side of a bipartite model are summed over, without an error.
            assert abs(trial.log_z - truth) <= 4 * (trial.std_error or 1e-10), trial.method
    names = {row.method for row in result.tried}
    assert names >= {"annealing", "ep", "mf", "mps", "sdp", "states", "trivial", "wmbe"}
    keys = {"method", "log_z", "std_error", "lower", "upper", "seconds", "verdict", "why"}
    assert all(set(row.to_dict()) == keys for row in result.tried)
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.slow
def test_a_larger_budget_gives_a_smaller_error():
    model = sz.generators.complete(30, 0.2, seed=0)
    short = sz.log_z(model, budget=0.1, exclude=["exact", "ep", "states"])
    long = sz.log_z(model, budget=1.6, exclude=["exact", "ep", "states"])
    # four times as long is half the error; here it is sixteen times
    assert long.std_error < 0.3 * short.std_error
    assert abs(long.log_z - short.log_z) < 4 * math.hypot(short.std_error, long.std_error)


@pytest.mark.slow
def test_a_loose_tolerance_stops_early():
    model = sz.generators.complete(20, 0.3, seed=0)
    loose, tight = (sz.log_z(model, exclude=["exact"], tol=tol, budget=2) for tol in (0.5, 1e-4))
    why = [next(row.why for row in result.tried if row.method == "annealing") for result in (loose, tight)]
    states = [int(re.match(r"(\d+) states", words)[1]) for words in why]
    assert states[1] > 2 * states[0]


@pytest.mark.parametrize("left_out", [pytest.param("ep", marks=pytest.mark.slow), "annealing", "states", "wmbe"])
def test_what_is_excluded_is_not_run(left_out):
    model = sz.generators.complete(12, 0.5, seed=0)
    result = sz.log_z(model, exclude=["exact", left_out], budget=1)
    assert left_out not in [row.method for row in result.tried]
    assert abs(result.log_z - sz.log_z(model, "exact").log_z) <= 4 * result.std_error


def test_all_estimates_excluded_leaves_the_bracket():
    model = sz.generators.complete(12, 0.5, seed=0)
    result = sz.log_z(model, exclude="exact,ep,annealing,states", budget=0.5)
    assert result.log_z == pytest.approx((result.lower + result.upper) / 2)
    assert not result.status.converged
    assert "middle" in result.status
    found = sz.marginals(model, exclude="exact,ep,annealing,states", budget=0.5)
    assert np.all(np.abs(found.mean) <= 1)


@pytest.mark.parametrize("exclude", ["magic", ["exact", "magic"], 3, [1]])
def test_unknown_names_are_refused(exclude):
    with pytest.raises(sz.errors.OptionError, match="exclude"):
        sz.Auto(exclude=exclude)


@pytest.mark.parametrize("options", [{"budget": 0}, {"budget": "long"}, {"tol": -1}, {"seed": -1}])
def test_bad_options_are_refused_by_name(options):
    with pytest.raises(sz.errors.OptionError, match=next(iter(options))):
        sz.Auto(**options)


@pytest.mark.slow
def test_strong_frozen_models_beyond_all_estimates_say_so():
    # A large spin glass at low temperature in no time: whatever comes out must not be called trusted and tight.
    model = sz.generators.spin_glass_3d(side=9, strength=6.0, seed=0)
    result = sz.log_z(model, budget=1)
    assert result.lower <= result.log_z <= result.upper
    assert result.std_error > 10.0
    assert not result.trusted
    assert not result.status.converged
    assert "no method trusts its own answer" in result.status


# --------------------------------------------------------------------------------------- marginals, samples, parts


@pytest.mark.parametrize("strength", [0.05, 2.0])
def test_marginals_come_from_the_method_chosen(strength):
    model = sz.generators.complete(14, strength, seed=3)
    found = sz.marginals(model, exclude=["exact"], budget=2)
    truth = sz.marginals(model, "exact")
    assert found.kind is sz.Kind.ESTIMATE
    assert np.abs(found.mean - truth.mean).max() < 0.01
    assert np.abs(found.pair_mean - truth.pair_mean).max() < 0.01
    assert found.estimate.tried


def test_samples_come_from_annealing_where_nothing_is_exact():
    model = sz.generators.complete(10, 0.4, seed=3)
    drawn = sz.sample(model, 4000, exclude=["exact", "quadrature"])
    truth = sz.marginals(model, "exact").mean
    assert np.abs(drawn.mean(axis=0) - truth).max() < 0.06


def two_components(strength=0.5):
    first, second = (sz.generators.complete(12, strength, seed) for seed in (1, 2))
    A = np.zeros((25, 25))
    A[:12, :12], A[13:, 13:] = first.coupling, second.coupling
    return sz.Ising(np.concatenate([first.field, [0.7], second.field]), A, offset=1.5)


@pytest.mark.slow
def test_components_are_solved_apart_and_their_errors_added():
    model = two_components()
    truth = sz.log_z(model, "exact").log_z
    result = sz.log_z(model, exclude=["exact"], budget=2)
    assert abs(result.log_z - truth) <= 3 * result.std_error + 1e-12
    assert result.lower <= truth <= result.upper
    assert "components solved separately" in result.status
    assert {trial.why.split(":")[0] for trial in result.tried} == {"component 0", "component 1"}
    found = sz.marginals(model, exclude=["exact"], budget=10)
    assert np.abs(found.mean - sz.marginals(model, "exact").mean).max() < 0.02


def test_where_the_grid_of_quadrature_is_too_large_estimates_take_over():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(3, 40)) * 8.0
    model = sz.Ising(None, (u.T @ u) / 2)
    with pytest.raises(sz.errors.TooLargeError):
        sz.log_z(model, "quadrature")
    result = sz.log_z(model, exclude=["exact"], budget=1)
    assert result.lower <= result.log_z <= result.upper
    assert result.tried


# ---------------------------------------------------------------------------------------------------- the schedule


def rows_of(result):
    return {row.method: row for row in result.tried}


def test_the_same_budget_buys_the_same_answer(clock):
    model = sz.generators.complete(14, 0.4, seed=0)
    found = []
    for _ in range(2):
        clock.time = 0.0
        found.append(sz.log_z(model, exclude=["exact"], budget=1))
    first, second = found
    assert first.tried == second.tried
    assert (first.lower, first.log_z, first.upper) == (second.lower, second.log_z, second.upper)


def test_a_machine_too_slow_for_annealing_says_so(clock):
    clock.step = 5.0  # a look at the clock takes longer than the budget
    result = sz.log_z(sz.generators.complete(12, 0.1, seed=0), exclude=["exact"], budget=1)
    for name in ("annealing", "states"):
        row = rows_of(result)[name]
        assert (row.verdict, row.log_z) == ("not run", None)
        assert re.fullmatch(r"the fewest useful states would take about \S+ s, 0.3 s are left", row.why)
    assert re.fullmatch(r"a few steps would take about \S+ s, 0 s are left", rows_of(result)["ep"].why)
    assert "middle" in result.status


@pytest.mark.parametrize(("n", "work", "is_run"), [(300, 4e9, True), (300, 4e8, False), (700, 4e9, True)])
def test_expectation_propagation_is_left_out_where_it_would_take_too_long(n, work, is_run):
    """Up to 500 spins populations do as well, and it gets a tenth of the work; beyond that half."""
    model = sz.generators.sk(n, 0.3, seed=0)
    result = sz.log_z(model, exclude=["exact", "annealing", "states", *BOUNDERS], work=work)
    assert (rows_of(result)["ep"].verdict != "not run") == is_run
    assert is_run or "a few steps would take" in rows_of(result)["ep"].why


@pytest.mark.parametrize(
    ("strength", "field", "is_run"), [(0.8, 0.0, True), (0.95, 0.0, False), (0.95, 1.0, True), (1.1, 1.0, False)]
)
def test_expectation_propagation_is_left_out_where_it_would_not_be_trusted(strength, field, is_run):
    model = sz.generators.sk(60, strength, 0, field)
    result = sz.log_z(model, exclude=["exact", "annealing", "states", *BOUNDERS], work=1e8)
    assert (rows_of(result)["ep"].verdict != "not run") == is_run
    assert is_run or "too strong" in rows_of(result)["ep"].why


@pytest.mark.parametrize(
    ("model", "run"),
    [
        (sz.generators.sk(100, 1.0, 0), {"mf", "sdp"}),
        (sz.generators.sk(100, 1.0, 0, 0.5), {"mf", "sdp", "convex_mf"}),
        (sz.generators.sk(60, 0.5, 0), {"mf", "sdp", "wmbe"}),
        (sz.generators.grid(8, 1.0, 0), {"mf", "sdp", "convex_mf", "trw", "wmbe"}),
    ],
)
def test_bounders_that_hardly_ever_win_on_dense_models_are_not_asked(model, run):
    result = sz.log_z(model, exclude=["exact", "mps", "ep", "states"], work=1e9)
    assert {name for name in rows_of(result) if name in BOUNDERS} == run
    everything = {row.method for row in sz.bounds(model, work=1e8).rows}
    assert everything >= {"mf", "sdp", "convex_mf", "trw", "wmbe"}


def test_without_an_answer_all_bounders_are_asked():
    result = sz.log_z(sz.generators.sk(40, 1.0, 0), exclude=["exact", "mps", "annealing", "states"], work=1e9)
    assert rows_of(result).keys() >= {"mf", "sdp", "convex_mf", "trw", "wmbe"}


def test_a_population_that_uses_up_the_budget_is_the_last(clock):
    seen = []

    def tell(task, share):
        if task == "annealing" and task not in seen:
            clock.advance(100.0)
        seen.append(task)

    with listening(tell):
        result = sz.log_z(sz.generators.complete(12, 0.5, seed=0), exclude=["exact", "states"], budget=2)
    assert "looking for phases" not in seen
    assert clock.time < 2 * 100.0
    row = rows_of(result)["annealing"]
    assert re.match(r"\d+ states in \d+ groups", row.why)
    assert "phases were not looked for" in row.why
    assert not result.trusted


def test_populations_use_the_budget(clock):
    model = sz.generators.complete(12, 0.3, seed=0)
    result = sz.log_z(model, tol=1e-9, exclude=["exact", "states", *BOUNDERS], budget=2)
    assert 0.5 * 2 < clock.time < 1.3 * 2
    assert abs(result.log_z - sz.log_z(model, "exact").log_z) <= 4 * result.std_error


def test_components_share_the_budget_by_their_spins(clock):
    clock.step = 1e-6
    parts = [sz.generators.complete(n, 0.3, seed=n) for n in (10, 15)]
    A = np.zeros((25, 25))
    A[:10, :10], A[10:, 10:] = (part.coupling for part in parts)
    model = sz.Ising(np.concatenate([part.field for part in parts]), A)
    result = sz.log_z(model, tol=10.0, exclude=["exact"], budget=5)
    small, large = (part["budget"] for part in result.details["components"])
    assert small == pytest.approx(5 * 10 / 25, abs=1e-3)
    assert 3.0 < large < 5.0  # what the small one left is its own share and more


# ------------------------------------------------------------------------------------------------------ interrupts


@pytest.mark.parametrize(
    ("task", "share", "is_found"),
    [
        ("choosing temperatures", 0.0, False),
        ("annealing", 0.0, False),
        ("annealing", 0.5, True),
        ("looking for phases", 0.0, True),
    ],
)
def test_an_interrupt_ends_with_the_best_answer_so_far(task, share, is_found):
    model = sz.generators.complete(14, 0.3, seed=0)
    with interrupting(task, share):
        result = sz.log_z(model, exclude=["exact"], tol=1e-9, budget=2)
    assert result.interrupted
    assert "interrupted" in result.status
    assert not result.status.converged
    assert result.lower <= sz.log_z(model, "exact").log_z <= result.upper
    assert ("annealing" in verdicts(result)) == is_found


@pytest.mark.parametrize("method", ["annealing", "states"])
def test_an_interrupt_of_a_population_is_one_whatever_it_is_for(method):
    others = [name for name in ("ep", "annealing", "states") if name != method]
    with interrupting("annealing", 0.5):
        result = sz.log_z(sz.generators.complete(14, 0.3, seed=0), exclude=["exact", *others], tol=1e-9, budget=2)
    assert result.interrupted


def test_after_an_interrupt_the_other_components_take_no_time():
    with interrupting("annealing"):
        result = sz.log_z(two_components(), exclude=["exact"], budget=60)
    assert result.interrupted
    first, second = (part["budget"] for part in result.details["components"] if "budget" in part)
    assert first == pytest.approx(30, abs=0.1)  # for half of the spins that are left
    assert second == 0.01


# The command, which leaves a file once the population is half done.
COMMAND = """
from pathlib import Path
from spectralz._support.progress import listening
from spectralz.cli import main

def tell(task, fraction):
    if task == "annealing" and 0.5 < fraction < 1.0:
        Path("annealing").touch()

with listening(tell):
    main()
"""


@pytest.mark.slow
def test_sigint_ends_the_command_with_the_best_answer(tmp_path):
    sz.write(sz.generators.complete(60, 0.3, seed=0), tmp_path / "model.npz")
    (tmp_path / "spectralz").write_text(COMMAND)
    arguments = [sys.executable, "spectralz", "solve", "model.npz", "--set", "tol=1e-9", "--budget", "20"]
    process = started(arguments, cwd=tmp_path)
    wait_until((tmp_path / "annealing").exists, seconds=120)
    out, err = interrupted(process)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "log Z" in out
    assert "interrupted" in out
    assert "(error)" in out


def test_a_pool_that_holds_all_states_is_an_answer_without_error():
    model = sz.generators.complete(9, 0.2, seed=0)
    result = sz.log_z(model, exclude=["exact", "ep"], budget=1)
    truth = sz.log_z(model, "exact").log_z
    assert abs(result.log_z - truth) < 1e-11
    assert result.std_error < 1e-11
    assert verdicts(result)["states"] == "chosen"


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_any_scale_has_an_answer(scale):
    model = sz.generators.complete(20, scale, seed=0, field_strength=scale)
    result = sz.log_z(model, exclude=["exact", "quadrature"], budget=1)
    truth = sz.log_z(model, "exact").log_z
    assert abs(result.log_z - truth) <= 3 * result.std_error + 1e-12 * abs(truth)


@pytest.mark.slow
def test_very_many_spins_have_an_answer_too(clock):
    clock.step = 0.02
    model = sz.generators.grid(150, 0.3, seed=0)
    result = sz.log_z(model, budget=1)
    assert result.lower <= result.log_z <= result.upper
    assert result.log_z == pytest.approx((result.lower + result.upper) / 2)
    for name in ("ep", "annealing", "states", "sdp"):
        assert verdicts(result)[name] == "not run"


@pytest.mark.parametrize("name", ["ep", "annealing", "states"])
def test_every_trial_counts_offset_and_trace(name):
    model = sz.Ising([0.3, -0.2, 0.1] * 4, sz.generators.complete(12, 0.1, seed=0).coupling, offset=7.5).shift_diagonal(
        0.5
    )
    others = [each for each in ("ep", "annealing", "states") if each != name]
    result = sz.log_z(model, exclude=["exact", "quadrature", *others], budget=1)
    assert abs(result.log_z - sz.log_z(model, "exact").log_z) <= min(4 * result.std_error, 0.1)
    assert verdicts(result)[name] == "chosen"


def test_errors_of_components_are_added_in_squares():
    def outcome(std_error, converged=True):
        status = sz.Status("made up", converged=converged)
        return Outcome(log_z=1.0, kind=sz.Kind.ESTIMATE, status=status, std_error=std_error)

    exact = Outcome(log_z=1.0, kind=sz.Kind.EXACT, status=sz.Status("exact", converged=True))
    assert error_of_sum([outcome(0.3), exact, outcome(0.4)]) == pytest.approx(0.5)
    # What is in doubt is likely to be off in one direction.
    assert error_of_sum([outcome(0.3), outcome(0.4), outcome(2.0, False), outcome(1.0, False)]) == pytest.approx(3.5)
    assert error_of_sum([exact]) is None


def test_a_sum_over_components_is_trusted_if_all_of_them_are():
    def outcome(trusted):
        status = sz.Status("made up", converged=trusted)
        return Outcome(log_z=1.0, kind=sz.Kind.ESTIMATE, status=status, std_error=0.1, trusted=trusted)

    model = sz.Ising([0.0, 0.0], np.zeros((2, 2)))
    assert added(model, [outcome(True), outcome(True)]).is_trusted
    doubtful = added(model, [outcome(True), outcome(False)])
    assert not doubtful.is_trusted
    assert not doubtful.status.converged


def test_a_sum_over_components_is_checked_by_what_checked_each_that_is_not_exact():
    def outcome(*names, kind=sz.Kind.ESTIMATE):
        return Outcome(log_z=1.0, kind=kind, status=sz.Status(""), std_error=0.1, trusted=True, checked_by=names)

    def checks(*outcomes):
        return added(sz.Ising(np.zeros(len(outcomes))), list(outcomes)).checked_by

    exact = outcome(kind=sz.Kind.EXACT)
    assert checks(exact, outcome("ep", "annealing", "mps"), exact, outcome("mps", "ep")) == ("ep", "mps")
    assert checks(exact, outcome("annealing")) == ("annealing",)
    assert checks(outcome("ep"), outcome("ep"), outcome("annealing")) == ()
    assert checks(outcome("ep"), outcome()) == ()
    assert checks(exact, exact) == ()


@pytest.mark.parametrize(("n", "weight"), [(9, -10.0), (30, -0.6)])
def test_antiferromagnets_are_not_left_to_expectation_propagation(n, weight):
    # The sum of the spins takes a few values only, which a Gaussian cannot see, and no correction shows it.
    model = sz.Ising(np.zeros(n), np.full((n, n), weight))
    truth = sz.log_z(model, "quadrature").log_z
    assert not sz.log_z(model, "ep").details["trusted"]
    result = sz.log_z(model, exclude=["exact", "quadrature"], budget=2)
    assert abs(result.log_z - truth) <= 4 * result.std_error
    assert result.std_error < 0.1
    assert verdicts(result)["ep"] == "not run"


def test_no_tolerance_and_no_memory_are_no_crash():
    model = sz.generators.complete(12, 0.3, seed=0)
    assert sz.log_z(model, exclude=["exact"], tol=1e-300, budget=0.5).std_error > 0
    result = sz.log_z(model, exclude=["exact", "ep"], max_memory=1, budget=0.5)
    assert "middle" in result.status
    assert verdicts(result)["annealing"] == "not run"


@pytest.mark.usefixtures("clock")
def test_samples_respect_the_budget_and_what_is_excluded():
    model = sz.generators.complete(80, 0.1, seed=0)
    population = [
        auto._annealing(model, 2**30, Deadline.after(seconds)).population for seconds in (1e-6, 0.5, 1.0, 1e6)
    ]
    assert population[0] == policy.FEWEST_TO_DRAW_FROM
    assert population[0] < population[1] < population[3]
    assert population[2] == pytest.approx(2 * population[1], abs=1)
    assert population[3] == sz.Annealing().population
    with pytest.raises(sz.errors.OptionError, match="no method is left"):
        sz.sample(model, 3, exclude=["exact", "quadrature", "annealing"])


def test_an_interrupt_that_numba_hides_is_one():
    model, hidden = sz.generators.complete(12, 0.3, seed=0), SystemError("CPUDispatcher returned a result")
    hidden.__cause__ = KeyboardInterrupt()
    with interrupting("annealing", 0.0, hidden):
        assert sz.log_z(model, exclude=["exact"], budget=1).interrupted
    another = SystemError("something else")
    with interrupting("annealing", 0.0, another), pytest.raises(SystemError, match="something else"):
        sz.log_z(model, exclude=["exact"], budget=1)


def test_marginals_that_do_not_fit_are_estimated_and_the_status_says_so():
    model = sz.generators.grid(side=9, strength=0.3, seed=0)
    plan = sz.Exact().plan(model)
    limit = (plan.memory + plan.segments.memory) // 2  # log Z fits, the marginals do not
    assert sz.log_z(model, max_memory=limit).kind is sz.Kind.EXACT
    found = sz.marginals(model, max_memory=limit, budget=1)
    assert found.kind is sz.Kind.ESTIMATE
    assert "exact marginals need" in found.status
    assert "log Z alone needs" in found.status


def test_a_component_without_a_state_found_does_not_prove_that_there_is_none():
    """The sum was exact, and minus infinity."""
    model = sz.Ising.from_edges(4, [(0, 1), (2, 3)], 1.0)
    exact = Outcome(log_z=2.0, kind=sz.Kind.EXACT, status=sz.Status("exact", converged=True), lower=2.0, upper=2.0)
    status = sz.Status("no state was found", converged=False)
    zero = -math.inf
    lost = Outcome(log_z=zero, kind=sz.Kind.ESTIMATE, status=status, lower=zero, upper=9.0, std_error=math.inf)
    both = added(model, [exact, lost])
    assert (both.kind, both.is_trusted, both.status.converged) == (sz.Kind.ESTIMATE, False, False)
    assert (both.log_z, both.lower, both.std_error) == (zero, zero, math.inf)
    assert both.upper >= 11.0
    assert "no state was found" in str(both.status)
    proven = added(model, [lost, replace(exact, log_z=zero, lower=zero, upper=zero)])
    assert (proven.kind, proven.log_z, proven.upper) == (sz.Kind.EXACT, zero, zero)


def test_a_component_without_an_error_makes_the_sum_untrusted():
    """An estimate without std_error was dropped from the error of the sum."""
    model = sz.Ising.from_edges(4, [(0, 1), (2, 3)], 1.0)
    exact = Outcome(log_z=2.0, kind=sz.Kind.EXACT, status=sz.Status("exact", converged=True), lower=2.0, upper=2.0)
    bare = Outcome(
        log_z=5.0,
        kind=sz.Kind.ESTIMATE,
        status=sz.Status("done", converged=True),
        lower=3.0,
        upper=9.0,
        trusted=True,
    )
    both = added(model, [exact, bare])
    assert both.std_error == pytest.approx(6.0 / math.sqrt(12.0))
    assert not both.trusted
    nothing = added(model, [exact, replace(bare, lower=None)])
    assert nothing.std_error == pytest.approx(5.0)
    assert added(model, [exact, exact]).std_error is None
