"""``python -m laptsne.cli``."""

from laptsne.cli import app

app(prog_name="laptsne")
