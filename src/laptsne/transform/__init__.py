"""Positions of new points in a finished embedding."""
