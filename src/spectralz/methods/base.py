"""The one interface of all methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, final

import numpy as np

from spectralz._support import clock
from spectralz._support.devices import using_device
from spectralz._support.options import apply_checks, bytes_in_words, checked_count
from spectralz._support.threads import NO_MATRICES, using_threads
from spectralz.errors import OptionError, TooLargeError
from spectralz.parts.outcome import MarginalOutcome, Outcome, with_proven_kind
from spectralz.parts.pairs import pairs_of, wanting_pairs
from spectralz.result import Estimate, Marginals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from spectralz.model import Ising

__all__ = ["MarginalOutcome", "Method", "Outcome", "has_few_pairs"]


# A byte each: what one call of sample may return.
MOST_SAMPLED_SPINS = 16 * 2**30
# Where nothing is said, pairs are listed up to so many: with their means, 240 MB.
MOST_PAIRS = 10_000_000


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A method is its options: a frozen value that runs on a model, changes nothing and returns a result.

    A new method gives ``name`` and ``_solve``, and if it can ``_solve_marginals`` with ``gives_marginals = True`` and
    ``_sample`` with ``gives_samples = True``. Its options are declared with their checks (``_support/options.py``).
    The log Z of ``_solve`` is that of the whole model, its offset and the trace of its coupling included.

    A method that may use several threads has the option ``threads``. Linear algebra works in one of them, which makes
    the result the same for any number, unless ``works_on_matrices`` says that the time goes into large matrices.
    One whose runs may be made by the workers of an executor says so by ``spreads_runs = True``.
    """

    name: ClassVar[str]
    gives_marginals: ClassVar[bool] = False
    gives_all_pairs: ClassVar[bool] = False
    gives_samples: ClassVar[bool] = False
    works_on_matrices: ClassVar[bool] = False
    spreads_runs: ClassVar[bool] = False

    def __post_init__(self) -> None:
        apply_checks(self)

    @abstractmethod
    def _solve(self, model: Ising) -> Outcome: ...

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        raise OptionError(f"method {self.name!r} gives no marginals")

    def _sample(self, model: Ising, size: int, rng: np.random.Generator) -> NDArray[np.int8]:
        raise OptionError(f"method {self.name!r} gives no samples")

    @final
    def run(self, model: Ising) -> Estimate:
        """Return log Z of ``model`` as this method finds it."""
        started = clock.seconds()
        with self._in_place(model):
            return self._pack(self._solve(model), started)

    @final
    def run_marginals(self, model: Ising, *, pairs: bool | Literal["all"] | None = None) -> Marginals:
        """Return the means of spins and edges of ``model`` as this method finds them.

        Those of edges are left out if ``pairs`` is False, or if it is None and there are more than 10 million. Methods
        that say so by ``gives_all_pairs`` give those of all pairs if it is ``"all"``.
        """
        started = clock.seconds()
        wanted = has_few_pairs(model) if pairs is None else pairs
        with self._in_place(model), wanting_pairs(wanted):
            found = self._solve_marginals(model)
            edges = pairs_of(model)
        return Marginals(
            mean=found.mean,
            probability=found.probability,
            edges=edges,
            pair_mean=found.pair_mean if wanted else np.empty(0),
            kind=found.kind,
            estimate=self._pack(found.outcome, started),
            names=model.names,
            has_pairs=bool(wanted),
        )

    @final
    def run_sample(self, model: Ising, size: int, seed: int | np.random.Generator) -> NDArray[np.int8]:
        """Return ``size`` independent states of ``model``, one a row, the same ones for the same seed."""
        count = checked_count(size, "size", least=0)
        if count * model.n > MOST_SAMPLED_SPINS:
            raise TooLargeError(
                f"{count} states of {model.n} spins take {bytes_in_words(count * model.n)}; "
                "draw them in parts, each with its own seed"
            )
        if isinstance(seed, np.random.Generator):
            rng = seed
        else:
            rng = np.random.default_rng(checked_count(seed, "seed", least=0))
        with self._in_place(model):
            return self._sample(model, count, rng)

    @contextmanager
    def _in_place(self, model: Ising) -> Iterator[None]:
        """Work with the threads and on the device that the options of these names say, where a method has them."""
        with ExitStack() as stack:
            if hasattr(self, "threads"):
                stack.enter_context(self._in_threads(model))
            if hasattr(self, "device"):
                stack.enter_context(using_device(self.device))
            yield

    def _in_threads(self, model: Ising) -> AbstractContextManager[None]:
        """Return the context of the option ``threads``."""
        return using_threads(self.threads, model.n if self.works_on_matrices else NO_MATRICES)  # type: ignore[attr-defined]

    def _pack(self, outcome: Outcome, started: float) -> Estimate:
        outcome = with_proven_kind(outcome)
        found = {each.name: getattr(outcome, each.name) for each in fields(outcome)}
        found |= {"method": outcome.method or self, "trusted": outcome.is_trusted}
        return Estimate(**found, seconds=clock.seconds() - started)

    @classmethod
    def with_options(cls, options: Mapping[str, Any]) -> Self:
        """Make the method, refusing options that it does not have by their names."""
        known = [f.name for f in fields(cls)]
        for name in options:
            if name not in known:
                wanted = "its options are " + ", ".join(known) if known else "it has none"
                raise OptionError(f"method {cls.name!r} has no option {name!r}; {wanted}")
        return cls(**options)


def has_few_pairs(model: Ising) -> bool:
    """Say whether a model has few enough coupled pairs to list them all unasked; of factors, all pairs count."""
    if model.storage.terms is not None:  # to count those that are coupled, they would have to be written out
        return model.n * (model.n - 1) // 2 <= MOST_PAIRS
    return model.edge_count <= MOST_PAIRS
