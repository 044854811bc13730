"""The options that commands share, what the Tab key offers, and how the text of ``--set`` becomes options of methods.

The shell completes names of files itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

import spectralz as sz
from spectralz._support.devices import DEVICES, using_device
from spectralz._support.executors import dask_client
from spectralz._support.options import check_choice, checked_count
from spectralz._support.threads import using_threads
from spectralz.cli.console import say
from spectralz.cli.helping import first_line
from spectralz.errors import OptionError
from spectralz.io import FORMATS

# ---------------------------------------------------------------------------------------------- what the Tab key offers

READABLE = tuple(known.name for known in FORMATS)
WRITABLE = tuple(known.name for known in FORMATS if known.write is not None)


def offered_methods(incomplete: str) -> list[tuple[str, str]]:
    """Offer the names of methods, with what they do."""
    offered = {name: first_line(method) for name, method in sz.METHODS.items()}
    offered |= {label: f"{setting.name} as in the paper" for label, setting in sz.PAPER_SETTINGS.items()}
    return [(name, what) for name, what in offered.items() if name.startswith(incomplete)]


def offered_lists_of_methods(incomplete: str) -> list[str]:
    """Offer one more name after the last comma."""
    return _one_more(incomplete, [*sz.METHODS, *sz.PAPER_SETTINGS])


def offered_settings(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the options of the method named before, or of ``auto``."""
    known: Any = sz.METHODS.get(ctx.params.get("method") or "auto")
    names = [] if known is None else [f"{name}=" for name in vars(known())]
    return [name for name in names if name.startswith(incomplete)]


def offered_formats(incomplete: str) -> list[str]:
    """Offer the formats that can be read."""
    return [name for name in READABLE if name.startswith(incomplete)]


def offered_formats_to_write(incomplete: str) -> list[str]:
    """Offer the formats that can be written."""
    return [name for name in WRITABLE if name.startswith(incomplete)]


def offered_figures(incomplete: str) -> list[str]:
    """Offer the figures of the paper."""
    from spectralz.paper import FIGURES

    return [name for name in (*FIGURES, "all") if name.startswith(incomplete)]


def _one_more(incomplete: str, known: Iterable[str]) -> list[str]:
    """Offer the names that a comma-separated list does not have yet.

    Examples
    --------
    >>> _one_more("exact,b", ["exact", "bp", "mbe"])
    ['exact,bp']
    """
    before, comma, begun = incomplete.rpartition(",")
    taken = before.split(",")
    return [f"{before}{comma}{name}" for name in known if name.startswith(begun) and name not in taken]


# ---------------------------------------------------------------------------------------------- the model and the files

ModelFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A model; - reads standard input.", show_default=False),
]
OutFile = Annotated[
    Path,
    typer.Argument(metavar="OUT", help="Where to write it; - is standard output.", show_default=False),
]
EvidenceFile = Annotated[
    Path | None,
    typer.Option("--evidence", "-e", metavar="FILE", help="A UAI .evid file; its variables are fixed."),
]
Given = Annotated[
    list[str] | None,
    typer.Option(
        "--given",
        "-g",
        metavar="NAME=VALUE",
        help="Fix a spin to +1 or -1 (1 or 0 in a model of 0/1 data), by its name or else its number; may be repeated.",
    ),
]
Beta = Annotated[float, typer.Option("--beta", metavar="NUMBER", help="Multiply every log-weight by this.")]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="NAME",
        help=f"Format of the file, if it is not to be detected: {', '.join(READABLE)}.",
        autocompletion=offered_formats,
    ),
]
Picture = Annotated[Path | None, typer.Option("--plot", metavar="OUT", help="Also draw a picture: .png, .svg or .pdf.")]
Page = Annotated[Path | None, typer.Option("--html", metavar="OUT", help="Also write one self-contained HTML page.")]

# ----------------------------------------------------------------------------------------------------------- the method

MethodName = Annotated[
    str,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME",
        help="Which method; `spectralz methods` lists them.",
        autocompletion=offered_methods,
    ),
]


def names_option(name: str, letter: str, words: str) -> Any:
    """Return an option that takes names of methods."""
    return typer.Option(name, letter, metavar="NAMES", help=words, autocompletion=offered_lists_of_methods)


Exclude = Annotated[str | None, names_option("--exclude", "-x", "Methods that auto leaves out, separated by commas.")]
Methods = Annotated[str | None, names_option("--methods", "-m", "Names separated by commas; all if not given.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        metavar="KEY=VALUE",
        help="An option of the method; may be repeated.",
        autocompletion=offered_settings,
    ),
]
Budget = Annotated[
    float | None,
    typer.Option(
        "--budget",
        "-b",
        metavar="SECONDS",
        help="Time to spend, about, if no exact answer is possible; ten seconds if not given.",
        show_default=False,
    ),
]
Work = Annotated[
    float | None,
    typer.Option(
        "--work",
        "-w",
        metavar="OPERATIONS",
        help="Instead of --budget: operations to do, such as 1e10 for about ten seconds; the answer is reproducible.",
        show_default=False,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", "-t", metavar="N", help="Most threads to use; all cores if not given.", show_default=False
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of all random numbers.")]
Device = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="NAME",
        help="cpu, gpu (extra gpu), or auto: a GPU for large dense or bipartite models, if there is one.",
        show_default=False,
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="Let the workers of this Dask scheduler make the runs of auto, annealing or states (extra dask).",
        show_default=False,
    ),
]

# ----------------------------------------------------------------------------------------------------------- the answer

Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line names the columns; otherwise it does if it is no data, or 0,1,2 and so on.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", "-j", help="Print one JSON object instead of a table.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if a method did not converge.")]


def method_options(
    settings: list[str], budget: float | None, exclude: str | None, work: float | None = None, **others: Any
) -> dict[str, Any]:
    """Return the options from ``--set`` and its shortcuts together; shortcuts that are None were not given.

    Examples
    --------
    >>> method_options(["tol=1e-3", "seed=7"], budget=2.5, exclude="ep, states")
    {'tol': 0.001, 'seed': 7, 'budget': 2.5, 'exclude': ['ep', 'states']}
    """
    options = _parsed_settings(settings)
    shortcuts = {"budget": budget, "work": work, "exclude": None if exclude is None else names_in(exclude), **others}
    for name, value in shortcuts.items():
        if value is None:
            continue
        if name in options:
            raise OptionError(f"--{name} and --set {name} were both given; give one of them")
        options[name] = value
    return options


def methods_with_options(names: list[str], options: dict[str, Any]) -> list[str | sz.Method]:
    """Return the methods with these names, each with the options that it has.

    Raises
    ------
    OptionError
        If none of them has one of the options.

    Examples
    --------
    >>> exact, mbe = methods_with_options(["exact", "mbe"], {"ibound": 3})
    >>> exact, mbe.ibound
    ('exact', 3)
    """
    for key in options:
        if not any(_has_option(name, key) for name in names):
            able = ", ".join(name for name in sz.METHODS if _has_option(name, key))
            removed = [sz.METHODS[name].removed for name in names if name in sz.METHODS]
            hint = f"these methods have it: {able}" if able else "`spectralz methods` lists the options of each"
            hint = next((gone[key] for gone in removed if key in gone), hint)
            raise OptionError(f"none of the methods compared has the option {key!r}; {hint}")
    chosen: list[str | sz.Method] = []
    for name in names:
        known = {key: value for key, value in options.items() if _has_option(name, key)}
        chosen.append(sz.inference.as_method(name, known) if known else name)
    return chosen


def _has_option(name: str, key: str) -> bool:
    """Say whether a method has an option; settings of the paper have fixed options."""
    return name in sz.METHODS and key in vars(sz.METHODS[name]())


def budget_of(method: sz.Method) -> float | None:
    """Return the seconds that a method plans to spend, or None if it has no such plan."""
    seconds: float | None = getattr(method, "budget", None)
    return seconds


def _parsed_settings(settings: list[str]) -> dict[str, Any]:
    """Turn ``key=value`` into options: numbers, lists of numbers, true, false and none; otherwise text."""
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


def names_in(text: str) -> list[str]:
    """Return the names in a comma-separated list."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    return value if isinstance(value, int | float | tuple | list) else text


def in_threads(threads: int | None) -> AbstractContextManager[None]:
    """Return the context in which a command works with ``--threads``."""
    return using_threads(None if threads is None else checked_count(threads, "--threads", least=1))


@contextmanager
def in_place(threads: int | None, device: str) -> Iterator[None]:
    """Let a command work with ``--threads`` and on ``--device``."""
    with in_threads(threads), using_device(check_choice(device, "--device", DEVICES)):
        yield


@contextmanager
def on_dask(address: str | None) -> Iterator[Any]:
    """Yield a client of the scheduler of ``--dask`` for the duration of a command, or None if there is none."""
    if address is None:
        yield None
        return
    with dask_client(address) as client:
        if not client.ncores():
            say(f"the Dask scheduler at {address} has no workers yet; waiting for them")
        yield client
