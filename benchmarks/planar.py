"""Time and errors of planar graphs: ``python -m benchmarks.planar [rivals] [sides...]``.

Without ``rivals``: log Z, means, and where digits run out, on square lattices. With it: ``mps``, and quimb's exact
contraction where it is installed, on the same models.
"""

from __future__ import annotations

import resource
import sys
import time
from importlib.util import find_spec

import numpy as np

import spectralz as sz
from spectralz.parts.planar.graph import couplings_of, planar_graph
from spectralz.parts.planar.sums import solve

BETAS = (0.5, 1.0, 2.0)
COLD = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0)


def sizes(sides: list[int], couplings: str = "bimodal", beta: float = 1.0) -> None:
    """Print the time to draw, log Z, and means."""
    print("side  draw   log Z  with means  GB of all  error")
    for side in sides:
        model = sz.generators.square(side, side, beta, 0, couplings)
        times = [time.process_time()]
        graph = planar_graph(model)
        for with_means in (False, True):
            times.append(time.process_time())
            solved = solve(graph, couplings_of(model), with_means=with_means)
        times.append(time.process_time())
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        row = " ".join(f"{seconds:8.2f}" for seconds in np.diff(times))
        print(f"{side:4} {row} {memory:8.2f}   {solved.error:.1e}", flush=True)


def cold(sides: list[int]) -> None:
    """Print the errors of log Z as digits run out."""
    for couplings in ("gaussian", "bimodal"):
        for side in sides:
            model = sz.generators.square(side, side, 1.0, 0, couplings)
            graph, J = planar_graph(model), couplings_of(model)
            errors = [solve(graph, beta * J).error for beta in COLD]
            print(couplings, side, " ".join(f"{b:g}: {e:.0e}" for b, e in zip(COLD, errors, strict=True)), flush=True)


def rivals(sides: list[int]) -> None:
    """Print time and error of ``planar`` and of others."""
    for side in sides:
        for beta in BETAS:
            model = sz.generators.square(side, side, beta, 0, "gaussian")
            began = time.process_time()
            found = sz.log_z(model, "planar")
            seconds = time.process_time() - began
            print(f"{side} x {side}, beta {beta}: planar {seconds:.2f} s, error {found.std_error:.0e}", flush=True)
            for bond in (8, 16, 32):
                began = time.process_time()
                other = sz.log_z(model, "mps", bond=bond, samples=0)
                passed = time.process_time() - began
                print(f"  mps, bond {bond}: {passed:.2f} s, off {other.log_z - found.log_z:+.0e}", flush=True)
                if passed > 10.0 * seconds:
                    break
            if find_spec("quimb") and side <= 32:
                began = time.process_time()
                off = contracted(model, side) - found.log_z
                print(f"  quimb: {time.process_time() - began:.2f} s, off {off:+.0e}", flush=True)


def contracted(model: sz.Ising, side: int) -> float:
    """Return log Z by quimb: one tensor per spin, contracted exactly."""
    import quimb.tensor as qtn

    edges, J = model.edges()
    tensors = [qtn.Tensor(_copies(len(names)), names) for names in _bonds(edges, side * side)]
    for e, coupling in enumerate(J.tolist()):
        weights = np.exp(coupling * np.array([[1.0, -1.0], [-1.0, 1.0]]) - abs(coupling))
        tensors.append(qtn.Tensor(weights, (f"{e}a", f"{e}b")))
    network = qtn.TensorNetwork(tensors)
    value, exponent = network.contract(optimize="auto-hq", strip_exponent=True, output_inds=())
    return float(np.log(abs(value)) + exponent * np.log(10.0) + np.abs(J).sum())


def _bonds(edges: np.ndarray, n: int) -> list[list[str]]:
    names: list[list[str]] = [[] for _ in range(n)]
    for e, (i, j) in enumerate(edges.tolist()):
        names[i].append(f"{e}a")
        names[j].append(f"{e}b")
    return names


def _copies(count: int) -> np.ndarray:
    copy = np.zeros((2,) * count)
    copy[(0,) * count] = copy[(1,) * count] = 1.0
    return copy


if __name__ == "__main__":
    wanted = [int(word) for word in sys.argv[1:] if word.isdigit()] or [32, 64, 128]
    if "rivals" in sys.argv:
        rivals(wanted)
    else:
        sizes(wanted)
        cold([side for side in wanted if side <= 64])
