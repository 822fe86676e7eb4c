"""Commands of sessions that leave a trace or wait for a word, and what traces tell: how often each began, and when."""

from __future__ import annotations

from box import Box

NAMES = [f"env_p{i}" for i in range(8)]
STARTED = 'echo "$COMBORUN_ATTEMPT" >>"$COMBORUN_RUN_DIR/starts-$(basename "${COMBORUN_OUTPUT_DIR%/attempt-*}")"; '
"""appends a line to a file of the session, whatever the attempt"""
RECORD = """printf '{"episode": %d, "success": true}\\n' 0 >>"$COMBORUN_OUTPUT_DIR/records.jsonl"; """
HOLD = 'until [[ -e "$COMBORUN_RUN_DIR/go" ]]; do sleep 0.1; done'
"""goes on when the test says so"""


def starts(box: Box, name: str) -> list[str]:
    """The attempts in which the command of a session really began."""
    file = box.directory / f"starts-{name}"
    return file.read_text().split() if file.exists() else []


def spans(box: Box) -> list[tuple[float, float]]:
    """When each session of the queue began and ended, by its records."""
    return [(box.ended(name).started or 0.0, box.ended(name).ended) for name in box.names]


def concurrency(box: Box) -> int:
    """The greatest number of sessions that ran at the same moment."""
    times = spans(box)
    return max(sum(start <= moment < end for start, end in times) for moment, _ in times)
