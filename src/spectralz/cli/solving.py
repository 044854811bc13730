"""The commands that ask something of a model: ``solve``, ``compare``, ``bounds`` and ``sample``."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

import spectralz as sz
from spectralz._support.interrupts import INTERRUPTED
from spectralz._support.options import check_choice, checked_level
from spectralz.cli import completion
from spectralz.cli.console import as_text, console, has_unicode, plus_minus, print_table, progress, say, warn
from spectralz.cli.helping import examples
from spectralz.cli.loading import Problem, load, name_in_json
from spectralz.cli.options import (
    AsJson,
    Beta,
    Budget,
    Dask,
    Device,
    EvidenceFile,
    Format,
    Given,
    MethodName,
    ModelFile,
    Page,
    Picture,
    Settings,
    Strict,
    Threads,
    Work,
    budget_of,
    in_place,
    in_threads,
    method_options,
    methods_with_options,
    names_in,
    on_dask,
)
from spectralz.cli.outputs import (
    check_output,
    check_outputs,
    check_page,
    check_picture,
    check_states,
    picture_format,
    write_all,
    write_page,
    write_picture,
    write_states,
)
from spectralz.cli.printing import print_json
from spectralz.errors import InaccurateWarning, LostRunsWarning
from spectralz.io import write_mar, write_pr
from spectralz.show import tables
from spectralz.show.numbers import probable, rounded_down, rounded_up
from spectralz.show.plots import bracket_picture, comparison_picture
from spectralz.show.text import bracket_line

# The options that `bounds` takes by --set.
OPTIONS_OF_BOUNDS = ("budget", "work", "exclude", "threads", "level", "seed")


def _names(name: str, letter: str, words: str) -> Any:
    """Return an option that takes names of methods."""
    return typer.Option(name, letter, metavar="NAMES", help=words, autocompletion=completion.list_of_methods)


@examples(
    "spectralz solve grid.uai",
    "spectralz solve glass.npz --budget 3 --plot glass.png         # less time, and a picture of the answer",
    "spectralz solve grid.uai -m wmbe -s ibound=4 -s max_iter=20   # one method, with its own options",
    "spectralz solve grid.uai -e grid.evid --pr grid.PR --mar grid.MAR",
    "spectralz solve names.csv -g a=+1 -g b=-1 --marginals         # the other spins, given two of them",
    "spectralz solve grid.uai --marginals --pairs                  # and the mean product of every edge",
    "spectralz solve glass.npz --work 1e8 --json                   # the same answer in every run",
    "spectralz solve grid.uai --beta 0.5 --html grid.html          # at twice the temperature; a page to show",
    "cat grid.uai | spectralz solve - --format uai",
)
def solve(
    file: ModelFile,
    method: MethodName = "auto",
    settings: Settings = None,
    budget: Budget = None,
    work: Work = None,
    exclude: Annotated[
        str | None, _names("--exclude", "-x", "Methods that auto leaves out, separated by commas.")
    ] = None,
    threads: Threads = None,
    device: Device = "auto",
    dask: Dask = None,
    evidence: EvidenceFile = None,
    given: Given = None,
    beta: Beta = 1.0,
    format: Format = None,
    marginals: Annotated[
        bool, typer.Option("--marginals", help="Show the mean of every spin, and its probability of being +1.")
    ] = False,
    pairs: Annotated[
        bool, typer.Option("--pairs/--no-pairs", help="Show marginals, with the mean product of every coupled pair.")
    ] = False,
    as_json: AsJson = False,
    pr: Annotated[Path | None, typer.Option(metavar="OUT", help="Write log10 Z as a UAI .PR answer.")] = None,
    mar: Annotated[Path | None, typer.Option(metavar="OUT", help="Write marginals as a UAI .MAR answer.")] = None,
    plot: Picture = None,
    html: Page = None,
    strict: Strict = False,
) -> None:
    """Find log Z of a model, with bounds, and its marginals on request.

    If no exact answer is possible, auto tries several methods and shows the answer of each.
    """
    marginals = marginals or pairs
    check_outputs({"--pr": pr, "--mar": mar, "--plot": plot, "--html": html}, [file, evidence])
    check_picture(plot)
    check_page(html)
    chosen = sz.inference.as_method(method, method_options(settings or [], budget, exclude, work))
    problem = load(file, evidence, given, beta, format)
    found: sz.Marginals | None = None
    with (
        in_place(threads, device),
        progress(budget_of(chosen)),
        warnings.catch_warnings(action="ignore", category=InaccurateWarning),  # it is said below, once
        on_dask(dask) as executor,
    ):
        warnings.simplefilter("ignore", LostRunsWarning)  # the status says it
        if marginals or mar is not None:
            found = sz.marginals(problem.model, chosen, given=problem.given, pairs=pairs, executor=executor)
            estimate = found.estimate
        else:
            estimate = sz.log_z(problem.model, chosen, given=problem.given, executor=executor)
    shown = found if marginals else None
    try:
        _print_answer(problem, estimate, shown, as_json)
    finally:  # the files are written even if printing fails, and vice versa
        writers = []
        if pr is not None:
            writers.append(partial(write_pr, estimate.log_z, pr))
        if mar is not None and found is not None:
            writers.append(partial(write_mar, found.probability, mar))
        if plot is not None:
            writers.append(partial(_draw_estimate, plot, problem, estimate))
        if html is not None:
            writers.append(partial(_write_estimate_page, html, problem, estimate, shown))
        write_all(*writers)
    if estimate.interrupted:
        say("interrupted: this is the best answer so far")
        raise typer.Exit(INTERRUPTED)
    if strict and not estimate.status.converged:
        raise typer.Exit(1)


def _print_answer(problem: Problem, estimate: sz.Estimate, shown: sz.Marginals | None, as_json: bool) -> None:
    if as_json:
        means = {} if shown is None else {"marginals": _marginals_in_json(problem, shown)}
        if shown is not None and shown.has_pairs:
            means["pairs"] = _pairs_in_json(problem, shown)
        print_json({**problem.about(), **estimate.to_dict(), **means})
    else:
        _print_estimate(problem, estimate)
        if shown is not None:
            print_table(_marginals_table(problem, shown))
            if shown.has_pairs:
                print_table(_pairs_table(problem, shown))
    _warn_of_disagreement(estimate)


def _draw_estimate(path: Path, problem: Problem, estimate: sz.Estimate) -> None:
    write_picture(path, bracket_picture(estimate, problem.title, picture_format(path)))


def _write_estimate_page(path: Path, problem: Problem, estimate: sz.Estimate, shown: sz.Marginals | None) -> None:
    from spectralz.report import estimate_page

    write_page(path, estimate_page(estimate, problem.title, problem.in_words, shown))


def _print_estimate(problem: Problem, estimate: sz.Estimate) -> None:
    screen = console()
    own = tables.estimate(estimate, plus_minus(screen))
    print_table(replace(own, rows=(("model", f"{problem.source}: {problem.in_words}"), *own.rows)))
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


def _marginals_table(problem: Problem, found: sz.Marginals) -> tables.Table:
    rows = (
        (problem.model.label(i), f"{mean:+.6f}", f"{plus:.6g}")
        for i, (mean, (_, plus)) in enumerate(zip(found.mean.tolist(), found.probability.tolist(), strict=True))
    )
    return tables.Table(headings=("spin", "mean", "P(+1)"), rows=tuple(rows))


def _marginals_in_json(problem: Problem, found: sz.Marginals) -> list[dict[str, Any]]:
    return [
        {"name": name_in_json(problem.model, i), "mean": mean, "probability": plus}
        for i, (mean, (_, plus)) in enumerate(zip(found.mean.tolist(), found.probability.tolist(), strict=True))
    ]


def _pairs_table(problem: Problem, found: sz.Marginals) -> tables.Table:
    label = problem.model.label
    rows = (
        (label(i), label(j), f"{mean:+.6f}")
        for (i, j), mean in zip(found.edges.tolist(), found.pair_mean.tolist(), strict=True)
    )
    return tables.Table(headings=("spin", "spin", "mean of the product"), rows=tuple(rows))


def _pairs_in_json(problem: Problem, found: sz.Marginals) -> list[dict[str, Any]]:
    return [
        {"names": [name_in_json(problem.model, i) for i in pair], "mean": mean}
        for pair, mean in zip(found.edges.tolist(), found.pair_mean.tolist(), strict=True)
    ]


def _warn_of_disagreement(estimate: sz.Estimate) -> None:
    """Warn if methods that should agree do not, or if none of several can be trusted."""
    others = [trial.method for trial in estimate.disagreeing]
    if others:
        warn(f"{', '.join(others)} {'disagrees' if len(others) == 1 else 'disagree'} with this answer")
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
    file: ModelFile,
    methods: Annotated[str | None, _names("--methods", "-m", "Names separated by commas; all if not given.")] = None,
    settings: Settings = None,
    budget: Budget = None,
    work: Work = None,
    exclude: Annotated[
        str | None, _names("--exclude", "-x", "Methods to leave out of the comparison, separated by commas.")
    ] = None,
    threads: Threads = None,
    device: Device = "auto",
    evidence: EvidenceFile = None,
    given: Given = None,
    beta: Beta = 1.0,
    format: Format = None,
    as_json: AsJson = False,
    plot: Picture = None,
    html: Page = None,
    strict: Strict = False,
) -> None:
    """Run several methods on one model and show them side by side.

    --set, --budget and --work go to the methods that have such an option.
    """
    check_outputs({"--plot": plot, "--html": html}, [file, evidence])
    check_picture(plot)
    check_page(html)
    asked = _compared_names(methods, exclude)
    chosen = methods_with_options(asked, method_options(settings or [], budget, None, work))
    problem = load(file, evidence, given, beta, format)
    with in_place(threads, device), progress():
        comparison = sz.compare(problem.model, chosen, given=problem.given)
    try:
        if as_json:
            print_json({**problem.about(), **comparison.to_dict()})
        else:
            print(f"{problem.source}: {problem.in_words}")
            print_comparison(comparison)
    finally:
        writers = []
        if plot is not None:
            writers.append(partial(_draw_comparison, plot, problem, comparison))
        if html is not None:
            writers.append(partial(_write_comparison_page, html, problem, comparison))
        write_all(*writers)
    if strict and any(row.estimate is not None and not row.estimate.status.converged for row in comparison):
        raise typer.Exit(1)


def _draw_comparison(path: Path, problem: Problem, comparison: sz.Comparison) -> None:
    write_picture(path, comparison_picture(comparison, problem.title, picture_format(path)))


def _write_comparison_page(path: Path, problem: Problem, comparison: sz.Comparison) -> None:
    from spectralz.report import comparison_page

    write_page(path, comparison_page(comparison, problem.title, problem.in_words))


def _compared_names(methods: str | None, exclude: str | None) -> list[str]:
    """Return the names of the methods to compare: all but auto if none are named, without those to leave out."""
    asked = [name for name in sz.METHODS if name != "auto"] if methods is None else names_in(methods)
    left_out = [] if exclude is None else names_in(exclude)
    for name in left_out:
        check_choice(name, "a name of --exclude", [*sz.METHODS, *sz.PAPER_SETTINGS])
    return [name for name in asked if name not in left_out]


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
    file: ModelFile,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            "-s",
            metavar="KEY=VALUE",
            help="budget, work, exclude, threads, level or seed; the same as their own options.",
        ),
    ] = None,
    budget: Budget = None,
    work: Work = None,
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
    threads: Threads = None,
    evidence: EvidenceFile = None,
    given: Given = None,
    beta: Beta = 1.0,
    format: Format = None,
    as_json: AsJson = False,
) -> None:
    """Bound log Z from both sides, with proof, by several methods; Ctrl-C keeps what has been found.

    With --level, also give an interval that contains log Z with a stated probability; it is much narrower.
    """
    options = method_options(settings or [], budget, exclude, work, level=level, seed=seed)
    for key in options:
        check_choice(key, "a key of --set", OPTIONS_OF_BOUNDS)
    if "level" in options:  # refused before the model is read
        checked_level(options["level"], "level")
    if isinstance(options.get("exclude"), str):
        options["exclude"] = names_in(options["exclude"])
    # auto has the same budget, and the same message if both are given.
    allowed = sz.Auto(budget=options.get("budget"), work=options.get("work"))
    problem = load(file, evidence, given, beta, format)
    with in_threads(threads), progress(budget_of(allowed)):
        found = sz.bounds(problem.model, given=problem.given, **options)
    if as_json:
        print_json({**problem.about(), **found.to_dict()})
    else:
        print(f"{problem.source}: {problem.in_words}")
        _print_bounds(found)
    if found.interrupted:
        say("interrupted; the bounds hold, but more time may tighten them")
        raise typer.Exit(INTERRUPTED)


def _print_bounds(found: sz.Bounds) -> None:
    print_table(tables.bounds(found))
    print(
        f"{rounded_down(found.lower, 12)} <= log Z <= {rounded_up(found.upper, 12)} "
        f"({'proven, ' if found.interval else ''}width {found.width:.3g}; "
        f"{found.lower_method} and {found.upper_method})"
    )
    if found.interval is not None:
        print(probable(found.interval))
        print(f"by {found.interval_status}")


@examples(
    "spectralz sample grid.uai states.npy",
    "spectralz sample names.csv states.csv --size 20 --seed 7   # with the names as the first line",
    "spectralz sample grid.uai states.csv.gz -g 0=+1 -g 5=-1 --json",
    "spectralz sample glass.npz states.npy -m annealing -s population=200",
)
def sample(
    file: ModelFile,
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="Where to write the states: .npy or .csv, or .gz of either.", show_default=False
        ),
    ],
    size: Annotated[int, typer.Option("--size", "-n", metavar="N", help="How many states.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="The same seed gives the same states.")] = 0,
    method: MethodName = "auto",
    settings: Settings = None,
    budget: Budget = None,
    work: Work = None,
    exclude: Annotated[
        str | None, _names("--exclude", "-x", "Methods that auto leaves out, separated by commas.")
    ] = None,
    threads: Threads = None,
    device: Device = "auto",
    dask: Dask = None,
    evidence: EvidenceFile = None,
    given: Given = None,
    beta: Beta = 1.0,
    format: Format = None,
    as_json: AsJson = False,
) -> None:
    """Draw states of a model, one per row, -1 and +1; spins that are given are columns too.

    States from exact, quadrature and low_rank are independent and follow P(x) exactly; others approximately.
    """
    check_output(out, [file, evidence])
    check_states(out)
    chosen = sz.inference.as_method(method, method_options(settings or [], budget, exclude, work))
    problem = load(file, evidence, given, beta, format)
    with (
        in_place(threads, device),
        progress(budget_of(chosen)),
        warnings.catch_warnings(record=True) as warned,
        on_dask(dask) as executor,
    ):
        warnings.simplefilter("always", InaccurateWarning)
        warnings.simplefilter("always", LostRunsWarning)
        states = sz.sample(problem.model, size, chosen, seed, given=problem.given, executor=executor)
    sentences = [str(each.message) for each in warned]
    for sentence in sentences:
        warn(sentence)
    write_states(out, states, problem.model.names)
    if as_json:
        options = sz.result.plain(vars(chosen))
        how = {"seed": seed, "method": chosen.name, "options": options, "warnings": sentences}
        print_json({**problem.about(), "out": str(out), "states": len(states), **how})
    say(f"wrote {as_text(out)}: {len(states)} states of {problem.model.n} spins")
