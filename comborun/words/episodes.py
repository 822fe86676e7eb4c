"""Words for what the rows of a folder are, if they are not the episodes of one evaluation."""

from __future__ import annotations

from comborun.rules.facts import Fact
from comborun.rules.vocabulary import several
from comborun.words.rows import flow, proposed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.words import Words


_NAMED = 5
"""names that are told"""


def _several_rows(fact: Fact) -> str:
    by = f", which differ by {fact.text('by')!r}" if fact.text("by") else ""
    contested = several(fact.count("contested"), "episode")
    if named := dict(_of_two(fact.fields.get("names"))):
        names = " and ".join(f"{field!r} names the {kind}" for kind, field in named.items())
        whole = f"; if {names}, `results: {flow(named)}` in a grid says so"
    elif keys := proposed(fact):
        whole = f"; if each row is an episode, `results: {flow(keys)}` numbers them"
    else:
        whole = ""
    return (
        f"{_range(fact, 'row')} per episode{by}, and in {contested} their verdicts differ: no verdict counts. If the"
        f" first or the last row of an episode decides, keep only that one{whole}"
    )


def _named(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(map(repr, names[:_NAMED]))}{more}"


def _levels(fact: Fact) -> str:
    return (
        f"paths have {fact.count('levels')} levels, and nothing says what they mean: taken as the policies"
        f" {_named(fact.texts('policies'))}, and as environments such as {fact.text('environment')!r}; if it is not so,"
        " the fields `policy` and `environment` or `--grid` say it"
    )


def _one_level(fact: Fact) -> str:
    return (
        f"paths have one name each, {_named(fact.texts('names'))}, and nothing says whether these are policies or"
        " environments: folders POLICY/ENVIRONMENT, a field `policy` or `--grid` say it"
    )


def _in_doubt(fact: Fact) -> str:
    kinds = "policies" if fact.text("kind") == "policy" else "environments"
    others = "environments" if kinds == "policies" else "policies"
    longer = [f"{name!r} beside {beside!r}" for name, beside in _of_two(fact.fields.get("longer"))]
    fewer = [f"{_named(fact.texts('fewer'))}, in fewer {others} than the others"] if fact.texts("fewer") else []
    return (
        f"taken as {kinds} of their own: {'; '.join([*longer, *fewer])}; if one is a part, a trial or a repetition of"
        f" another, take its files out of the folder, or give a field {fact.text('kind')!r} or `--grid`"
    )


def _of_two(pairs: object) -> list[tuple[str, str]]:
    return [(str(one), str(other)) for one, other in pairs] if isinstance(pairs, (list, tuple)) else []


def _unnamed(fact: Fact) -> str:
    kind, files = fact.text("kind"), fact.count("files")
    whose = "its rows and its path name" if files == 1 else f"the rows and paths of {files} files name"
    return (
        f"{whose} no {kind}, and the grid has {_named(fact.texts('known'))}: a folder or a file called so says it,"
        f" or a field that `results: {{{kind}: FIELD}}` names"
    )


def _runs(fact: Fact) -> str:
    policy, environment = fact.texts("combo")
    return (
        f"{fact.count('runs')} runs of {policy} in {environment} number their episodes alike: {fact.text('field')!r}"
        f" tells them apart, and the episodes of each count from a multiple of {fact.count('length')}"
    )


def _steps(fact: Fact) -> str:
    names = fact.texts("left_out")
    varies = "varies from row to row, so it is" if len(names) == 1 else "vary from row to row, so they are"
    left = f"; {', '.join(names)} {varies} left out" if names else ""
    return (
        f"{_range(fact, 'row')} per episode, which differ by {fact.text('by')!r} and have one verdict: taken as its"
        f" steps, each of {several(fact.count('episodes'), 'episode')} counts once{left}"
    )


def _means(fact: Fact) -> str:
    return (
        f"each row is the mean of {_range(fact, 'trial')} ({fact.text('trials')!r}), no episode: {fact.text('field')!r}"
        " is a rate, and no verdict counts. A row for each trial, with true or false, would"
    )


def _unlike_kinds(fact: Fact) -> str:
    fields = (
        f"{policy} in {field!r}" if field else f"{policy} in no text"
        for policy, field in zip(fact.texts("policies"), fact.texts("fields"))
    )
    kinds = ", ".join(map(repr, fact.texts("kinds")))
    if len(set(fact.texts("fields"))) == 1:
        return f"{' and '.join(fact.texts('policies'))} spell their failures differently: not compared as {kinds}"
    return f"failures are told by {' and by '.join(fields)}: not compared as {kinds}"


def _range(fact: Fact, what: str) -> str:
    least, most = fact.count("least"), fact.count("most")
    return several(most, what) if least == most else f"{least} to {several(most, what)}"


WORDS: Words = {
    "copy_of_file": "{episodes:episode} of {policy} in {environment} with the verdicts of those in {file}: the same"
    " evaluation, counted once",
    "tries_of_other_rows": "{rows:row} of another try of an episode ({field!r}): of each episode the first row with a"
    " verdict counts, whatever its verdict; if the last try decides, leave out the rows before it",
    "backup_of_file": "{same} of {rows:row} are those of {file}, and its name says that it is a copy: the same"
    " evaluation, counted once",
    "column_for_each": lambda fact: (
        f"a table with a column for each of {_named(fact.texts('columns'))}, whose cells sum up episodes"
        f" ({fact.text('cell')!r}): it is not read. A row for each episode is, with the columns"
        " `policy,environment,episode,success`"
    ),
    "summary_of_file": "{successes} of {episodes:episode}, like those in {file}: the same evaluation, counted once",
    "fewer_records": "{policy} has {records:record} in {environment} and {other} has {of}; no plan says how many there"
    " should be",
    "lacks_episodes_of_others": "{policy} has {records:record} in {environment} and lacks {episodes:episode} that"
    " others have; no plan says how many there should be",
    "unlike_kinds": _unlike_kinds,
    "no_verdicts_at_all": "no row has a verdict ({field!r}): its episodes have numbers alone",
    "several_rows_per_episode": _several_rows,
    "file_set_aside": "its path is that of {file} with a folder {folder!r} more: it does not count, for nothing says"
    " whether that is a policy, an environment or an old result; a path POLICY/ENVIRONMENT counts",
    "environments_by_column": "its column {column!r} names the environments",
    "levels_guessed": _levels,
    "levels_uneven": "its path has {levels} levels and others have fewer: the last two are taken for policy and"
    " environment, {policy!r} and {environment!r}; if it is not so, the fields `policy` and `environment` or `--grid`"
    " say it",
    "one_level_of_names": _one_level,
    "names_in_doubt": _in_doubt,
    "axis_unnamed": _unnamed,
    "means_of_trials": _means,
    "runs_by_field": _runs,
    "steps_of_episodes": _steps,
    "successes_with_errors": "{episodes:episode} succeeded with {text!r} or the like in the field {field!r}: counted as"
    " the rows say",
}
