"""From data to affinities: neighbours, P, its spectrum and its coarsening."""
