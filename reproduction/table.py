"""A table of the report, whatever it is written as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NONE = "—"


@dataclass(frozen=True)
class Entry:
    """A cell: its text, and whether it is marked as the winner."""

    text: str
    best: bool = False


@dataclass(frozen=True)
class Table:
    """A table with a heading and a remark."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Entry]]
    note: str = ""
