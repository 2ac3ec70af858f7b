"""The contraction term: penalised eigenvalues of the Laplacian of the embedding's own similarity graph."""
