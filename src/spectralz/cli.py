"""The command line: thin commands over the verbs. Results go to stdout, messages and progress to stderr.

Exit codes: 0 done, 1 not converged under ``--strict``, 2 bad input, 130 interrupted, with the best answer so far
printed and written where a method had one.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import os
import re
import sys
import warnings
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from typer.core import TyperGroup

import spectralz as sz
from spectralz._support import interrupts as start
from spectralz._support.options import bytes_in_words
from spectralz._support.progress import listening
from spectralz.errors import FormatError, InaccurateWarning, OptionError, SpectralzError, is_interrupt
from spectralz.io import read_evidence, write_mar, write_pr
from spectralz.io.files import write_whole
from spectralz.show.plots import FORMATS, bracket_picture, comparison_picture
from spectralz.show.text import bracket_line, with_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import Console
    from rich.table import Table


class _Commands(TyperGroup):
    """The commands; an interrupt of any of them is a line and exit code 130."""

    def invoke(self, ctx: Any) -> Any:
        try:
            start.raise_on_interrupt()
            return super().invoke(ctx)
        except (
            KeyboardInterrupt,
            SystemError,
        ) as stopped:  # here, since releases of typer differ in what they make of it
            if not is_interrupt(stopped):
                raise
            _say(str(stopped) if isinstance(stopped, KeyboardInterrupt) and str(stopped) else "interrupted")
            raise typer.Exit(start.INTERRUPTED) from None
        finally:
            start.end_on_interrupt()


app = typer.Typer(
    cls=_Commands,
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
VERDICT_STYLES = {
    sz.Verdict.CHOSEN: "bold green",
    sz.Verdict.DISAGREES: "yellow",
    sz.Verdict.NOT_RUN: "dim",
}

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
        _replace_unprintable()
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


def _replace_unprintable() -> None:
    """Print a question mark for what the encoding of the output does not have, rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


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
    budget: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time that auto may take; the same as --set budget=SECONDS.")
    ] = None,
    exclude: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Methods that auto leaves out, with commas between.")
    ] = None,
    as_json: AsJson = False,
    pr: Annotated[Path | None, typer.Option(metavar="OUT", help="Write log10 Z as a UAI .PR answer.")] = None,
    mar: Annotated[Path | None, typer.Option(metavar="OUT", help="Write marginals as a UAI .MAR answer.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="OUT", help="Draw the answer: .png, .svg or .pdf.")] = None,
    strict: Strict = False,
) -> None:
    """Find log Z of a model, with bounds, and its marginals if --mar asks for them.

    Where nothing is exact, auto tries several methods and shows what each said.
    """
    _check_outputs({"--pr": pr, "--mar": mar, "--plot": plot}, [path for path in (file, evidence) if path is not None])
    _check_picture(plot)
    chosen = sz.inference.as_method(method, _options(settings or [], budget, exclude))
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
    _warn_of_disagreement(estimate)
    if plot is not None:
        _write_picture(plot, bracket_picture(estimate, f"{file.name}: {model.n} spins", _format_of(plot)))
    if estimate.interrupted:
        _say("interrupted: this is the best answer so far")
        raise typer.Exit(start.INTERRUPTED)
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
    _check_picture(plot)
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
        _write_picture(plot, comparison_picture(comparison, f"{file.name}: {model.n} spins", _format_of(plot)))
    if strict and any(row.estimate is not None and not row.estimate.status.converged for row in comparison):
        raise typer.Exit(1)


@app.command()
def bounds(
    file: ModelFile,
    evidence: EvidenceFile = None,
    budget: Annotated[float, typer.Option(help="Seconds to spend, about.")] = 10.0,
    exclude: Annotated[str | None, typer.Option(help="Bounders to leave out, with commas between.")] = None,
    as_json: AsJson = False,
) -> None:
    """Prove log Z from both sides by several methods; Ctrl-C keeps what has been found."""
    names = () if exclude is None else [name.strip() for name in exclude.split(",")]
    model = sz.read(file, evidence)
    with _progress():
        found = sz.bounds(model, budget, names)
    if as_json:
        print(json.dumps({"file": str(file), "n": model.n, **found.to_dict()}, indent=2, allow_nan=False))
    else:
        print(f"{file}: {model!r}")
        _print_bounds(found)
    if found.interrupted:
        _say("interrupted; the bounds hold, but more time may tighten them")
        raise typer.Exit(130)


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
    """Draw states of a model, one a row, -1 and +1.

    By exact, quadrature and low_rank they are independent and distributed exactly; by others, approximately.
    """
    _check_output(out, [path for path in (file, evidence) if path is not None])
    if out.suffix.lower() not in (".npy", ".csv"):
        raise FormatError(f"the name has the suffix {out.suffix!r}; states are written to .npy or .csv", out)
    whole = sz.read(file)
    fixed = {} if evidence is None else read_evidence(evidence, whole.n)
    with _progress(), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", InaccurateWarning)
        free = sz.sample(whole.condition(fixed), size, method, seed)
    for each in warned:
        _warn(str(each.message))
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
    from spectralz.report import write_report
    from spectralz.sweeps import run

    known = dict(FIGURES) if uai is None else {**FIGURES, "fig3f": fig3f_uai.with_files(uai)}
    if figure != "all" and figure not in known:
        raise OptionError(f"no figure is called {figure!r}; known are {', '.join(known)}, and all")
    for name in known if figure == "all" else [figure]:
        setting = known[name].quick if quick else known[name].full
        if not (setting.files or setting.instances):  # those weigh an edge once already
            setting = replace(setting, edge_convention=edge_convention)
        with _progress():
            rows = run(setting, out / name, workers=workers, dask=dask)
        _say_written(rows)
    print(write_report(out, FIGURES))


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
    from spectralz.paper import FIGURES
    from spectralz.report import write_report
    from spectralz.sweeps import read_config, run

    wanted = read_config(config)
    folder = Path(wanted.name) if out is None else out
    with _progress():
        rows = run(wanted, folder, workers=workers, dask=dask)
    _say_written(rows)
    print(write_report(folder, FIGURES))


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What paper or sweep has written.", show_default=False)],
) -> None:
    """Make one self-contained HTML page of everything in a folder, with pictures and tables beside it."""
    from spectralz.paper import FIGURES
    from spectralz.report import write_report

    print(write_report(folder, FIGURES))


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
            missing = "value" if key.strip() else "key"
            raise OptionError(f"--set {setting!r} has no {missing}; write --set key=value")
        if key.strip() in options:
            raise OptionError(f"--set {key.strip()} was given twice; give it once")
        options[key.strip()] = _value(text.strip())
    return options


def _options(settings: list[str], budget: float | None, exclude: str | None) -> dict[str, Any]:
    """Return the options that ``--set`` and its shortcuts stand for together."""
    options = _parsed_settings(settings)
    shortcuts = {"budget": budget, "exclude": None if exclude is None else _names(exclude)}
    for name, value in shortcuts.items():
        if value is None:
            continue
        if name in options:
            raise OptionError(f"--{name} and --set {name} were both given; give one of them")
        options[name] = value
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


def _check_outputs(outputs: Mapping[str, Path | None], inputs: list[Path]) -> None:
    """Check each output, and that no two are the same file."""
    flags: dict[Path, str] = {}
    for flag, path in outputs.items():
        _check_output(path, inputs)
        if path is None:
            continue
        if path.resolve() in flags:
            raise FormatError(f"{flags[path.resolve()]} and {flag} name the same file; give each its own", path)
        flags[path.resolve()] = flag


def _check_picture(path: Path | None) -> None:
    if path is not None and _format_of(path) not in FORMATS:
        raise FormatError(f"the name has the suffix {path.suffix!r}; a picture is .png, .svg or .pdf", path)


def _format_of(path: Path) -> str:
    return path.suffix.lower().lstrip(".")


def _write_picture(path: Path, picture: bytes) -> None:
    write_whole(path, picture)
    _say(f"wrote {path}")


def _console(stderr: bool = False) -> Console:
    from rich.console import Console

    console = Console(stderr=stderr, soft_wrap=stderr)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console


def _add_row(table: Table, *cells: str, style: str | None = None) -> None:
    """Add a row of plain text: brackets in names and messages are not markup."""
    from rich.text import Text

    table.add_row(*(Text(cell) for cell in cells), style=style)


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
    from spectralz.sweeps import read_rows

    rows = read_rows(path)
    failures = sum(bool(row.failure) for row in rows)
    rest = f"; {failures} of {len(rows)} runs have no answer, the column failure says why" if failures else ""
    _say(f"wrote {path}{rest}")


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
    console = _console()
    table = _two_columns()
    _add_row(table, "model", f"{file}: {model!r}")
    error = " (standard error)" if estimate.std_error is not None else ""
    _add_row(table, "log Z", with_error(estimate.log_z, estimate.std_error, _plus_minus(console)) + error)
    _add_row(table, "kind", str(estimate.kind))
    _add_row(table, "certified", _certified(estimate))
    _add_row(table, "status", str(estimate.status))
    _add_row(table, "method", repr(estimate.method))
    _add_row(table, "time", f"{estimate.seconds:.3g} s")
    _print(table)
    if estimate.tried:
        _print(_tried_table(estimate.tried))
    line = bracket_line(
        estimate.log_z,
        estimate.lower,
        estimate.upper,
        estimate.std_error,
        width=console.width,
        ascii_only=not _has_unicode(console),
    )
    if line:
        print(f"\n{line}")


def _tried_table(tried: Sequence[sz.Trial]) -> Table:
    table = _table("method", "log Z", _plus_minus(_console()), "seconds", "verdict", "why")
    for trial in tried:
        cells = [trial.method, *_value_and_error(trial), f"{trial.seconds:.3g}", str(trial.verdict), trial.why]
        _add_row(table, *cells, style=VERDICT_STYLES.get(trial.verdict))
    return table


def _value_and_error(trial: sz.Trial) -> tuple[str, str]:
    """Return what a method that was tried found: its bounds if it was asked for them, else its log Z and error."""
    bounds = ((">=", trial.lower), ("<=", trial.upper))
    shown = ", ".join(f"{sign} {bound:.8g}" for sign, bound in bounds if bound is not None)
    if trial.log_z is None or trial.verdict is sz.Verdict.BOUND:
        return shown or "-", "-"
    if trial.std_error is None:
        return f"{trial.log_z:.8g}", "-"
    value, _, error = with_error(trial.log_z, trial.std_error).partition(" ± ")
    return value, error


def _warn_of_disagreement(estimate: sz.Estimate) -> None:
    """Say so where methods that should agree do not, or none of several is to be trusted."""
    others = [trial.method for trial in estimate.disagreeing]
    if others:
        _warn(f"{', '.join(others)} {'disagrees' if len(others) == 1 else 'disagree'} with this answer")
    elif estimate.tried and not estimate.interrupted and not estimate.trusted:
        _warn("this answer is not to be trusted; a larger --budget may help")


def _warn(sentence: str) -> None:
    _console(stderr=True).print(f"warning: {sentence}", style="yellow", markup=False, highlight=False)


def _has_unicode(console: Console) -> bool:
    return console.encoding.lower().startswith("utf")


def _plus_minus(console: Console) -> str:
    return "±" if _has_unicode(console) else "+-"


def _certified(estimate: sz.Estimate) -> str:
    low, high = estimate.lower, estimate.upper
    if low is None and high is None:
        return "no proven bounds"
    if low is None:
        return f"log Z <= {high:.12g}"
    if high is None:
        return f"log Z >= {low:.12g}"
    return f"{low:.12g} <= log Z <= {high:.12g} (width {high - low:.3g})"


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


def _print_bounds(found: sz.Bounds) -> None:
    table = _table("method", "lower", "upper", "seconds", "status")
    for row in found.rows:
        sides = ["-" if bound is None else f"{bound:.10g}" for bound in (row.lower, row.upper)]
        _add_row(table, row.method, *sides, f"{row.seconds:.3g}", row.status)
    _print(table)
    print(
        f"{found.lower:.12g} <= log Z <= {found.upper:.12g} "
        f"(width {found.width:.3g}; {found.lower_method} and {found.upper_method})"
    )


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
