"""The diagonal semidefinite program: ascent at low rank, interior point, certificate, structure."""
