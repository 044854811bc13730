"""A budget in seconds, or in counted operations, which give the same result on every machine."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spectralz._support import clock
from spectralz._support.options import checked_positive
from spectralz._support.threads import NO_MATRICES, using_threads
from spectralz.errors import OptionError
from spectralz.portfolio import policy

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Budget"]


@dataclass(frozen=True)
class Budget:
    """Seconds to spend, or work to do; ten seconds if neither is given.

    Attributes
    ----------
    budget
        Seconds, or None.
    work
        Operations, or None.
    """

    budget: float | None = None
    work: float | None = None

    def __post_init__(self) -> None:
        if self.budget is not None and self.work is not None:
            raise OptionError(
                f"budget is {self.budget:g} and work is {self.work:g}; give one of them: "
                "budget is seconds to spend, work is operations to do"
            )
        if self.budget is None and self.work is None:
            object.__setattr__(self, "budget", policy.BUDGET)

    @classmethod
    def checked(cls, budget: Any, work: Any) -> Budget:
        """Check the budget given to a public function."""
        return cls(
            None if budget is None else checked_positive(budget, "budget"),
            None if work is None else checked_positive(work, "work"),
        )

    @property
    def seconds(self) -> float:
        """The budget in seconds, by the clock of :meth:`planning`."""
        if self.work is not None:
            return self.work / clock.OPERATIONS_PER_SECOND
        assert self.budget is not None
        return self.budget

    @contextmanager
    def planning(self) -> Iterator[clock.Operations | None]:
        """Plan by the clock of this budget inside the ``with`` block; yields a counter of operations or None.

        If operations are counted, linear algebra uses one thread, since several threads add in a different order.
        """
        if self.work is None:
            yield None
            return
        with using_threads(None, NO_MATRICES), clock.counting_operations() as operations:
            yield operations
