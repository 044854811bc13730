"""Messages between spins and factors of any number of spins."""
