"""How a supervisor finds and ends the container of a session's command.

A docker container belongs to the docker daemon: its processes are not our children, and they outlive the client. So the
container gets the name of its attempt, and is removed by that name. The processes of apptainer are our children.
session.sh holds the command line of the runtime.
"""

from __future__ import annotations

from comborun.host import files

_WORDS = {
    ("docker", 125): "docker could not start the container",
    ("docker", 126): "docker could not run the program in the image",
    ("docker", 127): "docker found no such program in the image",
    ("apptainer", 255): "apptainer could not start the container",
}
_REMOVED_S = 20.0


def end(runtime: str, marker: str) -> None:
    """End the container of an attempt by its name. A missing container is no error."""
    if runtime == "docker":
        from comborun.host import commands

        name = f"comborun-{marker.replace('/', '-')}"
        commands.run(_REMOVED_S, "docker", "rm", "--force", name)


def why(log: str, runtime: str, code: int) -> str:
    """Explains an exit code of the runtime itself, with its message; empty for a code of the program."""
    note = _WORDS.get((runtime, code), "")
    if not note:
        return ""
    lines = files.log_lines(log)
    said = [line for line in lines if line.startswith("docker: " if runtime == "docker" else "FATAL: ")]
    if runtime == "apptainer" and not said:
        return ""
    said = said or [line for line in lines if line.strip()]
    return f"{note}: {said[-1][:200]}" if said else note
