"""Model servers of a grid: what is refused, what the plan has, what a session's work is, what a run is told of them."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import gridtext
import pytest
from gridtext import mistakes

from comborun.amendment.changes import amendment
from comborun.errors import UserError
from comborun.generate.bundle import queue, server_manifest, server_table, session_manifest
from comborun.generate.run_scripts import server_script
from comborun.model.plan import Plan
from comborun.planner.knowledge import pace_key

HEAD = "policies: {a: {url: '{server.vlm.url}/v1'}, b: {url: elsewhere}}\nenvironments: [x]\nepisodes: 1\n"
COMMAND = "command: run {policy.url} {episodes} {output_dir}\n"
VLM = "servers: {vlm: {command: 'serve {port}'}}\n"


def plan(text: str, gpus: int = 4) -> Plan:
    return gridtext.plan(text, gridtext.host(gpus))


def asked(laid: Plan) -> dict[str, tuple[str, ...]]:
    return {session.name: tuple(name for name, _ in session.servers) for session in laid.sessions}


def test_only_sessions_that_name_a_server_ask_it() -> None:
    assert asked(plan(HEAD + COMMAND + VLM)) == {"x_a": ("vlm",), "x_b": ()}
    for more in ("variables: {URL: '{server.vlm.port}'}\n", "setup: test $COMBORUN_SERVER_VLM_HOST\n"):
        assert asked(plan(HEAD + COMMAND + VLM + more)) == {"x_a": ("vlm",), "x_b": ("vlm",)}


def test_what_a_server_runs_is_a_part_of_the_work_of_those_that_ask_it_and_how_it_is_looked_after_is_not() -> None:
    def digests(text: str) -> tuple[str, ...]:
        return tuple(session.digest for session in plan(HEAD + COMMAND + text).sessions)

    asks, free = digests(VLM)
    again, also_free = digests("servers: {vlm: {command: 'serve --half {port}'}}\n")
    assert (asks == again, free == also_free) == (False, True)
    looked = (
        "servers: {vlm: {command: 'serve {port}', ready: /health, health: none, restarts: 0, resources: {cpus: 2}}}\n"
    )
    assert digests(looked) == (asks, free)
    half = "servers: {vlm: {command: 'serve --half {port}'}}\n"
    paces = [tuple(map(pace_key, plan(HEAD + COMMAND + text).sessions)) for text in (VLM, half, looked)]
    assert (paces[0][0] == paces[1][0], paces[0][1] == paces[1][1], paces[0] == paces[2]) == (False, True, True)


def test_the_host_is_told_of_every_server_and_who_asks_which() -> None:
    text = (
        HEAD + COMMAND + "resources: {gpus: 1, gpu_memory: 2 GiB}\nservers:\n  vlm:\n    command: serve {port} {gpu}\n"
    )
    text += "    per: gpu\n    resources: {gpu_memory: 4 GiB, cpus: 2}\n    use_gpus: [0, 3]\n    restarts: 5\n"
    text += "    variables: {DRI_PRIME: '{vulkan_device}'}\n"
    laid = plan(text)
    rows = [json.loads(row) for row in server_table(laid).splitlines()]
    asked = {"gpus": 1, "gpu_memory": 4096, "cpus": 2, "memory": 0, "per_gpu": 0, "per_host": 0, "restarts": 5}
    assert rows == [{"name": f"vlm-gpu{n}", "kind": "vlm", "gpu": n, "only": [n], **asked} for n in (0, 3)]
    assert [json.loads(row).get("servers") for row in queue(laid).splitlines()] == [["vlm"], None]
    assert 'serve "$COMBORUN_PORT" "$COMBORUN_GPU"' in re.sub(r"\s+", " ", server_script(laid.server_instances[0]))
    assert json.loads(server_manifest(laid.server_instances[0]))["draws"] == ["vulkan"]
    assert json.loads(session_manifest(laid.sessions[0]))["servers"] == ["vlm"]


def test_a_server_may_have_gpus_of_its_own_and_sessions_keep_to_theirs() -> None:
    own = "servers: {vlm: {command: 'serve {port}', resources: {gpus: 2}, use_gpus: [0, 1]}}\nuse_gpus: [2, 3]\n"
    laid = plan(HEAD + COMMAND + own + "resources: {gpus: 1}\n")
    assert laid.gpus == (0, 1, 2, 3)
    assert {session.request.only for session in laid.sessions} == {(2, 3)}
    assert laid.servers[0].request.only == (0, 1)


def test_a_server_that_leaves_no_gpu_for_its_clients_is_refused() -> None:
    alone = HEAD + COMMAND + "resources: {gpus: 1}\nservers: {vlm: {command: 'serve {port}', resources: {gpus: 1}}}\n"
    with pytest.raises(UserError, match="the servers have 1 of 1 GPUs alone, but a session needs 1"):
        plan(alone, gpus=1)
    assert plan(alone, gpus=2).gpus == (0, 1)
    with pytest.raises(UserError, match="is to use GPU 7"):
        plan(HEAD + COMMAND + "servers: {vlm: {command: 'serve {port}', resources: {gpus: 1}, use_gpus: 7}}\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("servers: {vlm: {}}\n", "`servers.vlm` has no `command`"),
        ("servers: {vlm: {command: serve}}\n", "is not told on which port to listen"),
        ("servers: {vlm: {command: 'serve {port} {gpu}'}}\n", "{gpu} has no value"),
        ("servers: {vlm: {command: 'serve {port}', ready: health}}\n", "`health` is not a path of a server"),
        ("servers: {vlm: {command: 'serve {port}', ready: {text: x}}}\n", "expected one check of the server"),
        ("servers: {pi_0: {command: 'serve {port}'}}\n", "`pi_0` is not the name of a server"),
        ("servers: {vlm-gpu0: {command: 'serve {port}'}}\n", "is a name that comborun uses itself"),
        ("servers: {vml: {command: 'serve {port}'}}\n", "`policies`: {server.vlm.url}: `servers` has no"),
        (
            "resources: {gpus: 1}\nservers: {vlm: {command: 'serve {port}', per: gpu}}\n",
            "shares its GPU with its clients",
        ),
    ],
)
def test_what_can_not_be_served_is_refused_with_its_place(text: str, told: str) -> None:
    command = COMMAND.replace("run", "run {server.vlm.url}") if "per: gpu" in text else COMMAND
    assert told in mistakes(HEAD + command + text)


def test_a_run_keeps_the_servers_that_it_has() -> None:
    laid = plan(HEAD + COMMAND + VLM)
    other = plan(HEAD + COMMAND + "servers: {vlm: {command: 'serve --half {port}'}}\n")
    with pytest.raises(UserError, match="`vlm` differs from the one"):
        list(amendment(laid, other, 1, ""))
    more = plan(HEAD + COMMAND + VLM.replace("{vlm:", "{other: {command: 'serve {port}'}, vlm:"))
    paths = [str(file.path) for file in amendment(replace(laid, servers=()), more, 1, "")]
    assert {"dispatch/servers.jsonl", "servers/other/session.sh", "servers/vlm/session.sh"} <= set(paths)
