"""The command that predicts missing cells: ``predict``."""

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
from spectralz.cli.console import as_text, print_json, print_table, progress, say, warn
from spectralz.cli.helping import examples
from spectralz.cli.loading import load_rows, refuse_both_from_standard_input, values_in
from spectralz.cli.outputs import check_outputs, check_states, write_all, write_states
from spectralz.errors import InaccurateWarning, printable
from spectralz.show.tables import Table

# Without --out, as many missing cells are shown.
MOST_SHOWN = 20


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
        print_table(_table(found, columns))
    write_all((out, partial(write_states, probability, names)))
    if out is not None:
        say(f"wrote {as_text(out)}: {found!r}")
    for warning in warned:
        warn(str(warning.message))
    if found.interrupted:
        raise typer.Exit(exit_code())
    if strict and not found.trusted:
        raise typer.Exit(1)


def _table(found: sz.Prediction, columns: list[int]) -> Table:
    """Return the first missing cells of the table's own columns, with their probabilities."""
    places = [(r, k) for r, k in np.argwhere(found.missing).tolist() if k in set(columns)]
    rows = []
    for r, k in places[:MOST_SHOWN]:
        error = "" if found.std_error is None else f" ± {found.std_error[r, k]:.2g}"
        name = str(k) if found.names is None else printable(found.names[k])
        rows.append((str(r + 1), name, f"{found.probability[r, k]:.4f}{error}"))
    if len(places) > MOST_SHOWN:
        rows.append(("...", f"{len(places) - MOST_SHOWN} more", "--out writes all"))
    return Table(headings=("row", "variable", "probability"), rows=tuple(rows))
