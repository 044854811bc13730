"""Compare ways to learn from data: time and held-out log-likelihood.

``python -m benchmarks.learning [n ...]`` compares, ``python -m benchmarks.learning recovery`` recovers known models.

All contestants get the same 2,000 rows drawn from a known model, and are scored on 2,000 others. Ising models are
scored exactly. The score of the true model is the best possible one, up to chance. Times are CPU seconds.
"""

from __future__ import annotations

import importlib.util
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import spectralz as sz
from benchmarks.harness import Measurement, processor, save, table

ROWS = 2000


@dataclass(frozen=True)
class Task:
    """Training data, test data, and the pairs that may be coupled."""

    name: str
    truth: sz.Ising
    train: np.ndarray
    test: np.ndarray

    @property
    def edges(self) -> list[tuple[int, int]]:
        """Return the pairs that may be coupled."""
        return [(int(i), int(j)) for i, j in self.truth.edges()[0]]

    def score(self, model: sz.Ising) -> float:
        """Return the mean log-likelihood of the held-out rows."""
        return float(np.mean(model.log_weight(self.test)) - sz.log_z(model).log_z)


def task_of(n: int) -> Task:
    """Return a task: dense up to 24 spins, a square grid beyond."""
    if n <= 24:
        name, truth = f"complete graph, n = {n}", sz.generators.complete(n, 2.0 / n, seed=0)
    else:
        side = round(n**0.5)
        name, truth = f"grid {side} x {side}", sz.generators.grid(side, 0.4, seed=0)
    states = sz.sample(truth, 2 * ROWS, seed=1)
    return Task(name, truth, states[:ROWS], states[ROWS:])


def ours(method: str) -> Callable[[Task], sz.Ising]:
    return lambda task: sz.fit(task.train, graph=task.truth, method=method).model


def logistic_regressions(task: Task) -> sz.Ising:
    """Regress each variable on its neighbors with scikit-learn, and average the two estimates of a coupling."""
    from sklearn.linear_model import LogisticRegression

    n = task.truth.n
    neighbors: list[list[int]] = [[] for _ in range(n)]
    for i, j in task.edges:
        neighbors[i].append(j)
        neighbors[j].append(i)
    field, J = np.zeros(n), np.zeros((n, n))
    for i in range(n):
        found = LogisticRegression(C=np.inf, max_iter=1000).fit(task.train[:, neighbors[i]], task.train[:, i])
        # log odds = 2 (theta_i + sum_j J_ij x_j)
        field[i], J[i, neighbors[i]] = found.intercept_[0] / 2.0, found.coef_[0] / 2.0
    return sz.Ising(field, (J + J.T) / 4.0)


def textbook(task: Task, steps: int = 1000, rate: float = 0.05, chains: int = 500) -> sz.Ising:
    """Fit by textbook gradient ascent: persistent Gibbs chains, plain steps, all in numpy."""
    rng = np.random.default_rng(0)
    n = task.truth.n
    mask = np.zeros((n, n))
    for i, j in task.edges:
        mask[i, j] = mask[j, i] = 1.0
    X = task.train.astype(float)
    mean, pairs = X.mean(axis=0), X.T @ X / len(X)
    field, J = np.arctanh(np.clip(mean, -0.99, 0.99)), np.zeros((n, n))
    x = X[rng.integers(len(X), size=chains)]
    for step in range(steps):
        for i in range(n):
            x[:, i] = np.where(2.0 * rng.random(chains) - 1.0 < np.tanh(field[i] + x @ J[:, i]), 1.0, -1.0)
        now = rate * (1.0 - step / steps)
        field += now * (mean - x.mean(axis=0))
        J += now * mask * (pairs - x.T @ x / chains)
    return sz.Ising(field, J / 2.0)


def sklearn_rbm(task: Task) -> sz.RBM:
    from sklearn.neural_network import BernoulliRBM

    machine = BernoulliRBM(n_components=task.truth.n, n_iter=50, learning_rate=0.02, random_state=0)
    return sz.RBM.from_sklearn(machine.fit((task.train + 1) // 2))


def our_rbm(task: Task) -> sz.RBM:
    return sz.RBM.fit((task.train + 1) // 2, n_hidden=task.truth.n, epochs=50, seed=0)


def coniii(task: Task) -> sz.Ising:
    """Fit by the enumeration of ConIII (Lee and Daniels 2019), if it is installed."""
    from coniii.solvers import Enumerate

    found = Enumerate(task.train).solve()
    n = task.truth.n
    J = np.zeros((n, n))
    J[np.triu_indices(n, 1)] = found[n:]
    return sz.Ising(found[:n], (J + J.T) / 2.0)


CONTESTANTS: dict[str, Callable[[Task], sz.Ising | sz.RBM]] = {
    "spectralz exact": ours("exact"),
    "spectralz pseudo": ours("pseudo"),
    "spectralz sampled": ours("sampled"),
    "logistic regressions": logistic_regressions,
    "textbook gradient": textbook,
    "BernoulliRBM": sklearn_rbm,
    "spectralz RBM": our_rbm,
}
if importlib.util.find_spec("coniii") is not None:
    CONTESTANTS["coniii"] = coniii


def measured(task: Task, name: str) -> Measurement:
    """Run one contestant and score it."""
    began = time.process_time()
    try:
        found = CONTESTANTS[name](task)
    except Exception as error:  # the failure of another package is a result
        return Measurement(task.name, name, None, None, None, f"{type(error).__name__}: {str(error)[:70]}")
    seconds = time.process_time() - began
    if isinstance(found, sz.Ising):
        return Measurement(task.name, name, seconds, task.score(found), None)
    score = found.log_likelihood((task.test + 1) // 2, budget=5.0, check=False)
    error = "" if score.std_error is None else f"+- {score.std_error:.2g}"
    return Measurement(task.name, name, seconds, score.log_likelihood, None, error)


def recovery(sizes: tuple[int, ...] = (10, 20, 100), rows: tuple[int, ...] = (1000, 4000, 16_000)) -> list[list[str]]:
    """Fit data of known models, and print the error times the root of the rows and the coverage of the intervals."""
    lines = []
    for n in sizes:
        task = task_of(n)
        true = np.concatenate([task.truth.field, task.truth.edges()[1]])
        states = sz.sample(task.truth, max(rows), seed=2)
        for count in rows:
            fit = sz.fit(states[:count], graph=task.truth, method="exact")
            found = np.concatenate([fit.model.field, fit.model.edges()[1]])
            if fit.field_error is None or fit.coupling_error is None:
                lines.append([task.name, f"{count}", "", "", str(fit.status)])
                continue
            error = np.concatenate([fit.field_error, fit.coupling_error])
            off = float(np.sqrt(np.mean((found - true) ** 2)))
            covered = float(np.mean(np.abs(found - true) < 1.96 * error))
            lines.append([task.name, f"{count}", f"{off:.4f}", f"{off * count**0.5:.2f}", f"{covered:.0%}"])
    headings = ["model", "rows", "error (rms)", "error x root of rows", "within 1.96 standard errors"]
    print(f"\nRecovery of known models, exact fits, {processor()}\n\n{table(headings, lines)}", flush=True)
    return lines


def main(sizes: tuple[int, ...] = (10, 20, 100)) -> list[Measurement]:
    small = task_of(6)
    for name in CONTESTANTS:
        measured(small, name)  # imports and compiles
    found = []
    for n in sizes:
        task = task_of(n)
        rows = [["the truth itself", "", f"{task.score(task.truth):.4f}"]]
        for name in CONTESTANTS:
            own = measured(task, name)
            found.append(own)
            score = own.note if own.value is None else f"{own.value:.4f} {own.note}".strip()
            rows.append([name, "" if own.seconds is None else f"{own.seconds:.2f}", score])
        headings = ["", "CPU seconds", "held-out log-likelihood per row"]
        print(f"\n{task.name}, {ROWS} rows, {processor()}\n\n{table(headings, rows)}", flush=True)
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:] == ["recovery"]:
        recovery()
    else:
        save("learning", main(tuple(int(n) for n in sys.argv[1:]) or (10, 20, 100)))
