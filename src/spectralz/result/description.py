"""Size, strength and structure of a model, and the cost of an exact answer."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from spectralz.result.kinds import Shown


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Description(dict[str, Any], Shown):  # type: ignore[misc]  # without a hash, as any dict
    """Hold what :func:`spectralz.describe` found out about a model; also a dict from these names to their values.

    Attributes
    ----------
    spins, edges, components, largest_component
        Their numbers, and the number of spins in the largest component.
    density, degree_mean, degree_max
        Share of all pairs that are coupled; mean and largest number of neighbors of a spin.
    coupling_mean, coupling_max, field_mean, field_max
        Sizes |A_ij| of the couplings and |theta_i| of the fields.
    offset, trace
        The constants: the offset, and the trace of the coupling.
    terms, largest_term, term_mean, term_max
        Number of terms of three and more spins, most spins of one, and sizes of their weights. Edges then are the pairs
        of spins that share a term.
    constraints, presolve
        Number of constraints, and what presolving makes of them. Edges are also the pairs of spins that share one; the
        treewidth and the cost are those of the model that presolving leaves.
    storage
        How the coupling is kept.
    is_forest
        Whether the graph has no loop.
    treewidth_lower, treewidth_upper
        The treewidth lies between them; the second is None if it would take long to find.
    exact_order, exact_memory, exact_terms
        The best elimination order found, its tables in bytes and its terms; None if no machine could do it.

    Examples
    --------
    >>> import spectralz as sz
    >>> print(sz.describe(sz.Ising.from_edges(3, [(0, 1), (1, 2)], [1.0, -2.0])))
    spins         3
    edges         2 (density 0.667, kept sparse)
    degree        mean 1.33, largest 2
    coupling |A|  mean 0.75, largest 1 (an edge counted once weighs J = 2 A)
    field         mean size 0, largest 0
    constant      0
    components    1, the largest of 3 spins, a forest
    treewidth     1
    exact answer  ... of tables by ... order, ... terms, under a second
    """

    spins: int
    edges: int
    density: float
    degree_mean: float
    degree_max: int
    coupling_mean: float
    coupling_max: float
    field_mean: float
    field_max: float
    offset: float
    trace: float
    storage: str
    components: int
    largest_component: int
    is_forest: bool
    treewidth_lower: int
    treewidth_upper: int | None
    exact_order: str | None
    exact_memory: int | None
    exact_terms: int | None
    terms: int = 0
    largest_term: int = 0
    term_mean: float = 0.0
    term_max: float = 0.0
    constraints: int = 0
    presolve: str = ""

    def __post_init__(self) -> None:
        self.update({entry.name: getattr(self, entry.name) for entry in fields(self)})

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for ``json.dumps``."""
        return dict(self)
