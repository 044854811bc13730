"""Measure the errors of the paper's baselines, and compare their speed with that of other packages.

``python -m benchmarks.baselines`` makes the table of errors on the paper's complete graph (Sec. 4.4) and compares `bp`
and `wmbe` with pyGMs and PGMax on the same instances, for docs/baselines.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

import spectralz as sz
from benchmarks.harness import Measurement, measure, processor, save, table

STRENGTHS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
MODELS = 15
METHODS: dict[str, sz.Method] = {
    **sz.PAPER_SETTINGS,
    "BP-200, damping 0.5": sz.BeliefPropagation(max_iter=200, damping=0.5),
    "MF-1000, 20 starts": sz.MeanField(restarts=20),
    "MBE-10, partition by content": sz.MiniBucket(ibound=10, partition="content"),
    "WMBE-10, 30 rounds": sz.WeightedMiniBucket(ibound=10, max_iter=30),
    "TRW": sz.TreeReweighted(),
    "TRW, 10 steps on the edges": sz.TreeReweighted(optimize_edges=10),
}
LARGE = "100 x 100 grid, s = 0.25"  # too large for exact methods, and for packages in plain Python
INSTANCES: dict[str, Callable[[], sz.Ising]] = {
    "15 x 15 grid, s = 0.25": lambda: sz.generators.grid(15, 0.25, seed=0),
    "complete graph, n = 20, s = 0.1": lambda: sz.generators.complete(20, 0.1, seed=0),
    LARGE: lambda: sz.generators.grid(100, 0.25, seed=0),
}


def errors(n: int = 20) -> None:
    """Print mean |error| of every method at every strength, with its standard error over the models."""
    rows = []
    truth = {
        (s, seed): sz.log_z(sz.generators.complete(n, s, seed), "exact").log_z
        for s in STRENGTHS
        for seed in range(MODELS)
    }
    for name, method in METHODS.items():
        sz.log_z(sz.generators.complete(n, 1.0, 0), method)
        cells, seconds = [], []
        for s in STRENGTHS:
            found = [sz.log_z(sz.generators.complete(n, s, seed), method) for seed in range(MODELS)]
            size = np.abs([result.log_z - truth[s, seed] for seed, result in enumerate(found)])
            seconds += [result.seconds for result in found]
            cells.append(f"{size.mean():.3g} ± {size.std(ddof=1) / np.sqrt(MODELS):.1g}")
        rows.append([name, *cells, f"{np.mean(seconds):.4f}"])
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    headings = ["method", *(f"s = {s:g}" for s in STRENGTHS), "seconds"]
    print(
        f"\nMean |error| of log Z, complete graph, n = {n}, {MODELS} models, {processor()}\n\n" + table(headings, rows)
    )


# --- other packages ------------------------------------------------------------------------------------------------


def pygms_model(model: sz.Ising) -> object:
    """Write a model as a pyGMs graphical model of positive tables."""
    from pygms import Factor, GraphModel, Var

    spins = [Var(i, 2) for i in range(model.n)]
    edges, J = model.edges()
    factors = [Factor([spins[i]], np.exp([-h, h])) for i, h in enumerate(model.field.tolist())]
    for (i, j), weight in zip(edges.tolist(), J.tolist(), strict=True):
        factors.append(Factor([spins[i], spins[j]], np.exp(weight * np.array([[1.0, -1.0], [-1.0, 1.0]]))))
    return GraphModel(factors)


def bp_ours(model: sz.Ising) -> Callable[[], float]:
    return lambda: sz.log_z(model, "bp", tol=1e-300).log_z


def bp_pygms(model: sz.Ising) -> Callable[[], float]:
    from pygms.messagepass import LBP

    other = pygms_model(model)
    return lambda: float(LBP(other, maxIter=200)[0])


def bp_pgmax(model: sz.Ising) -> Callable[[], float]:
    """Run PGMax, which gives no log Z: the number is the mean over spins of |P(x_i = +1) - that of our bp|."""
    import jax
    from pgmax import fgraph, fgroup, infer, vgroup

    ours = sz.marginals(model, "bp").probability[:, 1]
    variables = vgroup.NDVarArray(num_states=2, shape=(model.n,))
    graph = fgraph.FactorGraph(variable_groups=[variables])
    edges, J = model.edges()
    graph.add_factors(
        fgroup.PairwiseFactorGroup(
            variables_for_factors=[[variables[i], variables[j]] for i, j in edges.tolist()],
            log_potential_matrix=J[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]]),
        )
    )
    inferer = infer.build_inferer(graph.bp_state, backend="bp")
    first = inferer.init(evidence_updates={variables: np.stack([-model.field, model.field], axis=1)})
    iterate = jax.jit(lambda arrays: inferer.run(arrays, num_iters=200, damping=0.0, temperature=1.0))

    def run() -> float:
        marginals = infer.get_marginals(inferer.get_beliefs(iterate(first)))[variables]
        return float(np.abs(np.asarray(marginals)[:, 1] - ours).mean())

    return run


def wmbe_ours(rounds: int) -> Callable[[sz.Ising], Callable[[], float]]:
    return lambda model: lambda: sz.log_z(model, "wmbe", ibound=10, max_iter=rounds).log_z


def wmbe_pygms(rounds: int) -> Callable[[sz.Ising], Callable[[], float]]:
    def prepare(model: sz.Ising) -> Callable[[], float]:
        from pygms.wmb import WMB

        other = pygms_model(model)

        def run() -> float:
            buckets = WMB(other, elimOrder="minfill", iBound=10, weights="sum+")
            value = buckets.msgForward(0.0, 0.0)
            for k in range(1, rounds + 1):
                value = min(value, buckets.msgForward(1.0 / k, 0.1))
                buckets.msgBackward(0.0, 1.0 / k)
            return float(value)

        return run

    return prepare


CONTESTANTS: list[tuple[str, str, Callable[[sz.Ising], Callable[[], float]]]] = [
    ("BP, 200 iterations", "spectralz", bp_ours),
    ("BP, 200 iterations", "pyGMs", bp_pygms),
    ("BP, 200 iterations", "PGMax (beliefs only)", bp_pgmax),
    ("WMBE, ibound 10", "spectralz", wmbe_ours(0)),
    ("WMBE, ibound 10", "pyGMs", wmbe_pygms(0)),
    ("WMBE, ibound 10, 10 rounds", "spectralz", wmbe_ours(10)),
    ("WMBE, ibound 10, 10 rounds", "pyGMs", wmbe_pygms(10)),
]


def races() -> list[Measurement]:
    measurements, rows = [], []
    for instance, make in INSTANCES.items():
        model = make()
        truth = None if instance == LARGE else sz.log_z(model, "exact").log_z
        base: dict[str, float | None] = {}
        for task, contestant, prepare in CONTESTANTS:
            if instance == LARGE and contestant == "pyGMs":
                continue
            found = measure(f"{instance}: {task}", contestant, lambda p=prepare, m=model: p(m))
            measurements.append(found)
            base.setdefault(task, found.seconds)
            rows.append([instance, task, contestant, *_cells(found, base[task], truth)])
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    headings = ["instance", "task", "contestant", "seconds", "times ours", "error of log Z", "note"]
    print("\nOther packages, one thread\n\n" + table(headings, rows))
    return measurements


def _cells(found: Measurement, base: float | None, truth: float | None) -> list[str]:
    if found.seconds is None or found.value is None or base is None:
        return ["-", "-", "-", found.note]
    if "beliefs" in found.contestant:
        return [f"{found.seconds:.4f}", f"{found.seconds / base:.1f}", "-", f"P(+1) off ours by {found.value:.0e}"]
    error = "-" if truth is None else f"{found.value - truth:+.4f}"
    return [f"{found.seconds:.4f}", f"{found.seconds / base:.1f}", error, found.note]


def large_grid(side: int = 300) -> None:
    """Time 200 parallel iterations on a large grid."""
    model = sz.generators.grid(side, 0.3, seed=0)
    found = measure(f"{side} x {side} grid", "bp", lambda: lambda: sz.log_z(model, "bp", tol=1e-300).log_z, repeats=1)
    print(f"\n200 parallel iterations of bp on a {side} x {side} grid: {found.seconds:.2f} s {found.note}")


def main() -> None:
    errors()
    save("baselines", races())
    large_grid()


if __name__ == "__main__":
    main()
