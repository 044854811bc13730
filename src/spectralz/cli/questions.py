"""The commands that ask a model something else than log Z: `curve`, `temperature`, `map`, `count` and `predict`."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

import spectralz as sz
from spectralz._support.interrupts import exit_code
from spectralz.cli import options as opts
from spectralz.cli.console import as_text, print_about, print_json, print_table, progress, say, warn
from spectralz.cli.files import (
    check_outputs,
    check_states,
    load,
    load_rows,
    refuse_both_from_standard_input,
    values_in,
    write_all,
    write_picture,
    write_states,
)
from spectralz.cli.helping import examples
from spectralz.errors import InaccurateWarning, OptionError, printable
from spectralz.io import read_weights, write_map
from spectralz.io.files import STANDARD
from spectralz.show import thermodynamics as show
from spectralz.show.tables import Table

MOST_TEMPERATURES = 10_000
# More spins than this are not printed one by one.
MOST_SPINS_SHOWN = 40
# Without --out, as many missing cells are shown.
MOST_CELLS_SHOWN = 20


@examples(
    "spectralz curve grid.uai --betas 0.1:3:30",
    "spectralz curve glass.npz --betas 0.5,1,2 --plot glass.png      # three temperatures, and a picture",
    "spectralz curve glass.npz --betas 0:2:21 -m annealing -w 1e7 --json   # the same curves in every run",
)
def curve(
    file: opts.ModelFile,
    betas: Annotated[
        str,
        typer.Option(
            "--betas",
            metavar="LIST",
            help="Inverse temperatures: FIRST:LAST:COUNT, or numbers separated by commas.",
        ),
    ] = "0.1:2:20",
    method: Annotated[
        str,
        typer.Option("--method", "-m", metavar="NAME", help="exact, quadrature, mps, annealing, or auto."),
    ] = "auto",
    budget: opts.Budget = None,
    work: opts.Work = None,
    seed: opts.Seed = 0,
    threads: opts.Threads = None,
    exclude: opts.Exclude = None,
    evidence: opts.EvidenceFile = None,
    given: opts.Given = None,
    beta: opts.Beta = 1.0,
    format: opts.Format = None,
    as_json: opts.AsJson = False,
    plot: opts.Picture = None,
    strict: opts.Strict = False,
) -> None:
    """Compute log Z, energy, entropy, heat capacity and magnetization at many temperatures, with errors."""
    check_outputs({"--plot": plot}, [file, evidence])
    at = temperatures_in(betas)
    problem = load(file, evidence, given, beta, format)
    with progress(budget), warnings.catch_warnings(action="ignore", category=InaccurateWarning):
        curves = sz.thermodynamics(
            problem.model,
            at,
            method,
            given=problem.given,
            budget=budget,
            work=work,
            seed=seed,
            threads=threads,
            exclude=() if exclude is None else opts.names_in(exclude),
        )
    try:
        print_about(problem, curves, as_json)
        if not curves.status.converged:
            warn(str(curves.status))
    finally:
        write_all((plot, partial(write_picture, partial(show.picture, curves))))
    if curves.interrupted:
        say("interrupted: these are the curves so far")
        raise typer.Exit(exit_code())
    if strict and not curves.status.converged:
        raise typer.Exit(1)


def temperatures_in(text: str) -> list[float]:
    """Return the numbers that ``FIRST:LAST:COUNT``, or a comma-separated list, stands for.

    Examples
    --------
    >>> temperatures_in("0.5:1.5:3"), temperatures_in("1, 2")
    ([0.5, 1.0, 1.5], [1.0, 2.0])
    """
    wanted = "write FIRST:LAST:COUNT, such as 0.1:3:30, or numbers separated by commas"
    try:
        if ":" in text:
            first, last, count = text.split(":")
            if not 1 <= int(count) <= MOST_TEMPERATURES:
                raise OptionError(f"--betas asks for {count} temperatures; ask for 1 to {MOST_TEMPERATURES}")
            return [float(beta) for beta in np.linspace(float(first), float(last), int(count))]
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        if isinstance(error, OptionError):
            raise
        raise OptionError(f"--betas is {text!r}; {wanted}") from None


@examples(
    "spectralz sample glass.npz states.npy --beta 0.7",
    "spectralz temperature glass.npz states.npy                 # about 0.7",
    "spectralz temperature glass.npz states.npy -m pseudo --json",
)
def temperature(
    file: opts.ModelFile,
    data: Annotated[
        Path,
        typer.Argument(
            metavar="SAMPLES",
            help="States, one per line, of -1 and +1 or of 0 and 1: .csv with or without header, .npy; - reads "
            "standard input.",
            show_default=False,
        ),
    ],
    method: Annotated[
        str,
        typer.Option("--method", "-m", metavar="NAME", help="pseudo, a method of `curve`, or auto."),
    ] = "auto",
    header: opts.Header = None,
    budget: opts.Budget = None,
    work: opts.Work = None,
    seed: opts.Seed = 0,
    threads: opts.Threads = None,
    exclude: opts.Exclude = None,
    as_json: opts.AsJson = False,
    plot: opts.Picture = None,
    strict: opts.Strict = False,
) -> None:
    """Find the inverse temperature at which samples look drawn from a model, with its error.

    Samples of the model itself have beta = 1. A header names the spins, in any order.
    """
    check_outputs({"--plot": plot}, [file, data])
    refuse_both_from_standard_input(file, data)
    problem = load(file)
    X, _ = load_rows(data, problem.model, header)
    with progress(budget):
        found = sz.temperature(
            problem.model,
            X,
            method,
            values=values_in(X),
            budget=budget,
            work=work,
            seed=seed,
            threads=threads,
            exclude=() if exclude is None else opts.names_in(exclude),
        )
    try:
        print_about(problem, found, as_json)
    finally:
        write_all((plot, partial(write_picture, partial(show.temperature_picture, found, problem.source))))
    if found.interrupted:
        say("interrupted: this is the best answer so far")
        raise typer.Exit(exit_code())
    if strict and not found.trusted:
        raise typer.Exit(1)


@examples(
    "spectralz map grid.uai",
    "spectralz map grid.uai --map grid.MAP            # as a UAI answer",
    "spectralz map glass.npz --budget 2 --count 10 --states best.csv",
    "spectralz map names.csv -g a=+1 --json",
)
def map_command(
    file: opts.ModelFile,
    method: Annotated[str, typer.Option("--method", "-m", metavar="NAME", help="exact, search, or auto.")] = "auto",
    count: Annotated[
        int, typer.Option("--count", "-k", min=1, metavar="K", help="How many of the heaviest states to find.")
    ] = 1,
    budget: opts.Budget = None,
    work: opts.Work = None,
    seed: opts.Seed = 0,
    threads: opts.Threads = None,
    evidence: opts.EvidenceFile = None,
    given: opts.Given = None,
    beta: opts.Beta = 1.0,
    format: opts.Format = None,
    as_json: opts.AsJson = False,
    answer: Annotated[Path | None, typer.Option("--map", metavar="OUT", help="Write it as a UAI .MAP answer.")] = None,
    states: Annotated[
        Path | None, typer.Option("--states", metavar="OUT", help="Write the states: .npy or .csv, or .gz of either.")
    ] = None,
    strict: opts.Strict = False,
) -> None:
    """Find the heaviest state of a model, its ground state, and a bound on the weight of any state."""
    check_outputs({"--map": answer, "--states": states}, [file, evidence])
    if states is not None:
        check_states(states)
    problem = load(file, evidence, given, beta, format)
    with progress(budget):
        heaviest = sz.map_state(
            problem.model,
            method,
            count=count,
            given=problem.given,
            budget=budget,
            work=work,
            seed=seed,
            threads=threads,
        )
    try:
        print_about(problem, heaviest, as_json)
        if problem.model.n <= MOST_SPINS_SHOWN and not as_json:
            spins = (f"{problem.model.label(i)} {spin:+d}" for i, spin in enumerate(heaviest.state.tolist()))
            print("each            " + ", ".join(spins))
    finally:
        write_all(
            (answer, partial(write_map, heaviest.state)),
            (states, partial(write_states, heaviest.states, problem.model.names)),
        )
    if heaviest.interrupted:
        say("interrupted: this is the best state so far")
        raise typer.Exit(exit_code())
    if strict and not heaviest.proven:
        raise typer.Exit(1)


@examples(
    "spectralz count formula.cnf",
    "spectralz count formula.cnf --budget 60 --json",
    "spectralz count formula.cnf -g 3=1 -g 7=0     # of the states with these values",
    "spectralz count weighted.cnf --weighted       # the exact sum of the weights in the file",
    "spectralz count grid.uai -e grid.evid",
)
def count(
    file: opts.ModelFile,
    method: Annotated[
        str, typer.Option("--method", "-m", metavar="NAME", help="elimination, ganak, or auto.")
    ] = "auto",
    budget: opts.Budget = None,
    weighted: Annotated[
        bool, typer.Option("--weighted", help="Add up the weights that a .cnf file gives to literals, as a fraction.")
    ] = False,
    seed: opts.Seed = 0,
    threads: opts.Threads = None,
    evidence: opts.EvidenceFile = None,
    given: opts.Given = None,
    format: opts.Format = None,
    as_json: opts.AsJson = False,
    strict: opts.Strict = False,
) -> None:
    """Count the states of a model that satisfy all its constraints, as a whole number printed in full.

    If it cannot be had in time, the answer is an estimate, with powers of ten; --strict then exits with 1.
    """
    if weighted and str(file) == STANDARD:
        raise OptionError("--weighted reads the file once more; give the name of a file instead of -")
    problem = load(file, evidence, given, format=format)
    weights = read_weights(file) if weighted else None
    with progress(budget):
        found = sz.count(
            problem.model, method, budget=budget, given=problem.given, weights=weights, seed=seed, threads=threads
        )
    print_about(problem, found, as_json)
    if found.interrupted:
        say("interrupted: this is the best estimate so far")
        raise typer.Exit(exit_code())
    if strict and found.value is None:
        raise typer.Exit(1)


@examples(
    "spectralz fit answers.csv --out model.npz                          # a table with missing cells",
    "spectralz predict model.npz answers.csv --out probabilities.csv    # P(1) of every missing cell",
    "spectralz predict model.npz new.csv --json",
)
def predict(
    file: opts.ModelFile,
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="A table of 0 and 1 or -1 and +1; cells that are empty, NA or NaN are predicted.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="OUT", help="Write the table of probabilities: .csv or .npy."),
    ] = None,
    header: opts.Header = None,
    method: opts.MethodName = "auto",
    settings: opts.Settings = None,
    budget: opts.Budget = None,
    work: opts.Work = None,
    exclude: opts.Exclude = None,
    seed: opts.Seed = 0,
    threads: opts.Threads = None,
    as_json: opts.AsJson = False,
    strict: opts.Strict = False,
) -> None:
    """Predict the missing cells of a table: the probability of 1, or +1, given the rest of the row.

    A header names the columns, in any order; variables of the model without a column count as missing.
    """
    check_outputs({"--out": out}, [file, data])
    if out is not None:
        check_states(out)
    refuse_both_from_standard_input(file, data)
    chosen = opts.method_options(settings or [], budget, exclude, work)
    model = sz.read(file)
    X, columns = load_rows(data, model, header)
    with opts.in_threads(threads), progress(budget), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", InaccurateWarning)
        found = sz.predict(model, X, method, values=values_in(X), seed=seed, **chosen)
    probability = found.probability[:, columns]
    names = None if model.names is None else [model.names[k] for k in columns]
    if as_json:
        print_json({"file": str(file), "data": str(data), **found.to_dict()})
    else:
        print_table(_cells(found, columns))
    write_all((out, partial(write_states, probability, names)))
    if out is not None:
        say(f"wrote {as_text(out)}: {found!r}")
    for warning in warned:
        warn(str(warning.message))
    if found.interrupted:
        raise typer.Exit(exit_code())
    if strict and not found.trusted:
        raise typer.Exit(1)


def _cells(found: sz.Prediction, columns: list[int]) -> Table:
    """Return the first missing cells of the table's own columns, with their probabilities."""
    places = [(r, k) for r, k in np.argwhere(found.missing).tolist() if k in set(columns)]
    rows = []
    for r, k in places[:MOST_CELLS_SHOWN]:
        error = "" if found.std_error is None else f" ± {found.std_error[r, k]:.2g}"
        name = str(k) if found.names is None else printable(found.names[k])
        rows.append((str(r + 1), name, f"{found.probability[r, k]:.4f}{error}"))
    if len(places) > MOST_CELLS_SHOWN:
        rows.append(("...", f"{len(places) - MOST_CELLS_SHOWN} more", "--out writes all"))
    return Table(headings=("row", "variable", "probability"), rows=tuple(rows))
