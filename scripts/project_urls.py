"""Fills in the project's URLs when a wheel is built: they lead to where the checkout was cloned from.

A checkout without a remote that can be opened in a browser gives a wheel without URLs.
"""

from __future__ import annotations

import re
import subprocess

from hatchling.metadata.plugin.interface import MetadataHookInterface

_REMOTE = re.compile(
    r"(?:(?P<web>https?://)|ssh://|)(?:[^@/]*@)?(?P<host>[\w-]+(?:\.[\w-]+)+)(?P<port>:\d+(?=/))?[:/](?P<path>[^:]+?)"
    r"(?:\.git)?/?"
)
"""`https://HOST/PATH.git`, `ssh://git@HOST:22/PATH` and `git@HOST:PATH`. A name or a token before @ is left out"""


class ProjectUrls(MetadataHookInterface):
    def update(self, metadata: dict[str, object]) -> None:
        metadata["urls"] = project_urls(_origin(self.root))


def project_urls(remote: str) -> dict[str, str]:
    """The URLs for the address of a remote; none for a path of this machine."""
    found = _REMOTE.fullmatch(remote)
    if not found:
        return {}
    port = (found["port"] or "") if found["web"] else ""  # that of ssh serves no pages
    home = f"{found['web'] or 'https://'}{found['host']}{port}/{found['path']}"
    return {
        "Homepage": home,
        "Documentation": f"{home}/tree/HEAD/docs",
        "Changelog": f"{home}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{home}/issues",
    }


def _origin(folder: str) -> str:
    command = ["git", "-C", folder, "config", "--get", "remote.origin.url"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""
