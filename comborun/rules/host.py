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
