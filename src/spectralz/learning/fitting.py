"""``fit``: from data to a model, with standard errors and a likelihood."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support import clock
from spectralz._support.options import (
    check_choice,
    checked_count,
    checked_positive,
    flag,
    is_number,
)
from spectralz._support.threads import NO_MATRICES, using_threads
from spectralz.errors import ModelError, OptionError, TooLargeError, shown, warn_inaccurate
from spectralz.inference import log_z, sample
from spectralz.learning import sampled
from spectralz.learning.boundary import WAY_OUT, refuse_unbounded
from spectralz.learning.graphs import edges_of, fixed_values
from spectralz.learning.likelihood import Likelihood, exact_moments
from spectralz.learning.minimizing import Minimum, minimize
from spectralz.learning.precision import MOST_PARAMETERS, Precision, covariance_of_states, precision_of
from spectralz.learning.problem import Penalty, Problem
from spectralz.learning.pseudo import PseudoLikelihood
from spectralz.learning.table import Table, moments_table, table_of
from spectralz.learning.walsh import Walsh
from spectralz.result import Fit, Status

if TYPE_CHECKING:
    from spectralz.learning.likelihood import Moments
    from spectralz.model import FloatArray, IntArray, Ising

__all__ = ["METHODS_OF_FIT", "Wishes", "fit", "fit_table"]

METHODS_OF_FIT = ("auto", "exact", "pseudo", "sampled")
PENALTIES = ("l1", "l2")
CRITERIA = ("ebic", "cv")
DEFAULT_STRENGTH = 0.01
# The pseudo-likelihood and eliminations are minimized by L-BFGS, which rounding stops earlier than Newton's method.
LEAST_TOL_OF_LBFGS = 1e-7
# States drawn exactly for the Fisher information if it is not computed: errors are then accurate to about a percent.
STATES_FOR_ERRORS = 20_000
# If there are fewer rows per parameter, or per parameter of the variable that has most, the status says so.
FEW_ROWS, FEW_ROWS_OF_VARIABLE = 2.0, 50.0


@dataclass(frozen=True)
class Wishes:
    """The options besides data and graph, checked."""

    method: str = "auto"
    penalty: Penalty = field(default_factory=Penalty)
    tol: float = 1e-8
    max_iter: int = 200
    seed: int = 0
    likelihood: bool = True
    budget: float | None = None


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
    wishes = Wishes(
        method,
        Penalty(),
        checked_positive(tol, "tol"),
        checked_count(max_iter, "max_iter", least=1),
        checked_count(seed, "seed", least=0),
        flag(likelihood, "likelihood"),
        None if budget is None else checked_positive(budget, "budget"),
    )
    how = None if threads is None else checked_count(threads, "threads", least=1)
    with using_threads(how, NO_MATRICES), _until(wishes.budget):
        found = _fit(table, graph, penalty, strength, fixed, select, wishes)
    if not found.status.converged and not found.interrupted:
        warn_inaccurate(f"this fit is not to be trusted: {found.status}", stacklevel=3)
    return found


def _until(budget: float | None) -> Any:
    return nullcontext() if budget is None else clock.until(clock.now() + budget)


def _table(X: Any, weights: Any, values: str, names: Any, moments: Any) -> Table:
    if (X is None) == (moments is None):
        raise OptionError("give either data X or moments=, exactly one of them")
    if X is None and weights is not None:
        raise OptionError("weights go with data X; moments have the key 'rows' instead")
    table = table_of(X, weights, values, names) if moments is None else moments_table(moments, values, names)
    if table.n == 0:
        raise ModelError("the data have no columns; there is nothing to learn")
    return table


def _fit(table: Table, graph: Any, penalty: Any, strength: Any, fixed: Any, select: str, wishes: Wishes) -> Fit:
    from spectralz.learning import selecting

    if isinstance(graph, str) and graph == "chosen":
        if penalty == "l1":
            raise OptionError('graph="chosen" chooses by l1 already; penalty is that of the fit after it, None or "l2"')
        edges, path = selecting.chosen_graph(table, fixed, select, wishes)
    else:
        edges, path = edges_of(graph, table.n, table.names), {}
    if isinstance(strength, str):
        check_choice(strength, "strength", CRITERIA)
        if penalty is None or (strength == "ebic" and penalty != "l1"):
            raise OptionError(f'strength is {strength!r}; "cv" goes with penalty="l1" or "l2", "ebic" with "l1"')
        own, more = selecting.chosen_strength(table, edges, fixed, penalty, strength, wishes)
        path = {**path, **more}
    else:
        own = _strength(penalty, strength)
    asked = Penalty() if penalty is None else Penalty(**{penalty: own})
    found = fit_table(table, edges, fixed, replace(wishes, penalty=asked))
    return replace(found, details={**found.details, **path})


def _strength(penalty: Any, strength: Any) -> float:
    if penalty is None:
        if strength is not None:
            raise OptionError('strength goes with penalty="l1" or "l2"')
        return 0.0
    check_choice(penalty, "penalty", PENALTIES)
    if strength is None:
        return DEFAULT_STRENGTH
    if not is_number(strength) or not 0.0 < strength < math.inf:
        raise OptionError(f'strength is {shown(strength)}; it must be a number above 0, "cv" or "ebic"')
    return float(strength)


def problem_of(table: Table, edges: IntArray, fixed: Any, penalty: Penalty) -> Problem:
    """Return the estimation problem of a table on a graph."""
    places, given = fixed_values(fixed, table.n, edges, table.names)
    free, value = np.ones(table.n + len(edges), dtype=bool), np.zeros(table.n + len(edges))
    free[places], value[places] = False, given
    # A coupling that is fixed at zero is not an edge.
    kept = np.flatnonzero(free[table.n :] | (value[table.n :] != 0.0))
    all_kept = np.concatenate([np.arange(table.n), table.n + kept])
    edges = edges[kept]
    moments = np.concatenate([table.mean, table.pairs(edges)])
    return Problem(table.n, edges, moments, free[all_kept], value[all_kept], penalty, table.names)


def fit_table(table: Table, edges: IntArray, fixed: Any, wishes: Wishes) -> Fit:
    """Fit a table on a known graph."""
    began = clock.seconds()
    problem = problem_of(table, edges, fixed, wishes.penalty)
    refuse_unbounded(problem, table)
    method, engine = _method(problem, table, wishes)
    # If the likelihood has no maximum, this shows only when its slope is far below the weight of one row.
    wishes = replace(wishes, tol=min(wishes.tol, 1e-3 / table.rows))
    if method == "exact":
        found = _exactly(problem, table, engine, wishes)
    elif method == "pseudo":
        found = _by_pseudo(problem, table, wishes)
    else:
        found = _by_sampling(problem, table, wishes)
    return _packed(problem, table, method, engine, found, wishes, began)


def _method(problem: Problem, table: Table, wishes: Wishes) -> tuple[str, Moments | None]:
    """Return the method, and the engine that computes the moments exactly if there is one."""
    engine = exact_moments(problem, unasked=wishes.method != "exact")
    if wishes.method == "exact" and isinstance(engine, str):
        raise TooLargeError(f'{engine}; ask for method="sampled" or "pseudo"')
    if wishes.method == "pseudo":
        table.known_states('method="pseudo"')
    exact = None if isinstance(engine, str) else engine
    if wishes.method == "auto":
        return ("sampled" if exact is None else "exact"), exact
    return wishes.method, exact


@dataclass(frozen=True)
class _Found:
    """Parameters, their precision, and the words of the status."""

    minimum: Minimum
    precision: Precision
    sentence: str
    is_matched: bool
    details: dict[str, Any]


def _exactly(problem: Problem, table: Table, engine: Any, wishes: Wishes) -> _Found:
    objective = Likelihood(problem, engine)
    start = problem.start()
    if isinstance(engine, Walsh):
        tol = wishes.tol
    else:
        tol = max(wishes.tol, LEAST_TOL_OF_LBFGS)
        if table.states is not None:
            start = _start_of(problem, table, wishes, 1e-3)
    best = minimize(objective, problem, start, tol, wishes.max_iter)
    details: dict[str, Any] = {"residual": best.residual}
    if problem.penalty.l1 > 0.0:
        precision = _no_errors(problem, best)
    elif isinstance(engine, Walsh):
        precision = precision_of(problem, engine.moments_and_covariance(best.parameters)[2], table.rows)
    else:
        precision = _precision_by_states(problem, best, table, wishes.seed)
        details["errors_from"] = f"{STATES_FOR_ERRORS} states"
    words = "moments match" if problem.penalty.is_none else "the penalized likelihood is stationary"
    return _Found(best, precision, f"{words} to {best.residual:.1g}", best.residual <= 10.0 * tol, details)


def _start_of(problem: Problem, table: Table, wishes: Wishes, tol: float) -> FloatArray:
    """Return parameters near the maximum of the pseudo-likelihood."""
    objective = PseudoLikelihood(problem, table)
    return minimize(objective, problem, problem.start(), tol, wishes.max_iter, "starting").parameters


def _no_errors(problem: Problem, best: Minimum) -> Precision:
    count = int(problem.free[: problem.n].sum()) + int(
        np.count_nonzero(best.parameters[problem.n :][problem.free[problem.n :]])
    )
    return Precision(None, float(count), "an l1 penalty leaves estimates without standard errors; refit its graph")


def _precision_by_states(problem: Problem, best: Minimum, table: Table, seed: int) -> Precision:
    """Return standard errors from states drawn exactly."""
    if problem.size > MOST_PARAMETERS:
        return Precision(None, float(problem.free.sum()), _too_many(problem))
    count = max(STATES_FOR_ERRORS, 20 * problem.size)
    states = sample(problem.model(best.parameters), count, "exact", seed)
    return precision_of(problem, covariance_of_states(states, problem.edges), table.rows, states=count)


def _too_many(problem: Problem) -> str:
    return f"standard errors of {problem.size} parameters are left out; the limit is {MOST_PARAMETERS} parameters"


def _by_pseudo(problem: Problem, table: Table, wishes: Wishes) -> _Found:
    objective = PseudoLikelihood(problem, table)
    tol = max(wishes.tol, LEAST_TOL_OF_LBFGS)
    best = minimize(objective, problem, problem.start(), tol, wishes.max_iter)
    if problem.penalty.l1 > 0.0:
        precision = _no_errors(problem, best)
    elif problem.size > MOST_PARAMETERS:
        precision = Precision(None, float(problem.free.sum()), _too_many(problem))
    else:
        hessian = objective.hessian(best.parameters)[2]
        precision = precision_of(problem, hessian, table.rows, objective.covariance_of_scores(best.parameters))
    details = {"residual": best.residual, "pseudo_log_likelihood": -objective.value(best.parameters)[0]}
    sentence = f"the pseudo-likelihood is stationary to {best.residual:.1g}"
    return _Found(best, precision, sentence, best.residual <= 10.0 * tol, details)


def _by_sampling(problem: Problem, table: Table, wishes: Wishes) -> _Found:
    if problem.penalty.l1 > 0.0:
        raise OptionError('method="sampled" has no l1 penalty; use method="pseudo", or graph="chosen"')
    start = problem.start() if table.states is None else _start_of(problem, table, wishes, 1e-4)
    walk = sampled.climb(problem, start, table.rows, wishes.seed, wishes.max_iter, table.states)
    best = Minimum(walk.parameters, walk.residual, walk.iterations, walk.stopped)
    if problem.size > MOST_PARAMETERS:
        precision = Precision(None, float(problem.free.sum()), _too_many(problem))
    else:
        precision = precision_of(
            problem, covariance_of_states(walk.states, problem.edges), table.rows, states=len(walk.states)
        )
    details = {"residual": walk.residual, "noise": walk.noise, "states": len(walk.states)}
    return _Found(best, precision, walk.sentence, walk.is_matched, details)


def _packed(
    problem: Problem,
    table: Table,
    method: str,
    engine: Any,
    found: _Found,
    wishes: Wishes,
    began: float,
) -> Fit:
    best, precision = found.minimum, found.precision
    has_l1 = problem.penalty.l1 > 0.0
    model = problem.model(best.parameters, keep_zeros=not has_l1)
    kept = best.parameters[problem.n :] != 0.0 if has_l1 else np.ones(len(problem.edges), dtype=bool)
    status = _status(problem, table, found)
    value = error = constant = None
    if wishes.likelihood and (not best.is_interrupted or engine is not None):
        constant, error = _log_z(model, problem, engine, best.parameters)
        value = float(best.parameters @ problem.moments) - constant
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
        seconds=clock.seconds() - began,
        interrupted=best.is_interrupted,
        details={**found.details, **({"no_errors": precision.why} if precision.why else {})},
        table=table,
    )


def _status(problem: Problem, table: Table, found: _Found) -> Status:
    """Return how the fit ended."""
    best, precision = found.minimum, found.precision
    wants_infinity = "infinite" in best.stopped or (precision.is_singular and problem.penalty.is_none)
    if wants_infinity and not best.is_interrupted:
        largest = int(np.abs(np.where(problem.free, best.parameters, 0.0)).argmax())
        return Status(
            f"the likelihood has no maximum: some parameters would be infinite, {_called(problem, largest)} among "
            f"the largest; {WAY_OUT}",
            converged=False,
        )
    if not found.is_matched:
        stopped = best.stopped or "no better parameters are found"
        hint = "" if best.is_interrupted else "; more iterations (max_iter), a larger budget or a penalty may help"
        return Status(f"{found.sentence} after {best.iterations} iterations: {stopped}{hint}", converged=False)
    few = ""
    degree = int(np.bincount(problem.edges.ravel(), minlength=problem.n).max(initial=0))
    if table.rows < min(FEW_ROWS * precision.parameters, FEW_ROWS_OF_VARIABLE * (degree + 1)):
        few = (
            f"; {table.rows:g} rows are few for {precision.parameters:.4g} parameters: "
            'expect large random errors, or give penalty="l2" or graph="chosen"'
        )
    return Status(f"{found.sentence} after {best.iterations} iterations{few}")


def _called(problem: Problem, k: int) -> str:
    def name(i: int) -> str:
        return str(i) if problem.names is None else repr(problem.names[i])

    if k < problem.n:
        return f"the field of {name(k)}"
    i, j = problem.edges[k - problem.n].tolist()
    return f"the coupling of {name(i)} and {name(j)}"


def _log_z(model: Ising, problem: Problem, engine: Any, parameters: FloatArray) -> tuple[float, float | None]:
    """Return log Z of the fitted model, and its error if it is not exact."""
    if engine is not None:
        return engine.moments(parameters)[0], None
    found = log_z(model)
    return found.log_z, found.std_error
