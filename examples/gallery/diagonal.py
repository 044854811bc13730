"""
The diagonal that proves a bound
================================

Since every spin squared is 1, a diagonal D can be added to the coupling A and its trace subtracted
again: log Z does not change. If A + D is negative semidefinite, then log Z <= n log 2 - Tr D
without a field. A semidefinite program finds the best such D. This script draws it.
"""

import matplotlib.pyplot as plt
import numpy as np

import spectralz as sz

# %%
# A lattice with strong and weak places
# -------------------------------------
# The couplings are random, and stronger toward the middle.
side = 24
row, column = np.divmod(np.arange(side**2), side)
across = [(i, i + 1) for i in range(side**2) if column[i] < side - 1]
edges = np.array(across + [(i, i + side) for i in range(side**2 - side)])
middle = (side - 1) / 2
distance = np.hypot(row - middle, column - middle) / side
strength = 0.1 + np.exp(-((distance[edges].mean(axis=1) / 0.22) ** 2))
J = strength * np.random.default_rng(0).choice([-1.0, 1.0], size=len(edges))
model = sz.Ising.from_edges(side**2, edges, J)
A = model.coupling

# %%
# Three diagonals
# ---------------
# The choices are the largest eigenvalue, the same for all spins; the row sums of abs(A); and the
# best one. All three make A + D negative semidefinite. The last comes with a proof of that, and
# with a proof that no other is better by more than the gap.
best = sz.diagonal_sdp(A)
print(best.status)
dense = A.toarray()
choices = {
    "largest eigenvalue": np.full(model.n, np.linalg.eigvalsh(dense)[-1]),
    "row sums of abs(A)": np.abs(dense).sum(axis=1),
    "semidefinite program": -best.diagonal,
}

# %%
# The bound n log 2 - Tr D at several temperatures, compared with the truth by compressed
# elimination.
betas = np.array([0.1, 0.3, 0.5, 1.0, 1.5, 2.0])
truth = np.array([sz.log_z(beta * model, "mps", bond=16, samples=0).log_z for beta in betas])

figure, panel = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, y), color in zip(choices.items(), ("0.6", "#2471a3", "#c0392b"), strict=True):
    bound = model.n * np.log(2) + betas * y.sum()
    panel.plot(betas, (bound - truth) / model.n, "o-", color=color, label=name)
panel.set(xlabel="beta", ylabel="upper bound minus log Z, per spin", ylim=(0, None))
panel.legend(frameon=False)
plt.show()

# %%
# The diagonals, at the places of the spins. The best one is large where couplings are strong, and
# smaller where they contradict each other.
largest = max(y.max() for y in choices.values())
# sphinx_gallery_thumbnail_number = 4
for name, y in choices.items():
    figure, panel = plt.subplots(figsize=(3.8, 3.6), layout="constrained")
    image = panel.imshow(y.reshape(side, side), cmap="inferno", vmin=0, vmax=largest)
    panel.set(title=f"{name}\n-Tr D = {y.sum():.1f}", xticks=[], yticks=[])
    figure.colorbar(image, label="-D", shrink=0.85)
plt.show()
