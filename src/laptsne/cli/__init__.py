"""The command ``laptsne``."""

from laptsne.cli import embed, explore, gap, transform  # noqa: F401  each adds its command to the app
from laptsne.cli.terminal import app

__all__ = ["app"]
