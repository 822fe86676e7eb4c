"""Codes of the facts that say how an attempt ended, or why it must end: `ending` of an end, `reason` of a verdict.

Comments name the fields. `said` is text of another program: a log line, an error of the system, a message of Slurm.
"""

from __future__ import annotations

from comborun.rules import records
from comborun.rules.facts import Fact
from comborun.rules.vocabulary import Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TEXT_MOST = 200
"""characters of a field: the record has to fit into its reserved room"""


class Evidence(Word):
    # The command did not start
    NOT_STARTED = "not_started"  # said: by a script of the former version
    COULD_NOT_RUN = "could_not_run"  # program, folder, interpreter (missing, or absent), said
    SETUP_FAILED = "setup_failed"  # number (of the line), exit, line, said
    SETUP_RETURNED = "setup_returned"  # exit
    NO_FOLDER = "no_folder"  # path
    CANNOT_MAKE = "cannot_make"  # path
    CANNOT_WRITE = "cannot_write"  # path
    CANNOT_LINK = "cannot_link"  # path
    FOLDER_BREAKS_JSON = "folder_breaks_json"  # path
    FOLDER_BREAKS_MOUNT = "folder_breaks_mount"  # path, runtime
    CONTAINER_FAILED = "container_failed"  # runtime, exit, said
    NO_DISPLAY = "no_display"  # gpu
    SECRET_MISSING = "secret_missing"  # noqa: S105 - name
    GPU_NOT_FIRST = "gpu_not_first_for_vulkan"
    GPU_NOT_SEEN = "gpu_not_seen_by_vulkan"
    NO_XVFB = "no_xvfb"
    XVFB_FAILED = "xvfb_failed"  # said
    NO_PORT = "no_port"  # said
    SECRET_NOT_SET = "secret_not_set"  # name  # noqa: S105
    PORT_TAKEN = "port_taken"  # port
    NO_PROCESS = "no_process"
    TASK_ENDED_EARLY = "task_ended_early"  # said
    TASK_CANCELLED = "task_cancelled"
    WINDOW_REFUSED = "window_refused"  # engine, exit (absent: nothing could be asked)
    FILES_REMOVED = "files_removed"
    SUPERVISOR_LEFT = "supervisor_left"  # before it claimed the attempt: exit, or error of the system
    NOT_BEGUN = "did_not_begin"  # within_s
    ROOM_UNUSED = "room_unused"
    # It was ended
    STALLED = "no_progress"  # seconds, core (share in %), stopped (processes); line and times, if its log repeats
    RAN_TOO_LONG = "ran_too_long"  # limit_s
    SLURM_TIME_LIMIT = "slurm_time_limit"
    HELD_MEMORY = "held_memory"  # mib, limit_mib
    HUNG_AFTER_WORK = "hung_after_work"  # limit_s; files: how many were looked at, if not all
    NOT_READY = "not_ready"  # limit_s, check; at: where it listens, if 127.0.0.1 does not reach it
    WARM_UP_UNANSWERED = "warm_up_unanswered"  # limit_s
    NO_ANSWER = "no_answer"  # path (or absent), misses, every_s
    INTERRUPTED = "told_to_end"  # by: window or signal
    CANCELLED = "cancelled_before"  # before: beginning or another_attempt
    DECIDED = "comparisons_decided"
    ENDED_WITH = "ended_with"  # sessions: of its process, which ended while they ran
    # What the host knows
    KILLED_FOR_MEMORY = "killed_for_memory"  # where: group or machine, count, available_kib
    OUTPUT_DISK_FULL = "output_disk_full"  # free_kib
    SERVER_ENDED = "its_server_ended"  # server, cause, exit
    SERVER_SILENT = "its_server_silent"  # server
    SERVER_ANSWERS = "its_server_answers"  # servers: NAME/ATTEMPT, though its log says that one was lost
    REBOOTED = "rebooted"
    TAKEN_OVER = "taken_over"  # host: the former one, which nobody asked
    SUPERVISOR_DIED = "supervisor_died"
    TASK_GONE = "task_gone"
    SLURM_SAYS = "slurm_says"  # said
    # What its log shows, and what it left behind
    LOG_SAYS = "log_says"  # said
    PATTERNS_SLOW = "patterns_slow"
    NOT_JUDGED = "not_judged"  # said
    SHARED_MEMORY_SMALL = "shared_memory_small"  # mib, free_mib: of /dev/shm
    HOST_LIMITS = "host_limits"  # files, processes: limits of its user; an absent field means no limit
    SURVIVORS = "processes_survive"  # pids
    LEFT_BEHIND = "processes_left_behind"  # count, grace_s
    LACKS = "lacks_evidence"  # what did not hold though it ended with 0: line, steps, files
    WRONG_GPU = "wrong_gpu"  # used: lists of GPU and MiB; granted: GPUs


def fact(code: Evidence, **fields: Any) -> Fact:
    """A fact whose texts have a limited length and no control characters; fields that are None are left out.

    An `interpreter` keeps them: a file with the line ends of Windows asks for one that ends in a carriage return.
    """
    return Fact(code, **{key: _short(key, value) for key, value in fields.items() if value is not None})


def _short(key: str, value: object) -> object:
    if not isinstance(value, str):
        return value
    text = value if key == "interpreter" else records.clean(value, len(value))
    return text if len(text) <= TEXT_MOST else f"{text[: TEXT_MOST - 1]}…"


class MissingResource(LookupError):  # noqa: N818 - it is an answer and no error of ours
    """Something that a command needs is not there, and so the launch fails. `reason` says what."""

    def __init__(self, code: Evidence, **fields: Any) -> None:
        super().__init__(code)
        self.reason = fact(code, **fields)


_OF_SCRIPT = frozenset(
    (
        *(Evidence.COULD_NOT_RUN, Evidence.SETUP_FAILED, Evidence.SETUP_RETURNED, Evidence.NO_FOLDER),
        *(Evidence.CANNOT_MAKE, Evidence.CANNOT_WRITE, Evidence.CANNOT_LINK),
        *(Evidence.FOLDER_BREAKS_JSON, Evidence.FOLDER_BREAKS_MOUNT),
    )
)


def of_script(text: str) -> Fact | None:
    """What a session's script wrote before it gave up: a code, then keys and values, each followed by NUL. Another text
    is the sentence of a script of the former version. None for an empty file.
    """
    code, *words = text.split("\0")
    if code in _OF_SCRIPT and len(words) % 2 and not words[-1]:
        return fact(Evidence(code), **dict(zip(words[::2], map(str.strip, words[1::2]))))
    said = " ".join(text.replace("\0", " ").split())
    return fact(Evidence.NOT_STARTED, said=said) if said else None
