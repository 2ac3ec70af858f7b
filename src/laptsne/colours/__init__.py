"""Colours of labels, for figures and for the explorer."""
