"""Couplings of low rank: their decomposition, and grids along its directions."""
