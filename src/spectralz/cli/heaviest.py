"""The command that looks for the heaviest state: ``map``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import spectralz as sz
from spectralz.cli import options as opts
from spectralz.cli.console import progress
from spectralz.cli.helping import examples
from spectralz.cli.loading import load
from spectralz.cli.outputs import check_outputs, check_states, write_all, write_states
from spectralz.cli.printing import print_about
from spectralz.io import write_map

# More spins than this are not printed one by one.
MOST_SHOWN = 40


@examples(
    "spectralz map grid.uai",
    "spectralz map grid.uai --map grid.MAP            # as a UAI answer",
    "spectralz map glass.npz --budget 2 -m search --states best.csv",
    "spectralz map names.csv -g a=+1 --json",
)
def map_command(
    file: opts.ModelFile,
    method: Annotated[str, typer.Option("--method", "-m", metavar="NAME", help="exact, search, or auto.")] = "auto",
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
        Path | None, typer.Option("--states", metavar="OUT", help="Write the state: .npy or .csv, or .gz of either.")
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
            problem.model, method, given=problem.given, budget=budget, work=work, seed=seed, threads=threads
        )
    try:
        print_about(problem, heaviest, as_json)
        if problem.model.n <= MOST_SHOWN and not as_json:
            spins = (f"{problem.model.label(i)} {spin:+d}" for i, spin in enumerate(heaviest.state.tolist()))
            print("each            " + ", ".join(spins))
    finally:
        write_all(
            (answer, partial(write_map, heaviest.state)),
            (states, partial(write_states, heaviest.state[None], problem.model.names)),
        )
    if strict and not heaviest.proven:
        raise typer.Exit(1)
