"""From data to affinities: nearest neighbours, the affinity matrix P, its spectrum and coarsening."""
