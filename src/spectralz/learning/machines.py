"""Restricted Boltzmann machines: learning by persistent contrastive divergence, and the likelihood of data.

The likelihood has many maxima and its gradient needs samples, so that a fitted machine is one of many. Its likelihood
on held-out data shows how good it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spectralz._support.deadline import Deadline, is_past
from spectralz._support.options import checked_count, checked_positive, not_negative
from spectralz._support.progress import report
from spectralz._support.threads import NO_MATRICES, using_threads
from spectralz.errors import ModelError, OptionError
from spectralz.inference import log_z
from spectralz.kernels.single_spin import log_2cosh
from spectralz.learning.table import Table, spins_of
from spectralz.model import RBM, FloatArray
from spectralz.model.columns import labels_of, states_in_order
from spectralz.result import DataLikelihood, Status
from spectralz.sampling.engines.collapsed import Sides
from spectralz.sampling.path import from_fields
from spectralz.sampling.round_trips import way_back
from spectralz.trust.judgment import agree_per_row

# The first weights are small and random, as in Hinton's guide; means are kept away from -1 and +1 by one row's weight.
FIRST_WEIGHT = 0.01
# Weights beyond this have grown without limit; far smaller ones already fix every unit.
LARGEST_PARAMETER = 1e10
# Temperatures of annealing backwards, and the most rows that it begins from.
TEMPERATURES = 1000
REVERSE_ROWS = 100


def fit_rbm(
    table: Table, n_hidden: Any, epochs: Any, rate: Any, batch: Any, chains: Any, decay: Any, seed: Any, budget: Any
) -> RBM:
    """Return a machine fitted to data; see :meth:`spectralz.RBM.fit`."""
    states = table.known_states("an RBM").astype(np.float64)
    hidden = checked_count(n_hidden, "n_hidden", least=1)
    steps, size = checked_count(epochs, "epochs", least=1), checked_count(batch, "batch", least=1)
    speed, count = checked_positive(rate, "rate"), checked_count(chains, "chains", least=1)
    shrinkage = not_negative(decay, "decay")
    rng = np.random.default_rng(checked_count(seed, "seed", least=0))
    seconds = np.inf if budget is None else checked_positive(budget, "budget")
    machine = _Machine(states, table.weight / table.rows, hidden, count, rng)
    try:
        with (
            using_threads(None, NO_MATRICES),
            Deadline.after(seconds).in_force(),
            np.errstate(over="ignore", invalid="ignore"),  # weights that grow without limit are refused
        ):
            for epoch in range(steps):
                # The rate falls to zero, and so does the noise of the last steps.
                machine.learn(speed * (1.0 - epoch / steps), size, shrinkage)
                machine.refuse_divergence(speed, shrinkage)
                report("learning", (epoch + 1) / steps)
                if is_past():
                    break
    except KeyboardInterrupt:
        pass  # what has been learned so far is a machine too
    return machine.as_rbm(table)


class _Machine:
    """Weights for spins -1 and +1 in both layers, and the chains that follow them."""

    def __init__(
        self, states: FloatArray, share: FloatArray, hidden: int, chains: int, rng: np.random.Generator
    ) -> None:
        self.states, self.share, self.rng = states, share, rng
        n = states.shape[1]
        mean = share @ states
        self.W = FIRST_WEIGHT * rng.standard_normal((n, hidden))
        self.b = np.arctanh(np.clip(mean, -1.0 + 1.0 / len(states), 1.0 - 1.0 / len(states)))
        self.c = np.zeros(hidden)
        self.v = states[rng.choice(len(states), size=chains, p=share)]

    def learn(self, rate: float, size: int, decay: float) -> None:
        """Learn from as many rows as there are, drawn by their weights, in batches."""
        for _ in range(max(1, -(-len(self.states) // size))):
            data = self.states[self.rng.choice(len(self.states), size=size, p=self.share)]
            of_data = np.tanh(data @ self.W + self.c)
            h = _drawn(self.v @ self.W + self.c, self.rng)
            self.v = _drawn(h @ self.W.T + self.b, self.rng)
            of_chains = np.tanh(self.v @ self.W + self.c)
            self.W += rate * (data.T @ of_data / size - self.v.T @ of_chains / len(self.v) - decay * self.W)
            self.b += rate * (data.mean(axis=0) - self.v.mean(axis=0))
            self.c += rate * (of_data.mean(axis=0) - of_chains.mean(axis=0))

    def refuse_divergence(self, rate: float, decay: float) -> None:
        """Refuse a rate, or a decay, with which parameters grow without limit."""
        if all(np.all(np.abs(each) < LARGEST_PARAMETER) for each in (self.W, self.b, self.c)):  # nor is one NaN
            return
        raise OptionError(
            f"rate is {rate} and decay is {decay}, with which the weights grow without limit; give a smaller rate, "
            "such as 0.05, and a decay far below 1 / rate"
        )

    def as_rbm(self, table: Table) -> RBM:
        """Return the machine in the values of the data; for 0 and 1, x = 2 v - 1 is put into the log-weight."""
        hidden = [f"h{j}" for j in range(len(self.c))]
        names = None if table.names is None else [*table.names, *hidden]
        if table.values == "pm1":
            return RBM(self.W, self.b, self.c, "pm1", names)
        visible = 2.0 * self.b - 2.0 * self.W.sum(axis=1)
        return RBM(4.0 * self.W, visible, 2.0 * self.c - 2.0 * self.W.sum(axis=0), "01", names)


def free_energies(rbm: RBM, spins: Any) -> FloatArray:
    """Return the log-weight of visible spins with all hidden units summed out."""
    model, n = rbm.to_ising(), rbm.weights.shape[0]
    x = spins.astype(np.float64)
    return np.asarray(model.constant + x @ model.field[:n] + log_2cosh(_hidden_fields(rbm, x)).sum(axis=1))


def _hidden_fields(rbm: RBM, x: Any) -> FloatArray:
    """Return the fields on the hidden spins, given visible spins."""
    couplings = rbm.weights / 4.0 if rbm.values == "01" else rbm.weights
    return np.asarray(x @ couplings + rbm.to_ising().field[rbm.weights.shape[0] :])


def _drawn(fields: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw spins from their fields: P(+1) = (1 + tanh(field)) / 2."""
    return np.where(2.0 * rng.random(fields.shape) - 1.0 < np.tanh(fields), 1.0, -1.0)


def log_likelihood(rbm: RBM, X: Any, method: Any = "auto", *, check: bool = True, seed: int = 0, **options: Any) -> Any:
    """Return the likelihood of rows of visible units; see :meth:`spectralz.RBM.log_likelihood`."""
    if "given" in options:
        raise OptionError(
            "given is no option here, since rows fix the visible units; use log_prob(machine, states, given=)"
        )
    n = rbm.weights.shape[0]
    spins, _ = spins_of(states_in_order(X, rbm._column_names(labels_of(X))[:n]), rbm.values, complete=True)
    if spins.ndim != 2 or spins.shape[1] != n or not len(spins):
        raise ModelError(f"X has shape {spins.shape}; give rows of the machine's {n} visible units")
    estimate = log_z(rbm, method, **options)
    weight = free_energies(rbm, spins)
    log_prob = weight - estimate.log_z
    value, energy = float(log_prob.mean()), float(weight.mean())
    error = None if estimate.kind == "exact" else estimate.std_error
    reverse = reverse_error = None
    rows = 0
    if check and estimate.kind != "exact":
        rng = np.random.default_rng(checked_count(seed, "seed", least=0))
        rows = min(REVERSE_ROWS, len(spins))
        chosen = rng.choice(len(spins), size=rows, replace=False)
        # Different rows differ much more than two estimates of the same row.
        difference = reverse_annealed(rbm, spins[chosen], TEMPERATURES, rng, spins.mean(axis=0)) - log_prob[chosen]
        reverse = value + float(difference.mean())
        reverse_error = float(difference.std(ddof=1) / np.sqrt(rows)) if rows > 1 else None
    lower = None if estimate.upper is None else energy - estimate.upper
    upper = None if estimate.lower is None else energy - estimate.lower
    found = reverse
    if reverse is not None:
        reverse = min(max(reverse, -np.inf if lower is None else lower), np.inf if upper is None else upper)
    words = "" if found == reverse else ", backwards cut to a proven bound"
    return DataLikelihood(
        log_likelihood=value,
        std_error=error,
        sampling_error=float(log_prob.std(ddof=1) / np.sqrt(len(log_prob))) if len(log_prob) > 1 else None,
        lower=lower,
        upper=upper,
        log_prob=log_prob,
        estimate=estimate,
        reverse=reverse,
        reverse_error=reverse_error,
        reverse_rows=rows,
        status=_verdict(estimate.status, value, error, reverse, reverse_error, words),
    )


def _verdict(
    status: Status, value: float, error: float | None, reverse: float | None, noise: float | None, words: str
) -> Status:
    if reverse is None:
        return Status(f"log Z: {status}", converged=status.converged)
    apart = value - reverse
    if agree_per_row(value, error or 0.0, reverse, noise or 0.0):
        agreement = f"forwards and backwards agree to {abs(apart):.2g} nats per row{words}"
        return Status(f"{agreement}; log Z: {status}", converged=status.converged)
    return Status(
        f"forwards and backwards differ by {apart:.2g} nats per row{words}: the likelihood is probably between them. "
        f"The data may be unlike what the machine produces, or log Z may be too small ({status})",
        converged=False,
    )


def reverse_annealed(rbm: RBM, spins: Any, temperatures: int, rng: np.random.Generator, mean: FloatArray) -> FloatArray:
    """Return the log of an estimate of every row's probability, by annealing backwards from the row.

    The chain goes from the machine to independent units with the means of the data, by transitions that are reversible
    at each point. Its weight has the mean P'(x), where P' is the distribution that annealing forwards draws from; this
    is the machine if annealing is slow enough. So the logarithm is on average too low (Burda, Grosse and Salakhutdinov
    2015).
    """
    model, n = rbm.to_ising(), rbm.weights.shape[0]
    sides = Sides(np.arange(n), np.arange(n, model.n))  # the visible units are kept, the hidden ones summed out
    base = np.concatenate([np.arctanh(np.clip(mean, -0.99, 0.99)), np.zeros(model.n - n)])
    path = from_fields(model, base, sides=sides)
    # Hidden units are drawn given the row.
    x = np.concatenate([spins, _drawn(_hidden_fields(rbm, spins), rng)], axis=1).astype(np.int8)
    log_z = way_back(path, np.linspace(0.0, 1.0, max(temperatures, 1) + 1), x, rng)
    return np.asarray(free_energies(rbm, spins) - model.constant - log_z)
