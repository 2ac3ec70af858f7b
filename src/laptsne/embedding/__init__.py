"""From affinities to the embedding: kernels, fields, objective, optimiser."""
