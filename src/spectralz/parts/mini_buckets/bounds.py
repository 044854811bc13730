"""Shared parts of mini-bucket methods: grouping of functions, order, and cost."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from spectralz._support import clock, costs, deadline
from spectralz._support.options import bytes_in_words
from spectralz._support.progress import report, reporter_of
from spectralz._support.threads import NO_MATRICES, using_threads
from spectralz.errors import OptionError, TooLargeError, catching_interrupt
from spectralz.kernels import UNIT_ROUNDOFF
from spectralz.parts.elimination.constrained import zeros_of
from spectralz.parts.outcome import Outcome, impossible_outcome
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from spectralz.kernels.mini_buckets.cover import Cover
    from spectralz.kernels.mini_buckets.passes import Bound, Forest, Potentials
    from spectralz.kernels.mini_buckets.tightening import Tightening
    from spectralz.kernels.terms import Terms
    from spectralz.model import IntArray, Model

ORDER_NAMES = ("best", "narrow", "min-degree", "min-fill", "banded")
PARTITIONS = ("scope", "content")
SIDES = ("upper", "lower")
ENTRY_BYTES = 8
# Up to this many spins a result lists the order and all mini-buckets, which take a kilobyte each.
MOST_LISTED = 100_000
# Plain bounds predict little about tightened ones. An order is tried if its plain bound is looser than the best by at
# most this share of what the first rounds gain there.
ROUNDS_FOR_AN_ORDER = 5
WORTH_TRYING = 0.5


@dataclass(frozen=True)
class Prepared:
    """One elimination order with its mini-buckets, their numbers, and the bound of one pass."""

    order_name: str
    cover: Cover
    forest: Forest
    potentials: Potentials
    bound: Bound

    @property
    def is_exact(self) -> bool:
        """Whether no bucket had to be split."""
        return not self.cover.splits

    def details(self, model: Model, *, keep: bool) -> dict[str, Any]:
        """Return its entries for the details of a result."""
        cover = self.cover
        listed: dict[str, Any] = {}
        if model.n <= MOST_LISTED:
            listed = {"order": cover.order.tolist(), "buckets": cover.buckets(model.edges()[0], _scopes_of(model))}
        return {
            **listed,
            "order_name": self.order_name,
            "split": int(np.count_nonzero(cover.counts > 1)),
            "width": cover.widest,
            "memory": int(ENTRY_BYTES * cover.entries(keep=keep)),
        }


class _Options(Protocol):
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
        The options of the method.
    powers
        Takes the number of a spin's mini-buckets; returns the weight of the first, and that of each other one.
    is_lower
        Whether the bound is one from below; the order "best" is the tightest.
    revised
        Changes the initial numbers of the mini-buckets, if needed.
    """

    options: _Options
    powers: Callable[[int], tuple[float, float]]
    is_lower: bool
    revised: Callable[[Forest, Potentials], Potentials] | None = None

    @property
    def max_memory(self) -> int:
        """Bytes that tables may take."""
        return int(self.options.max_memory)

    def prepare(self, model: Model, *, keep: bool) -> list[Prepared]:
        """Divide the buckets along one order or each of several; the order with the tightest bound comes first.

        ``keep`` says whether there must be room for all tables at once.
        """
        self._refuse_large_terms(model)
        orders = self._orders(model)
        candidates: list[Prepared] = []
        for k, (name, order) in enumerate(orders.items()):
            cover = self._cover(model, order)
            if cover is not None and ENTRY_BYTES * cover.entries(keep=keep) <= self.max_memory:
                prepared = self._run_once(model, name, cover)
                if prepared.is_exact:
                    return [prepared]
                candidates.append(prepared)
            report("trying orders", (k + 1) / len(orders))
        if not candidates:
            raise TooLargeError(self._refusal(model, next(iter(orders.values())), keep))
        sign = -1.0 if self.is_lower else 1.0
        return sorted(candidates, key=lambda prepared: sign * prepared.bound.value)

    def _refuse_large_terms(self, model: Model) -> None:
        """Refuse a model with a term that no mini-bucket can hold."""
        name, ibound, largest = self.options.name, self.options.ibound, _scopes_of(model).largest
        if largest > ibound:
            raise OptionError(
                f"{name} with ibound {ibound} cannot hold terms of {largest} spins: give ibound={largest} or more"
            )

    def _orders(self, model: Model) -> dict[str, IntArray]:
        """Return the orders to try, by name."""
        from spectralz.kernels.mini_buckets.order import orders_of

        wanted = self.options.order
        if not isinstance(wanted, str):
            if len(wanted) != model.n:
                raise OptionError(f"order names {len(wanted)} spins; the model has {model.n}, name each once")
            return {"given": np.array(wanted, dtype=np.int64)}
        (edges, J), higher = model.edges(), model.higher
        strengths = np.zeros(model.n)
        np.add.at(strengths, edges.ravel(), np.repeat(np.abs(J), 2))
        np.add.at(strengths, higher.spin, np.repeat(np.abs(higher.weight), higher.sizes))
        return orders_of(wanted, model.components(), model.graph, strengths, self.options.ibound)

    def _cover(self, model: Model, order: IntArray) -> Cover | None:
        """Divide all buckets; None if that alone takes more than the available memory."""
        from spectralz.kernels.mini_buckets.cover import cover_by_content, cover_by_scope

        edges, J = model.edges()
        if self.options.partition == "scope":
            return cover_by_scope(order, edges, self.options.ibound, _scopes_of(model))
        entries, tell = self.max_memory // ENTRY_BYTES, reporter_of("dividing buckets")
        ibound, powers = self.options.ibound, self.powers
        higher, zeros = model.higher, zeros_of(model)
        return cover_by_content(order, edges, J, model.field, ibound, powers, entries, tell, higher, zeros)

    def _run_once(self, model: Model, name: str, cover: Cover) -> Prepared:
        from spectralz.kernels.mini_buckets.passes import Forest, bound_of

        edges, J = model.edges()
        forest = Forest.of_cover(cover, edges, model.higher, zeros_of(model))
        potentials = forest.potentials(model.field, J, self.powers)
        if self.revised is not None and cover.splits:
            potentials = self.revised(forest, potentials)
        return Prepared(name, cover, forest, potentials, bound_of(forest, potentials, reporter_of("eliminating spins")))

    def _refusal(self, model: Model, order: IntArray, keep: bool) -> str:
        """Return the error that names what is needed and the largest ibound that fits."""
        from spectralz.kernels.mini_buckets.cover import cover_by_scope

        edges, terms = model.edges()[0], _scopes_of(model)
        memory = self.max_memory
        cover = cover_by_scope(order, edges, self.options.ibound, terms)
        need = f"needs {bytes_in_words(int(ENTRY_BYTES * cover.entries(keep=keep)))} of tables"
        if self.options.partition == "content":
            need = "needs more memory to choose its mini-buckets by content"
        # No table can take more than half of the memory.
        widest = min(cover.widest - (self.options.partition == "scope"), (memory // ENTRY_BYTES).bit_length())
        for ibound in range(widest, max(terms.largest, 2) - 1, -1):
            if ENTRY_BYTES * cover_by_scope(order, edges, ibound, terms).entries(keep=keep) <= memory:
                way_out = f"ibound={ibound} with partition='scope' would fit"
                break
        else:
            way_out = "raise max_memory"
        who = f"{self.options.name} with ibound {self.options.ibound}"
        return f"{who} {need}; max_memory is {bytes_in_words(memory)}: {way_out}"


class WeightedBound:
    """A bound of a model by weighted mini-buckets, from above or below, which can be tightened round by round.

    Parameters
    ----------
    model
        The model.
    candidates
        Its buckets divided along one order or several; the first has the tightest bound.
    is_lower
        Whether it is a lower bound.
    keep
        Whether there is room for tightening.
    """

    def __init__(self, model: Model, candidates: list[Prepared], *, is_lower: bool, keep: bool = True) -> None:
        self.model, self.candidates, self.is_lower, self.keep = model, candidates, is_lower, keep
        self.prepared = candidates[0]
        self.interrupted = False
        self._tightening: Tightening | None = None

    @classmethod
    def of_model(cls, model: Model, options: _Options, *, is_lower: bool, keep: bool = True) -> WeightedBound:
        """Divide the buckets, and run through them once."""
        # Choosing the positive power takes a pass that keeps its tables.
        keep = keep or is_lower
        division = Division(options, equal_powers, is_lower, _lower_powers if is_lower else None)
        candidates = division.prepare(model, keep=keep)
        return cls(model, candidates, is_lower=is_lower, keep=keep)

    def from_below(self) -> WeightedBound:
        """Return the lower bound of the same mini-buckets."""
        from spectralz.kernels.mini_buckets.passes import bound_of

        prepared = self.prepared
        potentials = _lower_powers(prepared.forest, prepared.potentials)
        bound = bound_of(prepared.forest, potentials, reporter_of("eliminating spins"))
        return WeightedBound(self.model, [replace(prepared, potentials=potentials, bound=bound)], is_lower=True)

    @property
    def is_exact(self) -> bool:
        """Whether no bucket had to be split."""
        return self.prepared.is_exact

    @property
    def value(self) -> float:
        """The current bound, without constants."""
        return self._tightening.value if self._tightening else self.prepared.bound.value

    @property
    def rounds(self) -> int:
        """Number of rounds made."""
        return self._tightening.rounds if self._tightening else 0

    @property
    def is_at_rest(self) -> bool:
        """Whether more rounds would gain nothing."""
        return self.is_exact or (self._tightening is not None and self._tightening.is_at_rest)

    @property
    def potentials(self) -> Potentials:
        """The numbers that give the bound."""
        return self._tightening.result().potentials if self._tightening else self.prepared.potentials

    def run(self, rounds: int) -> None:
        """Tighten for up to this many more rounds; fewer at convergence, if the time is up, or after an interrupt."""
        if self.is_exact or rounds < 1:
            return
        until = self.rounds + rounds
        # Sums over long vectors do not depend on the number of threads only if they are computed in one.
        with catching_interrupt() as interrupt, using_threads(None, NO_MATRICES):
            if self._tightening is None:
                self._begin(min(rounds, ROUNDS_FOR_AN_ORDER))
            tightening = self._tightening
            if tightening is not None:
                tightening.run(until - self.rounds, lambda _: self._count_round(until))
        self.interrupted |= interrupt.happened

    def _count_round(self, until: int) -> None:
        clock.charge(costs.BUCKET_ENTRY * self.prepared.cover.entries(keep=True))
        report("tightening the bound", self.rounds / until)

    def _begin(self, rounds: int) -> None:
        """Tighten along one order, then along others that may become tighter; keep the tightest."""
        from spectralz.kernels.mini_buckets.tightening import Tightening

        sign = -1.0 if self.is_lower else 1.0
        plain, gain = sign * self.prepared.bound.value, 0.0
        for k, prepared in enumerate(self.candidates):
            is_hopeless = k > 0 and sign * prepared.bound.value - plain > WORTH_TRYING * gain
            if is_hopeless or (k > 0 and deadline.is_past()):
                continue
            new = Tightening(prepared.forest, prepared.potentials, prepared.bound)
            if self._tightening is None:
                self._tightening = new
            new.run(rounds, lambda _: None)
            clock.charge(costs.BUCKET_ENTRY * new.rounds * prepared.cover.entries(keep=True))
            report("trying orders", (k + 1) / len(self.candidates))
            if sign * new.value < sign * self._tightening.value:
                self.prepared, self._tightening = prepared, new
            gain = max(gain, plain - sign * new.value)
        self.candidates = [self.prepared]

    def outcome(self, *, details: bool = True) -> Outcome:
        """Return the current bound."""
        prepared, bound = self.prepared, self.prepared.bound
        entries = prepared.details(self.model, keep=self.keep) if details else {}
        sentence, potentials = describe(prepared), prepared.potentials
        if prepared.is_exact:
            return outcome_of(self.model, Kind.EXACT, bound, sentence, iterations=0, details={**entries, "gain": 0.0})
        if self._tightening is not None:
            tightened = self._tightening.result()
            potentials = tightened.potentials
            bound = replace(tightened.bound, rounding=tightened.bound.rounding + tightened.rounding)
            ending = "and converged" if self.is_at_rest else "and had not yet converged"
            sentence = f"{sentence}; optimized for {self.rounds} rounds {ending}"
        entries = {**entries, "gain": abs(prepared.bound.value - bound.value)}
        if details and self.model.n <= MOST_LISTED:
            entries["weights"] = _weights_by_bucket(prepared, potentials)
        return outcome_of(
            self.model,
            Kind.LOWER_BOUND if self.is_lower else Kind.UPPER_BOUND,
            bound,
            sentence,
            converged=self._tightening is None or self.is_at_rest,
            iterations=self.rounds,
            interrupted=self.interrupted,
            details=entries,
        )


def equal_powers(count: int) -> tuple[float, float]:
    """Give the mini-buckets of a spin equal weights."""
    return 1.0 / count, 1.0 / count


def _lower_powers(forest: Forest, potentials: Potentials) -> Potentials:
    from spectralz.kernels.mini_buckets.tightening import lower_powers

    return lower_powers(forest, potentials)


def _weights_by_bucket(prepared: Prepared, potentials: Potentials) -> list[list[float]]:
    """Return the weights of each spin's mini-buckets, in the order of ``details["buckets"]``."""
    power = np.empty(prepared.forest.count)
    power[prepared.cover.sequence] = potentials.power
    listed, ends = power.tolist(), np.cumsum(prepared.cover.counts).tolist()
    return [listed[begin:end] for begin, end in itertools.pairwise([0, *ends])]


def outcome_of(model: Model, kind: Kind, bound: Bound, sentence: str, **others: Any) -> Outcome:
    """Add the constants to a bound on log Z and return what it proves."""
    from spectralz.kernels.mini_buckets.zeros import NOTHING

    if bound.value < NOTHING or (kind is not Kind.LOWER_BOUND and bound.value + bound.rounding < _lightest(model)):
        return _of_nothing(kind, sentence)
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


def _of_nothing(kind: Kind, sentence: str) -> Outcome:
    """Return what a bound of -inf proves: from above that no state has any weight, from below nothing."""
    if kind is Kind.LOWER_BOUND:
        status = Status(f"{sentence}; this says nothing, as a minimum over states is zero", converged=False)
        return Outcome(log_z=-math.inf, kind=kind, status=status, lower=-math.inf)
    return impossible_outcome(sentence)


def _lightest(model: Model) -> float:
    """Return a bound on the log-weight of every state that satisfies the constraints, if there are any."""
    if not model.constraints:
        return -math.inf
    return -1.01 * (float(np.abs(model.field).sum() + np.abs(model.edges()[1]).sum()) + model.higher.total) - 1.0


def _scopes_of(model: Model) -> Terms:
    """Return the terms of a narrowed model, and the scopes of its constraints after them."""
    return zeros_of(model).with_terms(model.higher)


def describe(prepared: Prepared) -> str:
    """Describe in a few words how the buckets were divided."""
    split = int(np.count_nonzero(prepared.cover.counts > 1))
    if not split:
        return f"exact: no bucket was split, widest mini-bucket {prepared.cover.widest} spins"
    return (
        f"{split} of {len(prepared.cover.order)} buckets split, {prepared.order_name} order, "
        f"widest mini-bucket {prepared.cover.widest} spins"
    )
