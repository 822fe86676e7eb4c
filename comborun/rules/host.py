"""What a host lacks or refuses, as codes of facts. Pure."""

from __future__ import annotations

from comborun.rules.vocabulary import Word

PYTHON_REPLACED = "python_replaced"
"""a run goes on with another interpreter: before, python; host: as the laptop calls it. find_python.sh tells it"""


class Limit(Word):
    """Why no process or file can be added on a machine."""

    OPEN_FILES = "open_files_limit"
    MACHINE_FILES = "machine_files_limit"
    MEMORY = "process_memory_limit"
    PROCESSES = "process_limit"  # most: of this user, threads included
    MACHINE_PROCESSES = "machine_process_limit"


class FolderFlaw(Word):
    """Why a folder can't be used as one that belongs to this user alone."""

    NOT_MADE = "folder_not_made"  # path, error: of the system
    UNWRITABLE = "folder_unwritable"  # path, owner, error: of the system
    NO_FOLDER = "not_a_folder"  # path
    FOREIGN = "folder_of_another_user"  # path
    OPEN = "folder_open_to_others"  # path, mode: in octal digits


class Silence(Word):
    """Why Slurm does not answer."""

    NO_ANSWER = "slurm_gives_no_answer"  # seconds
    ANSWERED_WITH = "slurm_answered_with"  # said
    FAILED = "slurm_command_failed"  # program, exit


class Denial(Word):
    """Why a verb of the host program says no."""

    USAGE = "wrong_usage"  # usage; given: what is wrong, or absent
    NOT_A_NUMBER = "slots_not_a_number"
    NOT_SETTABLE = "not_settable"  # given: KEY=VALUE, keys
    NO_SUCH_GPU = "no_such_gpu"  # gpu, has
    NEVER_STARTS = "never_starts"  # session, reason
    SERVER_ON_EACH_GPU = "server_on_each_gpu"  # server
    SLURM_DECIDES = "slurm_decides"  # key
    NO_NAMES = "retry_without_names"
    NO_RUN = "no_run_directory"  # path
    NO_SESSION = "no_such_session"  # session
    NO_NOTIFY = "grid_without_notify"
    NO_LINE = "batch_without_line"  # path, line
    NO_TASK = "no_task_of_slurm"
    UNREADABLE = "record_unreadable"  # path: absent, torn or foreign
    RUN_UNREADABLE = "run_unreadable"  # run, path, error: of the system, or absent: not JSON; empty: true
    UNWRITABLE = "place_unwritable"  # path; error: of the system, if it is known
    LOCK_HELD = "lock_is_held"  # lock
    NO_PROCESS = "no_such_process"  # pid
    LOCK_FOREIGN = "lock_held_by_no_dispatcher"  # lock
    ATTEMPT_LIVES = "earlier_attempt_holds_lock"  # session
    ATTEMPT_MADE = "attempt_was_made"  # attempt
    DISPATCHER_ENDED = "dispatcher_ended"  # exit, said
    NO_SERVER = "no_server_ready"  # server
    ELSEWHERE = "path_leads_elsewhere"  # path
    LINK_IN_THE_WAY = "link_in_the_way"  # path
    FOLDER_IN_THE_WAY = "folder_in_the_way"  # path
    NO_FILE = "not_a_file"  # path
    PATH_UNUSABLE = "path_unusable"  # path, error: of the system
    DATA_CHANGED = "data_arrived_changed"
    DATA_CUT = "data_arrived_cut"
    SLURM_HOLDS = "slurm_still_holds_tasks"  # said
    SLURM_REFUSES = "slurm_refuses"  # said
    SLURM_SILENT = "slurm_does_not_answer"  # said
    OTHER_USER = "run_of_another_user"  # owner
    DISPATCHER_STAYS = "other_dispatcher_stays"  # host: from which the run is taken over
    DEALT_ELSEWHERE = "session_runs_on_another_box"  # session, box
    GRID_RUN_STOPPED = "grid_run_was_stopped"
    NO_GRID_RUN = "no_part_of_a_grid_run"  # path
    DEAL_UNREADABLE = "deal_unreadable"  # path; session, taken: of a move
    NO_MEMORY = "no_memory"
    FAULT = "system_error"  # error: of the system; path, if it is about a file


class Lack(Word):
    """What a grid needs and a host lacks. `near`: a similar name that is there, or empty."""

    FOLDER = "folder_missing"  # folder, near
    FILE = "file_missing"  # path, near; below: the folder that it is relative to, if it is
    RELATIVE = "paths_are_relative"  # paths; sync_from and sync_to: of the grid, or folder: one that could be synced to
    ENVIRONMENT = "environment_missing"  # name, near, known
    NOT_EXECUTABLE = "program_not_executable"  # program
    PROGRAM = "program_missing"  # program, near
    ON_PATH = "program_not_on_path"  # program, near
    RUNTIME = "container_runtime_missing"  # runtime
    RUNTIME_FAILS = "container_runtime_fails"  # runtime, said: the last line of its answer
    XVFB = "xvfb_missing"
    ROOTLESS = "container_user_is_mapped"  # runtime: of docker, whose user namespace gives files to another user
    DISK_FULL = "disk_is_full"  # root, free_kib
    DISK_SHORT = "disk_too_short"  # root, free_mib, wrote_mib: by the last run of this grid
