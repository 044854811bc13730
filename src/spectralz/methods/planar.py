"""Beyond the paper: planar models without fields at any size, by Pfaffians."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spectralz._support.options import bytes_in_words, checked_bytes, option
from spectralz.errors import ModelError, TooLargeError
from spectralz.methods.base import MarginalOutcome, Method, Outcome
from spectralz.parts.outcome import LARGEST_TRUSTED_ROUNDING
from spectralz.parts.planar.graph import couplings_of, planar_graph
from spectralz.parts.planar.sums import bytes_of, solve
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from spectralz.model import FloatArray, Ising
    from spectralz.parts.planar.graph import PlanarGraph
    from spectralz.parts.planar.sums import Solved


@dataclass(frozen=True, kw_only=True)
class Planar(Method):
    r"""Compute log Z and means of a planar model without fields, to rounding, at hundreds of thousands of spins.

    A graph is planar if it can be drawn in the plane without crossings. A state of the spins breaks an even number of
    the edges around each face, which is a perfect matching of a graph made from the faces; and the sum over all perfect
    matchings of a planar graph is the root of a determinant, its Pfaffian (Kasteleyn [1]_, Fisher [2]_):

    .. math::

       Z = 2 e^{\sum_e J_e s_e} \operatorname{Pf} K,

    with s_e the product of the spins of edge e in a reference state. The faces are merged two by two, and the nodes
    between them eliminated. Time grows as n^1.5 and memory as n log n. The reference state is one of large weight,
    which keeps digits at low temperature. All is done in
    numbers of 106 bits; ``std_error`` is the scale of the rounding error, as other numbers and noise show it.

    Fields are possible where the graph remains planar with one more spin that is coupled to all spins with a field.

    Parameters
    ----------
    max_memory
        Most memory for the matrices, in bytes or like ``"512 MiB"``.

    Raises
    ------
    ModelError
        If the graph is not planar.
    TooLargeError
        If the matrices do not fit, or if couplings beyond 150 compete.
    MissingDependencyError
        If networkx is not installed; it is in the extra ``networkx``.

    See Also
    --------
    Exact : any graph of small treewidth, with samples.

    References
    ----------
    .. [1] Kasteleyn, "Dimer statistics and phase transitions", J. Math. Phys. 4, 1963.
    .. [2] Fisher, "On the dimer solution of planar Ising models", J. Math. Phys. 7, 1966.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.square(40, 40, strength=1.0, seed=0)
    >>> result = sz.log_z(model, "planar")
    >>> result.trusted, result.std_error < 1e-9
    (True, True)
    """

    max_memory: int | str = option(4 * 2**30, checked_bytes)

    name: ClassVar[str] = "planar"

    def _solve(self, model: Ising) -> Outcome:
        return self.solve_graph(model, planar_graph(model))

    def solve_graph(self, model: Ising, graph: PlanarGraph) -> Outcome:
        """Sum over a graph that has been drawn."""
        return self._outcome(model, graph, self._solved(model, graph, with_means=False))

    def _solve_marginals(self, model: Ising) -> MarginalOutcome:
        return self.solve_marginals_of_graph(model, planar_graph(model))

    def solve_marginals_of_graph(self, model: Ising, graph: PlanarGraph) -> MarginalOutcome:
        """Sum over a graph that has been drawn, and return its means."""
        refuse_distant(model, graph)
        solved = self._solved(model, graph, with_means=True)
        outcome = self._outcome(model, graph, solved)
        mean = means_of(model, graph, solved)
        error = np.where(model.field == 0.0, 0.0, solved.mean_error)
        pair_mean = solved.pair_mean[: model.edge_count]
        return MarginalOutcome(
            probability=np.column_stack([1.0 - mean, 1.0 + mean]) / 2.0,
            mean=mean,
            pair_mean=pair_mean,
            kind=Kind.ESTIMATE,
            outcome=outcome,
            std_error=error,
            pair_std_error=np.full(len(pair_mean), solved.mean_error + 2.0 * model.rounding_of_terms),
        ).within_limits()

    def _solved(self, model: Ising, graph: PlanarGraph, *, with_means: bool) -> Solved:
        assert isinstance(self.max_memory, int)
        need = bytes_of(graph, with_means=with_means)
        if need > self.max_memory:
            raise TooLargeError(
                f"planar needs {bytes_in_words(need)} of matrices and max_memory is {bytes_in_words(self.max_memory)}: "
                "raise it"
            )
        return solve(graph, couplings_of(model), with_means=with_means)

    def _outcome(self, model: Ising, graph: PlanarGraph, solved: Solved) -> Outcome:
        if math.isinf(solved.error):
            raise TooLargeError('planar lost all digits to rounding: the model is too cold. Ask for method "auto"')
        error = solved.error + model.rounding
        widest, cities = graph.merges.widest, len(graph.cities.start) - 1
        words = f"merged {cities} faces, in regions of up to {widest} bonds"
        is_trusted = error <= LARGEST_TRUSTED_ROUNDING
        if not is_trusted:
            words += f"; the model is so cold that rounding may change log Z by {error:.1g}"
        return Outcome(
            log_z=math.fsum([solved.log_z, model.constant]),
            kind=Kind.ESTIMATE,
            status=Status(words, converged=is_trusted),
            std_error=error,
            trusted=is_trusted,
            details={"faces": cities, "widest": widest, "components": graph.pieces},
        )


def means_of(model: Ising, graph: PlanarGraph, solved: Solved) -> FloatArray:
    """Return the means of spins: 0 in components without fields."""
    mean = np.zeros(model.n)
    mean[graph.edges[model.edge_count :, 0]] = solved.pair_mean[model.edge_count :]
    return mean


def refuse_distant(model: Ising, graph: PlanarGraph) -> None:
    """Refuse means of spins without a field in a component with fields: they are those of distant pairs."""
    if graph.has_fields:
        biased = model.field != 0.0
        for spins in model.components():
            if biased[spins].any() and not biased[spins].all():
                raise ModelError(
                    f"planar gives means of spins that have a field; {int((~biased[spins]).sum())} have none, beside "
                    'others that have. Ask for log_z, or for method "auto"'
                )
