"""Makes a report: from a directory to the files of its report."""

from __future__ import annotations

import gc
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.model.attempt import Aggregate, EpisodeRecord, held
from comborun.model.plan import Plan
from comborun.model.work import combo_of
from comborun.reporter.collect import collect_folder, collect_run
from comborun.reporter.figures.files import FORMS, files
from comborun.reporter.figures.makers import MAKERS, figures
from comborun.reporter.pages import data, document, page
from comborun.reporter.pages.latex import latex
from comborun.reporter.planned_folder import collect_by_plan
from comborun.reporter.records.collected import Collected
from comborun.reporter.records.collector import SCHEMA_FILE
from comborun.reporter.records.training_folders import curves_in
from comborun.reporter.summary import Report, Summary, summarize
from comborun.rules.results.formats import FORMATS
from comborun.text import alike

if TYPE_CHECKING:
    from comborun.reporter.pages.between import AnyBetween
    from comborun.reporter.pages.contact import ContactSheet

_OUR_FIGURE = re.compile(rf"(?:{'|'.join(MAKERS)})(?:-\d+)?\.(?:{'|'.join(FORMS)})")


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
    gates: Sequence[str] = (),
) -> Summary:
    """Report a run directory, finished or not, into the folder `output`.

    `unread` are result files that a copy of the run lacks, each with the reason. `forms` are kinds of files for
    figures, of FORMS. `ranked`: with Bradley-Terry strengths.
    """
    collected = collect_run(directory, unread)
    if collected.plan and collected.plan.follow and not collected.plan.sessions:
        raise UserError("no checkpoint of the training counts yet", "combo status shows which are evaluated")
    return write_report(collected, output, forms, directory, ranked=ranked, gates=gates)


@without_garbage_collection()
def report_folder(
    directory: Path,
    output: Path,
    forms: Sequence[str] = (),
    plan: Plan | None = None,
    *,
    ranked: bool = False,
    gates: Sequence[str] = (),
) -> Summary:
    """Report any folder of results. Raises UserError if nothing in it counts."""
    collected = collect_by_plan(directory, plan) if plan else collect_folder(directory)
    planned = {combo_of(session) for session in plan.sessions} if plan else None
    entries: list[EpisodeRecord | Aggregate] = [*collected.records, *collected.aggregates]
    if not collected.trained and not any(planned is None or one.combo in planned for one in entries):
        error = _nothing(directory, collected)
        error.exit_code = 1 if collected.files else error.exit_code  # files were read, and none counts
        raise error
    return write_report(collected, output, forms, directory, ranked=ranked, gates=gates)


def write_report(
    collected: Collected,
    output: Path,
    forms: Sequence[str] = (),
    directory: Path | None = None,
    *,
    ranked: bool = False,
    gates: Sequence[str] = (),
) -> Summary:
    """Write every file of the report, the page before the figures. Videos are looked for in `directory`."""
    report = summarize(collected, ranked=ranked, gates=gates)
    if not collected.by_run:
        looks = _looks(output / "final_benchmark_report.json", report.summary)
        report = replace(report, summary=replace(report.summary, looks=looks))
    shown = report.shown
    drawn = figures(shown, files=bool(forms))
    sheet = _contact_sheet(directory, report, output) if directory else None
    sections = page.page(shown.summary)
    texts: dict[str, Iterable[str]] = {
        "report.html": [page.html({**sections, "sheet": sheet}, drawn)],
        "report.md": [page.rendered("report.md.j2", **sections)],
        "report.tex": [latex(sections["summary"])],
        "final_benchmark_report.json": [document.report_json(report.summary)],
        SCHEMA_FILE: [document.report_schema()],
        "summary.csv": [data.summary_csv(report.summary)],
        "episodes.csv": data.episodes_csv(report.episodes),
    }
    # Names from records may hold halves of UTF-16 pairs, which can't be encoded.
    _publish({name: (part.encode("utf-8", "replace") for part in parts) for name, parts in texts.items()}, output)
    made = files(drawn, forms)
    _publish({f"figures/{name}": [content] for name, content in made.items()}, output)
    for path in (output / "figures").glob("*.*"):  # of an earlier report
        if path.name not in made and _OUR_FIGURE.fullmatch(path.name):
            with suppress(OSError):
                path.unlink()
    return report.summary


def _contact_sheet(directory: Path, report: Report, output: Path) -> ContactSheet | None:
    if not any("video" in names for _, names in held(report.episodes)):
        return None
    from comborun.reporter.pages.contact import contact_sheet

    return contact_sheet(directory, report.episodes, output)


def _looks(earlier: Path, summary: Summary) -> tuple[int, ...]:
    """Episodes with a verdict or a number at each report of a folder that grows, this one last; empty at the first one.

    An earlier report counts as a look if it compared the same policies with fewer episodes.
    """
    try:
        found = json.loads(earlier.read_text("utf-8"))
        totals = found["totals"]
        before = [*found.get("looks", []), totals["completed"] + totals.get("measured", 0)]
        known = found["run"] == summary.run and (found["comparisons"] or found.get("mean_differences"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ()
    now, compared = summary.totals.completed + summary.totals.measured, summary.comparisons
    compares = compared.all or compared.mean_differences
    if not known or not compares or not all(type(one) is int for one in before):
        return ()
    looks = [*sorted({one for one in before if 0 < one < now}), now]
    return (*looks,) if len(looks) > 1 else ()


def report_between(
    before: Collected, after: Collected, output: Path, same: Mapping[str, str] = MappingProxyType({})
) -> AnyBetween:
    from comborun.reporter.pages.between import compare_runs, render_between

    between = compare_runs(before, after, same)
    _publish({name: [content] for name, content in render_between(between).items()}, output)
    return between


def _publish(files: Mapping[str, Iterable[bytes]], output: Path) -> None:
    try:
        output.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (output / name).parent.mkdir(exist_ok=True)
            _put(output / name, content)
    except OSError as error:
        raise UserError(
            f"the report can't be written to {output}: {error.strerror}", "give another folder, or make room"
        ) from error


def _put(path: Path, content: Iterable[bytes]) -> None:
    """Write beside `path` and rename, so that readers see the old file or the new one."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.writelines(content)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _nothing(directory: Path, collected: Collected) -> UserError:
    if not (collected.files or collected.defects) and collected.plan:
        taken = sorted({pattern for one in collected.plan.sessions for pattern in one.results.files})
        return UserError(
            f"no file below {directory} that `files` of the grid takes, which are {', '.join(taken) or 'none'}",
            "name the result files in the grid: `results: {files: PATTERN}`",
        )
    if not (collected.files or collected.defects):
        return UserError(
            f"no results of a known format below {directory}",
            'a folder can be reported when it holds lines like {"policy": "flat", "environment": "stairs",'
            ' "episode": 0, "success": true} in a .jsonl file, or what another program wrote in one of the formats of'
            f" docs/report.md: {', '.join(sorted(FORMATS))}",
        )
    reasons = Counter((reject.path, reject.reason) for reject in collected.rejects)
    reasons.update((defect.path, defect.reason) for defect in collected.defects)
    counted = ((path, reason, f" ({count} times)" * (count > 1)) for (path, reason), count in reasons.most_common())
    sentences = alike((path, f"{reason}{times}") for path, reason, times in counted)
    if path := None if collected.plan else curves_in(directory):
        name = f"progress{PurePosixPath(path).suffix}"
        sentences.insert(0, f"{path}: curves over steps; if they are of a training, call it {name}, and they are shown")
    lines = [f"  {line}" for line in sentences[:20]]
    more = [f"  and {len(sentences) - 20} more reasons"] if len(sentences) > 20 else []
    read = f"none of the {len(collected.files)} result files below {directory} holds an episode that counts"
    return UserError(
        "\n".join([read, *lines, *more]),
        "mend `results` in the grid; where nothing names a file's policy and environment, put it into a folder"
        f" of its session's name, such as `{collected.plan.sessions[0].name}/`"
        if collected.plan
        else 'a record names its own combo: {"policy": "flat", "environment": "stairs", "episode": 0, "success": true};'
        " or give the grid that says how files are read, `--grid grid.yaml`",
    )
