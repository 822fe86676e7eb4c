"""Text from logs, hosts and records, made harmless: nothing in it acts on the terminal or the page that shows it.

`harmless` is for reading on: escape sequences are gone. `printable` is for names: what can't be seen is spelled out, so
that two names never look alike.
"""

from __future__ import annotations

import unicodedata

from comborun.rules.counting import escape

ESCAPE = escape()
INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Unicode categories of characters that show nothing and may do something"""


def harmless(text: str, keep: str = "\n\t") -> str:
    """`text` without escape sequences and control characters, but for those in `keep`."""
    plain = ESCAPE.sub("", text)
    return "".join(one for one in plain if one in keep or unicodedata.category(one) not in INVISIBLE)


def printable(text: str) -> str:
    """On one line and without what would steer a terminal or reverse the reading direction: `\\n`, `\\u202e`."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
