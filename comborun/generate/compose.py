"""A plan as a Docker Compose file: a service for each session, with its own GPUs, range and output folder. Pure.

Compose has no queue. So services with the same GPU, display or name of `exclusive` run one after another: each waits
until the one before it has succeeded. After a failure the services behind it do not start.
"""

from __future__ import annotations

import io
import re
import shlex
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from comborun.errors import UserError
from comborun.generate.script import says_something

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from comborun.model.plan import Plan, Session

INSIDE = "/comborun"
"""folder of a service's output"""
FILES = "/tmp/comborun"  # noqa: S108 - inside a container, where any user can write
"""folder of the files of `files` in a service"""
_XVFB, _PER_HOST = "display: xvfb", "resources.per_host"
_INSTEAD = {
    _XVFB: "let the command start one, `xvfb-run ...`, or name an X server of the host, `display: ':1'`",
    _PER_HOST: "leave it out of this grid, or use combo run",
}
_HOME = "\0"
"""stands for the host's home; no bash word can contain this character"""
HEAD = """\
# {grid}: {count} services, written by `combo export compose`. Start it with
#   env UID=$(id -u) GID=$(id -g) docker compose up
# Output is in ./out/SERVICE. comborun does not watch these containers: no retries, no budget of memory; services on one
# GPU, display or `exclusive` run one after another, and a failure keeps the rest of its row from starting.
"""

_WORD = re.compile(r"\"\$(?P<name>\w+)\"|'(?P<literal>[^']*)'|\"(?P<quote>')\"|(?P<bare>[^'\"]+)")


def compose_text(plan: Plan) -> str:
    """The text of the file. Raises UserError for settings that Compose does not have."""
    if boxless := [one.name for one in plan.sessions if one.around.container is None]:
        raise UserError(f"{boxless[0]} has no container", "`container: {image: NAME}` in the grid")
    if any(one.together for one in plan.sessions):
        raise UserError("a grid with `together`", "start it with combo run: each start names its environments")
    if plan.servers:
        raise UserError(
            "a grid with model servers", "write their services by hand, and give their addresses to policies"
        )
    last: dict[int | str, str] = {}
    services: dict[str, Any] = {}
    for session, gpus in _granted(plan):
        services[session.name] = _service(session, gpus, plan.secrets)
        taken: tuple[int | str, ...] = (*gpus, *session.request.tokens)
        if before := sorted({last[one] for one in taken if one in last}):
            services[session.name]["depends_on"] = {
                name: {"condition": "service_completed_successfully"} for name in before
            }
        last |= dict.fromkeys(taken, session.name)
    stream = io.StringIO()
    yaml = YAML()
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump({"services": services}, stream)
    return HEAD.format(grid=plan.grid, count=len(services)) + stream.getvalue()


def expanded(word: str, values: Mapping[str, str]) -> str:
    """The text of a bash word, with start-time values filled in, and _HOME for the host's home."""
    pieces = (
        (_HOME if match["name"] == "HOME" else values[match["name"]])
        if match["name"]
        else match["literal"] or match["quote"] or match["bare"] or ""
        for match in _WORD.finditer(word)
    )
    return "".join(pieces)


def _written(text: str) -> str:
    """The text with `$` escaped for Compose."""
    return text.replace("$", "$$").replace(_HOME, "${HOME}")


def _granted(plan: Plan) -> Iterable[tuple[Session, tuple[int, ...]]]:
    """Each session with its GPUs: those with the least work so far."""
    load = dict.fromkeys(plan.gpus, 0)
    for session in plan.sessions:
        least = sorted(load, key=lambda gpu: (load[gpu], gpu))
        gpus = session.request.only or tuple(sorted(least[: session.gpus]))
        for gpu in gpus:
            load[gpu] = load.get(gpu, 0) + max(1, session.expected_s)
        yield session, gpus


def _service(session: Session, gpus: tuple[int, ...], secrets: Iterable[tuple[str, str]]) -> dict[str, Any]:
    box, values = session.around.container, _start_time(session, gpus)
    assert box
    if box.runtime != "docker":
        raise UserError(f"{session.name} runs in {box.runtime}", "Compose starts containers of docker")
    if session.around.links or box.options:
        key = "`workdir: {link_from: ...}`" if session.around.links else "`container.options`"
        raise UserError(f"{session.name} has {key}, which a Compose file can't express", "leave it out of this grid")
    unsayable = {_XVFB: session.display and session.display.own, _PER_HOST: session.request.per_host}
    if key := next((key for key, present in unsayable.items() if present), ""):
        raise UserError(f"{session.name} has `{key}`, which a Compose file can't express", _INSTEAD[key])
    words = (*session.command, *(word for _, word in session.variables), *session.around.words)
    missing = (match["name"] for word in words for match in _WORD.finditer(word))
    if asked := next((name for name in missing if name not in {None, "HOME", *values}), ""):
        raise UserError(
            f"{session.name} needs {asked}, which is known only when comborun starts it", "start it with combo run"
        )
    variables = {name: expanded(word, values) for name, word in session.variables}
    shown = {"DISPLAY": values["COMBORUN_DISPLAY"]} if session.display else {}
    entries: dict[str, Any] = {
        "image": expanded(box.image, values),
        "init": True,
        "user": "${UID:-1000}:${GID:-1000}",
        "network_mode": "host",
        "working_dir": expanded(session.workdir or "", values),
        "environment": [
            *(
                _written(f"{name}={value}")
                for name, value in {"PYTHONUNBUFFERED": "1", **values, **shown, **variables}.items()
            ),
            *(name for name, _ in secrets),
        ],
        "volumes": [
            f"./out/{session.name}:{INSIDE}/out",
            *(["/tmp/.X11-unix:/tmp/.X11-unix"] if session.display else ()),  # noqa: S108 - sockets of X servers
            *(_written(expanded(mount, values)) for mount in box.mounts),
        ],
        "command": [DoubleQuotedScalarString(_written(text)) for text in _command(session, values)],
        "deploy": _resources(session, gpus),
    }
    return _given(entries)


def _command(session: Session, values: Mapping[str, str]) -> list[str]:
    """The command, after a bash that writes files and runs setup."""
    files = [(f"{FILES}/{name}", expanded(text, values)) for name, text in session.around.files]
    before = [f"printf %s {shlex.quote(text)} >{path}" for path, text in files]
    if says_something(session.setup):
        before.append(session.setup.rstrip())
    command = [expanded(word, values) for word in session.command]
    if not before:
        return command
    return ["bash", "-c", "\n".join([f"mkdir -p {FILES}", *before, 'exec -- "$@"']), "bash", *command]


def _resources(session: Session, gpus: tuple[int, ...]) -> dict[str, Any]:
    """Its GPUs, cores and memory; memory is a limit if the grid enforces it."""
    cores, memory = session.request.cpus, f"{session.request.memory}M" if session.request.memory else ""
    devices = [DoubleQuotedScalarString(str(gpu)) for gpu in gpus]
    reserved = {
        "memory": memory,
        "devices": [{"driver": "nvidia", "device_ids": devices, "capabilities": ["gpu"]}] if gpus else [],
    }
    limits = {
        "cpus": DoubleQuotedScalarString(str(cores)) if cores else "",
        "memory": memory if session.watch.memory else "",
    }
    return _given({"resources": _given({"limits": _given(limits), "reservations": _given(reserved)})})


def _given(entries: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entries.items() if value}


def _start_time(session: Session, gpus: tuple[int, ...]) -> dict[str, str]:
    """The values of start-time placeholders. In a container GPUs count from 0."""
    within = ",".join(str(index) for index in range(len(gpus)))
    ranks = max(1, session.around.ranks)
    values: dict[str, str | int] = {
        "OUTPUT_DIR": f"{INSIDE}/out",
        "ATTEMPT": 1,
        "EPISODES": session.count,
        "EPISODES_PER_RANK": -(-session.count // ranks),
        "FIRST_EPISODE": session.own_first,
        "LAST_EPISODE": session.own_first + session.count - 1,
        "END_EPISODE": session.own_first + session.count,
        "GPU": within.partition(",")[0],
        "GPUS": within,
        "GPU_COUNT": len(gpus),
        "THREADS": session.threads or 1,
        "FILES": FILES,
    }
    if display := session.display:
        values["DISPLAY"] = f":{dict(display.by_gpu)[gpus[0]]}" if display.by_gpu else display.word()
    return {f"COMBORUN_{name}": str(value) for name, value in values.items()}
