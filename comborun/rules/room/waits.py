"""Why a session or a model server waits, and why one can never start: a code for each reason. Pure.

A wait is a Fact with a code of `Wait`. What is waited for follows from the code; what a machine does about a wait
depends on that alone.
"""

from __future__ import annotations

from comborun.rules.vocabulary import Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.rules.facts import Fact


class WaitFor(Word):
    """What is waited for: `for` in the JSON of `combo status`."""

    GPU = "gpu"
    GPU_MEMORY = "gpu_memory"
    CPUS = "cpus"
    HOST_MEMORY = "host_memory"
    TOKEN = "token"  # noqa: S105 - no password
    CAP = "cap"
    UNKNOWN = "unknown"  # a measurement
    PROCESSES = "processes"
    LEASE = "lease"
    SLOT = "slots"
    STAGGER = "stagger"
    WARM_UP = "warm_up"
    RETRY = "retry"
    SMOKE = "smoke"
    SERVER = "server"
    ENVIRONMENT = "environment"


PASSES = frozenset(
    (WaitFor.GPU, WaitFor.GPU_MEMORY, WaitFor.CPUS, WaitFor.HOST_MEMORY, WaitFor.TOKEN, WaitFor.CAP, WaitFor.UNKNOWN)
)
"""waits that end with other sessions, or with an answer of nvidia-smi. A model server is not among them: it may fail"""
ROOM = PASSES | {WaitFor.PROCESSES, WaitFor.LEASE}
"""waits for a resource of the host"""


class Wait(Word):
    """The code of a wait, and what is waited for. Memory is in MiB: fields end with `_mib`."""

    waits_for: WaitFor

    def __new__(cls, code: str, waits_for: WaitFor) -> Wait:  # noqa: PYI034 - Python 3.8 has no Self
        member = str.__new__(cls, code)
        member._value_ = code
        member.waits_for = waits_for
        return member

    LATER_IN_PROCESS = "later_in_process", WaitFor.SLOT  # process: the one that runs it after others
    AGAIN_IN_PROCESS = "again_in_process", WaitFor.RETRY  # process: the same of a session that has failed before
    TOKEN_TAKEN = "token_taken", WaitFor.TOKEN  # token, session; run: of the session that has it, if it is another one
    GROUP_FULL_ON_HOST = "group_full_on_host", WaitFor.CAP  # group, sessions
    CORES_TAKEN = "cores_taken", WaitFor.CPUS
    """needs, held (by this run), of, foreign (held by the user's other runs), kept (for sessions that waited longer)"""
    MEMORY_UNMEASURED = "memory_unmeasured", WaitFor.UNKNOWN
    MEMORY_TAKEN = "memory_taken", WaitFor.HOST_MEMORY
    """needs_mib, free_mib, total_mib, others_mib, reserve_mib, held_mib, foreign_mib, kept_mib"""
    NO_GPU_FOR_IT = "no_gpu_for_it", WaitFor.GPU
    GPU_IN_QUARANTINE = "gpu_in_quarantine", WaitFor.GPU  # gpu; so have all that follow, up to STARTS_APART
    GPU_KEPT = "gpu_kept", WaitFor.GPU  # session: it has waited longer
    GPU_USED_ALONE = "gpu_used_alone", WaitFor.GPU
    GPU_NOT_EMPTY = "gpu_not_empty", WaitFor.GPU  # sessions
    GPU_NOT_EMPTY_AGAIN = "gpu_not_empty_again", WaitFor.GPU  # sessions; it ran out of GPU memory before
    GPU_FULL = "gpu_full", WaitFor.GPU  # sessions, per_gpu
    GPU_REDUCED = "gpu_reduced", WaitFor.CAP  # sessions, most
    GROUP_FULL_ON_GPU = "group_full_on_gpu", WaitFor.CAP  # sessions, group
    GPU_UNMEASURED = "gpu_unmeasured", WaitFor.UNKNOWN
    GPU_MEASURED_AGAIN = "gpu_measured_again", WaitFor.UNKNOWN
    GPU_MEASURED_AFTER_END = "gpu_measured_after_end", WaitFor.UNKNOWN
    GPU_USE_UNKNOWN = "gpu_use_unknown", WaitFor.UNKNOWN
    GPU_MEMORY_TAKEN = "gpu_memory_taken", WaitFor.GPU_MEMORY
    """needs_mib, tenth (whether that is a tenth of the GPU, since nothing was said), free_mib, total_mib, others_mib,
    reserve_mib, sessions and held_mib (of this run), foreign_mib, headroom_mib"""
    SERVER_NOT_READY_THERE = "server_not_ready_there", WaitFor.GPU
    STARTS_APART = "starts_apart", WaitFor.STAGGER  # seconds; gpu, or none for sessions without one
    SLOTS_TAKEN = "slots_taken", WaitFor.SLOT
    LEASES_LOCKED = "leases_locked", WaitFor.LEASE  # folder
    LEASES_UNWRITABLE = "leases_unwritable", WaitFor.LEASE  # folder
    LEASES_UNUSABLE = "leases_unusable", WaitFor.LEASE  # flaw: the fact of system/files.py about the folder
    NO_PROCESSES = "no_processes", WaitFor.PROCESSES  # limit: the fact of system/machine.py
    WARMS_UP = "warms_up", WaitFor.WARM_UP  # session: the first of its program
    RETRY_AFTER = "retry_after", WaitFor.RETRY  # failure, attempt
    RETRY_ASKED = "retry_asked", WaitFor.RETRY  # attempt
    SMOKE_TEST_FIRST = "smoke_test_first", WaitFor.SMOKE
    SERVER_NOT_READY = "server_not_ready", WaitFor.SERVER  # server
    ENVIRONMENT_CLOSED = "environment_closed", WaitFor.ENVIRONMENT  # environment, failure


_WAITS_FOR = {wait.value: wait.waits_for for wait in Wait}


def waits_for(fact: Fact) -> str:
    """What a wait is for; the code itself if this version does not know it."""
    return _WAITS_FOR.get(fact.code, fact.code)


class WarmedUp(Word):
    """Why others wait no more for the first session of their program."""

    PROGRESSED = "first_progressed"
    ENDED = "first_ended"
    LATE = "first_took_too_long"  # seconds


class Never(Word):
    """Why a request can never start on this host."""

    GPUS_TOO_MANY = "gpus_too_many"  # gpus, may_use; only: the GPUs that were named, if any
    CORES_TOO_MANY = "cores_too_many"  # cores, may_use
    MEMORY_TOO_MUCH = "memory_too_much"  # mib, total_mib, reserve_mib
    GPU_MEMORY_TOO_MUCH = "gpu_memory_too_much"
    """mib, gpus, totals_mib (GPU -> MiB; without those that are not known), reserve_mib, headroom_mib"""
