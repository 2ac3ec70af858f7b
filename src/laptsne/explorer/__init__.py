"""The explorer: an interactive map in a single HTML file, or in a notebook."""
