"""``fit``: from data to a model, with standard errors and a likelihood."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support import clock
from spectralz._support.deadline import Deadline
from spectralz._support.options import check_choice, checked_count, checked_positive, checked_threads, flag, is_number
from spectralz._support.threads import NO_MATRICES, using_threads
from spectralz.errors import (
    InaccurateWarning,
    ModelError,
    OptionError,
    TooLargeError,
    showing_interrupts,
    shown,
    warn_inaccurate,
)
from spectralz.inference import log_z, sample
from spectralz.learning import expectations, sampled, selecting
from spectralz.learning.expectations import Incomplete, Observed, PseudoLikelihood, Walsh, observed
from spectralz.learning.goodness import MOST_PARAMETERS, Precision, precision_by_states, precision_of
from spectralz.learning.likelihood import Likelihood, Moments, exact_moments
from spectralz.learning.minimizing import Minimum, best_of_starts, minimize
from spectralz.learning.problem import (
    WAY_OUT,
    Penalty,
    Problem,
    edges_of,
    pairs_by_labels,
    problem_of,
    refuse_unbounded,
)
from spectralz.learning.table import Table, moments_table, table_of
from spectralz.model import Ising
from spectralz.model.columns import labels_of
from spectralz.result import Fit, Kind, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from spectralz.model import FloatArray, IntArray

METHODS_OF_FIT = ("auto", "exact", "pseudo", "sampled")
PENALTIES = ("l1", "l2")
CRITERIA = ("ebic", "cv")
DEFAULT_STRENGTH = 0.01
# The pseudo-likelihood and eliminations are minimized by L-BFGS, which rounding stops earlier than Newton's method.
LEAST_TOL_OF_LBFGS = 1e-7
# However many rows there are, moments are not matched beyond their rounding.
LEAST_TOL = 1e-13
# For the log-likelihood: log Z is exact if that takes a few seconds, ten times the first budget, and otherwise has the
# second one. If it is not trusted then, it has the time that log_z has by default.
BUDGET_OF_EXACT, BUDGET_OF_LOG_Z = 0.2, 2.0
# States drawn exactly for the Fisher information if it is not computed: errors are then accurate to about a percent.
STATES_FOR_ERRORS = 20_000
# If there are fewer rows per parameter, or per parameter of the variable that has most, the status says so.
FEW_ROWS, FEW_ROWS_OF_VARIABLE = 2.0, 50.0


@dataclass(frozen=True)
class FitOptions:
    """The options besides data and graph, checked."""

    method: str
    penalty: Penalty
    tol: float
    max_iter: int
    seed: int
    likelihood: bool


def fit(
    X: Any = None,
    *,
    graph: Any = None,
    method: str = "auto",
    penalty: str | None = None,
    strength: float | str | None = None,
    fixed: Any = None,
    weights: Any = None,
    values: str = "auto",
    names: Any = None,
    moments: Any = None,
    select: str = "ebic",
    likelihood: bool = True,
    tol: float = 1e-8,
    max_iter: int = 200,
    budget: float | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Fit:
    """Fit fields and couplings of an Ising model to data, by maximum likelihood.

    The model is ``P(x) = exp(<field, x> + sum_ij J_ij x_i x_j) / Z`` with x in {-1, +1}^n, whatever the values of the
    data; if they are 0 and 1, +1 stands for 1. The fit minimizes the mean negative log-likelihood per row, plus
    ``strength sum |J|`` (l1) or ``strength / 2 sum J^2`` (l2); fields are not penalized.

    Parameters
    ----------
    X
        Rows x variables, of -1 and +1 or of 0 and 1: an array, a list of lists, a DataFrame (its columns are names).
        Cells may be missing (NaN, None or NA). The likelihood is then that of the known cells, as if whether a value
        is missing did not depend on it.
    graph
        Which pairs are coupled: None for all; a list of pairs, by names or numbers; a networkx graph; a model, for its
        edges; or ``"chosen"``, to choose the graph by an l1 path (see ``select``) and then fit it.
    method
        ``"exact"``: exact gradients, up to 25 variables or on graphs of small treewidth. ``"pseudo"``: the maximum of
        the pseudo-likelihood, quick at any size, a little less precise. ``"sampled"``: gradients from a population of
        states. ``"auto"``: exact if it takes seconds, otherwise sampled.
    penalty, strength
        ``None``, ``"l1"`` or ``"l2"``, and its strength, 0.01 by default. With ``strength="cv"`` the strength is chosen
        by cross-validation, with ``"ebic"`` (l1 only) by the extended Bayesian criterion.
    fixed
        Parameters that are given: ``{("a", "b"): 0.5}`` fixes a coupling J, ``{"a": 0.0}`` a field.
    weights
        How often each row was seen, or None for once.
    values
        ``"pm1"``, ``"01"``, or ``"auto"`` to detect it from the data.
    names
        One name per variable; by default those of the DataFrame.
    moments
        Instead of ``X``: a mapping with ``mean``, E[x_i]; ``pair_mean``, E[x_i x_j] (n x n); and ``rows``, their number
        of rows. With ``values="01"``, P(x_i = 1) and P(both = 1).
    select
        How ``graph="chosen"`` chooses: ``"ebic"`` or ``"cv"``.
    likelihood
        Whether to compute the log-likelihood; if log Z is not exact this takes up to ten seconds.
    tol
        The largest difference that may remain between the moments of data and model.
    max_iter
        Most iterations.
    budget
        Seconds to search for the parameters; then the best so far is returned. By default no limit.
    seed
        Seed of all random numbers: the same seed gives the same fit.
    threads
        Most threads to use; by default all cores that the process may use.

    Returns
    -------
    Fit
        The ``model`` with standard errors, the log-likelihood, and ``status``.

    Raises
    ------
    ModelError
        If a field or a coupling would be infinite, or if the data are invalid; the message says what to do.
    TooLargeError
        If ``method="exact"`` is out of reach.

    Warns
    -----
    InaccurateWarning
        If the fit did not converge; ``status`` says why.

    See Also
    --------
    IsingEstimator : the same, with the interface of scikit-learn.
    RBM.fit : a machine with hidden units.
    predict : missing cells, by the fitted model.

    Examples
    --------
    >>> import spectralz as sz
    >>> truth = sz.Ising.from_edges(3, [(0, 1), (1, 2)], [0.5, -0.3], field=[0.2, 0.0, 0.0])
    >>> fit = sz.fit(sz.sample(truth, 10_000, seed=0))
    >>> print(fit)
    fit             3 variables, 3 couplings, 10000 rows (-1 and +1)
    log-likelihood  -1.9... per row
    AIC, BIC        3..., 3...
    ...
    >>> pairs, J = fit.model.edges()
    >>> bool(abs(J[0] - 0.5) < 4 * fit.coupling_error[0])
    True
    """
    table = _table(X, weights, values, names, moments)
    check_choice(method, "method", METHODS_OF_FIT)
    check_choice(select, "select", CRITERIA)
    options = FitOptions(
        method,
        Penalty(),
        checked_positive(tol, "tol"),
        checked_count(max_iter, "max_iter", least=1),
        checked_count(seed, "seed", least=0),
        flag(likelihood, "likelihood"),
    )
    seconds = math.inf if budget is None else checked_positive(budget, "budget")
    limit = checked_threads(threads)
    with showing_interrupts(), using_threads(limit, NO_MATRICES), Deadline.after(seconds).in_force():
        result = _fit(table, _by_labels(graph, table, X, moments), penalty, strength, fixed, select, options)
    if not result.status.converged and not result.interrupted:
        warn_inaccurate(f"this fit is not to be trusted: {result.status}", stacklevel=3)
    return result


def _table(X: Any, weights: Any, values: str, names: Any, moments: Any) -> Table:
    if (X is None) == (moments is None):
        raise OptionError("give either data X or moments=, exactly one of them")
    if X is None and weights is not None:
        raise OptionError("weights go with data X; moments have the key 'rows' instead")
    table = table_of(X, weights, values, names) if moments is None else moments_table(moments, values, names)
    if table.n == 0:
        raise ModelError("the data have no columns; there is nothing to learn")
    return table


def _by_labels(graph: Any, table: Table, X: Any, moments: Any) -> Any:
    """Return a graph; if it is a model and columns have labels, its pairs by these labels."""
    if not isinstance(graph, Ising):
        return graph
    have_labels = labels_of(X if moments is None else moments["mean"]) is not None
    if have_labels or (graph.names is not None and table.names is not None):
        return pairs_by_labels(graph, range(table.n) if table.names is None else table.names)
    return graph


def _fit(table: Table, graph: Any, penalty: Any, strength: Any, fixed: Any, select: str, options: FitOptions) -> Fit:
    size = _strength(penalty, strength)
    if isinstance(graph, str) and graph == "chosen":
        if penalty == "l1":
            raise OptionError('graph="chosen" chooses by l1 already; penalty is that of the fit after it, None or "l2"')
        edges, path = selecting.chosen_graph(table, fixed, select, options.seed)
    else:
        edges, path = edges_of(graph, table.n, table.names), {}
    if isinstance(size, str):
        _refuse_method(table, edges, fixed, penalty, options)
        size, more = selecting.chosen_strength(table, edges, fixed, penalty, size, options.seed)
        path = {**path, **more}
    chosen = Penalty() if penalty is None else Penalty(**{penalty: size})
    result = fit_table(table, edges, fixed, replace(options, penalty=chosen))
    return replace(result, details={**result.details, **path})


def _refuse_method(table: Table, edges: IntArray, fixed: Any, penalty: str, options: FitOptions) -> None:
    """Refuse, before a strength is chosen, a method that could not use it."""
    problem = problem_of(table, edges, fixed, Penalty(**{penalty: 1.0}))
    method, _ = _method(problem, table, options)
    if method == "sampled":
        _refuse_l1(problem)


def _refuse_l1(problem: Problem) -> None:
    if problem.penalty.l1 > 0.0:
        raise OptionError('method="sampled" has no l1 penalty; use method="pseudo", or graph="chosen"')


def _strength(penalty: Any, strength: Any) -> float | str:
    """Return the strength of a penalty, or the criterion that is to choose it."""
    if isinstance(strength, str):
        check_choice(strength, "strength", CRITERIA)
        if penalty is None or (strength == "ebic" and penalty != "l1"):
            raise OptionError(f'strength is {strength!r}; "cv" goes with penalty="l1" or "l2", "ebic" with "l1"')
    if penalty is None:
        if strength is not None:
            raise OptionError('strength goes with penalty="l1" or "l2"')
        return 0.0
    check_choice(penalty, "penalty", PENALTIES)
    if isinstance(strength, str):
        return strength
    if strength is None:
        return DEFAULT_STRENGTH
    if not is_number(strength) or not 0.0 < strength < math.inf:
        raise OptionError(f'strength is {shown(strength)}; it must be a number above 0, "cv" or "ebic"')
    return float(strength)


@dataclass(frozen=True)
class Recipe:
    """What was fitted, and all estimates, also of couplings that an l1 penalty set to zero."""

    problem: Problem
    parameters: FloatArray


@dataclass(frozen=True)
class _Solution:
    """Parameters, their precision, and the words of the status."""

    minimum: Minimum
    precision: Precision
    sentence: str
    is_matched: bool
    details: dict[str, Any]
    more: str = ""


def fit_table(table: Table, edges: IntArray, fixed: Any, options: FitOptions) -> Fit:
    """Fit a table on a known graph."""
    passed = clock.stopwatch()
    problem = problem_of(table, edges, fixed, options.penalty)
    refuse_unbounded(problem, table)
    method, engine = _method(problem, table, options)
    data = observed(problem, table)
    # If the likelihood has no maximum, this shows only when its slope is far below the weight of one row.
    options = replace(options, tol=min(options.tol, max(1e-3 / table.rows, LEAST_TOL)))
    if method == "exact":
        solution = _exactly(problem, table, data, engine, options)
    elif method == "pseudo":
        solution = _by_pseudo(problem, table, data, options)
    else:
        solution = _by_sampling(problem, table, data, options)
    best, precision = solution.minimum, solution.precision
    has_l1 = problem.penalty.l1 > 0.0
    model = problem.model(best.parameters, keep_zeros=not has_l1)
    kept = best.parameters[problem.n :] != 0.0 if has_l1 else np.ones(len(problem.edges), dtype=bool)
    status = _status(problem, table, solution)
    value = error = constant = None
    if options.likelihood and (not best.is_interrupted or engine is not None):
        constant, error = _log_z(model, engine, best.parameters)
        value = data.expected(best.parameters).log_weight - constant
    errors = precision.error if status.converged else None
    penalty = "l1" if has_l1 else "l2" if problem.penalty.l2 > 0.0 else None
    return Fit(
        model=model,
        edges=model.edges()[0],
        field_error=None if errors is None else errors[: problem.n],
        coupling_error=None if errors is None else errors[problem.n :][kept],
        log_likelihood=value,
        std_error=error,
        log_z=constant,
        rows=table.rows,
        parameters=precision.parameters,
        method=method,
        penalty=penalty,
        strength=None if penalty is None else problem.penalty.l1 or problem.penalty.l2,
        status=status,
        values=table.values,
        iterations=best.iterations,
        **passed(),
        interrupted=best.is_interrupted,
        details={**solution.details, **({"no_errors": precision.why} if precision.why else {})},
        table=table,
        covariance=precision.covariance if status.converged else None,
        recipe=Recipe(problem, best.parameters),
    )


def _method(problem: Problem, table: Table, options: FitOptions) -> tuple[str, Moments | None]:
    """Return the method, and the engine that computes the moments exactly if there is one."""
    engine = exact_moments(problem, unasked=options.method != "exact")
    if options.method == "exact" and isinstance(engine, str):
        raise TooLargeError(f'{engine}; ask for method="sampled" or "pseudo"')
    if options.method == "pseudo":
        table.known_states('method="pseudo"')
    exact = None if isinstance(engine, str) else engine
    if options.method == "auto":
        return ("sampled" if exact is None else "exact"), exact
    return options.method, exact


def _exactly(problem: Problem, table: Table, data: Observed, engine: Any, options: FitOptions) -> _Solution:
    has_all_states = isinstance(engine, Walsh)
    tol = options.tol if has_all_states else max(options.tol, LEAST_TOL_OF_LBFGS)
    objective = Likelihood(engine, data)
    best = Minimum(problem.start(), np.inf, 0)
    if not has_all_states:
        best = _start_of(problem, table, data, options, 1e-3)
    words = "moments match" if problem.penalty.is_none else "the penalized likelihood is stationary"
    more = ""
    if not best.is_interrupted:
        best = minimize(objective, problem, best.parameters, tol, options.max_iter)
        if isinstance(data, Incomplete):
            words = words.replace("moments", "expected moments")
            best, more = best_of_starts(objective, problem, best, tol, options.max_iter, options.seed)

    def precision() -> Precision:
        if has_all_states:
            return precision_of(problem, objective.hessian(best.parameters)[2], table.rows)
        count = max(STATES_FOR_ERRORS, 20 * problem.size)
        states = sample(problem.model(best.parameters), count, "exact", options.seed)
        return precision_by_states(problem, states, table.rows, data.expected(best.parameters, lost=True).lost)

    details: dict[str, Any] = {"residual": best.residual}
    if not has_all_states and problem.penalty.l1 == 0.0:
        details["errors_from"] = f"{STATES_FOR_ERRORS} states"
    is_matched = best.residual <= 10.0 * tol
    return _Solution(
        best, _affordable(precision, problem, best), f"{words} to {best.residual:.1g}", is_matched, details, more
    )


def _start_of(problem: Problem, table: Table, data: Observed, options: FitOptions, tol: float) -> Minimum:
    """Return parameters near the maximum of the pseudo-likelihood; those of independent spins if there are no rows."""
    if table.states is None:
        return Minimum(problem.start(), np.inf, 0)
    if isinstance(data, Incomplete):
        rows = expectations.table_completed(table, data, problem.start(), options.seed)
    else:
        rows = table
    return minimize(PseudoLikelihood(problem, rows), problem, problem.start(), tol, options.max_iter, "starting")


def _affordable(precision: Callable[[], Precision], problem: Problem, best: Minimum) -> Precision:
    """Return the precision of parameters, or why it is not computed."""
    if problem.penalty.l1 > 0.0:
        is_estimated = problem.free & ((np.arange(problem.size) < problem.n) | (best.parameters != 0.0))
        why = "an l1 penalty leaves estimates without standard errors; refit its graph"
        return Precision(None, float(is_estimated.sum()), why)
    if best.is_interrupted:
        return Precision(None, float(problem.free.sum()), "the fit was interrupted before standard errors")
    if problem.size > MOST_PARAMETERS:
        why = f"standard errors of {problem.size} parameters are left out; the limit is {MOST_PARAMETERS} parameters"
        return Precision(None, float(problem.free.sum()), why)
    return precision()


def _by_pseudo(problem: Problem, table: Table, data: Observed, options: FitOptions) -> _Solution:
    tol = max(options.tol, LEAST_TOL_OF_LBFGS)
    more = ""
    if isinstance(data, Incomplete):
        begin = _start_of(problem, table, data, options, 1e-3)
        best = begin
        if not begin.is_interrupted:
            best = expectations.maximized(problem, table, data, begin.parameters, tol, options.max_iter, options.seed)
        rows = expectations.table_completed(table, data, best.parameters, options.seed)
        more = "; missing values are replaced by their expectations, as if what is missing did not depend on its value"
    else:
        best = minimize(PseudoLikelihood(problem, table), problem, problem.start(), tol, options.max_iter)
        rows = table
    objective = PseudoLikelihood(problem, rows)

    def precision() -> Precision:
        if isinstance(data, Incomplete):
            slope, scores = expectations.curvature_and_scores(problem, table, data, best.parameters, options.seed)
        else:
            slope = objective.hessian(best.parameters)[2]
            scores = objective.covariance_of_scores(best.parameters)
        return precision_of(problem, slope, table.rows, scores)

    details = {"residual": best.residual, "pseudo_log_likelihood": -objective.value(best.parameters)[0]}
    sentence = f"the pseudo-likelihood is stationary to {best.residual:.1g}"
    is_matched = best.residual <= 10.0 * tol and best.stopped != expectations.UNSETTLED
    return _Solution(best, _affordable(precision, problem, best), sentence, is_matched, details, more)


def _by_sampling(problem: Problem, table: Table, data: Observed, options: FitOptions) -> _Solution:
    _refuse_l1(problem)
    begin = _start_of(problem, table, data, options, 1e-4)
    if begin.is_interrupted:
        precision = _affordable(lambda: Precision(None, 0.0, ""), problem, begin)
        return _Solution(begin, precision, "the pseudo-likelihood is near its maximum", False, {})
    states = table.states if table.is_complete else None
    walk = sampled.climb(problem, data, begin.parameters, table.rows, options.seed, options.max_iter, states)
    best = Minimum(walk.parameters, walk.residual, walk.iterations, walk.stopped)

    def errors() -> Precision:
        lost = data.expected(best.parameters, lost=True).lost
        return precision_by_states(problem, walk.states, table.rows, lost)

    details = {"residual": walk.residual, "noise": walk.noise, "states": len(walk.states)}
    return _Solution(best, _affordable(errors, problem, best), walk.sentence, walk.is_matched, details)


def _status(problem: Problem, table: Table, solution: _Solution) -> Status:
    """Return how the fit ended."""
    best, precision = solution.minimum, solution.precision
    wants_infinity = "infinite" in best.stopped or (precision.is_singular and problem.penalty.is_none)
    if wants_infinity and not best.is_interrupted:
        largest = int(np.abs(np.where(problem.free, best.parameters, 0.0)).argmax())
        return Status(
            f"the likelihood has no maximum: some parameters would be infinite, {problem.label(largest)} among "
            f"the largest; {WAY_OUT}",
            converged=False,
        )
    ending = f"{solution.sentence} after {best.iterations} iterations{solution.more}"
    if not solution.is_matched:
        stopped = best.stopped or "no better parameters are found"
        hint = "" if best.is_interrupted else "; more iterations (max_iter), a larger budget or a penalty may help"
        return Status(f"{ending}: {stopped}{hint}", converged=False)
    degree = int(np.bincount(problem.edges.ravel(), minlength=problem.n).max(initial=0))
    if table.rows < min(FEW_ROWS * precision.parameters, FEW_ROWS_OF_VARIABLE * (degree + 1)):
        few = f"{table.rows:g} rows are few" if table.rows >= 1.0 else f"the weights add up to {table.rows:g} rows, few"
        ending += (
            f"; {few} for {precision.parameters:.4g} parameters: "
            'expect large random errors, or give penalty="l2" or graph="chosen"'
        )
    return Status(ending)


def _log_z(model: Ising, engine: Any, parameters: FloatArray) -> tuple[float, float | None]:
    """Return log Z of the fitted model, and its error if it is not exact."""
    if engine is not None:
        return engine.moments(parameters)[0], None
    with warnings.catch_warnings(action="ignore", category=InaccurateWarning):
        estimate = log_z(model, budget=BUDGET_OF_EXACT)
        if estimate.kind is not Kind.EXACT:
            estimate = log_z(model, budget=BUDGET_OF_LOG_Z, exclude=("exact",))
    if not estimate.trusted and not estimate.interrupted:
        estimate = log_z(model)
    return estimate.log_z, estimate.std_error
