"""The commands that ask something of a model: ``solve``, ``compare``, ``bounds`` and ``sample``."""

from __future__ import annotations

import io
import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import spectralz as sz
from spectralz._support.interrupts import INTERRUPTED
from spectralz.cli.console import console, has_unicode, plus_minus, print_table, progress, say, warn
from spectralz.cli.options import AsJson, EvidenceFile, ModelFile, Strict, Threads, Work, in_threads, method_options
from spectralz.cli.outputs import check_output, check_outputs, check_picture, picture_format, write_picture
from spectralz.errors import FormatError, InaccurateWarning
from spectralz.io import read_evidence, write_mar, write_pr
from spectralz.io.files import write_whole
from spectralz.show import tables
from spectralz.show.plots import bracket_picture, comparison_picture
from spectralz.show.text import bracket_line

__all__ = ["bounds", "compare", "print_comparison", "sample", "solve"]


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
    work: Work = None,
    exclude: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Methods that auto leaves out, with commas between.")
    ] = None,
    threads: Threads = None,
    as_json: AsJson = False,
    pr: Annotated[Path | None, typer.Option(metavar="OUT", help="Write log10 Z as a UAI .PR answer.")] = None,
    mar: Annotated[Path | None, typer.Option(metavar="OUT", help="Write marginals as a UAI .MAR answer.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="OUT", help="Draw the answer: .png, .svg or .pdf.")] = None,
    strict: Strict = False,
) -> None:
    """Find log Z of a model, with bounds, and its marginals if --mar asks for them.

    Where nothing is exact, auto tries several methods and shows what each said.
    """
    check_outputs({"--pr": pr, "--mar": mar, "--plot": plot}, [file, evidence])
    check_picture(plot)
    chosen = sz.inference.as_method(method, method_options(settings or [], budget, exclude, work))
    whole = sz.read(file)
    fixed = {} if evidence is None else read_evidence(evidence, whole.n)
    model = whole.condition(fixed) if fixed else whole
    with in_threads(threads), progress():
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
        write_picture(plot, bracket_picture(estimate, f"{file.name}: {model.n} spins", picture_format(plot)))
    if estimate.interrupted:
        say("interrupted: this is the best answer so far")
        raise typer.Exit(INTERRUPTED)
    if strict and not estimate.status.converged:
        raise typer.Exit(1)


def _print_estimate(file: Path, model: sz.Ising, estimate: sz.Estimate) -> None:
    screen = console()
    own = tables.estimate(estimate, plus_minus(screen))
    print_table(replace(own, rows=(("model", f"{file}: {model!r}"), *own.rows)))
    if estimate.tried:
        print_table(tables.tried(estimate.tried, plus_minus(screen)))
    line = bracket_line(
        estimate.log_z,
        estimate.lower,
        estimate.upper,
        estimate.std_error,
        width=screen.width,
        ascii_only=not has_unicode(screen),
    )
    if line:
        print(f"\n{line}")


def _warn_of_disagreement(estimate: sz.Estimate) -> None:
    """Say so where methods that should agree do not, or none of several is to be trusted."""
    others = [trial.method for trial in estimate.disagreeing]
    if others:
        warn(f"{', '.join(others)} {'disagrees' if len(others) == 1 else 'disagree'} with this answer")
    elif estimate.tried and not estimate.interrupted and not estimate.trusted:
        warn("this answer is not to be trusted; a larger --budget or --work may help")


def compare(
    file: ModelFile,
    methods: Annotated[str | None, typer.Option(help="Names with commas between; all if not given.")] = None,
    evidence: EvidenceFile = None,
    threads: Threads = None,
    as_json: AsJson = False,
    plot: Annotated[Path | None, typer.Option(metavar="OUT", help="Draw it too: .png, .svg or .pdf.")] = None,
    strict: Strict = False,
) -> None:
    """Run several methods on one model and show them side by side."""
    check_output(plot, [file, evidence])
    check_picture(plot)
    names = None if methods is None else [name.strip() for name in methods.split(",")]
    model = sz.read(file, evidence)
    with in_threads(threads), progress():
        comparison = sz.compare(model, names)
    if as_json:
        print(json.dumps(comparison.to_dict()["rows"], indent=2, allow_nan=False))
    else:
        print(f"{file}: {model!r}")
        print_comparison(comparison)
    if plot is not None:
        write_picture(plot, comparison_picture(comparison, f"{file.name}: {model.n} spins", picture_format(plot)))
    if strict and any(row.estimate is not None and not row.estimate.status.converged for row in comparison):
        raise typer.Exit(1)


def print_comparison(comparison: sz.Comparison) -> None:
    """Print a comparison as a table, with errors where one of the methods is exact."""
    print_table(tables.comparison(comparison))


def bounds(
    file: ModelFile,
    evidence: EvidenceFile = None,
    budget: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Seconds to spend, about; ten if not given.")
    ] = None,
    work: Work = None,
    exclude: Annotated[str | None, typer.Option(help="Bounders to leave out, with commas between.")] = None,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Prove log Z from both sides by several methods; Ctrl-C keeps what has been found."""
    names = () if exclude is None else [name.strip() for name in exclude.split(",")]
    model = sz.read(file, evidence)
    with in_threads(threads), progress():
        found = sz.bounds(model, budget, names, work=work)
    if as_json:
        print(json.dumps({"file": str(file), "n": model.n, **found.to_dict()}, indent=2, allow_nan=False))
    else:
        print(f"{file}: {model!r}")
        _print_bounds(found)
    if found.interrupted:
        say("interrupted; the bounds hold, but more time may tighten them")
        raise typer.Exit(INTERRUPTED)


def _print_bounds(found: sz.Bounds) -> None:
    print_table(tables.bounds(found))
    print(
        f"{found.lower:.12g} <= log Z <= {found.upper:.12g} "
        f"(width {found.width:.3g}; {found.lower_method} and {found.upper_method})"
    )


def sample(
    file: ModelFile,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Where to write the states: .npy or .csv.", show_default=False)
    ],
    size: Annotated[int, typer.Option(help="How many states.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same states.")] = 0,
    method: Annotated[str, typer.Option(help="Which method; `spectralz methods` lists them.")] = "auto",
    budget: Annotated[float | None, typer.Option(metavar="SECONDS", help="Time that auto may take.")] = None,
    work: Work = None,
    threads: Threads = None,
    evidence: EvidenceFile = None,
) -> None:
    """Draw states of a model, one a row, -1 and +1.

    By exact, quadrature and low_rank they are independent and distributed exactly; by others, approximately.
    """
    check_output(out, [file, evidence])
    chosen = sz.inference.as_method(method, method_options([], budget, None, work))
    if out.suffix.lower() not in (".npy", ".csv"):
        raise FormatError(f"the name has the suffix {out.suffix!r}; states are written to .npy or .csv", out)
    whole = sz.read(file)
    fixed = {} if evidence is None else read_evidence(evidence, whole.n)
    with in_threads(threads), progress(), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", InaccurateWarning)
        free = sz.sample(whole.condition(fixed), size, chosen, seed)
    for each in warned:
        warn(str(each.message))
    states = np.empty((len(free), whole.n), dtype=np.int8)  # observed spins are columns too, as in a .MAR answer
    states[:, [i for i in range(whole.n) if i not in fixed]] = free
    states[:, list(fixed)] = list(fixed.values())
    buffer = io.BytesIO()
    if out.suffix.lower() == ".npy":
        np.save(buffer, states)
    else:
        np.savetxt(buffer, states, fmt="%d", delimiter=",")
    write_whole(out, buffer.getvalue())
    say(f"wrote {out}: {len(states)} states of {whole.n} spins")
