"""Annealing as values: a path, populations that follow it, and what they show."""
