"""Tables and matrices in files: read into what is embedded and what is only shown, and written again."""

from laptsne.cli.tables.content import Content, InputError
from laptsne.cli.tables.formats import EXAMPLE, READABLE, read
from laptsne.cli.tables.roles import Table, assigned
from laptsne.cli.tables.target import check_targets
from laptsne.cli.tables.writing import WRITABLE, write

__all__ = [
    "EXAMPLE",
    "READABLE",
    "WRITABLE",
    "Content",
    "InputError",
    "Table",
    "assigned",
    "check_targets",
    "read",
    "write",
]
