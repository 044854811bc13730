"""Answers that are continued: by another call, or after a killed one from a file.

A checkpoint is a JSON file of what the populations have said so far. It is written whole or not at all, after finished
groups, at least once a minute. The same call goes on from it until the budget, which counts all calls together, is
spent; a larger budget goes on from a finished one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from spectralz._support import clock
from spectralz.errors import FormatError, OptionError
from spectralz.io.files import write_whole
from spectralz.portfolio.auto import Auto
from spectralz.result import Estimate, Kind, Populations, Trial, Verdict, plain
from spectralz.sampling.long_runs import LongRun, as_part_of, is_of

if TYPE_CHECKING:
    from pathlib import Path

    from spectralz.methods.base import Method
    from spectralz.model import Model

# The first entry of a checkpoint, and the number of its format.
FORMAT, VERSION = "spectralz checkpoint", 1
# Seconds between two writes; half as long as promised, since a part of a population may take some time.
EVERY = 20.0
# Options that say how much is done and by whom, not what; others have to be those of the checkpoint.
FREE = ("budget", "work", "threads", "max_memory", "device")
# A budget of which no more than this share is left is spent.
SPENT = 0.02
CONTINUED = ("auto", "annealing")


def with_more(method: Method, model: Model, answer: Any) -> Estimate:
    """Return an answer with the populations of another call added to its own."""
    if not isinstance(answer, Estimate):
        raise OptionError(f"more is a {type(answer).__name__}; it must be an answer of log_z, an Estimate")
    if answer.kind is Kind.EXACT:
        return answer
    earlier = answer.populations
    if earlier is None:
        raise OptionError(
            f"more has no populations to add to: it is an answer of {answer.method.name!r}. log_z continues answers of "
            "auto, where it has annealed, and of annealing"
        )
    _check(method, model, earlier, "more")
    return _run(method, model, LongRun(earlier, answer.lower, answer.upper, trusted_beside(answer)))


def trusted_beside(answer: Estimate) -> tuple[Trial, ...]:
    """Return the answers of methods other than annealing that these trusted, as far as they have errors."""
    believed = {Verdict.AGREES, Verdict.DISAGREES} | ({Verdict.CHOSEN} if answer.trusted else set())
    return tuple(
        trial
        for trial in answer.tried
        if trial.verdict in believed and trial.method != "annealing" and trial.std_error is not None
    )


def _check(method: Method, model: Model, earlier: Populations, what: str) -> None:
    """Refuse populations of another method or model."""
    if method.name != earlier.method:
        raise OptionError(
            f"{what} is of the method {earlier.method!r}, and this call of {method.name!r}; ask for the same"
        )
    if not is_of(model, earlier):
        raise OptionError(
            f"{what} belongs to another model, or to other given spins: log-weights of the same states differ; "
            "leave it out to begin anew"
        )


def _run(method: Method, model: Model, run: LongRun) -> Estimate:
    """Continue a run, and count its time and operations with those before."""
    with as_part_of(run):
        found = method.run(model)
    return found if found.populations is None else replace(found, populations=_added(found.populations, run.earlier))


def _added(populations: Populations, earlier: Populations | None) -> Populations:
    """Return populations with the time and the operations of earlier calls added to their own."""
    if earlier is None:
        return populations
    seconds, operations = populations.seconds + earlier.seconds, populations.operations + earlier.operations
    return replace(populations, seconds=seconds, operations=operations)


# ------------------------------------------------------------------------------------------------------ checkpoints


@dataclass(frozen=True)
class Kept:
    """What a checkpoint holds."""

    populations: Populations
    lower: float | None
    upper: float | None
    options: dict[str, Any]
    answers: tuple[Trial, ...] = ()


def with_checkpoint(method: Method, model: Model, path: Path) -> Estimate:
    """Return an answer that is kept in a file while it is made, or go on from that file."""
    if method.name not in CONTINUED:
        raise OptionError(f"checkpoint takes the methods {' and '.join(CONTINUED)}, and this is {method.name!r}")
    options = {name: plain(value) for name, value in vars(method).items() if name not in FREE}
    kept = read_checkpoint(path) if path.exists() else None
    if kept is not None:
        _check(method, model, kept.populations, f"the checkpoint {path}")
        other = [name for name in options if options[name] != kept.options.get(name)]
        if other:
            raise OptionError(
                f"the checkpoint {path} has {other[0]} = {kept.options.get(other[0])!r}, and this call "
                f"{options[other[0]]!r}; ask for the same, or name another file"
            )
    earlier = None if kept is None else kept.populations
    began = clock.seconds()

    def save(made: Populations, lower: float | None, upper: float | None) -> None:
        seconds, operations = clock.seconds() - began, clock.operations() or 0.0
        populations = replace(made, method=method.name, seconds=seconds, operations=operations)
        write_checkpoint(path, Kept(_added(populations, earlier), lower, upper, options))

    begun = LongRun() if kept is None else LongRun(earlier, kept.lower, kept.upper, kept.answers)
    rest, is_spent = _rest_of(method, earlier)
    found = _run(rest, model, replace(begun, is_spent=is_spent, save=save, every=EVERY))
    if found.populations is not None:
        write_checkpoint(path, Kept(found.populations, found.lower, found.upper, options, trusted_beside(found)))
    return replace(found, method=method) if found.kind is not Kind.EXACT else found


def _rest_of(method: Method, earlier: Populations | None) -> tuple[Method, bool]:
    """Return the method with what is left of its budget, and whether it is spent."""
    if earlier is None or not isinstance(method, Auto):
        return method, earlier is not None
    if method.work is not None:
        left = 1.0 - earlier.operations / method.work
        return replace(method, work=max(left, SPENT) * method.work), left <= SPENT
    assert method.budget is not None
    left = 1.0 - earlier.seconds / method.budget
    return replace(method, budget=max(left, SPENT) * method.budget), left <= SPENT


def write_checkpoint(path: Path, kept: Kept) -> None:
    """Write a checkpoint whole or not at all."""
    values = {
        FORMAT: VERSION,
        "lower": kept.lower,
        "upper": kept.upper,
        "options": kept.options,
        "answers": plain(kept.answers),
        "populations": kept.populations.to_dict(),
    }
    write_whole(path, json.dumps(values, allow_nan=False).encode())


def read_checkpoint(path: Path) -> Kept:
    """Read a checkpoint."""
    try:
        values = json.loads(path.read_bytes())
        if values.get(FORMAT) != VERSION:
            raise ValueError(FORMAT)
        answers = tuple(Trial(**{**trial, "verdict": Verdict(trial["verdict"])}) for trial in values["answers"])
        populations = Populations.from_dict(values["populations"])
        return Kept(populations, values["lower"], values["upper"], values["options"], answers)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError("it is no checkpoint of this version; name another file", str(path)) from error
