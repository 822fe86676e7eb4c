"""The reporter's front: from a directory to the files of its report."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.errors import UserError
from reporter.collect import Collected, collect_folder, collect_run
from reporter.summary import Summary, summarize

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class ReportFiles:
    summary: Summary
    html: Path
    markdown: Path
    json: Path
    episodes: Path


def report_run(directory: Path, output: Path, unread: Mapping[PurePosixPath, str] = MappingProxyType({})) -> Summary:
    """Report a run directory, finished or not, into the folder `output`.

    `unread` are result files that a copy of the run lacks, each with the reason; they are told as unreadable.
    """
    return write_report(collect_run(directory, unread), output).summary


def report_folder(directory: Path, output: Path) -> Summary:
    """Report any folder of .jsonl files whose records name their own combos; raises UserError when there are none."""
    collected = collect_folder(directory)
    if not collected.records:
        raise _nothing(directory, collected)
    return write_report(collected, output).summary


def write_report(collected: Collected, output: Path) -> ReportFiles:
    """Make every file of the report and put each in place whole."""
    from reporter import render

    report = summarize(collected)
    _publish(render.render(report), output)
    names = (render.HTML, render.MARKDOWN, render.JSON, render.EPISODES)
    return ReportFiles(report.summary, *(output / name for name in names))


def _publish(files: Mapping[str, bytes], output: Path) -> None:
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            _put(output / name, content)
    except OSError as error:
        raise UserError(
            f"the report can't be written to {output}: {error.strerror}", "give another folder, or make room"
        ) from error


def _put(path: Path, content: bytes) -> None:
    """Write beside `path` and rename: whoever looks sees the old file or the new one. Two writers can't meet, since
    each has a file of its own until the end."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _nothing(directory: Path, collected: Collected) -> UserError:
    """Says what was looked for, and why each file that was found gave nothing."""
    if not collected.files:
        return UserError(
            f"no .jsonl files below {directory}",
            'a folder can be reported when it holds lines like {"policy": "flat", "environment": "stairs",'
            ' "episode": 0, "success": true}',
        )
    reasons = Counter((reject.path, reject.reason) for reject in collected.rejects)
    reasons.update((defect.path, defect.reason) for defect in collected.defects)
    lines = [f"  {path}: {reason}{_times(count)}" for (path, reason), count in reasons.most_common(20)]
    more = [f"  and {len(reasons) - 20} more reasons"] if len(reasons) > 20 else []
    return UserError(
        "\n".join([f"no record in the {len(collected.files)} .jsonl files below {directory}", *lines, *more]),
        'a record names its own combo: {"policy": "flat", "environment": "stairs", "episode": 0, "success": true}',
    )


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""
