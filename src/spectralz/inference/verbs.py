"""The verbs: questions about a model."""

from __future__ import annotations

import difflib
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from spectralz._support import clock
from spectralz._support.deadline import budgeted, checked_budget
from spectralz._support.executors import using_executor
from spectralz._support.options import checked_count, checked_level, checked_threads, flag
from spectralz._support.threads import using_threads
from spectralz.errors import (
    OptionError,
    SpectralzError,
    UnknownMethodError,
    catching_interrupt,
    showing_interrupts,
    warn_inaccurate,
)
from spectralz.inference.all_pairs import marginals_of_all_pairs
from spectralz.inference.evidence import ModelWithEvidence
from spectralz.inference.long_runs import with_checkpoint, with_more
from spectralz.methods import Method
from spectralz.methods.base import has_few_pairs
from spectralz.model import Polynomial
from spectralz.portfolio.auto import Auto
from spectralz.portfolio.bracket import bracket
from spectralz.portfolio.intervals import bracket_with_interval
from spectralz.registry import METHODS, PAPER_SETTINGS, REMOVED_METHODS
from spectralz.result import Bounds, Comparison, ComparisonRow, Estimate, Marginals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from contextlib import AbstractContextManager
    from os import PathLike

    import numpy as np

    from spectralz.model import RBM, Ising, Model, SpinArray


def log_z(
    model: Ising | RBM | Polynomial,
    method: str | Method = "auto",
    *,
    given: Mapping[Any, int] | None = None,
    executor: Any = None,
    more: Estimate | None = None,
    checkpoint: str | PathLike[str] | None = None,
    **options: Any,
) -> Estimate:
    """Return the log of the partition function of ``model``, and how far it can be trusted.

    Parameters
    ----------
    model
        The model: an Ising, an RBM or a Polynomial.
    method
        The name of a method, or a method itself; ``log_z(model, "exact", order="banded")`` and
        ``log_z(model, Exact(order="banded"))`` are the same call. ``"BP-200"`` and the other labels of the paper's
        figures (``PAPER_SETTINGS``) are names too.
    given
        Evidence: fixed spins by name (by number if the model has no names), as in ``{"a": +1, "b": -1}``; for an RBM,
        in the values of its units. log Z is then the log of the sum over the free spins.
    executor
        Where to run ``auto``, ``annealing`` or ``states``: a Dask client, or an executor like those of
        ``concurrent.futures``. It is not shut down. The answer of ``annealing`` and ``states`` is the same with any
        number of workers, or none. If a worker dies, its run is lost, and ``status`` says so.
    more
        An answer of this function for the same model, of ``auto`` or ``annealing``, to add to: populations with new
        random numbers, for the budget of this call, count together with its own. An exact answer is returned as it is.
    checkpoint
        The name of a file that keeps what has been done, written at least once a minute. The same call goes on from it
        if it was killed, until the budget, which counts all calls, is spent; with a larger budget also if it was not.
        Taken by ``auto`` and ``annealing``.
    **options
        Options of the method, if the method is given by name. Those that several methods have, and all of ``auto``, are
        below with the defaults of ``auto``. The class of each method lists all of its own: :class:`Exact`,
        :class:`Annealing` and the others of :data:`METHODS`.

    Returns
    -------
    Estimate
        ``log_z`` with its ``kind``, ``std_error``, proven ``lower`` and ``upper``, ``trusted`` and ``status``.

    Other Parameters
    ----------------
    budget : float, default None
        Seconds to spend at most, ten if neither this nor ``work`` is given. Exact answers may take ten times as long.
        Taken by ``auto``.
    work : float, default None
        Instead of ``budget``: operations to do, such as 1e10, about ten seconds of one core. The answer is then the
        same in every run. Taken by ``auto``.
    tol : float, default None
        Of ``auto``: stop once the standard error is this small, by default 0.001 at a budget of ten seconds, scaled by
        one over the root of the budget. Others have a tolerance of their own. Taken by ``auto``, ``quadrature``,
        ``low_rank``, ``spectral``, ``bp``, ``ep``, ``mf``, ``trw``, ``sdp``, ``convex_mf``.
    exclude : list of str, default ()
        Names of methods to leave out, such as ``["exact"]``. Taken by ``auto``.
    seed : int, default 0
        Seed of all random choices. Taken by ``auto``, ``mps``, ``annealing``, ``states``, ``ep``,
        ``mf``, ``wmbe``, ``sdp``.
    max_memory : int or str, default "4 GiB"
        Most memory for tables and populations, in bytes or like ``"512 MiB"``. Taken by ``auto``, ``exact``,
        ``planar``, ``mps``, ``annealing``, ``spectral``, ``mbe``, ``wmbe``.
    threads : int, default None
        Most threads to use; by default all cores that the process may use. Taken by ``auto``, ``exact``, ``annealing``,
        ``states``, ``spectral``, ``ep``, ``wmbe``, ``trw``, ``sdp``, ``convex_mf``.
    device : str, default "auto"
        ``"cpu"``; ``"gpu"``, which needs the extra ``gpu``; or ``"auto"`` for a GPU if there is one and the model is
        large. Taken by ``auto``, ``annealing``, ``states``, ``spectral``, ``sdp``.

    Raises
    ------
    UnknownMethodError
        If no method has that name.
    OptionError
        If the method has no such option, or if a value is out of range.
    ModelError
        If ``model`` is not a model, or if ``given`` names a spin that it does not have.
    TooLargeError
        If the model is too large for the method that was asked for; ``auto`` takes another one.
    DeviceError
        If a GPU is asked for where there is none.

    Warns
    -----
    InaccurateWarning
        If ``auto`` found no answer that can be trusted; ``status`` and ``tried`` say why. Other methods say so only in
        their results.
    LostRunsWarning
        If the workers of ``executor`` lost every run, so that the runs were made here instead.

    See Also
    --------
    bounds : proven bounds from both sides.
    compare : several methods side by side.
    log_ratio : the ratio of two partition functions, more precise than two calls.

    Examples
    --------
    >>> import math, spectralz as sz
    >>> model = sz.Ising(coupling=[[0.0, 0.5], [0.5, 0.0]])
    >>> result = sz.log_z(model)  # log(2 e + 2 / e)
    >>> print(f"{result.log_z:.6f}, {result.kind}")
    1.820075, exact
    >>> together = sz.log_z(model, given={0: +1})
    >>> print(f"P(x_0 = +1) = {math.exp(together.log_z - result.log_z):.6f}")
    P(x_0 = +1) = 0.500000
    """
    chosen = as_method(method, options)
    conditioned = ModelWithEvidence.checked(model, given)
    free = conditioned.free
    if more is not None and checkpoint is not None:
        raise OptionError("more and checkpoint both continue an answer; give one of them")
    with _spreading(chosen, executor):
        if more is not None:
            result = with_more(chosen, free, more)
        elif checkpoint is not None:
            result = with_checkpoint(chosen, free, Path(checkpoint))
        else:
            result = chosen.run(free)
    _warn_of(chosen, result)
    return conditioned.say(result)


def marginals(
    model: Ising | RBM | Polynomial,
    method: str | Method = "auto",
    *,
    given: Mapping[Any, int] | None = None,
    pairs: bool | Literal["all"] | None = None,
    executor: Any = None,
    **options: Any,
) -> Marginals:
    """Return E[x_i] for every spin and E[x_i x_j] for every edge of ``model``, or for all pairs.

    Means that are not exact have standard errors, ``std_error`` and ``pair_std_error``, if the method has them.

    Parameters
    ----------
    model, method, given, executor, **options
        As in :func:`log_z`. Given spins are listed too; their mean is the given value.
    pairs
        Whether to list the edges. Without them ``edges`` and ``pair_mean`` are empty, and the means of spins are the
        same. By default they are listed if there are at most 10 million: a dense model of 20,000 spins has 2e8.
        ``"all"`` lists all pairs, coupled or not, as ``covariance`` needs. ``exact``, ``quadrature``, ``annealing`` and
        ``states`` can do this; ``auto`` takes the first of these that can do it.

    Returns
    -------
    Marginals
        ``mean`` and ``pair_mean`` with their errors, the probabilities, and log Z of the same run (``estimate``).

    Other Parameters
    ----------------
    budget : float, default None
        Seconds to spend at most, ten if neither this nor ``work`` is given.
    work : float, default None
        Instead of ``budget``: operations to do, such as 1e10; the answer is then the same in every run.
    tol : float, default None
        ``auto`` stops once the standard error of log Z is this small.
    exclude : list of str, default ()
        Names of methods that ``auto`` leaves out, such as ``["exact"]``.
    seed : int, default 0
        Seed of all random choices.
    max_memory : int or str, default "4 GiB"
        Most memory for tables and populations, in bytes or like ``"512 MiB"``.
    threads : int, default None
        Most threads to use; by default all cores that the process may use.
    device : str, default "auto"
        ``"cpu"``, ``"gpu"``, or ``"auto"`` for a GPU if there is one and the model is large.

    Raises
    ------
    OptionError
        If the method gives no marginals, or not those of all pairs, or has no such option.
    TooLargeError
        If the model is too large for the method that was asked for, or has too many pairs for ``pairs="all"``.

    Warns
    -----
    InaccurateWarning
        If ``auto`` found no answer that can be trusted.

    See Also
    --------
    log_z : the log of the partition function, with the same options.
    predict : the missing cells of rows of data.
    sample : states instead of means.

    Examples
    --------
    >>> import spectralz as sz
    >>> found = sz.marginals(sz.Ising.from_edges(2, [(0, 1)], [1.0], field=[0.5, 0.0]))
    >>> found.mean.round(4).tolist(), found.pair_mean.round(4).tolist()
    ([0.4621, 0.3519], [0.7616])
    >>> sz.marginals(sz.Ising.from_edges(2, [(0, 1)], [1.0], names=["a", "b"]), given={"b": -1})["a"]
    -0.76...
    >>> sz.marginals(sz.generators.complete(n=12, strength=0.1, seed=0), pairs=False)
    Marginals(n=12, pairs left out, exact, means ... by exact)
    """
    chosen = as_method(method, options)
    refuse_without_marginals(chosen)
    conditioned = ModelWithEvidence.checked(model, given)
    if pairs == "all":
        if isinstance(conditioned.whole, Polynomial):
            raise OptionError('pairs="all" is for models of pairs, and a Polynomial has the means of its terms instead')
        with _spreading(chosen, executor):
            found = marginals_of_all_pairs(cast("Ising", conditioned.free), chosen)
            return conditioned.marginals(found, of_all_pairs=True)
    wanted = has_few_pairs(conditioned.whole) if pairs is None else flag(pairs, "pairs")
    with _spreading(chosen, executor):
        result = conditioned.marginals(chosen.run_marginals(conditioned.free, pairs=wanted))
    _warn_of(chosen, result.estimate)
    return result


def sample(
    model: Ising | RBM | Polynomial,
    size: int,
    method: str | Method = "auto",
    seed: int | np.random.Generator = 0,
    *,
    given: Mapping[Any, int] | None = None,
    executor: Any = None,
    **options: Any,
) -> SpinArray:
    """Return ``size`` states of ``model``, distributed as P(x), as rows of -1 and +1, or of an RBM's own values.

    States from ``exact``, ``quadrature`` and ``low_rank``, which ``auto`` prefers, are independent and follow P(x)
    exactly. States from ``annealing`` do so in the limit of large populations. Those from ``states`` are drawn from the
    states found. After Ctrl-C ``annealing`` draws from the groups that are done, and warns; without any it raises
    KeyboardInterrupt, as all other methods do.

    Parameters
    ----------
    model
        The model.
    size
        How many states.
    method, given, executor, **options
        As in :func:`log_z`. Given spins are columns too.
    seed
        A number, which always gives the same states, or a ``numpy.random.Generator``, which is advanced.

    Returns
    -------
    numpy.ndarray
        One state per row, ``size`` x n; n includes the given spins.

    Other Parameters
    ----------------
    budget : float, default None
        Seconds to spend at most, ten if neither this nor ``work`` is given.
    work : float, default None
        Instead of ``budget``: operations to do, such as 1e10; the answer is then the same in every run.
    tol : float, default None
        A tolerance of methods that have one; ``auto`` draws states without it.
    exclude : list of str, default ()
        Names of methods that ``auto`` leaves out, such as ``["exact"]``.
    max_memory : int or str, default "4 GiB"
        Most memory for tables and populations, in bytes or like ``"512 MiB"``.
    threads : int, default None
        Most threads to use; by default all cores that the process may use.
    device : str, default "auto"
        ``"cpu"``, ``"gpu"``, or ``"auto"`` for a GPU if there is one and the model is large.

    Raises
    ------
    OptionError
        If the method gives no samples, or has no such option.
    TooLargeError
        If the model is too large for the method that was asked for, or the states for memory.

    Warns
    -----
    InaccurateWarning
        If the states may not follow P(x).

    See Also
    --------
    marginals : means, without drawing states.
    map_state : the heaviest states.
    log_prob : log-probabilities of states.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.curie_weiss(n=500, strength=1.5, field=0.01)
    >>> states = sz.sample(model, size=3, seed=1)
    >>> states.shape, states.dtype
    ((3, 500), dtype('int8'))
    """
    chosen = as_method(method, options)
    _refuse_unable(chosen, "gives_samples", "gives no samples; these do")
    conditioned = ModelWithEvidence.checked(model, given)
    with _spreading(chosen, executor):
        return conditioned.states(chosen.run_sample(conditioned.free, size, seed))


def compare(
    model: Ising | RBM | Polynomial,
    methods: Iterable[str | Method] | None = None,
    *,
    given: Mapping[Any, int] | None = None,
    threads: int | None = None,
) -> Comparison:
    """Run several methods on one model and return their results; a method that fails is a row with its error.

    Ctrl-C ends the comparison and returns the rows so far, with ``interrupted`` set.

    Parameters
    ----------
    model
        The model.
    methods
        Names of methods, or methods; by default all except ``auto``.
    given
        Evidence, as in :func:`log_z`.
    threads
        Most threads that each method uses, unless it sets its own number; by default all cores that the process may
        use.

    Returns
    -------
    Comparison
        One row per method, in the order of ``methods``. ``table["bp"]`` is the :class:`Estimate` of ``bp``.

    Raises
    ------
    OptionError
        If ``methods`` is one name instead of a list.
    UnknownMethodError
        If no method has one of these names.

    See Also
    --------
    log_z : one method.
    bounds : the best proven bounds of several methods.
    spectralz.plots.comparison : the picture, which ``table.plot()`` draws.

    Examples
    --------
    >>> import spectralz as sz
    >>> table = sz.compare(sz.generators.grid(side=4, strength=0.5, seed=0), ["exact", "mf", "trw"])
    >>> [row.name for row in table]
    ['exact', 'mf', 'trw']
    >>> table["mf"].lower < table.reference.log_z < table["trw"].upper
    True
    """
    if isinstance(methods, str):
        raise OptionError(f"methods is {methods!r}; give a list, such as [{methods!r}]")
    wanted = [name for name in METHODS if name != "auto"] if methods is None else methods
    chosen = [(as_method(method, {}), method if isinstance(method, str) else method.name) for method in wanted]
    free = ModelWithEvidence.checked(model, given).free
    rows: list[ComparisonRow] = []
    is_ended = False
    with using_threads(checked_threads(threads)), catching_interrupt() as interrupt:
        for method, name in chosen:
            rows.append(_row(free, method, name))
            if is_ended := rows[-1].estimate is not None and rows[-1].estimate.interrupted:
                break
    if interrupt.happened and not rows:
        raise KeyboardInterrupt
    return Comparison(tuple(rows), interrupted=interrupt.happened or is_ended)


def bounds(
    model: Ising | RBM | Polynomial,
    budget: float | None = None,
    exclude: Iterable[str] = (),
    *,
    given: Mapping[Any, int] | None = None,
    work: float | None = None,
    threads: int | None = None,
    level: float | None = None,
    seed: int = 0,
) -> Bounds:
    """Return proven bounds on log Z of ``model`` from both sides, the best that several methods find in a given time.

    There are always bounds on both sides, for a model of any size. The bounding methods run one after the other, cheap
    ones first. Methods whose predicted cost exceeds the rest of the budget are left out. The exact method is not used.
    Ctrl-C ends the search early and returns what has been found.

    Parameters
    ----------
    model
        The model.
    budget
        Seconds to spend, ten by default. Costs are predicted, and a method that takes longer stops with the bound that
        it has.
    exclude
        Names of bounders to leave out: ``mf``, ``bethe``, ``states``, ``sdp``, ``convex_mf``, ``trw``, ``wmbe``. With
        ``exact``, bounders that happen to be exact do not count, such as ``wmbe`` on graphs of low treewidth.
    given
        Evidence, as in :func:`log_z`.
    work
        Instead of ``budget``: operations to do, such as 1e10, which one core does in about ten seconds. The bounds are
        then the same in every run.
    threads
        Most threads to use; by default all cores that the process may use.
    level
        A probability such as 0.999, to get an ``interval`` as well. It is not proven but contains log Z with that
        probability, and takes half of the budget. None for bounds alone.
    seed
        Seed of the random numbers for the interval; the bounds do not depend on it.

    Returns
    -------
    Bounds
        ``lower`` and ``upper`` with the methods that proved them, ``rows`` of all bounders, and ``interval``.

    Raises
    ------
    OptionError
        If both ``budget`` and ``work`` are given, or if a value is out of range.
    ModelError
        If ``model`` is not a model, or if ``given`` names a spin that it does not have.

    See Also
    --------
    log_z : an estimate, with the bounds that its method proved.
    compare : several methods side by side.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.grid(side=10, strength=0.3, seed=0)
    >>> found = sz.bounds(model, budget=2.0)
    >>> found.lower <= sz.log_z(model, "exact").log_z <= found.upper
    True
    >>> found.width < 10.0
    True
    >>> low, high, level = sz.bounds(model, budget=0.5, exclude=["exact"], level=0.999).interval
    >>> low <= sz.log_z(model, "exact").log_z <= high
    True
    """
    limits = checked_budget(budget, work)
    probability = None if level is None else checked_level(level, "level")
    number = checked_count(seed, "seed", least=0)
    free = ModelWithEvidence.checked(model, given).free
    passed = clock.stopwatch()
    if free.constraints.is_impossible:
        zero = -math.inf
        return Bounds(lower=zero, upper=zero, lower_method="presolve", upper_method="presolve", rows=(), **passed())
    with showing_interrupts(), using_threads(checked_threads(threads)), budgeted(*limits) as deadline:
        if probability is None:
            found = bracket(free, deadline, exclude)
        else:
            found = bracket_with_interval(free, deadline, exclude, probability, number)
    return replace(found, **passed())


def _warn_of(method: Method, result: Estimate) -> None:
    """Warn the caller of the verb if the answer of ``auto`` cannot be trusted, unless it was interrupted."""
    if isinstance(method, Auto) and not result.trusted and not result.interrupted:
        warn_inaccurate(f"this answer is not to be trusted, nor is its error: {result.status}", stacklevel=4)


def _spreading(method: Method, executor: Any) -> AbstractContextManager[None]:
    """Return the context in which a method works with an executor, or refuse it."""
    if executor is not None:
        _refuse_unable(method, "spreads_runs", "has no runs for an executor; these methods do")
    return using_executor(executor)


def refuse_without_marginals(method: Method) -> None:
    """Refuse a method that gives no marginals, and name those that do."""
    _refuse_unable(method, "gives_marginals", "gives no marginals; these do")


def _refuse_unable(method: Method, ability: str, lack: str) -> None:
    """Refuse a method without an ability, one of its class variables, and name those that have it."""
    if not getattr(method, ability):
        able = ", ".join(name for name, known in METHODS.items() if getattr(known, ability))
        raise OptionError(f"method {method.name!r} {lack}: {able}")


def _row(model: Model, method: Method, name: str) -> ComparisonRow:
    try:
        return ComparisonRow(method, method.run(model), None, name)
    except SpectralzError as error:
        return ComparisonRow(method, None, error, name)


def as_method(method: str | Method, options: dict[str, Any]) -> Method:
    """Return the method for a name with options, or the method itself."""
    if isinstance(method, Method):
        if options:
            raise OptionError(
                f"options ({', '.join(options)}) go with a method's name; {method.name!r} was given as a value: "
                "set them there"
            )
        return method
    if not isinstance(method, str):
        raise UnknownMethodError(f"method is a {type(method).__name__}; it must be a name or a Method")
    if method in PAPER_SETTINGS:
        setting = PAPER_SETTINGS[method]
        if options:
            raise OptionError(
                f"{method!r} is a setting of the paper with fixed options; to choose options, ask for {setting.name!r}"
            )
        return setting
    if method in REMOVED_METHODS:
        raise UnknownMethodError(REMOVED_METHODS[method])
    if method not in METHODS:
        names = {name.lower(): name for name in (*METHODS, *PAPER_SETTINGS)}
        close = [names[name] for name in difflib.get_close_matches(method.lower(), names, n=1)]
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise UnknownMethodError(f"no method is called {method!r}; {hint}known are {', '.join(METHODS)}")
    return METHODS[method].with_options(options)
