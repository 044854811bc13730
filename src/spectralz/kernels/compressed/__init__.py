"""Elimination with compressed tables: the table over the frontier kept as a chain of small tensors."""
