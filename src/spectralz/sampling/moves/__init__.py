"""Moves of several spins at once, which take turns with sweeps over single spins."""
