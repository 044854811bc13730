"""Expectation propagation: the problem with its mean-field states, fixed points, and what they may miss."""
