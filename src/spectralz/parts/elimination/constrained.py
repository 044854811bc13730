"""Constraints in exact sums: as tables of few spins, beside the terms."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spectralz.model import Ising, Polynomial
from spectralz.model.constraints import Constraints, Table

if TYPE_CHECKING:
    from spectralz.kernels.elimination.program import Program
    from spectralz.kernels.elimination.tree import EliminationTree
    from spectralz.kernels.mini_buckets.zeros import Zeros
    from spectralz.model import Model
    from spectralz.parts.outcome import MarginalOutcome


def with_tables(model: Model) -> Model:
    """Return a model with the same Z whose constraints are tables of few spins.

    It has further spins at the end, whose values follow from those of the others; edges and terms are the same.
    """
    if all(isinstance(constraint, Table) for constraint in model.constraints):
        return model
    tables, n = model.constraints.narrow(model.n)
    edges, J = model.edges()
    field = np.concatenate([model.field, np.zeros(n - model.n)])
    pairwise = Ising.from_edges(n, edges, J, field, model.constant)
    own = model.pairwise if isinstance(model, Polynomial) else model
    lost = own.lost.and_more(own.rounding_of_terms - own.lost.in_terms, own.rounding - own.rounding_of_terms)
    pairwise = pairwise._changed(constraints=Constraints(tables), lost=lost)
    return Polynomial._of(pairwise, model.higher).simplest()


def zeros_of(model: Model) -> Zeros:
    """Return the constraints of a model, all of them tables, as functions of mini-buckets."""
    from spectralz.kernels.mini_buckets.zeros import Zeros

    tables = [constraint for constraint in model.constraints if isinstance(constraint, Table)]
    return Zeros.of([table.scope for table in tables], [table.allowed for table in tables])


def of_first_spins(found: MarginalOutcome, n: int) -> MarginalOutcome:
    """Return marginals without those of the further spins; pairs and terms are the same."""
    return replace(found, probability=found.probability[:n], mean=found.mean[:n])


def program_of(tree: EliminationTree, model: Model) -> Program:
    """Lay out the steps of an elimination with the numbers of a model whose constraints are tables."""
    from spectralz.kernels.elimination.program import Program

    tables = [(table.scope, table.allowed) for table in model.constraints if isinstance(table, Table)]
    return Program.of_tree(tree, *model.edges(), model.field, model.higher, tables)
