"""Compile everything at once, for those who prefer to wait beforehand: containers, clusters, lectures."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from spectralz import kernels
from spectralz._support.options import checked_count
from spectralz._support.progress import report
from spectralz._support.threads import available_cores
from spectralz.errors import InaccurateWarning, SpectralzError
from spectralz.inference import bounds, count, log_z, map_state, marginals, sample
from spectralz.model import Ising, Model, Polynomial
from spectralz.model.constraints import Clause, Constraints
from spectralz.registry import METHODS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["Compilation", "arguments", "compile_together", "compiled_from", "everything", "warm_up"]

# Options that make a method do on small models what it otherwise does only on large ones, and do little of it. Other
# methods run with their defaults.
SETTINGS: Mapping[str, tuple[dict[str, Any], ...]] = {
    "exact": ({}, {"algorithm": "enumeration"}, {"order": "min-fill", "search": 100}),
    "bp": ({}, {"schedule": "sequential"}),
    "mf": ({}, {"block_width": 2}),
    "mbe": ({}, {"ibound": 3, "partition": "content"}),
    "low_rank": ({"max_rank": 1, "step": 0.1},),
    "quadrature": ({"max_rank": 1},),
    "spectral": ({}, {"factor": "dp"}),
    "wmbe": ({}, {"ibound": 2, "order": "min-degree", "max_iter": 2, "level": 0.5, "samples": 1}),
    "mps": ({"bond": 1, "samples": 10},),
    "annealing": ({"population": 50, "runs": 2},),
    "states": ({"population": 50, "runs": 2, "quenches": 100},),
    "auto": ({"exclude": ("exact", "quadrature"), "budget": 0.05},),
}


@dataclass(frozen=True)
class Compilation:
    """Hold what :func:`warm_up` did.

    Attributes
    ----------
    kernels
        How many compiled functions there are.
    compiled
        How many compilations were needed now; the rest was found on disk.
    folder
        Where they are kept, or None if no folder is writable.

    Examples
    --------
    >>> import spectralz as sz
    >>> done = sz.Compilation(kernels=300, compiled=0, folder="~/.cache/spectralz")
    >>> f"{done.compiled} of {done.kernels} compiled"
    '0 of 300 compiled'
    """

    kernels: int
    compiled: int
    folder: str | None


def warm_up(processes: int | None = None) -> Compilation:
    """Compile every kernel, or load what was compiled before, by running all methods on small models.

    Kernels are compiled on first use and kept on disk, so this is never necessary. It is useful for container images
    and before timing measurements. It takes one to two minutes on two cores, once.

    Parameters
    ----------
    processes
        How many processes share the work; by default one for each core that this one may use.

    Returns
    -------
    Compilation
        How many kernels there are, how many were compiled, and where they are kept.

    Raises
    ------
    OptionError
        If ``processes`` is not a number from 1 on.

    Examples
    --------
    >>> import spectralz as sz
    >>> sz.warm_up().compiled  # doctest: +SKIP
    147
    >>> sz.warm_up().compiled  # doctest: +SKIP
    0
    """
    code = "from spectralz.compilation import *; print(compiled_from(everything(), *arguments()).compiled)"
    return compile_together(everything(), [sys.executable, "-c", code], processes)


def compile_together(
    calls: Sequence[Callable[[], object]], command: Sequence[str], processes: int | None = None
) -> Compilation:
    """Make calls, so that all that they compile is kept, in several processes at once.

    ``command`` starts another process; two numbers are added to it, its place and how many there are, which
    :func:`arguments` returns. There :func:`compiled_from` makes the same calls, and the number of compilations is
    printed.
    """
    number = available_cores() if processes is None else checked_count(processes, "processes", least=1)
    quiet: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    helpers = [subprocess.Popen([*command, str(place), str(number)], **quiet) for place in range(1, number)]
    try:
        done = compiled_from(calls, 0, number)
        elsewhere = [helper.communicate()[0] for helper in helpers]
    except BaseException:
        for helper in helpers:
            helper.kill()
        raise
    return replace(done, compiled=done.compiled + sum(int(count) for count in elsewhere if count))


def arguments() -> tuple[int, int]:
    """Return the place of this process and the number of all, the last two arguments that it was started with."""
    place, number = map(int, sys.argv[-2:])
    return place, number


def everything() -> list[Callable[[], object]]:
    """Return calls that reach every kernel."""
    for module in pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}."):
        if not module.name.startswith(f"{kernels.__name__}.device"):  # compiled by JAX, for the sizes of each model
            importlib.import_module(module.name)
    return [call for model in _small_models() for call in _calls(model)] + _calls_of_large_models()


def compiled_from(calls: Sequence[Callable[[], object]], place: int, number: int) -> Compilation:
    """Make calls as one of a ``number`` of processes, each of which begins at its ``place``.

    Every second one goes backwards and meets the one before it, so that few kernels are compiled twice. All go round:
    what others have compiled by then is loaded.
    """
    from spectralz._support.compiling import KERNELS, NOTICE

    before = _times_compiled(KERNELS)
    first = (place + place % 2) * len(calls) // number
    calls = [*calls[first:], *calls[:first]]
    if place % 2:
        calls.reverse()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InaccurateWarning)
        for k, call in enumerate(calls):
            report(NOTICE, k / len(calls))
            with suppress(SpectralzError):  # not every method takes every model
                call()
    ours = [kernel for kernel in KERNELS if kernel.py_func.__module__.startswith(f"{kernels.__name__}.")]
    folders = [kernel.stats.cache_path for kernel in ours]
    return Compilation(
        kernels=len(ours),
        compiled=_times_compiled(KERNELS) - before,
        folder=os.path.commonpath(folders) if folders and all(folders) else None,
    )


def _calls_of_large_models() -> list[Callable[[], object]]:
    """Return calls that methods make only for large models, or for models too cold for the small ones used here."""
    from spectralz.inference.description import describe
    from spectralz.inference.gradients import LogZ
    from spectralz.kernels.coloring import first_fit
    from spectralz.kernels.elimination.screening import count_min_degree, has_narrow_front
    from spectralz.parts.compressed.frontier import largest_layer
    from spectralz.parts.expectation_propagation.problem import MANY_SPINS

    rows = _ring(5).storage.for_kernels()
    pairs = [(i, j) for i in range(20) for j in range(20, 60)]
    layers = Ising.from_edges(60, pairs, np.linspace(-2.0, 2.0, len(pairs)))
    alike = Ising.from_bipartite(np.ones((10, 12)))  # each spin of the larger side has the same ten neighbors
    magnet = Ising.from_edges(6, [(i, (i + k) % 6) for i in range(6) for k in (1, 2)], 12 * [1.0])
    huge = Ising.from_edges(3, [(0, 1), (1, 2), (0, 2)], [1e30, 1e30, -1e30])  # beyond single precision
    return [
        partial(log_z, alike, "exact", algorithm="elimination"),
        partial(log_z, _ring(200), "sdp"),  # small models are treated as dense there
        partial(log_z, _ring(MANY_SPINS + 1).scaled(0.1), "ep", restarts=1),
        partial(log_z, huge, "annealing", population=50),
        partial(log_z, Polynomial({(0, 1, 2): 1e30, (0, 1): -1e30}), "annealing", population=50),
        partial(log_z, Polynomial({(0, 1, 2): 1.0, (2, 3): 1.0}), "bp"),
        partial(log_z, _small_models()[-1], "annealing", population=2, level=0.5),
        partial(log_z, layers, "annealing", population=50),
        partial(_turn_clusters, magnet),
        _turn_bound_spins,
        partial(log_z, _small_models()[0], "annealing", population=2, level=0.5),
        partial(log_z, layers, "states", population=50),
        partial(_flip_a_side, layers),
        partial(log_z, layers, "mps", bond=2, samples=0),
        partial(largest_layer, _ring(5)),
        partial(count_min_degree, rows.indptr, rows.indices, 2),
        partial(has_narrow_front, rows.indptr, rows.indices, 2),
        partial(describe, _ring(5)),
        partial(first_fit, rows.indptr, rows.indices),  # for sparse graphs on a GPU
        partial(LogZ(2, np.array([[0, 1]])).values, np.zeros(2), np.zeros(1)),
        _keep_heaviest_states,
        _sum_over_missing_cells,
    ]


def _flip_a_side(layers: Ising) -> None:
    """Flip spins of one side with the other summed out: only auto does so."""
    from spectralz.sampling.engines.collapsed import sides_of
    from spectralz.sampling.path import from_fields
    from spectralz.sampling.population import carry

    path = replace(from_fields(layers, np.zeros(layers.n), sides=sides_of(layers)), flips=True)
    carry(path, np.array([0.0, 1.0]), 1, 2, np.random.default_rng(0))


def _turn_clusters(magnet: Ising) -> None:
    """Turn clusters of spins: only auto does so, and only in large models."""
    from spectralz.sampling.path import path_to
    from spectralz.sampling.population import carry

    carry(path_to(magnet, clusters=True), np.array([0.0, 1.0]), 1, 2, np.random.default_rng(0))


def _turn_bound_spins() -> None:
    """Turn two strongly coupled spins together: a search for phases does so where there are such."""
    from spectralz.sampling.phases_found import bound_parts

    chain = Ising.from_edges(8, [(i, i + 1) for i in range(7)], [2.0, *([0.1] * 6)])
    bound_parts(chain).turn(np.ones((2, 8), dtype=np.int8), np.random.default_rng(0))


def _keep_heaviest_states() -> None:
    """Eliminate with a few frontier states, and go back: methods do so only for cold models."""
    from spectralz.parts.elimination.heaviest_frontier import FutureBound

    FutureBound.of_model(_ring(8), ibound=2, rounds=1).run(2, remember=True).means()


def _sum_over_missing_cells() -> None:
    """Sum over missing cells, and draw them: fits do so."""
    from spectralz.parts.missing_cells import missing_cells, neighbors_of

    model = _ring(5)
    edges, J = model.edges()
    cells = missing_cells(np.array([[1, 0, 0, -1, 0]], dtype=np.int8), neighbors_of(model.n, edges))
    cells.moments(model.field, J, np.ones(1), True)
    cells.completed(model.field, J, 2, np.random.default_rng(0))


def _times_compiled(kernels: list[Any]) -> int:
    return sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels)


def _calls(model: Model) -> Iterator[Callable[[], object]]:
    """Yield every call that can be made with a model."""
    yield partial(bounds, model, budget=0.1)
    yield partial(map_state, model)
    pair = Ising(np.zeros(2))._changed(constraints=Constraints([Clause((0, 1), (1, 1))]))
    yield partial(count, pair, "elimination")
    yield partial(map_state, model, "search", work=1e7)
    for name, method in METHODS.items():
        for options in SETTINGS.get(name, ({},)):
            yield partial(log_z, model, name, **options)
            if method.gives_marginals:
                yield partial(marginals, model, name, **options)
            if method.gives_samples and name != "auto":  # which draws by other methods
                yield partial(sample, model, 2, name, **options)


def _small_models() -> tuple[Model, ...]:
    """Return models of all kinds: frustrated, cold, dense, sparse; trees; low rank of either sign; large terms."""
    field = np.linspace(-1.0, 1.0, 6)
    coupling = 2.0 * (-1.0) ** np.outer(np.arange(6), np.arange(6))
    tree = Ising.from_edges(3, [(0, 1), (1, 2)], [1.0, -1.0])
    positive = Ising.from_factors(field, [0.1], np.ones((1, 6)))
    negative = Ising.from_factors(field, [-0.1], np.ones((1, 6)))
    loops = Polynomial({(0, 1, 2): 2.0, (1, 2, 3): -2.0, (0, 3): 1.0, (0,): 0.5})
    return Ising(field, coupling), _ring(5), _ring(6), tree, positive, negative, loops


def _ring(n: int) -> Ising:
    """Return a ring with one frustrating coupling."""
    pairs = [(i, (i + 1) % n) for i in range(n)]
    return Ising.from_edges(n, pairs, [-3.0, *([3.0] * (n - 1))], np.linspace(-1.0, 1.0, n))
