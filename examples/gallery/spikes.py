"""
From spike times to bits
========================

A neuroscientist's workflow on simulated spikes, of which the answer is known: bin the spikes into
words, fit the pairwise maximum-entropy model of 50 cells, and ask how much of their common
information pairs explain. The cells here are coupled in pairs, and share an input that was not
recorded, so that pairs cannot explain all of it.
"""

import matplotlib.pyplot as plt
import numpy as np

import spectralz as sz

CELLS, BIN, WORDS = 50, 0.02, 20_000  # bins of 20 ms, almost seven minutes
rng = np.random.default_rng(0)

# %%
# The truth
# ---------
# A model of 51 spins. The last one is the input, on one third of the time; it drives every cell.
edges = np.array([(i, j) for i in range(CELLS) for j in range(i + 1, CELLS) if rng.random() < 0.08])
drive = [(i, CELLS) for i in range(CELLS)]
truth = sz.Ising.from_edges(
    CELLS + 1,
    [*edges.tolist(), *drive],
    [*rng.normal(0.1, 0.2, len(edges)), *rng.uniform(0.1, 0.4, CELLS)],
    field=[*rng.uniform(-1.2, -0.6, CELLS), 7.7],
)
states = sz.sample(truth, WORDS, "annealing", seed=1)
print(f"the input is on in {np.mean(states[:, -1] > 0):.0%} of the bins")

# %%
# What is recorded are spike times: a cell that is active in a bin fires somewhere in it.
spikes = [
    (np.flatnonzero(states[:, i] > 0) + rng.random(np.sum(states[:, i] > 0))) * BIN
    for i in range(CELLS)
]

# %%
# From spikes to words
# --------------------
# A word has one letter per cell: 1 if it fired in the bin.
words = np.array(
    [np.histogram(times, bins=WORDS, range=(0, WORDS * BIN))[0] > 0 for times in spikes]
).T
print(f"{len(words)} words of {CELLS} cells, {words.mean() / BIN:.1f} spikes per second and cell")

# %%
# The model of pairs
# ------------------
# The maximum-entropy model with the observed rates and correlations is the pairwise model of
# largest likelihood.
fit = sz.fit(words, method="pseudo", likelihood=False)
print(fit)

# %%
# Information in bits
# -------------------
# The multi-information is what the cells' words have less in entropy than independent cells. Pairs
# explain the part that their model has. The true entropy is known here: that of the model of 51
# spins, minus what remains of the input when the cells are known.
rate = words.mean(axis=0)
alone = float(-(rate * np.log2(rate) + (1 - rate) * np.log2(1 - rate)).sum())
by_pairs = sz.entropy(fit.model, base=2, budget=5)
whole = sz.entropy(truth, base=2)
cells = np.hstack([states[:2000, :-1], np.full((2000, 1), np.nan)])
on = sz.predict(truth, cells).probability[:, -1]
input_left = float(np.mean(-(on * np.log2(on) + (1 - on) * np.log2(1 - on))))
true_entropy = float(whole) - input_left
print(f"independent {alone:.2f} bits, truth {true_entropy:.2f} bits")
print(f"pairs {float(by_pairs):.2f} ± {by_pairs.std_error:.2f} bits")
fraction = (alone - float(by_pairs)) / (alone - true_entropy)
print(f"multi-information {alone - true_entropy:.2f} bits, of which pairs explain {fraction:.0%}")

# %%
# What pairs miss shows in numbers that the model was not fitted to: how many cells are active at a
# time, and third moments. Mind the limits of such an analysis. Words are taken for independent and
# the recording for stationary. With fewer words, entropies of fitted models are too small. A common
# input looks like many weak couplings, and which cells are coupled is not which cells are
# connected.
test = fit.goodness()
figure, left = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
numbers = np.arange(CELLS + 1)
by_chance = np.ones(1)
for probability in rate:
    by_chance = np.convolve(by_chance, [1 - probability, probability])
for values, style, label in (
    (test.active_observed, "ko", "data"),
    (test.active_predicted, "-", "pairs"),
    (by_chance, "--", "independent cells"),
):
    left.semilogy(numbers, values, style, markersize=4, label=label)
left.set(xlabel="active cells", ylabel="probability", xlim=(0, 25), ylim=(1e-4, 1))
left.set_title("how many are active")
left.legend(frameon=False)

figure, right = plt.subplots(figsize=(4.8, 3.8), layout="constrained")
right.plot(test.third_predicted, test.third_observed, ".", markersize=3, color="#c0392b")
right.axline((0, 0), slope=1, color="black", linewidth=0.8)
right.set(xlabel="model", ylabel="data", title="third moments E[x x' x'']")
plt.show()
