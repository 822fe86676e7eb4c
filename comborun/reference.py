"""The documents and the example that are installed with comborun, and the reference of one key of a grid."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from comborun.errors import UserError
from comborun.text import did_you_mean

_PACKAGE = Path(__file__).parent
_TABLE = re.compile(r"\| key(?: of (?:an entry of )?`(?P<of>\w+)`)? \|")
_LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<to>[^)]*)\)")
_SETUP = "setup: source ../../.venv/bin/activate\n"
"""the example's line in a checkout"""


def shared(name: str) -> Path:
    """The folder `docs` or `example`: in the wheel, or in a checkout beside the package."""
    carried = _PACKAGE / "shared" / name
    return carried if carried.is_dir() else _PACKAGE.parent / {"example": "examples/quadruped"}.get(name, name)


def pages() -> dict[str, Path]:
    return {path.stem: path for path in sorted(shared("docs").glob("*.md"))}


def example_grid(text: str) -> str:
    """The example's grid for any folder. Its programs use the Python that runs comborun."""
    activate = Path(sys.prefix) / "bin/activate"
    return text.replace(_SETUP, f"setup: source {quote(str(activate))}\n" if activate.exists() else "")


@dataclass(frozen=True)
class _Row:
    section: str
    """the key whose keys the table lists; empty: the grid's own"""
    cells: dict[str, str]
    """head of the table -> cell, the key first"""

    @property
    def key(self) -> str:
        return ".".join(filter(None, (self.section, self.cells["key"].strip("`"))))

    @property
    def text(self) -> str:
        others = ((head, cell) for head, cell in self.cells.items() if head != "key" and cell)
        return "\n".join([self.key, *(f"  {head.ljust(7)}  {_plain(cell)}" for head, cell in others)])


def key_reference(document: str, key: str) -> str:
    """The reference of a key such as `limits.parallel` or `shards`: its row, the keys in it, and the section to which
    the row links. Raises UserError for an unknown key."""
    rows = list(_rows(document))
    found = [row for row in rows if key == row.key] or [row for row in rows if key == row.key.rpartition(".")[2]]
    below = [row for row in rows if row.section == key]
    if not found and not below:
        raise UserError(f"there is no key `{key}`", did_you_mean(key, reference_keys(document)) or "`combo docs grid`")
    links = (match["to"] for row in found for cell in row.cells.values() for match in _LINK.finditer(cell))
    sections = (_section(document, link[1:]) for link in dict.fromkeys(links) if link.startswith("#"))
    return "\n\n".join([*(row.text for row in (*found, *below)), *filter(None, sections)])


def reference_keys(document: str) -> list[str]:
    return [row.key for row in _rows(document)]


def _rows(document: str) -> Iterator[_Row]:
    section, heads = "", list[str]()
    for line in document.splitlines():
        if match := _TABLE.match(line):
            section, heads = match["of"] or "", ["key", *_cells(line)[1:]]
            heads[1] = "what"
        elif not line.startswith("|"):
            heads = []
        elif heads and line.startswith("| `"):
            yield _Row(section, dict(zip(heads, _cells(line), strict=False)))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _section(document: str, anchor: str) -> str:
    """A section, from its heading to the next one."""
    for part in re.split(r"^(?=##+ )", document, flags=re.MULTILINE):
        title = part.partition("\n")[0].lstrip("# ")
        if re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-") == anchor:
            return _plain(part).strip()
    return ""


def _plain(text: str) -> str:
    return _LINK.sub(lambda match: match["text"], text).replace("\\|", "|")
