"""Makes a report: from a directory to the files of its report."""

from __future__ import annotations

import gc
import os
import re
import tempfile
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.reporter.collect import collect_folder, collect_run
from comborun.reporter.collected import Collected
from comborun.reporter.counting.schedule import schedule
from comborun.reporter.figures import NAMES, figures
from comborun.reporter.figures.files import FORMS, files
from comborun.reporter.pages.contact import contact_sheet
from comborun.reporter.planned import collect_by_plan
from comborun.reporter.records.collector import SCHEMA_FILE
from comborun.reporter.summary import Summary, summarize
from comborun.rules.formats import FORMATS
from comborun.text import alike

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from comborun.plan import Plan
    from comborun.reporter.comparing.between import Between
    from comborun.reporter.counting.schedule import Schedule
    from comborun.reporter.figures.figure import Figure
    from comborun.reporter.pages.contact import ContactSheet
    from comborun.reporter.summary import Report

    Content = bytes | Iterator[bytes]
    """of a file: whole, or in parts"""


_OUR_FIGURE = re.compile(rf"(?:{'|'.join(NAMES)})(?:-\d+)?\.(?:{'|'.join(FORMS)})")


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Turns off cyclic garbage collection, which would repeatedly scan hundreds of thousands of live records."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@without_garbage_collection()
def report_run(
    directory: Path,
    output: Path,
    unread: Mapping[PurePosixPath, str] = MappingProxyType({}),
    forms: Sequence[str] = (),
    *,
    ranked: bool = False,
) -> Summary:
    """Report a run directory, finished or not, into the folder `output`.

    `unread` are result files that a copy of the run lacks, each with the reason; they are told as unreadable. `forms`
    are those of FORMS in which the figures are wanted as files, too; `ranked`: with Bradley-Terry strengths.
    """
    return write_report(collect_run(directory, unread), output, forms, directory, ranked=ranked)


@without_garbage_collection()
def report_folder(
    directory: Path, output: Path, forms: Sequence[str] = (), plan: Plan | None = None, *, ranked: bool = False
) -> Summary:
    """Report any folder of results, by a plan if there is one; raises UserError when nothing in it was counted."""
    collected = collect_by_plan(directory, plan) if plan else collect_folder(directory)
    if not (collected.records or collected.aggregates):
        raise _nothing(directory, collected)
    return write_report(collected, output, forms, directory, ranked=ranked)


def write_report(
    collected: Collected,
    output: Path,
    forms: Sequence[str] = (),
    directory: Path | None = None,
    *,
    ranked: bool = False,
) -> Summary:
    """Make every file of the report and put each in place whole. The page is there before figures are made as files.

    Videos are looked for in `directory`, if given.
    """
    report, ran = summarize(collected, ranked=ranked), schedule(collected)
    drawn = figures(report, ran, files=bool(forms))
    sheet = contact_sheet(directory, report.episodes, output) if directory else None
    _publish(render(report, ran, drawn, sheet), output)
    made = files(drawn, forms)
    _publish({f"figures/{name}": content for name, content in made.items()}, output)
    for path in (output / "figures").glob("*.*"):  # of an earlier report
        if path.name not in made and _OUR_FIGURE.fullmatch(path.name):
            with suppress(OSError):
                path.unlink()
    return report.summary


def render(
    report: Report, ran: Schedule, drawn: Sequence[Figure], sheet: ContactSheet | None = None
) -> Mapping[str, Content]:
    """Every file of the report but the figures, by name, and the same for the same records."""
    from comborun.reporter.pages import data, page
    from comborun.reporter.pages.latex import latex

    sections = page.page(report.summary)
    texts = {
        "report.html": page.html({**sections, "sheet": sheet}, drawn),
        "report.md": page.markdown(sections),
        "report.tex": latex(sections["summary"]),
        "final_benchmark_report.json": data.report_json(report.summary, ran),
        SCHEMA_FILE: (page.TEMPLATES / SCHEMA_FILE).read_text("utf-8"),
        "summary.csv": data.summary_csv(report.summary),
    }
    found: dict[str, Content] = {name: _encoded(text) for name, text in texts.items()}
    return {**found, "episodes.csv": map(_encoded, data.episodes_csv(report.episodes))}


def _encoded(text: str) -> bytes:
    """Names from records may hold halves of UTF-16 pairs, which no encoding takes."""
    return text.encode("utf-8", "replace")


def report_between(before: Collected, after: Collected, output: Path) -> Between:
    """Compare two runs into the folder `output`."""
    from comborun.reporter.comparing.between import compare_runs
    from comborun.reporter.pages.between import render_between

    between = compare_runs(before, after)
    _publish(render_between(between), output)
    return between


def _publish(files: Mapping[str, Content], output: Path) -> None:
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (output / name).parent.mkdir(exist_ok=True)
            _put(output / name, content)
    except OSError as error:
        raise UserError(
            f"the report can't be written to {output}: {error.strerror}", "give another folder, or make room"
        ) from error


def _put(path: Path, content: Content) -> None:
    """Write beside `path` and rename, so that readers see the old file or the new one. Each writer has its own
    temporary file.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.writelines([content] if isinstance(content, bytes) else content)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _nothing(directory: Path, collected: Collected) -> UserError:
    """The error that says what was searched for, and why each found file gave nothing."""
    if not (collected.files or collected.defects):
        return UserError(
            f"no results of a known format below {directory}",
            'a folder can be reported when it holds lines like {"policy": "flat", "environment": "stairs",'
            ' "episode": 0, "success": true} in a .jsonl file, or what another program wrote in one of the formats of'
            f" docs/report.md: {', '.join(sorted(FORMATS))}",
        )
    reasons = Counter((reject.path, reject.reason) for reject in collected.rejects)
    reasons.update((defect.path, defect.reason) for defect in collected.defects)
    sentences = alike((path, f"{reason}{_times(count)}") for (path, reason), count in reasons.most_common())
    lines = [f"  {line}" for line in sentences[:20]]
    more = [f"  and {len(sentences) - 20} more reasons"] if len(sentences) > 20 else []
    return UserError(
        "\n".join(
            [f"no episode is told of in the {len(collected.files)} result files below {directory}", *lines, *more]
        ),
        "mend `results` in the grid"
        if collected.plan
        else 'a record names its own combo: {"policy": "flat", "environment": "stairs", "episode": 0, "success": true};'
        " or give the grid that says how files are read, `--grid grid.yaml`",
    )


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""
