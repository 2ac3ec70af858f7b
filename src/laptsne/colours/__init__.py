"""Colours for categories and numbers, shared by the figures and the explorer."""
