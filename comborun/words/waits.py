"""Why a session or a model server waits or waits no more, and why one can never start."""

from __future__ import annotations

from comborun.rules.facts import Fact
from comborun.rules.room.waits import Never, Wait, WaitFor, WarmedUp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping

    from comborun.words import Words

RESOURCES: Mapping[str, str] = {
    WaitFor.GPU: "a GPU",
    WaitFor.GPU_MEMORY: "GPU memory",
    WaitFor.CPUS: "cores",
    WaitFor.HOST_MEMORY: "memory",
    WaitFor.TOKEN: "an exclusive token",
    WaitFor.CAP: "a place under a per-GPU or per-host limit",
    WaitFor.UNKNOWN: "a memory measurement",
    WaitFor.PROCESSES: "room",
    WaitFor.LEASE: "access to the lease folder",
    WaitFor.ENVIRONMENT: "`combo resume`",
}


_OTHERS = "others use {others_mib}[ (reserved: {reserve_mib:+})]"


def _gpu_memory_too_much(fact: Fact) -> str:
    gpus, totals = fact.count("gpus"), fact.fields.get("totals_mib")
    of_each = "a GPU" if gpus == 1 else f"each of {gpus} GPUs"
    known = totals.items() if isinstance(totals, dict) else ()
    has = ", ".join(f"GPU {gpu} has {'an unknown number' if mib is None else mib}" for gpu, mib in known)
    reserve = fact.count("reserve_mib")
    kept = f"{f'`reserve` keeps {reserve}, and ' if reserve else ''}{fact.count('headroom_mib')} always stay free"
    return f"it asks for {fact.count('mib')} MiB of {of_each}; {has}; {kept}"


WORDS: Words = {
    Wait.LATER_IN_PROCESS: "{process} runs it after others",
    Wait.AGAIN_IN_PROCESS: "{process} runs it again after others",
    Wait.TOKEN_TAKEN: "only one on the host may have {token}, and {session}[ of the run {run}] has it",
    Wait.GROUP_FULL_ON_HOST: "{sessions} of {group} run, as many as its per_host allows",
    Wait.CORES_TAKEN: (
        "needs {needs:g} core{needs:s}; this run holds {held:g} of {of:g}[, other runs of yours hold {foreign:+}]"
        "[, {kept:+} are kept for a session that has waited longer]"
    ),
    Wait.MEMORY_UNMEASURED: "main memory is being measured",
    Wait.MEMORY_TAKEN: (
        f"needs {{needs_mib}} MiB; {{free_mib}} of {{total_mib}} MiB of main memory are free: [{_OTHERS}, ]this run"
        " holds {held_mib}[, other runs of yours hold {foreign_mib:+}]"
        "[, {kept_mib:+} are kept for a session that has waited longer]"
    ),
    Wait.NO_GPU_FOR_IT: "there is no GPU for it",
    Wait.ENVIRONMENT_CLOSED: "its environment {environment} gets no new sessions ({failure:class} again and again)",
    Wait.GPU_IN_QUARANTINE: "GPU {gpu} is in quarantine",
    Wait.GPU_KEPT: "GPU {gpu} is kept for {session}, which has waited longer",
    Wait.GPU_USED_ALONE: "a session uses GPU {gpu} alone",
    Wait.GPU_NOT_EMPTY: "has no gpu_memory in the grid, so it needs an empty GPU; GPU {gpu} has {sessions:session}",
    Wait.GPU_NOT_EMPTY_AGAIN: "ran out of GPU memory, so it needs an empty GPU; GPU {gpu} has {sessions:session}",
    Wait.GPU_FULL: "GPU {gpu} has {sessions:session}, and limits.per_gpu is {per_gpu}",
    Wait.GPU_REDUCED: "GPU {gpu} has {sessions:session}; its limit is {most} since one ran out of memory",
    Wait.GROUP_FULL_ON_GPU: "GPU {gpu} has {sessions:session} of {group}, as many as its per_gpu allows",
    Wait.GPU_UNMEASURED: "GPU {gpu} is being measured",
    Wait.GPU_MEASURED_AGAIN: "GPU {gpu} is measured again",
    Wait.GPU_MEASURED_AFTER_END: "GPU {gpu} is measured again, since something ended there",
    Wait.GPU_USE_UNKNOWN: "nvidia-smi does not tell how much memory of GPU {gpu} is used",
    Wait.GPU_MEMORY_TAKEN: (
        "needs {needs_mib} MiB[, a tenth, since the grid sets no gpu_memory{tenth:if}]; {free_mib} of {total_mib} MiB"
        f" of GPU {{gpu}} are free: [{_OTHERS}, ][{{sessions:+session}} of this run {{sessions:=hold}} {{held_mib}}, ]"
        "[other runs of yours hold {foreign_mib:+}, ]{headroom_mib} always stay free"
    ),
    Wait.SERVER_NOT_READY_THERE: "its server on GPU {gpu} is not ready",
    Wait.STARTS_APART: "starts[ on GPU {gpu}] are {seconds:g} s apart",
    Wait.SLOTS_TAKEN: "no slot is free",
    Wait.LEASES_LOCKED: "another run holds the lock in {folder}",
    Wait.LEASES_UNWRITABLE: "can't write in {folder}",
    Wait.LEASES_UNUSABLE: "{flaw}",
    Wait.NO_PROCESSES: "{limit}",
    Wait.WARMS_UP: "{session} of the same program comes first, until it makes progress",
    Wait.RETRY_AFTER: "{failure:class}, after attempt {attempt}",
    Wait.RETRY_ASKED: "asked for after attempt {attempt}",
    Wait.SMOKE_TEST_FIRST: "the smoke test comes first",
    Wait.SERVER_NOT_READY: "its server {server} is not ready",
    WarmedUp.PROGRESSED: "it makes progress",
    WarmedUp.ENDED: "it has ended",
    WarmedUp.LATE: "it took longer than {seconds:duration}",
    Never.GPUS_TOO_MANY: "it asks for {gpus:GPU}[ of {only}], and may use {may_use}",
    Never.CORES_TOO_MANY: "it asks for {cores:core}, and may use {may_use}",
    Never.MEMORY_TOO_MUCH: "it asks for {mib} MiB of memory; the host has {total_mib}, reserved {reserve_mib}",
    Never.GPU_MEMORY_TOO_MUCH: _gpu_memory_too_much,
}
