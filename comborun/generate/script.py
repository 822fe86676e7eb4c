"""The bash scripts of a run. Pure: same grid, same bytes.

`session.sh` needs no library and runs by hand as it runs under its supervisor. A start sets COMBORUN_OUTPUT_DIR,
COMBORUN_GPUS and so on in the environment. By hand, the script's own defaults apply.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from comborun.model.command import ENTRIES, FILES, asks_for, of_all
from comborun.model.plan import Session
from comborun.model.resources import OCI_RUNTIMES, BashWord, Container
from comborun.rules.names import (
    LOOPBACK,
    NO_PROXY,
    SERVER_FIELDS,
    RunLayout,
    server_variable,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


# session.sh
THREAD_VARIABLES = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
    "PXR_WORK_THREAD_LIMIT",  # of USD, in Isaac Sim
    "LP_NUM_THREADS",  # of Mesa, where the processor renders
)
"""Libraries start a thread for each core of the machine; sessions side by side then slow each other down."""
PORT_BY_HAND = 28765

_FAIL = """\
session_fail() { # EXIT WHY CODE [KEY VALUE]...: the command is not started; a record says why, or by hand a line
  if [[ ! $session_failure ]] || ! printf '%s\\0' "${@:3}" >"$session_failure"; then
    printf 'comborun: %s\\n' "$2" >&2
  fi
  exit "$1"
}"""
_NO_JSON = r"""
[[ $COMBORUN_OUTPUT_DIR != *[\"\\]* ]] ||
  session_fail 78 "the run's folder has a quote or a backslash in its name, and its path goes into JSON" \
    folder_breaks_json path "$COMBORUN_OUTPUT_DIR"
""".strip()
_SETUP = """\
# Setup stops at its first line that fails; what fails inside a script or function that it calls does not count.
setup_next() {
  ((BASH_LINENO[0] == 1)) || setup_at=${BASH_LINENO[0]}
  set +eu # of a sourced script
}
setup_failed() { # [exit]
  local code=$? lines
  [[ ${1-} ]] || ((${#BASH_SOURCE[@]} < 4)) || return 0 # in a sourced script
  trap - DEBUG ERR EXIT
  mapfile -t lines <"$session_script"
  local number=$((setup_at - setup_first)) line=${lines[setup_at - 1]}
  session_fail 78 "setup line $number failed with code $code: $line" \\
    setup_failed number "$number" exit "$code" line "$line"
}"""
_SETUP_TRAPS = "trap setup_next DEBUG && trap setup_failed ERR && trap 'setup_failed exit' EXIT && setup_first=$LINENO"
_SETUP_CALL = """\
setup
setup_code=$?
trap - DEBUG ERR EXIT
set +eu
((setup_code == 0)) || session_fail 78 "setup returned $setup_code" setup_returned exit "$setup_code\""""
_NO_PROXY = f"""\
for name in {" ".join(NO_PROXY)}; do # setup may have set them; the servers of this machine need no proxy
  [[ ,${{!name-}}, == *,{LOOPBACK[0]},* || ${{!name-}} == "*" ]] ||
    export "$name=${{!name-}}${{!name:+,}}{",".join(LOOPBACK)}"
done"""
_RUN = """\
shopt -s execfail
exec -- "${command[@]}" ||
  session_fail $? "${command[0]} could not be run in $PWD" could_not_run program "${command[0]}" folder "$PWD\""""
PINNED = {"cvd", "both"}
"""pin modes in which CUDA_VISIBLE_DEVICES names the granted GPUs"""


def page(
    session: Session,
    about: str,
    *,
    family: str = "sessions",
    secrets: tuple[str, ...] = (),
    members: Sequence[Session] = (),
) -> str:
    """The text of `session.sh`. `about`: what it runs, in one line. `family`: its folder in the run. `secrets`: names
    of environment variables for its container. `members`: the sessions that share its process."""
    head = (
        "#!/usr/bin/env bash",
        f"# {session.name}: {about}",
        "# By hand, in any terminal: bash session.sh. What a start grants (COMBORUN_...) has then the values below.",
    )
    granted = (*_granted(session, family), *_environments(members))
    return "\n".join((*head, "", *granted, "", *_FAIL.splitlines(), *_body(session, secrets), ""))


def says_something(setup: str) -> bool:
    """Whether it holds a command: a bash function with comments only is a syntax error."""
    return any(line.strip() and not line.strip().startswith("#") for line in setup.splitlines())


def command_lines(command: tuple[BashWord, ...]) -> Iterator[str]:
    """An array, with one line for each flag and its values."""
    yield "command=("
    line: list[str] = []
    for word in command:
        if line and (word.startswith("-") or not line[0].startswith("-")):
            yield f"  {' '.join(line)}"
            line = []
        line.append(word)
    yield from (f"  {' '.join(line)}", ")")


def exports(variables: Iterable[tuple[str, BashWord]]) -> Iterator[str]:
    for name, value in variables:
        yield f"export {name}={value}"


def _variables(session: Session) -> Iterator[tuple[str, BashWord]]:
    """The variables of the grid. One that keeps a proxy away from hosts also keeps it away from servers here."""
    for name, value in session.variables:
        more = f'",{",".join(LOOPBACK)}"' if session.servers and name in NO_PROXY and value.strip("'\"") != "*" else ""
        yield name, BashWord(f"{value}{more}")


def _episodes(session: Session) -> Iterator[str]:
    """The range of episodes, in all forms that programs take."""
    first, count = "COMBORUN_FIRST_EPISODE", "COMBORUN_EPISODES"
    yield f"export {first}=${{{first}:-{session.own_first}}} {count}=${{{count}:-{session.count}}}"
    yield f"export COMBORUN_LAST_EPISODE=$(({first} + {count} - 1))"
    yield f"export COMBORUN_END_EPISODE=$(({first} + {count}))"
    if session.seed is not None and asks_for(session, "first_seed"):
        yield f"export COMBORUN_FIRST_SEED=$(({session.seed} + {first}))"
    if asks_for(session, "episode_list"):
        yield f'COMBORUN_EPISODE_LIST=$(seq -s , "${first}" "$COMBORUN_LAST_EPISODE")'
        yield "export COMBORUN_EPISODE_LIST"
    if ranks := session.around.ranks:
        yield f"export COMBORUN_EPISODES_PER_RANK=$((({count} + {ranks - 1}) / {ranks}))"


def _environments(members: Sequence[Session]) -> Iterator[str]:
    """The variables that name the environments of this start, and those of their entries in files."""
    if not members:
        return
    live = [one for one in members if one.flag != "dropped"]
    variables = tuple(dict.fromkeys(name for one in members for name, _ in one.each))
    yield from ("", "# The environments of this start, in their order; by hand all of them.")
    yield f'export COMBORUN_TOGETHER="${{COMBORUN_TOGETHER-{" ".join(one.name for one in live)}}}"'
    yield f"unset {' '.join(variables)}"
    yield """together_adds() { printf -v "$1" '%s' "${!1-}${!1:+,}$2"; } # NAME VALUE: to a list with commas"""
    yield from ("for combo in $COMBORUN_TOGETHER; do", "  case $combo in")
    for one in members:
        yield f"    {one.name})"
        yield from (f"      {line}" for line in _own_episodes(one))
        yield from (f"      together_adds {name} {value}" for name, value in one.each)
        yield "      ;;"
    yield from ("  esac", "done", "export COMBORUN_EPISODES")
    if named := [name for name in variables if not name.startswith(of_all(ENTRIES))]:
        yield f"export {' '.join(named)}"


def _own_episodes(session: Session) -> Iterator[str]:
    """The episodes of one environment of a process, which its entries of files may ask for."""
    first, end = session.own_first, session.own_first + session.count
    yield f"COMBORUN_EPISODES={session.count} COMBORUN_FIRST_EPISODE={first}"
    values = {"last_episode": end - 1, "end_episode": end, "first_seed": (session.seed or 0) + first}
    for placeholder, value in values.items():
        if asks_for(session, placeholder):
            yield f"COMBORUN_{placeholder.upper()}={value}"
    if asks_for(session, "episode_list"):
        yield f"COMBORUN_EPISODE_LIST=$(seq -s , {first} {end - 1})"


def _granted(session: Session, family: str) -> Iterator[str]:
    folder = f"{family}/{session.name}"
    yield 'run=${COMBORUN_RUN_DIR:-$(cd -- "${0%session.sh}../.." && pwd)}'
    yield "session_failure=${COMBORUN_FAILURE-}"
    if says_something(session.setup):
        yield f"session_script=$run/{folder}/session.sh"
    yield "export COMBORUN_RUN_DIR=$run COMBORUN_RESULTS_DIR=$run/results"
    yield "export COMBORUN_RUN=${COMBORUN_RUN:-${run##*/}} COMBORUN_ATTEMPT=${COMBORUN_ATTEMPT:-1}"
    yield f"export COMBORUN_SESSION=${{COMBORUN_SESSION:-by-hand/{session.name}/$$}}"
    yield f"export COMBORUN_OUTPUT_DIR=${{COMBORUN_OUTPUT_DIR:-$run/{folder}/by-hand}}"
    if not session.together:
        yield from _episodes(session)
    if session.gpus:
        yield from _gpus(session)
    if asks_for(session, "egl_device"):
        yield "export COMBORUN_EGL_DEVICE=${COMBORUN_EGL_DEVICE-${COMBORUN_GPU-0}}"
    if asks_for(session, "vulkan_device"):
        yield "export COMBORUN_VULKAN_DEVICE=${COMBORUN_VULKAN_DEVICE-}"
    if family == "servers" or asks_for(session, "port"):
        yield f"export COMBORUN_PORT=${{COMBORUN_PORT:-{PORT_BY_HAND}}}"
    if display := session.display:
        by_hand = "${DISPLAY-:0}" if display.own else f":{display.by_gpu[0][1] if display.by_gpu else display.server}"
        yield f"export COMBORUN_DISPLAY=${{COMBORUN_DISPLAY-{by_hand}}}"
        yield "export DISPLAY=$COMBORUN_DISPLAY"
    for name, _ in session.servers:
        yield from _server(name)
    yield "export PYTHONUNBUFFERED=1"
    if session.threads:
        threads = max(1, session.threads // max(1, session.around.ranks))  # ranks have the session's cores together
        yield f"export COMBORUN_THREADS={threads}"
        yield from (f"export {name}=$COMBORUN_THREADS" for name in THREAD_VARIABLES)


def _gpus(session: Session) -> Iterator[str]:
    numbers = ",".join(map(str, range(session.gpus)))
    yield f"export COMBORUN_GPUS=${{COMBORUN_GPUS-{numbers}}} COMBORUN_GPU_COUNT=${{COMBORUN_GPU_COUNT-{session.gpus}}}"
    yield "export COMBORUN_GPU=${COMBORUN_GPUS%%,*}"
    if session.pin in PINNED:
        yield f"export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=${{CUDA_VISIBLE_DEVICES-{numbers}}}"


def _server(name: str) -> Iterator[str]:
    """The address of a model server; by hand, that of one of this run that is ready."""
    url, host, port = (server_variable(name, field) for field in SERVER_FIELDS)
    file = RunLayout("$run").server_url(f'{name}"{{,-gpu*}}')
    yield f'export {url}="${{{url}:-$(cat -- "{file} 2>/dev/null | head -n 1)}}"'
    yield f"export {port}=${{{url}##*:}} {host}=${{{url}#http://}}"
    yield f"export {host}=${{{host}%:*}}"


def _body(session: Session, secrets: tuple[str, ...]) -> Iterator[str]:
    """Everything after the values. With setup, the script itself goes on inside its container."""
    box, setup = session.around.container, says_something(session.setup)
    if box and setup:
        yield from ("", "if [[ ! ${COMBORUN_INSIDE-} ]]; then # outside the container, up to `fi`")
    else:
        yield ""
    yield from _surroundings(session)
    if box:
        yield from _container(session, box, secrets, inside=setup)
    if box and setup:
        yield from ('exec -- "${container[@]}"', "fi", "unset COMBORUN_INSIDE")
    yield "unset COMBORUN_FAILURE"
    if setup:
        yield from ("", *_SETUP.splitlines(), "setup() {")
        yield _SETUP_TRAPS
        yield from (*session.setup.rstrip("\n").split("\n"), "}", *_SETUP_CALL.splitlines())
        yield from _NO_PROXY.splitlines() if session.servers else ()
    yield from ("", *command_lines(session.command))
    if box and not setup:
        yield 'command=("${container[@]}" "${command[@]}")'
    yield from _RUN.splitlines()


def _surroundings(session: Session) -> Iterator[str]:
    yield '[[ -d $COMBORUN_OUTPUT_DIR ]] || mkdir -p -- "$COMBORUN_OUTPUT_DIR" ||'
    yield '  session_fail 73 "can\'t make $COMBORUN_OUTPUT_DIR" cannot_make path "$COMBORUN_OUTPUT_DIR"'
    yield from _files(session.around.files)
    box = session.around.container
    if not (box and box.runtime in OCI_RUNTIMES):
        yield from exports(_variables(session))
    yield from _links(session)
    if session.workdir and not session.around.links and not box:
        folder = session.workdir
        yield f'cd -- {folder} || session_fail 78 "there is no folder "{folder} no_folder path {folder}'


def _files(files: tuple[tuple[str, str], ...]) -> Iterator[str]:
    if not files:
        return
    yield f'export {FILES}="${{{FILES}:-$COMBORUN_OUTPUT_DIR/files}}"'
    yield f'mkdir -p -- "${FILES}" || session_fail 73 "can\'t make ${FILES}" cannot_make path "${FILES}"'
    if any(name.endswith(".json") for name, _ in files):
        yield _NO_JSON
    for name, text in files:
        quoted = shlex.quote(name)
        yield f"printf '%s' {text} >\"${FILES}\"/{quoted} ||"
        yield f'  session_fail 73 "can\'t write "{quoted} cannot_write path {quoted}'


def _links(session: Session) -> Iterator[str]:
    """A folder of links to all entries of another, hidden ones too."""
    if not (links := session.around.links):
        return
    source = links.source
    yield f"from={source} work=$COMBORUN_OUTPUT_DIR/work"
    yield '[[ -d $from ]] || session_fail 78 "there is no folder $from" no_folder path "$from"'
    yield 'mkdir -p -- "$work" || session_fail 73 "can\'t make $work" cannot_make path "$work"'
    without = "".join(f" ! -name {shlex.quote(pattern)}" for pattern in links.exclude)
    yield f'find "${{from%/}}/" -mindepth 1 -maxdepth 1{without} -exec ln -sfn -t "$work" -- {{}} + ||'
    yield '  session_fail 73 "can\'t make links in $work" cannot_link path "$work"'
    if session.results.files:  # a link that looks like a record would count as this attempt's record
        yield "shopt -s nullglob globstar"
        yield f"patterns=({' '.join(map(shlex.quote, session.results.files))})"
        yield 'for pattern in "${patterns[@]}"; do'
        yield "  # shellcheck disable=SC2206 # a pattern"
        yield '  IFS= files=("$COMBORUN_OUTPUT_DIR"/$pattern)'
        yield '  for file in "${files[@]}"; do'
        yield '    [[ ! -L $file || ${file%/*} != "$work" ]] || rm -f -- "$file"'
        yield from ("  done", "done", "shopt -u nullglob globstar", "unset IFS")
    if not session.around.container:
        yield 'cd -- "$work" || session_fail 78 "there is no folder $work" no_folder path "$work"'


def _container(session: Session, box: Container, secrets: tuple[str, ...], *, inside: bool) -> Iterator[str]:
    """The array that starts the container, up to the image."""
    colon = f"the run's folder has a colon in its name, which {box.runtime} can't mount"
    yield f'[[ $run != *:* ]] || session_fail 78 "{colon}" \\'
    yield f'  folder_breaks_mount path "$run" runtime {box.runtime}'
    linked = bool(session.around.links)
    mounts = ('"$run:$run"', *(('"$from:$from"',) if linked else ()), *box.mounts)
    place = '"$work"' if linked else session.workdir or ""
    if box.runtime in OCI_RUNTIMES:
        yield from _docker(session, box.runtime, mounts, place, secrets)
    else:
        yield from ("export COMBORUN_INSIDE=1", "container=(")
        yield f"  apptainer exec{' --nv' if session.gpus else ''}"
        yield from (f"  --bind={mount}" for mount in mounts)
        yield from ((f"  --pwd={place}", ")") if place else (")",))
    yield "container+=("
    yield from (f"  {option}" for option in box.options)
    yield f"  {box.image}"
    if inside:
        yield '  bash "$session_script"'
    yield ")"


def _docker(
    session: Session, runtime: str, mounts: tuple[str, ...], place: str, secrets: tuple[str, ...]
) -> Iterator[str]:
    """Such a container is not our child process and outlives its client, so it gets a name by which it is ended.

    In podman's user namespace another user would own its files; `docker` may be podman, too.
    """
    yield "(( UID == 0 )) || export PODMAN_USERNS=keep-id"
    yield "container=("
    yield f"  {runtime} run --rm --init"
    yield '  "--name=comborun-${COMBORUN_SESSION//\\//-}"'
    yield '  "--label=comborun=$COMBORUN_SESSION"'
    yield "  --network=host"
    yield '  "--user=$UID:${GROUPS[0]}"'
    granted = "${CUDA_VISIBLE_DEVICES:-$COMBORUN_GPUS}" if session.pin in PINNED else "$COMBORUN_GPUS"
    if session.gpus and runtime == "docker":
        yield f'  "--gpus=\\"device={granted}\\""'
    yield from (f"  --volume={mount}" for mount in mounts)
    if place:
        yield f"  --workdir={place}"
    yield ")"
    if session.gpus and runtime == "podman":  # by the names of the Container Device Interface
        yield f"gpus={granted}"
        yield 'for gpu in ${gpus//,/ }; do container+=("--device=nvidia.com/gpu=$gpu"); done'
    names = ["PYTHONUNBUFFERED", "CUDA_DEVICE_ORDER", "DISPLAY", "XAUTHORITY"]
    names += [*(THREAD_VARIABLES if session.threads else ()), *secrets]
    names += NO_PROXY if session.servers else []
    yield "export COMBORUN_INSIDE=1"
    yield 'names=("${!COMBORUN_@}" # handed on by name: no command line shows a secret'
    yield from (f"  {name}" for name in names)
    yield ")"
    yield 'for name in "${names[@]}"; do'
    yield '  [[ ! -v $name ]] || container+=("--env=$name")'
    yield "done"
    if session.variables:
        yield from ("container+=(", *(f"  --env={name}={value}" for name, value in _variables(session)), ")")
