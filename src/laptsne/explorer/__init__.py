"""The explorer: an interactive map in a single HTML file, or in a notebook."""

from laptsne.explorer.export import explorer

__all__ = ["explorer"]
