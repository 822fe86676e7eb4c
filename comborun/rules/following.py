"""A training that is followed: which checkpoints are evaluated, and what the run's plan becomes by them. Pure.

The plan of such a run has a template: sessions of the policy POLICY, whose checkpoint is PATH. They are flagged
`dropped`, so they never start. The sessions of a checkpoint are copies of them in which both words are replaced. PATH
has a `*`, so it always stands in single quotes of a script, where a path without a quote stays what it is.
"""

from __future__ import annotations

import json
import re

from comborun.rules.facts import Fact, data_of
from comborun.rules.vocabulary import Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Collection, Iterable, Mapping, Sequence

POLICY, PATH = "step_FOLLOWED", "/*FOLLOWED*"
SAFE = re.compile("[^'\"\\\\\x00-\x1f\x7f\ud800-\udfff]+")
"""a path that ends neither a single quote of a shell nor a string of JSON"""
STABLE = "STABLE"
"""in place of a marker's pattern: a checkpoint appears by a rename"""
_NAMED_STEP, _NUMBER = re.compile(r"step[-_=]?(\d{1,15})(?!\d)", re.IGNORECASE), re.compile(r"\d{1,15}")
WRITTEN_OVER = "checkpoints_written_over"
"""the code of what is said of policies whose step was written again"""
PASSED = "checkpoints_passed"
"""the code of how many were evaluated, skipped and refused"""
_NAMED = 3
"""most names of refused checkpoints of one reason"""
_DIGEST = 4
"""characters of the digest in the name of a step that was written again; more if another one has the same"""


class Decision(Word):
    """What became of a checkpoint; a row of the record holds one."""

    SEEN = "seen"
    """it appeared, and nothing is decided of it: `path`, `mark`, and `evidence` if by a rename, else in place"""
    DUE = "due"  # it is complete, and its turn has come: it is linked and read, or waits for room: `path`, `mark`
    HELD = "held"  # it is linked, and waits: `policy`, `step`, `digest`, `link`, `how`, `evidence`
    TAKEN = "taken"  # its sessions are in the plan
    SKIPPED = "skipped"  # `reason`
    REFUSED = "refused"  # `reason`
    VERIFIED = "verified"
    """it was the same after the `attempts` of its sessions; with `over`, it has been written in place since"""
    CHANGED = "changed"  # it was not, so that they do not count
    ENDED = "ended"  # the training has ended, and all of its checkpoints are decided


class Evidence(Word):
    """Why a checkpoint counts as complete."""

    MARKER = "marker"
    RENAMED = "renamed"  # it was seen to get its name by a rename
    AS_OTHERS = "as_others"
    """nobody looked when it appeared, but others of this training were renamed, and none was written in place"""


class Why(Word):
    """Why a checkpoint is not evaluated, or does not count."""

    NEWER = "checkpoint_overtaken"
    NOT_DUE = "checkpoint_not_due"
    KNOWN = "checkpoint_known"
    NO_STEP = "checkpoint_without_step"
    IN_PLACE = "checkpoint_in_place"
    UNSEEN = "checkpoint_unseen"
    GONE = "checkpoint_gone"
    REWRITTEN = "checkpoint_rewritten"
    NO_FILE = "checkpoint_no_file"
    EMPTY = "checkpoint_empty"
    FOREIGN = "checkpoint_foreign"
    ELSEWHERE = "checkpoint_elsewhere"
    NO_ROOM = "checkpoint_no_room"
    NAME = "checkpoint_name"
    DISK_FULL = "checkpoint_disk_full"  # error
    UNREADABLE = "checkpoint_unreadable"
    NO_MARKER = "checkpoint_without_marker"


class Seeing(Word):
    """What the follower sees or does now, besides its decisions."""

    NO_FOLDER = "training_without_folder"
    NOT_COMPLETE = "checkpoints_not_complete"
    READING = "checkpoint_read"
    NO_ROOM = "checkpoint_waits_for_room"  # name, reason
    DISK_FULL = "training_disk_full"  # error: nothing can be written down, so nothing is decided


def step_of(matched: str) -> int | None:
    """The step in what the `*` of a pattern has matched: a number after the word `step`, else the only number."""
    named, numbers = _NAMED_STEP.findall(matched), _NUMBER.findall(matched)
    found = named or numbers
    return int(found[0]) if len(found) == 1 else None


class Record:
    """The rows of dispatch/checkpoints.jsonl, oldest first."""

    def __init__(self, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        self.decided: set[tuple[str, str]] = set()
        """path and mark of what needs no further decision"""
        self.seen: dict[str, Mapping[str, Any]] = {}
        """path: how it appeared, as was last seen"""
        self.due: set[tuple[str, str]] = set()
        """path and mark of those whose turn it is"""
        self.checkpoints: dict[str, dict[str, Any]] = {}
        """policy: its rows as one, so `decision` is its newest"""
        self.passed: list[Mapping[str, Any]] = []
        """rows of those without a policy: refused, or skipped before they were linked"""
        self._over: set[str] = set()
        """policies whose step was written again since"""
        self.ended: Mapping[str, Any] | None = None
        self._renamed = self._in_place = False
        for row in rows:
            self.add(row)

    def add(self, row: Mapping[str, Any]) -> None:
        decision, policy, by_rename = row.get("decision"), row.get("policy"), row.get("evidence") == Evidence.RENAMED
        self._renamed |= by_rename
        self._in_place |= _code(row) == Why.IN_PLACE or (decision == Decision.SEEN and not by_rename)
        if decision == Decision.ENDED:
            self.ended = row
            return
        of = str(row.get("path", "")), str(row.get("mark", ""))
        if decision == Decision.SEEN:
            self.seen[of[0]] = row
            return
        if decision == Decision.DUE:
            self.due.add(of)
            return
        if of[1]:
            self.decided.add(of)
            self.due.discard(of)
        self._write_over(row)
        if policy:
            if row.get("over"):
                self._over.add(policy)
            self.checkpoints[policy] = {**self.checkpoints.get(policy, {}), **row}
        else:
            self.passed.append(row)

    def _write_over(self, row: Mapping[str, Any]) -> None:
        """Note the checkpoints that this row says were written again, whether that was taken or not."""
        step, path, mark = row.get("step"), row.get("path"), row.get("mark")
        if mark in (None, "", "gone") or _code(row) == Why.UNREADABLE:
            return
        own = row["reason"].text("policy") if _code(row) == Why.KNOWN else row.get("policy")
        for policy, one in self.checkpoints.items():
            other = (one.get("path") == path and one.get("mark") != mark) or (step and one.get("step") == step)
            if other and policy != own:
                self._over.add(policy)

    def having(self, *decisions: Decision) -> list[dict[str, Any]]:
        return [one for one in self.checkpoints.values() if one.get("decision") in decisions]

    @property
    def renames(self) -> bool:
        """Whether this training was seen to rename its checkpoints, and never to write one in place."""
        return self._renamed and not self._in_place

    @property
    def complete(self) -> int:
        """How many complete checkpoints were seen, whatever became of them."""
        counted = (Why.NEWER, Why.NOT_DUE, Why.NO_ROOM, Why.DISK_FULL, Why.GONE)
        skipped = (row for row in self.passed if row.get("decision") == Decision.SKIPPED)
        return len(self.checkpoints) + sum(_code(row) in counted for row in skipped)

    def policy(self, step: int, digest: str) -> tuple[str, bool]:
        """The name of a checkpoint as a policy, and whether this step is known with another content."""
        name = f"step_{step}"
        again = any(str(one.get("step")) == str(step) for one in self.checkpoints.values())
        longer = (f"{name}_{digest[:count]}" for count in range(_DIGEST, len(digest)))
        free = (one for one in longer if one not in self.checkpoints)
        return (next(free, f"{name}_{digest}") if again else name), again

    def same(self, step: int, digest: str) -> str:
        """The policy of a step with this content; empty if there is none."""
        own = str(step), digest
        alike = (name for name, one in self.checkpoints.items() if (one.get("step"), one.get("digest")) == own)
        return next(alike, "")

    @property
    def written_over(self) -> list[str]:
        """The policies whose results are of a former content of their step."""
        return [one["policy"] for one in self.having(Decision.TAKEN, Decision.VERIFIED) if one["policy"] in self._over]

    def _passed(self, decision: Decision) -> list[Mapping[str, Any]]:
        """The rows of those that still have no policy. One that was skipped gets one if it turns out to be the last."""
        taken = {(one.get("path"), one.get("mark")) for one in self.checkpoints.values()}
        rows = (row for row in self.passed if row.get("decision") == decision)
        return [row for row in rows if (row.get("path"), row.get("mark")) not in taken]

    def _refused(self) -> tuple[int, list[Any]]:
        """How many were refused that are not told as a policy's new content, and for each reason the last ones."""
        told = {*self.written_over, *(one["policy"] for one in self.having(Decision.CHANGED))}
        paths = {self.checkpoints[policy].get("path") for policy in told}
        names: dict[str, dict[str, Fact]] = {}
        for row in self._passed(Decision.REFUSED):
            if row.get("path") not in paths:
                names.setdefault(_code(row), {})[str(row.get("path", "")).rpartition("/")[2]] = row["reason"]
        said = [(list(ones), list(ones.values())[-1].as_data()) for ones in names.values()]
        found = (
            Fact("checkpoints_refused", names=ones[-_NAMED:], more=len(ones) - _NAMED, reason=why) for ones, why in said
        )
        return sum(len(ones) for ones, _ in said), data_of(found)

    def summary(self, *, over: bool, alive: bool | None, sees: Sequence[Fact] = ()) -> Fact:
        """What is known of a training. `alive`: whether it runs; None if nobody said which process it is. `sees`: what
        its follower sees and does now.
        """
        counts = {one.value: len(self.having(one)) + len(self._passed(one)) for one in Decision}
        evaluated = [one["policy"] for one in self.having(Decision.VERIFIED)]
        counts[Decision.REFUSED], refused = self._refused()
        kept = {key: count for key, count in counts.items() if count and key != Decision.ENDED}
        state = {"ended": True} if over else {} if alive is None else {"alive": alive}
        lists = {"sees": data_of(sees), "written_over": self.written_over}
        more = {key: found for key, found in lists.items() if found}
        last = evaluated[-1] if evaluated else ""
        return Fact("following", evaluated=len(evaluated), **kept, last=last, refusals=refused, **state, **more)

    def remarks(self) -> list[Fact]:
        """What a reader of the results must know."""
        refused, refusals = self._refused()
        skipped = len(self.having(Decision.SKIPPED)) + len(self._passed(Decision.SKIPPED))
        found = {
            "checkpoints_pending": self.having(Decision.TAKEN, Decision.HELD),
            "checkpoints_changed": self.having(Decision.CHANGED),
            "steps_written_again": [one for one in self.checkpoints.values() if one.get("again")],
            "checkpoints_unseen_rename": [
                one for one in self.having(Decision.VERIFIED) if one.get("evidence") == Evidence.AS_OTHERS
            ],
        }
        said = [Fact(code, policies=[one["policy"] for one in ones]) for code, ones in found.items() if ones]
        if over := self.written_over:
            said.append(Fact(WRITTEN_OVER, policies=over))
        if not (skipped or refused):
            return said
        why = {"refused": refused, "reason": refusals} if refused else {}
        return [
            *said,
            Fact(PASSED, evaluated=len(self.having(Decision.VERIFIED)), skipped=skipped or None, **why),
        ]


def _code(row: Mapping[str, Any]) -> str:
    reason = row.get("reason")
    return reason.code if isinstance(reason, Fact) else ""


# The plan


def filled(text: str, policy: str, path: str) -> str:
    """A text of the template, for a checkpoint."""
    return text.replace(PATH, path).replace(POLICY, policy)


def with_checkpoints(
    plan: dict[str, Any], taken: Iterable[Mapping[str, Any]], dropped: Collection[str]
) -> dict[str, Any]:
    """The plan, as JSON, with the sessions of checkpoints that it lacks, and without those of `dropped` policies."""
    first = plan["sessions"][0]
    sessions = [{**first, **one} for one in plan["sessions"]]
    has, template = {one["policy"] for one in sessions}, [one for one in sessions if one["policy"] == POLICY]
    steps = dict(plan.get("steps", ()))
    for one in taken:
        if one["policy"] not in has:
            sessions += [_copy(session, one) for session in template]
            steps[one["policy"]] = float(one["step"])
    flagged = [{**one, "flag": "dropped"} if one["policy"] in dropped else one for one in sessions]
    return {**plan, "sessions": flagged, "steps": [list(pair) for pair in steps.items()]}


def _copy(session: Mapping[str, Any], checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    import hashlib  # slow to load, and each look at a run loads this module

    text = filled(json.dumps(session, ensure_ascii=False), checkpoint["policy"], checkpoint["link"])
    content = f"{session['digest']} {checkpoint['digest']}"
    return {**json.loads(text), "flag": "", "digest": hashlib.sha256(content.encode()).hexdigest()}


def plan_text(plan: Mapping[str, Any]) -> str:
    """A plan as a file: a line for each session."""
    rest = json.dumps({key: value for key, value in plan.items() if key != "sessions"}, ensure_ascii=False)
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in plan["sessions"])
    return f'{rest[:-1]}, "sessions": [\n{lines}\n]}}\n'


def queue_text(
    text: str, taken: Iterable[Mapping[str, Any]], dropped: Collection[str], policies: Mapping[str, str]
) -> str:
    """queue.jsonl with the rows of checkpoints that it lacks. `policies`: the policy of each session."""
    rows = [json.loads(line) for line in text.splitlines()]
    template = [row for row in rows if POLICY in row["name"]]
    names = {row["name"] for row in rows}
    for one in taken:
        for row in template:
            copy = json.loads(filled(json.dumps(row), one["policy"], one["link"]))
            if copy["name"] not in names:
                rows.append({key: value for key, value in copy.items() if key not in ("flag", "dropped")})
    for row in rows:
        members = row.get("together") or [row["name"]]
        if all(policies.get(name) in dropped for name in members):
            row["flag"] = "dropped"
            if row.get("together"):
                row["dropped"] = members
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
