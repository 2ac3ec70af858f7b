"""Which clusters there are, and which points belong to them."""
