"""
Algorithm 1 and quadrature
==========================

If the coupling has rank 1, log Z takes polynomial time although every spin is coupled to every
other. Algorithm 1 of the paper rounds a sum of the spins to a grid and counts states on it.
``quadrature`` computes an integral instead. This script compares the two.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

import spectralz as sz

model = sz.generators.rank_one(n=100, strength=0.1, seed=1)
truth = sz.log_z(model, "quadrature")
print(truth)

# %%
# Algorithm 1 has one parameter, the step of its grid. The paper's choice is sqrt(lambda) / 1000.
# Every run comes with a proven interval: Theorem 3, with the actual deviations of the rounding.
scale = float(np.sqrt(np.abs(np.linalg.eigvalsh(model.coupling)).max()))
divisors = np.array([10, 30, 100, 300, 1000, 3000, 10_000])
sz.log_z(model, "low_rank", step=scale / 10)  # compiles, so that this is not timed
runs, seconds = [], []
for divisor in divisors:
    start = time.perf_counter()
    runs.append(sz.log_z(model, "low_rank", step=scale / divisor, max_cells=10**8))
    seconds.append(time.perf_counter() - start)
start = time.perf_counter()
sz.log_z(model, "quadrature")
quadrature_seconds = time.perf_counter() - start

# %%
# The error shrinks with the step, and is hundreds of times below the proven bound. The second
# picture shows the error against the time.
error = np.array([abs(run.log_z - truth.log_z) for run in runs])
half_width = np.array([(run.upper - run.lower) / 2 for run in runs])
assert np.all(error <= half_width + 1e-9)
rounding = (truth.upper - truth.lower) / 2

figure, left = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
left.loglog(1 / divisors, half_width, "k--", linewidth=1, label="proven, by Theorem 3")
left.loglog(1 / divisors, error, "o-", color="#2471a3", label="Algorithm 1: real error")
left.axhline(rounding, color="#c0392b", label="quadrature: proven, rounding included")
left.axvline(1 / 1000, color="0.7", linestyle=":", linewidth=1)
left.text(1.1e-3, 3e-13, "the paper's step", color="0.4")
left.set(xlabel="step / sqrt(lambda)", ylabel="error of log Z", ylim=(1e-13, 1e3))
left.set_title("Error and step")
left.legend(edgecolor="none", framealpha=1, loc="upper left", bbox_to_anchor=(0, 0.46))

figure, right = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
right.loglog(seconds, error, "o-", color="#2471a3", label="Algorithm 1")
star = {"color": "#c0392b", "markersize": 14, "label": "quadrature"}
right.loglog([quadrature_seconds], [rounding], "*", **star)
right.set(xlabel="seconds", ylabel="error of log Z", ylim=(1e-13, 1e3))
right.set_title("Error and time")
right.legend(frameon=False)
plt.show()
