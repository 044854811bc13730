"""The verbs: what a person asks of a model."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz._support.options import checked_count, checked_positive
from spectralz._support.threads import using_threads
from spectralz.errors import ModelError, OptionError, SpectralzError, UnknownMethodError
from spectralz.methods import Exact, Method
from spectralz.model import Ising
from spectralz.portfolio.bracket import bracket
from spectralz.portfolio.budget import Budget
from spectralz.registry import METHODS, PAPER_SETTINGS
from spectralz.result import Comparison, ComparisonRow, Description

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from spectralz.result import Bounds, Estimate, Marginals

# What takes a few seconds at most.
MOST_EDGES_TO_PEEL = 1_000_000
MOST_EDGES_TO_SWEEP = 20_000

__all__ = ["as_method", "bounds", "compare", "describe", "log_z", "marginals", "sample"]


def log_z(model: Ising, method: str | Method = "auto", **options: Any) -> Estimate:
    """Return log of the partition function of ``model``, with how far it can be trusted.

    Parameters
    ----------
    model
        The model.
    method
        The name of a method, or a method itself; ``log_z(model, "exact", order="banded")`` and
        ``log_z(model, Exact(order="banded"))`` are the same call. ``"BP-200"`` and the other labels of the paper's
        figures (``PAPER_SETTINGS``) are names too.
    **options
        Options of the method, if it is given by name.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.Ising(field=[0.0, 0.0], coupling=[[0.0, 0.5], [0.5, 0.0]])
    >>> result = sz.log_z(model)  # log(2 e + 2 / e)
    >>> print(f"{result.log_z:.6f}, {result.kind}")
    1.820075, exact
    """
    return as_method(method, options).run(_checked_model(model))


def marginals(model: Ising, method: str | Method = "auto", **options: Any) -> Marginals:
    """Return E[x_i] for every spin and E[x_i x_j] for every edge of ``model``.

    Parameters are those of :func:`log_z`.

    Examples
    --------
    >>> import spectralz as sz
    >>> found = sz.marginals(sz.Ising.from_edges(2, [(0, 1)], [1.0], field=[0.5, 0.0]))
    >>> found.mean.round(4).tolist(), found.pair_mean.round(4).tolist()
    ([0.4621, 0.3519], [0.7616])
    """
    chosen = as_method(method, options)
    if not chosen.gives_marginals:
        able = ", ".join(name for name, known in METHODS.items() if known.gives_marginals)
        raise OptionError(f"method {chosen.name!r} gives no marginals; these do: {able}")
    return chosen.run_marginals(_checked_model(model))


def sample(model: Ising, size: int, method: str | Method = "auto", seed: int = 0, **options: Any) -> NDArray[np.int8]:
    """Return ``size`` states of ``model`` as rows of -1 and +1, distributed as P(x).

    Those of ``exact``, ``quadrature`` and ``low_rank``, which ``auto`` prefers, are independent and distributed
    exactly. Those of ``annealing`` are so in the limit of large populations, those of ``states`` are drawn from the
    states found; where either is not to be relied on there is an ``InaccurateWarning``.

    Parameters
    ----------
    model
        The model.
    size
        How many.
    method, **options
        As in :func:`log_z`.
    seed
        The same seed gives the same states.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.curie_weiss(n=500, strength=1.5, field=0.01)
    >>> states = sz.sample(model, size=3, seed=1)
    >>> states.shape, states.dtype
    ((3, 500), dtype('int8'))
    """
    chosen = as_method(method, options)
    if not chosen.gives_samples:
        able = ", ".join(name for name, known in METHODS.items() if known.gives_samples)
        raise OptionError(f"method {chosen.name!r} gives no samples; these do: {able}")
    return chosen.run_sample(_checked_model(model), size, seed)


def compare(model: Ising, methods: Iterable[str | Method] | None = None, *, threads: int | None = None) -> Comparison:
    """Run several methods on one model; a method that fails is a row with its error.

    Parameters
    ----------
    model
        The model.
    methods
        Names of methods, or methods; all known ones but ``auto`` if not given.
    threads
        Most threads that each of them uses, unless it has its own number; by default all cores that the process may
        use.
    """
    asked = [name for name in METHODS if name != "auto"] if methods is None else methods
    if isinstance(asked, str):
        raise OptionError(f"methods is {asked!r}; give a list, such as [{asked!r}]")
    chosen = [(as_method(method, {}), method if isinstance(method, str) else method.name) for method in asked]
    checked = _checked_model(model)
    with using_threads(_checked_threads(threads)):
        return Comparison(tuple(_row(checked, method, name) for method, name in chosen))


def bounds(
    model: Ising,
    budget: float | None = None,
    exclude: Iterable[str] = (),
    *,
    work: float | None = None,
    threads: int | None = None,
) -> Bounds:
    """Return proven bounds on log Z of ``model`` from both sides, the best that several methods find in a given time.

    Both sides are always there, however large the model is. The methods that only bound run one after the other, cheap
    ones first, and those whose predicted cost does not fit into what is left of the budget are left out; the exact
    method is not among them. Ctrl-C ends the search early and returns what has been found.

    Parameters
    ----------
    model
        The model.
    budget
        Seconds to spend, ten by default. A plan, not a limit: costs are predicted, and a method that has begun is not
        stopped.
    exclude
        Names of bounders to leave out: ``mf``, ``states``, ``sdp``, ``convex_mf``, ``trw``, ``wmbe``; and ``exact``, so
        that none counts where it happens to be exact, as ``wmbe`` is on graphs of low treewidth.
    work
        Instead of ``budget``: operations to do, such as 1e10, which one core does in about ten seconds. The bounds are
        then the same in every run.
    threads
        Most threads to use; by default all cores that the process may use.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.grid(side=10, strength=0.3, seed=0)
    >>> found = sz.bounds(model, budget=2.0)
    >>> found.lower <= sz.log_z(model, "exact").log_z <= found.upper
    True
    >>> found.width < 10.0
    True
    """
    allowed = Budget(
        None if budget is None else checked_positive(budget, "budget"),
        None if work is None else checked_positive(work, "work"),
    )
    with using_threads(_checked_threads(threads)), allowed.planning():
        return bracket(_checked_model(model), allowed.seconds, exclude)


def describe(model: Ising) -> Description:
    """Return what is worth knowing of a model before solving it: size, strength, structure, and what exact would cost.

    ``treewidth_lower`` and ``treewidth_upper`` enclose the treewidth; ``exact_memory`` and ``exact_terms`` are those of
    log Z by the best order found. What could not be had in seconds, or by no machine, is None.

    Examples
    --------
    >>> import spectralz as sz
    >>> about = sz.describe(sz.generators.grid(side=5, strength=1.0, seed=0))
    >>> about.edges, about.components, about["treewidth_lower"], about["treewidth_upper"]
    (40, 1, 2, 5)
    """
    n = _checked_model(model).n
    edges, J = model.edges()
    degree = np.bincount(edges.ravel(), minlength=n)
    components = model.components()
    # An answer nobody can afford is still worth predicting; what counts is that the search for orders ends.
    plan = Exact(algorithm="elimination", max_memory=2**63, max_terms=2**60).plan(model)
    known = plan.refusal is None
    widths = [_swept_width(n, edges, components), plan.width if known else None]
    return Description(
        spins=n,
        edges=len(edges),
        density=2.0 * len(edges) / (n * (n - 1)) if n > 1 else 0.0,
        degree_mean=float(degree.mean()) if n else 0.0,
        degree_max=int(degree.max(initial=0)),
        coupling_mean=float(np.abs(J).mean()) / 2.0 if len(J) else 0.0,
        coupling_max=float(np.abs(J).max(initial=0.0)) / 2.0,
        field_mean=float(np.abs(model.field).mean()) if n else 0.0,
        field_max=float(np.abs(model.field).max(initial=0.0)),
        offset=model.offset,
        trace=float(model.diagonal.sum()),
        storage=model.storage.word,
        components=len(components),
        largest_component=max((len(spins) for spins in components), default=0),
        is_forest=len(edges) == n - len(components),
        treewidth_lower=_degeneracy(n, edges),
        treewidth_upper=min((width for width in widths if width is not None), default=None),
        exact_order=" and ".join(plan.orders) if known else None,
        exact_memory=plan.memory if known else None,
        exact_terms=plan.terms if known else None,
    )


def _degeneracy(n: int, edges: NDArray[np.int64]) -> int:
    """Return a lower bound on the treewidth: the degeneracy, or of very many edges half the mean degree."""
    from spectralz.kernels.elimination.order import adjacency_of, degeneracy

    return degeneracy(range(n), adjacency_of(n, edges)) if len(edges) <= MOST_EDGES_TO_PEEL else -(-len(edges) // n)


def _swept_width(n: int, edges: NDArray[np.int64], components: list[NDArray[np.int64]]) -> int | None:
    """Return an upper bound on the treewidth from a sweep that only counts, or None where that would take long."""
    from spectralz.kernels.elimination.order import ORDERS, adjacency_of
    from spectralz.kernels.elimination.tree import EliminationTree

    if len(edges) > MOST_EDGES_TO_SWEEP:
        return None
    adjacency = adjacency_of(n, edges)
    swept = (ORDERS["banded"](spins.tolist(), adjacency, n) for spins in components)
    return max((EliminationTree.of_order(order[0], adjacency).width for order in swept if order), default=0)


def _row(model: Ising, method: Method, name: str) -> ComparisonRow:
    try:
        return ComparisonRow(method, method.run(model), None, name)
    except SpectralzError as error:
        return ComparisonRow(method, None, error, name)


def as_method(method: str | Method, options: dict[str, Any]) -> Method:
    """Return the method that a name and options, or the method itself, stand for."""
    if isinstance(method, Method):
        if options:
            given = ", ".join(options)
            raise OptionError(
                f"options ({given}) go with a method's name; {method.name!r} was given as a value: set them there"
            )
        return method
    if not isinstance(method, str):
        raise UnknownMethodError(f"method is a {type(method).__name__}; it must be a name or a Method")
    if method in PAPER_SETTINGS:
        if options:
            label = PAPER_SETTINGS[method].name
            raise OptionError(
                f"{method!r} is a setting of the paper, options and all; to choose them, ask for {label!r}"
            )
        return PAPER_SETTINGS[method]
    if method not in METHODS:
        names = {name.lower(): name for name in (*METHODS, *PAPER_SETTINGS)}
        close = [names[name] for name in difflib.get_close_matches(method.lower(), names, n=1)]
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise UnknownMethodError(f"no method is called {method!r}; {hint}known are {', '.join(METHODS)}")
    return METHODS[method].with_options(options)


def _checked_threads(threads: Any) -> int | None:
    return None if threads is None else checked_count(threads, "threads", least=1)


def _checked_model(model: Any) -> Ising:
    if not isinstance(model, Ising):
        raise ModelError(
            f"model is a {type(model).__name__}; make an Ising of it first: "
            "Ising(field, coupling), Ising.from_edges or read"
        )
    return model
