"""
Cutting a flower out of its background
======================================

Is a pixel part of the flower? Its color gives a hint, its neighbors another: similar neighbors
should have the same answer. Both together are an Ising model. Its marginals show where the flower
is, and also where that is uncertain.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import spectralz as sz

photograph = load_sample_image("flower.jpg")[20:420, 100:580].astype(float) / 255
picture = photograph.reshape(50, 8, 60, 8, 3).mean(axis=(1, 3))  # 50 x 60 pixels
rows, columns = picture.shape[:2]

# %%
# Color: this flower is red, its background is green and dark. The field is positive where red
# dominates. Noise makes the task harder, so that the neighbors are needed.
noise = np.random.default_rng(0).normal(scale=0.25, size=(rows, columns))
evidence = picture[..., 0] - picture[..., 1] - 0.18 + noise
field = 2.5 * evidence

# %%
# Neighbors attract each other, less so where the color changes.
place = np.arange(rows * columns).reshape(rows, columns)
edges = np.concatenate(
    [
        np.stack([place[:, :-1].ravel(), place[:, 1:].ravel()], axis=1),
        np.stack([place[:-1].ravel(), place[1:].ravel()], axis=1),
    ]
)
color = picture.reshape(-1, 3)
distance = np.sum((color[edges[:, 0]] - color[edges[:, 1]]) ** 2, axis=1)
weights = 0.8 * np.exp(-distance / 0.02) + 0.1
model = sz.Ising.from_edges(rows * columns, edges, weights, field=field.ravel())
print(model)

# %%
# There are 3000 spins and 2^3000 states. Compressed elimination (``mps``) gives all means at once.
# The heaviest state is the best single segmentation.
means = sz.marginals(model, "mps", bond=16)
best = sz.map_state(model, work=1e9)
print(means.estimate)
print(best)

# %%
# The last picture shows what a single segmentation cannot: the entropy of every pixel, bright where
# the model is uncertain.
P = means.probability
probability = P[:, 1].reshape(rows, columns)
entropy = -np.sum(P * np.log2(np.clip(P, 1e-12, 1)), axis=1).reshape(rows, columns)
shown = (
    ("photograph", picture, {}),
    ("evidence of each pixel", evidence, {"cmap": "coolwarm", "vmin": -1, "vmax": 1}),
    ("color alone", evidence > 0, {"cmap": "gray"}),
    ("heaviest state", best.state.reshape(rows, columns), {"cmap": "gray"}),
    ("probability of flower", probability, {"cmap": "gray", "vmin": 0, "vmax": 1}),
    ("doubt (bits)", entropy, {"cmap": "magma", "vmin": 0, "vmax": 1}),
)
# sphinx_gallery_thumbnail_number = 5
for title, image, style in shown:
    figure, panel = plt.subplots(figsize=(4, 3.6), layout="constrained")
    panel.imshow(image, **style)
    panel.set(title=title, xticks=[], yticks=[])
plt.show()
