"""A session's script, started as a person would type it."""

from __future__ import annotations

import subprocess

from box import Box, Script

RECORDS = """\
i=0
while ((i < {n})); do
  printf '{{"episode": %d, "success": %s}}\\n' "$i" "$((i % 2 == 0 ? 1 : 0))"
  i=$((i + 1))
done >"$COMBORUN_OUTPUT_DIR/records.jsonl"
"""


def by_hand(
    box: Box, script: Script, attempt: str = "1", name: str = "stairs_flat"
) -> subprocess.CompletedProcess[str]:
    """`bash session.sh ATTEMPT`, as a person would type it."""
    box.plan({name: script})
    return again_by_hand(box, attempt, name)


def again_by_hand(box: Box, attempt: str = "1", name: str = "stairs_flat") -> subprocess.CompletedProcess[str]:
    folder = box.directory / "sessions" / name
    return subprocess.run(
        ["bash", "session.sh", *([attempt] if attempt else [])],
        cwd=folder,
        env=box.environment,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
        check=False,
    )
