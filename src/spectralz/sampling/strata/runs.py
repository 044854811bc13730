"""Add up the weights of phases and of what is in none of them, each annealed towards by itself.

Annealing from independent spins in the fields of a phase tends to stay in it, and gives its weight with all
fluctuations. But every run estimates the whole Z, so runs towards several phases would count twice what they share. So
a rule that is fixed before these runs assigns each state to one stratum (``phases.py``). The mean weight of the states
of a run that end in a stratum, 0 for all others, is an unbiased estimate of the weight of the stratum, whatever base
the run begins from. Runs of the path that all states are cooled along count for what is in no such stratum.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spectralz.parts.leading import collective_directions
from spectralz.sampling.path import from_fields
from spectralz.sampling.populations import GROUPS, Run
from spectralz.sampling.run import log_mean_z, weights_of
from spectralz.sampling.strata.phases import DIRECTIONS, find_phases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from spectralz.sampling.path import Path
    from spectralz.sampling.spread import Crew
    from spectralz.sampling.strata.phases import Phases, Stratum

# Runs towards a stratum have missed it if others find more there by this factor, as a logarithm.
MORE_THAN_CHANCE = 3.0


def annealed_to_phases(
    crew: Crew,
    path: Path,
    runs: Sequence[Run],
    rng: np.random.Generator,
    make: Callable[[Path], Iterable[Run]],
) -> tuple[Phases, list[list[Run]]]:
    """Search for phases that runs have missed, and make runs to the strata of their states.

    ``make`` returns the runs along a path. Returned are the phases, and the runs that count for each stratum, first for
    what is in none.
    """
    directions = collective_directions(path.model, DIRECTIONS)
    phases = find_phases(path, runs, directions, rng, parallel=crew.parallel)
    return phases, counted(phases, runs, [list(make(path_to_stratum(path, stratum))) for stratum in phases.strata])


def path_to_stratum(path: Path, stratum: Stratum) -> Path:
    """Return the path to the same model that begins in the fields of a stratum."""
    return replace(from_fields(path.model, stratum.base, sides=path.sides), flips=path.flips)


def counted(phases: Phases, runs: Sequence[Run], runs_to: Sequence[Sequence[Run]]) -> list[list[Run]]:
    """Return the parts of runs that count for each stratum, first for what is in none, given the runs to each.

    Strata without runs, or without a state that has ended there, count as none. So do those in which other runs have
    met much more weight than the runs towards them, which therefore have missed most of it.
    """
    pairs = list(zip(phases.strata, runs_to, strict=False))
    parts = [_unless_missed(within(phases, stratum, to), _met(phases, stratum, runs)) for stratum, to in pairs]
    measured = [stratum for (stratum, _), part in zip(pairs, parts, strict=True) if is_measured(part)]
    return [outside(replace(phases, strata=tuple(measured)), runs), *parts]


def _met(phases: Phases, stratum: Stratum, runs: Sequence[Run]) -> float:
    """Return the log of the weight in a stratum by runs that were not made for it; minus infinity if they missed it."""
    return log_mean_z([_part(run, phases.have([stratum], run.x)) for run in runs]) if runs else -math.inf


def _unless_missed(part: list[Run], met: float) -> list[Run]:
    """Return the parts of runs in a stratum, or none if others have met more than they can have by chance.

    Both are unbiased and positive, so that the others exceed the truth by a factor c with probability 1/c at most.
    """
    return part if not is_measured(part) or met < log_mean_z(part) + MORE_THAN_CHANCE else []


def within(phases: Phases, stratum: Stratum, runs: Sequence[Run]) -> list[Run]:
    """Return the parts of runs that are in a stratum; their log Z is that of the stratum.

    If phases are mirrored, its mirror image is counted as well, and half of the families are turned.
    """
    parts = [_part(run, phases.are_in(stratum.number, run.x)) for run in runs]
    if not phases.is_mirrored:
        return parts
    return [
        replace(part, log_z=part.log_z + math.log(2.0), x=np.where(_is_turned(part.family)[:, None], -part.x, part.x))
        for part in parts
    ]


def _is_turned(family: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which families are turned: half of each of the groups that errors come from (``populations.py``)."""
    return np.asarray((family // GROUPS + family) % 2 == 1)


def outside(phases: Phases, runs: Sequence[Run]) -> list[Run]:
    """Return the parts of runs that are in none of the strata."""
    return [_part(run, ~phases.have(phases.strata, run.x)) for run in runs] if phases.strata else list(runs)


def _part(run: Run, is_in: NDArray[np.bool_]) -> Run:
    """Return a run with the states of a set only; without any, its log Z is minus infinity."""
    share = float(run.weight @ is_in)
    if share == 0.0:
        return replace(run, log_z=-math.inf, variance=0.0)
    part = replace(run, log_z=run.log_z + math.log(share), weight=run.weight * is_in / share)
    return replace(part, variance=float(((part.family_weights() - 1.0 / run.size) ** 2).sum()))


def is_measured(runs: Sequence[Run]) -> bool:
    """Return whether any state of the runs that count for a stratum has ended in it."""
    return bool(runs) and log_mean_z(runs) > -math.inf


def together(groups: Sequence[Sequence[Run]]) -> list[Run]:
    """Return populations of all states: the runs as they are if there is one stratum, and otherwise all as one."""
    return list(groups[0]) if len(groups) == 1 else [merged(groups)]


def run_by_run(groups: Sequence[Sequence[Run]]) -> list[Run]:
    """Return populations of all strata, each from one run of every stratum, so that they are independent."""
    if len(groups) == 1:
        return list(groups[0])
    measured = [runs for runs in groups if is_measured(runs)]
    parts = [[[run] for run in runs if run.log_z > -math.inf] for runs in zip(*measured, strict=True)]
    return [merged(part) for part in parts if part]


def merged(groups: Sequence[Sequence[Run]]) -> Run:
    """Return one population of all strata from the runs of each; its log Z is the log of the sum of theirs."""
    groups = [runs for runs in groups if is_measured(runs)]
    logs = np.array([log_mean_z(runs) for runs in groups])
    log_z = float(np.logaddexp.reduce(logs))
    shares = np.exp(logs - log_z)
    weights = [share * weight for share, runs in zip(shares, groups, strict=True) for weight in weights_of(runs)]
    runs = [run for group in groups for run in group]
    parts = [float(weight.sum()) for weight in weights]
    first = np.cumsum([0, *(run.size for run in runs[:-1])])
    return Run(
        log_z=log_z,
        x=np.concatenate([run.x for run in runs]),
        weight=np.concatenate(weights),
        family=np.concatenate([run.family + place for run, place in zip(runs, first, strict=True)]),
        variance=float(np.square(parts) @ [run.variance for run in runs]),
        gap=float(np.dot(parts, [run.gap for run in runs])),
        points=runs[0].points,
        spread=runs[0].spread,
    )
