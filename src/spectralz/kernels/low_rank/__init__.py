"""Models of low rank: finding the rank, quadrature, and the quantized dynamic program."""
