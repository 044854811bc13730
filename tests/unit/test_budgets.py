"""What a budget means: nothing runs far past it, it is spent on the answer, and exact answers count too."""

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

import spectralz as sz
from spectralz._support import clock
from spectralz._support.clock import using_clock
from spectralz._support.deadline import Deadline, NotAffordableError, budgeted, current, is_past
from spectralz.inference import ratio, sample_temperature
from spectralz.kernels.elimination import best_order, order
from spectralz.kernels.elimination.screening import core_of, count_min_degree, has_narrow_front
from spectralz.kernels.elimination.tree import EliminationTree
from spectralz.methods import exact as exact_method
from spectralz.parts.leading import leading_directions
from spectralz.parts.mean_field.ascents import states_by_mean_field
from spectralz.portfolio import auto, exact_costs, policy, schedule
from spectralz.portfolio.bracket import better_of
from spectralz.sampling import sweeps
from spectralz.sampling.path import path_to
from spectralz.sampling.sweeps import seconds_per_state, spaced_by, survey
from tests.helpers import FakeClock, count_sweeps, verdicts

UNTRUSTED = pytest.mark.filterwarnings("ignore::spectralz.errors.InaccurateWarning")


# ------------------------------------------------------------------------------------------------------- deadlines


def test_a_deadline_is_the_earliest_of_those_around():
    clock = FakeClock()
    with using_clock(clock):
        assert not is_past()
        with Deadline(10.0).in_force(), current().share(0.5).in_force(), Deadline(8.0).in_force():
            clock.time = 4.9
            assert not is_past()
            clock.time = 5.0
            assert is_past()
        assert not is_past()
        with current().share(0.5).in_force():  # of no deadline at all
            assert not is_past()


def test_a_deadline_counts_from_its_making():
    clock = FakeClock()
    with using_clock(clock):
        clock.advance(5.0)
        deadline = Deadline.after(10.0)
        assert (deadline.end, deadline.left, deadline.done, deadline.share(0.5).end) == (15.0, 10.0, 0.0, 10.0)
        clock.advance(4.0)
        assert (deadline.left, deadline.done, deadline.share(0.5)) == (6.0, 0.4, Deadline(12.0, 3.0))
        deadline.require(6.0)
        with pytest.raises(NotAffordableError, match=r"^not run: would take about 6\.1 s, 6 s are left$"):
            deadline.require(6.1)
        clock.advance(7.0)
        assert (deadline.left, deadline.done, deadline.share(0.5).seconds) == (0.0, 1.0, 0.0)
        with pytest.raises(NotAffordableError, match="0 s are left"):
            deadline.require(1e-9)


def test_calls_in_other_threads_have_deadlines_and_clocks_of_their_own():
    """One counts operations under a deadline that is past, the other the seconds of no deadline."""
    inside, checked = threading.Event(), threading.Event()

    def count():
        with budgeted(None, 1e9) as deadline, deadline.in_force():
            clock.charge(3e9)
            inside.set()
            assert checked.wait(30.0)
            return is_past(), clock.operations()

    with ThreadPoolExecutor(1) as pool:
        counting = pool.submit(count)
        assert inside.wait(30.0)
        clock.charge(1e9)  # to nobody
        assert (is_past(), clock.operations()) == (False, None)
        checked.set()
        assert counting.result() == (True, 3e9)


@pytest.mark.parametrize("name", ["mf", "trw", "sdp", "convex_mf", "wmbe"])
def test_bounders_end_with_a_bound_once_the_time_is_up(name):
    model = sz.generators.complete(12, 0.4, seed=0)
    options = {"wmbe": {"ibound": 3, "max_iter": 50}, "mf": {"restarts": 5}, "trw": {"optimize_edges": 3}}.get(name, {})
    whole, truth = sz.log_z(model, name, **options), sz.log_z(model, "exact").log_z
    with using_clock(FakeClock(step=1.0)), Deadline(0.0).in_force():
        short = sz.log_z(model, name, **options)
    if name == "mf":
        assert whole.lower >= short.lower
        assert short.lower <= truth
        assert len(short.details["bounds"]) == 1
    else:
        assert short.iterations < whole.iterations
        assert whole.upper <= short.upper + 1e-9
        assert truth <= short.upper


def test_mean_field_of_a_large_model_looks_at_the_clock_after_every_sweep(monkeypatch):
    from spectralz.parts.mean_field import ascents as mean_field

    monkeypatch.setattr(mean_field, "ENTRIES_PER_LOOK", 1)
    model = sz.generators.complete(12, 0.4, seed=0)
    with using_clock(FakeClock(step=1.0)), Deadline(3.0).in_force():
        result = sz.log_z(model, "mf")
    assert result.iterations == 3
    assert not result.status.converged


def test_leading_directions_are_left_out_where_there_is_no_time():
    storage = sz.generators.complete(60, 0.4, seed=0).storage
    assert len(leading_directions(storage, 2)) == 2
    with using_clock(FakeClock(step=1.0)), Deadline(5.0).in_force():
        assert leading_directions(storage, 2) == []


def test_ep_that_is_cut_off_is_not_trusted():
    model = sz.generators.complete(20, 0.05, seed=0)
    assert sz.log_z(model, "ep").trusted
    with using_clock(FakeClock(step=1.0)), Deadline(4.0).in_force():
        short = sz.log_z(model, "ep")
    assert not short.trusted
    assert short.std_error is None


def test_a_survey_whose_time_is_up_takes_longer_steps():
    model = sz.generators.complete(40, 1.0, seed=0)
    path = path_to(model)
    whole = survey(path, np.random.default_rng(0))
    with using_clock(FakeClock(step=1.0)), Deadline(5.0).in_force():
        short = survey(path, np.random.default_rng(0))
    assert len(short.points) < len(whole.points)
    assert short.points[-1] == whole.points[-1] == 1.0


# ------------------------------------------------------------------------------------------- spending it on the answer


@pytest.mark.slow
@UNTRUSTED
def test_a_slow_machine_gives_few_states_instead_of_none(monkeypatch):
    clock = FakeClock(step=1e-6)
    count_sweeps(monkeypatch, clock, 1e-5)  # 64 states through 16 points take 0.4 seconds
    monkeypatch.setattr(policy, "MOST_IBOUND", 6)  # tables, which this clock does not count, stay small
    model = sz.generators.complete(40, 0.3, seed=0)
    with using_clock(clock):
        result = sz.log_z(model, exclude=["exact", "ep"], budget=1.0)
    assert verdicts(result)["annealing"] == "chosen"
    assert result.std_error > 0.05
    assert clock.time < 1.2 + 1.0
    truth = sz.log_z(model, "annealing", population=2000).log_z
    assert abs(result.log_z - truth) < 4 * result.std_error


@pytest.mark.slow
@UNTRUSTED
def test_a_machine_too_slow_for_any_state_says_what_they_would_take(monkeypatch):
    clock = FakeClock(step=1e-6)
    count_sweeps(monkeypatch, clock, 1e-4)
    monkeypatch.setattr(policy, "MOST_IBOUND", 6)
    with using_clock(clock):
        result = sz.log_z(sz.generators.complete(40, 0.3, seed=0), exclude=["exact", "ep"], budget=1.0)
    rows = {row.method: row for row in result.tried}
    for name in ("annealing", "states"):  # 64 states through 16 points
        assert rows[name].verdict == "not run"
        assert "the fewest useful states would take about 4.1 s" in rows[name].why


def test_the_number_of_temperatures_is_foreseen():
    for model in (sz.generators.complete(60, 0.1, seed=0), sz.generators.grid(20, 1.0, seed=0)):
        path = path_to(model)
        found = len(spaced_by(path, 0.2, np.random.default_rng(0)))
        assert 0.5 < seconds_per_state(path, 0.2, 1.0) / found < 2.5  # a second for each point


def test_where_no_method_answers_the_rest_goes_to_bounds(clock):
    model = sz.generators.complete(12, 0.4, seed=0)
    with pytest.warns(sz.errors.InaccurateWarning):
        result = sz.log_z(model, exclude=["exact", "ep", "annealing", "states"], budget=1)
    rows = {row.method: row for row in result.tried}
    once = sz.bounds(model, budget=0.5, exclude=["exact", "states"])
    assert result.upper <= once.upper + 1e-9
    assert rows["mf"].seconds > next(row.seconds for row in once.rows if row.method == "mf")


def test_the_better_row_of_two():
    first = sz.BoundsRow("wmbe", None, 5.0, 1.0, "first")
    assert better_of(first, sz.BoundsRow("wmbe", None, 4.0, 2.0, "second")) == sz.BoundsRow(
        "wmbe", None, 4.0, 3.0, "second"
    )
    assert better_of(first, sz.BoundsRow("wmbe", None, None, 2.0, "refused")).status == "first"
    assert better_of(sz.BoundsRow("mf", 1.0, None, 1.0, "a"), sz.BoundsRow("mf", 0.5, None, 1.0, "b")).lower == 1.0


# ------------------------------------------------------------------------------------------------------ exact answers


@UNTRUSTED
@pytest.mark.parametrize("ask", [sz.log_z, sz.marginals])
def test_exact_answers_count_too(monkeypatch, clock, ask):
    monkeypatch.setattr(policy, "CHEAP_OPERATIONS", 0.0)
    model = sz.generators.complete(16, 0.3, seed=0)
    # The clock says 2 ms for the timed one, of the same size: ten times the budget is more, or it is less.
    dear, cheap = ask(model, budget=1e-4), ask(model, budget=1e-2)
    assert cheap.kind is sz.Kind.EXACT
    assert dear.kind is sz.Kind.ESTIMATE
    assert "exact would take about 0.002 s, and auto gives it 10 times the budget at most" in dear.status
    estimate = dear if ask is sz.log_z else dear.estimate
    assert verdicts(estimate)["exact"] == "not run"
    assert sz.log_z(model, "exact").kind is sz.Kind.EXACT


@UNTRUSTED
def test_exact_answers_count_in_operations():
    model = sz.generators.complete(28, 0.3, seed=0)  # 2^28 terms at five operations
    assert sz.Auto(work=1.4e8).choose(model).name == "exact"
    assert sz.Auto(work=1.3e8).choose(model).name == "auto"
    result = sz.log_z(model, work=1e7)
    assert "exact would take about 1.3e+09 operations, and auto gives it 10 times the work at most" in result.status
    # What takes half a second is exact, however little is asked for.
    assert sz.log_z(sz.generators.complete(20, 0.3, seed=0), work=1.0).kind is sz.Kind.EXACT


@UNTRUSTED
def test_components_share_what_exact_answers_may_cost(monkeypatch):
    monkeypatch.setattr(policy, "CHEAP_OPERATIONS", 0.0)
    monkeypatch.setattr(policy, "TIMED_EXACT_SPINS", 6)
    clock = FakeClock(step=1e-9)
    solve_plan = sz.Exact.solve_plan

    def slow(self, model, plan):
        clock.advance(plan.terms / 2**16)
        return solve_plan(self, model, plan)

    monkeypatch.setattr(sz.Exact, "solve_plan", slow)
    block = sz.generators.complete(16, 0.3, seed=0).coupling
    model = sz.Ising(None, np.kron(np.eye(3), block))
    # A second each: in three there are all three, in less the whole is not exact, but two of its components are.
    with using_clock(clock):
        assert sz.log_z(model, budget=0.31).kind is sz.Kind.EXACT
        others = [name for name in schedule.METHODS_TRIED if name != "exact"]
        assert "2 by exact, 1 by auto" in sz.log_z(model, budget=0.25, exclude=others).status


# ------------------------------------------------------------------------------------------------------- the warning


def test_untrusted_answers_of_auto_warn_where_they_are_asked_for(clock):
    model = sz.generators.complete(12, 0.4, seed=0)
    left_out = ["exact", "ep", "annealing", "states"]
    for ask in (sz.log_z, sz.marginals):
        with pytest.warns(sz.errors.InaccurateWarning, match="not to be trusted.*middle of the proven bounds") as told:
            ask(model, exclude=left_out, budget=0.5)
        assert [each.filename for each in told] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sz.log_z(model)
        sz.log_z(model, "bp")
        assert not sz.Auto(exclude=left_out, budget=0.5).run(model).trusted  # who runs a method reads its result
        sz.compare(model, [sz.Auto(exclude=left_out, budget=0.5)])


# ---------------------------------------------------------------------------------------------------- large graphs


def rows_of(model):
    rows = model.storage.written_out.as_sparse().doubled()
    return rows.indptr, rows.indices


def strip(width, length):
    place = np.arange(width * length).reshape(length, width)
    edges = np.concatenate(
        [
            np.stack([place[:, :-1], place[:, 1:]], -1).reshape(-1, 2),
            np.stack([place[:-1], place[1:]], -1).reshape(-1, 2),
        ]
    )
    return sz.Ising.from_edges(width * length, edges, np.full(len(edges), 0.2))


@pytest.mark.parametrize("seed", range(10))
def test_counting_an_order_is_like_finding_it(seed):
    model = sz.generators.erdos_renyi(60, 0.05, 1.0, seed=seed)
    adjacency = order.adjacency_of(model.n, model.edges()[0])
    assert core_of(*rows_of(model)) == order.degeneracy(range(model.n), adjacency)
    found = count_min_degree(*rows_of(model), 30)
    steps, terms = order.min_degree(range(model.n), adjacency, 30)
    assert found.is_known
    assert found.is_narrow
    assert abs(found.width - EliminationTree.of_order(steps, adjacency).width) <= 2  # ties are broken otherwise
    assert 0.25 < found.terms / terms < 4.0
    assert found.width >= core_of(*rows_of(model))
    assert not count_min_degree(*rows_of(model), found.width - 3).is_narrow


def test_trees_and_fronts_are_counted_exactly():
    chain = sz.Ising.from_edges(50, [(i, i + 1) for i in range(49)], np.full(49, 0.3))
    assert count_min_degree(*rows_of(chain), 5) == (1, 99.0, True, True)
    star = sz.Ising.from_edges(50, [(0, i) for i in range(1, 50)], np.full(49, 0.3))
    assert not count_min_degree(*rows_of(star), 5).is_known
    model = strip(6, 20)
    assert has_narrow_front(*rows_of(model), 6)
    assert not has_narrow_front(*rows_of(model), 5)


def test_wide_graphs_are_refused_before_an_order_is_looked_for(monkeypatch):
    monkeypatch.setattr(exact_method, "MOST_SPINS_UNSCREENED", 100)
    monkeypatch.setattr(exact_method, "SPINS_NEAR", 300)
    narrow, wide = strip(8, 60), strip(22, 22)
    exact = sz.Exact(max_memory=8 * 2**13)
    assert exact.plan(narrow).refusal is None
    monkeypatch.setattr(order, "adjacency_of", lambda *_: pytest.fail("looked for"))
    assert "out of reach for a component of 484 spins" in exact.plan(wide).refusal


def test_large_models_are_described_by_counting(monkeypatch):
    from spectralz.inference import description

    model = strip(5, 40)
    planned = sz.describe(model)
    monkeypatch.setattr(description, "MOST_SPINS_TO_PLAN", 10)
    counted = sz.describe(model)
    assert counted.treewidth_lower == planned.treewidth_lower == 2
    assert 5 <= counted.treewidth_upper <= 8
    assert 0.3 < counted.exact_terms / planned.exact_terms < 10.0
    assert counted.exact_memory >= planned.exact_memory
    monkeypatch.setattr(description, "MOST_WIDTH_TO_COUNT", 3)
    assert sz.describe(model).exact_terms is None


@pytest.mark.parametrize("seed", range(5))
def test_components_of_dense_couplings(seed):
    A = np.triu(np.random.default_rng(seed).random((30, 30)) < 0.04).astype(float)
    dense = sz.Ising(None, A + A.T)
    sparse = sz.Ising(None, dense.storage.as_sparse().matrix)
    expected = connected_components(A, directed=False)[1]
    assert dense.storage.component_labels().tolist() == expected.tolist()
    assert sparse.storage.component_labels().tolist() == expected.tolist()


# ----------------------------------------------------------------------------- what a sweep costs where it costs much


def test_the_time_of_a_large_dense_model_is_that_of_a_part_times_the_squares(monkeypatch):
    seconds = FakeClock(step=0.0)
    monkeypatch.setattr(sweeps, "LARGE_DENSE", 50)
    monkeypatch.setattr(sweeps, "PART_OF_DENSE", 40)
    count_sweeps(monkeypatch, seconds, 1e-3)  # of each spin
    model = sz.generators.complete(120, 0.3, seed=0)
    with using_clock(seconds):
        assert sweeps.seconds_of_sweeps(model, 7) == pytest.approx(9 * 7 * 64 * 40 * 1e-3)
        assert sweeps.seconds_of_sweeps(sz.generators.complete(50, 0.3, seed=0), 7) == 0.0
        assert sweeps.seconds_of_sweeps(sz.generators.grid(8, 1.0, seed=0), 7) == 0.0
        monkeypatch.setattr(sweeps, "LARGE_SPARSE", 60)
        assert sweeps.seconds_of_sweeps(sz.generators.grid(8, 1.0, seed=0), 7) == pytest.approx(7 * 64 * 64 * 1e-3)


def test_states_that_cannot_be_swept_in_time_come_from_mean_field(monkeypatch):
    monkeypatch.setattr(auto, "seconds_of_sweeps", lambda *_: 60.0)
    model = sz.generators.complete(60, 0.3, seed=0)
    with pytest.warns(sz.errors.InaccurateWarning, match="come from mean field"):
        states = sz.sample(model, 70, exclude=["exact", "quadrature"], budget=1.0)
    assert states.shape == (70, 60)
    assert set(np.unique(states)) == {-1, 1}


def test_states_by_mean_field_have_its_means():
    field = np.linspace(-2.0, 2.0, 30)
    coupling = 0.01 * (np.ones((30, 30)) - np.eye(30))
    model = sz.Ising(field, coupling)
    states = states_by_mean_field(model, 20_000, np.random.default_rng(0))
    mean = sz.marginals(model, "mf").mean
    assert np.abs(states.mean(axis=0) - mean).max() < 5.0 / np.sqrt(len(states))


def test_a_ratio_of_models_that_cannot_be_swept_shares_the_budget(monkeypatch):
    budgets = []

    def solved(model, method):
        budgets.append(method.budget)
        return sz.log_z(model, "mf")

    monkeypatch.setattr(ratio, "seconds_of_sweeps", lambda *_: 60.0)
    monkeypatch.setattr(ratio, "_exactly", lambda *_: None)
    monkeypatch.setattr(ratio, "log_z", solved)
    model = sz.generators.complete(12, 0.3, seed=0)
    found = sz.log_ratio(model, 0.9 * model, budget=2.0)
    assert "each was solved by itself" in found.status
    assert 1.5 < sum(budgets) <= 2.0


@pytest.mark.parametrize("budget", [{"budget": 2.0}, {"work": 2e9}])
def test_exact_answers_of_a_ratio_share_what_they_may_cost(monkeypatch, budget):
    asked = []

    def chosen(method, model):
        asked.append(method)
        return method

    monkeypatch.setattr(sz.Auto, "choose", chosen)
    monkeypatch.setattr(ratio, "_bridged", lambda *_: sz.Quantity(0.0, 0.0, sz.Kind.ESTIMATE, False, sz.Status("")))
    model = sz.generators.complete(12, 0.3, seed=0)
    sz.log_ratio(model, 0.9 * model, **budget)
    ends = [method.budget if "budget" in budget else method.work / 1e9 for method in asked]
    assert ends == pytest.approx([1.0, 1.0], rel=0.1)


def test_temperatures_that_cannot_be_swept_in_time_are_those_of_the_pseudo_likelihood(monkeypatch):
    monkeypatch.setattr(sample_temperature, "seconds_of_sweeps", lambda *_: 60.0)
    model = sz.generators.complete(12, 0.3, seed=0)
    found = sz.temperature(model, sz.sample(model, 200, seed=0), budget=1.0)
    assert found.method == "pseudo"
    assert "give a larger budget" in found.status


def test_curves_for_a_temperature_end_with_the_budget(monkeypatch):
    seconds, budgets = FakeClock(step=0.0), []
    curve = sample_temperature.thermodynamics

    def slow(*arguments, budget, **options):
        budgets.append(budget)
        seconds.advance(0.6)
        return curve(*arguments, **options)

    monkeypatch.setattr(sample_temperature, "thermodynamics", slow)
    model = sz.generators.complete(12, 0.3, seed=0)
    states = sz.sample(model.scaled(0.7), 200, seed=0)
    with using_clock(seconds):
        sz.temperature(model, states, budget=1.0)
    assert budgets == pytest.approx([0.5, 0.1])


def test_min_fill_is_left_out_where_no_other_rule_helps_and_it_would_take_long():
    rng = np.random.default_rng(0)
    pairs = {tuple(sorted(rng.choice(200, 2, replace=False).tolist())) for _ in range(600)}
    adjacency = order.adjacency_of(200, np.array(sorted(pairs)))
    spins = [v for v in range(200) if adjacency[v]]
    names, entries = ("min-degree", "min-fill"), 1 << 10  # too few for either
    tried = []

    def spied(*arguments):
        tried.append(arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(best_order.RULES, "min-fill", spied)
        for seconds in (0.0, 1.0):
            search = best_order.Search(steps=0, most_fill_time=1e9 * seconds)
            assert best_order.cheapest_order(spins, adjacency, entries, names, search) is None
            assert len(tried) == (seconds > 0.0)


def test_cheap_exact_answers_of_many_components_end():
    plan_of_one = exact_method.Exact().plan(sz.generators.complete(8, 0.3, seed=0))
    seconds = FakeClock(step=0.0)
    with using_clock(seconds):
        deadline = Deadline.after(1.0)
        for passed, is_in_time in ((0.9, True), (1.4, True), (1.6, False)):
            seconds.time = passed
            assert exact_costs.is_affordable(plan_of_one, deadline, with_means=True) == is_in_time
