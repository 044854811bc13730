"""Compare our log(1 + exp(-d)) with those of the C library and numpy: ``python -m benchmarks.logsum``."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from benchmarks.harness import Measurement, measure, save, table
from spectralz._support.compiling import compiled
from spectralz.kernels.logsum import log1p_exp_minus

COUNT = 1 << 12
ROUNDS = 2000


@compiled
def _vectorized(d, out):  # type: ignore[no-untyped-def]
    for i in range(len(d)):
        out[i] = log1p_exp_minus(d[i])


@njit(error_model="numpy")
def _libm(d, out):  # type: ignore[no-untyped-def]
    for i in range(len(d)):
        out[i] = math.log1p(math.exp(-d[i]))


def _numpy(d: np.ndarray, out: np.ndarray) -> None:
    np.logaddexp(0.0, -d, out=out)


def main() -> list[Measurement]:
    d = np.random.default_rng(0).uniform(0.0, 30.0, COUNT)
    out = np.empty(COUNT)

    def prepared(function):  # type: ignore[no-untyped-def]
        def run() -> float:
            for _ in range(ROUNDS):
                function(d, out)
            return float(out.sum())

        return lambda: run

    found = [
        measure("log(1 + exp(-d))", name, prepared(function))
        for name, function in (("spectralz", _vectorized), ("C library", _libm), ("numpy.logaddexp", _numpy))
    ]
    save("logsum", found)
    ours = found[0].seconds
    rows = [[m.contestant, f"{m.seconds / COUNT / ROUNDS * 1e9:.2f}", f"{m.seconds / ours:.1f}"] for m in found]
    print("\nlog(1 + exp(-d)), one thread\n\n" + table(["contestant", "ns per value", "times ours"], rows))
    return found


if __name__ == "__main__":
    main()
