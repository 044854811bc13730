"""A sweep: models, methods and what is measured, and the single runs that it consists of."""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import platform
import re
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import spectralz
from spectralz import generators, io
from spectralz._support.options import check_choice, checked_count
from spectralz.errors import OptionError, shown
from spectralz.inference import as_method
from spectralz.methods import Exact
from spectralz.result import Estimate, plain
from spectralz.sweeps.rows import Row

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from spectralz.methods import Method
    from spectralz.model import Model

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


# The generators whose strength is the largest (or mean) |A_ij|, as the paper prints it.
STRENGTH_IS_COUPLING = ("complete", "erdos-renyi", "bipartite", "grid", "rank-one")
LONGEST_LABEL = 200
MOST_REPEATS = 10**6


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """Hold a method with its options, under the label shown in figures.

    Attributes
    ----------
    label
        Its name in legends and rows.
    method
        The name of a method, or a label of ``PAPER_SETTINGS``.
    options
        Its options.
    is_ours
        Whether it goes beyond the paper; figures mark this.
    """

    label: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    is_ours: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", dict(self.options))

    def build(self) -> Method:
        """Return the method itself."""
        return as_method(self.method, dict(self.options))


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Hold the definition of a whole sweep.

    Attributes
    ----------
    name
        The name of its folder and its report.
    contestants
        The methods, in the order of the legend.
    generator, parameters
        A name of ``GENERATORS`` and the parameters that stay the same; None for files.
    axis, values
        Which parameter varies along the axis, and its values. For files the values are their positions, from 1.
    files
        Models to read instead, one per value.
    instances
        Sets of parameters for the generator, one per value, instead of an axis: the values are then their positions,
        from 1 if none are given, and ``edge_convention`` leaves their strengths unchanged.
    repeats
        Models per value, with seeds ``seed``, ``seed + 1``, ... (files: once each).
    seed
        The first seed.
    truth
        Whether to compute the exact log Z for each model, if exact methods can.
    edge_convention
        ``"text"``: A_ij ~ U[-s, s] as the paper prints it. ``"code"``: an edge counted once weighs A_ij, as in the
        authors' published code. This halves the strength, whether it varies along the axis or is a fixed parameter; the
        axis keeps the original numbers. Files are read unchanged.

    Examples
    --------
    >>> bp = Contestant(label="BP", method="bp", options={"damping": 0.5})
    >>> sweep = Sweep(name="mine", contestants=(bp,), generator="grid", parameters={"side": 4}, values=(0.5, 1.0))
    >>> [task.instance for task in sweep.tasks()]
    ['grid-strength=0.5-seed=0', 'grid-strength=1-seed=0']
    """

    name: str
    contestants: tuple[Contestant, ...]
    generator: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    axis: str = "strength"
    values: tuple[float, ...] = ()
    files: tuple[str, ...] = ()
    instances: tuple[Mapping[str, Any], ...] = ()
    repeats: int = 1
    seed: int = 0
    truth: bool = True
    edge_convention: str = "text"

    def tasks(self) -> Iterator[Task]:
        """Yield all models, those of one value together."""
        if self.generator is None:
            yield from self._file_tasks()
            return
        for value in self.values:
            for repeat in range(self.repeats):
                seed = self.seed + repeat
                yield Task(
                    instance=f"{self.generator}-{self.axis}={_short(value)}-seed={seed}",
                    x=float(value),
                    repeat=repeat,
                    seed=seed,
                    generator=self.generator,
                    parameters=self._parameters_at(value, seed),
                )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        return dict(plain(asdict(self)))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Sweep:
        """Make the sweep whose :meth:`to_dict` is ``values``."""
        contestants = tuple(Contestant(**contestant) for contestant in values["contestants"])
        return cls(**{**values, "contestants": contestants})

    def _file_tasks(self) -> Iterator[Task]:
        count = Counter(Path(path).name for path in self.files)
        for place, path in enumerate(self.files, start=1):
            name = Path(path).name
            yield Task(instance=name if count[name] == 1 else path, x=float(place), repeat=0, seed=0, path=path)

    def _parameters_at(self, value: float, seed: int) -> dict[str, Any]:
        if self.instances:
            varied = self.instances[self.values.index(value)]
        else:
            # Sizes are whole numbers; generators refuse 8.0.
            is_whole = float(value).is_integer() and self.axis != "strength"
            varied = {self.axis: int(value) if is_whole else value}
        parameters = {**self.parameters, **varied}
        if self.edge_convention == "code":
            parameters["strength"] = parameters["strength"] / 2.0
        return {**parameters, "seed": seed} if self._takes_seed() else parameters

    def _takes_seed(self) -> bool:
        assert self.generator is not None
        return "seed" in inspect.signature(generators.GENERATORS[self.generator]).parameters

    def __post_init__(self) -> None:
        for name in ("contestants", "files"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "instances", tuple(dict(parameters) for parameters in self.instances))
        places = self.values or range(1, len(self.instances) + 1)
        object.__setattr__(self, "values", tuple(float(value) for value in places))
        object.__setattr__(self, "parameters", dict(self.parameters))
        object.__setattr__(self, "repeats", checked_count(self.repeats, "repeats", least=1))
        if self.repeats > MOST_REPEATS:
            raise OptionError(f"repeats is {shown(self.repeats)}; it must be {MOST_REPEATS:.0e} or less")
        object.__setattr__(self, "seed", checked_count(self.seed, "seed", least=0))
        self._check()

    def _check(self) -> None:
        check_choice(self.edge_convention, "edge_convention", ("text", "code"))
        if self.edge_convention == "code" and (self.files or self.instances):
            raise OptionError("edge_convention 'code' is for models along an axis, not for files and instances")
        if not self.name or self.name in (".", "..") or re.search(r"[/\\\x00]", self.name):
            raise OptionError(f"name is {self.name!r}; it names a folder, so it cannot be empty or have a slash in it")
        if bool(self.files) == (self.generator is not None):
            raise OptionError(f"sweep {self.name!r} must have either a generator or files, and not both")
        if self.generator is not None:
            self._check_generator(self.generator)
        elif len(set(self.files)) < len(self.files) or any(re.search(r"[\r\n]", path) for path in self.files):
            raise OptionError(f"sweep {self.name!r} names a file twice, or one with a line break in its name")
        self._check_contestants()

    def _check_generator(self, generator: str) -> None:
        if generator not in generators.GENERATORS:
            known = ", ".join(generators.GENERATORS)
            raise OptionError(f"sweep {self.name!r} asks for the generator {generator!r}; known are {known}")
        if not self.values or len(set(self.values)) < len(self.values) or not all(map(math.isfinite, self.values)):
            raise OptionError(f"values is {list(self.values)}; give at least one number, each once")
        if self.edge_convention == "code" and generator not in STRENGTH_IS_COUPLING:
            able = ", ".join(STRENGTH_IS_COUPLING)
            raise OptionError(
                f"edge_convention 'code' halves A_ij of {able}; {generator!r} has a convention of its own"
            )
        if self.repeats > 1 and not self._takes_seed():
            raise OptionError(f"repeats is {self.repeats}; {generator!r} has no seed, so its repeats would be equal")
        if self.instances and len(self.instances) != len(self.values):
            raise OptionError(f"there are {len(self.instances)} instances and {len(self.values)} values; give one each")
        for parameters in self.instances or ({self.axis: self.values[0]},):
            self._check_parameters(generator, parameters)

    def _check_parameters(self, generator: str, varied: Mapping[str, Any]) -> None:
        known = inspect.signature(generators.GENERATORS[generator]).parameters
        settable = [name for name in known if name != "seed"]
        for name in (*self.parameters, *varied):
            if name not in settable:
                hint = "; the sweep's own seed sets it" if name == "seed" else ""
                raise OptionError(f"{generator!r} has no parameter {name!r} to set{hint}: it has {', '.join(settable)}")
        for name in varied:
            if name in self.parameters:
                what = "a parameter of an instance" if self.instances else "the axis"
                raise OptionError(f"{name!r} is both {what} and a parameter; give it once")
        for name in settable:
            if name not in (*self.parameters, *varied) and known[name].default is inspect.Parameter.empty:
                raise OptionError(f"{generator!r} needs the parameter {name!r}")
        strength = self.parameters.get("strength", 1.0)
        if not isinstance(strength, int | float):
            raise OptionError(f"strength is {strength!r}; it must be a number")

    def _check_contestants(self) -> None:
        labels = [contestant.label for contestant in self.contestants]
        is_fit = [0 < len(label) <= LONGEST_LABEL and label.isprintable() for label in labels]
        if not labels or len(set(labels)) < len(labels) or not all(is_fit):
            given = [label[:LONGEST_LABEL] for label in labels]
            raise OptionError(
                f"sweep {self.name!r} has contestants {given}; give at least one, each with its own label, "
                f"printable and of 1 to {LONGEST_LABEL} characters"
            )
        for contestant in self.contestants:
            contestant.build()  # so that a wrong name or option is an error now, not in the middle of the work


def _short(value: float) -> str:
    """Return a number with six digits, or with all digits if six would change it."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
