"""A session's supervisor, started in a terminal without a dispatcher."""

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
    """The supervisor of an attempt, started in a terminal."""
    box.plan({name: script})
    return again_by_hand(box, attempt, name)


def again_by_hand(box: Box, attempt: str = "1", name: str = "stairs_flat") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        box.supervisor(name, attempt),
        env=box.environment,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
        check=False,
    )
