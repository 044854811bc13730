"""Planar graphs: their faces, an order to merge these in, and the Pfaffian that sums over all states."""
