"""Belief propagation: networks of messages, sums over loops, and bounds of attractive models."""
