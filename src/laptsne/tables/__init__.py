"""Tables and matrices in files: read into what is embedded and what is only shown, and written again."""

from laptsne.tables.content import Content, InputError
from laptsne.tables.formats import READABLE, read
from laptsne.tables.roles import Table, assigned
from laptsne.tables.target import check_targets
from laptsne.tables.writing import WRITABLE, write

__all__ = [
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
