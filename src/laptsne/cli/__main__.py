"""``python -m laptsne.cli``."""

from laptsne.cli import main

main()
