"""What a host lacks or refuses."""

from __future__ import annotations

from comborun.rules.host import FolderFlaw, Limit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.words import Words

WORDS: Words = {
    Limit.OPEN_FILES: "too many files are open here (`ulimit -n`)",
    Limit.MACHINE_FILES: "too many files are open on this machine",
    Limit.MEMORY: "there is no memory for another process (`ulimit -v`)",
    Limit.PROCESSES: "the limit on processes is reached: this user may have {most}, threads included (`ulimit -u`)",
    Limit.MACHINE_PROCESSES: "the limit on processes of this machine, or of a control group, is reached",
    FolderFlaw.NOT_MADE: "there is no folder {path}, and none can be made: {error}",
    FolderFlaw.NO_FOLDER: "{path} is not a folder",
    FolderFlaw.FOREIGN: "{path} belongs to somebody else",
    FolderFlaw.OPEN: "others may write in {path} (mode {mode})",
}
