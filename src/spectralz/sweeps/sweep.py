"""What a sweep is: models along an axis, methods on each of them, repeated with other seeds.

A sweep is a frozen value. It says everything that is needed to run it again, and it expands into tasks: one model each,
on which all methods run one after the other. The figures of the paper are sweeps; ``spectralz sweep config.toml`` runs
anybody's (:func:`read_config`).
"""

from __future__ import annotations

import glob
import inspect
import math
import re
import tomllib
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectralz import generators, io
from spectralz._support.options import check_choice, checked_count
from spectralz.errors import FormatError, OptionError, SpectralzError
from spectralz.inference import as_method
from spectralz.result import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from spectralz.methods import Method
    from spectralz.model import Ising

__all__ = ["Contestant", "Sweep", "Task", "read_config", "timed"]

# The generators whose strength is the largest (or mean) |A_ij|, as the paper prints it.
STRENGTH_IS_COUPLING = ("complete", "erdos-renyi", "bipartite", "grid", "rank-one")
# The parameters of generators that count spins, and the most of them in a tiny model.
TINY = {"n": 8, "side": 3, "visible": 4, "hidden": 4}


LONGEST_LABEL = 200


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """A method with its options, under the label that figures show.

    Attributes
    ----------
    label
        What legends and rows call it.
    method
        The name of a method, or a label of ``PAPER_SETTINGS``.
    options
        Its options.
    is_ours
        Whether it goes beyond the paper, which figures mark.
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
class Task:
    """One model of a sweep.

    Attributes
    ----------
    instance
        Its name, unique in the sweep; the same sweep has the same names.
    x
        Where it stands on the axis.
    repeat, seed
        Which of the repeats it is, and the seed of its generator.
    generator, parameters
        What makes it: a name of ``GENERATORS`` and its parameters, seed included; or None and ...
    path
        ... the file to read.
    """

    instance: str
    x: float
    repeat: int
    seed: int
    generator: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    path: str | None = None

    def model(self) -> Ising:
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
        small = {name: min(value, TINY.get(name, value)) for name, value in self.parameters.items() if _is_int(value)}
        return replace(self, parameters={**self.parameters, **small})


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A whole sweep.

    Attributes
    ----------
    name
        What its folder and its report are called.
    contestants
        The methods, in the order of the legend.
    generator, parameters
        A name of ``GENERATORS`` and the parameters that stay the same; None for files.
    axis, values
        Which parameter runs along the axis, and through which values. With files these are their places, from 1.
    files
        Models to read instead, one for each value.
    instances
        Sets of parameters for the generator, one for each value, instead of an axis: the values are then their places,
        from 1 if none are given, and ``edge_convention`` leaves their strengths as they are.
    repeats
        Models for each value, with seeds ``seed``, ``seed + 1``, ... (files: once each).
    seed
        The first seed.
    truth
        Whether the exact log Z is wanted beside each answer, where exact methods reach it.
    edge_convention
        ``"text"``: A_ij ~ U[-s, s] as the paper prints it. ``"code"``: an edge counted once weighs A_ij, as in the
        authors' published code, which halves the strength, wherever it is given: along the axis or beside it. The axis
        keeps the numbers that were asked for. Files are read as they are.

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
        found = plain(asdict(self))
        assert isinstance(found, dict)
        return found

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Sweep:
        """Make the sweep of which ``values`` is the :meth:`to_dict`."""
        contestants = tuple(Contestant(**contestant) for contestant in values["contestants"])
        return cls(**{**values, "contestants": contestants})

    def _file_tasks(self) -> Iterator[Task]:
        count = Counter(Path(path).name for path in self.files)
        for place, path in enumerate(self.files, start=1):
            name = Path(path).name
            yield Task(instance=name if count[name] == 1 else path, x=float(place), repeat=0, seed=0, path=path)

    def _parameters_at(self, value: float, seed: int) -> dict[str, Any]:
        if self.instances:
            own = self.instances[self.values.index(value)]
            return {**self.parameters, **own, **({"seed": seed} if self._takes_seed() else {})}
        # Sizes are whole numbers; generators refuse 8.0.
        number = int(value) if float(value).is_integer() and self.axis != "strength" else value
        parameters = {**self.parameters, self.axis: number}
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
        object.__setattr__(self, "seed", checked_count(self.seed, "seed", least=0))
        check_choice(self.edge_convention, "edge_convention", ("text", "code"))
        if self.edge_convention == "code" and (self.files or self.instances):
            raise OptionError("edge_convention 'code' is for models along an axis; files and instances are as they are")
        if not self.name or self.name in (".", "..") or re.search(r"[/\\\x00]", self.name):
            raise OptionError(f"name is {self.name!r}; it names a folder, so it cannot be empty or have a slash in it")
        if bool(self.files) == (self.generator is not None):
            raise OptionError(f"sweep {self.name!r} must have either a generator or files, and not both")
        if self.generator is not None:
            self._check_generator(self.generator)
        elif len(set(self.files)) < len(self.files) or any(map(_has_line_break, self.files)):
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

    def _check_parameters(self, generator: str, own_parameters: Mapping[str, Any]) -> None:
        known = inspect.signature(generators.GENERATORS[generator]).parameters
        own = [name for name in known if name != "seed"]
        for name in (*self.parameters, *own_parameters):
            if name not in own:
                hint = "; the sweep's own seed sets it" if name == "seed" else ""
                raise OptionError(f"{generator!r} has no parameter {name!r} to set{hint}: it has {', '.join(own)}")
        for name in own_parameters:
            if name in self.parameters:
                what = "a parameter of an instance" if self.instances else "the axis"
                raise OptionError(f"{name!r} is both {what} and a parameter; give it once")
        for name in own:
            if name not in (*self.parameters, *own_parameters) and known[name].default is inspect.Parameter.empty:
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
            contestant.build()  # a wrong name or option is an error now, not in the middle of the work


def timed(name: str, contestants: tuple[Contestant, ...], sizes: tuple[int, ...], repeats: int) -> Sweep:
    """Return the sweep of Figs. 2b and 4: times on complete graphs of s = 1 along their size; no truth is needed."""
    return Sweep(
        name=name,
        contestants=contestants,
        generator="complete",
        parameters={"strength": 1.0},
        axis="n",
        values=sizes,
        repeats=repeats,
        truth=False,
    )


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _has_line_break(text: str) -> bool:
    return "\n" in text or "\r" in text


def _short(value: float) -> str:
    """Write a number with six digits, or with all of them where six would make it another."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


# What a configuration may say, and of which type; "number" is an int or a float.
_KEYS = {
    "name": "a string",
    "methods": "a list of strings",
    "contestants": "a list of tables",
    "model": "a table",
    "axis": "a string",
    "values": "a list of numbers",
    "strengths": "a list of numbers",
    "repeats": "a whole number",
    "seed": "a whole number",
    "truth": "true or false",
    "edge_convention": "a string",
}
_CONTESTANT_KEYS = {"label": "a string", "method": "a string", "options": "a table", "is_ours": "true or false"}
_MODEL_KEYS = {
    "generator": "a string",
    "parameters": "a table",
    "instances": "a list of tables",
    "files": "a list of strings",
}


def read_config(path: Path) -> Sweep:
    """Read a sweep from a TOML file.

    ===================  ================================================================================
    ``name``             default: the file's name without its suffix
    ``methods``          names of methods, labels of the paper (``"BP-200"``) or ``"sdp"``; each its own label
    ``[[contestants]]``  methods with options: ``method``, and if wanted ``label`` (default: the method),
                         ``options`` (a table), ``is_ours``; they come after ``methods``
    ``[model]``          ``generator`` and its parameters, or ``files``: names or patterns such as
                         ``"grids/*.uai"``, relative to this file's folder; beside a generator, tables
                         ``[[model.instances]]`` may list parameters that do not run along one axis
    ``axis``, ``values`` the parameter that runs, and its values; ``strengths = [...]`` is short for
                         ``axis = "strength"`` with these values
    ``repeats``          models a value, default 1
    ``seed``             of the first repeat, default 0
    ``truth``            whether to compute the exact log Z too where that is possible, default true
    ``edge_convention``  ``"text"`` (default) or ``"code"``, see :class:`Sweep`
    ===================  ================================================================================

    Raises
    ------
    FormatError
        If the file is no TOML or says something that is no sweep; the message names the file, the key, what was got
        and what is wanted.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "damping.toml"
    >>> _ = path.write_text('''
    ... methods = ["BP-200", "spectral"]
    ... strengths = [0.5, 1.0, 2.0]
    ... repeats = 10
    ...
    ... [model]
    ... generator = "erdos-renyi"
    ... n = 16
    ... p = 0.5
    ...
    ... [[contestants]]
    ... label = "damped BP"
    ... method = "bp"
    ... options = { damping = 0.5, max_iter = 1000 }
    ... ''')
    >>> sweep = read_config(path)
    >>> sweep.name, [contestant.label for contestant in sweep.contestants], len(list(sweep.tasks()))
    ('damping', ['BP-200', 'spectral', 'damped BP'], 30)
    """
    path = Path(path)
    try:
        table = tomllib.loads(path.read_bytes().decode())
    except (ValueError, RecursionError) as error:  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
        raise FormatError(f"this is not TOML: {error}", path) from None
    try:
        sweep = _sweep_of(table, path)
        for task in sweep.tasks():
            if task.repeat == 0:
                task.tiny().model()  # a parameter out of range is an error now
    except FormatError:
        raise
    except SpectralzError as error:
        raise FormatError(str(error), path) from error
    except OverflowError:
        raise FormatError("a number in it is too large for a floating-point number", path) from None
    return sweep


def _sweep_of(table: dict[str, Any], path: Path) -> Sweep:
    _check_table(table, _KEYS, "", path)
    if "model" not in table:
        raise FormatError("the table [model] is missing; it says generator = ... or files = [...]", path)
    model = table["model"]
    own = {key: value for key, value in model.items() if key not in _MODEL_KEYS}
    _check_table({key: value for key, value in model.items() if key in _MODEL_KEYS}, _MODEL_KEYS, "model.", path)
    if "files" in model and len(model) > 1:
        raise FormatError("model.files stands alone: files have no generator and no parameters", path)
    if "files" in model:
        for key in ("axis", "values", "strengths", "repeats", "seed", "edge_convention"):
            if key in table:
                raise FormatError(f"{key} has no meaning for model.files, which are read once each as they are", path)
    elif "generator" not in model:
        known = ", ".join(generators.GENERATORS)
        raise FormatError(f"model.generator is missing; it is one of {known} (or give model.files)", path)
    asked = {key: table[key] for key in ("repeats", "seed", "truth", "edge_convention") if key in table}
    return Sweep(
        name=table.get("name", path.stem),
        contestants=_contestants_of(table, path),
        generator=model.get("generator"),
        parameters={**model.get("parameters", {}), **own},
        instances=model.get("instances", ()),
        files=_files_of(model.get("files", []), path),
        **_axis_of(table, path),
        **asked,
    )


def _axis_of(table: dict[str, Any], path: Path) -> dict[str, Any]:
    if "strengths" not in table:
        return {key: table[key] for key in ("axis", "values") if key in table}
    for key in ("axis", "values"):
        if key in table:
            raise FormatError(f"strengths stands for axis and values, and {key} is given too; give one of them", path)
    return {"axis": "strength", "values": table["strengths"]}


def _contestants_of(table: dict[str, Any], path: Path) -> tuple[Contestant, ...]:
    short = [{"method": name} for name in table.get("methods", [])]
    found = []
    for kind, entries in (("methods", short), ("contestants", table.get("contestants", []))):
        for place, entry in enumerate(entries, start=1):
            where = f"{kind}[{place}]"
            _check_table(entry, _CONTESTANT_KEYS, f"{where}.", path)
            if "method" not in entry:
                raise FormatError(f"{where}.method is missing; name a method, such as 'bp'", path)
            contestant = Contestant(**{"label": entry["method"], **entry})
            try:
                contestant.build()
            except SpectralzError as error:
                raise FormatError(f"{where}: {error}", path) from error
            found.append(contestant)
    if not found:
        raise FormatError("no methods are given; write methods = ['bp', ...] or tables [[contestants]]", path)
    return tuple(found)


def _files_of(patterns: list[str], path: Path) -> tuple[str, ...]:
    """Return the files that names and patterns stand for, absolute, a pattern's in order of their names."""
    folder = path.resolve().parent
    found: dict[str, None] = {}
    for pattern in patterns:
        plain_file = folder / pattern
        matches = [str(plain_file)] if plain_file.is_file() else sorted(glob.glob(str(plain_file), recursive=True))
        matches = [match for match in matches if Path(match).is_file()]
        if not matches:
            raise FormatError(f"model.files names {pattern!r}, and there is no such file in {folder}", path)
        for match in matches:
            if not match.isprintable():  # rows are text, and so are the names in them
                raise FormatError(f"model.files names {match!r}, whose name is not printable text; rename it", path)
        found.update(dict.fromkeys(matches))
    return tuple(found)


def _check_table(table: dict[str, Any], known: Mapping[str, str], prefix: str, path: Path) -> None:
    """Refuse keys that are not known and values of other types."""
    for key, value in table.items():
        if key not in known:
            raise FormatError(f"{prefix}{key} is no key of a sweep; known are {', '.join(known)}", path)
        if not _is_a(value, known[key]):
            raise FormatError(f"{prefix}{key} is {value!r}; it must be {known[key]}", path)


def _is_a(value: Any, kind: str) -> bool:
    match kind:
        case "a string":
            return isinstance(value, str)
        case "true or false":
            return isinstance(value, bool)
        case "a whole number":
            return _is_int(value)
        case "a table":
            return isinstance(value, dict)
        case "a list of tables":
            return isinstance(value, list) and all(isinstance(item, dict) for item in value)
        case "a list of strings":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        case _:
            return isinstance(value, list) and all(_is_int(item) or isinstance(item, float) for item in value)
