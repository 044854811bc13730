"""What mini-bucket methods share: which functions go together, in which order, at what cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from spectralz._support.options import bytes_in_words
from spectralz._support.progress import report, reporter_of
from spectralz.errors import OptionError, TooLargeError
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.parts.outcome import Outcome
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from spectralz.kernels.mini_buckets.cover import Cover
    from spectralz.kernels.mini_buckets.passes import Bound, Forest, Potentials
    from spectralz.model import Ising

__all__ = ["ORDER_NAMES", "PARTITIONS", "Division", "Prepared", "describe", "outcome_of"]

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

    def details(self, model: Ising, *, keep: bool) -> dict[str, Any]:
        """Return what a result should tell of it."""
        cover = self.cover
        return {
            "order": cover.order,
            "order_name": self.order_name,
            "buckets": cover.buckets(model.edges()[0]),
            "split": int(np.count_nonzero(cover.counts > 1)),
            "width": cover.widest,
            "memory": ENTRY_BYTES * cover.entries(keep=keep),
        }


class Options(Protocol):
    """The options that mini-bucket methods have in common."""

    name: ClassVar[str]

    @property
    def ibound(self) -> int: ...
    @property
    def order(self) -> str | Sequence[int]: ...
    @property
    def partition(self) -> str: ...
    @property
    def max_memory(self) -> int | str: ...


@dataclass(frozen=True)
class Division:
    """How buckets are to be divided.

    Attributes
    ----------
    options
        The method that asks.
    powers
        Takes the number of a spin's mini-buckets; returns the weight of the first, and that of each other one.
    looseness
        What the order "best" has the least of.
    """

    options: Options
    powers: Callable[[int], tuple[float, float]]
    looseness: Callable[[Prepared], float]

    @property
    def max_memory(self) -> int:
        """Bytes that tables may take."""
        return int(self.options.max_memory)

    def prepare(self, model: Ising, *, keep: bool) -> Prepared:
        """Divide the buckets along the order, or along the one of several that gives the tightest bound.

        ``keep`` says whether there must be room for all tables at once.
        """
        orders = self._orders(model)
        found: list[tuple[float, Prepared]] = []
        for k, (name, order) in enumerate(orders.items()):
            cover = self._cover(model, order)
            if cover is not None and ENTRY_BYTES * cover.entries(keep=keep) <= self.max_memory:
                prepared = self._run_once(model, name, cover)
                if prepared.is_exact or len(orders) == 1:
                    return prepared
                found.append((self.looseness(prepared), prepared))
            report("trying orders", (k + 1) / len(orders))
        if not found:
            raise TooLargeError(self._refusal(model, next(iter(orders.values())), keep))
        return min(found, key=lambda pair: pair[0])[1]

    def _orders(self, model: Ising) -> dict[str, list[int]]:
        """Return the orders to try, by name."""
        from spectralz.kernels.elimination.order import ORDERS, adjacency_of
        from spectralz.kernels.mini_buckets.cover import order_of

        wanted = self.options.order
        if not isinstance(wanted, str):
            if len(wanted) != model.n:
                raise OptionError(f"order names {len(wanted)} spins; the model has {model.n}, name each once")
            return {"given": list(wanted)}
        edges, J = model.edges()
        adjacency = adjacency_of(model.n, edges)
        components = [spins.tolist() for spins in model.components()]
        strengths = np.zeros(model.n)
        np.add.at(strengths, edges, np.abs(J)[:, None])
        names = [*ORDERS] if wanted == "best" else [wanted]
        if wanted == "best" and sum(len(spins) > 1 for spins in components) > 1:
            names.append("narrowest")  # exact if every component is so by any of the orders
        orders: dict[str, list[int]] = {}
        for name in names:
            order = order_of(name, components, adjacency, strengths)
            if order not in orders.values():
                orders[name] = order
        return orders

    def _cover(self, model: Ising, order: list[int]) -> Cover | None:
        """Divide all buckets; None if that alone takes more memory than there is."""
        from spectralz.kernels.mini_buckets.cover import cover_by_content, cover_by_scope

        edges, J = model.edges()
        if self.options.partition == "scope":
            return cover_by_scope(order, edges, self.options.ibound)
        entries = self.max_memory // ENTRY_BYTES
        return cover_by_content(
            order, edges, J, model.field, self.options.ibound, self.powers, entries, reporter_of("dividing buckets")
        )

    def _run_once(self, model: Ising, name: str, cover: Cover) -> Prepared:
        from spectralz.kernels.mini_buckets.passes import Forest, bound_of

        edges, J = model.edges()
        forest = Forest.of_cover(cover, edges)
        potentials = forest.potentials(model.field, J, self.powers)
        return Prepared(name, cover, forest, potentials, bound_of(forest, potentials, reporter_of("eliminating spins")))

    def _refusal(self, model: Ising, order: list[int], keep: bool) -> str:
        """Say what is needed, and the largest ibound that fits."""
        from spectralz.kernels.mini_buckets.cover import cover_by_scope

        edges = model.edges()[0]
        memory = self.max_memory
        cover = cover_by_scope(order, edges, self.options.ibound)
        need = f"needs {bytes_in_words(ENTRY_BYTES * cover.entries(keep=keep))} of tables"
        if self.options.partition == "content":
            need = "needs more memory to choose its mini-buckets by content"
        # A table of half of the memory is the widest that can be thought of.
        widest = min(cover.widest - (self.options.partition == "scope"), (memory // ENTRY_BYTES).bit_length())
        for ibound in range(widest, 1, -1):
            if ENTRY_BYTES * cover_by_scope(order, edges, ibound).entries(keep=keep) <= memory:
                way_out = f"ibound={ibound} with partition='scope' would fit"
                break
        else:
            way_out = "raise max_memory"
        who = f"{self.options.name} with ibound {self.options.ibound}"
        return f"{who} {need}; max_memory is {bytes_in_words(memory)}: {way_out}"


def outcome_of(model: Ising, kind: Kind, bound: Bound, sentence: str, **others: Any) -> Outcome:
    """Add the constants to a bound on log Z and say what it proves."""
    log_z = bound.value + model.constant
    # Both the bound and the sum are rounded numbers.
    rounding = bound.rounding + 2.0 * UNIT_ROUNDOFF * (abs(log_z) + abs(bound.value)) + model.rounding
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
