"""Sampling: heat-bath sweeps of single spins and of blocks over populations, and tables of distinct states."""
