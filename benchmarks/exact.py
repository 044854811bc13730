"""Compare exact log Z with pgmpy, quimb with cotengra, and dwave-samplers: ``python -m benchmarks.exact``.

``python -m benchmarks.exact orders`` measures the search for elimination orders alone: the widths and CPU seconds of
the rules of thumb, of the search, and of cotengra if it is installed.

The time of every contestant counts from the model in its own data structure to log Z. It includes the search for an
elimination order or contraction path, except for "best path": there the best of 32 paths is found beforehand. Errors
are differences from our own enclosure, proven to about 1e-11.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import spectralz as sz
from benchmarks.harness import Measurement, measure, processor, save, table


def regular_graph(n: int, degree: int, strength: float, seed: int) -> sz.Ising:
    """Return a random regular graph with weights as in the paper: stubs are joined until no pair is joined twice."""
    rng = np.random.default_rng(seed)
    while True:
        stubs = rng.permutation(np.repeat(np.arange(n), degree)).reshape(-1, 2)
        pairs = np.unique(np.sort(stubs, axis=1), axis=0)
        if len(pairs) == n * degree // 2 and np.all(pairs[:, 0] != pairs[:, 1]):
            return sz.Ising.from_edges(
                n, pairs, 2 * rng.uniform(-strength, strength, len(pairs)), rng.uniform(-1, 1, n)
            )


INSTANCES: dict[str, Callable[[], sz.Ising]] = {
    "complete graph, n = 20, s = 1": lambda: sz.generators.complete(20, 1.0, seed=0),
    "complete graph, n = 24, s = 1": lambda: sz.generators.complete(24, 1.0, seed=0),
    "15 x 15 grid, s = 1": lambda: sz.generators.grid(15, 1.0, seed=0),
    "15 x 15 grid, s = 4": lambda: sz.generators.grid(15, 4.0, seed=0),
    "3-regular graph, n = 100, s = 1": lambda: regular_graph(100, 3, 1.0, seed=0),
    "RBM 20 + 20, scale 1": lambda: sz.generators.rbm(20, 20, 1.0, seed=0),
}


def ours(model: sz.Ising, algorithm: str) -> Callable[[], float]:
    return lambda: sz.log_z(model, "exact", algorithm=algorithm).log_z


def factors_of(model: sz.Ising) -> list[tuple[tuple[int, ...], np.ndarray]]:
    """Return the model as positive tables over states 0 and 1."""
    x = np.array([-1.0, 1.0])
    single = [((i,), np.exp(theta * x)) for i, theta in enumerate(model.field.tolist())]
    edges, J = model.edges()
    return single + [((i, j), np.exp(w * np.outer(x, x))) for (i, j), w in zip(edges.tolist(), J.tolist(), strict=True)]


def pgmpy(model: sz.Ising) -> Callable[[], float]:
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.inference import VariableElimination
    from pgmpy.models import DiscreteMarkovNetwork

    network = DiscreteMarkovNetwork()
    network.add_nodes_from([str(i) for i in range(model.n)])
    for scope, values in factors_of(model):
        names = [str(i) for i in scope]
        if len(scope) == 2:
            network.add_edge(*names)
        network.add_factors(DiscreteFactor(names, [2] * len(scope), values.ravel()))

    def run() -> float:
        # On a Markov network the answer comes unnormalized, so that its sum is Z.
        return float(np.log(VariableElimination(network).query(["0"], show_progress=False).values.sum()))

    return run


def tensor_network(model: sz.Ising):  # type: ignore[no-untyped-def]
    import quimb.tensor as qtn

    return qtn.TensorNetwork([qtn.Tensor(values, inds=[f"x{i}" for i in scope]) for scope, values in factors_of(model)])


def contracted(network, path) -> float:  # type: ignore[no-untyped-def]
    mantissa, exponent = network.contract(all, output_inds=(), optimize=path, strip_exponent=True)
    return float(np.log(mantissa) + exponent * np.log(10.0))


def quimb_greedy(model: sz.Ising) -> Callable[[], float]:
    import cotengra

    network = tensor_network(model)
    # With the name "greedy" the path would be cached between runs, and only the contraction would be timed.
    return lambda: contracted(network, cotengra.GreedyOptimizer())


def quimb_searched(model: sz.Ising) -> Callable[[], float]:
    """Return the contraction along the best of 32 random-greedy paths, found before the clock starts."""
    import cotengra

    network = tensor_network(model)
    path = network.contraction_tree(cotengra.RandomGreedyOptimizer(max_repeats=32), output_inds=())
    if path.contraction_width() > 28:
        raise MemoryError(f"the best path needs a tensor of 2^{path.contraction_width():.0f} entries")
    return lambda: contracted(network, path)


def dwave(model: sz.Ising) -> Callable[[], float]:
    import dimod
    from dwave.samplers import TreeDecompositionSampler

    edges, J = model.edges()
    energies = {(i, j): -w for (i, j), w in zip(edges.tolist(), J.tolist(), strict=True)}
    bqm = dimod.BinaryQuadraticModel(dict(enumerate((-model.field).tolist())), energies, 0.0, "SPIN")

    def run() -> float:
        found = TreeDecompositionSampler().sample(bqm, beta=1.0, num_reads=1, marginals=False)
        return float(found.info["log_partition_function"])

    return run


CONTESTANTS: dict[str, Callable[[sz.Ising], Callable[[], float]]] = {
    "spectralz, elimination": lambda model: ours(model, "elimination"),
    "spectralz, enumeration": lambda model: ours(model, "enumeration"),
    "pgmpy": pgmpy,
    "quimb + cotengra, greedy path": quimb_greedy,
    "quimb + cotengra, best path": quimb_searched,
    "dwave-samplers": dwave,
}


GRAPHS: dict[str, Callable[[], sz.Ising]] = {
    "Chimera, 5 x 5 cells": lambda: sz.generators.chimera(5, 5, 1.0, seed=0),
    "torus, 12 x 12": lambda: sz.generators.square(12, 12, 1.0, seed=0, periodic=True),
    "king's graph, 14 x 14": lambda: sz.generators.kings(14, 14, 1.0, seed=0),
    "king's graph, 20 x 20": lambda: sz.generators.kings(20, 20, 1.0, seed=0),
    "3-regular, n = 100": lambda: regular_graph(100, 3, 1.0, seed=0),
    "3-regular, n = 150": lambda: regular_graph(150, 3, 1.0, seed=0),
    "3-regular, n = 200": lambda: regular_graph(200, 3, 1.0, seed=0),
}
SEARCHES: dict[str, dict[str, Any]] = {
    "cheapest of three rules": {"order": "rules"},
    "best, no search": {"search": 0},
    "best": {},
    "best, search=25e6": {"search": 25_000_000},
}
# The time limit of cotengra, in seconds.
COTENGRA_SECONDS = 15.0
# log Z is computed if the plan has no more entries than this.
MOST_TERMS = 2**31


def orders(graphs: list[str] | None = None) -> list[list[str]]:
    """Print widths, table entries and CPU seconds of the orders found, and of log Z along them."""
    rows = []
    for name in graphs or list(GRAPHS):
        model = GRAPHS[name]()
        for search, options in SEARCHES.items():
            rows.append([name, search, *_searched(model, options)])
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
        rows.append([name, f"cotengra, {COTENGRA_SECONDS:g} s", *_by_cotengra(model)])
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    print(f"\nElimination orders, CPU seconds, {processor()}\n")
    print(table(["graph", "order", "width", "log2 entries", "search: s", "log Z: s"], rows))
    return rows


def _searched(model: sz.Ising, options: dict[str, Any]) -> list[str]:
    limits = {"algorithm": "elimination", "max_memory": 2**50, "max_terms": 2**50}
    began = time.process_time()
    if options.get("order") == "rules":
        rules = ("min-degree", "min-fill", "banded")
        exact = min((sz.Exact(order=rule, **limits) for rule in rules), key=lambda each: each.plan(model).terms)
    else:
        exact = sz.Exact(**options, **limits)
    plan = exact.plan(model)
    planned = time.process_time()
    if plan.terms <= MOST_TERMS and plan.memory <= 4 * 2**30:
        exact.solve_plan(model, plan)
        solved = f"{time.process_time() - planned:.3g}"
    else:
        solved = "-"
    return [str(plan.width), f"{np.log2(plan.terms):.1f}", f"{planned - began:.2g}", solved]


def _by_cotengra(model: sz.Ising) -> list[str]:
    try:
        import cotengra
    except ImportError:
        return ["not installed", "-", "-", "-"]
    pairs = [tuple(pair) for pair in model.edges()[0].tolist()]
    began = time.process_time()
    optimizer = cotengra.HyperOptimizer(
        max_time=COTENGRA_SECONDS, max_repeats=10**6, parallel=False, minimize="combo", on_trial_error="ignore"
    )
    tree = optimizer.search(pairs, (), dict.fromkeys(range(model.n), 2))
    seconds = time.process_time() - began
    # A contraction of two tensors is one product for each state of all their spins.
    return [f"{tree.contraction_width():.0f}", f"{np.log2(float(tree.contraction_cost())):.1f}", f"{seconds:.2g}", "-"]


def main(instances: list[str] | None = None, limit_s: float = 300.0) -> list[Measurement]:
    measurements = []
    rows = []
    for name in instances or list(INSTANCES):
        model = INSTANCES[name]()
        truth: float | None = None
        ours_s: float | None = None
        for contestant, prepare in CONTESTANTS.items():
            if contestant == "spectralz, enumeration" and model.n > 30:
                continue
            found = measure(name, contestant, lambda p=prepare, m=model: p(m), limit_s=limit_s)
            measurements.append(found)
            if contestant == "spectralz, elimination":
                truth, ours_s = found.value, found.seconds
            rows.append(_row(found, truth, ours_s))
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    save("exact", measurements)
    print(f"\nExact log Z, one thread, {processor()}, median of three runs\n")
    print(table(["instance", "contestant", "seconds", "times ours", "error", "peak MiB", "note"], rows))
    return measurements


def _row(found: Measurement, truth: float | None, ours_s: float | None) -> list[str]:
    seconds = "-" if found.seconds is None else f"{found.seconds:.4f}"
    ratio = "-" if found.seconds is None or ours_s is None else f"{found.seconds / ours_s:.1f}"
    error = "-" if found.value is None or truth is None else f"{found.value - truth:.1e}"
    peak = "-" if found.peak_mib is None else f"{found.peak_mib:.0f}"
    return [found.instance, found.contestant, seconds, ratio, error, peak, found.note]


if __name__ == "__main__":
    if sys.argv[1:2] == ["orders"]:
        orders(sys.argv[2:] or None)
    else:
        main(sys.argv[1:] or None)
