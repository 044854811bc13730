"""Parts that several methods share: they know models and clocks, unlike kernels, and are not methods themselves."""
