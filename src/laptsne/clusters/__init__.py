"""Which clusters the data have, and which points belong to them."""
