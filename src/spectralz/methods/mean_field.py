"""Mean field: the best product distribution over spins or blocks of spins; its lower bound on log Z is proven."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from spectralz._support import clock, costs, deadline
from spectralz._support.options import choice, count, option, positive, repetitions
from spectralz._support.progress import report
from spectralz.errors import OptionError
from spectralz.methods.base import MarginalOutcome, Method, Outcome
from spectralz.model import Ising
from spectralz.parts.leading import leading_directions
from spectralz.parts.mean_field.ascents import annealed_fields, ascend_in_time, bound_of_model
from spectralz.parts.outcome import independent_spins, with_kind_of_means
from spectralz.parts.pairs import are_pairs_wanted
from spectralz.result import Kind, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from spectralz.kernels.coupling import Couplings
    from spectralz.model import FloatArray, Model
    from spectralz.parts.mean_field.structured import StructuredMeanField

STARTS = ("zero", "random", "leading", "bp", "annealed")
# Tables of one block have at most 2^25 entries in all.
MOST_BLOCK_WIDTH = 24


@dataclass(frozen=True)
class _Run:
    """One ascent: the bound where it ended, how it ended, and where.

    The end of an ascent of spins is their fields, that of an ascent of blocks the probabilities and means of spins and
    the means of edges.
    """

    bound: float
    lower: float
    sweeps: int
    change: float
    end: tuple[FloatArray, ...]


@dataclass(frozen=True, kw_only=True)
class MeanField(Method):
    r"""Bound log Z from below by the best product distribution, found by coordinate ascent.

    For all means m of independent spins, with their entropy H(m), and apart from the offset and the trace of A,

    .. math::

       \log Z \ge \sum_i \theta_i m_i + \sum_{i < j} J_{ij} m_i m_j + H(m), \qquad
       m_i = \tanh\Bigl(\theta_i + \sum_j J_{ij} m_j\Bigr),

    where the second formula maximizes the first over one spin. A term of more spins adds its weight times the product
    of their means to the bound, and times the product of the others' means to the field of each. There are many maxima,
    and the start decides which one is reached. Each is a proven lower bound, and the best is returned.

    With ``block_width`` the distribution is a product over blocks of spins, exact within each and mean field between:

    .. math::

       \log Z \ge \sum_b \log Z_b(f) - (f - \theta)^\top m + \sum_{(i, j)} J_{ij} m_i m_j,

    where f are the fields in the blocks b, and the last sum is over the edges between blocks. On sparse graphs the
    bound is ten to a hundred times closer. Blocks are for models of pairs.

    Parameters
    ----------
    max_iter
        Most sweeps over all spins for each start.
    tol
        Stop once no mean changes by more than this in a sweep.
    restarts
        How many starts; all but the first are random, or annealed if the first is.
    start
        The first start: ``"zero"`` (the paper's), ``"random"``, ``"leading"`` (along two leading eigenvectors of the
        coupling, with both signs, where collective states lie), ``"bp"`` (the means of belief propagation) or
        ``"annealed"`` (mean field at higher temperatures, from zero; without fields, and in later starts, perturbed a
        little at random). Use ``"annealed"`` if couplings are strong.
    block_width
        0 for single spins; otherwise spins are divided into blocks whose subgraphs have at most this treewidth,
        such that little is cut between them: strips of a lattice, or blocks grown along strong couplings. Time and
        memory grow as ``2**block_width`` per spin. If one block holds all coupled spins, the result is exact.
    seed
        Seed of the random starts.

    References
    ----------
    .. [1] Parisi, "Statistical Field Theory", 1988.
    .. [2] Saul, Jordan, "Exploiting tractable substructures in intractable networks", NIPS 1995.

    Examples
    --------
    >>> import spectralz as sz
    >>> model = sz.generators.complete(n=15, strength=0.3, seed=0)
    >>> result = sz.log_z(model, "mf", restarts=10)
    >>> result.kind
    <Kind.LOWER_BOUND: 'lower bound'>
    >>> result.lower < sz.log_z(model, "exact").log_z
    True
    >>> grid = sz.generators.grid(side=10, strength=1.0, seed=0)
    >>> truth = sz.log_z(grid, "exact").log_z
    >>> result = sz.log_z(grid, "mf", block_width=5, start="annealed")
    >>> print(result.status)
    converged after ... sweeps of 2 blocks of width 5 at most
    >>> 5.0 * (truth - result.lower) < truth - sz.log_z(grid, "mf").lower
    True
    """

    max_iter: int = option(1000, count(least=1))
    tol: float = option(1e-10, positive())
    restarts: int = option(1, repetitions(least=1))
    start: str = option("zero", choice(STARTS))
    block_width: int = option(0, count(least=0, most=MOST_BLOCK_WIDTH, why="for tables of 2^block_width entries"))
    seed: int = option(0, count(least=0))

    name: ClassVar[str] = "mf"
    takes_terms: ClassVar[bool] = True

    def _solve(self, model: Model) -> Outcome:
        if not self.block_width:
            return self._best(model)[0]
        return self._best_of_blocks(_of_pairs(model, "block_width"))[0]

    def _solve_marginals(self, model: Model) -> MarginalOutcome:
        if not self.block_width:
            outcome, h = self._best(model)
            return _independent(model, h, outcome)
        outcome, best = self._best_of_blocks(_of_pairs(model, "block_width"))
        # Log-weights with an error of r change means by 2 r at most.
        change = 2.0 * (best.bound - best.lower)
        outcome, kind = (outcome, Kind.ESTIMATE) if outcome.upper is None else with_kind_of_means(outcome, change)
        probability, mean, pair_mean = best.end
        return MarginalOutcome(probability, mean, pair_mean, kind, outcome)

    def _best(self, model: Model) -> tuple[Outcome, FloatArray]:
        """Ascend from every start; return the outcome of the best run, and its fields."""
        couplings = model.storage.for_kernels()
        runs = [self._ascend(model, couplings, h, k) for k, h in self._starts(model)]
        best = max(runs, key=lambda run: run.lower)
        is_exact = model.storage.couples_nothing and not model.higher.number
        return self._outcome(runs, best, is_exact=is_exact), best.end[0]

    def _best_of_blocks(self, model: Ising) -> tuple[Outcome, _Run]:
        """Ascend block by block from every start; return the outcome of the best run, and the run."""
        from spectralz.parts.mean_field.partition import divide
        from spectralz.parts.mean_field.structured import StructuredMeanField

        report("dividing the spins into blocks", 0.0)
        blocks = StructuredMeanField.of(model, divide(model, self.block_width))
        runs = [self._ascend_blocks(model, blocks, h, k) for k, h in self._starts(model)]
        best = max(runs, key=lambda run: run.lower)
        parts, width = blocks.partition.blocks, blocks.partition.widest
        outcome = self._outcome(
            runs,
            best,
            is_exact=not blocks.cuts,
            what=f" of {parts} block{'s' if parts != 1 else ''} of width {width} at most",
            blocks=parts,
            width=width,
            cuts=blocks.cuts,
            cut_weight=blocks.cut_weight,
            entries=blocks.partition.entries,
        )
        return outcome, best

    def _starts(self, model: Model) -> Iterator[tuple[int, FloatArray | None]]:
        """Yield the number and the fields of each start, as long as there is time; the fields are None if annealed."""
        rng = np.random.default_rng(self.seed)
        for k in range(self.restarts):
            starts: Sequence[FloatArray | None] = [None]
            if self.start != "annealed":
                starts = self._first_starts(model, rng) if k == 0 else [rng.standard_normal(model.n)]
            for j, h in enumerate(starts):
                if (k or j) and deadline.is_past():
                    return
                yield k, h

    def _noise(self, model: Model, k: int) -> np.random.Generator | None:
        """Return the random numbers that perturb the k-th annealed start; with fields, the first needs none."""
        return None if k == 0 and np.any(model.field) else np.random.default_rng([self.seed, k])

    def _first_starts(self, model: Model, rng: np.random.Generator) -> list[FloatArray]:
        if self.start == "leading":
            directions = leading_directions(model.storage)
            return [sign * h for h in directions for sign in (1.0, -1.0)] or [np.zeros(model.n)]
        if self.start == "random":
            return [rng.standard_normal(model.n)]
        if self.start == "bp":
            from spectralz.methods.belief_propagation import BeliefPropagation

            mean = BeliefPropagation(damping=0.5).run_marginals(model, pairs=False).mean
            return [np.arctanh(np.clip(mean, -1.0 + 1e-15, 1.0 - 1e-15))]
        return [np.zeros(model.n)]

    def _ascend(self, model: Model, couplings: Couplings, h: FloatArray | None, k: int) -> _Run:
        if h is None:
            h = annealed_fields(model.field, couplings, self._noise(model, k), model.higher)
        limits = self.max_iter, self.tol
        sweeps, change = ascend_in_time(h, model.field, couplings, *limits, self._teller(k), model.higher)
        clock.charge(len(couplings.data) + costs.MEAN_FIELD_SPIN * model.n)
        return _Run(*bound_of_model(model, couplings, h), sweeps, change, (h,))

    def _ascend_blocks(self, model: Ising, blocks: StructuredMeanField, h: FloatArray | None, k: int) -> _Run:
        mean = blocks.annealed_means(self._noise(model, k)) if h is None else np.tanh(h)
        sweeps, change = blocks.ascend(mean, self.max_iter, self.tol, self._teller(k))
        end = blocks.probability, blocks.mean.copy(), blocks.all_pair_means()
        return _Run(*blocks.bound(), sweeps, change, end)

    def _teller(self, k: int) -> Callable[[int], None]:
        """Return a function that reports the progress of a start."""
        return lambda sweeps: report("sweeping", (k + min(sweeps / self.max_iter, 1.0)) / self.restarts)

    def _outcome(self, runs: Sequence[_Run], best: _Run, *, is_exact: bool, what: str = "", **details: Any) -> Outcome:
        converged = best.change <= self.tol
        how = f"converged after {best.sweeps} sweeps{what}"
        if not converged:
            how = f"stopped after {best.sweeps} sweeps{what}, the last of which changed a mean by {best.change:.1e}"
        if self.restarts > 1:
            how += f"; best of {len(runs)} starts"
        return Outcome(
            log_z=best.bound,
            kind=Kind.EXACT if is_exact else Kind.LOWER_BOUND,
            status=Status(how, converged=converged),
            lower=best.lower,
            upper=2.0 * best.bound - best.lower if is_exact else None,
            iterations=best.sweeps,
            details={"residual": best.change, "bounds": [run.bound for run in runs], **details},
        )


def _of_pairs(model: Model, option: str) -> Ising:
    """Return a model of pairs, as an option requires."""
    if isinstance(model, Ising):
        return model
    raise OptionError(
        f"mf with {option} takes pairs of spins only, and this model has terms of up to {model.higher.largest}: "
        f"leave out {option}"
    )


def _independent(model: Model, h: FloatArray, outcome: Outcome) -> MarginalOutcome:
    """Return the marginals of independent spins; the means of larger terms come after those of pairs."""
    if isinstance(model, Ising):
        return independent_spins(model, h, outcome)
    marginals = independent_spins(model.pairwise, h, outcome)
    products = model.higher.products(marginals.mean[None])[0] if are_pairs_wanted() else np.empty(0)
    return replace(marginals, pair_mean=np.concatenate([marginals.pair_mean, products]))
