"""log Z of models that nothing computes, by populations of 10^5 states on a GPU, for `benchmarks.textbook`.

    python -m benchmarks.textbook_references --export FILE    # the models, on a machine with all dependencies
    python benchmarks/textbook_references.py FILE             # log Z of each; this needs JAX and numpy only

States are cooled from fair coins in groups, each of which gives an independent estimate of Z. Spins are updated one
after the other in blocks: the fields of a block come from one matrix product, and change within the block as its spins
do. Nothing of spectralz takes part, so that the references depend on none of its code.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np

# States, groups of them, spins of a block, the relative variance of the weights of a step, and sweeps at each point.
STATES, GROUPS, BLOCK, VARIANCE, SWEEPS = 131_072, 64, 32, 0.1, 10


def exported(path: Path) -> None:
    """Save the models that have no reference but a long run."""
    from benchmarks.textbook import CASES, arrays_of

    arrays = {}
    for case in CASES.values():
        if case.solve is None and not case.name.startswith("mnist"):
            J, h, constant = arrays_of(case.make())
            arrays |= {f"{case.name}|J": J.toarray(), f"{case.name}|h": h, f"{case.name}|c": np.array(constant)}
    np.savez_compressed(path, **arrays)


def swept(states, J, h, beta, key, sweeps):
    """Draw each spin given the others, at an inverse temperature; return the states and their log-weights."""
    import jax
    import jax.numpy as jnp

    blocks = J.shape[0] // BLOCK

    def block(k, carry):
        x, key = carry
        begin = k * BLOCK
        rows = jax.lax.dynamic_slice(J, (begin, 0), (BLOCK, J.shape[0]))
        inside = jax.lax.dynamic_slice(rows, (0, begin), (BLOCK, BLOCK))
        own = jax.lax.dynamic_slice(x, (0, begin), (x.shape[0], BLOCK))
        fields = jnp.matmul(x, rows.T, precision="highest") + jax.lax.dynamic_slice(h, (begin,), (BLOCK,))
        key, sub = jax.random.split(key)
        uniform = jax.random.uniform(sub, own.shape)
        for i in range(BLOCK):
            new = jnp.where(uniform[:, i] < jax.nn.sigmoid(2.0 * beta * fields[:, i]), 1.0, -1.0)
            fields = fields + (new - own[:, i])[:, None] * inside[i]
            own = own.at[:, i].set(new)
        return jax.lax.dynamic_update_slice(x, own, (0, begin)), key

    def sweep(_, carry):
        return jax.lax.fori_loop(0, blocks, block, carry)

    states, _ = jax.lax.fori_loop(0, sweeps, sweep, (states, key))
    log_weight = 0.5 * (jnp.matmul(states, J, precision="highest") * states).sum(axis=1) + states @ h
    return states, log_weight


@cache
def compiled_sweeps():
    """Return ``swept``, compiled once for each number of spins."""
    import jax

    return jax.jit(swept, static_argnames="sweeps")


def log_z_of_groups(J: np.ndarray, h: np.ndarray, seed: int) -> tuple[np.ndarray, float]:
    """Return log Z of each group, and the effective number of families."""
    import jax
    import jax.numpy as jnp

    n = len(h)
    padded = -(-n // BLOCK) * BLOCK  # spins without couplings or fields stay fair coins
    J, h = np.pad(J, (0, padded - n)), np.pad(h, (0, padded - n))
    rng, key = np.random.default_rng(seed), jax.random.key(seed)
    J, h = jnp.asarray(J, jnp.float32), jnp.asarray(h, jnp.float32)
    go = compiled_sweeps()
    each = STATES // GROUPS
    key, first = jax.random.split(key)
    states, log_weight = go(jnp.ones((STATES, padded), jnp.float32), J, h, 0.0, first, 1)
    log_z, family, beta = np.full(GROUPS, n * math.log(2.0)), np.arange(STATES), 0.0
    while beta < 1.0:
        w = np.asarray(log_weight, dtype=np.float64).reshape(GROUPS, each)
        step = min(1.0 - beta, math.sqrt(VARIANCE) / max(float(w.std(axis=1).mean()), 1e-9))
        parts = step * w
        top = parts.max(axis=1, keepdims=True)
        weight = np.exp(parts - top)
        log_z += top[:, 0] + np.log(weight.mean(axis=1))
        reached = np.cumsum(weight / weight.sum(axis=1, keepdims=True), axis=1) * each
        reached[:, -1] = each
        counts = np.diff(np.floor(reached + rng.random((GROUPS, 1))).clip(max=each), axis=1, prepend=0.0)
        rows = np.repeat(np.arange(STATES), counts.astype(int).ravel())
        family, beta = family[rows], beta + step
        key, sub = jax.random.split(key)
        states, log_weight = go(states[jnp.asarray(rows)], J, h, beta, sub, SWEEPS)
    weights = np.bincount(family, weights=np.repeat(np.exp(log_z - log_z.max()), each))
    return log_z, float(weights.sum() ** 2 / (weights**2).sum())


def reference(J: np.ndarray, h: np.ndarray, seed: int, seconds: float) -> dict[str, float]:
    """Return log Z by as many populations as there is time for, its error by their groups, and families."""
    began, log_z, families, count = time.time(), np.zeros(0), 0.0, 0
    while not count or (time.time() - began) * (count + 1) / count < seconds:
        more, more_families = log_z_of_groups(J, h, seed + count)
        log_z, families, count = np.append(log_z, more), families + more_families, count + 1
    z = np.exp(log_z - log_z.max())
    value = float(log_z.max() + np.log(z.mean()))
    error = float(z.std(ddof=1) / z.mean() / math.sqrt(len(z)))
    return {"log_z": value, "error": error, "families": families, "populations": count}


def main() -> int:
    """Export the models, or print a reference for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("file", type=Path, help="the models, a .npz")
    parser.add_argument("--export", action="store_true", help="write the models to the file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20.0, help="time for each model")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file to save the references in")
    asked = parser.parse_args()
    if asked.export:
        exported(asked.file)
        return 0
    kept, found = np.load(asked.file), {}
    for name in dict.fromkeys(key.split("|")[0] for key in kept.files):
        found[name] = reference(kept[f"{name}|J"], kept[f"{name}|h"], asked.seed, asked.seconds)
        found[name]["log_z"] += float(kept[f"{name}|c"])
        print(name, json.dumps(found[name]), flush=True)
        if asked.json:
            asked.json.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
