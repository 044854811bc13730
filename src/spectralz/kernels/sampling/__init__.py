"""States of a population: heat-bath sweeps of single spins and of blocks, and tables of distinct states."""
