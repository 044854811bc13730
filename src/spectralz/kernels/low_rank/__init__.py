"""Models of low rank: finding the rank, quadrature, and the quantized dynamic program.

Quadrature is exact by Hubbard and Stratonovich's identity and the trapezoidal rule. With u_j = sqrt|lambda_j| v_j,
a_j = sqrt(2) u_j, s_j the sign of lambda_j and g_j independent standard normal numbers,

    exp(s_j <u_j, x>^2) = E exp(sqrt(s_j) g_j <a_j, x>),
    Z = E prod_i 2 cosh(theta_i + sum_j sqrt(s_j) g_j a_ji).

``positive_directions`` and ``negative_directions`` say how each kind is integrated. With both, the negative directions
are integrated at every node of the positive ones, each time with its own saddle.
"""
