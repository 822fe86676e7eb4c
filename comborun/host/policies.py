"""Which files of this machine are policies: `policies`; standard input has the patterns and what is left out, as JSON.

Patterns are read as bash reads them with globstar; the answer is a list of pattern, path, and whether that is a folder.
"""

from __future__ import annotations

import fnmatch
import glob
import json
import os
import sys

from comborun.host.incoming import answered, home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

MOST = 2001
"""one more than a grid may have, so that too many can be told"""


def main(_arguments: list[str]) -> int:
    """The program's verb."""
    return answered("policies", _find)


def _find() -> list[tuple[str, str, bool]]:
    asked = json.load(sys.stdin)
    found: list[tuple[str, str, bool]] = []
    for pattern in asked["patterns"]:
        for path in _matching(pattern):
            if any(fnmatch.fnmatchcase(os.path.basename(path), no) or _ends(path, no) for no in asked["exclude"]):
                continue
            found.append((pattern, path, os.path.isdir(home(path))))
            if len(found) == MOST:
                return found
    return found


def _ends(path: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(path, f"*/{pattern}")


def _matching(pattern: str) -> Iterator[str]:
    """Sorted; as the user wrote the home. Links that lead nowhere are none."""
    place = home(pattern)
    if place != pattern:  # the home itself may have brackets in its name
        place = glob.escape(home("~")) + pattern[1:]
    for path in sorted(glob.glob(place, recursive=True)):
        if os.path.exists(path):
            yield (f"~{path[len(home('~')) :]}" if pattern.startswith("~/") else path).rstrip("/")
