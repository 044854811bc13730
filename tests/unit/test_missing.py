"""Tables with missing cells: likelihoods, fits and predictions against sums over all states, written out."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import spectralz as sz
from spectralz._support.clock import using_clock
from spectralz._support.deadline import Deadline
from spectralz.errors import InaccurateWarning, ModelError, OptionError, TooLargeError
from spectralz.inference import rows
from spectralz.learning import expectations, minimizing
from spectralz.learning.expectations import Incomplete, observed
from spectralz.learning.minimizing import Minimum, best_of_starts
from spectralz.learning.problem import Penalty, problem_of
from spectralz.learning.table import table_of
from spectralz.parts.missing_cells import missing_cells, neighbors_of
from spectralz.parts.pairs import all_pairs
from tests.helpers import FakeClock
from tests.reference.states import all_states

EDGES = np.array([(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 5)])


def statistics(x, edges):
    return np.hstack([x, x[:, edges[:, 0]] * x[:, edges[:, 1]]]).astype(float)


def completions(x):
    """Return all ways to fill in the zeros of a row."""
    missing = np.flatnonzero(x == 0)
    states = np.tile(x, (2 ** len(missing), 1))
    states[:, missing] = list(itertools.product([-1, 1], repeat=len(missing)))
    return states


def rows_with_gaps(n, count, share, seed):
    rng = np.random.default_rng(seed)
    x = rng.choice([-1, 1], (count, n)).astype(np.int8)
    x[rng.random(x.shape) < share] = 0
    return x


def gaps(x):
    """Return rows with NaN instead of zeros."""
    return np.where(x == 0, np.nan, x)


def data_of(n, count, share, seed, size=0.4):
    """Return a model, and rows of it with missing cells."""
    rng = np.random.default_rng([seed, 7])
    A = np.triu(rng.normal(0.0, size / 2.0, (n, n)), 1)
    model = sz.Ising(rng.normal(0.0, 0.3, n), A + A.T)
    X = sz.sample(model, count, seed=rng).astype(float)
    X[rng.random(X.shape) < share] = np.nan
    return model, X[~np.isnan(X).all(axis=1)]


def slow_log_likelihood(parameters, X, edges):
    """Return the mean log-likelihood of known cells, a sum over all states for each row."""
    states = all_states(X.shape[1])
    log_weight = statistics(states, edges) @ parameters
    total = np.logaddexp.reduce(log_weight)
    agree = [np.all((states == x) | np.isnan(x), axis=1) for x in X]
    return float(np.mean([np.logaddexp.reduce(log_weight[rows]) - total for rows in agree]))


def slow_fit(X, edges):
    start = np.zeros(X.shape[1] + len(edges))
    return minimize(lambda p: -slow_log_likelihood(p, X, edges), start, tol=1e-12).x


def parameters_of(fit):
    return np.concatenate([fit.model.field, fit.model.edges()[1]])


# ------------------------------------------------------------------------------------------------- sums over cells


@pytest.mark.parametrize("edges", [EDGES, all_pairs(6)], ids=["sparse", "dense"])
def test_sums_over_missing_cells_are_those_over_all_completions(edges):
    rng = np.random.default_rng(0)
    field, J, weight = rng.normal(size=6), rng.normal(size=len(edges)), rng.random(30)
    x = rows_with_gaps(6, 30, 0.4, 1)
    cells = missing_cells(x, neighbors_of(6, edges))
    log_sum, moments, covariance = cells.moments(field, J, weight, True)
    wanted = np.zeros(len(moments)), np.zeros(covariance.shape)
    for r, row in enumerate(x):
        values = statistics(completions(row), edges)
        known = statistics(row[None], edges)[0]
        log_weight = values @ np.concatenate([field, J])
        total = np.logaddexp.reduce(log_weight)
        p = np.exp(log_weight - total)
        assert log_sum[r] == pytest.approx(total - known @ np.concatenate([field, J]), abs=1e-12)
        mean = p @ values
        wanted[0][:] += weight[r] * (mean - known)
        wanted[1][:] += weight[r] * ((values * p[:, None]).T @ values - np.outer(mean, mean))
        assert cells.sums(field, J)[1][r] == pytest.approx((1 + mean[:6]) / 2, abs=1e-12)
    assert moments == pytest.approx(wanted[0], abs=1e-12)
    assert covariance == pytest.approx(wanted[1], abs=1e-12)


def test_groups_are_cells_that_are_coupled():
    cells = missing_cells(np.array([[0, 1, 0, 0, 1, 0]], dtype=np.int8), neighbors_of(6, EDGES))
    found = [sorted(group.tolist()) for group in np.split(cells.spin, cells.first[1:-1])]
    assert found == [[0, 2, 3, 5]]
    cells = missing_cells(np.array([[0, 1, 1, 0, 0, 1]], dtype=np.int8), neighbors_of(6, EDGES))
    assert cells.sizes.tolist() == [1, 1, 1]


def test_huge_fields_and_couplings_do_not_overflow():
    cells = missing_cells(np.zeros((1, 2), dtype=np.int8), neighbors_of(2, np.array([[0, 1]])))
    log_sum, up = cells.sums(np.array([1e300, -1e300]), np.array([1e300]))
    assert log_sum[0] == pytest.approx(1e300)
    assert np.all(np.isfinite(up))


def test_draws_follow_the_model():
    x = np.array([[0, 1, 0, 0, 0, -1]], dtype=np.int8)
    rng = np.random.default_rng(3)
    field, J = rng.normal(size=6), rng.normal(size=len(EDGES))
    cells = missing_cells(x, neighbors_of(6, EDGES))
    drawn = cells.completed(field, J, 20_000, rng)
    assert np.all(drawn[:, 0, [1, 5]] == [1, -1])
    off = (drawn[:, 0] > 0).mean(axis=0) - cells.sums(field, J)[1][0]
    assert np.abs(off).max() < 2.0 / np.sqrt(20_000)


# -------------------------------------------------------------------------------------------------------- log_prob


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(5)
    A = np.triu(rng.normal(size=(6, 6)), 1)
    return sz.Ising(rng.normal(size=6), A + A.T + np.diag(rng.normal(size=6)), offset=0.7)


@pytest.fixture(scope="module")
def known(model):
    """Return rows, and the log-probabilities of their known parts."""
    x = rows_with_gaps(6, 12, 0.4, 2)
    x[3] = 0
    x[4] = 1
    total = np.logaddexp.reduce(model.log_weight(all_states(6)))
    return x, np.array([np.logaddexp.reduce(model.log_weight(completions(row))) - total for row in x])


def test_log_prob_of_a_row_is_that_of_its_known_part(model, known):
    x, wanted = known
    found = sz.log_prob(model, gaps(x))
    assert found.log_prob == pytest.approx(wanted, abs=1e-12)
    assert found.std_error is None
    assert found.trusted
    assert found.log_prob[3] == pytest.approx(0.0, abs=1e-12)  # nothing is known


@pytest.mark.parametrize("kind", ["none", "pandas", "masked", "zeros and ones"])
def test_missing_cells_may_be_written_in_many_ways(model, known, kind):
    x, wanted = known
    written = {
        "none": [[None if cell == 0 else int(cell) for cell in row] for row in x.tolist()],
        "pandas": pd.DataFrame(gaps(x)).astype("Int64"),
        "masked": np.ma.array(np.where(x == 0, 5, x), mask=x == 0),
        "zeros and ones": pd.DataFrame(gaps(x)).replace(-1, 0).astype("boolean"),
    }[kind]
    values = "01" if kind == "zeros and ones" else None
    assert sz.log_prob(model, written, values=values).log_prob == pytest.approx(wanted, abs=1e-12)


def test_evidence_fills_in_cells(model, known):
    x, _ = known
    found = sz.log_prob(model, gaps(x), given={0: 1}).log_prob
    total = np.logaddexp.reduce(model.log_weight(completions(np.array([1, 0, 0, 0, 0, 0], dtype=np.int8))))
    for row, value in zip(x, found, strict=True):
        if row[0] == -1:
            assert value == -np.inf
        else:
            row = row.copy()
            row[0] = 1
            assert value == pytest.approx(np.logaddexp.reduce(model.log_weight(completions(row))) - total, abs=1e-12)


def test_estimated_rows_have_errors_of_their_own(model, known):
    x, wanted = known
    found = sz.log_prob(model, gaps(x), "annealing", population=500, runs=2)
    assert found.std_error.shape == (12,)
    assert found.std_error[3] > found.estimate.std_error  # a sum over all cells, apart from that of log Z
    assert found.std_error[4] == found.estimate.std_error  # no cell is missing
    assert np.all(np.abs(found.log_prob - wanted) < 5.0 * found.std_error)
    assert found.lower is None
    assert "±" in repr(found)
    assert sz.log_prob(model, gaps(x), "bp").std_error is None


def test_visible_units_alone_are_rows_of_a_machine():
    rng = np.random.default_rng(0)
    machine = sz.RBM(rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=3))
    visible = rng.integers(2, size=(5, 4))
    found = sz.log_prob(machine, visible)
    assert found.log_prob == pytest.approx(machine.log_likelihood(visible).log_prob, abs=1e-12)
    with pytest.raises(ModelError, match="7 values, or of its 4 visible units"):
        sz.log_prob(machine, visible[:, :3])


# --------------------------------------------------------------------------------------------------------- predict


def slow_probability(model, x):
    """Return P(+1) of every cell by the weights of all completions."""
    found = x.astype(float)
    for r, row in enumerate(x):
        states = completions(row)
        weight = np.exp(model.log_weight(states) - model.log_weight(states).max())
        found[r] = (weight / weight.sum()) @ (states > 0)
    return found


def test_predictions_are_conditional_probabilities(model, known):
    x, _ = known
    found = sz.predict(model, gaps(x))
    assert found.probability == pytest.approx(slow_probability(model, x), abs=1e-12)
    assert found.std_error is None
    assert found.trusted
    assert np.array_equal(found.missing, x == 0)
    assert repr(found) == f"Prediction({(x == 0).sum()} missing cells in {(x == 0).any(axis=1).sum()} rows, exact)"
    one = sz.predict(model, gaps(x)[0])
    assert np.array_equal(one.probability, found.probability[0])
    bits = np.where(x == 0, np.nan, (x + 1) / 2)
    assert np.array_equal(sz.predict(model, bits, values="01"), found.probability)


def test_small_probabilities_keep_their_digits():
    pair = sz.Ising.from_edges(2, [(0, 1)], [30.0])
    assert sz.predict(pair, [[None, -1]]).probability[0, 0] == pytest.approx(1 / (1 + np.exp(60.0)), rel=1e-12)


def test_predictions_of_other_methods_have_errors(model, known):
    x, _ = known
    wanted = slow_probability(model, x)
    found = sz.predict(model, gaps(x), "annealing", population=500, runs=2, seed=3)
    assert found.std_error.shape == x.shape
    assert np.all(found.std_error[x != 0] == 0.0)
    assert np.all(np.abs(found.probability - wanted) <= 5.0 * found.std_error + 1e-12)
    same = sz.predict(model, gaps(x), "annealing", population=500, runs=2, seed=3)
    assert np.array_equal(same.probability, found.probability)
    assert sz.predict(model, gaps(x), "bp").std_error is None
    with pytest.raises(OptionError, match="gives no marginals"):
        sz.predict(model, gaps(x), "sdp")


def test_rows_that_lack_much_go_to_the_method(monkeypatch, model, known):
    x, wanted = known
    monkeypatch.setattr(rows, "MOST_STATES_OF_ROW", 4)
    found = sz.predict(model, gaps(x))
    assert found.probability == pytest.approx(slow_probability(model, x), abs=1e-12)
    assert found.is_exact
    assert sz.log_prob(model, gaps(x)).log_prob == pytest.approx(wanted, abs=1e-12)
    shares = [rows.with_part(sz.Auto(budget=8.0), 4).budget, rows.with_part(sz.Auto(work=8e9), 4).work]
    assert shares == [2.0, 2e9]


def test_an_interrupt_leaves_predictions_that_are_not_trusted(monkeypatch, model, known):
    x, _ = known

    def interrupted(self, model, *, pairs):
        raise KeyboardInterrupt

    monkeypatch.setattr(rows, "MOST_STATES_OF_ROW", 1)
    monkeypatch.setattr(sz.Auto, "run_marginals", interrupted)
    found = sz.predict(model, gaps(x))
    assert found.interrupted
    assert not found.trusted
    assert np.all((found.probability >= 0.0) & (found.probability <= 1.0))


def test_a_table_of_predictions_looks_like_the_data():
    pair = sz.Ising.from_edges(2, [(0, 1)], [1.0], names=["rain", "wet"])
    table = pd.DataFrame({"rain": [1, None], "wet": [None, -1]}, index=["mon", "tue"])
    frame = sz.predict(pair, table).to_pandas()
    assert list(frame.columns) == ["rain", "wet"]
    assert list(frame.index) == ["mon", "tue"]
    assert frame.loc["mon", "wet"] == pytest.approx(1 / (1 + np.exp(-2.0)))
    machine = sz.RBM([[2.0], [1.0]], values="pm1")
    assert sz.predict(machine, [[1, None]]).probability.shape == (1, 2)
    nothing = sz.predict(pair, np.empty((0, 2)))
    assert len(sz.log_prob(pair, []).log_prob) == 0
    assert nothing.probability.shape == (0, 2)


def test_columns_of_a_frame_are_found_by_their_names():
    model = sz.Ising.from_edges(3, [(0, 1), (1, 2)], [1.0, 0.5], field=[0.3, 0.0, -0.2], names=["a", "b", "c"])
    X = sz.sample(model, 50, seed=3).astype(float)
    X[np.random.default_rng(4).random(X.shape) < 0.3] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    turned = frame[["c", "a", "b"]]
    assert sz.predict(model, turned).to_pandas()[["a", "b", "c"]].equals(sz.predict(model, frame).to_pandas())
    assert np.array_equal(sz.log_prob(model, turned), sz.log_prob(model, frame))
    assert sz.predict(model, frame[["a"]]).probability.shape == (50, 1)
    part = sz.log_prob(model, frame[["b"]])  # the others are summed over
    assert np.array_equal(part, sz.log_prob(model, np.where(frame.columns == "b", X, np.nan)))
    assert sz.predict(model, frame[["b"]]).probability.shape == (50, 1)
    fit = sz.fit(frame)
    assert fit.score(turned) == pytest.approx(fit.score(frame), abs=1e-12)
    with pytest.raises(ModelError, match="the columns are a, b, z and the spins a, b, c: there is no spin 'z'"):
        sz.predict(model, frame.rename(columns={"c": "z"}))


# -------------------------------------------------------------------------------------------------------------- fit


@pytest.mark.parametrize("graph", [None, [(0, 1), (1, 2), (2, 3)]], ids=["all pairs", "chain"])
def test_an_exact_fit_maximizes_the_likelihood_of_known_cells(graph):
    _, X = data_of(4, 400, 0.25, 0)
    fit = sz.fit(X, graph=graph)
    edges = all_pairs(4) if graph is None else np.array(graph)
    at = parameters_of(fit)
    assert fit.log_likelihood == pytest.approx(slow_log_likelihood(at, X, edges), abs=1e-10)
    assert fit.log_likelihood == pytest.approx(sz.log_prob(fit.model, X).mean, abs=1e-10)
    assert fit.score(X) == pytest.approx(fit.log_likelihood, abs=1e-10)
    other = slow_fit(X, edges)
    assert slow_log_likelihood(other, X, edges) == pytest.approx(fit.log_likelihood, abs=1e-8)
    assert at == pytest.approx(other, abs=2e-3)
    assert fit.status.converged
    assert "expected moments match" in fit.status


def test_standard_errors_are_those_of_the_observed_information():
    _, X = data_of(3, 300, 0.3, 1)
    fit = sz.fit(X)
    at, edges, step = parameters_of(fit), all_pairs(3), 1e-3
    steps = step * np.eye(len(at))
    hessian = np.array(
        [
            [
                sum(a * b * slow_log_likelihood(at + a * u + b * v, X, edges) for a in (1, -1) for b in (1, -1))
                for u in steps
            ]
            for v in steps
        ]
    ) / (4 * step**2)
    wanted = np.sqrt(np.diag(np.linalg.inv(-len(X) * hessian)))
    assert np.concatenate([fit.field_error, fit.coupling_error]) == pytest.approx(wanted, rel=1e-4)
    assert np.sqrt(np.diag(fit.covariance)) == pytest.approx(wanted, rel=1e-4)
    complete = sz.fit(X[~np.isnan(X).any(axis=1)])
    assert np.all(fit.coupling_error < complete.coupling_error)


def test_equal_rows_count_once_and_weights_count_rows():
    _, X = data_of(4, 300, 0.2, 2)
    whole, seen = np.unique(np.nan_to_num(X), axis=0, return_counts=True)
    fit, other = sz.fit(X), sz.fit(gaps(whole), weights=seen)
    assert parameters_of(fit) == pytest.approx(parameters_of(other), abs=1e-8)
    assert fit.rows == other.rows == len(X)
    empty = np.vstack([X, np.full((50, 4), np.nan)])  # rows without any value say nothing
    assert sz.fit(empty).rows == len(X)
    assert parameters_of(sz.fit(empty)) == pytest.approx(parameters_of(fit), abs=1e-8)


def slow_equations(parameters, X, edges):
    """Return the mean over rows of E[score of the pseudo-likelihood | row], with completions written out."""
    total = np.zeros(len(parameters))
    n = X.shape[1]
    J = np.zeros((n, n))
    J[edges[:, 0], edges[:, 1]] = J[edges[:, 1], edges[:, 0]] = parameters[n:]
    for row in np.nan_to_num(X).astype(int):
        x = completions(row)
        log_weight = statistics(x, edges) @ parameters
        p = np.exp(log_weight - np.logaddexp.reduce(log_weight))
        rest = x - np.tanh(x @ J + parameters[:n])
        pairs = x[:, edges[:, 1]] * rest[:, edges[:, 0]] + x[:, edges[:, 0]] * rest[:, edges[:, 1]]
        total += p @ np.hstack([rest, pairs])
    return total / len(X)


def test_pseudo_solves_its_equations_and_its_errors_are_the_sandwich_of_their_slope():
    _, X = data_of(4, 300, 0.25, 3)
    fit, edges = sz.fit(X, method="pseudo"), all_pairs(4)
    at = parameters_of(fit)
    assert np.abs(slow_equations(at, X, edges)).max() < 1e-6
    assert "as if what is missing did not depend on its value" in fit.status
    slope = np.array(
        [(slow_equations(at + u, X, edges) - slow_equations(at - u, X, edges)) / 2e-4 for u in 1e-4 * np.eye(len(at))]
    ).T
    scores = np.array([slow_equations(at, X[r : r + 1], edges) for r in range(len(X))])
    inverse = np.linalg.inv(slope)
    wanted = np.sqrt(np.diag(inverse @ (scores.T @ scores / len(X)) @ inverse.T) / len(X))
    assert np.concatenate([fit.field_error, fit.coupling_error]) == pytest.approx(wanted, rel=1e-3)
    exact = sz.fit(X)
    assert np.abs(at - parameters_of(exact)).max() < exact.coupling_error.max()


def test_rows_that_lack_many_values_are_completed_by_draws(monkeypatch):
    _, X = data_of(5, 400, 0.3, 4)
    listed = sz.fit(X, method="pseudo")
    monkeypatch.setattr(expectations, "MOST_LISTED", 1)
    drawn = sz.fit(X, method="pseudo")
    assert drawn.status.converged
    assert np.abs(parameters_of(drawn) - parameters_of(listed)).max() < 0.5 * listed.coupling_error.max()
    assert drawn.coupling_error == pytest.approx(listed.coupling_error, rel=0.1)


def test_a_sampled_fit_is_near_the_exact_one():
    _, X = data_of(5, 1000, 0.2, 5)
    fit, exact = sz.fit(X, method="sampled"), sz.fit(X)
    assert fit.status.converged
    assert np.all(np.abs(parameters_of(fit) - parameters_of(exact)) < 0.5 * np.sqrt(np.diag(exact.covariance)))
    assert fit.coupling_error == pytest.approx(exact.coupling_error, rel=0.1)


def test_graphs_of_small_treewidth_take_elimination():
    truth = sz.generators.chain(n=18, strength=0.5)
    X = sz.sample(truth, 400, seed=11).astype(float)
    X[np.random.default_rng(12).random(X.shape) < 0.15] = np.nan
    fit = sz.fit(X, graph=truth)
    problem = problem_of(table_of(X), truth.edges()[0], None, Penalty())
    data = observed(problem, table_of(X))
    assert isinstance(data, Incomplete)
    exact = sz.marginals(fit.model, "exact")
    expected = data.expected(parameters_of(fit)).moments
    assert expected == pytest.approx(np.concatenate([exact.mean, exact.pair_mean]), abs=1e-5)
    assert fit.coupling_error is not None


def test_penalties_and_choices_take_missing_cells():
    _, X = data_of(5, 300, 0.1, 6)
    ridge = sz.fit(X, penalty="l2", strength="cv")
    assert ridge.status.converged
    assert len(ridge.details["cv"]) == len(ridge.details["strengths"])
    sparse = sz.fit(X, penalty="l1", strength=0.05)
    assert len(sparse.edges) < 10
    assert sz.fit(X, graph="chosen").status.converged


def test_many_columns_are_chosen_by_completed_rows():
    truth = sz.generators.chain(n=16, strength=0.6)
    X = sz.sample(truth, 600, seed=21).astype(float)
    X[np.random.default_rng(22).random(X.shape) < 0.05] = np.nan
    fit = sz.fit(X, graph="chosen", method="pseudo", likelihood=False)
    found = {tuple(edge) for edge in fit.edges.tolist()}
    assert {(k, k + 1) for k in range(15)} <= found
    assert len(found) < 30


class TwoWells:
    """A function of one coupling with two minima, at -1 and a little lower at +1."""

    def value(self, at):
        x = at[-1]
        slope = np.zeros(len(at))
        slope[:-1], slope[-1] = at[:-1], 4 * x * (x * x - 1) - 0.1
        return float(np.sum(at[:-1] ** 2) / 2 + (x * x - 1) ** 2 - 0.1 * x), slope


def test_starts_that_end_differently_are_counted():
    table = table_of([[0, 1], [1, 0], [1, 1], [0, 0]])
    problem = problem_of(table, np.array([[0, 1]]), None, Penalty())
    left = Minimum(np.array([0.0, 0.0, -0.9870]), 1e-9, 1)
    best, words = best_of_starts(TwoWells(), problem, left, 1e-6, 100, 0)
    assert best.parameters[2] == pytest.approx(1.012, abs=0.01)
    assert "starts ended in a lower maximum, by 0.2 per row, so that there may be a higher one" in words


def test_an_interrupt_between_starts_keeps_the_best(monkeypatch):
    _, X = data_of(3, 200, 0.1, 10)
    search = minimizing.minimize
    monkeypatch.setattr(
        minimizing, "minimize", lambda *args: replace(search(*args), stopped="interrupted", residual=np.inf)
    )
    fit = sz.fit(X)
    assert fit.interrupted
    assert "interrupted" in fit.status or fit.status.converged
    assert parameters_of(fit) == pytest.approx(slow_fit(X, all_pairs(3)), abs=2e-3)


def test_a_concave_likelihood_has_one_maximum():
    _, X = data_of(3, 200, 0.1, 10)
    fit = sz.fit(X)
    assert "starts" not in fit.status


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([[0, None], [1, None], [None, 1], [None, 0]], "no row has values of both column 0 and column 1"),
        ([[0, None], [1, 1], [None, 1], [0, 1]], r"column 1 is 1 in all rows that have it"),
        (pd.DataFrame({"a": [0, 1, None], "b": [None, None, None]}), "column 'b' has no value in any row"),
        ([[0, "x"], [1, None]], "X holds 'x'"),
    ],
)
def test_what_missing_cells_leave_open_is_an_error(X, words):
    with pytest.raises(ModelError, match=words):
        sz.fit(X)


def test_too_many_missing_cells_are_an_error():
    X = sz.sample(sz.generators.complete(30, 0.02, seed=0), 200, "annealing", seed=5).astype(float)
    X[0, :26] = np.nan
    for method in ("pseudo", "sampled"):
        with pytest.raises(TooLargeError, match="rows lack up to 26 values that are coupled"):
            sz.fit(X, method=method, penalty="l2")


def test_goodness_compares_states_with_the_same_gaps():
    _, X = data_of(6, 3000, 0.2, 8)
    fit = sz.fit(X)
    found = fit.goodness()
    assert not found.is_exact
    assert found.why == "values are missing"
    assert np.abs(found.mean_observed - found.mean_predicted).max() < 0.08
    assert np.abs(found.active_observed - found.active_predicted).max() < 0.03
    assert found.third_z < 1.5
    assert len(fit.plot().axes) == 4


# ------------------------------------------------------------------------------------------------------ estimators


def test_estimators_take_missing_cells():
    sklearn = pytest.importorskip("sklearn")
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import FunctionTransformer

    _, X = data_of(4, 300, 0.15, 9)
    X = (X + 1) / 2
    estimator = sklearn.base.clone(sz.IsingEstimator(penalty="l2", strength=0.01)).fit(X)
    probability = estimator.missing_probability(X)
    assert np.array_equal(probability, sz.predict(estimator.model_, X, values="01").probability)
    assert np.array_equal(probability[~np.isnan(X)], X[~np.isnan(X)])
    pipe = Pipeline([("same", FunctionTransformer()), ("ising", sz.IsingEstimator(penalty="l2"))]).fit(X)
    assert pipe.score(X) == pytest.approx(estimator.score(X), abs=1e-6)
    search = GridSearchCV(sz.IsingEstimator(penalty="l2"), {"strength": [0.01, 1.0]}, cv=3).fit(X)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))


def test_states_that_lack_much_are_not_trusted_in_no_time():
    glass = sz.generators.complete(80, 1.0, seed=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", InaccurateWarning)
        found = sz.predict(glass, np.full((1, 80), np.nan), work=1e5)
    assert found.trusted or "give a larger budget" in str(caught[0].message)
    assert np.all(np.isfinite(found.probability))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exact", "pseudo"])
def test_intervals_hold_the_truth_as_often_as_they_say(method):
    within = []
    for k in range(100):
        truth, X = data_of(8, 1000, 0.2, 1000 + k, size=0.2)
        fit = sz.fit(X, method=method, likelihood=False)
        off = parameters_of(fit) - np.concatenate([truth.field, truth.edges()[1]])
        within.append(np.abs(off) < 1.959964 * np.sqrt(np.diag(fit.covariance)))
    assert 0.935 < np.mean(within) < 0.965  # 3,600 numbers, correlated within a fit


@pytest.mark.parametrize("kind", ["dense", "sparse", "terms"])
def test_rows_that_come_late_are_those_of_mean_field_of_the_missing_cells(kind):
    model = {
        "dense": sz.generators.complete(9, 0.2, seed=0),
        "sparse": sz.generators.grid(3, 0.4, seed=0),
        "terms": sz.Polynomial({(0, 1, 2): 0.5, (3, 4, 5, 6): -0.4, (1, 7): 0.3, (8,): 0.2, (0,): 0.1, (5,): -0.6}),
    }[kind]
    states = rows_with_gaps(9, 6, 0.5, seed=3)
    late = np.array([0, 2, 3, 5])
    found = rows.Rows(np.zeros(6), (states + 1) / 2.0, np.zeros(6))
    rows._by_mean_field(found, model, states, late, Deadline())
    for r in late.tolist():
        free = model.condition({i: int(states[r, i]) for i in np.flatnonzero(states[r]).tolist()})
        truth = sz.marginals(free, "mf")
        assert found.log_weight[r] == pytest.approx(truth.estimate.log_z, abs=1e-8)
        assert found.up[r, states[r] == 0] == pytest.approx(truth.probability[:, 1], abs=1e-8)
        assert found.up[r, states[r] != 0].tolist() == ((states[r] + 1) / 2.0)[states[r] != 0].tolist()


def test_rows_for_which_there_is_no_time_are_not_trusted():
    model = sz.generators.complete(40, 0.5, seed=0)
    X = np.full((3, 40), np.nan)
    X[:, 0], X[1:, 1], X[2:, 2] = 1.0, 1.0, -1.0
    clock = FakeClock(step=0.3)
    with using_clock(clock), pytest.warns(InaccurateWarning):
        found = sz.predict(model, X, budget=1.0)
    assert not found.trusted
    assert found.std_error is None
    assert np.isfinite(found.probability).all()
