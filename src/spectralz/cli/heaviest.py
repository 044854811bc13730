"""The command that looks for the heaviest state: ``map``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import spectralz as sz
from spectralz.cli.console import progress
from spectralz.cli.helping import examples
from spectralz.cli.loading import load
from spectralz.cli.options import (
    AsJson,
    Beta,
    Budget,
    EvidenceFile,
    Format,
    Given,
    ModelFile,
    Seed,
    Strict,
    Threads,
    Work,
)
from spectralz.cli.outputs import check_outputs, check_states, write_all, write_states
from spectralz.cli.printing import print_json
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
    file: ModelFile,
    method: Annotated[str, typer.Option("--method", "-m", metavar="NAME", help="exact, search, or auto.")] = "auto",
    budget: Budget = None,
    work: Work = None,
    seed: Seed = 0,
    threads: Threads = None,
    evidence: EvidenceFile = None,
    given: Given = None,
    beta: Beta = 1.0,
    format: Format = None,
    as_json: AsJson = False,
    answer: Annotated[Path | None, typer.Option("--map", metavar="OUT", help="Write it as a UAI .MAP answer.")] = None,
    states: Annotated[
        Path | None, typer.Option("--states", metavar="OUT", help="Write the state: .npy or .csv, or .gz of either.")
    ] = None,
    strict: Strict = False,
) -> None:
    """Find the heaviest state of a model, its ground state, and a bound on the weight of any state."""
    check_outputs({"--map": answer, "--states": states}, [file, evidence])
    if states is not None:
        check_states(states)
    problem = load(file, evidence, given, beta, format)
    with progress(budget):
        found = sz.map_state(
            problem.model, method, given=problem.given, budget=budget, work=work, seed=seed, threads=threads
        )
    try:
        if as_json:
            print_json({**problem.about(), **found.to_dict()})
        else:
            print(f"{problem.source}: {problem.in_words}")
            print(found)
            if problem.model.n <= MOST_SHOWN:
                each = (f"{problem.model.label(i)} {spin:+d}" for i, spin in enumerate(found.state.tolist()))
                print("each            " + ", ".join(each))
    finally:
        writers = []
        if answer is not None:
            writers.append(partial(write_map, found.state, answer))
        if states is not None:
            writers.append(partial(write_states, states, found.state[None], problem.model.names))
        write_all(*writers)
    if strict and not found.proven:
        raise typer.Exit(1)
