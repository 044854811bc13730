"""Exact sums over the states that constraints allow, as whole numbers of any size: planned, then done modulo numbers.

The kernel is ``kernels/elimination/residues.py``. A pass with rounded numbers says how many moduli are needed; the
passes modulo each of them are independent, and are done in threads.
"""

from __future__ import annotations

from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import TYPE_CHECKING

from spectralz._support import clock, costs
from spectralz._support.deadline import refuse_if_past, stoppable
from spectralz._support.progress import report
from spectralz._support.threads import thread_count
from spectralz.errors import TooLargeError
from spectralz.kernels.elimination.residues import MODULUS_BITS, Sum, from_residues, moduli
from spectralz.parts.elimination.constrained import program_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from spectralz._support.deadline import Deadline
    from spectralz.kernels.elimination.tree import EliminationTree
    from spectralz.model import Model

ENTRY_BYTES = 8
WORK, SECONDS_PER_REPORT = "counting", 0.1
# Numbers of so many bits take two moduli: a pass in advance would not save one.
FEW_BITS = 2 * MODULUS_BITS - 2


def sum_of_tree(
    tree: EliminationTree,
    model: Model,
    weights: Mapping[int, tuple[int, int]],
    deadline: Deadline,
    max_memory: int,
) -> tuple[int, str]:
    """Return the sum over all states that a model's constraints allow of the product of their spins' weights.

    The model has no terms, and its constraints are tables. Weights are whole numbers, 0 or more, for the lower and the
    upper value of some spins; others have 1 for each. Beside the sum: how it was found.

    Raises
    ------
    TooLargeError
        If it is predicted to take longer than until the deadline.
    LateError
        If it took longer than predicted.
    """
    whole = Sum(program_of(tree, model), {k: weights[i] for k, i in enumerate(tree.order) if i in weights})
    with deadline.in_force():
        _require(whole, 1, deadline)
        is_small = whole.most_bits <= FEW_BITS
        chosen = moduli(whole.most_bits if is_small else whole.bits(lambda _: refuse_if_past(WORK)))
        _require(whole, len(chosen), deadline)
        value = from_residues(_residues(whole, chosen, max_memory), chosen)
    numbers = "1 number" if len(chosen) == 1 else f"{len(chosen)} numbers"
    return value, f"eliminated {len(tree.order)} spins modulo {numbers}, widest table 2^{tree.width} entries"


def seconds_of_tree(tree: EliminationTree, model: Model, passes: float) -> float:
    """Return how long so many passes are predicted to take."""
    return _seconds(Sum(program_of(tree, model), {}), passes)


def _seconds(whole: Sum, passes: float) -> float:
    return passes * whole.products * costs.RESIDUE_ENTRY / clock.OPERATIONS_PER_SECOND


def order_by_tables(model: Model) -> list[int]:
    """Return the spins in the order in which a front leaves them behind that sweeps over the tables as numbered.

    Where a spin has few tables, as an edge of a graph with a table at each node, this front is narrower than that of
    orders which look at the spins alone.
    """
    tables = sorted(model.constraints, key=lambda table: table.scope[0])
    last = {i: k for k, table in enumerate(tables) for i in table.scope}
    return sorted(range(model.n), key=last.__getitem__)


def _require(whole: Sum, passes: int, deadline: Deadline) -> None:
    """Refuse what is predicted to take longer than what is left."""
    seconds = _seconds(whole, passes)
    if seconds > deadline.left:
        raise TooLargeError(
            f"counting by elimination would take about {clock.in_words(seconds)}, with tables of up to "
            f"2^{int(whole.program.width.max(initial=0))} entries, and {clock.in_words(deadline.left)} are left"
        )


def _residues(whole: Sum, chosen: Sequence[int], max_memory: int) -> list[int]:
    """Return the remainders of the sum, by passes in threads."""
    threads = max(min(thread_count(), len(chosen), max_memory // max(ENTRY_BYTES * whole.program.peak, 1)), 1)
    done = [0.0] * len(chosen)

    def one(k: int) -> int:
        def heed(fraction: float) -> None:
            done[k] = fraction
            refuse_if_past(WORK)

        heed(0.0)
        return whole.residue(chosen[k], heed)

    with stoppable() as stop, ThreadPoolExecutor(threads) as pool:
        try:
            passes = [pool.submit(copy_context().run, one, k) for k in range(len(chosen))]
            while True:
                finished, waiting = wait(passes, SECONDS_PER_REPORT, FIRST_EXCEPTION)
                if not waiting or any(one_pass.exception() is not None for one_pass in finished):
                    return [one_pass.result() for one_pass in passes]
                report(WORK, sum(done) / len(done))
        finally:
            stop.set()
