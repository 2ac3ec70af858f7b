"""The explorer: an interactive map in a single HTML file, or in a notebook."""

from laptsne.explorer.atlas import to_atlas
from laptsne.explorer.export import explorer

__all__ = ["explorer", "to_atlas"]
