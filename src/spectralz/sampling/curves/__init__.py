"""Curves over temperature: populations that pass it, means over their states, and what is in between."""
