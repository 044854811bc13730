"""The diagonal semidefinite program: ascent at low rank, certificate, structure."""
