"""Mini-bucket elimination: a bound on log Z at a cost that ``ibound`` sets."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectralz.errors import OptionError, TooLargeError
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.methods.base import Method, Outcome
from spectralz.options import bytes_in_words, check_choice, checked_bytes, checked_count
from spectralz.progress import report
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from spectralz.kernels.mini_bucket_cover import Cover
    from spectralz.kernels.mini_buckets import Bound, Forest, Potentials
    from spectralz.model import Ising

__all__ = ["MiniBucket", "MiniBucketMethod", "Prepared"]

BOUNDS = ("upper", "lower")
ORDER_NAMES = ("best", "min-degree", "min-fill", "banded")
PARTITIONS = ("scope", "content")
ENTRY_BYTES = 8


@dataclass(frozen=True)
class Prepared:
    """One elimination order with its mini-buckets, their numbers, and the bound that one pass gives."""

    order_name: str
    cover: Cover
    forest: Forest
    potentials: Potentials
    bound: Bound

    @property
    def is_exact(self) -> bool:
        """Whether no bucket had to be split."""
        return not self.cover.splits


@dataclass(frozen=True, kw_only=True)
class MiniBucketMethod(Method):
    """What mini-bucket methods have in common: which functions go together, in which order, at what cost."""

    ibound: int = 10
    order: str | Sequence[int] = "best"
    partition: str = "scope"
    max_memory: int | str = 4 * 2**30

    def __post_init__(self) -> None:
        object.__setattr__(self, "ibound", checked_count(self.ibound, "ibound", least=2))
        if isinstance(self.order, str):
            check_choice(self.order, "order", ORDER_NAMES)
        else:
            object.__setattr__(self, "order", _checked_spins(self.order))
        check_choice(self.partition, "partition", PARTITIONS)
        object.__setattr__(self, "max_memory", checked_bytes(self.max_memory, "max_memory"))

    @abstractmethod
    def _powers(self, count: int) -> tuple[float, float]:
        """Return the weight of the first of so many mini-buckets of a spin, and that of each other one."""

    def _looseness(self, prepared: Prepared) -> float:
        """Return what "best" looks for the least of."""
        return prepared.bound.value

    def _prepare(self, model: Ising, *, keep: bool) -> Prepared:
        """Divide the buckets along the order, or along the one of several that gives the tightest bound.

        ``keep`` says whether there must be room for all tables at once.
        """
        orders = self._orders(model)
        found: list[tuple[float, Prepared]] = []
        for k, (name, order) in enumerate(orders.items()):
            cover = self._cover(model, order)
            if cover is not None and ENTRY_BYTES * cover.entries(keep=keep) <= int(self.max_memory):
                prepared = self._run_once(model, name, cover)
                if prepared.is_exact or len(orders) == 1:
                    return prepared
                found.append((self._looseness(prepared), prepared))
            report("trying orders", (k + 1) / len(orders))
        if not found:
            raise TooLargeError(self._refusal(model, next(iter(orders.values())), keep))
        return min(found, key=lambda pair: pair[0])[1]

    def _orders(self, model: Ising) -> dict[str, list[int]]:
        """Return the orders to try, by name."""
        from spectralz.kernels.elimination_order import ORDERS, adjacency_of
        from spectralz.kernels.mini_bucket_cover import order_of

        if not isinstance(self.order, str):
            if len(self.order) != model.n:
                raise OptionError(f"order names {len(self.order)} spins; the model has {model.n}, name each once")
            return {"given": list(self.order)}
        edges, J = model.edges()
        adjacency = adjacency_of(model.n, edges)
        components = [spins.tolist() for spins in model.components()]
        strengths = np.zeros(model.n)
        np.add.at(strengths, edges, np.abs(J)[:, None])
        names = [*ORDERS] if self.order == "best" else [self.order]
        if self.order == "best" and sum(len(spins) > 1 for spins in components) > 1:
            names.append("narrowest")  # exact if every component is so by any of the orders
        orders: dict[str, list[int]] = {}
        for name in names:
            order = order_of(name, components, adjacency, strengths)
            if order not in orders.values():
                orders[name] = order
        return orders

    def _cover(self, model: Ising, order: list[int]) -> Cover | None:
        """Divide all buckets; None if that alone takes more memory than there is."""
        from spectralz.kernels.mini_bucket_cover import cover_by_content, cover_by_scope

        edges, J = model.edges()
        if self.partition == "scope":
            return cover_by_scope(order, edges, self.ibound)
        entries = int(self.max_memory) // ENTRY_BYTES
        return cover_by_content(
            order, edges, J, model.field, self.ibound, self._powers, entries, reporter("dividing buckets")
        )

    def _run_once(self, model: Ising, name: str, cover: Cover) -> Prepared:
        from spectralz.kernels.mini_buckets import Forest, bound_of

        edges, J = model.edges()
        forest = Forest.of_cover(cover, edges)
        potentials = forest.potentials(model.field, J, self._powers)
        return Prepared(name, cover, forest, potentials, bound_of(forest, potentials, reporter("eliminating spins")))

    def _refusal(self, model: Ising, order: list[int], keep: bool) -> str:
        """Say what is needed, and the largest ibound that fits."""
        from spectralz.kernels.mini_bucket_cover import cover_by_scope

        edges = model.edges()[0]
        memory = int(self.max_memory)
        cover = cover_by_scope(order, edges, self.ibound)
        need = f"needs {bytes_in_words(ENTRY_BYTES * cover.entries(keep=keep))} of tables"
        if self.partition == "content":
            need = "needs more memory to choose its mini-buckets by content"
        # A table of half of the memory is the widest that can be thought of.
        widest = min(cover.widest - (self.partition == "scope"), (memory // ENTRY_BYTES).bit_length())
        for ibound in range(widest, 1, -1):
            if ENTRY_BYTES * cover_by_scope(order, edges, ibound).entries(keep=keep) <= memory:
                way_out = f"ibound={ibound} with partition='scope' would fit"
                break
        else:
            way_out = "raise max_memory"
        return f"{self.name} with ibound {self.ibound} {need}; max_memory is {bytes_in_words(memory)}: {way_out}"

    def _details(self, model: Ising, prepared: Prepared, *, keep: bool) -> dict[str, Any]:
        cover = prepared.cover
        return {
            "order": cover.order,
            "order_name": prepared.order_name,
            "buckets": cover.buckets(model.edges()[0]),
            "split": int(np.count_nonzero(cover.counts > 1)),
            "width": cover.widest,
            "memory": ENTRY_BYTES * cover.entries(keep=keep),
        }


def reporter(task: str) -> Callable[[float], None]:
    """Return a function that reports how far ``task`` has come."""
    return lambda fraction: report(task, fraction)


def outcome_of(model: Ising, kind: Kind, bound: Bound, sentence: str, **others: Any) -> Outcome:
    """Add the constants to a bound on log Z and say what it proves."""
    log_z = math.fsum([bound.value, model.offset, *model.diagonal.tolist()])
    # Both the bound and the sum are rounded numbers.
    rounding = bound.rounding + 2.0 * UNIT_ROUNDOFF * (abs(log_z) + abs(bound.value))
    details = {**others.pop("details", {}), "rounding": rounding}
    return Outcome(
        log_z=log_z,
        kind=kind,
        status=Status(sentence, converged=others.pop("converged", True)),
        lower=None if kind is Kind.UPPER_BOUND else log_z - rounding,
        upper=None if kind is Kind.LOWER_BOUND else log_z + rounding,
        details=details,
        **others,
    )


def describe(prepared: Prepared) -> str:
    """Say in a few words how the buckets were divided."""
    split = int(np.count_nonzero(prepared.cover.counts > 1))
    if not split:
        return f"exact: no bucket was split, widest mini-bucket {prepared.cover.widest} spins"
    return (
        f"{split} of {len(prepared.cover.order)} buckets split, {prepared.order_name} order, "
        f"widest mini-bucket {prepared.cover.widest} spins"
    )


def _checked_spins(spins: Any) -> tuple[int, ...]:
    array = np.asarray(spins)
    if array.size == 0:
        return ()
    if array.ndim != 1 or array.dtype.kind not in "iu" or sorted(array.tolist()) != list(range(len(array))):
        names = ", ".join(repr(name) for name in ORDER_NAMES)
        raise OptionError(f"order must be one of {names}, or a list that names each spin from 0 once")
    return tuple(array.tolist())


@dataclass(frozen=True, kw_only=True)
class MiniBucket(MiniBucketMethod):
    """A bound on log Z by mini-bucket elimination.

    Bucket elimination, but where the functions of a spin have more than ``ibound`` spins between them they are divided
    into mini-buckets. The spin is summed out of the first of these; of each other one its maximum (for an upper bound)
    or minimum (for a lower) is taken [1]_. Time and memory grow as 2^ibound; where no bucket has to be split,
    the answer is exact and marked so.

    Parameters
    ----------
    ibound
        Most spins in a mini-bucket's table, before its spin is summed out: tables of up to 2^ibound numbers.
    order
        In which order to eliminate: ``"min-fill"``, ``"min-degree"``, ``"banded"``, ``"best"`` (the one of these that
        gives the tightest bound), or your own, a list of all spins.
    partition
        How to divide a bucket: ``"scope"``, the widest function first and each into the first mini-bucket that has
        room for it; or ``"content"``, merging the pair of functions whose product is furthest from being summed apart
        [2]_, often tighter, but on dense graphs much slower (seconds at 80 spins, minutes at 300).
    bound
        ``"upper"`` or ``"lower"``.
    max_memory
        Most memory for tables, in bytes or like ``"512 MiB"``; refused before they are allocated.

    Raises
    ------
    TooLargeError
        If the tables need more than ``max_memory``.

    See Also
    --------
    WeightedMiniBucket : power sums in all mini-buckets, which can be tightened.

    References
    ----------
    .. [1] R. Dechter, I. Rish, "Mini-buckets: a general scheme for bounded inference", J. ACM 50, 2003.
    .. [2] E. Rollon, J. Larrosa, R. Dechter, "Semiring-based mini-bucket partitioning schemes", IJCAI 2013.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.complete(n=20, strength=0.1, seed=0)
    >>> truth = sz.log_z(model, "exact").log_z
    >>> above, below = sz.log_z(model, sz.MiniBucket()), sz.log_z(model, sz.MiniBucket(bound="lower"))
    >>> below.lower < truth < above.upper
    True
    >>> sz.log_z(model, sz.MiniBucket(ibound=20)).kind
    <Kind.EXACT: 'exact'>
    """

    bound: str = "upper"

    name: ClassVar[str] = "mbe"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.bound, "bound", BOUNDS)

    def _powers(self, count: int) -> tuple[float, float]:
        from spectralz.kernels.mini_buckets import MINIMUM

        return 1.0, 0.0 if self.bound == "upper" else MINIMUM

    def _looseness(self, prepared: Prepared) -> float:
        return prepared.bound.value if self.bound == "upper" else -prepared.bound.value

    def _solve(self, model: Ising) -> Outcome:
        prepared = self._prepare(model, keep=False)
        kind = Kind.UPPER_BOUND if self.bound == "upper" else Kind.LOWER_BOUND
        return outcome_of(
            model,
            Kind.EXACT if prepared.is_exact else kind,
            prepared.bound,
            describe(prepared),
            details=self._details(model, prepared, keep=False),
        )
