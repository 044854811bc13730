"""Draw models with terms of three and more spins whose log Z is known: glasses, parity equations, plaquettes, trees.

The references are the sum over the dependencies among parity equations (``closed_forms.parities``), of which there are
few, and the method ``exact`` for few spins and for trees. As in ``known_models.py``, models are relabeled and gauged at
random, and with ``small`` have at most 14 spins.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import spectralz as sz
from benchmarks.known_models import Known, Random, any_scale, disorder, exact_log_z, new_seed, uniform, whole
from spectralz.errors import TooLargeError


def disguised(rng: Random, model: sz.Polynomial) -> sz.Polynomial:
    """Relabel the spins and flip the signs of half of them, which does not change log Z."""
    place, sign = rng.permutation(model.n).tolist(), rng.choice([-1.0, 1.0], model.n).tolist()
    terms = {tuple(place[i] for i in scope): c * math.prod(sign[i] for i in scope) for scope, c in model.terms.items()}
    return sz.Polynomial(terms, n=model.n, offset=model.offset)


def p_spin(rng: Random, small: bool = False) -> Known:
    """Draw a diluted glass of terms of three or four spins, some in a field; elimination."""
    n, p = whole(rng, 6, 12) if small else whole(rng, 24, 40), whole(rng, 3, 4)
    terms, strength = round(uniform(rng, 0.4, 1.2) * n), any_scale(rng, 0.2, 5.0)
    field = float(rng.choice([0.0, 0.0, 0.1, 1.0]))
    glass = sz.generators.p_spin(n, p, strength, new_seed(rng), terms)
    model = sz.Polynomial({**glass.terms, **dict.fromkeys([(i,) for i in range(n)], field)}, n=n)
    about = f"{terms} terms of {p} of {n} spins, {strength}, field {field}"
    return Known(disguised(rng, model), exact_log_z(model), about)


def dense_p_spin(rng: Random, small: bool = False) -> Known:
    """Draw many terms of three or four spins, at temperatures around the freezing of the glass; elimination."""
    n, p = whole(rng, 6, 10) if small else whole(rng, 16, 22), whole(rng, 3, 4)
    terms = min(math.comb(n, p), whole(rng, 3, 10) * n)
    inverse = any_scale(rng, 0.5, 5.0)
    strength = inverse * math.sqrt(0.5 * n / terms)  # with all tuples this is sqrt(p! / (2 n^(p-1))), for many spins
    model = sz.generators.p_spin(n, p, strength, new_seed(rng), terms)
    about = f"{terms} terms of {p} of {n} spins, inverse temperature {inverse}"
    return Known(disguised(rng, model), exact_log_z(model), about)


def parity(rng: Random, small: bool = False) -> Known:
    """Draw parity equations, planted or random, around the threshold where solutions vanish; dependencies."""
    n, size = whole(rng, 6, 12) if small else whole(rng, 60, 300), whole(rng, 3, 4)
    equations, strength = round(uniform(rng, 0.4, 1.0) * n), any_scale(rng, 0.2, 5.0)
    is_planted, seed = bool(rng.random() < 0.5), new_seed(rng)
    while True:
        model = sz.generators.parity(n, equations, size, strength, seed, is_planted)
        about = f"{equations} equations of {size} of {n} spins, {strength}, {'planted' if is_planted else 'random'}"
        try:
            return Known(disguised(rng, model), sz.closed_forms.parities(model), about)
        except TooLargeError:  # too many dependencies
            equations -= n // 20


def plaquettes(rng: Random, small: bool = False) -> Known:
    """Draw plaquettes of a lattice, whose dynamics are those of a glass; independent terms."""
    rows, columns = (3, whole(rng, 2, 4)) if small else (whole(rng, 6, 18), whole(rng, 6, 18))
    couplings = str(rng.choice([disorder(rng), "ferromagnetic"]))
    strength = any_scale(rng, 0.2, 3.0)
    parameters = {"rows": rows, "columns": columns, "strength": strength, "seed": new_seed(rng), "couplings": couplings}
    model = disguised(rng, sz.generators.plaquettes(**parameters))
    return Known(model, sz.closed_forms.plaquettes(**parameters), f"{rows} x {columns}, {couplings}, {strength}")


def hypertree(rng: Random, small: bool = False) -> Known:
    """Draw a tree of terms in random fields; elimination."""
    n, p = whole(rng, 6, 12) if small else whole(rng, 50, 300), whole(rng, 3, 5)
    strength, fields = any_scale(rng, 0.2, 5.0), any_scale(rng, 0.05, 2.0)
    tree = sz.generators.hypertree(n, p, strength, seed=new_seed(rng))
    model = sz.Polynomial({**tree.terms, **{(i,): fields * float(rng.standard_normal()) for i in range(n)}}, n=n)
    about = f"terms of {p} of {n} spins, {strength}, fields {fields}"
    return Known(disguised(rng, model), exact_log_z(model), about)


POLYNOMIALS: dict[str, Callable[..., Known]] = {
    family.__name__: family for family in (p_spin, dense_p_spin, parity, plaquettes, hypertree)
}
