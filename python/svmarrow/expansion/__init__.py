"""Kernel expansions, the model that every learner produces: f_j(x) = sum_i B[i, j] k(x, z_i) + b_j."""
