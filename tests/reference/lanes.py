"""What tests of kernels for 64 states share: paths, random words, and the generator as its authors write it."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from scipy import stats

from spectralz.kernels.coupling import frozen
from spectralz.kernels.sampling.lanes import LANES, SparsePath
from tests.reference.states import all_states, places_of

# Chances of a false alarm; the seeds are fixed, so a test that passes goes on passing.
LEVEL = 1e-3


def random_words(seed, *shape):
    return np.random.default_rng(seed).integers(2**32, size=(*shape, 4, LANES), dtype=np.uint32)


def random_spins(n, kind, seed=0):
    return np.random.default_rng(seed).choice([-1, 1], size=(n, LANES)).astype(kind)


def symmetric(n, seed, density=1.0, scale=1.0):
    """Return a symmetric matrix of random couplings J, without a diagonal."""
    rng = np.random.default_rng(seed)
    J = np.triu(scale * rng.normal(size=(n, n)) * (rng.random((n, n)) < density), 1)
    return J + J.T


def sparse_path(theta, J, theta_of_base, J_of_base):
    """Return the path of two models on a graph that has the edges of both."""
    graph = sp.csr_array((np.abs(J) + np.abs(J_of_base)) > 0)
    rows, columns = graph.nonzero()
    base, whole = J_of_base[rows, columns], J[rows, columns]
    return SparsePath(
        frozen(np.asarray(theta_of_base, float)),
        frozen(theta - theta_of_base),
        frozen(base),
        frozen(whole - base),
        frozen(columns.astype(np.int32)),
        frozen(np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(theta)))]).astype(np.int64)),
    )


def energy(theta, J, x):
    """Return sum_i theta_i x_i + sum_{i<j} J_ij x_i x_j of the columns of x."""
    x = x.astype(float)
    return theta @ x + 0.5 * np.einsum("il,ij,jl->l", x, J, x)


def xoshiro(state):
    """Yield the words of xoshiro128++ and the state after each, as Blackman and Vigna write it."""
    s = [int(word) for word in state]

    def rotated(word, by):
        return (word << by | word >> (32 - by)) % 2**32

    while True:
        word = (rotated((s[0] + s[3]) % 2**32, 7) + s[0]) % 2**32
        t = s[1] << 9 & 0xFFFFFFFF
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotated(s[3], 11)
        yield word, tuple(s)


def assert_law(x, log_weight):
    """Complain if states, one a row and independent, do not have the given log-weights of all states."""
    every = all_states(x.shape[1])
    probability = np.exp(log_weight - log_weight.max())
    probability /= probability.sum()
    # Moments, to four standard errors
    mean = probability @ every
    pairs = every.T @ (probability[:, None] * every)
    error = 4.0 / math.sqrt(len(x))
    assert (np.abs(x.mean(axis=0) - mean) <= error * np.sqrt(1.0 - mean**2)).all()
    assert (
        np.abs(x.T.astype(float) @ x / len(x) - pairs) <= error * np.sqrt(1.0 - np.minimum(pairs**2, 1.0)) + 1e-12
    ).all()
    # States, each of which is expected often enough
    counts = np.bincount(places_of(x), minlength=len(every))
    common = probability * len(x) > 5.0
    observed = np.append(counts[common], counts[~common].sum())
    expected = np.append(probability[common], probability[~common].sum()) * len(x)
    keep = expected > 0.0
    assert stats.chisquare(observed[keep], expected[keep]).pvalue > LEVEL
