"""The end record of an attempt: what is in it, and how it is written.

Disk space for it is reserved at the start, so that it can be written on a full disk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from comborun.host.record.judging import FILES_THEN, READ_FILES_MOST, Judged, Rules, rules_of, signalled
from comborun.host.system import files
from comborun.rules import globs, records
from comborun.rules.endings.failures import failure_of
from comborun.rules.facts import Fact
from comborun.rules.names import AttemptLayout
from comborun.rules.results.fields import LOG
from comborun.rules.results.result_files import fingerprint
from comborun.rules.vocabulary import Cause, Completeness, cause_of, outcome

DONE = "done"
"""of the end of a process: how many of its sessions this start completed"""


class Ending:
    """How an attempt ended, as seen by its supervisor or by whoever found it lost. Times are seconds since 1970."""

    def __init__(
        self,
        cause: str,
        reason: Fact | str | None = None,
        code: int | None = None,
        started: float | None = None,
        ended: float = 0.0,
    ) -> None:
        """`reason`: a fact, or the note of a record of the former version."""
        self.cause = cause
        self.note = reason if isinstance(reason, str) else ""
        self.facts = [reason] if isinstance(reason, Fact) else []
        self.code = code
        self.started = started
        self.ended = ended
        self.signature = ""
        """the class of failure that its log shows, or empty"""
        self.timed = True
        """False: a session of a process, whose times are those of the process, since its own are not known"""
        self.peak_memory_kib = 0

    @property
    def signal(self) -> int | None:
        return signal_of(self.code)

    def add(self, fact: Fact | None) -> None:
        """Add what is known, once."""
        if fact and fact not in self.facts:
            self.facts.append(fact)


def reserve(at: AttemptLayout) -> bool:
    """Reserve room for the end: one byte takes a whole block."""
    draft = f"{at.directory}/.end"
    return files.size(draft) > 0 or files.append(draft, "\n")


def write_end(at: AttemptLayout, ending: Ending, judged: Judged, reserved: bool = True) -> bool:
    """Write the end record; False if it can't be written, or another end came first.

    `reserved`: write into the reserved room; only for the attempt's own supervisor, or the holder of its lock.
    """
    claim, rules = files.read(at.claim), rules_of(at)
    draft = f"{at.directory}/.end" if reserved else files.draft(at.end)
    fields = end_fields(at, ending, judged, claim, rules)
    short = [pair for pair in fields if pair[0] not in ("marks", records.FACTS, "refused")]
    if not (files.overwrite(draft, records.render(fields)) or files.overwrite(draft, records.render(short))):
        files.remove(*([] if reserved else [draft]))
        return False
    _to_disk([*_evidence(at, rules), at.claim, draft])  # no end without its evidence after a power loss
    if not _publish(at, draft, claim.get("nonce", "")):
        return False
    files.remove(at.counts, at.follows)
    return True


def _evidence(at: AttemptLayout, rules: Rules) -> list[str]:
    """The files by which an end is judged."""
    found = [f"{at.output}/{path}" for path in globs.found(at.output, [*rules.results.files, *rules.evidence_files])]
    return [*found, at.log] if rules.line or rules.steps or rules.results.source == LOG else found


def _to_disk(paths: list[str]) -> None:
    """Sync files to the disk, with the folders that name them, as far as possible."""
    if len(paths) > READ_FILES_MOST:
        os.sync()
        return
    for path in [*paths, *sorted({os.path.dirname(path) for path in paths})]:
        try:
            files.sync(path)
        except OSError:
            continue


def end_fields(
    at: AttemptLayout, ending: Ending, judged: Judged, claim: Mapping[str, str], rules: Rules
) -> list[tuple[str, object]]:
    cause = cause_of({"cause": ending.cause})
    counts = dict(judged.counts.pairs())
    fields: list[tuple[str, object]] = [
        ("attempt", int(at.directory.rpartition("-")[2])),
        ("started", _moment(ending.started)),
        ("ended", _moment(ending.ended or time.time())),
        ("code", ending.code),
        ("signal", ending.signal),
        ("cause", ending.cause),
        *outcome_fields(judged.completeness, cause, ending.code, ending.signature).items(),
        ("records", counts.pop("records")),
        ("successes", counts.pop("successes")),
        ("peak_memory_kib", ending.peak_memory_kib or None),
    ]
    fields += [] if ending.timed else [(records.UNTIMED, 1)]
    by_itself = ending.cause == "exited" and ending.code == 0 and judged.completeness is not Completeness.COMPLETE
    facts = [*ending.facts, *([judged.lacks] if judged.lacks and by_itself else [])]
    fields += [(records.ENDING, facts)] if facts else []
    fields += [("note", records.clean(ending.note))] if ending.note else []
    fields += counts.items()
    if judged.members:
        done = sum(one.completeness is Completeness.COMPLETE for one in judged.members.values())
        fields.append((DONE, done))
    told = signalled(at)
    fields += [("signalled", records.integer(told, "signalled"))] if "signalled" in told else []
    fields += [(FILES_THEN, list(records.texts(told, FILES_THEN)))] if FILES_THEN in told else []
    if rules.results.files:
        fields.append(("results", fingerprint(at.output, rules.results.files)))
    return fields + [(key, claim[key]) for key in ("nonce", "job", "node") if claim.get(key)]


def outcome_fields(found: Completeness, cause: Cause, code: int | None, signature: str) -> dict[str, str]:
    """The fields of an end that follow from how complete it is. `signature`: the class that its log shows, or empty."""
    failure = failure_of(found, cause, code, signal_of(code))
    named = (signature or failure.value) if failure else ""
    return {"class": named, "completeness": found.value, "outcome": outcome(found, cause).value}


def signal_of(code: int | None) -> int | None:
    """The signal that ended a command, by its exit code."""
    return code - 128 if code is not None and 128 < code <= 192 else None


def _moment(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)


def _publish(at: AttemptLayout, draft: str, nonce: str) -> bool:
    """Rename the draft. If two nodes write an end, the first counts; one of another start is set aside."""
    try:
        if not nonce:
            os.replace(draft, at.end)
            return True
        there = files.read(at.end)
        if there and there.get("nonce", "") != nonce:
            os.replace(at.end, f"{at.directory}/end-of-another.{os.getpid()}")
        os.link(draft, at.end)
    except OSError:
        return False
    finally:
        if nonce:
            files.remove(draft)
    return True
