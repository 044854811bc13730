"""Mean field: of single spins and of blocks, and partitions into blocks."""
