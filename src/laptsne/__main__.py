"""``python -m laptsne``."""

from laptsne.cli import main

main()
