"""Fits against independent optimizers of enumerated likelihoods, numerical Hessians, and the truth."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

import spectralz as sz
from spectralz.errors import InaccurateWarning, ModelError, NotConvergedError, OptionError, TooLargeError
from spectralz.learning.expectations import Walsh, probabilities, walsh


def all_states(n):
    return np.array(list(itertools.product((-1, 1), repeat=n)))


def statistics(X, edges):
    """x_i and x_i x_j of every row, written out."""
    return np.array([[*row, *(row[i] * row[j] for i, j in edges)] for row in np.asarray(X, dtype=float)])


def literal(X, edges, l1=0.0, l2=0.0):
    """The mean negative log-likelihood per row with its penalty, state by state, and its gradient without l1."""
    n = X.shape[1]
    every, mean = statistics(all_states(n), edges), statistics(X, edges).mean(axis=0)

    def value(p):
        weights = every @ p
        total = logsumexp(weights)
        J = p[n:]
        gradient = np.exp(weights - total) @ every - mean + np.concatenate([np.zeros(n), l2 * J])
        return total - mean @ p + l1 * np.abs(J).sum() + l2 / 2 * (J**2).sum(), gradient

    return value


def data(n, rows, seed, strength=0.3):
    rng = np.random.default_rng(seed)
    edges = [(i, j) for i in range(n) for j in range(i + 1, n)]
    p = np.concatenate([rng.normal(size=n) * 0.3, rng.normal(size=len(edges)) * strength])
    log_weight = statistics(all_states(n), edges) @ p
    chosen = rng.choice(2**n, size=rows, p=np.exp(log_weight - logsumexp(log_weight)))
    return all_states(n)[chosen], edges, p


def parameters(fit):
    return np.concatenate([fit.model.field, fit.model.edges()[1]])


def optimum(X, edges, **penalty):
    value = literal(X, edges, **penalty)
    start = np.zeros(X.shape[1] + len(edges))
    return minimize(value, start, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000}).x


def test_the_transform_has_every_moment():
    rng = np.random.default_rng(0)
    p = rng.random(2**8)
    bits = 2 * ((np.arange(2**8)[:, None] >> np.arange(8)) & 1) - 1
    found = walsh(p)
    for mask in (0, 1, 0b101, 0b11110000, 255):
        own = [i for i in range(8) if mask >> i & 1]
        assert found[mask] == pytest.approx(p @ bits[:, own].prod(axis=1), abs=1e-12)


def test_moments_and_covariance_are_those_of_all_states():
    _, edges, p = data(5, 10, 1)
    every = statistics(all_states(5), edges)
    weight = np.exp(every @ p)
    weight /= weight.sum()
    log_z, mean, covariance = Walsh(5, np.array(edges)).moments_and_covariance(p)
    assert log_z == pytest.approx(logsumexp(every @ p), abs=1e-12)
    assert mean == pytest.approx(weight @ every, abs=1e-12)
    centered = every - weight @ every
    assert covariance == pytest.approx((weight[:, None] * centered).T @ centered, abs=1e-12)
    model = sz.Ising.from_edges(5, edges, p[5:], p[:5])
    codes = (all_states(5) > 0) @ (1 << np.arange(5))
    assert probabilities(model)[codes] == pytest.approx(weight, abs=1e-14)


@pytest.mark.parametrize("n", [2, 6, 9])
def test_the_exact_fit_is_the_optimum_of_the_enumerated_likelihood(n):
    X, edges, _ = data(n, 3000, n)
    fit = sz.fit(X)
    best = optimum(X, edges)
    assert fit.method == "exact"
    assert fit.status.converged
    assert parameters(fit) == pytest.approx(best, abs=1e-6)
    assert fit.log_likelihood == pytest.approx(-literal(X, edges)(best)[0], abs=1e-10)
    assert fit.std_error is None
    k = n + len(edges)
    assert fit.aic == pytest.approx(-2 * 3000 * fit.log_likelihood + 2 * k)
    assert fit.bic == pytest.approx(-2 * 3000 * fit.log_likelihood + k * np.log(3000))


def test_an_l2_penalty_is_the_optimum_too():
    X, edges, _ = data(6, 500, 0)
    fit = sz.fit(X, penalty="l2", strength=0.05)
    assert parameters(fit) == pytest.approx(optimum(X, edges, l2=0.05), abs=1e-6)
    assert fit.parameters < 21  # the effective number


def test_an_l1_penalty_satisfies_its_conditions_and_no_other_point_is_better():
    X, edges, _ = data(6, 500, 0)
    l1 = 0.05
    fit = sz.fit(X, penalty="l1", strength=l1)
    J = np.zeros((6, 6))
    J[tuple(fit.edges.T)] = fit.model.edges()[1]
    own = np.array([J[i, j] for i, j in edges])
    assert 0 < (own == 0.0).sum() < len(own)
    p = np.concatenate([fit.model.field, own])
    _, gradient = literal(X, edges)(p)
    assert np.abs(gradient[:6]).max() < 1e-7
    pairs = gradient[6:]
    assert pairs[own != 0.0] == pytest.approx(-l1 * np.sign(own[own != 0.0]), abs=1e-7)
    assert np.abs(pairs[own == 0.0]).max() <= l1 + 1e-7
    found = literal(X, edges, l1=l1)
    rng = np.random.default_rng(0)
    assert all(found(p + 1e-3 * rng.normal(size=len(p)))[0] > found(p)[0] for _ in range(50))
    assert fit.coupling_error is None
    assert fit.parameters == 6 + (own != 0.0).sum()
    with pytest.raises(OptionError, match="no standard errors"):
        fit.wald()


@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_standard_errors_are_those_of_a_numerical_hessian(l2):
    X, edges, _ = data(5, 800, 3)
    fit = sz.fit(X, **({"penalty": "l2", "strength": l2} if l2 else {}))
    value, p, step = literal(X, edges), parameters(fit), 1e-5
    hessian = np.array([(value(p + step * e)[1] - value(p - step * e)[1]) / (2 * step) for e in np.eye(len(p))])
    ridged = hessian + np.diag([0.0] * 5 + [l2] * len(edges))
    inverse = np.linalg.inv(ridged)
    error = np.sqrt(np.diag(inverse @ hessian @ inverse) / 800)
    assert np.concatenate([fit.field_error, fit.coupling_error]) == pytest.approx(error, rel=1e-6)


def test_the_pseudo_likelihood_is_the_optimum_of_its_literal_form():
    X, edges, _ = data(5, 600, 4)

    def value(p):
        J = np.zeros((5, 5))
        for (i, j), weight in zip(edges, p[5:], strict=True):
            J[i, j] = J[j, i] = weight
        total = 0.0
        for row in X:
            for i in range(5):
                h = p[i] + sum(J[i, j] * row[j] for j in range(5))
                total -= np.log(np.exp(row[i] * h) / (np.exp(h) + np.exp(-h)))
        return total / len(X)

    fit = sz.fit(X, method="pseudo")
    p = parameters(fit)
    assert -fit.details["pseudo_log_likelihood"] == pytest.approx(value(p), abs=1e-10)
    step = 1e-4
    slopes = [(value(p + step * e) - value(p - step * e)) / (2 * step) for e in np.eye(len(p))]
    assert np.abs(slopes).max() < 1e-6
    assert fit.aic is None
    assert fit.log_likelihood == pytest.approx(-literal(X, edges)(p)[0], abs=1e-9)


def test_the_sandwich_is_made_of_scores_and_numerical_hessian():
    from spectralz.learning.expectations import PseudoLikelihood
    from spectralz.learning.problem import Penalty, problem_of
    from spectralz.learning.table import table_of

    X, edges, p = data(4, 50, 5)
    problem = problem_of(table_of(X), np.array(edges), None, Penalty())
    objective = PseudoLikelihood(problem, table_of(X))
    step = 1e-5
    numeric = [(objective.value(p + step * e)[1] - objective.value(p - step * e)[1]) / (2 * step) for e in np.eye(10)]
    assert objective.hessian(p)[2] == pytest.approx(np.array(numeric), abs=1e-8)
    scores = np.array([PseudoLikelihood(problem, table_of(row[None])).value(p)[1] for row in X])
    assert objective.covariance_of_scores(p) == pytest.approx(scores.T @ scores / len(X), abs=1e-12)


def test_sparse_gradients_of_the_pseudo_likelihood_equal_dense_ones():
    X = np.random.default_rng(0).choice([-1, 1], size=(100, 12))
    chain = [(i, i + 1) for i in range(11)]
    rest = {(i, j): 0.0 for i in range(12) for j in range(i + 2, 12)}
    sparse, dense = sz.fit(X, graph=chain, method="pseudo"), sz.fit(X, fixed=rest, method="pseudo")
    assert parameters(sparse) == pytest.approx(parameters(dense), abs=1e-8)


@pytest.mark.parametrize("method", ["exact", "pseudo"])
def test_estimates_converge_as_one_over_the_root_of_rows(method):
    truth = sz.generators.complete(n=10, strength=0.2, seed=1)
    X = sz.sample(truth, 64_000, seed=2)
    true = np.concatenate([truth.field, truth.edges()[1]])
    errors = []
    for rows in (4000, 64_000):
        fit = sz.fit(X[:rows], method=method)
        errors.append(np.concatenate([fit.field_error, fit.coupling_error]))
        assert 0.6 < np.sqrt(np.mean(((parameters(fit) - true) / errors[-1]) ** 2)) < 1.4
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.2)


def covered(repetitions, rows=400, method="exact"):
    truth = sz.generators.complete(n=5, strength=0.4, seed=3)
    true = np.concatenate([truth.field, truth.edges()[1]])
    states = sz.sample(truth, repetitions * rows, seed=4).reshape(repetitions, rows, 5)
    inside = []
    for X in states:
        fit = sz.fit(X, method=method, likelihood=False)
        error = np.concatenate([fit.field_error, fit.coupling_error])
        inside.append(np.abs(parameters(fit) - true) < 1.959964 * error)
    return np.mean(inside)


@pytest.mark.parametrize("method", ["exact", "pseudo"])
def test_intervals_cover_the_truth(method):
    # 100 x 15 intervals, correlated within a repetition: a standard deviation of at most 1%.
    assert 0.92 < covered(100, method=method) < 0.98


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exact", "pseudo"])
def test_intervals_cover_the_truth_in_many_repetitions(method):
    assert 0.93 < covered(500, rows=1000, method=method) < 0.97


def test_elimination_gives_the_same_as_all_states():
    truth = sz.generators.grid(side=4, strength=0.4, seed=0)
    X = sz.sample(truth, 2000, seed=1)
    from spectralz.learning import likelihood

    whole = sz.fit(X, graph=truth)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(likelihood, "SPINS_OF_ALL_STATES", 0)
        patch.setattr(likelihood, "MOST_SPINS_UNASKED", 0)
        eliminated = sz.fit(X, graph=truth)
    assert eliminated.details["errors_from"] == "20000 states"
    assert parameters(eliminated) == pytest.approx(parameters(whole), abs=1e-5)
    assert eliminated.coupling_error == pytest.approx(whole.coupling_error, rel=0.05)
    assert eliminated.log_likelihood == pytest.approx(whole.log_likelihood, abs=1e-8)


def test_a_sampled_fit_is_near_the_exact_one():
    X = sz.sample(sz.generators.complete(n=8, strength=0.3, seed=0), 2000, seed=1)
    exact, sampled = sz.fit(X), sz.fit(X, method="sampled", seed=5)
    assert sampled.status.converged
    # A third of a standard error, on average.
    error = np.concatenate([exact.field_error, exact.coupling_error])
    assert np.sqrt(np.mean(((parameters(sampled) - parameters(exact)) / error) ** 2)) < 0.35
    assert sampled.coupling_error == pytest.approx(exact.coupling_error, rel=0.1)
    assert parameters(sz.fit(X, method="sampled", seed=5)).tolist() == parameters(sampled).tolist()


def test_zero_one_data_give_the_same_model_as_spins():
    X, _, _ = data(4, 300, 6)
    spins, bits = sz.fit(X), sz.fit((X + 1) // 2)
    assert parameters(spins) == pytest.approx(parameters(bits), abs=0)
    assert (spins.values, bits.values) == ("pm1", "01")
    assert sz.fit(X > 0).values == "01"
    assert bits.score((X + 1) // 2) == pytest.approx(spins.score(X), abs=1e-12)
    assert bits.score((X + 1) // 2) == pytest.approx(bits.log_likelihood, abs=1e-12)
    with pytest.raises(ModelError, match="only 0 and 1"):
        bits.score(X)


def test_weights_are_repeated_rows_and_moments_are_enough():
    X, _, _ = data(4, 100, 7)
    counts = np.random.default_rng(0).integers(0, 5, size=100)
    weighted, repeated = sz.fit(X, weights=counts), sz.fit(np.repeat(X, counts, axis=0))
    assert parameters(weighted) == pytest.approx(parameters(repeated), abs=1e-9)
    assert weighted.coupling_error == pytest.approx(repeated.coupling_error, rel=1e-8)
    assert weighted.rows == counts.sum()
    for method in ("pseudo", "exact"):
        two = (sz.fit(X, weights=counts, method=method), sz.fit(np.repeat(X, counts, axis=0), method=method))
        assert two[0].field_error == pytest.approx(two[1].field_error, rel=1e-6)
    table = repeated.table
    moments = {"mean": table.mean, "pair_mean": table.pair_mean, "rows": table.rows}
    assert parameters(sz.fit(moments=moments)) == pytest.approx(parameters(repeated), abs=1e-9)
    ones = {"mean": (table.mean + 1) / 2, "rows": table.rows}
    ones["pair_mean"] = (1 + table.mean[:, None] + table.mean + table.pair_mean) / 4
    assert parameters(sz.fit(moments=ones, values="01")) == pytest.approx(parameters(repeated), abs=1e-9)
    with pytest.raises(OptionError, match="needs the rows"):
        sz.fit(moments=moments, method="pseudo")
    with pytest.raises(ModelError, match="no data have these moments"):
        sz.fit(moments={"mean": [0.9, 0.9], "pair_mean": [[1, -0.9], [-0.9, 1]], "rows": 10})


def test_graphs_in_all_forms_and_names_of_columns():
    nx, pd = pytest.importorskip("networkx"), pytest.importorskip("pandas")
    X, _, _ = data(4, 500, 8)
    frame = pd.DataFrame(X, columns=list("abcd"))
    chain = [("a", "b"), ("d", "c"), ("b", "c")]
    forms = [chain, nx.Graph(chain), [(0, 1), (1, 2), (2, 3)], np.array([[1, 0], [1, 2], [3, 2]])]
    forms.append(sz.Ising.from_edges(4, [(0, 1), (1, 2), (2, 3)], 1.0, names=list("abcd")))
    fits = [sz.fit(frame, graph=form) for form in forms]
    assert all(parameters(fit).tolist() == parameters(fits[0]).tolist() for fit in fits)
    assert fits[0].model.names == ("a", "b", "c", "d")
    assert fits[0].edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert sz.fit(X.tolist(), names=list("abcd"), graph=chain).model == fits[0].model
    wald = fits[0].wald()
    assert wald.parameters[:5] == (("a",), ("b",), ("c",), ("d",), ("a", "b"))
    assert wald.z == pytest.approx(wald.estimate / wald.std_error)
    assert "a - b" in str(wald)


def test_parameters_may_be_fixed():
    X, edges, _ = data(4, 500, 9)
    fit = sz.fit(X, fixed={(0, 1): 0.25, (1, 2): 0.0, 3: -0.1})
    pairs, J = fit.model.edges()
    assert [1, 2] not in pairs.tolist()
    assert J[0] == 0.25
    assert fit.model.field[3] == -0.1
    assert fit.coupling_error[0] == fit.field_error[3] == 0.0
    assert fit.parameters == 10 - 3

    def reduced(z):
        return literal(X, edges)(np.array([*z[:3], -0.1, 0.25, z[3], z[4], 0.0, z[5], z[6]]))[0]

    best = minimize(reduced, np.zeros(7), options={"gtol": 1e-8}).x
    assert np.concatenate([fit.model.field[:3], J[1:]]) == pytest.approx(best, abs=1e-5)


def test_likelihood_ratio_and_goodness_of_fit():
    from scipy.stats import chi2

    X = sz.sample(sz.generators.chain(n=4, strength=0.6), 2000, seed=0)
    chain, whole = sz.fit(X, graph=[(0, 1), (1, 2), (2, 3)]), sz.fit(X)
    for test in (whole.compare(chain), chain.compare(whole)):
        assert test.df == 3
        assert test.statistic == pytest.approx(4000 * (whole.log_likelihood - chain.log_likelihood))
        assert test.p_value == pytest.approx(chi2.sf(test.statistic, 3))
        assert test.p_value > 0.01
    good = whole.goodness()
    assert good.pair_observed == pytest.approx(good.pair_predicted, abs=1e-7)
    p = probabilities(whole.model)
    seen = np.bincount((X > 0) @ (1 << np.arange(4)), minlength=16)
    assert good.statistic == pytest.approx(2 * (seen * np.log(seen / (2000 * p))).sum())
    assert good.df == 15 - 10
    assert good.p_value > 0.01
    assert good.third_observed == pytest.approx([X[:, t].prod(axis=1).mean() for t in good.triples.tolist()])
    codes = 2 * ((np.arange(16)[:, None] >> np.arange(4)) & 1) - 1
    assert good.third_predicted == pytest.approx([p @ codes[:, t].prod(axis=1) for t in good.triples.tolist()])
    assert good.active_predicted == pytest.approx(np.bincount((codes > 0).sum(axis=1), weights=p))
    assert good.active_observed == pytest.approx(np.bincount((X > 0).sum(axis=1), minlength=5) / 2000)
    with pytest.raises(OptionError, match="same data"):
        whole.compare(sz.fit(X[:1000]))
    with pytest.raises(OptionError, match="not all among"):
        sz.fit(X, graph=[(0, 3)]).compare(chain)


def test_a_wrong_model_is_seen_by_its_third_moments():
    rng = np.random.default_rng(0)
    X = rng.choice([-1, 1], size=(3000, 4))
    X[:, 3] = np.where(rng.random(3000) < 0.9, X[:, 0] * X[:, 1] * X[:, 2], X[:, 3])  # no pair shows it
    good = sz.fit(X).goodness()
    assert good.p_value < 1e-10
    Y = X[:, :3].copy()
    Y[:, 2] = np.where(rng.random(3000) < 0.5, Y[:, 0] * Y[:, 1], Y[:, 2])
    assert sz.fit(Y).goodness().third_z > 10


@pytest.mark.slow
def test_a_graph_is_chosen():
    truth = sz.generators.chain(n=8, strength=0.5)
    X = sz.sample(truth, 3000, seed=0)
    for select in ("ebic", "cv"):
        fit = sz.fit(X, graph="chosen", select=select)
        found = {tuple(edge) for edge in fit.edges.tolist()}
        assert {(i, i + 1) for i in range(7)} <= found
        assert len(found) < (10 if select == "ebic" else 28)
    from spectralz.learning import selecting

    with pytest.MonkeyPatch.context() as patch:  # by the pseudo-likelihood, as for more variables
        patch.setattr(selecting, "MOST_SPINS_OF_LIKELIHOOD", 0)
        assert len(sz.fit(X, graph="chosen").edges) == 7
    cv = sz.fit(X[:60], penalty="l2", strength="cv")
    assert 1e-4 < cv.strength < 10.0


def test_separation_is_said_and_a_penalty_helps():
    X, _, _ = data(4, 400, 10)
    X = X[~((X[:, 0] == 1) & (X[:, 1] == -1))]
    with pytest.raises(ModelError, match=r"no row has \+1 in column 0 together with -1 in column 1.*penalty"):
        sz.fit(X)
    assert sz.fit(X, penalty="l2", strength=0.01).status.converged
    twins = np.column_stack([X, X[:, 3]])
    with pytest.raises(ModelError, match="column 3 and column 4 are equal in all"):
        sz.fit(twins)
    with pytest.raises(ModelError, match="opposite"):
        sz.fit(np.column_stack([X[:, 3], -X[:, 3]]))
    constant = np.column_stack([X, np.ones(len(X), dtype=int)])
    for penalty in (None, "l2"):
        with pytest.raises(ModelError, match=r"column 4 is \+1 in all .* rows"):
            sz.fit(constant, penalty=penalty)


def test_separation_that_no_pair_shows_is_a_status():
    # All states of three spins but +++ and ---: every pair has all four cells, and the likelihood no maximum.
    X = np.array([x for x in all_states(3) if abs(x.sum()) < 3] * 20)
    for method in ("exact", "pseudo"):
        with pytest.warns(InaccurateWarning, match="no maximum"):
            fit = sz.fit(X, method=method)
        assert not fit.status.converged
        assert fit.coupling_error is None
        assert "penalty" in fit.status
        with pytest.raises(NotConvergedError):
            fit.check()
    assert sz.fit(X, penalty="l2").status.converged


@pytest.mark.parametrize(
    ("X", "options", "words"),
    [
        ([[1.0, np.nan], [0, np.nan]], {}, "column 1 has no value in any row"),
        ([[np.nan, np.nan]], {}, "no rows"),
        ([[1.0, np.nan], [0, 1], [np.nan, 0]], {"moments": {}}, "exactly one"),
        ([[0, 2], [1, 0]], {}, r"X\[0, 1\] is 2"),
        ([[0, 1], [-1, 0]], {}, "only -1 and"),
        ([["a", "b"]], {}, "must hold"),
        ([[0, 1], [1]], {}, "unequal length"),
        ([0, 1, 1], {}, "rows x variables"),
        (np.empty((0, 3)), {}, "no rows"),
        (np.empty((3, 0)), {}, "no columns"),
        ([[0, 1], [1, 0], [1, 1], [0, 0]], {"weights": [1, 2]}, "one number per row"),
        ([[0, 1], [1, 0], [1, 1], [0, 0]], {"weights": [1, 2, -1, 1]}, "negative"),
        ([[0, 1], [1, 0], [1, 1], [0, 0]], {"graph": [(0, 5)]}, "no spin 5"),
        ([[0, 1], [1, 0], [1, 1], [0, 0]], {"graph": "best"}, "graph is 'best'"),
        ([[0, 1], [1, 0], [1, 1], [0, 0]], {"method": "magic"}, "method is 'magic'"),
        ([[0, 1], [1, 0], [1, 1], [0, 0]], {"penalty": "l3"}, "penalty is 'l3'"),
        ([[0, 1], [1, 0], [1, 1], [0, 0]], {"strength": 0.1}, "strength goes with"),
        ([[0, 1], [1, 0], [1, 1], [0, 0]], {"penalty": "l2", "strength": -1}, "strength is -1"),
        ([[0, 1], [1, 0], [1, 1], [0, 0]], {"penalty": "l2", "strength": "ebic"}, '"ebic" with "l1"'),
        ([[0, 1], [1, 0], [1, 1], [0, 0]], {"fixed": {(0, 1): np.inf}}, "finite number"),
        ([[0, 1], [1, 0], [1, 1], [0, 0]], {"names": ["a"]}, "one name per spin"),
        (None, {}, "either data X or moments"),
    ],
)
def test_bad_input_is_a_sentence(X, options, words):
    with pytest.raises((ModelError, OptionError), match=words):
        sz.fit(X, **options)


def test_small_and_odd_data():
    assert sz.fit([[0], [1], [1], [1]]).model.field[0] == pytest.approx(np.arctanh(0.5))
    balanced = sz.fit([[0, 1], [1, 0], [1, 1], [0, 0]])  # a coupling of exactly zero keeps its edge and its error
    assert balanced.edges.tolist() == [[0, 1]]
    assert balanced.coupling_error == pytest.approx([0.5])
    assert "few for 3 parameters" in balanced.status
    alone = sz.fit([[0, 1], [1, 0], [1, 1], [0, 0], [1, 1]], graph=[])
    assert len(alone.edges) == 0
    assert alone.model.field == pytest.approx([np.arctanh(0.2)] * 2)
    with pytest.raises(TooLargeError, match="sampled"):
        sz.fit(np.random.default_rng(0).choice([-1, 1], size=(2000, 60)), method="exact")


def test_time_and_interrupts_keep_the_best_so_far(clock):
    X, _, _ = data(5, 300, 1)
    calls = []
    real = Walsh.moments_and_covariance

    def stops(self, p):
        calls.append(p)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, p)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Walsh, "moments_and_covariance", stops)
        fit = sz.fit(X)
    assert fit.interrupted
    assert not fit.status.converged
    assert np.isfinite(parameters(fit)).all()
    clock.step = 10.0
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        late = sz.fit(X, budget=0.5)
    assert "time was up" in late.status
    assert any(issubclass(each.category, InaccurateWarning) for each in warned)


def test_what_is_printed_and_kept_as_plain_values(tmp_path):
    import json

    X, _, _ = data(4, 300, 11)
    fit = sz.fit(X)
    assert "log-likelihood" in str(fit)
    assert repr(fit).startswith("Fit(n=4, edges=6, 300 rows")
    assert fit._repr_html_().startswith("<div><table")
    assert json.loads(json.dumps(fit.to_dict()))["converged"] is True
    assert "G^2" in str(fit.goodness())
    json.dumps(fit.goodness().to_dict())
    from spectralz.show.fits import picture

    assert picture(fit, "data").startswith(b"\x89PNG")
