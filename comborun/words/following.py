"""A training that is followed (`rules/following.py`), in words."""

from __future__ import annotations

from comborun.rules.facts import Fact, facts_of
from comborun.rules.following import PASSED, WRITTEN_OVER, Decision, Seeing, Why
from comborun.rules.vocabulary import several
from comborun.words import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.words import Words


def _following(fact: Fact) -> str:
    ended, alive = fact.fields.get("ended"), fact.fields.get("alive")
    training = "the training has ended" if ended or alive is False else "follows the training"
    counts = {key: fact.count(key) for key in ("evaluated", *Decision)}
    words = [f"{several(counts['evaluated'], 'checkpoint')} evaluated"]
    if last := fact.text("last"):
        words[0] += f", the last is {last}"
    waits = {
        Decision.TAKEN: "not counted yet",
        Decision.HELD: "waits",
        Decision.SKIPPED: "skipped",
        Decision.CHANGED: "changed, and no longer counted",
    }
    words += [f"{counts[key]} {said}" for key, said in waits.items() if counts[key]]
    if counts[Decision.REFUSED]:
        why = ", ".join(map(say, facts_of(fact.fields.get("refusals"))))
        words.append(f"{counts[Decision.REFUSED]} refused: {why}")
    if over := fact.texts("written_over"):
        words.append(say(Fact(WRITTEN_OVER, policies=over)))
    words += map(say, facts_of(fact.fields.get("sees")))
    return f"{training}: {'; '.join(words)}"


_DONE = "`done: PATTERN` names a marker that is written after it"

WORDS: Words = {
    "following": _following,
    "checkpoints_pending": (
        "not counted yet: {policies}. A checkpoint counts once its sessions have ended and it is still the same"
    ),
    "checkpoints_changed": ("not counted: {policies}. The training changed the checkpoint while it was evaluated"),
    "steps_written_again": (
        "the training wrote steps again with another content: {policies}. Each is a checkpoint of its own"
    ),
    WRITTEN_OVER: (
        "written again by the training: {policies}. What is rated is the former content, which may be nowhere any more"
    ),
    PASSED: ("checkpoints of the training: {evaluated} evaluated[, {skipped} skipped][, {refused} refused: {reason}]"),
    "checkpoints_refused": "{names}[ and {more:+} more] ({reason})",
    "checkpoints_unseen_rename": (
        "nobody watched when these checkpoints appeared: {policies}. They count as complete, since the others of"
        " this training were renamed"
    ),
    Seeing.NO_FOLDER: "the folder {path} is not there, or can't be read",
    Seeing.NOT_COMPLETE: "{count} may not be complete yet, such as {name}",
    Seeing.READING: "{name} is read whole, {read:amount} of {size:amount}",
    Seeing.NO_ROOM: "{name} waits for room[: {reason}]",
    Seeing.DISK_FULL: "nothing is decided until the run can be written again: {error}",
    Why.NEWER: "a newer one was there",
    Why.NOT_DUE: "only one in {every} is evaluated",
    Why.KNOWN: "its content is that of {policy}",
    Why.NO_STEP: "{name} holds no number of a step, or several",
    Why.IN_PLACE: f"{{name}} was written in place, so nothing tells when it is complete: {_DONE}",
    Why.UNSEEN: f"nobody saw how {{name}} appeared, so it may not be complete: {_DONE}",
    Why.GONE: "it was deleted before it was taken",
    Why.REWRITTEN: "it was written again before it was taken",
    Why.NO_FILE: "it is or holds {what}[ ({name})], and not a file",
    Why.EMPTY: "it is empty",
    Why.FOREIGN: "it belongs to {owner}, so the system refuses a link to it",
    Why.ELSEWHERE: "it is on another file system or mount than the run: give `root`, a folder there",
    Why.NO_ROOM: "{free:amount} of the disk are free, and {needed:amount} are needed: see `keep_free`",
    Why.NAME: "its path {path} holds a quote, a backslash or what is no text",
    Why.NO_MARKER: (
        "[{name} was written again after {policy} was taken from it, and ]"
        "{marker} is not there or older than {name}, so nothing says that this is complete"
    ),
    Why.DISK_FULL: "the disk of the run takes no link to it: {error}",
    Why.UNREADABLE: "it can't be read: {error}",
}
