"""
A population that looks at digits
=================================

Sixteen simple cells look at handwritten digits, each at its own part of the picture. A cell is
active if there is more ink than usual. Maximum-entropy models of such populations keep the mean
activity and the pairwise correlations, and assume nothing else. Are pairs enough? Schneidman and
others asked this of neurons in 2006; this script asks it of the digits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import spectralz as sz

pictures = load_digits().images  # 1797 pictures of 8 x 8 pixels
ink = pictures.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
active = ink > np.median(ink, axis=0)
print(active.shape, active.mean(axis=0).round(2))

# %%
# Fit
# ---
# Half of the pictures are for fitting, the others for testing. An l1 penalty leaves few
# couplings; the extended Bayesian criterion chooses how many, and those are fitted again.
train, test = active[::2], active[1::2]
pairs = sz.fit(train, graph="chosen")
alone = sz.fit(train, graph=[])
print(pairs)
print("test log-likelihood per picture:")
print(f"{pairs.score(test):.3f} with pairs, {alone.score(test):.3f} without")

# %%
# The model also predicts what it was not fitted to: how often each pattern of activity occurs. For
# every row and every column of four cells there are 16 patterns: 128 in all.
groups = [*np.arange(16).reshape(4, 4), *np.arange(16).reshape(4, 4).T]


def pattern_rates(states):
    """Return how often each pattern of each group occurs."""
    patterns = [states[:, group] @ [1, 2, 4, 8] for group in groups]
    return np.array([np.bincount(each, minlength=16) / len(states) for each in patterns])


observed = pattern_rates(test)
by_pairs = pattern_rates(sz.sample(pairs.model, 100_000, seed=0) > 0)
by_none = pattern_rates(sz.sample(alone.model, 100_000, seed=0) > 0)

# %%
# The couplings, drawn at the places of the cells: neighbors along a stroke are active together
# (red), cells across a stroke exclude each other (blue).
figure, left = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
cell = np.stack([np.arange(16) % 4, -(np.arange(16) // 4)], axis=1)
edges, weights = pairs.model.edges()
for (i, j), weight in sorted(zip(edges, weights, strict=True), key=lambda each: abs(each[1])):
    bend = 0.12 * (cell[j] - cell[i])[::-1] * [1, -1]
    curve = np.array([cell[i], (cell[i] + cell[j]) / 2 + bend, cell[j]])
    t = np.linspace(0, 1, 20)[:, None]
    line = (1 - t) ** 2 * curve[0] + 2 * t * (1 - t) * curve[1] + t**2 * curve[2]
    color = "#c0392b" if weight > 0 else "#2471a3"
    left.plot(*line.T, color=color, linewidth=7 * abs(weight), alpha=0.8)
shade = {"c": ink.mean(axis=0), "cmap": "Greys", "vmin": -4, "vmax": 20}
left.scatter(*cell.T, s=500, edgecolor="black", zorder=3, **shade)
left.set(aspect="equal", xlim=(-0.6, 3.6), ylim=(-3.6, 0.6))
left.set_title(f"{len(weights)} couplings between 16 cells")
left.axis("off")

figure, right = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
for rates, marker, color, label in (
    (by_none, "s", "#2471a3", "independent cells"),
    (by_pairs, "o", "#c0392b", "model with pairs"),
):
    right.loglog(observed.ravel(), rates.ravel(), marker, color=color, markersize=4, label=label)
right.plot([1e-3, 0.5], [1e-3, 0.5], "k-", linewidth=0.8)
right.set(xlabel="observed on test pictures", ylabel="predicted")
right.set(xlim=(8e-4, 0.6), ylim=(8e-4, 0.6))
right.set_title("how often a pattern of four cells occurs")
right.legend(frameon=False)
plt.show()
