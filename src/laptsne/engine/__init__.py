"""Minimisation: losses, the loop of the descent, mini-batches, checkpoints and the initial embedding."""
