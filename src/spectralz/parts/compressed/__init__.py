"""Compressed elimination: the order in which spins arrive at the frontier, and the contraction along it."""
