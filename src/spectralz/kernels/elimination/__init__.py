"""Bucket elimination: orders, their trees, and the passes over tables for log Z, marginals and states."""
