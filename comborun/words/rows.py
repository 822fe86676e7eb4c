"""Words for why rows of result files don't count, what is wrong with a file, and the line of a grid that would help."""

from __future__ import annotations

import json
import re

from comborun.rules.facts import Fact
from comborun.rules.results import counts as reasons
from comborun.rules.results import videos
from comborun.rules.results.fields import number
from comborun.rules.vocabulary import several
from comborun.words import part, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable

_PLAIN = re.compile(r"[A-Za-z_][\w./-]*", re.ASCII)
_NOT_TEXT = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
"""plain words that YAML, or an older version of it, takes for something else"""


def why_not_counted(facts: Iterable[Fact]) -> str:
    """The reasons in one sentence, without a full stop. A proposal follows the reason before it after a colon."""
    said = ""
    for fact in facts:
        between = ": " if fact.code == reasons.PROPOSAL else "; "
        said = f"{said}{between}{say(fact)}" if said else say(fact)
    return said


proposed = reasons.keys_of


def without_line(fact: Fact) -> tuple[Fact, ...]:
    """The fact without its proposal; none where nothing else is left."""
    if fact.code == reasons.PROPOSAL:
        return ()
    return (Fact(fact.code, apart=True, **fact.without(*reasons.OF_LINE).fields) if proposed(fact) else fact,)


def other_way(fact: Fact) -> str:
    """How else the rows could be judged: by one of their numbers if they have no verdicts, or by another verdict."""
    if rivals := [one for one in fact.fields.get("rivals") or () if isinstance(one, dict)]:
        told = ", ".join(f"{flow(one.get('field'))} in {one.get('rows')} of {one.get('of')} rows" for one in rivals)
        return f"but {told} of the file {'says' if len(rivals) == 1 else 'say'} otherwise: choose which one counts"
    if not fact.text("score"):
        return ""
    score = flow({"field": fact.text("score")})[1:-1]
    by = f"`success: {{{score}, at_least: NUMBER}}` instead of `success: none`"
    return f"or {by}: an episode that reaches NUMBER is a success"


def flow(value: object) -> str:
    """A value as it is written in a grid file: `{field: ep, from: 1}`; texts in quotes where YAML needs them."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{flow(key)}: {flow(one)}' for key, one in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(flow, value))}]"
    if not isinstance(value, str):
        return json.dumps(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT:
        return value
    if "\\" in value and value.isprintable() and "'" not in value:
        return f"'{value}'"
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(one if one.isprintable() else f"\\U{ord(one):08x}" for one in quoted)


def _line(fact: Fact) -> str:
    """` : the line` that a reason proposes, to put behind it."""
    return f": {_proposal(fact)}" if proposed(fact) else ""


def _proposal(fact: Fact) -> str:
    other = other_way(fact)
    return f"`results: {flow(proposed(fact))}` counts them" + (f"; {other}" if other else "")


def _rows(fact: Fact) -> str:
    """`all 10 rows`, `3 of 10 rows`."""
    count, rows = fact.count("rows"), fact.count("of")
    if count >= rows:
        return "the only row" if rows == 1 else f"all {rows} rows"
    return f"{count} of {rows} rows"


def _place(fact: Fact) -> str:
    line = fact.count("line")
    return f"{fact.text('file')}:{line}" if line else fact.text("file")


def _of_another(fact: Fact) -> str:
    kind, named, own = fact.text("kind"), fact.texts("named"), fact.text("own")
    one = fact.count("rows") == 1
    if not named:
        return f"{_rows(fact)} {'names' if one else 'name'} no {kind}"
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    others = f"{kind} {named[0]!r}" if len(named) == 1 else f"{plural} {', '.join(map(repr, named))}"
    return f"{_rows(fact)} {'says' if one else 'say'} {others}, this session is {own!r}"


def _not_in_grid(fact: Fact) -> str:
    kind, rows = fact.text("kind"), fact.count("rows")
    named, known = (", ".join(map(repr, fact.texts(key))) for key in ("named", "known"))
    told = f"{rows} row{'s' * (rows != 1)} of {kind} {named}, which the grid does not know: it has {known}"
    if fact.fields.get("joins"):
        return f"{told}; its rows repeat episodes, so they may be of several combos: name the field with the {kind}"
    name = flow(next(iter(fact.texts("named")), ""))
    hint = f"`results: {{{kind}: {{values: {{NAME: {name}}}}}}}` maps a name of the grid to it"
    return told + (_line(fact) if proposed(fact) else f"; {hint}")


def _in_columns(fact: Fact) -> str:
    kinds, columns = (" and ".join(fact.texts(key)) for key in ("kinds", "columns"))
    told = f"its rows name {kinds} in {columns}, which the grid does not read"
    if fact.fields.get("unclear"):
        return f"{told}: `results: {flow(proposed(fact))}`, with the grid's names as NAME, maps them"
    return f"{told}{_line(fact)}"


def _without_index(fact: Fact) -> str:
    why = Fact.of(fact.fields.get("why"))
    has = why.texts("has") if why else ()
    return f"{_rows(fact)}: {part(fact, 'why')}" + (f" (they have {', '.join(has)})" if has else "")


def _refused(fact: Fact) -> str:
    more = fact.count("rows") - 1
    return f"{_place(fact)}{f' (and {more} more)' * (more > 0)}: {part(fact, 'why')}{_line(fact)}"


def _without_verdict(fact: Fact) -> str:
    some = f" ({fact.count('part')} of them)" if fact.count("part") else ""
    return f"{_rows(fact)} without a verdict: {part(fact, 'why')}{some}"


def _undecided(fact: Fact) -> str:
    values = ", ".join(fact.texts("values"))
    field = fact.text("field")
    told = f"the field {field!r} holds {values}: no verdicts by themselves, so none counts"
    files = {"files": fact.text("files")} if fact.text("files") else {}
    numbers = all(number(one) is not None for one in fact.texts("values"))
    test, which = ("at_least", "the least NUMBER") if numbers else ("any_of", "each VALUE")
    shown = flow({**files, "success": {"field": field, test: "NUMBER" if numbers else ["VALUE"]}})
    line = _line(fact) or f": `results: {shown}`, with {which} that means a success, counts them"
    means = numbers and len(fact.texts("values")) > 2
    warning = "; but if a row is the mean of several episodes, it has no verdict" if means else ""
    success = proposed(fact).get("success") or {}
    if (full := success.get("at_least", 0)) > 1 and "1" in fact.texts("values"):  # it may stand for something else
        warning = f", but only if {full} means a success" + warning
    return told + ("" if fact.fields.get("apart") else line) + warning


def _not_planned(fact: Fact) -> str:
    episodes, some, first = fact.count("episodes"), fact.texts("some"), fact.count("first")
    shown = ", ".join(some) + (" ..." if episodes > len(some) else "")
    noun = "episode" if episodes == 1 else "episodes"
    return f"{episodes} {noun} not planned here ({shown}): planned are {first} to {first + fact.count('count') - 1}"


def _repeat(fact: Fact) -> str:
    repeated, by = f"{_rows(fact)} {'repeats' if fact.count('rows') == 1 else 'repeat'}", fact.text("by")
    if not by:
        return f"{repeated} an episode: of each the first with a verdict counts"
    if by == "steps":
        how = "with other verdicts" if fact.fields.get("contested", True) else "with a count of steps"
        return f"{repeated} an index one after another, {how}, as steps do: none counts"
    told = "each file numbers its own" if by == "file" else f"they differ in {by}"
    if "planned" in fact.fields:
        told += f", and {fact.count('episodes')} are more than the {fact.count('planned')} planned"
    return f"{repeated} an index, but {told}: none counts{_line(fact)}"


def _takes(fact: Fact) -> str:
    if "taken" not in fact.fields:
        return "it is not read"
    taken = fact.texts("taken")
    return f"the pattern takes {', '.join(taken)}" if taken else "the log is read"


def _not_read(fact: Fact) -> str:
    lead = f"{fact.text('file')}: " if fact.text("file") else "" if "file" in fact.fields else "the log: "
    episodes = fact.count("episodes")
    return f"{lead}{episodes} episode{'s' * (episodes != 1)}, but {_takes(fact)}{_line(fact)}"


def _either(fact: Fact) -> str:
    lead = f"{fact.text('file')}: " if fact.text("file") else "the log: " if "file" not in fact.fields else ""
    each, all_ = (Fact.of(fact.fields.get(name)) for name in ("each", "all"))
    if not (each and all_):
        return f"{lead}verdicts, or a count that goes on: none counts"
    several_ = several(fact.count("episodes"), "line")
    return (
        f"{lead}{several_} that may be verdicts ({fact.count('verdicts')} with success) or a count that goes on"
        f" ({fact.count('successes')} with success), so none counts. If each is the verdict of its episode:"
        f" `results: {flow(proposed(each))}`; if it counts the successes so far: `results: {flow(proposed(all_))}`"
    )


def _some(fact: Fact) -> str:
    more = fact.count("more")
    return fact.text("file") + (f" (and {more} more)" if more else "")


def _names_another(fact: Fact) -> str:
    expected = " or ".join(map(repr, fact.texts("expected")))
    return f"of another {fact.text('kind')}: {fact.text('named')!r}, where {expected} ran"


def _not_finished(fact: Fact) -> str:
    fault = f": {say(Fact(fact.text('fault')))}" if fact.text("fault") else ""
    return f"not finished after {fact.count('steps')} steps{fault}"


def _has(fact: Fact) -> str:
    inner = f"; in them {', '.join(fact.texts('inner'))}" if fact.texts("inner") else ""
    has = f" (it has {', '.join(fact.texts('keys'))}{inner})" if fact.texts("keys") else ""
    return f"{has}: have the program write JSON lines, {_PRINTED}"


def _several_counts(fact: Fact) -> str:
    planned = fact.count("planned")
    verb = "is" if planned == 1 else "are"
    where = f"where {planned} {verb} planned" if planned else "and no plan says how many there are"
    way = f": run as many as {{episodes}} says, plan as many as it runs, {_PRINTED}" if planned else ""
    if fact.fields.get("of_no_session"):
        where = "and its path names no session of the grid"
        way = (
            ": a file for each session, in folders POLICY/ENVIRONMENT, counts if it is of all episodes that are planned"
        )
    return f"it only says how many succeeded ({', '.join(fact.texts('found'))}), {where}{way}"


def _videos(fact: Fact) -> str:
    """`3 videos (a.mp4, b.mp4 ...)`, `3 of 4 videos (...)`."""
    count, some = fact.count("videos"), fact.texts("some")
    of = f" of {several(fact.count('of'), 'video')}" if fact.count("of") > count else " video" + "s" * (count != 1)
    return f"{count}{of} ({', '.join(some)}{' ...' * (count > len(some))})"


_PRINTED = (
    'or print a line for each episode, `print(f"Episode {i}: success={ok}")`, and give'
    r" `results: {from: log, pattern: 'Episode (?P<episode>\d+): success=(?P<success>\w+)'}`"
)
_OR_PRINTED = _PRINTED.replace("{", "{{").replace("}", "}}")
"""for a text with braces"""


WORDS: dict[str, str | Callable[[Fact], str]] = {
    "host_given_up": (
        "given up[ at {at:clock}]: what it had not completed went to other hosts"
        "[; this machine had no copy of {rows:row} by then, so these episodes ran elsewhere]"
    ),
    "clock_of_host": "its clock was {seconds:brief} {way}: times in this report are corrected by that",
    # Why rows of an attempt don't count
    reasons.OF_ANOTHER: _of_another,
    reasons.NOT_IN_GRID: _not_in_grid,
    reasons.IN_COLUMNS: _in_columns,
    reasons.WITHOUT_INDEX: _without_index,
    reasons.REFUSED: _refused,
    reasons.WITHOUT_VERDICT: _without_verdict,
    reasons.UNDECIDED: _undecided,
    reasons.NOT_PLANNED: _not_planned,
    reasons.REPEAT: _repeat,
    reasons.EACH_AGAIN: "its {rows} rows have no index, and each stands at least {times} times: were they"
    " written again? Give them an index, or leave out the copies",
    reasons.PROPOSAL: _proposal,
    reasons.ANOTHER_RAN: "the program ran another {kind} of this grid: does `command` use {{{kind}}}?",
    reasons.NOT_COUNTED: "{file}: [{why}|not counted]",
    reasons.NOT_READ: _not_read,
    reasons.EITHER: _either,
    reasons.FILE_NOT_READ: lambda fact: f"{fact.text('file')}: {part(fact, 'why')}; {_takes(fact)}",
    reasons.NO_EPISODE: lambda fact: (
        f"no episode is in {_some(fact) or 'its log'}{', which is empty' if fact.fields.get('why') else ''}"
    ),
    reasons.NO_MATCH: lambda fact: (
        f"no file matches {', '.join(fact.texts('patterns'))}: it wrote {_some(fact)}, where no results are found;"
        f" have the program write JSON lines, {_PRINTED}"
    ),
    reasons.WROTE_NOTHING: (
        f"no file is below {{{{output_dir}}}}: have the program write JSON lines there, {_OR_PRINTED}"
    ),
    reasons.TOO_MANY: "more than {most} result files: they are counted when it has ended",
    reasons.CHANGED: "its results have changed since it ended, and count as they are now",
    reasons.NOT_RECOUNTED: "its results have changed since it ended, and a look has too little time to count them:"
    " these are the counts of its end",
    reasons.TAKES_LONG: "a look has too little time to count its results: they are counted when it has ended",
    reasons.NOT_LOOKED_AT: "its folder holds too much to look at once whether its results have changed since it ended",
    reasons.NOT_IN_TIME: "its results were not counted: reading them takes longer than {seconds:g} s",
    reasons.COUNTING_FAILED: "its results can't be counted: {error}",
    reasons.FORMER: "{text}",
    # Videos
    videos.APART: lambda fact: (
        f"no episode is known of {_videos(fact)}: a name such as `eval_episode_0.mp4` tells it, or a field `video` of"
        " its record"
    ),
    videos.NOT_NAMED: lambda fact: (
        f"`results.videos` finds none of {_videos(fact)}: the report does not show them"
        + (f"; `results: {flow(proposed(fact))}` does" if proposed(fact) else "")
    ),
    # What is wrong with a row
    "not_an_object": "not a JSON object",
    "names_none": "names no {kind}",
    "names_another": _names_another,
    "no_index_field": "no field {field!r} with the episode's index",
    "no_index": "the field {field!r} holds no episode index",
    "index_below_first": "the field {field!r} holds {index}, and they count from {first}",
    "no_verdict_field": "no field {field!r}",
    "verdict_no_number": "the field {field!r} holds no finite number",
    "verdict_no_truth": "the field {field!r} is neither true nor false",
    "not_json": "not JSON",
    "python_object": "no JSON, but an object as Python prints it: write `json.dumps(row)`",
    "json_broken_off": "half-written JSON",
    "not_json_after_record": "not JSON after a whole record",
    "nested_too_deeply": "nested too deeply",
    "number_too_long": "not JSON: a number too long",
    "line_too_long": "longer than {most_mib} MiB",
    "last_line_cut_off": "the last line is cut off",
    "nothing_but_nul": "it holds NUL bytes only, as after a crash of the machine: what was written is lost",
    "last_row_cut_off": "the last line is cut off: it lacks its newline",
    "open_quote": "cut off: a quote in line {at} has no end",
    "no_header": "the first line has {cells} values and no names: write a header such as `episode,success` before them",
    "other_number_of_cells": "{cells} cells, where the header has {header}",
    "task_without_successes": "entry {entry} of per_task lists no successes",
    "group_without_episodes": "a rate of {group} is stated beside lists of other groups, and it has no list itself",
    "episode_without_index": "entry {entry} of per_episode has no index episode_ix",
    "episode_not_counted": "an episode that its program did not count: left out",
    "episode_numbered_0": "an episode numbered 0: they count from 1",
    # What is wrong with a file
    "empty_file": "empty: being written, or cut off",
    "half_written_json": "half-written JSON: being written, or cut off",
    "half_written_archive": "half-written archive: being written, or cut off",
    "half_written_database": "a SQLite file being written, or cut off: {error}",
    "not_json_document": "not JSON: {error} in line {at}",
    "object_over_lines": "its JSON objects take several lines each, and each must stand on one: `jq -c . FILE` writes"
    " them so",
    "several_documents": "not JSON: more than one document",
    "not_a_list": "not a JSON list",
    "unknown_format": "of no format that is known",
    "empty_list": "it holds no episode: [{keys}|its list] is empty",
    "unknown_list": lambda fact: (
        f"one JSON list of {fact.count('entries')} entries, of no format that is known{_has(fact)}"
    ),
    "unknown_document": lambda fact: f"one JSON document of no format that is known{_has(fact)}",
    "several_candidates": "more than one list of episodes ({found}) where {planned} are planned",
    "lists_of_verdicts": (
        "its rows hold lists of verdicts ({found}), where {planned} are planned in all: have the program write a line"
        f" for each episode, {_OR_PRINTED}"
    ),
    "row_sums_up": "a row that sums up others: left out",
    "verdict_elsewhere": lambda fact: (
        f"{several(fact.count('episodes'), 'episode')} without the field of a verdict{_line(fact)}"
    ),
    "perhaps_settings": lambda fact: (
        f"{several(fact.count('episodes'), 'verdict')} with nothing beside ({', '.join(fact.texts('found'))}), as in"
        f" settings: none counts{_line(fact)}"
    ),
    "verdicts_or_counts": lambda fact: (
        f"{several(fact.count('rows'), 'row')} whose {fact.text('field')!r} may be a verdict or count the successes so"
        f" far, so none counts; if each is a verdict{_line(fact)}"
    ),
    "several_counts": _several_counts,
    "counts_contradict": "its counts contradict each other ({found})",
    "rates_of_no_number": (
        "it only says rates ({found}), and not of how many episodes: have the program write the numbers,"
        f" {_OR_PRINTED}"
    ),
    "unknown_text": f"text of no format that is known: have the program write JSON lines, {_OR_PRINTED}",
    "pickle": f"a pickle, which is never opened: have its numbers written as JSON, {_OR_PRINTED}",
    "foreign_kind": f"a file of {{kind}}, which is not read: have the program write JSON lines, {_OR_PRINTED}",
    "packed_file": "packed with {packer}: unpack it first",
    "summary_not_read": "a summary is not read: only files with single episodes count",
    "file_too_large": "larger than {most_mib} MiB",
    "unreadable_file": "can't be read: {error}",
    "reader_failed": "can't be read: {error}",
    "name_without_outcome": "its name holds no outcome of an episode",
    "dangling_link": "a link that leads nowhere; `cp -rL` and `rsync -aL` copy the files that links lead to",
    "no_file": "no file",
    "training": "a training: it has no episodes to count",
    "counted_at_the_end": "larger than {most_mib} MiB: it is counted when its session has ended",
    "history_without_verdicts": "none of {passed} rows of a history has the field {field!r}",
    "inspect_without_samples": "a log of Inspect without samples",
    "archive_compression": (
        "compressed in a way that this Python does not read (zstd before 3.14): write its logs as JSON"
    ),
    "unreadable_archive": "an archive that can't be read: {error}",
    "member_too_large": "{member} in it is larger than {most_mib} MiB",
    "member_no_array": "{member} in it is not an array",
    "member_without_header": "{member} in it has no header that can be read",
    "member_of_objects": "{member} in it holds Python objects, which are never unpickled",
    "member_cut_off": "{member} in it is cut off",
    "no_array_of_outcomes": "arrays [{arrays}|of no name]: none with an episode's outcome",
    "database_not_in_a_folder": "a SQLite file can be read from a folder only",
    "no_sqlite3": "a SQLite file, and this Python has no sqlite3",
    "database_too_slow": "a SQLite file that takes too long to read",
    "no_table_of_episodes": "a SQLite file whose tables ([{tables}|none]) hold no episodes",
    "table_too_long": "its table {table!r} has more than {most} rows",
    "name_without_number": "the name {name!r} holds no episode's number",
    "episode_not_finished": _not_finished,
    "document_not_finished": "it says `{said}`, and holds {episodes:episode} of {total}: not whole, so none counts",
    "count_not_finished": "it says `{said}`: whether {of} episodes were completed or are planned is not said, so its"
    " {successes} successes don't count",
    "printed_results_cut_off": "the printed results are cut off",
    "printed_statistics_cut_off": "the printed statistics are cut off",
    "no_list_of_successes": "no environment with a list of successes",
    "results_of_no_episodes": "results of no episodes",
    "rows_of_outcomes": "outcomes of {rows} x {episodes} episodes, and nothing says whether the {rows} are evaluations"
    " of a training, of which the last counts, runs, or steps: an array `timesteps` or `seeds` of {rows} values beside"
    " them says it, or a grid with `episodes: {all}`",
    "ranks_missing": "no metrics of rank {missing} of {ranks}: nothing is counted",
    "no_count": "no rate of a number of episodes, where it has [{has}|no numbers]",
    "no_number_of_episodes": "{said} is not a number of episodes",
    "not_a_printed_value": "not a printed value",
    "rate_of_no_episodes": "a rate of {rate} over {episodes} episodes is not a rate",
    "rate_no_number": "{rate!r} is not a number",
    "rate_out_of_range": "{rate} is not a rate between 0 and {most}",
    "rate_of_no_count": "a rate of {rate} is of no whole number of successes in {episodes} episodes, so none counts",
    # Remarks about rows that count
    "first_to_end": (
        "the first {episodes} episodes that ended in {copies} copies of the environment:"
        " successes end early and are counted too often"
    ),
    "several_on_a_line": "more than one record on a line",
    "no_last_newline": "the last line lacks its newline; its record is whole and counts",
    "last_evaluation_counts": "the last of {evaluations} evaluations counts",
    "fault_behind_step": lambda fact: (
        f"{say(Fact(fact.text('fault')))} behind step {fact.count('steps')}: the steps before it count"
    ),
    "entries_no_steps": "{entries} entries are not steps",
    "percentage_differs": "pc_success of {rate} is not {successes} of {episodes} as listed",
    "fraction_no_percentage": (
        "pc_success of {rate} is not {successes} of {episodes} as listed: a fraction, where a percentage is meant"
    ),
    "named_both_ways": (
        "success and failure both: a rerun went the other way, and the files don't say which was first: errored"
    ),
    "named_alike": "{files} files tell of the same episode, and the same",
    "ended_in_exceptions": "{episodes:episode} with a caught exception, counted by the program all the same: errored",
    "verdicts_after_errors": (
        "{episodes:verdict} after {line!r}, which looks like an error: if it is one, name it in `results.errors`"
    ),
    "failures_with_errors": (
        "{episodes:failure} with {text!r} or the like in the field {field!r}, counted as the rows say: for an episode"
        " that broke off, write null as its verdict"
    ),
    "failures_beside_errors": (
        "{episodes:failure} beside {lines:line} of the log such as {line!r}, counted as the rows say: for an episode"
        " that broke off, write null as its verdict"
    ),
    "matches_overwritten": (
        "{matches:result} that the pattern finds left out, since a carriage return overwrites them: end each with a"
        " newline, or give the pattern a group (?P<episode>...), to count them"
    ),
    "unclear_comma": "the field {field!r} holds {value}, whose comma may be a decimal point or not: it is no metric",
    "total_differs": "its program speaks of {total} episodes, and {episodes} are told of above",
    "total_rate_differs": "its program's total of {rate} is not {successes} of {episodes} as told of above",
    "printed_rate_differs": "the printed rate of {rate} is not {successes} of {episodes} as listed",
    "field_of_other_length": "the field {field!r} does not hold one value per episode: left out",
    "evaluations_differ": "{evaluations} evaluations in one file, and not alike: the last one counts",
    "rate_no_whole_number": (
        "a rate of {rate} over {episodes} episodes is not a whole number of successes: the nearest one counts"
    ),
    "rate_fits_several": (
        "a rate of {rate} over {episodes} episodes fits more than one number of successes: the nearest one counts"
    ),
    "training_at_step": "a training, at step {step}[ of {steps}]: it has no episodes to count",
}
