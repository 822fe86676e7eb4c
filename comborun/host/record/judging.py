"""Judges an attempt by its files: its counts, and how complete it is.

Result files are read as the report reads them (rules/results/formats.py). While an attempt runs, only new bytes are
read; at its end each file is read from the beginning.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from functools import lru_cache

from comborun.host.record import curves_file
from comborun.host.record.log_evidence import LogLine, LogSteps
from comborun.host.system import files
from comborun.host.system.files import Json
from comborun.rules import counting, globs, records
from comborun.rules.endings import signatures
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.facts import Fact
from comborun.rules.names import AttemptLayout
from comborun.rules.results import tally, videos
from comborun.rules.results.caught import BESIDE_ERRORS
from comborun.rules.results.counts import COUNTING_FAILED, PLANNED, Counts, RequiredEvidence, completeness
from comborun.rules.results.fields import LOG, NO_VERDICTS, TEXT_MOST, Identity, ResultRules, unreadable
from comborun.rules.results.proposals import seed
from comborun.rules.results.result_files import Folder
from comborun.rules.results.unread import name_unread, unread
from comborun.rules.vocabulary import Completeness

FILES_THEN = "files_then"
"""patterns of evidence that found a file before the first signal"""
READ_FILES_MOST = 2000
"""most files that are read for one question"""
_LOG_MOST = 1 << 20
"""last bytes of a log in which errors are looked for beside failures"""


class Rules:
    """The rules for judging an attempt: the key `judging` of its session.json and of its claim."""

    __slots__ = (
        *("any_files", "count", "environment", "evidence_files", "first", "line", "policy", "ranged", "records"),
        *("results", "steps", "unit"),
    )

    def __init__(self, judging: object, first: int, count: int) -> None:
        data: Json = judging if isinstance(judging, dict) else {}
        evidence = data.get("evidence")
        evidence = evidence if isinstance(evidence, dict) else {}
        self.first, self.count = first, count
        self.policy, self.environment = str(data.get("policy", "")), str(data.get("environment", ""))
        self.unit, self.ranged = str(data.get("unit", "episode")), data.get("ranged") is True
        self.results = ResultRules.of(data.get("results", {"files": []}))
        self.records = self.results.has_records and evidence.get("records", True) is not False
        """whether each planned episode needs a record"""
        self.any_files = evidence.get("any_files") is True
        """whether result files must exist, even if their content is not counted"""
        self.line = str(evidence.get("line", "")).replace(PLANNED, str(count))
        self.steps = str(evidence.get("steps", ""))
        """pattern of log lines that count steps: they must reach the number of steps"""
        listed = evidence.get("files")
        self.evidence_files = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []

    @classmethod
    def of(cls, claim: Json) -> Rules:
        first, count = records.integer(claim, "first") or 0, records.integer(claim, "count") or 0
        return cls(claim.get(records.JUDGING), max(0, first), max(0, count))

    def fields(self) -> list[tuple[str, object]]:
        """The fields of a claim."""
        evidence = {"records": self.records, "any_files": self.any_files, "line": self.line}
        evidence.update({"steps": self.steps} if self.steps else {})
        judging = {key: getattr(self, key) for key in ("policy", "environment", "unit", "ranged")}
        judging.update(results=self.results.as_data(), evidence={**evidence, "files": self.evidence_files})
        return [("first", self.first), ("count", self.count), (records.JUDGING, judging)]

    @property
    def span(self) -> tuple[int, int]:
        """Its first episode, and how many."""
        return self.first, self.count

    @property
    def identity(self) -> Identity:
        return Identity(self.policy, self.environment, self.results, self.count)

    @property
    def required(self) -> RequiredEvidence:
        others = len(self.evidence_files) + bool(self.line) + bool(self.steps)
        verdicts = self.unit == "episode" and self.results.success.word != NO_VERDICTS
        # A training prints one line for many steps, so its rows are fewer, and prove nothing.
        each = self.records and not (self.unit != "episode" and (self.steps or self.results.source == LOG))
        return RequiredEvidence(self.count, each, others, self.any_files, verdicts)


@lru_cache(maxsize=1)
def _rules_in(claim: str) -> Rules:
    return Rules.of(records.parse(claim))


def rules_of(at: AttemptLayout) -> Rules:
    """The rules of an attempt, by its claim."""
    return _rules_in(files.read_text(at.claim))


def note_signal(at: AttemptLayout) -> None:
    """Write down how long the log was, and which files of evidence were there, before the first signal that was to end
    the command."""
    if not os.path.exists(at.signalled):
        there = held_files(at, rules_of(at).evidence_files)
        files.write(at.signalled, [("signalled", files.size(at.log)), (FILES_THEN, there)])


def held_files(at: AttemptLayout, patterns_of_files: list[str]) -> list[str]:
    """The patterns that find a file that is not empty."""
    found = ((glob, globs.found(at.output, [glob])) for glob in patterns_of_files)
    return [glob for glob, paths in found if any(files.size(f"{at.output}/{path}") for path in paths)]


def signalled(at: AttemptLayout) -> Json:
    """What was there then; without `signalled`, the size of the log, nobody told the command to end."""
    return files.read(at.signalled) or files.read(at.end)


class Watched:
    def __init__(self, at: AttemptLayout, rules: Rules) -> None:
        self.at = at
        self._told = ""
        self._claimed = files.changed(at.claim)
        self._judge_by(rules)

    def _judge_by(self, rules: Rules) -> None:
        self.rules = rules
        self.in_log: dict[str, LogLine] = {"line": LogLine(rules.line)} if rules.line else {}
        self.in_log.update({"steps": LogSteps(rules.steps, rules.count)} if rules.steps else {})
        self.lacks: Fact | None = None
        """the evidence besides records that did not hold at the last look"""
        self.folder = Folder.of_attempt(self.at, rules.identity)
        self._unread: Fact | None = None
        self._began, self._search_after = time.monotonic(), 0.0
        self._curves = None if rules.unit == "episode" else curves_file.LiveCurves(self.at)

    def follow(self) -> bool:
        """Take over the rules of a changed grid. Returns whether there are any."""
        before, self._claimed = self._claimed, files.changed(self.at.claim)
        if before == self._claimed:
            return False
        self._judge_by(rules_of(self.at))
        return True

    def look(self) -> Counts:
        """The counts now, also kept in a file for the probe."""
        counts = self.count()
        if self.rules.results.files and not self.folder.found:
            found = self._not_read()
            counts.facts = (found,) if found else ()
        counts.trained = self._curves.look() if self._curves else None
        text = records.render(counts.pairs())
        if text != self._told and files.write_text(self.at.counts, text):
            self._told = text
        return counts

    def _not_read(self) -> Fact | None:
        """Results that the grid does not read. The search is repeated each time the run is twice as old."""
        now = time.monotonic()
        if now >= self._search_after:
            self._search_after = now + max(now - self._began, 1.0)
            try:
                self._unread = unread(self.folder, self.rules.span)
            except Exception:  # noqa: BLE001 - it is only advice
                self._unread = None
        return self._unread

    def count(self, over: bool = False) -> Counts:
        """The counts; if counting itself fails, none, and why."""
        try:
            read = self.folder.read(over)
            if self.rules.unit != "episode":
                return tally.steps(read)
            return tally.tally(read, self.rules.identity, self.rules.span, over)
        except (OSError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001
            return uncounted(error)

    def complete(self) -> bool:
        """Whether all evidence exists, without regard to the exit code."""
        return self.completeness(self.count(), None) is Completeness.COMPLETE

    def completeness(self, counts: Counts, code: int | None) -> Completeness:
        required, told = self.rules.required, signalled(self.at)
        there = held_files(self.at, self.rules.evidence_files)
        if FILES_THEN in told and not (required.records and counts.countable and required.planned):
            there = [glob for glob in there if glob in records.texts(told, FILES_THEN)]  # later ones prove nothing
        size = records.integer(told, "signalled")  # nor do later lines
        absent = [glob for glob in self.rules.evidence_files if glob not in there]
        unseen = [name for name, one in self.in_log.items() if not one.look(self.at.log, size)]
        lacking = {"line": self.rules.line, "steps": True, "files": absent}
        shown = {name: value for name, value in lacking.items() if name in unseen or (name == "files" and absent)}
        self.lacks = fact(Evidence.LACKS, **shown) if shown else None
        held = required.others - len(absent) - len(unseen)
        return completeness(required, counts, held, self.folder.found, code)


def uncounted(error: Exception) -> Counts:
    counts = Counts()
    counts.facts = (Fact(COUNTING_FAILED, error=str(unreadable(error).fact.text("error"))),)
    return counts


class Judged:
    def __init__(
        self,
        counts: Counts,
        completeness: Completeness,
        lacks: Fact | None = None,
        sources: Mapping[str, float] | None = None,
    ) -> None:
        self.counts = counts
        self.completeness = completeness
        self.lacks = lacks
        """the evidence besides records that does not hold"""
        self.sources = sources or {}
        """its files of records that count, and when each last changed"""
        self.last: float | None = None
        """of a session of a process: when its last record was written; None if its files hold records of others, too"""
        self.members: dict[str, Judged] = {}
        """of a process: its sessions"""
        self.now = completeness
        """how complete this start of a process is; `completeness` looks at all of its starts"""

    def as_data(self) -> Json:
        now = {"completeness": self.completeness.value, "now": self.now.value, "last": self.last}
        members = {name: one.as_data() for name, one in self.members.items()}
        return {"counts": records.render(self.counts.pairs()), **now, "members": members}

    @classmethod
    def of(cls, data: Json) -> Judged:
        judged = cls(Counts.of(records.parse(data["counts"])), Completeness(data["completeness"]))
        judged.now, judged.last = Completeness(data["now"]), data["last"]
        judged.members = {name: cls.of(one) for name, one in data["members"].items()}
        return judged


def judge(at: AttemptLayout, code: int | None) -> Judged:
    """Judge by the rules of the claim, and list the videos. `code` is None if it is unknown or proves nothing."""
    rules = rules_of(at)
    list_videos(at, rules)
    if rules.unit == "episode":
        return judged(at, rules, code)
    in_time = curves_file.keep_within(curves_file.AT_END_S, at)
    found = judged(at, rules, code)
    found.counts.trained = curves_file.told(found.counts.trained, in_time, curves_file.AT_END_S)
    return found


def judged(at: AttemptLayout, rules: Rules, code: int | None) -> Judged:
    """Judge by these rules; writes nothing. If that fails, nothing is proven, and the counts say why."""
    try:
        watched = Watched(at, rules)
        counted = watched.count(over=True)
        with contextlib.suppress(LookupError, ValueError, TypeError, AttributeError):  # it is only advice
            name_unread(counted, watched.folder, rules.span, at.log)
            counted.facts += _beside_errors(counted, at, rules)
        if rules.unit != "episode":
            counted.trained = curves_file.trained(at)
        return Judged(counted, watched.completeness(counted, code), watched.lacks, watched.folder.counted)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001
        return Judged(uncounted(error), Completeness.NONE)


def _beside_errors(counts: Counts, at: AttemptLayout, rules: Rules) -> tuple[Fact, ...]:
    """What the log says of failures that are in files: an episode out of memory is no failure of its policy."""
    if not counts.failures or rules.results.source == LOG:
        return ()
    data, _ = files.tail(at.log, _LOG_MOST)
    found, line = signatures.beside(counting.with_line_ends(data).decode("utf-8", "replace"))
    return (Fact(BESIDE_ERRORS, episodes=counts.failures, lines=found, line=line[:TEXT_MOST]),) if found else ()


def samples(at: AttemptLayout, rules: Rules) -> list[Json]:
    """Some of its rows; none if they can't be read."""
    try:
        return Watched(at, rules).folder.read().samples
    except Exception:  # noqa: BLE001 - they are only for advice
        return []


def seed_keys(rows: list[Json], rules: Rules) -> dict[str, str]:
    """For `results`: the field with the seed of an episode, if the rows count and give it another name."""
    try:
        return seed(rows, rules.identity) if rows else {}
    except Exception:  # noqa: BLE001 - without it the report looks for itself
        return {}


def list_videos(at: AttemptLayout, rules: Rules, naming: str = "") -> None:
    """Write videos.tsv, complete or absent. Videos stay where they are. `naming`: only those whose path holds this."""
    if not rules.results.videos:
        return
    rows = []
    for path in globs.found(at.output, rules.results.videos):
        if naming not in path:
            continue
        try:
            with open(f"{at.output}/{path}", "rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                rows.append((size, videos.fault(path, stream, size), f"{os.path.basename(at.output)}/{path}"))
        except (OSError, LookupError, ValueError, TypeError):  # of a file that is none
            continue
    files.write_text(at.videos, videos.render(rows))
