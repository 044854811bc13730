"""Measure the errors of `ep`, and how often they are within twice its ``std_error``, family by family.

``python -m benchmarks.expectation_propagation`` makes the tables of errors of docs/expectation-propagation.md. With
``large`` it makes that of Sherrington-Kirkpatrick models of thousands of spins: the number of factorizations, and the
distance from annealing (``large check``, hours). The scale of error was calibrated on other models, with seeds below
30,000.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable

import numpy as np
from scipy.linalg import lapack

import spectralz as sz
from benchmarks.harness import processor, table
from spectralz.kernels.expectation_consistency import inverse_in_place

STRENGTHS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
FIELDS = (1.0, 0.05, 0.0)
FIRST_SEED = 30_000


def tree(n: int, strength: float, seed: int, field_strength: float) -> sz.Ising:
    """Return a random recursive tree with the weights of the other generators."""
    rng = np.random.default_rng(seed)
    edges = [(int(rng.integers(0, i)), i) for i in range(1, n)]
    weights = 2.0 * rng.uniform(-strength, strength, n - 1)
    return sz.Ising.from_edges(n, edges, weights, field=rng.uniform(-field_strength, field_strength, n))


def ferromagnet(model: sz.Ising) -> sz.Ising:
    """Return the same model with all couplings positive."""
    A = model.coupling
    return sz.Ising(model.field, abs(A) if model.is_sparse else np.abs(np.asarray(A)))


FAMILIES: dict[str, Callable[[int, float, int, float], sz.Ising]] = {
    "complete": sz.generators.complete,
    "Erdos-Renyi, p = 0.5": lambda n, s, seed, f: sz.generators.erdos_renyi(n, 0.5, s, seed, field_strength=f),
    "bipartite": sz.generators.bipartite,
    "4 x 4 grid": lambda _, s, seed, f: sz.generators.grid(4, s, seed, field_strength=f),
    "tree": tree,
}
FAMILIES |= {f"{name}, ferromagnetic": lambda *a, make=make: ferromagnet(make(*a)) for name, make in FAMILIES.items()}
FAMILIES["Curie-Weiss, strength 4 s"] = lambda n, s, _, f: sz.generators.curie_weiss(n, 4.0 * s, 0.25 * f)


class Score:
    """Errors, scales and verdicts of a batch of models."""

    def __init__(self, models: Iterable[sz.Ising]) -> None:
        found = [(sz.log_z(model, "ep"), sz.log_z(model, "exact").log_z) for model in models]
        self.count = len(found)
        self.error = np.array([abs(result.log_z - truth) for result, truth in found])
        self.uncorrected = np.array([abs(result.details["uncorrected"] - truth) for result, truth in found])
        self.scale = np.array([np.nan if r.std_error is None else r.std_error for r, _ in found])
        self.converged = np.array([result.std_error is not None for result, _ in found])
        self.trusted = np.array([result.trusted for result, _ in found])
        self.seconds = np.array([result.seconds for result, _ in found])
        # Rounding errors of the reference do not count.
        self.is_within = self.error <= 2.0 * self.scale + 1e-12


def complete_graph(n: int = 20, repeats: int = 50) -> None:
    """Print errors on the paper's complete graph, strength by strength."""
    sz.log_z(sz.generators.complete(n, 0.1, 0), "ep")
    rows = []
    for s in STRENGTHS:
        got = Score(sz.generators.complete(n, s, FIRST_SEED + k) for k in range(repeats))
        rows.append(
            [
                f"{s:g}",
                f"{got.error.mean():.2g} ± {got.error.std(ddof=1) / np.sqrt(repeats):.1g}",
                f"{got.uncorrected.mean():.2g}",
                f"{np.nanmedian(got.scale):.2g}",
                f"{got.is_within[got.converged].mean():.0%}",
                f"{got.converged.mean():.0%}",
                f"{got.trusted.mean():.0%}",
                f"{1e3 * np.median(got.seconds):.1f}",
            ]
        )
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    headings = ["s", "mean error", "uncorrected", "median std_error", "within twice it", "converged", "trusted", "ms"]
    print(f"\nComplete graph, n = {n}, {repeats} models per strength, {processor()}\n\n" + table(headings, rows))


def families(sizes: tuple[int, ...] = (11, 15, 19), repeats: int = 2) -> None:
    """Print how often the error is within twice its scale, by family and by trust."""
    rows = []
    for name, make in FAMILIES.items():
        got = Score(
            make(n, s, FIRST_SEED + k, field)
            for s in STRENGTHS
            for n in sizes
            for field in FIELDS
            for k in range(repeats)
        )
        settled, trusted = got.converged, got.trusted
        rows.append(
            [
                name,
                str(got.count),
                f"{settled.mean():.1%}",
                f"{got.is_within[settled].mean():.1%}",
                f"{np.median(got.scale[settled] / np.maximum(got.error[settled], 1e-12)):.2g}",
                f"{trusted.mean():.0%}",
                f"{got.is_within[trusted].mean():.1%}",
                f"{got.error[trusted].max():.2g}",
            ]
        )
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    headings = ["family", "models", "converged", "within 2 std_error", "median std_error / error"]
    headings += ["trusted", "trusted: within", "trusted: largest error"]
    print(f"\nn = {sizes}, s = {STRENGTHS}, field strength {FIELDS}\n\n" + table(headings, rows))


class Counted:
    """Counts the inverses and factorizations of whole matrices in a ``with`` block, by their precision."""

    def __init__(self) -> None:
        self.counts = {name: 0 for name in ("dpotri", "spotri", "dpotrf", "spotrf")}

    def __enter__(self) -> Counted:
        self._kept = {name: getattr(lapack, name) for name in self.counts}
        for name in self.counts:
            setattr(lapack, name, self._counting(name))
        return self

    def __exit__(self, *_: object) -> None:
        for name, function in self._kept.items():
            setattr(lapack, name, function)

    def _counting(self, name: str) -> Callable[..., object]:
        def counting(*args: object, **options: object) -> object:
            self.counts[name] += 1
            return self._kept[name](*args, **options)

        return counting

    @property
    def inverses(self) -> str:
        """Return inverses in double and in single precision, and other factorizations in units of an inverse."""
        alone = self.counts["dpotrf"] - self.counts["dpotri"] + 0.5 * (self.counts["spotrf"] - self.counts["spotri"])
        return f"{self.counts['dpotri']} + {self.counts['spotri']} + {alone / 3.0:.1f}"


def seconds_of_inverse(n: int) -> float:
    """Return the time of one inverse under the present load of the machine."""
    began = time.perf_counter()
    inverse_in_place(np.eye(n) + 0.1 / n)
    return time.perf_counter() - began


def large(
    sizes: tuple[int, ...] = (1000, 2000, 3000, 5000),
    strengths: tuple[float, ...] = (0.3, 0.9),
    fields: tuple[float, ...] = (0.0, 0.3),
    check: bool = False,
) -> None:
    """Print the cost of models of thousands of spins and, if asked, their distance from a long annealing."""
    rows = []
    sz.log_z(sz.generators.sk(600, 0.3, 0), "ep")
    for n in sizes:
        for strength in strengths:
            for field in fields:
                model = sz.generators.sk(n, strength, FIRST_SEED, field)
                before = seconds_of_inverse(n)
                with Counted() as counted:
                    got = sz.log_z(model, "ep")
                one = min(before, seconds_of_inverse(n))
                row = [str(n), f"{strength:g}", f"{field:g}", f"{got.log_z:.5f}", f"{got.std_error:.2g}"]
                row += [str(got.trusted), counted.inverses, f"{got.seconds:.1f}", f"{got.seconds / one:.1f}"]
                if check:
                    other = sz.log_z(model, budget=600.0, exclude=["ep", "bp"])
                    row.append(f"{got.log_z - other.log_z:+.2g} ± {other.std_error:.1g}")
                rows.append(row)
                print(" | ".join(row), file=sys.stderr, flush=True)
    headings = ["n", "beta", "field", "log Z", "std_error", "trusted", "inverses: double + single + factorizations"]
    headings += ["s", "in inverses' time"] + (["minus annealing"] if check else [])
    print(f"\nSherrington-Kirkpatrick models, {processor()}\n\n" + table(headings, rows))


def main() -> None:
    if "large" in sys.argv[1:]:
        large(check="check" in sys.argv[1:])
        return
    complete_graph()
    families()


if __name__ == "__main__":
    main()
