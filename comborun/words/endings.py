"""How attempts ended, in words."""

from __future__ import annotations

from comborun.rules import records
from comborun.rules.endings.evidence import Evidence
from comborun.rules.endings.failures import Failure, named, words_of
from comborun.rules.facts import facts_of
from comborun.rules.holds import Notice
from comborun.rules.vocabulary import Cause, Outcome
from comborun.words import part, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping, Sequence

    from comborun.rules.facts import Fact
    from comborun.words import Words

SIGNALS: Mapping[int, str] = dict(
    enumerate(
        (
            *("hangup", "interrupt", "quit", "illegal instruction", "trace/breakpoint trap", "aborted", "bus error"),
            *("floating point exception", "killed", "user defined signal 1", "segmentation fault"),
            *("user defined signal 2", "broken pipe", "alarm clock", "terminated", "stack fault", "child exited"),
            *("continued", "stopped (signal)", "stopped", "stopped (tty input)", "stopped (tty output)"),
            *("urgent i/o condition", "cpu time limit exceeded", "file size limit exceeded", "virtual timer expired"),
            *("profiling timer expired", "window changed", "i/o possible", "power failure", "bad system call"),
        ),
        1,
    )
)
"""signals by their numbers on Linux, where sessions run: those of the laptop may be others"""
CAUSES: Mapping[Cause, str] = {
    Cause.STOPPED: "stopped",
    Cause.NOT_NEEDED: "not needed",
    Cause.HUNG: "hung",
    **{failure.cause: failure.row.words for failure in Failure if failure.cause},
}
"""causes that exit codes and signals don't show"""


def class_words(word: str) -> str:
    """The words of a class of failures, or why else a GPU is closed."""
    return "the driver lists it no more" if word == Notice.GPU_FELL else words_of(word)


_MOST = 600
"""characters of a line about an end"""
_WHERE = {"group": "in its control group", "machine": "on this machine"}
FORMS = {"class": class_words, "where": lambda word: _WHERE.get(word, word)}
_CANCELLED = {"beginning": "before it began", "another_attempt": "while it waited for another attempt"}
_INTERRUPTED = {"window": "interrupted in its window", "signal": "its supervisor was told to end"}
_CONTAINER = {
    125: "{runtime} could not start the container",
    126: "{runtime} could not run the program in the image",
    127: "{runtime} found no such program in the image",
    255: "{runtime} could not start the container",
}


def outcome_words(outcome: str | None) -> str:
    """An outcome as people read it; empty for none."""
    return "not needed" if outcome == Outcome.NOT_NEEDED else str(outcome or "")


def behind(cause: str, failure: str | None) -> str:
    """The failure behind an exit code or a signal: `out of GPU memory`; empty if unknown."""
    found = named(failure or "") if cause in (Cause.EXITED, Cause.SIGNAL) else None
    return found.row.words if found and found.cause and found.row.in_log else ""


def beside_records(line: str, files: Sequence[str], *, steps: bool = False) -> str:
    """The evidence besides records: `a line of the log like 'done' and a file 'all.json'`; empty if none."""
    seen = (f"a line of the log like '{line}'",) if line else ()
    last = ("its last step",) if steps else ()
    return " and ".join((*seen, *last, *(f"a file '{glob}'" for glob in files)))


def _lacks(fact: Fact) -> str:
    return f"without {beside_records(fact.text('line'), fact.texts('files'), steps=bool(fact.fields.get('steps')))}"


def said(record: Mapping[str, Any]) -> str:
    """What an end record tells, in words."""
    return records.clean(in_words(record.get("note", ""), records.ending(record)), _MOST)


def in_words(note: str, facts: Iterable[Fact]) -> str:
    """The note of a record of the former version, or facts."""
    return "; ".join(filter(None, (note, *map(say, facts))))


def how_ended(fact: Fact) -> str:
    """Of a fact with the fields of `records.how_ended`."""
    return in_words(fact.text("note"), facts_of(fact.fields.get(records.ENDING)))


def _container_failed(fact: Fact) -> str:
    runtime, code = fact.text("runtime"), fact.count("exit")
    failed = _CONTAINER.get(code, f"{{runtime}} failed with code {code}").format(runtime=runtime)
    return ": ".join(filter(None, (failed, part(fact, "said"))))


def _stalled(fact: Fact) -> str:
    seconds, stopped = fact.text("seconds"), fact.count("stopped")
    if line := fact.text("line"):
        why = f"no new result for {seconds} s, and the same line at least {fact.text('times')} times: {line}"
    else:
        why = f"no new result, no new line and {fact.count('core')} % of a core for {seconds} s"
    return f"{why}; {stopped} of its processes are stopped by a signal" if stopped else why


def _wrong_gpu(fact: Fact) -> str:
    if not fact.fields.get("used"):  # as a former version said it
        return f"WRONG_GPU: {fact.text('said')}"
    pairs = fact.fields["used"]
    found = [one for one in pairs if isinstance(one, list) and len(one) == 2] if isinstance(pairs, list) else []
    used = {gpu: mib for gpu, mib in found if isinstance(gpu, int) and isinstance(mib, int)}
    granted = [int(gpu) for gpu in fact.texts("granted") if gpu.isdecimal()]
    there = ", ".join(f"{mib} MiB on GPU {gpu}" for gpu, mib in used.items() if gpu not in granted)
    here = sum(mib for gpu, mib in used.items() if gpu in granted)
    return f"WRONG_GPU: {there}, and {here} MiB on GPU {','.join(map(str, granted))}, which it was granted"


WORDS: Words = {
    Evidence.NOT_STARTED.value: "{said}",
    Evidence.COULD_NOT_RUN.value: (
        "{program} could not be run in {folder}: "
        "[its interpreter {interpreter!r} does not exist or is not executable|{said}|bash printed no reason]"
    ),
    Evidence.SETUP_FAILED.value: "setup line {number} failed with code {exit}: {line}[: {said}]",
    Evidence.SETUP_RETURNED.value: "setup returned {exit}",
    Evidence.NO_FOLDER.value: "there is no folder {path}",
    Evidence.CANNOT_MAKE.value: "can't make {path}",
    Evidence.CANNOT_WRITE.value: "can't write {path}",
    Evidence.CANNOT_LINK.value: "can't make links in {path}",
    Evidence.FOLDER_BREAKS_JSON.value: (
        "the run's folder has a quote or a backslash in its name, and its path goes into JSON"
    ),
    Evidence.FOLDER_BREAKS_MOUNT.value: "the run's folder has a colon in its name, which {runtime} can't mount",
    Evidence.CONTAINER_FAILED.value: _container_failed,
    Evidence.NO_DISPLAY.value: "`display` names no display for GPU {gpu}",
    Evidence.SECRET_MISSING.value: "the secret {name} is not there: combo launch sends it again",
    Evidence.GPU_NOT_FIRST.value: (
        "no value of DRI_PRIME makes the granted GPU the first one for Vulkan: install mesa-vulkan-drivers 24 or newer,"
        " or name the GPU in the command, with `pin: device-arg` and {{gpu}}"
    ),
    Evidence.GPU_NOT_SEEN.value: (
        "Vulkan does not see the granted GPU: install libnvidia-gl; `vulkaninfo --summary` lists what it sees"
    ),
    Evidence.NO_XVFB.value: "there is no Xvfb on the PATH, which `display: xvfb` asks for",
    Evidence.XVFB_FAILED.value: "Xvfb did not come up: [{said}|it says nothing]",
    Evidence.NO_PORT.value: "no port is free[: {said}]",
    Evidence.SECRET_NOT_SET.value: (
        "the secret {name} is not in the environment here: combo launch sends it, or export {name}"
    ),
    Evidence.PORT_TAKEN.value: "another program listens on its port {port}",
    Evidence.NO_PROCESS.value: "no process could be started",
    Evidence.TASK_ENDED_EARLY.value: "its task ended before it began[: {said}]",
    Evidence.TASK_CANCELLED.value: "its task was cancelled in Slurm before it began",
    Evidence.WINDOW_REFUSED.value: (
        "[{engine} refused (code {exit}; dispatch/out has its words)|its window can't be opened]"
    ),
    Evidence.FILES_REMOVED.value: "its files were removed",
    Evidence.SUPERVISOR_LEFT.value: (
        "[its supervisor could not run: {error}|its supervisor left before it claimed the attempt[, with code {exit}]]"
    ),
    Evidence.NOT_BEGUN.value: "it did not begin within {within_s} s",
    Evidence.ROOM_UNUSED.value: "it was granted, but not started in time",
    Evidence.STALLED.value: _stalled,
    Evidence.RAN_TOO_LONG.value: "it ran longer than {limit_s} s",
    Evidence.SLURM_TIME_LIMIT.value: "Slurm's time limit",
    Evidence.HELD_MEMORY.value: "its processes held {mib} MiB of main memory, and its limit is {limit_mib}",
    Evidence.HUNG_AFTER_WORK.value: "it did not end within {limit_s} s after its work was done[;"
    " only the first {files} files and folders of its output were looked at for changes]",
    Evidence.NOT_READY.value: (
        "it was not ready within {limit_s} s; still missing: {check}[; it listens on {at}, not on 127.0.0.1]"
    ),
    Evidence.WARM_UP_UNANSWERED.value: "it did not answer the warm-up request within {limit_s} s",
    Evidence.NO_ANSWER.value: ("it did not answer [{path}|on its port]: {misses} looks in a row, {every_s:g} s apart"),
    Evidence.INTERRUPTED.value: lambda fact: _INTERRUPTED.get(fact.text("by"), "it was interrupted"),
    Evidence.CANCELLED.value: lambda fact: _CANCELLED.get(fact.text("before"), "before it began"),
    Evidence.ENDED_WITH.value: "its process ended while it ran {sessions}",
    Evidence.DECIDED.value: "all comparisons that need it are decided",
    Evidence.KILLED_FOR_MEMORY.value: (
        "processes killed for memory {where:where} since it began: {count}[; memory available now: {available_kib} KiB]"
    ),
    Evidence.OUTPUT_DISK_FULL.value: "{free_kib} KiB are free on the file system of its output",
    Evidence.SERVER_ENDED.value: "its server {server} ended[ ({cause}[, code {exit}])]",
    Evidence.SERVER_SILENT.value: "its server {server} does not answer",
    Evidence.SERVER_ANSWERS.value: lambda fact: (
        f"its server {', '.join(one.rpartition('/')[0] for one in fact.texts('servers'))} answers, so it was not lost"
    ),
    Evidence.REBOOTED.value: "the machine rebooted",
    Evidence.TAKEN_OVER.value: "it ran on {host}, from which the run was taken over",
    Evidence.SUPERVISOR_DIED.value: "its supervisor died before recording the end",
    Evidence.TASK_GONE.value: "its task is gone, and its end was not recorded",
    Evidence.SLURM_SAYS.value: "Slurm: {said}",
    Evidence.LOG_SAYS.value: "its log says: {said}",
    Evidence.PATTERNS_SLOW.value: "the grid's patterns take too long: its log was searched without them",
    Evidence.NOT_JUDGED.value: "it could not be judged: {said}",
    Evidence.SHARED_MEMORY_SMALL.value: (
        "`/dev/shm`[ has {mib} MiB here, {free_mib} free now]; a container gets more with --ipc=host or --shm-size"
    ),
    Evidence.HOST_LIMITS.value: (
        "limits here: `ulimit -n` is [{files}|unlimited], `ulimit -u` is [{processes}|unlimited]"
    ),
    Evidence.SURVIVORS.value: lambda fact: f"processes survive: {' '.join(fact.texts('pids'))}",
    Evidence.LACKS.value: _lacks,
    Evidence.LEFT_BEHIND.value: (
        "processes that it left behind were ended after {grace_s} s: {count}; a launcher must wait for what it starts"
    ),
    Evidence.WRONG_GPU.value: _wrong_gpu,
}
