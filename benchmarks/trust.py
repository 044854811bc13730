"""Measure the constants of trust: ``python -m benchmarks.trust`` judges the same evidence with each constant changed.

For each rule of ``spectralz/trust`` it makes evidence on models with a known log Z (benchmarks/known_models.py): round
trips, pools of states, ways between two models, frontier states and answers of expectation propagation. Populations are
judged by ``benchmarks.honesty``. Each constant is then halved, kept and doubled, and the judgments are compared with
the truth: how many answers are trusted, and how far the worst of these is off, in its own errors. A constant is well
chosen if making it laxer trusts wrong answers, and making it stricter loses right ones.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

import spectralz as sz
from benchmarks.harness import table
from benchmarks.known_models import FAMILIES, Known
from spectralz._support.deadline import Deadline
from spectralz.model import Model
from spectralz.parts.elimination.heaviest_frontier import cold_frontier
from spectralz.sampling.bridge import bridge
from spectralz.sampling.cells import Cells, evidence_of, row_of
from spectralz.sampling.heavy.pool import fill, share_held, state_pool
from spectralz.sampling.path import path_to
from spectralz.sampling.population import Population, Run, carry
from spectralz.sampling.round_trips import there_and_back
from spectralz.sampling.sweeps import survey
from spectralz.trust import judge, judgment, propagation, states
from spectralz.trust.judgment import Judgment

# Families whose samples are neither trivial nor hopeless with few states.
SAMPLED = (
    "torus",
    "curie_weiss",
    "two_blocks",
    "trap",
    "hopfield",
    "sk",
    "complete",
    "erdos_renyi",
    "regular",
    "cubic",
)
MOST_SPINS = 400
FACTORS = (0.5, 1.0, 2.0)
MOST_ERRORS = 5.0

# A judgment, made anew with the constants of the moment, and the truth.
Case = tuple[Callable[[], Judgment], float]


@dataclass(frozen=True)
class Rule:
    """A rule: its evidence, and its constants in a module."""

    name: str
    cases: Callable[[int, np.random.Generator], Iterator[Case]]
    module: Any
    constants: tuple[str, ...]


def known(rng: np.random.Generator, families: Sequence[str] = SAMPLED) -> Known:
    """Draw a model that is small enough."""
    while True:
        drawn = FAMILIES[str(rng.choice(families))](rng)
        if drawn.model.n <= MOST_SPINS:
            return drawn


def few_states(model: Model, rng: np.random.Generator) -> Population:
    """Return 32 groups of 8 states that pass a random number of points, from too few to enough."""
    path = path_to(model)
    points = survey(path, rng).spaced(float(np.exp(rng.uniform(np.log(8.0), np.log(400.0)))))
    return carry(path, points, 32, 8, rng)


def as_run(population: Population) -> Run:
    """Return the states of a population with their weights."""
    group = np.repeat(np.arange(population.groups), population.share.shape[1])
    return Run(population.x, population.weights(), population.family, group)


def judgment_on(population: Population) -> Judgment:
    """Judge log Z by the population, all of whose states are in one cell."""
    n = population.x.shape[1]
    cells = Cells(np.zeros((1, n)), np.ones((1, n), dtype=np.int8), np.zeros(1, dtype=np.int64))
    return judge(evidence_of([row_of(population, cells)], np.ones((1, 1)), (0,)))


def cases_of_round_trips(count: int, rng: np.random.Generator) -> Iterator[Case]:
    for _ in range(count):
        drawn = known(rng, ("torus", "planar"))
        path = path_to(drawn.model)
        points = survey(path, rng).spaced(float(np.exp(rng.uniform(np.log(16.0), np.log(600.0)))))
        trip, constant = there_and_back(path, points, 128, rng), drawn.model.constant
        yield lambda trip=trip, constant=constant: states.judge_round_trip(trip, constant), drawn.log_z


def cases_of_pools(count: int, rng: np.random.Generator) -> Iterator[Case]:
    for _ in range(count):
        drawn = known(rng, ("sk", "complete", "regular", "cubic"))
        made, path = few_states(drawn.model, rng), path_to(drawn.model)
        pool = state_pool(drawn.model, 1000)
        finding, testing = (made.selected(np.arange(half, made.groups, 2)) for half in (0, 1))
        fill(pool, path, finding.x, 20, rng)
        share = share_held(pool, as_run(testing))
        log_sum = pool.log_sum
        yield lambda log_sum=log_sum, share=share: states.judge_pool(log_sum, share), drawn.log_z


def cases_of_ratios(count: int, rng: np.random.Generator) -> Iterator[Case]:
    for _ in range(count):
        first = sz.generators.complete(n=14, strength=float(rng.uniform(0.05, 1.0)), seed=int(rng.integers(2**31)))
        second = float(rng.uniform(0.7, 1.3)) * first
        truth = sz.log_z(second, "exact").log_z - sz.log_z(first, "exact").log_z
        made = [few_states(model, rng) for model in (first, second)]
        there, back = map(as_run, made)
        way = bridge(first, second, there, back, Deadline.after(float(rng.uniform(0.0, 0.2))), rng)
        ends, families = [judgment_on(population) for population in made], min(there.families, back.families)
        yield lambda way=way, ends=ends, families=families: states.judge_bridge(way, ends, families), truth


def cases_of_frontiers(count: int, rng: np.random.Generator) -> Iterator[Case]:
    for _ in range(count):
        model = sz.generators.grid(side=12, strength=float(rng.uniform(0.5, 4.0)), seed=int(rng.integers(2**31)))
        most = int(4000 * 4 ** rng.integers(3))
        found = cold_frontier(model, gap=1e-6, most_states=most, max_memory=2**28)
        bracket = found.lower, found.upper, found.lower_bounds
        yield lambda bracket=bracket: judgment.judge_bracket(*bracket), sz.log_z(model, "exact").log_z


def cases_of_propagation(count: int, rng: np.random.Generator) -> Iterator[Case]:
    for _ in range(count):
        drawn = known(rng)

        def judge(model: sz.Ising = drawn.model) -> Judgment:
            found = sz.log_z(model, "ep")
            return Judgment(found.log_z, found.std_error or np.inf, found.trusted)

        yield judge, drawn.log_z


RULES = [
    Rule(
        "round trips",
        cases_of_round_trips,
        states,
        ("ERROR_PER_INCONSISTENCY", "ERROR_PER_GAP", "NOISE_DEVIATIONS", "LEAST_INCONSISTENCY"),
    ),
    Rule("pools", cases_of_pools, states, ("FEWEST_HITS",)),
    Rule("ratios", cases_of_ratios, states, ("MOST_ERRORS_APART", "LEAST_APART")),
    Rule("frontier states", cases_of_frontiers, judgment, ("NARROW", "GROWTHS")),
    Rule("expectation propagation", cases_of_propagation, propagation, ("LARGEST_ERROR",)),
]


def judged(cases: Sequence[Case]) -> list[str]:
    """Return how many answers are trusted, the worst of them in its errors, and the same of all answers."""
    rows = [(judge(), truth) for judge, truth in cases]
    off = [
        (each.trusted, abs(each.log_z - truth) / max(each.std_error, 1e-10 * max(abs(truth), 1.0)))
        for each, truth in rows
    ]
    trusted = [ratio for is_trusted, ratio in off if is_trusted]
    doubted = [ratio for is_trusted, ratio in off if not is_trusted and np.isfinite(ratio)]
    beyond = sum(ratio > MOST_ERRORS for ratio in trusted)
    return [
        f"{len(trusted)} of {len(rows)}",
        f"{max(trusted, default=0.0):.2g}",
        str(beyond),
        f"{np.sqrt(np.mean(np.square(trusted))) if trusted else 0.0:.2g}",
        f"{max(doubted, default=0.0):.2g}",
    ]


def measured(rule: Rule, count: int, seed: int) -> list[list[str]]:
    """Return the lines of a rule: each constant halved, kept and doubled."""
    cases = list(rule.cases(count, np.random.default_rng(seed)))
    lines = []
    for name in rule.constants:
        value = getattr(rule.module, name)
        for factor in FACTORS:
            with patch.object(rule.module, name, factor * value):
                lines.append([rule.name, name, f"{factor * value:.3g}", *judged(cases)])
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all rules and print their table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rules", nargs="+", choices=[rule.name for rule in RULES], metavar="RULE")
    parser.add_argument("--cases", type=int, default=100, help="pieces of evidence of each rule")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    headings = ["rule", "constant", "value", "trusted", "worst", "beyond 5", "rms", "worst untrusted"]
    lines: list[list[str]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rule in RULES:
            if not asked.rules or rule.name in asked.rules:
                lines += measured(rule, asked.cases, asked.seed)
                print(f"\r{rule.name}".ljust(40), end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(table(headings, lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
