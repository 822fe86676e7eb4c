"""Holds of a run, the reasons for them, and what notices tell of a run: codes. Pure."""

from __future__ import annotations

from comborun.rules.vocabulary import Word

PAUSED, DRAINING, HALTED = "paused", "draining", "halted"
"""kinds of holds. PAUSED keeps the dispatcher; after DRAINING and HALTED it leaves when nothing runs any more"""
KINDS = (PAUSED, DRAINING, HALTED)
LEAVING = frozenset((DRAINING, HALTED))


class HoldReason(Word):
    """Why a run is held."""

    BY_PERSON = "held_by_person"  # words: those that the person gave
    FAILURES_IN_A_ROW = "failures_in_a_row"
    """failure, times, host (empty on Slurm), ending: facts of the last end; note: of one of the former version"""
    TOO_MANY_FAILED = "too_many_failed"  # failed, sessions, limit, percent: the one that is reached is not 0
    NO_GPU_LEFT = "no_gpu_left"
    TOO_FEW_GPUS_LEFT = "too_few_gpus_left"  # session, gpus, usable, allowed
    ENVIRONMENTS_CLOSED = "environments_are_closed"  # environments, failures: all that wait are of these
    SMOKE_TEST_UNPROVEN = "smoke_test_unproven"  # sessions, whys: why the rows of each don't count, perhaps empty
    SERVER_ENDS = "server_ends"
    """server, times, attempt (the last one), cause (or the class of the failure), exit_code, ending"""


class TaskLeft(Word):
    """Why a task of Slurm left without an attempt. A session that was HELD or STOPPED is submitted again."""

    HELD = "task_held"  # hold: its kind; reason: a fact with a code of HoldReason
    STOPPED = "task_stopped"
    DROPPED = "task_dropped"


class ServerStop(Word):
    """Why the dispatcher ends a model server."""

    UNUSED = "server_is_unused"
    RUN_OVER = "server_outlives_sessions"
    ORDERED = "server_told_to_end"


class Notice(Word):
    """What a notice tells."""

    RUN_HALTED = "run_halted"  # reason: a fact with a code of HoldReason
    GPU_FELL = "gpu_fell_off_the_bus"  # gpu
    RUN_FINISHED = "run_finished"  # succeeded, sessions
    SESSION_ENDED = "session_ended"  # session, outcome
    NO_PROGRESS = "makes_no_progress"  # session, ending
    SESSION_DISK_FULL = "session_disk_full"  # session
    VANISHED = "sessions_vanished"  # sessions
    QUARANTINED = "gpu_quarantined"  # gpu, failure, times
    ENVIRONMENT_CLOSED = "environment_gets_no_sessions"  # environment, failure, times
    FEWER = "fewer_sessions_on_gpu"  # gpu, most, sessions: that ran there when one of them ran out of its memory
    SERVER_SILENT = "server_silent"  # server
    SERVER_ENDED = "server_ended"  # server, cause, exit_code, ending
    HELD_BACK = "notices_held_back"
    TEST = "test_notice"
