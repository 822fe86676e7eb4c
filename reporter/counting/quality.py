"""What a reader must know: faults of the data, and what else differs between policies or runs. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from operator import eq
from typing import Any

from comborun.model.attempt import Begin
from comborun.model.plan import Session
from comborun.model.work import Combo, Spans, describe, size, spans
from comborun.reporter.counting.ending import cause_words
from comborun.reporter.merge import MergedCombo
from comborun.reporter.records.collected import Collected, SessionHistory
from comborun.reporter.records.reading import Defect, Reject, RejectKind
from comborun.reporter.text import clock, combo_name
from comborun.rules.endings.evidence import Evidence
from comborun.rules.environment import difference
from comborun.rules.events import Kind
from comborun.rules.facts import Fact
from comborun.rules.following import PASSED
from comborun.rules.results.caught import BESIDE_ERRORS
from comborun.rules.results.counts import FILE_NOT_READ, WROTE_NOTHING, where_it_ran
from comborun.text import several
from comborun.words import say
from comborun.words.events import say_event, say_order
from comborun.words.rows import why_not_counted


@dataclass(frozen=True)
class DataFinding:
    """A sentence and its subject: a combo, or `file:line`."""

    where: str
    what: str


COUNTED = {
    "files": "result files",
    "records": "records read",
    "accepted": "records that count",
    "rejected": "rejected lines",
    "torn": "of them cut off",
    "foreign": "of them of another combo",
    "outside": "records outside the plan",
    "duplicated": "episodes recorded twice, alike",
    "conflicting": "episodes recorded twice, unlike",
    "replayed": "episodes run again in another attempt",
    "replays_differ": "of them with another verdict",
    "retried": "records from a later attempt",
}


@dataclass(frozen=True)
class Quality:
    counts: Mapping[str, int]
    findings: tuple[DataFinding, ...]


def quality(collected: Collected, combos: Sequence[MergedCombo], warnings: Iterable[DataFinding]) -> Quality:
    """`warnings` are about sessions; they come first."""
    kinds = Counter(reject.kind for reject in collected.rejects)
    counts = {
        "files": len(collected.files),
        "records": len(collected.records),
        "accepted": sum(len(combo.accepted) for combo in combos),
        "rejected": len(collected.rejects),
        "torn": kinds[RejectKind.TORN],
        "foreign": kinds[RejectKind.FOREIGN],
        "outside": sum(len(combo.outside) for combo in combos),
        "duplicated": sum(size(combo.duplicates) for combo in combos),
        "conflicting": sum(size(combo.conflicts) for combo in combos),
        "replayed": sum(size(combo.replays) for combo in combos),
        "replays_differ": sum(size(combo.differing) for combo in combos),
        "retried": sum(combo.retried for combo in combos),
    }
    uncounted = [*_uncounted_findings(collected.sessions)]

    def said(one: Defect) -> bool:
        return not one.line and any(one.reason in finding.what for finding in uncounted)

    return Quality(
        counts=counts,
        findings=(
            *(
                DataFinding(combo.name, combo.words)
                for combo in (collected.canary.combos if collected.canary else ())
                if combo.differs or not combo.compared
            ),
            *uncounted,
            *warnings,
            *(DataFinding("checkpoints", say(one)) for one in collected.followed if one.code != PASSED),
            *_superseded(collected),
            *(finding for history in collected.sessions for finding in _misplaced(history)),
            *(finding for combo in combos for finding in _combo_findings(combo)),
            *_grouped([one for one in collected.rejects if not said(one)], "rejected: "),
            *_grouped([one for one in collected.defects if not said(one)], ""),
        ),
    )


def _uncounted_findings(histories: Iterable[SessionHistory]) -> Iterator[DataFinding]:
    """Why rows of sessions don't count, in the host's words, with the line for `results` that counts them."""
    histories = list(histories)
    names = {kind: {getattr(history.session, kind) for history in histories} for kind in ("policy", "environment")}
    for history in histories:
        ends = [attempt.end for attempt in history.attempts if attempt.end]
        where = combo_name(history.session.policy, history.session.environment)
        if ends and all(
            end.counts.misread or any(one.code == FILE_NOT_READ for one in end.counts.facts) for end in ends
        ):
            facts = ends[-1].counts.facts
            no_wonder = not ends[-1].clean and any(fact.code == WROTE_NOTHING for fact in facts)
            why = cause_words(ends[-1]) if no_wonder else why_not_counted(where_it_ran(facts, names))
            yield DataFinding(where, why)
            continue
        beside = (fact for end in ends for fact in end.counts.facts if fact.code == BESIDE_ERRORS)
        yield from (DataFinding(where, say(fact)) for fact in beside)


def _superseded(collected: Collected) -> Iterator[DataFinding]:
    if collected.plan and collected.plan.follow:
        return  # there the checkpoint has changed, as `followed` tells
    for session in (one.session for one in collected.aside if one.attempts and one.session.flag == "dropped"):
        where = combo_name(session.policy, session.environment)
        why = "was superseded when the grid changed: none of its records counts"
        yield DataFinding(where, f"the session {session.name} {why}")


def _misplaced(history: SessionHistory) -> Iterator[DataFinding]:
    """Memory of a session on a GPU that it was not granted: it may have slowed others down."""
    where = combo_name(history.session.policy, history.session.environment)
    for attempt in history.attempts:
        for fact in attempt.end.facts if attempt.end else ():
            if fact.code == Evidence.WRONG_GPU:
                yield DataFinding(where, f"attempt {attempt.number} of {history.session.name}: {say(fact)}")


def _combo_findings(combo: MergedCombo) -> Iterator[DataFinding]:
    where = combo_name(combo.policy, combo.environment)
    if combo.missing and combo.planned is not None:
        yield DataFinding(where, f"{_episodes(combo.missing)} missing")
    elif combo.missing:
        yield DataFinding(
            where, f"no record of {_episodes(combo.missing)}, between the first and the last that there are"
        )
    if combo.outside:
        indices = spans(record.episode for record in combo.outside)
        yield DataFinding(where, f"{_episodes(indices)} not in the plan: kept out")
    if combo.conflicts:
        yield DataFinding(
            where,
            f"{_episodes(combo.conflicts)} recorded more than once in one attempt, and differently:"
            " the first with a verdict counts",
        )
    if combo.duplicates:
        yield DataFinding(
            where, f"{_episodes(combo.duplicates)} recorded more than once in one attempt, always the same"
        )
    if combo.differing:
        yield DataFinding(
            where,
            f"non-deterministic replays: {size(combo.differing)} of {size(combo.replays)} episodes that ran in"
            f" more than one attempt went differently ({describe(combo.differing)}); the lowest attempt counts",
        )
    elif combo.replays:
        yield DataFinding(where, f"{_episodes(combo.replays)} ran in more than one attempt, with the same verdicts")


def _episodes(indices: Spans) -> str:
    count = size(indices)
    return f"{several(count, 'episode')} ({describe(indices)})"


def _grouped(found: Sequence[Reject] | Sequence[Defect], prefix: str) -> Iterator[DataFinding]:
    """One finding per file and reason, with the lines as ranges."""
    lines: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for entry in found:
        lines[entry.path, entry.reason].append(entry.line)
    for (path, reason), numbers in lines.items():
        where = spans(number for number in numbers if number)
        count = f" ({len(numbers)} times)" if len(numbers) > 1 else ""
        yield DataFinding(f"{path}:{describe(where)}" if where else path, f"{prefix}{reason}{count}")


NAMED = 4
"""most policies that a sentence names with their values"""
LONG = 60
SHORT = 12


def differences(collected: Collected, seeds: Mapping[Combo, Mapping[int, object]]) -> Iterator[str]:
    """Sentences about different conditions. `seeds`: by episode, as recorded."""
    attempts = [
        (history.session.policy, attempt.begin)
        for history in collected.sessions
        if history.session.unit == "episode"
        for attempt in history.attempts
        if attempt.begin
    ]
    hosts = ((policy, begin.host) for policy, begin in attempts)
    cards = ((policy, begin.gpu_models or _cards(begin, collected.provenance)) for policy, begin in attempts)
    drivers = ((policy, begin.driver) for policy, begin in attempts)
    code = _code_of_policies(collected)
    for what, found in (("hosts", hosts), ("GPU models", cards), ("GPU drivers", drivers), ("code", code)):
        yield from _unlike(found, what)
    sessions = [one.session for one in collected.sessions if one.session.unit == "episode"]
    seeds_given = ((one.policy, str(one.seed)) for one in sessions if one.seed is not None)
    yield from _unlike(seeds_given, "seeds of the plan")
    yield from _other_environments(collected)
    yield from _retuned(collected)
    yield from [f"{say(collected.moved)}."] if collected.moved else []
    passed = (say(one) for one in collected.followed if one.code == PASSED)
    yield from (f"{said[:1].upper()}{said[1:]}." for said in passed)
    yield from _other_seeds(collected, seeds)
    yield from _same_files(collected.provenance)
    yield from _uncommitted(collected.provenance, "the run")


def _retuned(collected: Collected) -> Iterator[str]:
    """What a person changed while the run went on or later, and which GPUs it lost."""
    ends = [attempt.end.ended for one in collected.sessions for attempt in one.attempts if attempt.end]
    last = max(ends, default=None) if collected.done else None
    for event, state in collected.retuned:
        said = say_order(event) if event.kind == Kind.ORDERED else say_event(event)
        ran = "While it ran" if last is None or event.at <= last else "After its last session"
        yield f"{f'While it was {state}' if state else ran}, at {clock(event.at)}: {said}."


def _other_environments(collected: Collected) -> Iterator[str]:
    """How many sessions had other variables than the first launch, and which."""
    started = [attempt.begin for one in collected.sessions for attempt in one.attempts[-1:] if attempt.begin]
    first, *others = collected.environments or ({},)
    for row, variables in enumerate(others, 2):
        count = sum(begin.environment == row for begin in started)
        if count and (differs := difference(first, variables)):
            yield f"{say(Fact(differs.code, **differs.fields, sessions=count))}."


def _other_seeds(collected: Collected, seeds: Mapping[Combo, Mapping[int, object]]) -> Iterator[str]:
    """Combos whose records have another seed than the plan gave: neither S nor S + episode."""
    found: list[str] = []
    for combo, histories in collected.by_combo.items():
        recorded = seeds.get(combo, {})
        wrong = next((one for session in histories for one in _not_given(session.session, recorded)), None)
        if wrong is not None:
            found.append(f"{combo_name(*combo)}, episode {wrong} has the seed {recorded[wrong]}")
    if found:
        planned = several(len(found), "combo")
        yield f"The records of {planned} hold other seeds than the plan gave their program: {found[0]}."


def _not_given(session: Session, recorded: Mapping[int, object]) -> Iterator[int]:
    seed, base, planned = session.seed, session.results.base, session.episodes
    if session.unit != "episode" or seed is None:
        return
    if all(map(eq, map(recorded.get, planned), count(seed + planned.start, planned.step))):
        return
    for episode in planned if session.count <= len(recorded) else recorded:
        own = recorded.get(episode, seed)
        other = own - seed if isinstance(own, int) else None
        if other and other not in (episode, episode - base) and episode in planned:
            yield episode


# -- two runs ---------------------------------------------------------------------------------------------------------

_OF_RUNS = {
    "host.hostname": "host",
    "host.cards": "GPU models",
    "host.driver": "GPU driver",
    "commit": "commit of the grid",
}


def between_runs(before: Collected, after: Collected) -> Iterator[str]:
    """Differences in the provenance of two runs, apart from their policies."""
    for run in (before, after):
        yield from _uncommitted(run.provenance, run.name)
    first, second = _versions(before), _versions(after)
    for what, then in first.items():
        now = second.get(what, "")
        if then and now and then != now:
            yield f"Not the same in both runs: the {what} ({then[:LONG]} before, {now[:LONG]} after)."


def _versions(run: Collected) -> dict[str, str]:
    """What a run was made with: its host, commits of folders, and digests of shipped files and of checkpoints."""
    folders = _entries(run.provenance, "code", "commit", "folder")
    shipped = _entries(run.provenance, "sync", "sha256", "from")
    origin, checkpoints = run.origin, sorted(_checkpoints(run.provenance).items())
    return {
        **{words: origin.get(name, "") for name, words in _OF_RUNS.items()},
        "code on the host": ", ".join(f"{one['commit'][:SHORT]} in {one['folder']}" for one in folders),
        "files that were shipped": ", ".join(f"{one['sha256'][:SHORT]} of {one['from']}" for one in shipped),
        **{f"checkpoint of {policy}": digest for policy, digest in checkpoints},
    }


def _uncommitted(provenance: Mapping[str, Any], run: str) -> Iterator[str]:
    changed = {
        "the grid's folder": provenance.get("uncommitted") is True,
        "files that were shipped": any(entry.get("uncommitted") is True for entry in _entries(provenance, "sync")),
        "the folder on the host": any(entry.get("uncommitted") is True for entry in _entries(provenance, "code")),
    }
    if any(changed.values()):
        code = " and ".join(where for where, found in changed.items() if found)
        yield f"The code is not that of a commit: {code} had uncommitted changes when {run} was launched."


def _entries(provenance: Mapping[str, Any], name: str, *texts: str) -> list[dict[str, Any]]:
    """The entries of a list, with these texts; empty if the manifest has another form."""
    found = provenance.get(name)
    entries = [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []
    return [entry for entry in entries if all(isinstance(entry.get(key), str) for key in texts)]


def _checkpoints(provenance: Mapping[str, Any]) -> dict[str, str]:
    """By policy, the digest of both ends of its checkpoint."""
    found = provenance.get("checkpoints")
    files = found.items() if isinstance(found, dict) else ()
    digests = {policy: file.get("sha256_of_ends") for policy, file in files if isinstance(file, dict)}
    return {policy: digest for policy, digest in digests.items() if isinstance(digest, str) and digest}


def _code_of_policies(collected: Collected) -> Iterator[tuple[str, str]]:
    """The commit of each policy's folder, if it is its own repository."""
    folders = _entries(collected.provenance, "code", "commit", "folder")
    for history in collected.sessions:
        workdir = (history.session.workdir or "").removeprefix("~")
        for entry in folders:
            if workdir and entry["folder"].endswith(workdir):
                changed = " with uncommitted changes" if entry.get("uncommitted") else ""
                yield history.session.policy, f"{entry['commit'][:SHORT]}{changed}"


def _same_files(provenance: Mapping[str, Any]) -> Iterator[str]:
    owners: defaultdict[str, list[str]] = defaultdict(list)
    for policy, digest in _checkpoints(provenance).items():
        owners[digest].append(policy)
    for policies in owners.values():
        if len(policies) > 1:
            yield f"{', '.join(policies[:NAMED])} have the same checkpoint, as far as its first and last MiB tell."


def _cards(begin: Begin, provenance: Mapping[str, Any]) -> str:
    """The models of the GPUs that an attempt had, by their indexes."""
    granted = {gpu.strip() for gpu in begin.gpus.split(",")}
    try:
        models = provenance["host"]["cards"]
        if isinstance(models, dict):  # of several hosts, which differ
            return ""
        cards = zip(provenance["host"]["gpus"], models, strict=False)
        return ", ".join(sorted({str(card) for index, card in cards if str(index) in granted}))
    except (TypeError, KeyError, IndexError):
        return ""


def _unlike(found: Iterable[tuple[str, str]], what: str) -> Iterator[str]:
    """`found`: the policy and what it had, if that is known."""
    values: defaultdict[str, set[str]] = defaultdict(set)
    for policy, value in found:
        if value:
            values[policy].add(value)
    if len({frozenset(some) for some in values.values()}) < 2:
        return
    who = "; ".join(f"{policy} on {', '.join(sorted(some))}" for policy, some in values.items())
    named = f": {who}" if len(values) <= NAMED else ""
    yield f"Policies did not run on the same {what}{named}. A difference between them may come from that."
