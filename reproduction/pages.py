"""A document, and how it is written: as Markdown with pictures beside it, or as one HTML file."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from reproduction.figures import Picture
from reproduction.table import Entry, Table

_STYLE = """
:root { color-scheme: light dark; --line: #d0d0d0; --soft: #f4f4f4; --best: #0072b2; }
@media (prefers-color-scheme: dark) { :root { --line: #444; --soft: #222; --best: #6cbcf0; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 0 auto; padding: 1rem; }
h1, h2, h3 { line-height: 1.25; }
h2 { margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.25rem 0.6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { background: var(--soft); white-space: normal; vertical-align: bottom; min-width: 4rem; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: Canvas; }
.best { font-weight: 700; color: var(--best); }
.note, figcaption { font-size: 0.875rem; opacity: 0.85; }
figure { margin: 1rem 0; }
img { max-width: 100%; height: auto; background: white; border-radius: 4px; }
code { background: var(--soft); padding: 0 0.2rem; overflow-wrap: anywhere; }
""".strip()


@dataclass(frozen=True)
class Bullets:
    """A list of short texts."""

    items: Sequence[str]


Block = str | Table | Picture | Bullets


@dataclass(frozen=True)
class Section:
    """A heading and what is under it."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Document:
    """A title, what is said at the top, and sections."""

    title: str
    lead: Sequence[Block]
    sections: Sequence[Section]


def as_markdown(document: Document, folder: str) -> str:
    """Write as Markdown; pictures are in a folder beside it."""
    lines = [f"# {_plain(document.title)}", "", *_markdown_blocks(document.lead, folder)]
    lines += [f"- [{_plain(section.title)}](#{_anchor(section.title)})" for section in document.sections]
    for section in document.sections:
        lines += ["", f"## {_plain(section.title)}", "", *_markdown_blocks(section.blocks, folder)]
    return "\n".join(lines).rstrip() + "\n"


def _markdown_blocks(blocks: Sequence[Block], folder: str) -> list[str]:
    lines: list[str] = []
    for block in blocks:
        if isinstance(block, str):
            lines += [_plain(block), ""]
        elif isinstance(block, Bullets):
            lines += [*(f"- {_plain(item)}" for item in block.items), ""]
        elif isinstance(block, Picture):
            target = f"{folder}/{block.name}.png"
            lines += [
                f"### {_plain(block.title)}",
                "",
                f"![{_plain(block.title)}]({target})",
                "",
                _plain(block.text),
                "",
            ]
        else:
            lines += [f"### {_plain(block.title)}", "", *_markdown_table(block), ""]
            lines += [_plain(block.note), ""] if block.note else []
    return lines


def _markdown_table(table: Table) -> list[str]:
    rows = [[f"**{_plain(cell.text)}**" if cell.best else _plain(cell.text) for cell in row] for row in table.rows]
    header = [_plain(column) for column in table.columns]
    rule = ["---", *["---:"] * (len(header) - 1)]
    return [f"| {' | '.join(row)} |" for row in (header, rule, *rows)]


def _plain(text: str) -> str:
    """Text without effect in Markdown."""
    return re.sub(r"([\\`*_<>\[\]|#])", r"\\\1", " ".join(text.split())).replace("&", "&amp;")


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def as_html(document: Document) -> str:
    """Write as one HTML file that needs nothing else."""
    links = "\n".join(
        f'<li><a href="#{_anchor(section.title)}">{html.escape(section.title)}</a></li>'
        for section in document.sections
    )
    body = [f"<h1>{html.escape(document.title)}</h1>", *_html_blocks(document.lead)]
    body += [f'<nav aria-label="Contents"><ul>\n{links}\n</ul></nav>']
    for section in document.sections:
        body.append(f'<h2 id="{_anchor(section.title)}">{html.escape(section.title)}</h2>')
        body += _html_blocks(section.blocks)
    # Only this style counts, no script runs, and nothing at all is requested.
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(document.title)}</title><style>{_STYLE}</style>"
    )
    content = "\n".join(body)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{content}\n</body></html>\n'


def _html_blocks(blocks: Sequence[Block]) -> list[str]:
    lines: list[str] = []
    for block in blocks:
        if isinstance(block, str):
            lines.append(f"<p>{html.escape(block)}</p>")
        elif isinstance(block, Bullets):
            lines.append("<ul>" + "".join(f"<li>{html.escape(item)}</li>" for item in block.items) + "</ul>")
        elif isinstance(block, Picture):
            source = base64.b64encode(block.png).decode()
            lines += [
                f"<h3>{html.escape(block.title)}</h3>",
                f'<figure><img alt="{html.escape(block.title)}" src="data:image/png;base64,{source}">'
                f"<figcaption>{html.escape(block.text)}</figcaption></figure>",
            ]
        else:
            lines += [f"<h3>{html.escape(block.title)}</h3>", _html_table(block)]
            lines += [f'<p class="note">{html.escape(block.note)}</p>'] if block.note else []
    return lines


def _html_table(table: Table) -> str:
    header = "".join(f'<th scope="col">{html.escape(column)}</th>' for column in table.columns)
    rows = "\n".join(f"<tr>{''.join(_html_cell(cell) for cell in row)}</tr>" for row in table.rows)
    return f'<div class="wide"><table><thead><tr>{header}</tr></thead><tbody>\n{rows}\n</tbody></table></div>'


def _html_cell(cell: Entry) -> str:
    mark = ' class="best"' if cell.best else ""
    return f"<td{mark}>{html.escape(cell.text)}</td>"
