"""
A model of pictures for each digit
==================================

The log-likelihood of a model is its log-weight minus log Z, so whoever trains a model by gradients
needs the gradient of log Z. ``spectralz.jax.log_z`` (and ``spectralz.torch.log_z``) is log Z as a
function that JAX (or torch) differentiates. Here a model of handwritten digits has fields that
depend on the digit, and couplings that depend on it a little: P(picture | digit).
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import spectralz as sz
import spectralz.jax

digits = load_digits()
patches = digits.images.reshape(-1, 4, 2, 4, 2)  # 4 x 4 of them, of 2 x 2 pixels each
ink = patches.mean(axis=(2, 4)).reshape(-1, 16)
pictures = np.where(ink > np.median(ink, axis=0), 1.0, -1.0)
order = np.random.default_rng(0).permutation(len(pictures))
train, test = order[:1200], order[1200:]

# %%
# The model
# ---------
# Ten models of 16 spins: one field and one coupling for all, and what each digit adds to them. All
# ten log Z, and their gradients, are one compiled call that sums over the 2^16 states of each.
pairs = np.array([(i, j) for i in range(16) for j in range(i + 1, 16)])


def of_digits(parameters):
    """Return the fields (10 x 16) and the weights of all pairs (10 x 120)."""
    field = parameters["field"] + parameters["field of digit"]
    return field, parameters["weight"] + parameters["weight of digit"]


def log_prob(parameters, x):
    """Return log P(picture | digit) of every picture and every digit."""
    field, weights = of_digits(parameters)
    products = x[:, pairs[:, 0]] * x[:, pairs[:, 1]]
    log_z = spectralz.jax.log_z(field, edges=pairs, weights=weights)
    return x @ field.T + products @ weights.T - log_z


def loss(parameters, x, y):
    """Return minus the mean log-likelihood, with small penalties on what the digits add."""
    likelihood = log_prob(parameters, x)[jnp.arange(len(x)), y].mean()
    of_field = (parameters["field of digit"] ** 2).sum()
    of_weight = (parameters["weight of digit"] ** 2).sum()
    return -likelihood + 0.002 * of_field + 0.01 * of_weight


# %%
# Training
# --------
# Plain gradient descent with momentum. A step takes the ten log Z once.
parameters = {
    "field": jnp.zeros(16),
    "field of digit": jnp.zeros((10, 16)),
    "weight": jnp.zeros(120),
    "weight of digit": jnp.zeros((10, 120)),
}
x, y = jnp.asarray(pictures[train]), jnp.asarray(digits.target[train])
step = jax.jit(jax.value_and_grad(loss))
speed = jax.tree.map(jnp.zeros_like, parameters)
losses = []
for _ in range(150):
    value, slope = step(parameters, x, y)
    losses.append(float(value))
    speed = jax.tree.map(lambda v, g: 0.9 * v - 0.1 * g, speed, slope)
    parameters = jax.tree.map(jnp.add, parameters, speed)


# %%
# By Bayes's rule, P(digit | picture) is proportional to P(picture | digit). Without couplings this
# is the naive classifier, which takes pixels for independent.
def share_right(parameters):
    """Return how many digits of the test pictures are recognized."""
    guess = np.argmax(log_prob(parameters, jnp.asarray(pictures[test])), axis=1)
    return float(np.mean(guess == digits.target[test]))


mean = np.array([pictures[train][digits.target[train] == d].mean(axis=0) for d in range(10)])
alone = parameters | {
    "field": jnp.zeros(16),
    "field of digit": jnp.arctanh(jnp.clip(mean, -0.99, 0.99)),
}
alone |= {"weight": jnp.zeros(120), "weight of digit": jnp.zeros((10, 120))}
print(f"recognized of {len(test)} coarse pictures: {share_right(parameters):.1%}")
print(f"with pixels taken for independent: {share_right(alone):.1%}")

# %%
# The fitted models are models like any other: here are states of them, exact samples.
field, weights = of_digits(parameters)
figure, axes = plt.subplots(5, 10, figsize=(6.4, 3.6), layout="constrained")
for digit in range(10):
    J, h = np.asarray(weights[digit]), np.asarray(field[digit])
    model = sz.Ising.from_edges(16, pairs, J, field=h)
    states = sz.sample(model, 5, seed=digit)
    for row in range(5):
        axes[row, digit].imshow(states[row].reshape(4, 4), cmap="Greys", vmin=-1, vmax=1)
        axes[row, digit].set(xticks=[], yticks=[])
    axes[0, digit].set_title(str(digit))
figure.suptitle("states drawn from the model of each digit")
plt.show()
