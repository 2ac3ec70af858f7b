"""The interactive HTML explorer."""
