"""What a host lacks or refuses, as codes of facts. Pure."""

from __future__ import annotations

from comborun.rules.vocabulary import Word


class Limit(Word):
    """Why no process or file can be added on a machine."""

    OPEN_FILES = "open_files_limit"
    MACHINE_FILES = "machine_files_limit"
    MEMORY = "process_memory_limit"
    PROCESSES = "process_limit"
    """most: of this user, threads included"""
    MACHINE_PROCESSES = "machine_process_limit"


class FolderFlaw(Word):
    """Why a folder can't be used as one that belongs to this user alone."""

    NOT_MADE = "folder_not_made"
    """path, error: of the system"""
    NO_FOLDER = "not_a_folder"
    """path"""
    FOREIGN = "folder_of_another_user"
    """path"""
    OPEN = "folder_open_to_others"
    """path, mode: in octal digits"""


class Lack(Word):
    """What a grid needs and a host lacks. `near`: a similar name that is there, or empty."""

    FOLDER = "folder_missing"
    """folder, near"""
    FILE = "file_missing"
    """path, near; below: the folder that it is relative to, if it is"""
    RELATIVE = "paths_are_relative"
    """paths; sync_from and sync_to: of the grid, or folder: one that could be synced to"""
    ENVIRONMENT = "environment_missing"
    """name, near, known"""
    NOT_EXECUTABLE = "program_not_executable"
    """program"""
    PROGRAM = "program_missing"
    """program, near"""
    ON_PATH = "program_not_on_path"
    """program, near"""
    RUNTIME = "container_runtime_missing"
    """runtime"""
    RUNTIME_FAILS = "container_runtime_fails"
    """runtime, said: the last line of its answer"""
    ROOTLESS = "container_user_is_mapped"
    """runtime: of docker, whose user namespace gives files to another user"""
    DISK_FULL = "disk_is_full"
    """root, free_kib"""
    DISK_SHORT = "disk_too_short"
    """root, free_mib, wrote_mib: by the last run of this grid"""
