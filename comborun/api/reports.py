"""Copies a run's records to this machine, reports on them, and compares runs and policies."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from comborun.answers import runs
from comborun.api.named import is_grid
from comborun.errors import UserError
from comborun.model.codec import decoded
from comborun.remote.launches import is_remembered
from comborun.remote.transport import LOCAL
from comborun.rules.names import RUN
from comborun.text import clean, did_you_mean, harmless, several

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from comborun.api.listener import Listener
    from comborun.api.named import Copy, HostChoice, Target
    from comborun.remote.mirror import Skipped
    from comborun.reporter.comparing.comparison import Comparison, Overall, Tested
    from comborun.reporter.pages.between import AnyBetween
    from comborun.reporter.records.collected import Collected
    from comborun.reporter.summary import Summary

_MOST_SKIPPED = 5
FILES = {
    "report.html": "for reading; one file, opens offline",
    "report.md": "for pasting",
    "report.tex": "for a paper",
    "final_benchmark_report.json": "every number, for programs",
    "summary.csv": "every combo",
    "episodes.csv": "every episode",
    "figures": "for papers and slides",
}
"""the files of a report, and what they are for"""


def brought(target: Target, most: int | None = None) -> tuple[Path, tuple[Skipped, ...]]:
    """Copy the records of a run to this machine. Returns their place, and the files that could not be copied."""
    from comborun.remote.fetch import MOST, FetchOptions

    with target.listener.working("copying the records") as tell:
        options = FetchOptions(most=MOST if most is None else most, progress=lambda files: tell(several(files, "file")))
        return target.bring(options)


def collected(target: Target, most: int | None = None) -> tuple[Collected, Path]:
    """The records of a run, and their place on this machine."""
    from comborun.reporter.collect import collect_run

    source, skipped = brought(target, most)
    tell_skipped(target.listener, skipped)
    with target.listener.working("reading the records"):
        return collect_run(source, dict(skipped)), source


@dataclass(frozen=True)
class ReportRequest:
    output: Path | None = None
    """its folder; None: `report` below the records"""
    forms: tuple[str, ...] = ()
    """kinds of files for figures: pdf, png, svg"""
    ranked: bool = False
    """with Bradley-Terry strengths"""
    gates: tuple[str, ...] = ()
    """conditions that the report checks, such as `pi1 not worse than pi0 by 5 points`"""


_AS_USUAL = ReportRequest()


def make_report(target: Target, copy: Copy, request: ReportRequest = _AS_USUAL) -> tuple[Summary, Path]:
    """Make the report of a run, from its records on this machine. Returns it and its folder."""
    from comborun.reporter.report import report_run

    source, skipped = copy
    tell_skipped(target.listener, skipped)
    folder = request.output or source / "report"
    with target.listener.working("making the report"):
        summary = report_run(source, folder, dict(skipped), request.forms, ranked=request.ranked, gates=request.gates)
    return summary, folder


def bring_videos(target: Target, copy: Copy, which: str) -> None:
    """Copy the videos of failed episodes, or of all, that are not on this machine yet."""
    from comborun.remote.fetch import FetchOptions, fetch
    from comborun.reporter.collect import collect_run

    source, skipped = copy
    records = collect_run(source, dict(skipped)).records
    chosen = (record.extra.get("video") for record in records if which == "all" or not record.success)
    named = [video for video in chosen if isinstance(video, str)]
    if not named:
        target.listener.tell(f"no video to copy: no {'failed ' if which == 'failed' else ''}episode names one")
    if target.transport.host == LOCAL:
        return
    missing = [PurePosixPath(video) for video in named if not (source / video).exists()]
    wanted = {path for path in missing if path.parts[:1] == ("sessions",)}
    if unlisted := sum(path not in wanted for path in missing):  # several may have one name
        words = f"not copied: {several(unlisted, 'video')} that the host does not list"
        target.listener.tell(f"{words}; `results: {{videos: '**/*.mp4'}}` in the grid lists them")
    if not wanted:
        return
    videos = several(len(wanted), "video")
    with target.listener.working(f"copying {videos}") as tell:
        options = FetchOptions(others=wanted, progress=lambda come: tell(f"{come} of {videos}"))
        fetch(target.transport, target.directory, source, options)


def tell_skipped(listener: Listener, skipped: Sequence[Skipped]) -> None:
    for path, reason in skipped[:_MOST_SKIPPED]:
        listener.tell(f"not copied: {harmless(str(path), keep='')}: {reason}")
    if len(skipped) > _MOST_SKIPPED:
        listener.tell(f"and {len(skipped) - _MOST_SKIPPED} more: the report has all of them")


def is_folder(word: str, where: HostChoice) -> bool:
    """Whether a word means a folder of result files: a path does; another name only if no run has it."""
    folder, is_path = Path(word), "/" in word or word.startswith((".", "~"))
    if is_grid(folder):
        return False
    if not where.named and not folder.is_dir() and is_path and not is_remembered(word):
        what = "is a file, not a folder of results" if folder.exists() else "no such file or folder"
        raise UserError(f"{word}: {what}", "combo report RUN reports on a run; combo runs lists them")
    if where.named or not folder.is_dir() or (folder / RUN.manifest).is_file():
        return False
    if is_path:
        return True
    try:
        run = where.find(word).run
    except UserError:
        return True
    return word not in {run, run.rsplit("-", 2)[0]}


def compare(
    pair: tuple[str, str],
    where: HostChoice,
    output: Path | None = None,
    most: int | None = None,
    same: Mapping[str, str] = MappingProxyType({}),
) -> tuple[AnyBetween, Path]:
    """Compare two runs, or folders of results, into files. Returns the comparison and its folder.

    `same`: names of policies or environments in the first one, by what they are called in the second.
    """
    from comborun.reporter.report import report_between, without_garbage_collection

    with without_garbage_collection():
        (first, _), (second, source) = (_collect(word, where, most) for word in pair)
        folder = output or source / "report" / f"against-{clean(first.name)}"
        with where.listener.working("comparing the records"):
            return report_between(first, second, folder, same), folder


def _collect(word: str, where: HostChoice, most: int | None) -> tuple[Collected, Path]:
    """The records of a run or a folder, and their place on this machine."""
    from comborun.reporter.collect import collect_folder

    if not is_folder(word, where):
        return collected(where.find(word), most)
    with where.listener.working(f"reading {word}"):
        return collect_folder(Path(word)), Path(word)


def report_answer(summary: Summary, folder: Path) -> runs.Report:
    gates = tuple(runs.Condition(**asdict(gate)) for gate in summary.gates)
    return runs.Report(summary.run, str(folder), tuple(_report_files(folder)), gates)


def _report_files(folder: Path) -> Iterator[str]:
    for name in FILES:
        for path in sorted((folder / name).iterdir()) if (folder / name).is_dir() else [folder / name]:
            if path.is_file():
                yield path.relative_to(folder).as_posix()


def comparison_answer(folder: Path) -> runs.Comparison:
    """The answer about two runs, from the document of their comparison."""
    document = json.loads((folder / "comparison.json").read_text("utf-8"))
    answer: runs.Comparison = decoded(runs.Comparison, {**document, "report": str(folder)})
    return answer


def compare_policies(target: Target, a: str, b: str) -> runs.ComparedPolicies:
    """What the report of a run says of two of its policies. Raises UserError if it says nothing."""
    from comborun.reporter.report import without_garbage_collection
    from comborun.reporter.summary import summarize

    with without_garbage_collection():
        summary = summarize(collected(target)[0]).summary
    for policy in (a, b):
        if policy not in summary.policies:
            raise UserError(
                f"{summary.run} has no policy {policy}", did_you_mean(policy, summary.policies), code="unknown_policy"
            )
    found = tuple(_environment(one, a) for one in summary.comparisons.all if {one.a, one.b} == {a, b})
    overall = next((_overall(one, a) for one in summary.comparisons.overall if {one.a, one.b} == {a, b}), None)
    if not found and not overall:
        raise UserError(
            f"nothing compares {a} with {b} yet",
            "they need an environment in which both have episodes",
            code="nothing_to_compare",
        )
    return runs.ComparedPolicies(summary.run, a, b, not summary.totals.missing, overall, found)


def _environment(one: Comparison, a: str) -> runs.ComparedEnvironment:
    first, second = (one.rate_a, one.rate_b) if one.a == a else (one.rate_b, one.rate_a)
    return runs.ComparedEnvironment(
        environment=one.environment,
        successes_a=first.successes,
        n_a=first.n,
        successes_b=second.successes,
        n_b=second.n,
        **_tested(one, a),
        test=one.test,
        paired=one.paired,
    )


def _overall(one: Overall, a: str) -> runs.ComparedOverall:
    means = (one.mean_a, one.mean_b) if one.a == a else (one.mean_b, one.mean_a)
    return runs.ComparedOverall(one.environments, *means, **_tested(one, a))


def _tested(one: Tested, a: str) -> dict[str, Any]:
    """The report compares each two policies once; here the difference is that of `a`."""
    low, high = one.interval
    way = (one.difference, (low, high)) if one.a == a else (-one.difference, (-high, -low))
    return {"difference": way[0], "interval": way[1], "p": one.p, "p_holm": one.p_holm} | {
        "better": one.better,
        "facts": one.facts,
    }
