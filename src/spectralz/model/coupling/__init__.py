"""Storage of the coupling A of a model: entry by entry, dense or sparse; as rank-1 terms; or as one block."""
