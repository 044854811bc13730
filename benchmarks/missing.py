"""Learn from tables with missing cells: ``python -m benchmarks.missing [coverage] [large] [times] [--repeats 300]``.

``coverage`` fits 1,000 rows of 8 variables, 20% of their cells missing at random, many times, each time of another
model, and counts how often 95% intervals hold the true parameters; beside it, the same with the complete rows alone.
``large`` fits 1,500 rows of 30 variables with 3% missing. ``times`` has fits of 30 columns with a penalty, and a
bootstrap. Seconds are by the clock.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass, field

import numpy as np

import spectralz as sz
from benchmarks.harness import processor, table

PARTS = ("coverage", "large", "times")
METHODS = ("exact", "pseudo")


@dataclass
class Counts:
    """What many fits of a kind add up to."""

    fits: int = 0
    within: list[float] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    off: list[float] = field(default_factory=list)

    def add(self, fit: sz.Fit, truth: sz.Ising) -> None:
        """Count a fit, if it has errors."""
        if fit.field_error is None or fit.coupling_error is None:
            return
        error = np.concatenate([fit.field_error, fit.coupling_error])
        off = np.concatenate([fit.model.field - truth.field, fit.model.edges()[1] - truth.edges()[1]])
        self.fits += 1
        self.within.append(float(np.mean(np.abs(off) <= 1.959964 * error)))
        self.error.append(float(np.mean(error)))
        self.off.append(float(np.mean(off**2)))

    def row(self, name: str) -> list[str]:
        """Return a row of the table."""
        covered, width = f"{np.mean(self.within):.1%}", f"{np.median(self.error):.4f}"
        return [name, str(self.fits), covered, width, f"{np.sqrt(np.median(self.off)):.4f}"]


def model_of(n: int, size: float, rng: np.random.Generator) -> sz.Ising:
    """Return a dense model with fields and couplings of moderate size."""
    A = np.triu(rng.normal(0.0, size / 2.0, (n, n)), 1)
    return sz.Ising(rng.normal(0.0, 0.3, n), A + A.T)


def with_gaps(states: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Return rows in which a share of the cells is NaN, at random."""
    X = states.astype(float)
    X[rng.random(X.shape) < share] = np.nan
    return X


def coverage(repeats: int, first: int) -> str:
    """Return how often intervals hold the truth."""
    counts = {name: Counts() for name in (*METHODS, "complete rows alone", "no cell missing")}
    for k in range(repeats):
        rng = np.random.default_rng([first, k])
        truth = model_of(8, 0.2, rng)
        states = sz.sample(truth, 1000, seed=rng)
        X = with_gaps(states, 0.2, rng)
        complete = X[~np.isnan(X).any(axis=1)]
        for name in METHODS:
            counts[name].add(sz.fit(X, method=name, likelihood=False), truth)
        counts["no cell missing"].add(sz.fit(states, likelihood=False), truth)
        try:
            counts["complete rows alone"].add(sz.fit(complete, likelihood=False), truth)
        except sz.errors.ModelError:  # a pair lacks one of its four combinations
            continue
    rows = [entry.row(name) for name, entry in counts.items()]
    return table(["data and method", "fits", "95% intervals hold", "standard error", "rms error"], rows)


def large(first: int) -> str:
    """Return how fits of 30 columns with 3% missing do."""
    rows = []
    for method in ("auto", "pseudo"):
        rng = np.random.default_rng([first, 30])
        truth = model_of(30, 0.1, rng)
        X = with_gaps(sz.sample(truth, 1500, "annealing", seed=rng), 0.03, rng)
        began = time.perf_counter()
        fit = sz.fit(X, method=method)
        seconds = time.perf_counter() - began
        count = Counts()
        count.add(fit, truth)
        complete = int((~np.isnan(X).any(axis=1)).sum())
        rows.append([f"{method}: {fit.method}", str(complete), f"{seconds:.1f}", *count.row("")[2:]])
    return table(["method", "complete rows", "seconds", "95% intervals hold", "standard error", "rms error"], rows)


def times(first: int) -> str:
    """Return how long fits of 30 columns with a penalty take, and a bootstrap."""
    rng = np.random.default_rng([first, 31])
    X = sz.sample(model_of(30, 0.1, rng), 1500, "annealing", seed=rng)
    rows = []

    def timed(name: str, work):  # type: ignore[no-untyped-def]
        began, spent = time.perf_counter(), time.process_time()
        found = work()
        rows.append([name, f"{time.perf_counter() - began:.1f}", f"{time.process_time() - spent:.1f}"])
        return found

    fit = timed("l2, strength 0.01", lambda: sz.fit(X, penalty="l2"))
    timed('l2, strength="cv"', lambda: sz.fit(X, penalty="l2", strength="cv"))
    timed("bootstrap of the first, 500 repetitions", lambda: fit.bootstrap(500))
    quick = timed('l2, method="pseudo"', lambda: sz.fit(X, penalty="l2", method="pseudo"))
    timed("bootstrap of that, 500 repetitions", lambda: quick.bootstrap(500))
    return table(["1,500 x 30", "seconds", "CPU seconds"], rows)


def main() -> None:
    """Run the parts that are asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--repeats", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", sz.errors.InaccurateWarning)
    print(processor())
    for part in options.parts or PARTS:
        arguments = (options.repeats, options.seed) if part == "coverage" else (options.seed,)
        print(f"\n{part}\n{globals()[part](*arguments)}", flush=True)


if __name__ == "__main__":
    main()
