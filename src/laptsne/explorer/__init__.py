"""The explorer: an interactive map in a single HTML file."""

from laptsne.explorer.export import explorer

__all__ = ["explorer"]
