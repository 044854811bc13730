"""The command line: thin commands over the verbs. Results go to stdout, messages and progress to stderr.

Exit codes: 0 done, 1 not converged under ``--strict``, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import os
import re
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

import spectralz as sz
from spectralz.errors import FormatError, OptionError, SpectralzError
from spectralz.io import read_evidence, write_mar, write_pr
from spectralz.io.files import write_whole
from spectralz.options import bytes_in_words
from spectralz.plots import FORMATS, comparison_picture
from spectralz.progress import listening

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rich.console import Console
    from rich.table import Table

app = typer.Typer(
    help="Partition functions of pairwise binary models, and how far each answer can be trusted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
generate_app = typer.Typer(
    help="Make a random or standard model from a seed and write it to a file.", no_args_is_help=True
)
app.add_typer(generate_app, name="generate")

# What a screen is assumed to be wide when output goes to a file or a pipe: statuses are sentences.
PIPE_WIDTH = 140
# A table entry or a state takes about this long on one core of a present-day machine.
SECONDS_PER_TERM = 6e-9

ModelFile = Annotated[Path, typer.Argument(metavar="FILE", help="A model: .uai or .npz.", show_default=False)]
EvidenceFile = Annotated[
    Path | None, typer.Option("--evidence", metavar="FILE", help="A UAI .evid file; its variables are fixed.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Workers = Annotated[int | None, typer.Option(help="Processes at a time, each with one thread; as many as cores.")]
DaskAddress = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Send the work to this Dask scheduler instead (extra dask).")
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if a method did not converge.")]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; errors that have a way out end in a sentence and exit code 2, not in a traceback."""
    try:
        app(args=arguments, prog_name="spectralz")
    except BrokenPipeError:
        # The reader of our output has gone; so has the need for it. Python would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (SpectralzError, OSError) as error:
        _console(stderr=True).print(f"error: {_sentence(error)}", style="red", markup=False, highlight=False)
        sys.exit(2)
    except MemoryError:
        _console(stderr=True).print("error: the machine has too little memory for this", style="red")
        sys.exit(2)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        print(sz.__version__)
        raise typer.Exit


@app.command()
def solve(
    file: ModelFile,
    evidence: EvidenceFile = None,
    method: Annotated[str, typer.Option(help="Which method; `spectralz methods` lists them.")] = "auto",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="An option of the method; may be repeated."),
    ] = None,
    as_json: AsJson = False,
    pr: Annotated[Path | None, typer.Option(metavar="OUT", help="Write log10 Z as a UAI .PR answer.")] = None,
    mar: Annotated[Path | None, typer.Option(metavar="OUT", help="Write marginals as a UAI .MAR answer.")] = None,
    strict: Strict = False,
) -> None:
    """Find log Z of a model, with bounds, and its marginals if --mar asks for them."""
    inputs = [path for path in (file, evidence) if path is not None]
    for out in (pr, mar):
        _check_output(out, inputs)
    if pr is not None and mar is not None and pr.resolve() == mar.resolve():
        raise FormatError("--pr and --mar name the same file; give each its own", pr)
    chosen = sz.inference.as_method(method, _parsed_settings(settings or []))
    whole = sz.read(file)
    fixed = {} if evidence is None else read_evidence(evidence, whole.n)
    model = whole.condition(fixed) if fixed else whole
    with _progress():
        if mar is None:
            estimate = sz.log_z(model, chosen)
        else:
            found = sz.marginals(model, chosen)
            estimate = found.estimate
            write_mar(found.probability, mar, fixed)
    if pr is not None:
        write_pr(estimate.log_z, pr)
    if as_json:
        print(json.dumps({"file": str(file), "n": model.n, **estimate.to_dict()}, indent=2, allow_nan=False))
    else:
        _print_estimate(file, model, estimate)
    if strict and not estimate.status.converged:
        raise typer.Exit(1)


@app.command()
def info(file: ModelFile, evidence: EvidenceFile = None, as_json: AsJson = False) -> None:
    """Tell what a model is and what an exact answer would take, without solving it."""
    about = sz.describe(sz.read(file, evidence))
    if as_json:
        print(json.dumps({"file": str(file), **about}, indent=2, allow_nan=False))
        return
    table = _two_columns()
    _add_row(table, "spins", f"{about['spins']}")
    _add_row(table, "edges", f"{about['edges']} (density {about['density']:.3g}, kept {about['storage']})")
    _add_row(table, "degree", f"mean {about['degree_mean']:.3g}, largest {about['degree_max']}")
    _add_row(
        table,
        "coupling |A|",
        f"mean {about['coupling_mean']:.4g}, largest {about['coupling_max']:.4g} (an edge counted once weighs J = 2 A)",
    )
    _add_row(table, "field", f"mean size {about['field_mean']:.4g}, largest {about['field_max']:.4g}")
    _add_row(table, "constant", f"{about['offset'] + about['trace']:.6g}")
    forest = ", a forest" if about["is_forest"] else ""
    _add_row(table, "components", f"{about['components']}, the largest of {about['largest_component']} spins{forest}")
    _add_row(table, "treewidth", _treewidth(about))
    _add_row(table, "exact answer", _exact_cost(about))
    _print(table)


@app.command()
def compare(
    file: ModelFile,
    methods: Annotated[str | None, typer.Option(help="Names with commas between; all if not given.")] = None,
    evidence: EvidenceFile = None,
    as_json: AsJson = False,
    plot: Annotated[Path | None, typer.Option(metavar="OUT", help="Draw it too: .png, .svg or .pdf.")] = None,
    strict: Strict = False,
) -> None:
    """Run several methods on one model and show them side by side."""
    _check_output(plot, [path for path in (file, evidence) if path is not None])
    if plot is not None and plot.suffix.lower().lstrip(".") not in FORMATS:
        raise FormatError(f"the name has the suffix {plot.suffix!r}; a picture is .png, .svg or .pdf", plot)
    names = None if methods is None else [name.strip() for name in methods.split(",")]
    model = sz.read(file, evidence)
    with _progress():
        comparison = sz.compare(model, names)
    if as_json:
        print(json.dumps([_row_as_dict(row) for row in comparison], indent=2, allow_nan=False))
    else:
        print(f"{file}: {model!r}")
        print_comparison(comparison)
    if plot is not None:
        write_whole(plot, comparison_picture(comparison, f"{file.name}: {model.n} spins", plot.suffix.lower()[1:]))
        _say(f"wrote {plot}")
    if strict and any(row.estimate is not None and not row.estimate.status.converged for row in comparison):
        raise typer.Exit(1)


@app.command()
def sample(
    file: ModelFile,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Where to write the states: .npy or .csv.", show_default=False)
    ],
    size: Annotated[int, typer.Option(help="How many states.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same states.")] = 0,
    method: Annotated[str, typer.Option(help="Which method; `spectralz methods` lists them.")] = "auto",
    evidence: EvidenceFile = None,
) -> None:
    """Draw exact independent states of a model, one a row, -1 and +1."""
    _check_output(out, [path for path in (file, evidence) if path is not None])
    if out.suffix.lower() not in (".npy", ".csv"):
        raise FormatError(f"the name has the suffix {out.suffix!r}; states are written to .npy or .csv", out)
    whole = sz.read(file)
    fixed = {} if evidence is None else read_evidence(evidence, whole.n)
    with _progress():
        free = sz.sample(whole.condition(fixed), size, method, seed)
    states = np.empty((len(free), whole.n), dtype=np.int8)  # observed spins are columns too, as in a .MAR answer
    states[:, [i for i in range(whole.n) if i not in fixed]] = free
    states[:, list(fixed)] = list(fixed.values())
    buffer = io.BytesIO()
    if out.suffix.lower() == ".npy":
        np.save(buffer, states)
    else:
        np.savetxt(buffer, states, fmt="%d", delimiter=",")
    write_whole(out, buffer.getvalue())
    _say(f"wrote {out}: {len(states)} states of {whole.n} spins")


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A model: .uai or .npz.", show_default=False)],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Where to write it: .uai or .npz.", show_default=False)],
    evidence: EvidenceFile = None,
) -> None:
    """Write a model in another format."""
    _check_output(target, [path for path in (source, evidence) if path is not None])
    model = sz.read(source, evidence)
    sz.write(model, target)
    _say(f"wrote {target}: {model!r}")


@app.command()
def paper(
    figure: Annotated[str, typer.Argument(metavar="FIGURE", help="fig2a ... fig4, or all.", show_default=False)],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for rows, pictures and report.")] = Path("paper"),
    quick: Annotated[bool, typer.Option("--quick", help="Few models and values: minutes instead of hours.")] = False,
    uai: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder with the UAI 2014 grids, for fig3f.")] = None,
    edge_convention: Annotated[
        str, typer.Option(help="text: couplings as the paper prints them; code: half of that, as its code has them.")
    ] = "text",
    workers: Workers = None,
    dask: DaskAddress = None,
) -> None:
    """Regenerate a figure of the paper, or all, and write the report; run it again to go on after a stop."""
    from spectralz.paper import FIGURES, fig3f_uai
    from spectralz.paper.report import write_report
    from spectralz.paper.runner import run

    known = dict(FIGURES) if uai is None else {**FIGURES, "fig3f": fig3f_uai.with_files(uai)}
    if figure != "all" and figure not in known:
        raise OptionError(f"no figure is called {figure!r}; known are {', '.join(known)}, and all")
    for name in known if figure == "all" else [figure]:
        setting = known[name].quick if quick else known[name].full
        if not (setting.files or setting.instances):  # those weigh an edge once already
            setting = replace(setting, edge_convention=edge_convention)
        with _resumable(), _progress():
            rows = run(setting, out / name, workers=workers, dask=dask)
        _say_written(rows)
    print(write_report(out))


@app.command()
def sweep(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="What to run, a .toml file.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for rows and report; the sweep's name.")
    ] = None,
    workers: Workers = None,
    dask: DaskAddress = None,
) -> None:
    """Run any methods on any models, resumably, and write the report."""
    from spectralz.paper.report import write_report
    from spectralz.paper.runner import run
    from spectralz.paper.sweep import read_config

    wanted = read_config(config)
    folder = Path(wanted.name) if out is None else out
    with _resumable(), _progress():
        rows = run(wanted, folder, workers=workers, dask=dask)
    _say_written(rows)
    print(write_report(folder))


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What paper or sweep has written.", show_default=False)],
) -> None:
    """Make one self-contained HTML page of everything in a folder, with pictures and tables beside it."""
    from spectralz.paper.report import write_report

    print(write_report(folder))


@app.command("methods")
def list_methods(as_json: AsJson = False) -> None:
    """List the methods with their options."""
    rows = [
        {"method": name, "what": _first_line(method), "options": sz.result.plain(vars(method()))}
        for name, method in sz.METHODS.items()
    ]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    table = _table("method", "what it is", "options and their defaults")
    for row in rows:
        _add_row(table, row["method"], row["what"], "\n".join(f"{k} = {v}" for k, v in row["options"].items()))
    _print(table)


def _first_line(documented: Any) -> str:
    """Return the first line of a docstring without its markup."""
    return re.sub(r":\w+:`([^`]*)`|``", r"\1", (inspect.getdoc(documented) or "").split("\n")[0])


def _generate_command(generator: Callable[..., sz.Ising]) -> Callable[..., None]:
    """Make a command whose options are the generator's parameters."""

    def command(out: Path, **parameters: Any) -> None:
        _check_output(out, [])
        model = generator(**parameters)
        sz.write(model, out)
        _say(f"wrote {out}: {model!r}")

    signature = inspect.signature(generator, eval_str=True)
    out = inspect.Parameter(
        "out",
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        annotation=Annotated[
            Path, typer.Argument(metavar="OUT", help="Where to write it: .uai or .npz.", show_default=False)
        ],
    )
    options = [
        parameter.replace(
            kind=inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[parameter.annotation, typer.Option()]
        )
        for parameter in signature.parameters.values()
    ]
    command.__signature__ = inspect.Signature([out, *options])  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in [out, *options]}
    command.__doc__ = _first_line(generator)
    return command


def _parsed_settings(settings: list[str]) -> dict[str, Any]:
    """Turn ``key=value`` into options: numbers, lists of them, true, false and none are read as such, else text."""
    options: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key.strip():
            raise OptionError(f"--set {setting!r} has no value; write --set key=value")
        if key.strip() in options:
            raise OptionError(f"--set {key.strip()} was given twice; give it once")
        options[key.strip()] = _value(text.strip())
    return options


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, int | float | tuple | list) else text


def _check_output(path: Path | None, inputs: list[Path]) -> None:
    """Refuse, before any work is done, an output that cannot be written or that would destroy an input."""
    if path is None:
        return
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise FormatError("this is also the input, which is never overwritten; give another name", path)
    if path.is_dir():
        raise FormatError("this is a folder; give the name of a file", path)
    if not path.parent.is_dir():
        raise FormatError(f"the folder {path.parent} does not exist; make it first", path)


def _console(stderr: bool = False) -> Console:
    from rich.console import Console

    console = Console(stderr=stderr, soft_wrap=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console


def _add_row(table: Table, *cells: str) -> None:
    """Add a row of plain text: brackets in names and messages are not markup."""
    from rich.text import Text

    table.add_row(*(Text(cell) for cell in cells))


def _print(table: Table) -> None:
    """Print a table; into a file or a pipe without the blanks that fill a screen's lines."""
    console = _console()
    if console.is_terminal:
        console.print(table, highlight=False)
        return
    with console.capture() as captured:
        console.print(table, highlight=False)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _say(message: str) -> None:
    _console(stderr=True).print(message, highlight=False, markup=False)


def _say_written(path: Path) -> None:
    """Say where the rows are, and how many of them have no answer."""
    from spectralz.paper.rows import read_rows

    rows = read_rows(path)
    failures = sum(bool(row.failure) for row in rows)
    rest = f"; {failures} of {len(rows)} runs have no answer, the column failure says why" if failures else ""
    _say(f"wrote {path}{rest}")


@contextmanager
def _resumable() -> Iterator[None]:
    """Turn an interrupt into the sentence that the runner has for it."""
    try:
        yield
    except KeyboardInterrupt as stopped:
        _say(str(stopped))
        raise typer.Exit(130) from None


@contextmanager
def _progress() -> Iterator[None]:
    """Show a progress bar on stderr, if that is a terminal, while the block runs."""
    console = _console(stderr=True)
    if not console.is_terminal:
        yield
        return
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("preparing", total=None)
        with listening(lambda name, fraction: bar.update(task, description=name, total=1.0, completed=fraction)):
            yield


def _table(*headings: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading)
    return table


def _two_columns() -> Table:
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    return table


def _print_estimate(file: Path, model: sz.Ising, estimate: sz.Estimate) -> None:
    table = _two_columns()
    _add_row(table, "model", f"{file}: {model!r}")
    error = f" ± {estimate.std_error:.2g} (standard error)" if estimate.std_error is not None else ""
    _add_row(table, "log Z", f"{estimate.log_z:.12g}{error}")
    _add_row(table, "kind", str(estimate.kind))
    _add_row(table, "certified", _certified(estimate))
    _add_row(table, "status", str(estimate.status))
    _add_row(table, "method", repr(estimate.method))
    _add_row(table, "time", f"{estimate.seconds:.3g} s")
    _print(table)


def _certified(estimate: sz.Estimate) -> str:
    low, high = estimate.lower, estimate.upper
    if low is None and high is None:
        return "no proven bounds"
    if low is None:
        return f"log Z <= {high:.12g}"
    if high is None:
        return f"log Z >= {low:.12g}"
    return f"{low:.12g} <= log Z <= {high:.12g} (width {high - low:.2g})"


def print_comparison(comparison: sz.Comparison) -> None:
    """Print a comparison as a table, with errors where one of the methods is exact."""
    reference = comparison.reference
    table = _table("method", "log Z", "error", "kind", "lower", "upper", "seconds", "status")
    for row in comparison:
        if row.estimate is None:
            _add_row(table, row.method.name, "-", "-", "-", "-", "-", "-", f"refused: {row.error}")
            continue
        estimate = row.estimate
        error = "-" if reference is None else f"{estimate.log_z - reference.log_z:.3g}"
        bounds = ["-" if bound is None else f"{bound:.8g}" for bound in (estimate.lower, estimate.upper)]
        cells = [row.method.name, f"{estimate.log_z:.10g}", error, str(estimate.kind), *bounds]
        _add_row(table, *cells, f"{estimate.seconds:.3g}", str(estimate.status))
    _print(table)


def _row_as_dict(row: sz.result.ComparisonRow) -> dict[str, Any]:
    if row.estimate is None:
        return {"method": row.method.name, "error": str(row.error)}
    return row.estimate.to_dict()


def _treewidth(about: Mapping[str, Any]) -> str:
    low, high = about["treewidth_lower"], about["treewidth_upper"]
    if high is None:
        return f"{low} or more"
    return f"{low}" if low == high else f"between {low} and {high}"


def _exact_cost(about: Mapping[str, Any]) -> str:
    if about["exact_memory"] is None:
        return "out of reach: the widest table would not fit into any memory"
    seconds = about["exact_terms"] * SECONDS_PER_TERM
    time = (
        "under a second"
        if seconds < 1
        else f"about {seconds:.2g} s"
        if seconds < 1e4
        else f"about {seconds / 3600:.2g} h"
    )
    order = f" by {about['exact_order']} order" if about["exact_order"] else ""
    return f"{bytes_in_words(about['exact_memory'])} of tables{order}, {about['exact_terms']:.3g} terms, {time}"


for _name, _generator in sz.generators.GENERATORS.items():
    generate_app.command(_name)(_generate_command(_generator))
