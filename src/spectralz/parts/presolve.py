"""Make a model with constraints smaller before it is solved, with the same Z, and go back from its answers.

Constraints fix spins (unit propagation), make spins equal or opposite, and repeat each other. Parities are solved by
Gaussian elimination over two elements; those of spins without terms, which are in no other constraint, vanish whole.
Every spin of the model is then a product of spins that are left, often of none or one, with a sign.
"""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from spectralz.kernels.error_free import exact_sum
from spectralz.model import Ising, Polynomial
from spectralz.model.constraints import (
    MOST_TABLE_SPINS,
    NEVER,
    AtMostOne,
    Clause,
    Constraint,
    Constraints,
    ExactlyOne,
    Parity,
    Table,
)
from spectralz.model.coupling.entries import KEPT_ZERO
from spectralz.model.polynomial import added_up, model_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spectralz.model import FloatArray, IntArray, Model, SpinArray
    from spectralz.result import Marginals

# Gaussian elimination takes about the square of the number of parities.
MOST_PARITIES = 3000
# Conclusions are drawn again while there are new ones; a few rounds are enough as a rule.
MOST_ROUNDS = 100


class Product(NamedTuple):
    """What a spin is: a sign times the product of some spins, each once."""

    sign: int
    spins: tuple[int, ...]


Products: TypeAlias = Mapping[int, Product]


@dataclass(frozen=True)
class Presolved:
    """A smaller model with the same Z, and what each spin of the whole model is in its spins.

    ``words`` say what was done, and are empty if nothing was.
    """

    whole: Model
    model: Model
    products: tuple[Product, ...]
    words: str = ""

    def states(self, states: SpinArray) -> SpinArray:
        """Return states of the whole model from states of the smaller one."""
        if not self.words:
            return states
        found = np.empty((len(states), self.whole.n), dtype=np.int8)
        for i, (sign, spins) in enumerate(self.products):
            found[:, i] = sign * states[:, list(spins)].prod(axis=1, dtype=np.int8)
        return found

    def marginals(self, found: Marginals, pairs: IntArray) -> Marginals:
        """Return marginals of the whole model, with these pairs, from those of the smaller one."""
        if not self.words:
            return found
        has_terms = found.terms is not None and len(found.terms) > len(found.mean)
        means, errors = self._of_sets(found)
        one = [self._of((i,), means, errors) for i in range(self.whole.n)]
        two = [self._of(pair, means, errors) for pair in pairs.tolist()] if found.has_pairs or has_terms else []
        higher = self.whole.higher.scopes() if found.has_pairs or has_terms else []
        more = [self._of(scope, means, errors) for scope in higher]
        probability = np.array([_probability(product, found.probability) for product in self.products]).reshape(-1, 2)
        has_errors = found.std_error is not None
        whole = replace(
            found,
            mean=np.array([mean for mean, _ in one]),
            probability=probability,
            edges=pairs[: len(two)],
            pair_mean=np.array([mean for mean, _ in two]),
            std_error=np.array([error for _, error in one]) if has_errors else None,
            pair_std_error=np.array([error for _, error in two]) if has_errors else None,
            names=self.whole.names,
            has_pairs=found.has_pairs or has_terms,
            terms=None,
            term_mean=None,
            term_std_error=None,
        )
        if not self.whole.higher.number:
            return whole
        whole = replace(
            whole,
            pair_mean=np.array([mean for mean, _ in two + more]),
            pair_std_error=np.array([error for _, error in two + more]) if has_errors else None,
        )
        return whole.of_terms(higher)

    def _of_sets(self, found: Marginals) -> tuple[dict[tuple[int, ...], float], dict[tuple[int, ...], float]]:
        """Return the means of all products that are known, and their errors, by their spins."""
        if found.terms is None:
            found = found.of_terms([])
        assert found.terms is not None
        assert found.term_mean is not None
        errors = np.zeros(len(found.terms)) if found.term_std_error is None else found.term_std_error
        means = dict(zip(found.terms, found.term_mean.tolist(), strict=True))
        return {(): 1.0} | means, {(): 0.0} | dict(zip(found.terms, errors.tolist(), strict=True))

    def _of(
        self,
        scope: Sequence[int],
        means: Mapping[tuple[int, ...], float],
        errors: Mapping[tuple[int, ...], float],
    ) -> tuple[float, float]:
        """Return the mean of a product of spins of the whole model, and its error."""
        sign, spins = product_of(self.products[i] for i in scope)
        # A product that is not listed has a spin that is a coin of its own.
        return sign * means.get(spins, 0.0), errors.get(spins, 0.0)


def _probability(product: Product, probability: FloatArray) -> FloatArray:
    """Return P(-1) and P(+1) of a product of spins, which are coins if they are several."""
    if not product.spins:
        return np.array([product.sign < 0, product.sign > 0], dtype=np.float64)
    if len(product.spins) > 1:
        return np.array([0.5, 0.5])
    return np.asarray(probability[product.spins[0]][:: product.sign])


def product_of(products: Iterable[Product]) -> Product:
    """Return a product of products; a spin that is in it twice cancels."""
    sign, spins = 1, set[int]()
    for product in products:
        sign *= product.sign
        spins ^= set(product.spins)
    return Product(sign, tuple(sorted(spins)))


def presolve(model: Model) -> Presolved:
    """Return a smaller model with the same Z; the model itself if it has no constraints."""
    own = tuple(Product(1, (i,)) for i in range(model.n))
    if not model.constraints:
        return Presolved(model, model, own)
    terms = [np.flatnonzero(model.field), model.edges()[0].ravel(), model.higher.spin]
    found = reduced(model.constraints, set(np.concatenate(terms).tolist()))
    if found.constraints.is_impossible:
        impossible = _with_constraints(model, found.constraints)
        return Presolved(model, impossible, own, "presolve found that no state satisfies the constraints")
    if not found.known and found.constraints == model.constraints:
        return Presolved(model, model, own)
    resolved = [resolve(i, found.known) for i in range(model.n)]
    kept = [i for i in range(model.n) if i not in found.known]
    place = {i: k for k, i in enumerate(kept)}
    smaller = _with_constraints(_with_terms(model, resolved, kept), found.constraints.renamed(place))
    products = tuple(Product(sign, tuple(place[i] for i in spins)) for sign, spins in resolved)
    fixed = sum(not spins for _, spins in products)
    words = (
        f"presolve fixed {fixed} of {model.n} spins, replaced {model.n - len(kept) - fixed} by others, and left "
        f"{len(found.constraints)} of {len(model.constraints)} constraints"
    )
    return Presolved(model, smaller, products, words)


def _with_constraints(model: Model, constraints: Constraints) -> Model:
    if isinstance(model, Ising):
        return model._changed(constraints=constraints)
    return Polynomial._of(model.pairwise._changed(constraints=constraints), model.higher).simplest()


def resolve(i: int, known: Products) -> Product:
    """Return what a spin is in spins that are left."""
    if i not in known:
        return Product(1, (i,))
    sign, spins = known[i]
    return product_of([Product(sign, ()), *(resolve(j, known) for j in spins)])


def _with_terms(model: Model, products: Sequence[Product], kept: Sequence[int]) -> Model:
    """Return the model of the spins that are left, without constraints."""
    if len(kept) == model.n:
        return model
    whole = model.to_polynomial() if isinstance(model, Ising) else model
    place = {i: k for k, i in enumerate(kept)}
    terms = []
    for scope, weight in whole.terms.items():
        sign, spins = product_of(products[i] for i in scope)
        terms.append(([place[i] for i in spins], sign * weight))
    parts = added_up(terms, [whole.constant])
    for scope, part in parts.items():
        if len(scope) > 1 and exact_sum(part)[0] == 0.0:
            part.numbers.append(KEPT_ZERO)  # its mean may be asked for
    names = None if model.names is None else tuple(model.names[i] for i in kept)
    pairwise, higher = model_parts(parts, len(kept), names, model.values)
    return Polynomial._of(pairwise._having_lost(*whole.lost), higher).simplest()


class Reduced(NamedTuple):
    """Constraints that are left, and what is known of spins that are no longer in them."""

    constraints: Constraints
    known: Products


IMPOSSIBLE = Reduced(Constraints((NEVER,)), {})


def reduced(constraints: Constraints, with_terms: set[int]) -> Reduced:
    """Draw conclusions from constraints until there are no more; only some of the spins have terms."""
    now = Reduced(constraints, {})
    for _ in range(MOST_ROUNDS):
        before = set(now.constraints)
        for step in (_propagate, _solve_parities, _merge_twins, _drop_repetitions):
            now = step(now)
            if now.constraints.is_impossible:
                return IMPOSSIBLE
        if set(now.constraints) == before:
            break
    return _drop_free_parities(now, with_terms)


def _propagate(now: Reduced) -> Reduced:
    """Fix spins, and what follows from that in the constraints that they are in."""
    left: dict[int, Constraint] = {}
    at = defaultdict[int, set[int]](set)
    fixed: dict[int, int] = {}
    queue = deque[tuple[int, int]]()
    number = itertools.count()

    def take(constraint: Constraint) -> None:
        if isinstance(constraint, Clause) and len(constraint.scope) == 1:
            queue.append((constraint.scope[0], constraint.wanted[0]))
        else:
            k = next(number)
            left[k] = constraint
            for i in constraint.scope:
                at[i].add(k)

    for constraint in Constraints.of(now.constraints):
        take(constraint)
    while queue:
        i, value = queue.popleft()
        if fixed.setdefault(i, value) != value:
            return IMPOSSIBLE
        for k in [k for k in at.pop(i, ()) if k in left]:
            for constraint in left.pop(k).given({i: value}):
                take(constraint)
    known = {**now.known, **{i: Product(value, ()) for i, value in fixed.items()}}
    return Reduced(Constraints.of(left.values()), known)


def _solve_parities(now: Reduced) -> Reduced:
    """Add what follows from the parities for one and for two spins, and drop those that follow from others."""
    parities, others = _split(now.constraints)
    if not 1 < len(parities) <= MOST_PARITIES:
        return now
    solution = solve(parities)
    if solution is None:
        return IMPOSSIBLE
    same: dict[tuple[int, ...], Parity] = {}
    for row in solution.rows:
        first = same.setdefault(row.scope[1:], row)
        pair = row if len(row.scope) <= 2 else Parity((first.scope[0], row.scope[0]), first.product * row.product)
        if pair.scope[0] != pair.scope[-1] or len(pair.scope) == 1:
            others.append(pair)
    return Reduced(Constraints.of([*others, *solution.independent]), now.known)


def _split(constraints: Iterable[Constraint]) -> tuple[list[Parity], list[Constraint]]:
    """Return the parities, and the other constraints."""
    every = list(constraints)
    return [c for c in every if isinstance(c, Parity)], [c for c in every if not isinstance(c, Parity)]


class Solution(NamedTuple):
    """Solved parities, each with a first spin that is in no other, and those of the given ones that say it all."""

    rows: list[Parity]
    independent: list[Parity]


def solve(parities: Sequence[Parity]) -> Solution | None:
    """Solve parities by Gaussian elimination over two elements; None if there is no solution.

    Examples
    --------
    >>> solve([Parity((0, 1), 1), Parity((1, 2), -1), Parity((0, 2), -1)]).rows
    [Parity(scope=(0, 2), product=-1), Parity(scope=(1, 2), product=-1)]
    """
    sign = 1 << (1 + max(parity.scope[-1] for parity in parities))
    pivots: dict[int, int] = {}  # rows as bits, by their lowest one; the highest of all is the sign
    independent = []
    for parity in parities:
        row = sum(1 << i for i in parity.scope) | (sign if parity.product < 0 else 0)
        while row & -row in pivots:
            row ^= pivots[row & -row]
        if row == sign:
            return None
        if row:
            pivots[row & -row] = row
            independent.append(parity)
    whole = sum(pivots)
    for low in sorted(pivots, reverse=True):
        while others := pivots[low] & whole & ~low:
            pivots[low] ^= pivots[others & -others]
    rows = [(tuple(_bits(row & ~sign)), -1 if row & sign else 1) for row in (pivots[low] for low in sorted(pivots))]
    return Solution([Parity(scope, product) for scope, product in rows], independent)


def _bits(row: int) -> Iterator[int]:
    while row:
        yield (row & -row).bit_length() - 1
        row &= row - 1


def _merge_twins(now: Reduced) -> Reduced:
    """Replace spins that equal another one, or are opposite to it."""
    pairs = twins(now.constraints)
    if pairs is None:
        return IMPOSSIBLE
    known, left = dict(now.known), dict(enumerate(now.constraints))
    at = defaultdict[int, set[int]](set)
    for k, constraint in left.items():
        for i in constraint.scope:
            at[i].add(k)
    number = itertools.count(len(left))
    for j, sign, i in pairs:
        (a, (first,)), (b, (second,)) = resolve(j, known), resolve(i, known)
        if first == second:
            if a * b != sign:
                return IMPOSSIBLE
            continue
        touched = [k for k in at[first] if k in left]
        changed = [with_twin(left[k], first, a * b * sign, second) for k in touched]
        if any(parts is None for parts in changed):
            continue  # it stays a constraint
        known[first] = Product(a * b * sign, (second,))
        for k, parts in zip(touched, changed, strict=True):
            del left[k]
            for part in parts or ():
                new = next(number)
                left[new] = part
                for spin in part.scope:
                    at[spin].add(new)
    return Reduced(Constraints.of(left.values()), known)


def with_twin(constraint: Constraint, gone: int, sign: int, stays: int) -> tuple[Constraint, ...] | None:
    """Return a constraint with one of its spins replaced by another one times a sign; None if it has no such form."""
    both = stays in constraint.scope
    if isinstance(constraint, Parity):
        odd = set(constraint.scope) ^ {gone, stays}
        return (Parity(tuple(sorted(odd)), constraint.product * sign),)
    if isinstance(constraint, Clause):
        literals = [(stays if i == gone else i, v * sign if i == gone else v) for i, v in constraint.literals]
        values = dict(literals)
        is_always_true = any(values[i] != value for i, value in literals)
        scope = tuple(sorted(values))
        return () if is_always_true else (Clause(scope, tuple(values[i] for i in scope)),)
    if isinstance(constraint, AtMostOne | ExactlyOne) and (both or sign > 0):
        rest = tuple(i for i in constraint.scope if i not in (gone, stays))
        if not both:
            return (constraint.renamed({**{i: i for i in rest}, gone: stays}),)
        if sign < 0:  # one of the two is +1
            return tuple(Clause((i,), (-1,)) for i in rest)
        return Clause((stays,), (-1,)), type(constraint)(rest)
    if len(constraint.scope) > MOST_TABLE_SPINS:
        return None
    table = constraint.tabulated()
    axis = table.scope.index(gone)
    allowed = np.moveaxis(table.allowed, axis, 0)[::sign]
    others = tuple(i for i in table.scope if i != gone)
    if not both:
        return (Table((gone, *others), allowed).renamed({**{i: i for i in others}, gone: stays}),)
    place = others.index(stays)
    picked = np.stack([np.take(allowed[k], k, axis=place) for k in (0, 1)], axis=place)
    return (Table(others, picked),)


def twins(constraints: Constraints) -> list[tuple[int, int, int]] | None:
    """Return spins that equal others, or are opposite to them, as (spin, sign, spin); None for one opposite to itself.

    They follow from single tables and parities, and from clauses of two spins together: where two literals imply each
    other, along any way.
    """
    pairs, implied = list[tuple[int, int, int]](), list[tuple[int, int]]()
    for constraint in constraints:
        scope = constraint.scope
        if isinstance(constraint, Parity) and len(scope) == 2:
            pairs.append((scope[0], constraint.product, scope[1]))
        elif isinstance(constraint, ExactlyOne) and len(scope) == 2:
            pairs.append((scope[0], -1, scope[1]))
        elif isinstance(constraint, Clause) and len(scope) == 2:
            (i, a), (j, b) = constraint.literals
            implied += [(2 * i + (a < 0), 2 * j + (b > 0)), (2 * j + (b < 0), 2 * i + (a > 0))]
        elif isinstance(constraint, Table):
            states = 2 * np.argwhere(constraint.allowed) - 1
            same = states.T @ states
            for i, j in zip(*np.nonzero(np.triu(np.abs(same) == len(states), 1)), strict=True):
                pairs.append((scope[i], int(np.sign(same[i, j])), scope[j]))
    if not implied:
        return pairs
    more = _strongly_connected(implied)
    return None if more is None else pairs + more


def _strongly_connected(implied: list[tuple[int, int]]) -> list[tuple[int, int, int]] | None:
    """Return spins whose literals imply each other; None if one implies its opposite, and is implied by it.

    The literal of spin i and its value -1 is the number 2 i, that of +1 is 2 i + 1.
    """
    import scipy.sparse as sp
    from scipy.sparse.csgraph import connected_components

    spins, ends = np.unique(np.array(implied) // 2, return_inverse=True)
    first, second = (2 * ends.reshape(-1, 2) + np.array(implied) % 2).T
    size = 2 * len(spins)
    graph = sp.coo_array((np.ones(len(implied)), (first, second)), shape=(size, size))
    _, label = connected_components(graph.tocsr(), connection="strong")
    if np.any(label[::2] == label[1::2]):
        return None
    found, representative = [], dict[int, tuple[int, int]]()
    for k, spin in enumerate(spins.tolist()):
        for value in (-1, 1):
            component = int(label[2 * k + (value > 0)])
            other, its_value = representative.setdefault(component, (spin, value))
            if other != spin:
                found.append((spin, value * its_value, other))
    return found


def _drop_repetitions(now: Reduced) -> Reduced:
    """Drop clauses that follow from others and shorten some; make one of tables of the same spins."""
    left = list[Constraint](_short_clauses([c for c in now.constraints if isinstance(c, Clause)]))
    tables: dict[tuple[int, ...], Table] = {}
    for constraint in now.constraints:
        if isinstance(constraint, Table):
            known = tables.get(constraint.scope, constraint)
            tables[constraint.scope] = Table(constraint.scope, known.allowed & constraint.allowed)
        elif not isinstance(constraint, Clause):
            left.append(constraint)
    return Reduced(Constraints.of([*left, *tables.values()]), now.known)


def _short_clauses(clauses: Iterable[Clause]) -> list[Clause]:
    """Return clauses that say the same, without those that others imply, and without literals that others exclude."""
    kept: list[frozenset[tuple[int, int]]] = []
    watched = defaultdict[tuple[int, int], list[frozenset[tuple[int, int]]]](list)

    def follows(literals: frozenset[tuple[int, int]]) -> bool:
        return any(other <= literals for literal in literals for other in watched[literal])

    for clause in sorted(clauses, key=lambda clause: len(clause.scope)):
        literals = frozenset(clause.literals)
        for i, value in clause.literals:
            # With a clause that says the same but for the opposite of one literal, that literal is not needed.
            if follows((literals - {(i, value)}) | {(i, -value)}):
                literals -= {(i, value)}
        if not literals:
            return [NEVER]
        if not follows(literals):
            kept.append(literals)
            watched[min(literals)].append(literals)
    ascending = [sorted(literals) for literals in kept]
    return [Clause(tuple(i for i, _ in row), tuple(value for _, value in row)) for row in ascending]


def _drop_free_parities(now: Reduced, with_terms: set[int]) -> Reduced:
    """Solve parities whose spins have no terms and are in no other constraint: some spins are coins, others follow."""
    parities, left = _split(now.constraints)
    if len(parities) > MOST_PARITIES:
        return now
    bound = {j for i in with_terms for j in resolve(i, now.known).spins}.union(*(c.scope for c in left))
    known = dict(now.known)
    for group in _connected(parities):
        if all(bound.isdisjoint(c.scope) for c in group):
            solution = solve(group)
            assert solution is not None
            known |= {row.scope[0]: Product(row.product, row.scope[1:]) for row in solution.rows}
        else:
            left += group
    return Reduced(Constraints.of(left), known)


def _connected(constraints: Sequence[Parity]) -> list[list[Parity]]:
    """Return constraints in groups that share no spins."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import connected_components

    spins = np.concatenate([np.empty(0, dtype=np.int64), *(np.array(c.scope) for c in constraints)])
    row = np.repeat(np.arange(len(constraints)), [len(c.scope) for c in constraints])
    column = len(constraints) + np.unique(spins, return_inverse=True)[1]
    size = len(constraints) + len(np.unique(spins))
    graph = sp.coo_array((np.ones(len(row)), (row, column)), shape=(size, size))
    _, label = connected_components(graph, directed=False)
    groups = defaultdict[int, list[Parity]](list)
    for k, constraint in enumerate(constraints):
        groups[int(label[k])].append(constraint)
    return list(groups.values())
