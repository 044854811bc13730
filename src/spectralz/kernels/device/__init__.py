"""Kernels in JAX, for whatever device it finds; imported where a device is used, and nowhere else."""
