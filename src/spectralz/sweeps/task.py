"""One task of a sweep: a model, and all methods on it. This runs in the workers."""

from __future__ import annotations

import contextlib
import json
import platform
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import spectralz
from spectralz import generators, io
from spectralz.methods import Exact
from spectralz.result import Estimate, plain
from spectralz.sweeps.rows import Row

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from spectralz.model import Model
    from spectralz.sweeps.sweep import Contestant

    # Workers and clusters yield all rows of a task at once.
    Answers = Generator[list[Row], None, None]

# The parameters of generators that count spins, and their largest value in a tiny model.
TINY = {"n": 8, "side": 3, "visible": 4, "hidden": 4}
TINY |= {"rows": 3, "columns": 3, "layers": 3, "tile": 2, "degree": 2, "patterns": 2, "shortest": 4}
# A model whose worker died is tried again once.
MOST_ATTEMPTS = 2
# The tasks for which this process has warmed up.
_warm: set[str] = set()


@dataclass(frozen=True, kw_only=True)
class Task:
    """Hold one model of a sweep.

    Attributes
    ----------
    instance
        Its name, unique in the sweep; the same sweep has the same names.
    x
        Its position on the axis.
    repeat, seed
        The number of the repeat, and the seed of its generator.
    generator, parameters
        A name of ``GENERATORS`` and its parameters, including the seed; None for a file.
    path
        The file to read instead.
    """

    instance: str
    x: float
    repeat: int
    seed: int
    generator: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    path: str | None = None

    def model(self) -> Model:
        """Make or read the model."""
        if self.path is not None:
            return io.read(self.path)
        assert self.generator is not None
        return generators.GENERATORS[self.generator](**self.parameters)

    def tiny(self) -> Task:
        """Return a task of the same family with few spins, to warm up with; for a file, a small sparse grid.

        Examples
        --------
        >>> task = Task(instance="", x=1.0, repeat=0, seed=0, generator="grid", parameters={"side": 15, "strength": 2})
        >>> task.tiny().parameters
        {'side': 3, 'strength': 2}
        """
        if self.path is not None:
            return replace(self, path=None, generator="grid", parameters={"side": 3, "strength": 1.0, "seed": 0})
        sizes = {name: value for name, value in self.parameters.items() if name in TINY and isinstance(value, int)}
        small = {name: min(value, TINY[name]) for name, value in sizes.items()}
        return replace(self, parameters={**self.parameters, **small})


def run_task(task: Task, contestants: Sequence[Contestant], truth: bool) -> list[Row]:
    """Run all contestants on the model of a task and return one row each; a failure is a row with its ``failure``.

    Parameters
    ----------
    task
        The model.
    contestants
        The methods, in the order of the rows.
    truth
        Whether to compute the exact log Z too.
    """
    _warm_up(task, contestants, truth)
    try:
        model = task.model()
    except Exception as error:
        return failed_rows(task, contestants, in_words(error))
    outcomes = [_attempt(model, contestant) for contestant in contestants]
    exact = _truth(model, [outcome for outcome, _ in outcomes]) if truth else None
    return [
        _row(task, model, contestant, outcome, exact, peak)
        for contestant, (outcome, peak) in zip(contestants, outcomes, strict=True)
    ]


def failed_rows(task: Task, contestants: Sequence[Contestant], why: str) -> list[Row]:
    """Return the rows of a task that failed."""
    return [_row(task, None, contestant, why, None, None) for contestant in contestants]


def _attempt(model: Model, contestant: Contestant) -> tuple[Estimate | str, float]:
    """Return the answer, or why there is none, and the most memory so far."""
    try:
        return contestant.build().run(model), _peak_mib()
    except Exception as error:
        return in_words(error), _peak_mib()


def _truth(model: Model, outcomes: Iterable[Estimate | str]) -> float | None:
    exact = Exact()
    for outcome in outcomes:
        if isinstance(outcome, Estimate) and outcome.method == exact:
            return outcome.log_z
    try:
        return exact.run(model).log_z if exact.plan(model).refusal is None else None
    except Exception:
        return None


def _warm_up(task: Task, contestants: Sequence[Contestant], truth: bool) -> None:
    """Run everything once on a tiny model, so that this process has loaded what the methods need."""
    key = f"{task.generator} {contestants} {truth}"
    if key in _warm:
        return
    _warm.add(key)
    with contextlib.suppress(Exception):  # a method that fails here will fail in its row
        model = task.tiny().model()
        outcomes = [_attempt(model, contestant)[0] for contestant in contestants]
        if truth:
            _truth(model, outcomes)


def _peak_mib() -> float:
    """Return the peak memory of this process."""
    # ru_maxrss is inherited from the process that started this one; VmHWM belongs to this process only.
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 2**10
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def in_words(error: BaseException) -> str:
    """Return an error as text for a row."""
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _row(
    task: Task,
    model: Model | None,
    contestant: Contestant,
    outcome: Estimate | str,
    truth: float | None,
    peak: float | None,
) -> Row:
    answer = outcome if isinstance(outcome, Estimate) else None
    method = answer.method if answer else contestant.build()
    numbers = {name: getattr(answer, name, None) for name in ("log_z", "lower", "upper", "std_error", "seconds")}
    return Row(
        instance=task.instance,
        x=task.x,
        repeat=task.repeat,
        seed=task.seed,
        n=model.n if model else None,
        edges=model.edge_count if model else None,
        label=contestant.label,
        method=method.name,
        options=json.dumps(plain(vars(method)), sort_keys=True),
        **{name: None if value is None else float(value) for name, value in numbers.items()},
        truth=truth,
        error=float(answer.log_z) - truth if answer and truth is not None else None,
        kind=str(answer.kind) if answer else "",
        status=str(answer.status) if answer else "",
        converged=bool(answer.status.converged) if answer else None,
        peak_mib=peak,
        failure=outcome if isinstance(outcome, str) else "",
        versions=f"spectralz {spectralz.__version__}, numpy {np.__version__}, Python {platform.python_version()}",
    )
