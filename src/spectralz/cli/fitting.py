"""The command that learns a model from data: ``fit``."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

import spectralz as sz
from spectralz._support.interrupts import exit_code
from spectralz.cli import options as opts
from spectralz.cli.console import as_text, print_json, print_table, progress, say, warn
from spectralz.cli.files import check_outputs, write_all, write_picture
from spectralz.cli.helping import examples
from spectralz.errors import InaccurateWarning, OptionError
from spectralz.io import check_suffix
from spectralz.io.csv_table import read_table
from spectralz.io.files import STANDARD, finite_number, whole_number
from spectralz.model import FloatArray
from spectralz.show import fits, maps

CHOSEN = ("ebic", "cv")


@examples(
    "spectralz fit data.csv --out model.npz --plot fit.png      # all pairs; a picture of how well it fits",
    "spectralz fit data.csv --penalty l2=cv --network net.png   # the couplings as a network",
    "spectralz fit data.csv --graph chosen --tests              # the graph from the data; z and p of each parameter",
    "spectralz fit data.csv --penalty l2=0.01 --out model.json",
    "spectralz fit data.csv --penalty l1=ebic --json",
    "spectralz fit data.csv --graph pairs.csv -m pseudo         # pairs.csv: two names per line",
)
def fit(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="A table, one row per line, of 0 and 1 or -1 and +1; cells may be missing (empty, NA). .csv with or "
            "without header, .npy; - reads standard input.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="OUT", help="Write the fitted model, in any format.")
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(
            "--graph",
            metavar="FILE|chosen",
            help="Which pairs are coupled: a file with two names (or numbers, from 0) per line, or 'chosen'; all if "
            "not given.",
        ),
    ] = None,
    select: Annotated[
        str, typer.Option("--select", metavar="NAME", help="How --graph chosen chooses: ebic or cv.")
    ] = "ebic",
    method: Annotated[
        str, typer.Option("--method", "-m", metavar="NAME", help="auto, exact, pseudo or sampled.")
    ] = "auto",
    penalty: Annotated[
        str | None,
        typer.Option(
            "--penalty",
            metavar="NAME=STRENGTH",
            help="On the couplings: l2=0.01, l1=0.02; or l2=cv, l1=cv, l1=ebic to let the data choose.",
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option("--weights", metavar="NAME", help="The column (its name, or number from 0) with counts of rows."),
    ] = None,
    header: opts.Header = None,
    seed: opts.Seed = 0,
    budget: opts.Budget = None,
    threads: opts.Threads = None,
    tests: Annotated[
        bool, typer.Option("--tests", help="Show z and p of every parameter, and how well the model fits.")
    ] = False,
    as_json: opts.AsJson = False,
    plot: opts.Picture = None,
    network: Annotated[
        Path | None, typer.Option("--network", metavar="OUT", help="Draw the couplings as a network: .png, .svg, .pdf.")
    ] = None,
    strict: opts.Strict = False,
) -> None:
    """Fit fields and couplings of a model to data, by maximum likelihood.

    The model has spins -1 and +1; in data of 0 and 1, 1 becomes +1. A header gives the names of the spins.
    """
    edges_file = None if graph in (None, "chosen") else Path(str(graph))
    check_outputs({"--out": out, "--plot": plot, "--network": network}, [file, edges_file])
    if out is not None:
        check_suffix(out)
    kind, strength = _penalty(penalty)
    X, names = read_table(file, header=header)
    X, names, counts = _without_weights(X, names, weights)
    if names == [str(k) for k in range(X.shape[1])]:
        names = None
    pairs: Any = graph if edges_file is None else _pairs(edges_file, names)
    with (
        opts.in_threads(threads),
        progress(budget),
        warnings.catch_warnings(action="ignore", category=InaccurateWarning),
    ):
        fitted = sz.fit(
            X,
            graph=pairs,
            method=method,
            penalty=kind,
            strength=strength,
            weights=counts,
            names=names,
            select=select,
            budget=budget,
            seed=seed,
        )
    try:
        _print(file, fitted, tests, as_json)
    finally:
        name = "standard input" if str(file) == STANDARD else as_text(file.name)
        draw = partial(fits.picture, fitted, f"{name}: {fitted!r}")
        pictures = ((plot, draw), (network, partial(maps.network_picture, fitted, name)))
        write_all(
            (out, partial(_write_model, fitted)), *((path, partial(write_picture, drawn)) for path, drawn in pictures)
        )
    if not fitted.status.converged:
        warn(f"this fit is not to be trusted: {fitted.status}")
    if fitted.interrupted:
        raise typer.Exit(exit_code())
    if strict and not fitted.status.converged:
        raise typer.Exit(1)


def _print(file: Path, fitted: sz.Fit, tests: bool, as_json: bool) -> None:
    if as_json:
        more = {"wald": fitted.wald().to_dict(), "goodness": fitted.goodness().to_dict()} if tests else {}
        print_json({"file": str(file), **fitted.to_dict(), **more})
        return
    print_table(fits.table(fitted))
    if tests:
        if fitted.field_error is not None:
            print_table(fits.wald_table(fitted.wald()))
        print_table(fits.goodness_table(fitted.goodness()))


def _write_model(fitted: sz.Fit, path: Path) -> None:
    sz.write(fitted.model, path)
    say(f"wrote {as_text(path)}: {fitted.model!r}")


def _penalty(text: str | None) -> tuple[str | None, float | str | None]:
    """Return the penalty and its strength, from text such as ``l2=0.01``."""
    if text is None:
        return None, None
    kind, equals, strength = (part.strip() for part in text.partition("="))
    number = finite_number(strength)
    if kind not in ("l1", "l2") or (equals and number is None and strength not in CHOSEN):
        raise OptionError(f"--penalty is {text!r}; write l2=0.01, l1=0.02, l2=cv, l1=cv or l1=ebic")
    return kind, (strength if number is None else number) if equals else None


def _without_weights(
    X: FloatArray, names: list[str] | None, column: str | None
) -> tuple[FloatArray, list[str] | None, FloatArray | None]:
    """Return the data without the column of weights, and the weights."""
    if column is None:
        return X, names, None
    place = names.index(column) if names is not None and column in names else whole_number(column)
    if place is None or not 0 <= place < X.shape[1]:
        known = f"the header has {', '.join(names)}" if names else f"columns run from 0 to {X.shape[1] - 1}"
        raise OptionError(f"--weights names the column {column!r}; {known}")
    kept = [k for k in range(X.shape[1]) if k != place]
    return X[:, kept], None if names is None else [names[k] for k in kept], X[:, place]


def _pairs(path: Path, names: list[str] | None) -> list[tuple[Hashable, Hashable]]:
    """Read pairs of columns, by names or numbers, one pair per line; a third cell, such as a weight, is ignored."""
    from spectralz.io.files import Lines, opened

    lines = Lines.of(opened(path))
    pairs: list[tuple[Hashable, Hashable]] = []
    for k, text in enumerate(lines.texts):
        cells = [cell.strip() for cell in text.replace(";", ",").replace("\t", ",").split(",")]
        if len(cells) < 2:
            cells = text.split()
        if len(cells) not in (2, 3):
            lines.fail(k, f"{text.strip()!r} is not a pair; a line has two names of columns, such as a,b")
        if k == 0 and [cell.lower() for cell in cells[:2]] == ["source", "target"]:
            continue
        pairs.append((_column(cells[0], names), _column(cells[1], names)))
    return pairs


def _column(cell: str, names: list[str] | None) -> Hashable:
    number = whole_number(cell)
    return cell if number is None or (names is not None and cell in names) else number
