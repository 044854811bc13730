"""The commands that ask something of a model: ``solve``, ``compare``, ``bounds`` and ``sample``."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import spectralz as sz
from spectralz._support.interrupts import exit_code
from spectralz._support.options import check_choice, checked_level
from spectralz.cli import files
from spectralz.cli import options as opts
from spectralz.cli.console import (
    as_text,
    console,
    has_unicode,
    plus_minus,
    print_about,
    print_json,
    print_table,
    progress,
    say,
    warn,
)
from spectralz.cli.files import Problem, load, name_in_json
from spectralz.cli.helping import examples
from spectralz.errors import InaccurateWarning, LostRunsWarning, OptionError
from spectralz.io import write_mar, write_pr
from spectralz.show import tables
from spectralz.show.numbers import probable, rounded_down, rounded_up
from spectralz.show.plots import bracket_picture, comparison_picture
from spectralz.show.text import bracket_line, disagreement

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The options that `bounds` takes by --set.
OPTIONS_OF_BOUNDS = ("budget", "work", "exclude", "threads", "level", "seed")


@examples(
    "spectralz solve grid.uai",
    "spectralz solve glass.npz --budget 3 --plot glass.png         # less time, and a picture of the answer",
    "spectralz solve grid.uai -m wmbe -s ibound=4 -s max_iter=20   # one method, with its own options",
    "spectralz solve grid.uai -e grid.evid --pr grid.PR --mar grid.MAR",
    "spectralz solve names.csv -g a=+1 -g b=-1 --marginals         # the other spins, given two of them",
    "spectralz solve grid.uai --marginals --pairs                  # and the mean product of every edge",
    "spectralz solve glass.npz --work 1e8 --json                   # the same answer in every run",
    "spectralz solve grid.uai --beta 0.5 --html grid.html          # at twice the temperature; a page to show",
    "spectralz solve glass.npz --budget 3600 --checkpoint glass.json   # goes on from there if it is killed",
    "cat grid.uai | spectralz solve - --format uai",
)
def solve(
    ctx: typer.Context,
    file: opts.ModelFile,
    method: opts.MethodName = "auto",
    settings: opts.Settings = None,
    budget: opts.Budget = None,
    work: opts.Work = None,
    exclude: opts.Exclude = None,
    threads: opts.Threads = None,
    device: opts.Device = "auto",
    dask: opts.Dask = None,
    evidence: opts.EvidenceFile = None,
    given: opts.Given = None,
    beta: opts.Beta = 1.0,
    format: opts.Format = None,
    marginals: Annotated[
        bool, typer.Option("--marginals", help="Show the mean of every spin, and its probability of being +1.")
    ] = False,
    pairs: Annotated[
        bool, typer.Option("--pairs/--no-pairs", help="Show marginals, with the mean product of every coupled pair.")
    ] = False,
    as_json: opts.AsJson = False,
    pr: Annotated[Path | None, typer.Option(metavar="OUT", help="Write log10 Z as a UAI .PR answer.")] = None,
    mar: Annotated[Path | None, typer.Option(metavar="OUT", help="Write marginals as a UAI .MAR answer.")] = None,
    plot: opts.Picture = None,
    html: opts.Page = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep what has been done in FILE, at least once a minute. The same command goes on from it, with the "
            "budget of all runs together.",
        ),
    ] = None,
    strict: opts.Strict = False,
) -> None:
    """Find log Z of a model, with bounds, and its marginals on request.

    If no exact answer is possible, auto tries several methods and shows the answer of each. An answer is trusted if the
    method's own checks hold and nothing contradicts it; "checked by" names the methods of another kind that agreed.
    """
    marginals = marginals or pairs
    if checkpoint is not None and (marginals or mar is not None):
        raise OptionError("--checkpoint keeps log Z, not marginals; leave out --marginals, --pairs and --mar, or it")
    files.check_outputs({"--pr": pr, "--mar": mar, "--plot": plot, "--html": html}, [file, evidence])
    chosen = sz.inference.as_method(method, opts.method_options(settings or [], budget, exclude, work))
    problem = load(file, evidence, given, beta, format)
    means: sz.Marginals | None = None
    with (
        opts.in_place(threads, device),
        progress(opts.budget_of(chosen)),
        warnings.catch_warnings(action="ignore", category=InaccurateWarning),  # it is said below, once
        opts.on_dask(dask) as executor,
    ):
        warnings.simplefilter("ignore", LostRunsWarning)  # the status says it
        if marginals or mar is not None:
            means = sz.marginals(problem.model, chosen, given=problem.given, pairs=pairs, executor=executor)
            estimate = means.estimate
        else:
            estimate = sz.log_z(problem.model, chosen, given=problem.given, executor=executor, checkpoint=checkpoint)
    shown = means if marginals else None
    try:
        _print_answer(problem, estimate, shown, as_json)
    finally:  # the files are written even if printing fails, and vice versa
        writers = [
            (pr, partial(write_pr, estimate.log_z)),
            (plot, partial(files.write_picture, partial(bracket_picture, estimate, problem.title))),
            (html, partial(_write_estimate_page, ctx, problem, estimate, shown)),
        ]
        if means is not None:
            writers.insert(1, (mar, partial(write_mar, means.probability)))
        files.write_all(*writers)
    if estimate.interrupted:
        say("interrupted: this is the best answer so far")
        raise typer.Exit(exit_code())
    if strict and not estimate.status.converged:
        raise typer.Exit(1)


def _print_answer(problem: Problem, estimate: sz.Estimate, shown: sz.Marginals | None, as_json: bool) -> None:
    if as_json:
        means = {} if shown is None else {"marginals": _marginals_in_json(problem, shown)}
        if shown is not None and (shown.has_pairs or shown.terms):
            means["pairs" if shown.has_pairs else "terms"] = _products_in_json(problem, _products(shown))
        print_json({**problem.about(), **estimate.to_dict(), **means})
    else:
        _print_estimate(problem, estimate)
        if shown is not None:
            print_table(_marginals_table(problem, shown))
            if products := _products(shown):
                print_table(_products_table(problem, products))
    _warn_of_disagreement(estimate)


def _write_estimate_page(
    ctx: typer.Context, problem: Problem, estimate: sz.Estimate, shown: sz.Marginals | None, path: Path
) -> None:
    from spectralz.report import estimate_page

    command = files.command_as_typed(ctx)
    files.write_page(estimate_page(estimate, problem.title, problem.in_words, shown, command=command), path)


def _print_estimate(problem: Problem, estimate: sz.Estimate) -> None:
    screen = console()
    answer = tables.estimate(estimate, plus_minus(screen))
    print_table(replace(answer, rows=(("model", f"{problem.source}: {problem.in_words}"), *answer.rows)))
    if estimate.tried:
        print_table(tables.tried(estimate.tried, plus_minus(screen)))
    numbers = estimate.log_z, estimate.lower, estimate.upper, estimate.std_error
    line = bracket_line(*numbers, width=screen.width, ascii_only=not has_unicode(screen))
    if line:
        print(f"\n{line}")


def _marginals_in_json(problem: Problem, means: sz.Marginals) -> list[dict[str, Any]]:
    numbers = zip(means.mean.tolist(), means.probability.tolist(), _errors(means.mean, means.std_error), strict=True)
    return [
        {"name": name_in_json(problem.model, i), "mean": mean, "probability": plus, "std_error": error}
        for i, (mean, (_, plus), error) in enumerate(numbers)
    ]


def _errors(means: NDArray[np.float64], errors: NDArray[np.float64] | None) -> list[float | None]:
    return [None] * len(means) if errors is None else errors.tolist()


def _with_errors(table: tables.Table, errors: NDArray[np.float64] | None) -> tables.Table:
    """Return a table with the errors in a last column, if there are any."""
    if errors is None:
        return table
    rows = tuple((*row, f"{error:.2g}") for row, error in zip(table.rows, errors.tolist(), strict=True))
    return replace(table, headings=(*table.headings, "error"), rows=rows)


def _marginals_table(problem: Problem, means: sz.Marginals) -> tables.Table:
    rows = (
        (problem.model.label(i), f"{entry['mean']:+.6f}", f"{entry['probability']:.6g}")
        for i, entry in enumerate(_marginals_in_json(problem, means))
    )
    return _with_errors(tables.Table(headings=("spin", "mean", "P(+1)"), rows=tuple(rows)), means.std_error)


def _products(means: sz.Marginals) -> list[tuple[tuple[int, ...], float, float | None]]:
    """Return the spins, the mean and the error of each product that is listed: of pairs, or of terms."""
    if means.terms is None or means.term_mean is None:
        pairs = [(i, j) for i, j in means.edges.tolist()]
        errors = _errors(means.pair_mean, means.pair_std_error)
        return list(zip(pairs, means.pair_mean.tolist(), errors, strict=True))
    errors = _errors(means.term_mean, means.term_std_error)
    listed = zip(means.terms, means.term_mean.tolist(), errors, strict=True)
    return [product for product in listed if len(product[0]) > 1]


def _products_table(problem: Problem, products: list[tuple[tuple[int, ...], float, float | None]]) -> tables.Table:
    label, most = problem.model.label, max(len(spins) for spins, _, _ in products)
    rows = tuple(
        (*map(label, spins), *[""] * (most - len(spins)), f"{mean:+.6f}", *([] if error is None else [f"{error:.2g}"]))
        for spins, mean, error in products
    )
    headings = (*["spin"] * most, "mean of the product", *([] if products[0][2] is None else ["error"]))
    return tables.Table(headings=headings, rows=rows)


def _products_in_json(
    problem: Problem, products: list[tuple[tuple[int, ...], float, float | None]]
) -> list[dict[str, Any]]:
    return [
        {"names": [name_in_json(problem.model, i) for i in spins], "mean": mean, "std_error": error}
        for spins, mean, error in products
    ]


def _warn_of_disagreement(estimate: sz.Estimate) -> None:
    """Warn if methods that should agree do not, or if none of several can be trusted."""
    if estimate.disagreeing:
        warn(disagreement(estimate))
    elif estimate.tried and not estimate.interrupted and not estimate.trusted:
        warn("this answer is not to be trusted; a larger --budget or --work may help")


@examples(
    "spectralz compare grid.uai",
    "spectralz compare grid.uai -m exact,bp,mf,BP-200 --plot grid.png",
    "spectralz compare glass.npz -m auto,mf,ep --budget 2        # the budget is auto's",
    "spectralz compare grid.uai -m mbe,wmbe -s ibound=3 --json   # options go to the methods that have them",
    "spectralz compare grid.uai -x sdp,trw --html grid.html      # all but two; a page to show",
)
def compare(
    ctx: typer.Context,
    file: opts.ModelFile,
    methods: opts.Methods = None,
    settings: opts.Settings = None,
    budget: opts.Budget = None,
    work: opts.Work = None,
    exclude: Annotated[
        str | None, opts.names_option("--exclude", "-x", "Methods to leave out of the comparison, separated by commas.")
    ] = None,
    threads: opts.Threads = None,
    device: opts.Device = "auto",
    evidence: opts.EvidenceFile = None,
    given: opts.Given = None,
    beta: opts.Beta = 1.0,
    format: opts.Format = None,
    as_json: opts.AsJson = False,
    plot: opts.Picture = None,
    html: opts.Page = None,
    strict: opts.Strict = False,
) -> None:
    """Run several methods on one model and show them side by side.

    --set, --budget and --work go to the methods that have such an option.
    """
    files.check_outputs({"--plot": plot, "--html": html}, [file, evidence])
    names = _compared_names(methods, exclude)
    chosen = opts.methods_with_options(names, opts.method_options(settings or [], budget, None, work))
    problem = load(file, evidence, given, beta, format)
    with opts.in_place(threads, device), progress():
        comparison = sz.compare(problem.model, chosen, given=problem.given)
    try:
        print_about(problem, comparison, as_json, print_comparison)
    finally:
        files.write_all(
            (plot, partial(files.write_picture, partial(comparison_picture, comparison, problem.title))),
            (html, partial(_write_comparison_page, ctx, problem, comparison)),
        )
    if comparison.interrupted:
        say("interrupted: these are the methods so far")
        raise typer.Exit(exit_code())
    if strict and any(row.estimate is not None and not row.estimate.status.converged for row in comparison):
        raise typer.Exit(1)


def _write_comparison_page(ctx: typer.Context, problem: Problem, comparison: sz.Comparison, path: Path) -> None:
    from spectralz.report import comparison_page

    command = files.command_as_typed(ctx)
    files.write_page(comparison_page(comparison, problem.title, problem.in_words, command=command), path)


def _compared_names(methods: str | None, exclude: str | None) -> list[str]:
    """Return the names of the methods to compare: all but auto if none are named, without those to leave out."""
    compared = [name for name in sz.METHODS if name != "auto"] if methods is None else opts.names_in(methods)
    left_out = [] if exclude is None else opts.names_in(exclude)
    for name in left_out:
        check_choice(name, "a name of --exclude", [*sz.METHODS, *sz.PAPER_SETTINGS])
    return [name for name in compared if name not in left_out]


def print_comparison(comparison: sz.Comparison) -> None:
    """Print a comparison as a table, with errors if one of the methods is exact."""
    print_table(tables.comparison(comparison))


@examples(
    "spectralz bounds grid.uai",
    "spectralz bounds glass.npz --budget 2 --exclude trw,sdp",
    "spectralz bounds glass.npz --work 1e7 --json   # the same bounds in every run",
    "spectralz bounds grid.uai --level 0.999        # and an interval that holds with probability 99.9%",
)
def bounds(
    file: opts.ModelFile,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            "-s",
            metavar="KEY=VALUE",
            help="budget, work, exclude, threads, level or seed; the same as their own options.",
        ),
    ] = None,
    budget: opts.Budget = None,
    work: opts.Work = None,
    exclude: Annotated[
        str | None,
        typer.Option("--exclude", "-x", metavar="NAMES", help="Bounders to leave out, separated by commas."),
    ] = None,
    level: Annotated[
        float | None,
        typer.Option(
            "--level",
            metavar="P",
            help="Also give an interval, not proven, that contains log Z with this probability, such as 0.999. "
            "It needs no other assumption and takes half of the budget.",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Seed of the interval's random numbers; 0 if not given.")
    ] = None,
    threads: opts.Threads = None,
    evidence: opts.EvidenceFile = None,
    given: opts.Given = None,
    beta: opts.Beta = 1.0,
    format: opts.Format = None,
    as_json: opts.AsJson = False,
) -> None:
    """Bound log Z from both sides, with proof, by several methods; Ctrl-C keeps what has been found.

    With --level, also give an interval that contains log Z with a stated probability; it is much narrower.
    """
    options = opts.method_options(settings or [], budget, exclude, work, level=level, seed=seed)
    for key in options:
        check_choice(key, "a key of --set", OPTIONS_OF_BOUNDS)
    if "level" in options:  # refused before the model is read
        checked_level(options["level"], "level")
    if isinstance(options.get("exclude"), str):
        options["exclude"] = opts.names_in(options["exclude"])
    # auto has the same budget, and the same message if both are given.
    allowed = sz.Auto(budget=options.get("budget"), work=options.get("work"))
    problem = load(file, evidence, given, beta, format)
    with opts.in_threads(threads), progress(opts.budget_of(allowed)):
        bracket = sz.bounds(problem.model, given=problem.given, **options)
    print_about(problem, bracket, as_json, _print_bounds)
    if bracket.interrupted:
        say("interrupted; the bounds hold, but more time may tighten them")
        raise typer.Exit(exit_code())


def _print_bounds(bracket: sz.Bounds) -> None:
    print_table(tables.bounds(bracket))
    print(
        f"{rounded_down(bracket.lower, 12)} <= log Z <= {rounded_up(bracket.upper, 12)} "
        f"({'proven, ' if bracket.interval else ''}width {bracket.width:.3g}; "
        f"{bracket.lower_method} and {bracket.upper_method})"
    )
    if bracket.interval is not None:
        print(probable(bracket.interval))
        print(f"by {bracket.interval_status}")


@examples(
    "spectralz sample grid.uai states.npy",
    "spectralz sample names.csv states.csv --size 20 --seed 7   # with the names as the first line",
    "spectralz sample grid.uai states.csv.gz -g 0=+1 -g 5=-1 --json",
    "spectralz sample glass.npz states.npy -m annealing -s population=200",
)
def sample(
    file: opts.ModelFile,
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="Where to write the states: .npy or .csv, or .gz of either.", show_default=False
        ),
    ],
    size: Annotated[int, typer.Option("--size", "-n", metavar="N", help="How many states.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The same seed gives the same states.")] = 0,
    method: opts.MethodName = "auto",
    settings: opts.Settings = None,
    budget: opts.Budget = None,
    work: opts.Work = None,
    exclude: opts.Exclude = None,
    threads: opts.Threads = None,
    device: opts.Device = "auto",
    dask: opts.Dask = None,
    evidence: opts.EvidenceFile = None,
    given: opts.Given = None,
    beta: opts.Beta = 1.0,
    format: opts.Format = None,
    as_json: opts.AsJson = False,
) -> None:
    """Draw states of a model, one per row, -1 and +1; spins that are given are columns too.

    States from exact, quadrature and low_rank are independent and follow P(x) exactly; others approximately.
    """
    files.check_output(out, [file, evidence])
    files.check_states(out)
    chosen = sz.inference.as_method(method, opts.method_options(settings or [], budget, exclude, work))
    problem = load(file, evidence, given, beta, format)
    with (
        opts.in_place(threads, device),
        progress(opts.budget_of(chosen)),
        warnings.catch_warnings(record=True) as warned,
        opts.on_dask(dask) as executor,
    ):
        warnings.simplefilter("always", InaccurateWarning)
        warnings.simplefilter("always", LostRunsWarning)
        states = sz.sample(problem.model, size, chosen, seed, given=problem.given, executor=executor)
    sentences = [str(warning.message) for warning in warned]
    for sentence in sentences:
        warn(sentence)
    files.write_states(states, problem.model.names, out)
    if as_json:
        options = sz.result.plain(vars(chosen))
        how = {"seed": seed, "method": chosen.name, "options": options, "warnings": sentences}
        print_json({**problem.about(), "out": str(out), "states": len(states), **how})
    say(f"wrote {as_text(out)}: {len(states)} states of {problem.model.n} spins")
