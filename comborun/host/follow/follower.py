"""`follow RUN`: follows the training of a run to its end. The run's dispatcher starts it, and it dies with it.

It alone writes dispatch/checkpoints.jsonl. Everything follows from that record and the files, so it may be killed at
any line: a link without a row is removed, and a checkpoint that is taken but not in the plan gets there.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator
from functools import partial

from comborun.host.follow import checkpoints
from comborun.host.follow.appearing import Appearing, Pattern
from comborun.host.follow.checkpoints import FlawedError, Reading, Seen, mark_of, numbers_of, remove
from comborun.host.follow.sessions import Sessions
from comborun.host.record import training
from comborun.host.record.events import Events
from comborun.host.record.run_directory import RunDirectory
from comborun.host.system import files, process
from comborun.host.system.files import Json
from comborun.host.verb_errors import Refusal
from comborun.rules import records
from comborun.rules.events import Kind
from comborun.rules.facts import Fact, data_of
from comborun.rules.following import STABLE, Decision, Evidence, Seeing, Why, step_of
from comborun.rules.names import RunLayout

_LOOK_S = 2.0
"""seconds between two looks; a rename is heard at once"""
_LONG_S = 1.0
"""a reading that takes longer is told"""
_ANY = "any"
"""the mark of a path that is no checkpoint, whatever is there"""


def main(arguments: list[str]) -> int:
    run = RunDirectory(os.path.realpath(arguments[0]))
    process.end_with_parent(yes=True)
    process.set_name()
    if os.getppid() == 1 or files.lock(run.layout.follow_lock) < 0:
        return 75
    os.nice(5)
    try:
        Follower(run.layout).follow()
    except (OSError, Refusal) as error:
        sys.stderr.write(f"follow: {error}\n")
        return 73
    return 0


class Candidate:
    """A complete checkpoint that is not decided yet."""

    def __init__(self, seen: Seen, step: int, evidence: Evidence) -> None:
        self.seen, self.step, self.evidence = seen, step, evidence
        self.of = seen.path, seen.mark


class Follower:
    def __init__(self, layout: RunLayout) -> None:
        self._layout = layout
        self._events = Events(layout)
        self._record = training.record(layout)
        self._sessions = Sessions(layout)
        self._rule: Json = self._sessions.plan()["follow"]
        self._pattern = Pattern(self._rule["pattern"])
        self._appearing = Appearing(self._pattern)
        self._training = training.of_run(layout)
        self._before: dict[str, str] | None = None
        """the marks of what was there before anybody watched"""
        self._reading: Reading | None = None
        """the one checkpoint that is read now"""
        self._waits: dict[tuple[str, str], Fact] = {}
        """path and mark of the newest one that is due, if the disk has no room for it, and why"""
        self._unclear: list[str] = []
        """paths of checkpoints that may not be complete"""
        self._full: Fact | None = None
        """why the last round was not carried through"""
        self._told = ""
        """what `_tell` wrote last"""
        for path, row in self._record.seen.items():
            name = self._pattern.name(path)
            if name:
                self._appearing.recall(name, row["mark"], renamed=row.get("evidence") == Evidence.RENAMED)

    def follow(self) -> None:
        self._tidy()
        put = over = False
        while not over:
            try:
                if not put:
                    self._sessions.put(self._record)
                put, over = True, self._round()
            except (OSError, Refusal) as error:
                said = files.no_room(error)
                if not said:
                    raise
                put, self._full = False, Fact(Seeing.DISK_FULL, error=said)
                self._tell()
            if not over:
                self._wait()

    def _round(self) -> bool:
        """Decide what can be decided now. Whether that was the last round. It may end by an error at any line."""
        ended = not training.lives(self._training)
        self._watch_folder()
        self._finish()
        self._verify()
        if self._reading is None:
            self._look(last=ended)
        self._release()
        self._full = None
        self._tell()
        done = self._reading is None and not self._record.having(Decision.HELD) and self._all_verified()
        if ended and done:
            self._write(Decision.ENDED, training=training.named(self._training))
        return ended and done

    def _wait(self) -> None:
        fds = [fd for fd in (self._appearing.fd, self._reading.fd if self._reading else -1) if fd >= 0]
        select.select(fds, [], [], process.setting("COMBORUN_FOLLOW_S", _LOOK_S))

    def _finish(self) -> None:
        """Go on with what was read, if it was read to its end."""
        reading = self._reading
        if reading is None or not select.select([reading.fd], [], [], 0)[0]:
            return
        reading.finish()
        self._reading = None
        reading.then(reading)

    def _tell(self) -> None:
        """Write down what the record does not hold: what the follower sees and does now."""
        folder, seen = self._pattern.folder, []
        if not os.access(folder, os.R_OK | os.X_OK):
            seen.append(Fact(Seeing.NO_FOLDER, path=folder))
        for (path, _), why in self._waits.items():
            seen.append(Fact(Seeing.NO_ROOM, name=os.path.basename(path), reason=why.as_data()))
        if self._full:
            seen.append(self._full)
        if self._unclear:
            seen.append(Fact(Seeing.NOT_COMPLETE, count=len(self._unclear), name=self._pattern.name(self._unclear[-1])))
        if self._reading and time.monotonic() - self._reading.began > _LONG_S:
            name = os.path.basename(self._reading.path)
            seen.append(Fact(Seeing.READING, name=name, read=self._reading.read, size=self._reading.size))
        text, own = records.render({**process.identity(), records.FACTS: data_of(seen)}.items()), self._layout.follower
        if text != self._told and (files.write_text(own, text) or files.overwrite(own, text)):
            self._told = text

    def _tidy(self) -> None:
        """Remove links that no row names, left by a killed follower, and those of overtaken checkpoints."""
        for name in files.entries(self._layout.kept):
            known = self._record.checkpoints.get(name)
            if not known or known["decision"] == Decision.SKIPPED:
                remove(f"{self._layout.kept}/{name}")

    def _write(self, decision: Decision, **fields: object) -> None:
        """Add a decision, which is an event, too. Raises OSError."""
        self._note(decision, **fields)
        told = {key: fields[key] for key in ("policy", "path", "reason", "again") if key in fields}
        self._events.write(Kind.CHECKPOINT, "", 0, decision=decision, **told)

    def _note(self, decision: Decision, **fields: object) -> None:
        """Add a row, on the disk when this returns. Raises OSError if there is no room for it."""
        row = {"at": f"{time.time():.3f}", "decision": decision, **fields}
        torn = files.tail(self._layout.checkpoints, 1)[0] not in (b"", b"\n")
        files.add(self._layout.checkpoints, "\n" * torn + records.render(row.items()))
        files.sync(self._layout.checkpoints)
        files.sync(self._layout.dispatch)
        self._record.add(records.parse(records.render(row.items())))

    def _skip(self, of: tuple[str, str], why: Fact) -> None:
        self._write(Decision.SKIPPED, path=of[0], mark=of[1], reason=why)

    # What appears

    def _write_heard(self) -> None:
        """Hear how names appeared, and write it down for a follower that takes over from this one."""
        self._appearing.hear()
        for name in sorted(self._appearing.told):
            if self._rule["done"] == STABLE:
                self._saw(self._pattern.path(name), self._appearing.renamed.get(name, ""))
            self._appearing.told.discard(name)

    def _saw(self, path: str, renamed: str) -> None:
        """`renamed`: the mark of what was renamed to it. A file that is written in place is told of many times."""
        before = self._record.seen.get(path, {})
        if renamed:
            if (before.get("mark"), before.get("evidence")) != (renamed, Evidence.RENAMED):
                self._note(Decision.SEEN, path=path, mark=renamed, evidence=Evidence.RENAMED)
        elif before.get("evidence") or not checkpoints.same_file(before.get("mark", ""), path):
            self._note(Decision.SEEN, path=path, mark=mark_of(path))

    def _watch_folder(self) -> None:
        """Take in what appeared since the last round.

        What is there before anybody watches is noted first, and anew if something may have appeared unheard.
        """
        if self._appearing.is_deaf():
            self._before = None
        if self._before is None and self._appearing.fd >= 0:
            self._before = {path: mark_of(path) for _, _, path in self._pattern.found()}
        self._write_heard()

    def _look(self, *, last: bool) -> None:
        unclear, self._unclear = self._unclear, []
        for path in unclear:
            if not os.path.lexists(path):
                self._refuse(path, Fact(Why.GONE))
        waited, self._waits = self._waits, {}
        for of in [one for one in self._record.due if mark_of(one[0]) != one[1]]:
            gone = Why.REWRITTEN if os.path.lexists(of[0]) else Why.GONE
            self._skip(of, waited.get(of, Fact(gone)))
        ready = sorted(self._candidates(last), key=lambda one: (one.seen.changed, one.step))
        newest = self._newest_taken()
        overtaken = [one for one in ready if one.seen.changed < newest]
        for old in overtaken:
            self._skip(old.of, waited.get(old.of, Fact(Why.NEWER)))
        ready = ready[len(overtaken) :]
        due: list[Candidate] = []
        for one in ready:
            number, every = self._record.complete + len(due), int(self._rule.get("every") or 1)
            was_due = one.of in self._record.due
            if number % every and not was_due and not (last and one is ready[-1]):
                self._skip(one.of, Fact(Why.NOT_DUE, every=every))
            else:
                due.append(one)
        for one in due[:-1]:
            self._skip(one.of, waited.get(one.of, Fact(Why.NEWER)))
        for one in due[-1:]:
            if one.of not in self._record.due or self._full:  # a full disk fails here, not after a long reading
                self._note(Decision.DUE, path=one.seen.path, mark=one.seen.mark)
            self._link(one, last)

    def _newest_taken(self) -> int:
        """When the newest checkpoint that has a policy was last written, in nanoseconds."""
        return max((numbers_of(one.get("mark", ""))[2] for one in self._record.checkpoints.values()), default=0)

    def _candidates(self, last: bool) -> Iterator[Candidate]:
        final = self._last_skipped() if last else ""
        for matched, name, path in self._pattern.found():
            try:
                seen = Seen(path)
                if (path, seen.mark) in self._record.decided and seen.mark != final:
                    continue
                if any(of == path and checkpoints.is_rest(seen.mark, mark) for of, mark in self._record.decided):
                    continue
                if (step := step_of(matched)) is None:
                    self._refuse(path, Fact(Why.NO_STEP, name=name))
                elif evidence := self._evidence(matched, name, seen, last):
                    yield Candidate(seen, step, evidence)
                else:
                    self._unclear.append(path)
            except FlawedError as flawed:
                self._refuse(path, flawed.fact)

    def _last_skipped(self) -> str:
        """The mark of the training's newest checkpoint if it was skipped because of `every`, else empty."""
        latest = {row.get("mark", ""): row for row in self._record.passed}
        mark = max(latest, key=lambda one: numbers_of(one)[2], default="")
        reason = latest[mark].get("reason") if mark else None
        not_due = isinstance(reason, Fact) and reason.code == Why.NOT_DUE
        return mark if not_due and numbers_of(mark)[2] > self._newest_taken() else ""

    def _evidence(self, matched: str, name: str, seen: Seen, last: bool) -> Evidence | None:
        """Why it is complete; None: it may be, later. Raises FlawedError if that can never be known."""
        if self._rule["done"] != STABLE:
            marker = files.home(self._rule["done"]).replace("*", matched)
            written = files.changed(marker)
            if (written and written >= seen.changed) or (seen.path, seen.mark) in self._record.due:
                return Evidence.MARKER
            if last:
                taken = [policy for policy, one in self._record.checkpoints.items() if one.get("path") == seen.path]
                raise FlawedError(Why.NO_MARKER, name=name, marker=marker, **({"policy": taken[-1]} if taken else {}))
            return None
        self._write_heard()  # what `seen` holds has been told by now
        if name in self._appearing.in_place:
            raise FlawedError(Why.IN_PLACE, name=name)
        if self._appearing.renamed.get(name) == seen.mark:
            return Evidence.RENAMED
        if self._record.renames and (self._before or {}).get(seen.path) == seen.mark:
            return Evidence.AS_OTHERS
        if last:
            told = self._record.seen.get(seen.path)
            raise FlawedError(Why.IN_PLACE if told and not told.get("evidence") else Why.UNSEEN, name=name)
        return None

    def _refuse(self, path: str, fact: Fact) -> None:
        mark = _ANY if fact.code in (Why.NO_STEP, Why.NO_FILE) else mark_of(path)
        if (path, mark) not in self._record.decided:
            self._write(Decision.REFUSED, path=path, mark=mark, reason=fact)

    # What is kept

    def _draft(self, one: Candidate) -> str:
        return f"{self._layout.kept}/.draft/{os.path.basename(one.seen.path)}"

    def _link(self, one: Candidate, last: bool) -> None:
        """Link it, and begin to read it. Without room for it, it is tried again at the next look, if there is one."""
        target = self._draft(one)
        draft = os.path.dirname(target)
        remove(draft)
        try:
            checkpoints.safe(f"{self._layout.kept}/{os.path.basename(target)}")
            os.makedirs(draft, exist_ok=True)
            checkpoints.room_for(one.seen, draft, int(self._rule.get("floor") or 0), self._owed())
            how = checkpoints.keep(one.seen, target)
            self._reading = Reading(target, one.seen.size, partial(self._hold, one, how))
        except OSError as error:
            if not files.no_room(error):
                raise
            self._without_room(one, FlawedError(Why.DISK_FULL, error=error.strerror), last)
        except FlawedError as flawed:
            if flawed.fact.code == Why.NO_ROOM:
                self._without_room(one, flawed, last)
            else:
                self._refuse_linked(one, flawed)

    def _without_room(self, one: Candidate, flawed: FlawedError, last: bool) -> None:
        if last:
            self._refuse_linked(one, flawed)
        else:
            remove(os.path.dirname(self._draft(one)))
            self._waits = {one.of: flawed.fact}

    def _refuse_linked(self, one: Candidate, flawed: FlawedError) -> None:
        remove(os.path.dirname(self._draft(one)))
        if flawed.fact.code != Why.REWRITTEN or mark_of(one.seen.path) == one.seen.mark:
            self._write(Decision.REFUSED, path=one.seen.path, mark=one.seen.mark, reason=flawed.fact)

    def _hold(self, one: Candidate, how: str, reading: Reading) -> None:
        """It was read: it waits in place of an older one that waited."""
        digest, (draft, name) = reading.digest, os.path.split(reading.path)
        try:
            if reading.flawed:
                raise reading.flawed
            checkpoints.unchanged(one.seen, reading.path, how)
        except FlawedError as flawed:
            self._refuse_linked(one, flawed)
            return
        if known := self._record.same(one.step, digest):
            remove(draft)
            self._skip(one.of, Fact(Why.KNOWN, policy=known))
            return
        for old in self._record.having(Decision.HELD):
            self._write(Decision.SKIPPED, policy=old["policy"], reason=Fact(Why.NEWER))
            remove(os.path.dirname(old["link"]))
        policy, again = self._record.policy(one.step, digest)
        kept = f"{self._layout.kept}/{policy}"
        remove(kept)
        os.rename(draft, kept)
        files.sync(self._layout.kept)
        self._write(
            Decision.HELD,
            policy=policy,
            step=one.step,
            digest=digest,
            link=f"{kept}/{name}",
            how=how,
            path=one.seen.path,
            mark=one.seen.mark,
            evidence=one.evidence,
            **({"again": 1} if again else {}),
            kept=Seen(f"{kept}/{name}").mark,
        )

    def _owed(self) -> int:
        """Bytes that are kept here alone once the training deletes its own names of them."""
        kept = (one for one in self._record.checkpoints.values() if one["decision"] != Decision.SKIPPED)
        return sum(numbers_of(one["mark"])[1] for one in kept if mark_of(one["path"]) == one["mark"])

    # What is evaluated

    def _release(self) -> None:
        """Give the dispatcher the one that waits, once every session of the former ones has begun."""
        held = self._record.having(Decision.HELD)
        if held and self._sessions.all_begun({one["policy"] for one in self._record.having(Decision.TAKEN)}):
            self._write(Decision.TAKEN, policy=held[-1]["policy"])
            self._sessions.put(self._record)

    def _verify(self) -> None:
        """Look once more at checkpoints whose sessions have all ended, and at those that were changed meanwhile."""
        for one in self._record.having(Decision.TAKEN, Decision.VERIFIED):
            policy, attempts = one["policy"], self._sessions.attempts_ended(one["policy"])
            if one["decision"] == Decision.VERIFIED and one.get("attempts") == str(attempts):
                self._look_again(one)
            elif mark_of(one["link"]) != one["kept"] or self._was_incomplete(one):
                self._drop(policy)
            elif attempts and self._reading is None:
                then = partial(self._verified, policy, attempts)
                self._reading = Reading(one["link"], numbers_of(one["mark"])[1], then)

    def _look_again(self, one: Json) -> None:
        """What was verified counts, and is told once the training has written into what is kept of it."""
        mark = mark_of(one["link"])
        if mark != one["kept"] and not checkpoints.is_rest(mark, one["kept"]) and self._reading is None:
            then = partial(self._read_again, one["policy"], mark)
            self._reading = Reading(one["link"], numbers_of(mark)[1], then)

    def _read_again(self, policy: str, mark: str, reading: Reading) -> None:
        differs = reading.digest not in ("", self._record.checkpoints[policy]["digest"])
        self._note(Decision.VERIFIED, policy=policy, kept=mark, **({"over": 1} if differs else {}))

    def _verified(self, policy: str, attempts: int, reading: Reading) -> None:
        """It was read after its sessions had ended."""
        one = self._record.checkpoints[policy]
        if one["decision"] == Decision.CHANGED:
            return
        if reading.digest == one["digest"] and not self._was_incomplete(one):
            self._write(Decision.VERIFIED, policy=policy, attempts=attempts)
        else:
            self._drop(policy)

    def _was_incomplete(self, one: Json) -> bool:
        """Whether the training has written on at a checkpoint that is evaluated; what is kept need not show it."""
        return one["decision"] == Decision.TAKEN and checkpoints.added_to(one["path"], one["mark"], one["link"])

    def _drop(self, policy: str) -> None:
        self._write(Decision.CHANGED, policy=policy)
        self._sessions.put(self._record)

    def _all_verified(self) -> bool:
        taken = self._record.having(Decision.TAKEN, Decision.VERIFIED)
        return all(one.get("attempts") == str(self._sessions.attempts_ended(one["policy"])) for one in taken)
