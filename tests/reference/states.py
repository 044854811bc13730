"""The oracle: every state written out, its log-weight by the definition, sums in fifty digits.

Nothing is taken from the package but the numbers of the model, read off as arrays. A float is a whole number times a
power of two, so log-weights are added up as whole numbers, without any rounding. Of a coupling that is kept as factors
the entries are their sums and products, without rounding too. ``tests/unit/test_oracle.py`` has the definition written
out term by term, and compares.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np

import spectralz as sz


def all_states(n: int) -> np.ndarray:
    return np.array(list(itertools.product([-1, 1], repeat=n)), dtype=np.int8).reshape(2**n, n)


def places_of(x: np.ndarray) -> np.ndarray:
    """Return the place of each state in ``all_states``."""
    return (x > 0) @ (1 << np.arange(x.shape[1])[::-1])


def dense(model: sz.Ising) -> np.ndarray:
    return model.coupling.toarray() if model.is_sparse else np.array(model.coupling)


def exact_entries(model: sz.Ising) -> list[float] | list[Fraction]:
    """Return the n^2 entries of the coupling, row by row: of one kept as factors without any rounding."""
    if model.factors is None:
        return dense(model).ravel().tolist()
    values, vectors, diagonal = ([Fraction(x) for x in array.ravel().tolist()] for array in model.factors)
    n = model.n
    rows = [vectors[n * j : n * (j + 1)] for j in range(len(values))]
    return [
        sum((value * v[i] * v[k] for value, v in zip(values, rows, strict=True)), diagonal[i] if i == k else Fraction())
        for i in range(n)
        for k in range(n)
    ]


def whole_numbers(values: list[float] | list[Fraction]) -> tuple[list[int], int]:
    """Return integers k and a power p with values = k / 2^p; 1e300 beside 1e-300 are integers of 2,000 bits."""
    ratios = [value.as_integer_ratio() for value in values]
    power = max(denominator.bit_length() - 1 for _, denominator in ratios)
    return [(numerator << power) // denominator for numerator, denominator in ratios], power


def whole_log_weights(model: sz.Ising) -> tuple[list[int], int]:
    """Return integers w and a power p: w / 2^p = offset + sum_i theta_i x_i + sum_ij A_ij x_i x_j, state by state.

    States come in the order of ``all_states``, with the last spin fastest; each spin doubles the list. Of a polynomial
    every term is added up, state by state.
    """
    if isinstance(model, sz.Polynomial):
        return _whole_log_weights_of_terms(model)
    n = model.n
    numbers, power = whole_numbers([model.offset, *model.field.tolist(), *exact_entries(model)])
    theta, A = numbers[1 : n + 1], [numbers[n + 1 + n * i : n + 1 + n * (i + 1)] for i in range(n)]
    weights = [numbers[0]]
    for k in range(n):
        field = [theta[k]]  # on spin k, from each state of the spins before it
        for i in range(k):
            J = A[i][k] + A[k][i]
            field = [h for given in field for h in (given - J, given + J)]
        weights = [w + A[k][k] + h for w, one in zip(weights, field, strict=True) for h in (-one, one)]
    return weights, power


def _whole_log_weights_of_terms(model: sz.Polynomial) -> tuple[list[int], int]:
    numbers, power = whole_numbers([model.offset, *model.terms.values()])
    weights = []
    for x in itertools.product([-1, 1], repeat=model.n):
        total = numbers[0]
        for scope, c in zip(model.terms, numbers[1:], strict=True):
            total += c * math.prod(x[i] for i in scope)
        weights.append(total)
    return weights, power


def means_of(model: sz.Polynomial, terms: list[tuple[int, ...]]) -> np.ndarray:
    """Return the mean of the product of the spins of each term."""
    with mpmath.workdps(50):
        p = np.array([float(share) for share in summed(*whole_log_weights(model))[1]])
    X = all_states(model.n).astype(float)
    return np.array([p @ X[:, list(scope)].prod(axis=1) for scope in terms])


def log_weights(model: sz.Ising) -> list[mpmath.mpf]:
    """Return the log-weights of ``all_states``, each rounded once, to the digits that mpmath works with."""
    weights, power = whole_log_weights(model)
    return [mpmath.ldexp(mpmath.mpf(weight), -power) for weight in weights]


def summed(weights: list[int], power: int) -> tuple[mpmath.mpf, list[mpmath.mpf]]:
    """Return the log of a sum of exp(w / 2^p), and the share of each term in it."""
    largest = max(weights)
    nothing = -10_000 << power  # beside a term of 1, exp(-10,000) is zero in fifty digits, and as a float
    terms = [
        mpmath.exp(mpmath.ldexp(mpmath.mpf(weight - largest), -power)) if weight - largest > nothing else mpmath.mpf(0)
        for weight in weights
    ]
    total = mpmath.fsum(terms)
    return mpmath.ldexp(mpmath.mpf(largest), -power) + mpmath.log(total), [term / total for term in terms]


def log_z_of_binary(
    bias: np.ndarray, weights: np.ndarray, offset: float = 0.0, beta: float = 1.0, beginning: tuple[int, ...] = ()
) -> mpmath.mpf:
    """Return log Z of beta (offset + sum_i b_i v_i + sum_(i<j) (w_ij + w_ji) v_i v_j), from these numbers alone.

    The sum is over v in {0, 1}^n that begin as they should.
    """
    n = len(bias)
    exact = [Fraction(beta) * Fraction(float(x)) for x in (offset, *bias, *np.ravel(weights))]
    numbers, power = whole_numbers(exact)
    b, w = numbers[1 : n + 1], [numbers[n + 1 + n * i : n + 1 + n * (i + 1)] for i in range(n)]
    log_weights = []
    for rest in itertools.product([0, 1], repeat=n - len(beginning)):
        ones = [i for i, on in enumerate((*beginning, *rest)) if on]
        pairs = sum(w[i][j] + w[j][i] for i, j in itertools.combinations(ones, 2))
        log_weights.append(numbers[0] + sum(b[i] for i in ones) + pairs)
    with mpmath.workdps(50):
        return summed(log_weights, power)[0]


def log_z(model: sz.Ising) -> mpmath.mpf:
    """Return log Z to fifty digits, for comparisons that a rounding to a float would decide."""
    with mpmath.workdps(50):
        return summed(*whole_log_weights(model))[0]


def solve(model: sz.Ising) -> tuple[float, np.ndarray, np.ndarray]:
    """Return log Z, E[x_i] and E[x_i x_j] (n x n)."""
    with mpmath.workdps(50):
        value, shares = summed(*whole_log_weights(model))
        p = np.array([float(share) for share in shares])
    X = all_states(model.n).astype(float)
    return float(value), X.T @ p, X.T @ (p[:, None] * X)


def chi_square(model, x):
    """Pearson's statistic of samples against the exact probabilities, with its degrees of freedom."""
    X = all_states(model.n)
    log_p = np.asarray(model.log_weight(X))
    p = np.exp(log_p - np.logaddexp.reduce(log_p))
    counts = np.bincount(places_of(x), minlength=len(p))
    expected = p * len(x)
    common = expected >= 5
    statistic = ((counts - expected)[common] ** 2 / expected[common]).sum()
    rest = expected[~common].sum()
    if rest > 5:
        statistic += (counts[~common].sum() - rest) ** 2 / rest
    return statistic, common.sum() - 1 + (rest > 5)
