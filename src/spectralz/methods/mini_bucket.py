"""Mini-bucket elimination: a bound on log Z at a cost that ``ibound`` sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from spectralz._support.options import checked_bytes, choice, count, option, spin_order
from spectralz.methods.base import Method, Outcome
from spectralz.parts.elimination.constrained import with_tables
from spectralz.parts.mini_buckets.bounds import ORDER_NAMES, PARTITIONS, SIDES, Division, describe, outcome_of
from spectralz.result import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spectralz.model import Model


@dataclass(frozen=True, kw_only=True)
class MiniBucket(Method):
    r"""Bound log Z from above or below by mini-bucket elimination.

    This is bucket elimination, but if the functions of a spin have more than ``ibound`` spins in total, they are
    divided into mini-buckets. The spin x is summed out of the first of them, f. In each other one, g, the maximum over
    the spin (for an upper bound) or the minimum (for a lower bound) is taken [1]_:

    .. math::

       \sum_x f(x) \, \min_x g(x) \le \sum_x f(x) \, g(x) \le \sum_x f(x) \, \max_x g(x).

    Time and memory grow as 2^ibound. If no bucket has to be split, the answer is exact and marked so.

    Parameters
    ----------
    ibound
        Most spins in a mini-bucket's table, before its spin is summed out: tables of up to 2^ibound numbers. At least
        as many as the largest term of the model has.
    order
        The order of elimination: ``"narrow"`` (fewest neighbors first, counting only what fits into ``ibound``),
        ``"min-fill"``, ``"min-degree"``, ``"banded"``, ``"best"`` (whichever of these gives the tightest bound; with
        more than 5,000 spins only narrow), or your own, a list of all spins.
    partition
        How to divide a bucket: ``"scope"`` puts each function, the widest first, into the first mini-bucket with room
        for it; ``"content"`` merges the pair of functions for which separate sums lose most [2]_. This is often
        tighter, but on dense graphs much slower (seconds at 80 spins, minutes at 300).
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
    WeightedMiniBucket : uses power sums in all mini-buckets, and can be tightened.

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

    ibound: int = option(10, count(least=2))
    order: str | Sequence[int] = option("best", spin_order(ORDER_NAMES))
    partition: str = option("scope", choice(PARTITIONS))
    max_memory: int | str = option(4 * 2**30, checked_bytes)
    bound: str = option("upper", choice(SIDES))

    name: ClassVar[str] = "mbe"
    takes_terms: ClassVar[bool] = True
    takes_constraints: ClassVar[bool] = True

    def _powers(self, count: int) -> tuple[float, float]:
        from spectralz.kernels.mini_buckets.passes import MINIMUM

        return 1.0, 0.0 if self.bound == "upper" else MINIMUM

    def _solve(self, model: Model) -> Outcome:
        narrow = with_tables(model)
        prepared = Division(self, self._powers, is_lower=self.bound == "lower").prepare(narrow, keep=False)[0]
        kind = Kind.UPPER_BOUND if self.bound == "upper" else Kind.LOWER_BOUND
        kind = Kind.EXACT if prepared.is_exact else kind
        details = prepared.details(narrow, keep=False)
        return outcome_of(narrow, kind, prepared.bound, describe(prepared), details=details)
