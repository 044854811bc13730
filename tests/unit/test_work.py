"""`work=`: what is done is decided by a count of operations, and is the same in every run."""

import itertools
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import spectralz as sz
from spectralz._support import clock
from spectralz._support.deadline import Deadline, budgeted
from spectralz.methods import annealing
from spectralz.portfolio import bracket
from spectralz.portfolio.answers import Answers, Problem
from spectralz.portfolio.bracket import trivial_bounds
from spectralz.portfolio.steps.before_annealing import propagate
from spectralz.sampling.heavy.pool import search, state_pool
from spectralz.sampling.path import path_to
from spectralz.sampling.population import carry
from spectralz.sampling.round_trips import there_and_back
from spectralz.sampling.sweeps import LEAST_POINTS, STATES, SURVEY_SWEEPS, fields, quench, relax, survey

# What is counted matters here, not how good it is.
pytestmark = pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")


def islands():
    """A dense component and a grid, which share the work."""
    dense, grid = sz.generators.complete(12, 0.4, seed=0), sz.generators.grid(4, 1.0, seed=1)
    coupling = np.zeros((28, 28))
    coupling[:12, :12], coupling[12:, 12:] = dense.storage.dense(), grid.storage.dense()
    return sz.Ising(np.concatenate([dense.field, grid.field]), coupling)


MODELS = {
    "dense": lambda: sz.generators.complete(n=40, strength=0.3, seed=0),
    "grid": lambda: sz.generators.grid(side=7, strength=1.0, seed=0),
    "islands": islands,
}
WORK = 1e8


def solve(name, **options):
    return sz.log_z(MODELS[name](), exclude=["exact"], work=WORK, tol=1e-9, **options)


def without_seconds(result):
    """Return a result as a dict, but for the seconds at any depth; of bounds that rounds tighten, ten digits."""

    def less(value):
        if isinstance(value, dict):
            return {
                key: less(each) for key, each in value.items() if key not in ("seconds", "compile_seconds", "threads")
            }
        if isinstance(value, float):
            return float(f"{value:.10g}")
        return [less(each) for each in value] if isinstance(value, list) else value

    return less(json.loads(json.dumps(result.to_dict())))


# ------------------------------------------------------------------------------------------------ the same every time


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dense", "grid", pytest.param("islands", marks=pytest.mark.slow)])
def test_runs_are_the_same_with_any_number_of_threads(name):
    first = solve(name, threads=1)
    assert first.std_error > 0
    for count in (2, 3, None):
        assert without_seconds(solve(name, threads=count)) == without_seconds(first)


@pytest.mark.parametrize("name", [pytest.param("dense", marks=pytest.mark.slow), "islands"])
def test_the_clock_on_the_wall_is_not_looked_at(monkeypatch, name):
    first = solve(name)
    rng = np.random.default_rng(0)
    wild = itertools.accumulate(10.0 ** rng.uniform(-9, 6) for _ in itertools.count())
    monkeypatch.setattr(clock._left_out, "rest", lambda: next(wild))
    second = solve(name)
    assert second.seconds > 100.0 * first.seconds
    assert without_seconds(second) == without_seconds(first)


@pytest.mark.slow
def test_a_fresh_process_says_the_same():
    code = (
        "import json\nfrom tests.unit.test_work import solve, without_seconds\n"
        "print(json.dumps(without_seconds(solve('grid'))))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout) == without_seconds(solve("grid"))


def test_marginals_and_samples_are_the_same():
    model = MODELS["dense"]()
    found = [sz.marginals(model, exclude=["exact"], work=WORK, threads=count) for count in (1, 2)]
    assert np.array_equal(found[0].mean, found[1].mean)
    assert np.array_equal(found[0].pair_mean, found[1].pair_mean)
    assert without_seconds(found[0].estimate) == without_seconds(found[1].estimate)
    drawn = [sz.sample(model, 20, exclude=["exact"], work=1e7, threads=count) for count in (1, 2)]
    assert np.array_equal(*drawn)


def test_bounds_are_the_same():
    found = [sz.bounds(MODELS["grid"](), work=3e7, threads=count) for count in (1, 2)]
    assert without_seconds(found[0]) == without_seconds(found[1])


def test_more_than_500_spins_take_one_thread_of_linear_algebra():
    from spectralz._support import threads

    with budgeted(None, 1e9):
        assert {each["num_threads"] for each in threads._controller().info() if each["user_api"] == "blas"} == {1}


@pytest.mark.slow
def test_another_seed_says_something_else():
    assert solve("dense").log_z != solve("dense", seed=1).log_z


# ------------------------------------------------------------------------------------------------- how much is done


def states_of(result):
    (row,) = (row for row in result.tried if row.method == "annealing")
    return int(re.match(r"(\d+) states in", row.why)[1])


@pytest.mark.slow
def test_more_work_means_more_states():
    model = MODELS["dense"]()
    some, more = (sz.log_z(model, exclude=["exact", "states"], work=work, tol=1e-9) for work in (1e8, 2e8))
    assert states_of(more) > 1.2 * states_of(some)


@pytest.mark.parametrize(
    ("model", "work"),
    [
        (sz.generators.complete(n=60, strength=0.3, seed=0), 3e8),
        pytest.param(sz.generators.grid(side=20, strength=1.0, seed=0), 1e9, marks=pytest.mark.slow),
    ],
    ids=["dense", "grid"],
)
def test_what_is_counted_is_near_what_was_asked_for(model, work):
    result = sz.log_z(model, exclude=["exact"], work=work, tol=1e-9)
    assert result.details["work"] == work
    # The last rounds stop where a fifth is left, and what has begun is not stopped.
    assert 0.6 * work < result.details["operations"] < 1.3 * work


@pytest.mark.parametrize(
    "model",
    [
        sz.generators.complete(n=16, strength=0.1, seed=3),
        sz.generators.complete(n=17, strength=0.4, seed=4),
        sz.generators.complete(n=18, strength=1.0, seed=5),
        sz.generators.grid(side=4, strength=0.7, seed=6),
    ],
)
def test_answers_are_within_their_errors(model):
    result = sz.log_z(model, exclude=["exact"], work=3e8)
    truth = sz.log_z(model, "exact").log_z
    assert result.lower <= truth <= result.upper
    assert abs(result.log_z - truth) < 4.0 * result.std_error


def test_words_are_of_operations_not_of_seconds():
    result = sz.log_z(sz.generators.complete(n=150, strength=0.3, seed=0), exclude=["exact"], work=1e6)
    refusals = [row.why for row in result.tried if "would take" in row.why]
    assert refusals
    assert all(re.search(r"operations.* operations (are )?left", words) for words in refusals)
    assert not any(re.search(r"\d s\b", words) for words in refusals)


# ---------------------------------------------------------------------------------------------------- what is counted


def counted(work, *arguments):
    with clock.counting_operations() as operations:
        work(*arguments)
    return operations.count


@pytest.mark.parametrize("model", [sz.generators.complete(10, 0.5, seed=0), sz.generators.grid(4, 2.0, seed=0)])
def test_runs_and_pools_count_all_that_they_do(model):
    size, rng = 30, np.random.default_rng(0)
    x = rng.choice(np.array([-1, 1], dtype=np.int8), size=(size, model.n))
    pool, path = state_pool(model, 1000), path_to(model)
    few, many = (counted(carry, path, np.linspace(0.0, 1.0, count), 3, size // 3, rng) for count in (9, 17))
    # An operation and a half for each spin that is swept, at least.
    assert many - few >= 1.5 * 8 * x.size
    assert counted(carry, path, np.linspace(0.0, 1.0, 9), 6, size // 3, rng) == 2 * few
    assert counted(survey, path, rng) >= 1.5 * LEAST_POINTS * STATES * SURVEY_SWEEPS * model.n
    assert counted(relax, path, x, 5, rng) >= 1.5 * 5 * x.size
    assert 2.0 * few < counted(there_and_back, path, np.linspace(0.0, 1.0, 9), size, rng) < 3.0 * few
    assert counted(fields, path, x) >= x.size
    assert counted(quench, path, x) >= counted(fields, path, x) + 10.0 * x.size
    new, known = counted(pool.add, x), counted(pool.add, x)  # a new state's weight is summed up
    assert new - known >= 0.1 * len(pool) * 2 * model.edge_count
    assert known >= x.size
    assert counted(pool.contains, x) >= x.size
    assert counted(search, pool, path) >= 2.0 * counted(fields, path, x)


@pytest.mark.parametrize("name", bracket.BOUNDERS)
def test_every_bounder_counts(name):
    model = sz.generators.complete(10, 0.5, seed=0)
    assert counted(lambda: list(bracket.BOUNDERS[name](model, Deadline.after(1.0)))) >= 1000.0


def test_ep_and_exact_count():
    model = sz.generators.complete(10, 0.1, seed=0)
    problem, answers = Problem(model=model, tol=1e-3), Answers(trivial_bounds(model))
    assert counted(lambda: propagate(problem, Deadline.after(10.0), answers)) >= 10**3
    assert sz.log_z(model, work=1e6).details["operations"] >= 2**10
    assert sz.log_z(sz.generators.curie_weiss(n=100), work=1e6, exclude="exact").details["operations"] >= 1000


def test_seconds_are_not_counted_in():
    result = sz.log_z(sz.generators.complete(10, 0.5, seed=0), exclude=["exact"], budget=0.2)
    assert result.details["budget"] == 0.2
    assert "work" not in result.details
    clock.charge(1e12)
    assert clock.in_words(2.0) == "2 s"


# ------------------------------------------------------------------------------------------------------- the options


def test_the_budget_is_ten_seconds_unless_work_is_given():
    assert sz.Auto().budget == sz.Auto(budget=10).budget == 10.0
    assert sz.Auto(work=10**9).budget is None
    assert sz.Auto(work=10**9).work == 1e9
    for budget in ({"budget": None, "work": None}, {"budget": None, "work": 1e10}, {"budget": 10.0, "work": None}):
        with budgeted(**budget) as deadline:
            assert deadline.seconds == 10.0


@pytest.mark.parametrize("work", [0, -1e9, "much", float("nan"), float("inf"), True])
def test_bad_work_is_refused(work):
    model = sz.generators.complete(4, 0.5, seed=0)
    for ask in (lambda: sz.log_z(model, work=work), lambda: sz.bounds(model, work=work)):
        with pytest.raises(sz.errors.OptionError, match="work is"):
            ask()


def test_both_are_refused():
    model = sz.generators.complete(4, 0.5, seed=0)
    for ask in (lambda: sz.log_z(model, budget=1, work=1e9), lambda: sz.bounds(model, budget=1, work=1e9)):
        with pytest.raises(sz.errors.OptionError, match="budget is 1 and work is 1e\\+09; give one of them"):
            ask()


def test_noting_the_answer_so_far_counts_nothing(monkeypatch):
    """Notes are made by the clock on the wall, so they must not change what is planned by operations."""
    rng = np.random.default_rng(1)
    scopes = {tuple(sorted(rng.choice(20, 3, replace=False).tolist())) for _ in range(40)}
    model = sz.Polynomial(dict.fromkeys(scopes, 0.3), n=20)

    def found():
        return sz.log_z(model, exclude=["exact", "wmbe", "mf"], work=1e8)

    rare = found()
    monkeypatch.setattr(annealing, "BETWEEN_NOTES", 0.0)
    monkeypatch.setattr(annealing, "SHARE_OF_NOTES", 0.0)
    often = found()
    assert often.details["operations"] == rare.details["operations"]
    assert (often.log_z, often.std_error) == (rare.log_z, rare.std_error)
