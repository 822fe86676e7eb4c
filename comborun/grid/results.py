"""The keys `results` and `progress`: where a session's records are, and what its log tells before they do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import model_validator

from comborun.errors import Problem, UserError
from comborun.grid.axes import some
from comborun.grid.shapes import ONE_OR_MANY, Keys, key
from comborun.grid.values import Count, Flag, Glob, Line, Reads, line_of, one_of, refusal, whole_of
from comborun.judging import FORMATS, ResultRules, Source, compile_pattern, has_total

if TYPE_CHECKING:
    from comborun.grid.draft import Draft

_ORIGINS = (-1, 0, 1)


def _counts_from(tree: object) -> int:
    value = whole_of(tree, low=-1)
    if value not in _ORIGINS:
        hint = "0 or 1: what the first episode is called when it begins; -1 where those that ended are named, from 0"
        raise UserError(f"{value} is nothing that programs count from", hint)
    return value


FormatWord = Annotated[
    str, one_of("format", FORMATS, "docs/report.md lists them; without it files are known by what is in them")
]
SourceWord = Annotated[
    Source, one_of("source of records", ("output", "log"), "which files below {output_dir}, `files` says")
]
ProgressPattern = Annotated[
    str, Reads(lambda tree: compile_pattern(line_of(tree)).pattern, {"type": "string", "minLength": 1})
]
Globs = Annotated[tuple[Glob, ...], ONE_OR_MANY]


class ResultKeys(Keys):
    format: FormatWord = key("how the records are written; without it that is told by what stands in each file", "")
    source: SourceWord = key("log, where the program only prints its results; else output", "output", alias="from")
    files: Globs = key("patterns of the record files below {output_dir}, one JSON object a line", ("**/*.jsonl",))
    success: Line = key("the field that says whether an episode succeeded", "success")
    episode: Line = key("the field that holds the episode's index", "episode")
    metrics: Annotated[tuple[Line, ...], ONE_OR_MANY] = key(
        "the fields to report, in this order; without it every numeric field", ()
    )
    videos: Globs = key("patterns of videos below {output_dir}, which the report names beside their episodes", ())

    @model_validator(mode="after")
    def _log_needs_no_files(self) -> Self:
        if self.source == "log" and "files" not in self.model_fields_set:
            return self.model_copy(update={"files": ()})
        return self

    @property
    def rules(self) -> ResultRules:
        return ResultRules(**vars(self))


class ProgressKeys(Keys):
    pattern: ProgressPattern | None = key(
        "regular expression (Python) with a group for what is done, perhaps one for the total"
    )
    counts_from: Annotated[int, Reads(_counts_from, {"enum": list(_ORIGINS)})] | None = key(
        "the number names the episode that begins, and the first one is called so"
    )
    each: Count | None = key("episodes (or steps) that the total stands for, where the bar then starts again")
    silent: Flag = key("whether the program prints nothing for long stretches", False)

    @model_validator(mode="after")
    def _needs_a_pattern(self) -> Self:
        if self.counts_from is not None and self.pattern is None:
            raise refusal(UserError("`counts_from` without a `pattern`", "which number is it about?"))
        if self.each is None:
            return self
        if self.pattern is None:
            raise refusal(UserError("`each` without a `pattern`", "which bar is it that starts again?"))
        if not has_total(compile_pattern(self.pattern)):
            hint = r"such as '(\d+)/(\d+) \[': the total is what `each` episodes stand for"
            raise refusal(UserError(f"`each` needs a total, and `{self.pattern}` has no second group for one", hint))
        if self.counts_from is not None:
            hint = "leave one out: a bar that starts again counts what is done, from 0"
            raise refusal(UserError("`each` and `counts_from` say two things of one number", hint))
        return self


def progress_problems(draft: Draft) -> Iterator[Problem]:
    """`each` that is no number once the attributes of a combo have filled it."""
    if draft.broken & {"progress", "overrides", "policies", "environments"}:
        return
    for combo in draft.combos:
        if combo.settings.progress and (each := combo.settings.progress.each):
            path = draft.setter("progress", "each", combo=combo)
            yield from draft.tried(path, "`progress.each`", combo.number, each)


def count_warnings(draft: Draft) -> Iterator[Problem]:
    """Records, and no number of them that is known."""
    uncounted = [
        combo.label
        for combo in draft.combos
        if combo.settings.record_files and not combo.settings.episodes and not combo.settings.evidence.line
    ]
    if uncounted:
        where = "" if len(uncounted) == len(draft.combos) else f" for {some(uncounted)}"
        message = f"no `episodes`{where}: whether a session did all its work is up to its exit code"
        yield draft.at(None, message, "say how many each is to do, such as `episodes: 100`")
