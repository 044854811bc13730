"""The one interface of all methods."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, final

import numpy as np

from spectralz._support import clock
from spectralz._support.devices import using_device
from spectralz._support.options import apply_checks, bytes_in_words, checked_count
from spectralz._support.progress import with_history
from spectralz._support.threads import NO_MATRICES, using_threads
from spectralz.errors import OptionError, TooLargeError, refuse_impossible, showing_interrupts
from spectralz.parts.outcome import MarginalOutcome, Outcome, impossible_outcome, with_proven_kind
from spectralz.parts.pairs import pairs_of, wanting_pairs
from spectralz.result import Estimate, Kind, Marginals, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from spectralz.model import Ising, Model
    from spectralz.trust.judgment import Judgment

__all__ = ["MarginalOutcome", "Method", "Outcome", "estimated", "has_few_pairs"]


# Most spins that one call of sample may return, one byte each.
MOST_SAMPLED_SPINS = 16 * 2**30
# The methods that take terms of three and more spins.
TAKING_TERMS = "auto, exact, annealing, states, bp, mf, mbe or wmbe"
# The methods that take constraints.
TAKING_CONSTRAINTS = "auto, exact, annealing, states, bp, mbe, wmbe or mps"
# By default at most this many pairs are listed: with their means, 240 MB.
MOST_PAIRS = 10_000_000


def estimated(judged: Judgment, words: str, *, interrupted: bool = False, **others: Any) -> Outcome:
    """Return the outcome of a judgment; ``words`` say what was done, and the judgment why it is not trusted."""
    return Outcome(
        log_z=judged.log_z,
        kind=Kind.ESTIMATE,
        status=Status(words + judged.why, converged=judged.trusted and not interrupted),
        std_error=judged.std_error if judged.std_error < np.inf else None,
        trusted=judged.trusted,
        interrupted=interrupted,
        **others,
    )


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """Hold the options of a method: a frozen value that runs on a model, changes nothing and returns a result.

    A new method defines ``name`` and ``_solve``. If it can, it also defines ``_solve_marginals`` and ``_sample``;
    ``gives_marginals`` and ``gives_samples`` say whether it does. Its options are declared together with
    their checks (``_support/options.py``). ``_solve`` returns log Z of the whole model, including its offset and the
    trace of its coupling.

    A method that can use several threads has the option ``threads``. Linear algebra then uses one thread, so that the
    result is the same for any number of threads, unless ``works_on_matrices`` says that the time goes into large
    matrices. A method whose runs the workers of an executor can make sets ``spreads_runs = True``. A method that takes
    models with terms of three and more spins (``model.higher``) sets ``takes_terms = True``; the means of these terms
    follow those of the edges in the ``pair_mean`` of its marginals. One that heeds ``model.constraints`` sets
    ``takes_constraints = True``.

    Attributes
    ----------
    name
        The short name, a key of :data:`METHODS`.
    gives_marginals, gives_all_pairs, gives_samples
        Whether it gives marginals, those of pairs that are not coupled too, and samples.
    takes_terms, takes_constraints
        Whether it takes terms of three and more spins, and constraints.
    spreads_runs
        Whether an executor can make its runs.
    removed
        What replaces options of earlier versions, by their names.
    works_on_matrices
        Whether its time goes into large matrices.

    Examples
    --------
    >>> import spectralz as sz
    >>> method = sz.BeliefPropagation(damping=0.5)
    >>> method.name, method.gives_marginals, method.gives_samples
    ('bp', True, False)
    >>> print(method.run(sz.Ising(field=[0.0])).kind)
    exact
    """

    name: ClassVar[str]
    gives_marginals: ClassVar[bool] = False
    gives_all_pairs: ClassVar[bool] = False
    gives_samples: ClassVar[bool] = False
    takes_terms: ClassVar[bool] = False
    takes_constraints: ClassVar[bool] = False
    works_on_matrices: ClassVar[bool] = False
    spreads_runs: ClassVar[bool] = False
    removed: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.gives_marginals = cls._solve_marginals is not Method._solve_marginals
        cls.gives_samples = cls._sample is not Method._sample

    def __post_init__(self) -> None:
        apply_checks(self)

    @abstractmethod
    def _solve(self, model: Ising) -> Outcome: ...

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        raise OptionError(f"method {self.name!r} gives no marginals")

    def _sample(self, model: Ising, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        raise OptionError(f"method {self.name!r} gives no samples")

    @final
    def run(self, model: Model) -> Estimate:
        """Return log Z of ``model`` as this method finds it."""
        passed = clock.stopwatch()
        if model.constraints and model.constraints.is_impossible:
            return self._pack(impossible_outcome(), passed())
        taken = self._taken(model)
        with self._in_place(taken), with_history() as history:
            return replace(self._pack(self._solve(taken), passed()), history=tuple(history))

    @final
    def run_marginals(self, model: Model, *, pairs: bool | Literal["all"] | None = None) -> Marginals:
        """Return the means of spins and edges of ``model`` as this method finds them.

        The means of edges are left out if ``pairs`` is False, or if it is None and there are more than 10 million
        edges. With ``"all"``, methods that have ``gives_all_pairs`` return the means of all pairs.
        """
        passed = clock.stopwatch()
        taken = self._taken(model)
        wanted = has_few_pairs(model) if pairs is None else pairs
        with self._in_place(taken), wanting_pairs(wanted):
            marginals = self._solve_marginals(taken)
            edges = pairs_of(taken)
        error = None if marginals.kind is Kind.EXACT else marginals.std_error
        found = Marginals(
            mean=marginals.mean,
            probability=marginals.probability,
            edges=edges,
            pair_mean=marginals.pair_mean if wanted else np.empty(0),
            kind=marginals.kind,
            estimate=self._pack(marginals.outcome, passed()),
            names=model.names,
            has_pairs=bool(wanted),
            std_error=error,
            pair_std_error=None if error is None else marginals.pair_std_error if wanted else np.empty(0),
        )
        return found.of_terms(model.higher.scopes() if wanted else []) if model.higher.number else found

    @final
    def run_sample(self, model: Model, size: int, seed: int | np.random.Generator) -> NDArray[np.int8]:
        """Return ``size`` independent states of ``model``, one per row; the same seed gives the same states."""
        taken = self._taken(model)
        count = checked_count(size, "size", least=0)
        if count * model.n > MOST_SAMPLED_SPINS:
            raise TooLargeError(
                f"{count} states of {model.n} spins take {bytes_in_words(count * model.n)}; "
                "draw them in parts, each with its own seed"
            )
        if not isinstance(seed, np.random.Generator):
            seed = np.random.default_rng(checked_count(seed, "seed", least=0))
        with self._in_place(taken):
            return self._sample(taken, count, seed)

    def _taken(self, model: Model) -> Any:
        """Return the model if this method takes its terms and constraints."""
        if model.constraints:
            refuse_impossible(-np.inf if model.constraints.is_impossible else 0.0)
            if not self.takes_constraints:
                raise OptionError(
                    f"method {self.name!r} takes no constraints, and this model has {len(model.constraints)}; use "
                    f"{TAKING_CONSTRAINTS}, or drop them (model.unconstrained), which makes Z larger"
                )
        if model.higher.number and not self.takes_terms:
            raise OptionError(
                f"method {self.name!r} takes pairs of spins only, and this model has terms of up to "
                f"{model.higher.largest}; use {TAKING_TERMS}"
            )
        return model

    @contextmanager
    def _in_place(self, model: Ising) -> Iterator[None]:
        """Work with the threads and on the device that the options of these names say, where a method has them."""
        with showing_interrupts(), ExitStack() as stack:
            if hasattr(self, "threads"):
                stack.enter_context(self._in_threads(model))
            if hasattr(self, "device"):
                stack.enter_context(using_device(self.device))
            yield

    def _in_threads(self, model: Ising) -> AbstractContextManager[None]:
        """Return the context of the option ``threads``."""
        return using_threads(self.threads, model.n if self.works_on_matrices else NO_MATRICES)  # type: ignore[attr-defined]

    def _pack(self, outcome: Outcome, times: Mapping[str, Any]) -> Estimate:
        outcome = with_proven_kind(outcome)
        entries = {field.name: getattr(outcome, field.name) for field in fields(outcome)}
        entries |= {"method": outcome.method or self, "trusted": outcome.is_trusted}
        if outcome.std_error == math.inf:  # nothing is known, as where no state satisfies the constraints
            entries["std_error"] = None
        if outcome.populations is not None:
            operations = float(outcome.details.get("operations", 0.0))
            entries["populations"] = replace(
                outcome.populations, method=self.name, seconds=times["seconds"], operations=operations
            )
        return Estimate(**entries, **times)

    @classmethod
    def with_options(cls, options: Mapping[str, Any]) -> Self:
        """Return the method with these options; refuse names of options that it does not have."""
        known = [f.name for f in fields(cls)]
        for name in options:
            if name in cls.removed:
                raise OptionError(f"method {cls.name!r} has no option {name!r} any more: {cls.removed[name]}")
            if name not in known:
                wanted = "its options are " + ", ".join(known) if known else "it has none"
                raise OptionError(f"method {cls.name!r} has no option {name!r}; {wanted}")
        return cls(**options)


def has_few_pairs(model: Model) -> bool:
    """Say whether a model has few enough coupled pairs to list them by default; for factors, all pairs count."""
    if model.storage.terms is not None:  # to count the coupled pairs, they would have to be written out
        return model.n * (model.n - 1) // 2 <= MOST_PAIRS
    return model.edge_count + model.higher.number <= MOST_PAIRS
