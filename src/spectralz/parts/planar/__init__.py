"""Planar models: their graph, made ready to be summed over, and the sums at any couplings."""
