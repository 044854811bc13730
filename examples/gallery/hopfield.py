"""
The phases of a Hopfield memory
===============================

A Hopfield network stores patterns in its couplings. At low temperature its states are close to one
of the patterns: the memory works. At high temperature it does not. With few patterns the coupling
has low rank, so everything is exact although every spin is coupled to every other.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import spectralz as sz

# %%
# At which temperatures?
# ----------------------
# Two random patterns. The overlap of a state with its nearest pattern is 1 if the memory is
# perfect. The theory for infinitely many spins is m = tanh(m / T), with no memory above T = 1.
temperatures = np.linspace(0.2, 1.6, 15)
theory = np.full(141, 1.0)
fine = np.linspace(0.2, 1.6, 141)
for _ in range(2000):
    theory = np.tanh(theory / fine)


def overlap(n, temperature):
    """Return the mean overlap of 200 independent states with their nearest patterns."""
    memory = sz.generators.hopfield(n=n, patterns=2, strength=1 / temperature, seed=1)
    states = sz.sample(memory, 200, seed=0)
    patterns = np.sign(memory.factors.vectors)
    return np.abs(states @ patterns.T / n).max(axis=1).mean()


sizes = (100, 2000)
overlaps = {n: [overlap(n, t) for t in temperatures] for n in sizes}

# %%
# Completing a pattern
# --------------------
# Now the patterns are three handwritten digits, drawn on 16 x 16 spins. Half of a digit is given as
# evidence, and the marginals of the other half show the recalled digit. It fades as the temperature
# rises. Pictures have many pixels in common; the couplings of the pseudo-inverse rule take that
# into account.
digits = load_digits()
chosen = [
    np.kron(digits.images[digits.target == d][0] > 7, np.ones((2, 2))).ravel() * 2 - 1
    for d in (3, 4, 7)
]
patterns = np.array(chosen)
values, directions = np.linalg.eigh(np.linalg.inv(patterns @ patterns.T))
# A = sum_k values_k stored_k stored_k' / 2 projects on the patterns.
stored = directions.T @ patterns
top = np.arange(256) < 128
shown = (0.3, 0.6, 1.0, 2.0)


def recall(pattern, temperature):
    """Return the mean of every spin, given the upper half of a pattern."""
    memory = sz.Ising.from_factors(None, values / (2 * temperature), stored)
    evidence = {int(i): int(pattern[i]) for i in np.flatnonzero(top)}
    return sz.marginals(memory, given=evidence, pairs=False).mean


figure, panel = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
panel.plot(fine, theory, "k-", linewidth=1, label="theory, infinitely many spins")
for n, marker in zip(sizes, "so", strict=True):
    panel.plot(temperatures, overlaps[n], marker, markersize=4, label=f"{n:,} spins")
panel.set(xlabel="temperature", ylabel="overlap with the nearest pattern", ylim=(0, 1.05))
panel.set_title("Memory at all temperatures")
panel.legend(frameon=False)

figure, rows = plt.subplots(3, len(shown) + 1, figsize=(5.6, 3.8), layout="constrained")
for number, row in enumerate(rows):
    pattern = patterns[number]
    images = [np.where(top, pattern, 0)] + [recall(pattern, t) for t in shown]
    titles = ["given", *(f"T = {t}" for t in shown)]
    for axes, image, title in zip(row, images, titles, strict=True):
        axes.imshow(-image.reshape(16, 16), cmap="gray", vmin=-1, vmax=1)
        axes.set(xticks=[], yticks=[])
        if number == 0:
            axes.set_title(title, fontsize=11)
plt.show()
