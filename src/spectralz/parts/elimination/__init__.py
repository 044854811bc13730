"""Exact elimination in slices, and elimination that keeps the heaviest frontier states."""
