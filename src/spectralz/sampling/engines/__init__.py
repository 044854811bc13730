"""How states are kept and swept, one file for each kind of couplings and precision."""
