"""The options that commands share, and how the text of ``--set`` becomes the options of a method."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spectralz._support.options import checked_count
from spectralz._support.threads import using_threads
from spectralz.errors import OptionError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

__all__ = [
    "AsJson",
    "EvidenceFile",
    "ModelFile",
    "OutFile",
    "Strict",
    "Threads",
    "Work",
    "first_line",
    "in_threads",
    "method_options",
]

ModelFile = Annotated[Path, typer.Argument(metavar="FILE", help="A model: .uai or .npz.", show_default=False)]
OutFile = Annotated[Path, typer.Argument(metavar="OUT", help="Where to write it: .uai or .npz.", show_default=False)]
EvidenceFile = Annotated[
    Path | None, typer.Option("--evidence", metavar="FILE", help="A UAI .evid file; its variables are fixed.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if a method did not converge.")]

Work = Annotated[
    float | None,
    typer.Option(
        "--work",
        metavar="OPERATIONS",
        help="Instead of --budget: operations to do, such as 1e10 for about ten seconds; every run says the same.",
        show_default=False,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", metavar="N", help="Most threads to use; all cores if not given.", show_default=False),
]


def method_options(
    settings: list[str], budget: float | None, exclude: str | None, work: float | None = None
) -> dict[str, Any]:
    """Return the options that ``--set`` and its shortcuts stand for together.

    Examples
    --------
    >>> method_options(["tol=1e-3", "seed=7"], budget=2.5, exclude="ep, states")
    {'tol': 0.001, 'seed': 7, 'budget': 2.5, 'exclude': ['ep', 'states']}
    """
    options = _parsed_settings(settings)
    shortcuts = {"budget": budget, "work": work, "exclude": None if exclude is None else _names(exclude)}
    for name, value in shortcuts.items():
        if value is None:
            continue
        if name in options:
            raise OptionError(f"--{name} and --set {name} were both given; give one of them")
        options[name] = value
    return options


def _parsed_settings(settings: list[str]) -> dict[str, Any]:
    """Turn ``key=value`` into options: numbers, lists of them, true, false and none are read as such, else text."""
    options: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key.strip():
            missing = "value" if key.strip() else "key"
            raise OptionError(f"--set {setting!r} has no {missing}; write --set key=value")
        if key.strip() in options:
            raise OptionError(f"--set {key.strip()} was given twice; give it once")
        options[key.strip()] = _value(text.strip())
    return options


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, int | float | tuple | list) else text


def in_threads(threads: int | None) -> AbstractContextManager[None]:
    """Return the context in which a command works with ``--threads``."""
    return using_threads(None if threads is None else checked_count(threads, "--threads", least=1))


def first_line(documented: Any) -> str:
    """Return the first line of a docstring without its markup, as help."""
    return re.sub(r":\w+:`([^`]*)`|``", r"\1", (inspect.getdoc(documented) or "").split("\n")[0])
