"""The command that counts states: ``count``."""

from __future__ import annotations

from typing import Annotated

import typer

import spectralz as sz
from spectralz._support.interrupts import exit_code
from spectralz.cli import options as opts
from spectralz.cli.console import print_about, progress, say
from spectralz.cli.helping import examples
from spectralz.cli.loading import load
from spectralz.errors import OptionError
from spectralz.io import read_weights
from spectralz.io.files import STANDARD


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
