"""Long runs: what populations said is kept as a value, and another call adds to it.

A later call has random streams of its own, and the bases, points, cells and coefficients of the first one. So its
populations are independent, and the mean of all is unbiased as before.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from spectralz._support import clock
from spectralz.errors import OptionError
from spectralz.result.estimate import Populations
from spectralz.sampling.cells import Cells, Row
from spectralz.sampling.core import Base, Work, ordinary_paths, pace_of, sizes_of
from spectralz.sampling.path import from_coins
from spectralz.sampling.phases_found import Search
from spectralz.sampling.population import Pilot, carry
from spectralz.sampling.symmetries import images_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from spectralz.model import FloatArray, Model
    from spectralz.result import Trial
    from spectralz.sampling.cells import SamplingEvidence
    from spectralz.sampling.core import Limits
    from spectralz.sampling.spread import Crew

# A model is known by the log-weights of so many states, which agree to this precision on any machine.
PROBES, SAME = 8, 1e-9
PROBE_SEED = 20261119

# What of the evidence is made anew by every call.
NOT_KEPT = ("coefficients", "satisfying")


@dataclass(frozen=True)
class LongRun:
    """What a call continues, and where it keeps what it has done.

    Attributes
    ----------
    earlier
        What earlier calls have found, or None.
    lower, upper
        The bounds that they have proven.
    answers
        The answers of other methods that these trusted.
    is_spent
        Whether no time is left, so that their answer is the answer.
    save, every
        Keeps the populations so far, with the bounds that are proven, once in so many seconds.
    """

    earlier: Populations | None = None
    lower: float | None = None
    upper: float | None = None
    answers: tuple[Trial, ...] = ()
    is_spent: bool = False
    save: Callable[[Populations, float | None, float | None], None] | None = None
    every: float = math.inf


_NONE = LongRun()
_current: ContextVar[LongRun] = ContextVar("spectralz_long_run", default=_NONE)


def long_run() -> LongRun:
    """Return what the current call continues."""
    return _current.get()


@contextmanager
def as_part_of(run: LongRun) -> Iterator[None]:
    """Let a call continue what others have done."""
    token = _current.set(run)
    try:
        yield
    finally:
        _current.reset(token)


def refuse_parts(count: int) -> None:
    """Refuse to keep the populations of a model of several components, each of which has its own."""
    if long_run().save is not None:
        raise OptionError(
            f"checkpoint takes models in one piece, and this one falls into {count} parts that are not coupled; "
            "solve them one by one, by model.submodel(spins), and add up their log Z"
        )


def probe_of(model: Model) -> FloatArray:
    """Return the log-weights of a few fixed states."""
    states = np.random.default_rng(PROBE_SEED).choice(np.array([-1, 1], np.int8), (PROBES, model.n))
    return np.asarray(model.unconstrained.log_weight(states), dtype=np.float64)


def is_of(model: Model, populations: Populations) -> bool:
    """Return whether populations are those of a model."""
    if populations.centers.shape[1:] not in ((model.n,), ()):
        return False
    here, there = probe_of(model), populations.probe
    return bool(np.abs(here - there).max(initial=0.0) <= SAME * max(np.abs(there).max(initial=0.0), 1e-300))


def populations_of(work: Work, evidence: SamplingEvidence) -> Populations:
    """Return what the populations of some work said."""
    earlier = long_run().earlier
    base, size = zip(*sizes_of(work), strict=True)
    return Populations(
        probe=probe_of(work.model),
        bases=tuple(base.name for base in work.bases),
        points=tuple(base.pilot.points for base in work.bases),
        sweeps=tuple(base.pilot.sweeps for base in work.bases),
        fields=tuple(base.pilot.path.base if k else None for k, base in enumerate(work.bases)),
        own=tuple(-1 if base.own is None else base.own for base in work.bases),
        centers=work.cells.centers,
        cell=work.cells.cell,
        coefficients=work.coefficients,
        times=work.times,
        base=base,
        size=size,
        **{name: value for name, value in vars(evidence).items() if name not in NOT_KEPT},
        searched=work.found.was_made and not work.found.cut_short,
        calls=1 if earlier is None else earlier.calls + (len(base) > len(work.earlier)),
    )


def resumed(model: Model, populations: Populations, crew: Crew, seed: int, limits: Limits) -> Work:
    """Return the work that goes on where populations have ended, with new random numbers."""
    p, rng = populations, np.random.default_rng([seed, populations.calls])
    coins, ordinary = from_coins(model), ordinary_paths(model)
    bases = []
    for name, points, sweeps, fields, own in zip(p.bases, p.points, p.sweeps, p.fields, p.own, strict=True):
        path = ordinary[name] if fields is None else replace(coins, base=fields)
        began, size = clock.now(), path.engine.together
        small = carry(path, points, 1, size, rng, sweeps=sweeps, parallel=crew.parallel)
        reached = Pilot(path, points, sweeps, small, (clock.now() - began) / size)
        bases.append(Base(name, reached, None if own < 0 else own))
    rows = map(Row, p.log_z, p.families, p.heaviest, p.covariances, p.log_scales)
    return Work(
        model,
        crew,
        rng,
        limits,
        bases=tuple(bases),
        counted=((),) * len(bases),
        cells=Cells(p.centers, images_of(model), p.cell),
        found=Search(was_made=p.searched, cut_short="" if p.searched else p.search, light=p.light),
        coefficients=p.coefficients,
        times=p.times,
        pace=pace_of(bases[0].pilot),
        earlier=tuple(zip(p.base, p.size, rows, strict=True)),
        sources=p.sources,
    )
