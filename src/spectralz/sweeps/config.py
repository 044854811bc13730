"""Sweeps from TOML files; errors name the key that is wrong."""

from __future__ import annotations

import glob
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectralz import generators
from spectralz.errors import FormatError, SpectralzError, shown
from spectralz.sweeps.sweep import Contestant, Sweep

if TYPE_CHECKING:
    from collections.abc import Mapping

# The types of values of TOML; True and False are no numbers.
_TYPES: dict[str, tuple[type, ...]] = {
    "a string": (str,),
    "true or false": (bool,),
    "a whole number": (int,),
    "a number": (int, float),
    "a table": (dict,),
}
LIST = "a list of "
# The keys of a configuration and their types.
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
    ``methods``          names of methods or labels of the paper (``"BP-200"``); each its own label
    ``[[contestants]]``  methods with options: ``method``, and optionally ``label`` (default: the method),
                         ``options`` (a table), ``is_ours``; they come after ``methods``
    ``[model]``          ``generator`` and its parameters, or ``files``: names or patterns such as
                         ``"grids/*.uai"``, relative to this file's folder; with a generator, tables
                         ``[[model.instances]]`` may list parameters that do not vary along one axis
    ``axis``, ``values`` the parameter that varies, and its values; ``strengths = [...]`` is short for
                         ``axis = "strength"`` with these values
    ``repeats``          models per value, default 1
    ``seed``             the seed of the first repeat, default 0
    ``truth``            whether to compute the exact log Z too, if possible, default true
    ``edge_convention``  ``"text"`` (default) or ``"code"``, see :class:`Sweep`
    ===================  ================================================================================

    Raises
    ------
    FormatError
        If the file is not TOML or not a sweep; the message names the file and the key, what was given and what was
        expected.
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
                task.tiny().model()  # so that a parameter out of range is an error now
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
        raise FormatError("the table [model] is missing; it has generator = ... or files = [...]", path)
    model = table["model"]
    _check_model(model, table, path)
    parameters = {key: value for key, value in model.items() if key not in _MODEL_KEYS}
    settings = {key: table[key] for key in ("repeats", "seed", "truth", "edge_convention") if key in table}
    return Sweep(
        name=table.get("name", path.stem),
        contestants=_contestants_of(table, path),
        generator=model.get("generator"),
        parameters={**model.get("parameters", {}), **parameters},
        instances=model.get("instances", ()),
        files=_files_of(model.get("files", []), path),
        **_axis_of(table, path),
        **settings,
    )


def _check_model(model: dict[str, Any], table: dict[str, Any], path: Path) -> None:
    """Refuse a model that is neither a generator nor files, and keys that have no meaning for files."""
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


def _axis_of(table: dict[str, Any], path: Path) -> dict[str, Any]:
    if "strengths" not in table:
        return {key: table[key] for key in ("axis", "values") if key in table}
    for key in ("axis", "values"):
        if key in table:
            raise FormatError(f"strengths stands for axis and values, and {key} is given too; give one of them", path)
    return {"axis": "strength", "values": table["strengths"]}


def _contestants_of(table: dict[str, Any], path: Path) -> tuple[Contestant, ...]:
    short = [{"method": name} for name in table.get("methods", [])]
    contestants = []
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
            contestants.append(contestant)
    if not contestants:
        raise FormatError("no methods are given; write methods = ['bp', ...] or tables [[contestants]]", path)
    return tuple(contestants)


def _files_of(patterns: list[str], path: Path) -> tuple[str, ...]:
    """Return the files for names and patterns, with absolute paths; those of a pattern in order of their names."""
    folder = path.resolve().parent
    files: dict[str, None] = {}
    for pattern in patterns:
        plain_file = folder / pattern
        matches = [str(plain_file)] if plain_file.is_file() else sorted(glob.glob(str(plain_file), recursive=True))
        matches = [match for match in matches if Path(match).is_file()]
        if not matches:
            raise FormatError(f"model.files names {pattern!r}, and there is no such file in {folder}", path)
        for match in matches:
            if not match.isprintable():  # rows are text, and so are names in rows
                raise FormatError(f"model.files names {match!r}, whose name is not printable text; rename it", path)
        files.update(dict.fromkeys(matches))
    return tuple(files)


def _check_table(table: dict[str, Any], known: Mapping[str, str], prefix: str, path: Path) -> None:
    """Refuse unknown keys and values of the wrong type."""
    for key, value in table.items():
        if key not in known:
            raise FormatError(f"{prefix}{shown(key)[1:-1]} is not a key of a sweep; known are {', '.join(known)}", path)
        if not _is_a(value, known[key]):
            raise FormatError(f"{prefix}{key} is {shown(value)}; it must be {known[key]}", path)


def _is_a(value: Any, kind: str) -> bool:
    if kind.startswith(LIST):
        items = f"a {kind.removeprefix(LIST).removesuffix('s')}"
        return isinstance(value, list) and all(_is_a(item, items) for item in value)
    return type(value) in _TYPES[kind]
