"""Model servers from the user's desk: plan, launch, explain, logs, a grid that gets a server later, the end."""

from __future__ import annotations

import json
import shlex
import sys

from box import alive, until
from desk import Desk

from comborun.model.attempt import Begin
from comborun.rules.records import parse


def test_a_grid_gets_a_server_while_it_runs_and_who_asks_it_waits_for_it(desk: Desk) -> None:
    first = desk.grid(policies="[good]", environments="[maze]")
    desk.json("launch", first)
    (run,) = desk.runs
    go = desk.home / "go"
    waiting = f"until [[ -e {shlex.quote(str(go))} ]]; do sleep 0.1; done; exec "
    program = waiting + shlex.join([sys.executable, "-m", "http.server", "--bind", "127.0.0.1"]) + ' "$1"'
    command = json.dumps(f"bash -c {shlex.quote(program)} serve {{port}}")
    more = {
        "policies": "[good, served]",
        "environments": "[maze]",
        "servers": f"{{tiny: {{command: {command}, ready: /, warm_up: /, health: {{every: 1 s, misses: 3}}}}}}",
        "overrides": "[{when: {policy: served}, variables: {URL: '{server.tiny.url}/v1'}}]",
    }
    path = desk.grid(**more)
    assert "server tiny  1 session uses it" in desk.combo("plan", path).stdout
    assert "COMBORUN_PORT" in desk.combo("plan", path, "--script", "tiny").stdout
    amended = desk.json("launch", path)
    assert amended["run"] == run.name
    until((run / "servers/tiny/attempt-1/begin").exists, "the server has begun")
    until(lambda: "server_not_ready" in _waiting(desk), "its session waits for it")
    assert "waits for the server tiny, which is loading" in desk.combo("explain", "maze_served").stdout
    for verb in ("retry", "stop"):
        refused = desk.combo(verb, "tiny", "--run", run.name)
        assert (refused.returncode, "tiny is a model server" in refused.stderr) == (2, True)
    begin = Begin.parse((run / "servers/tiny/attempt-1/begin").read_text())
    go.touch()
    until((run / "dispatch/done").exists, "the run is done", 60)
    assert parse((run / "dispatch/done").read_text())["succeeded"] == "2"
    assert '"GET / HTTP/1.1" 200' in desk.combo("logs", "tiny").stdout
    assert not alive(begin.pid)
    assert desk.json("status")["servers"][0]["state"] == "ended"
    assert desk.json("explain", "tiny")["state"] == "ended"
    other = desk.grid(**{**more, "servers": "{tiny: {command: 'true {port}'}}", "episodes": "5"})
    refused = desk.combo("launch", other, "--changed", "rerun")
    assert "`tiny` differs from the one" in refused.stderr


def _waiting(desk: Desk) -> str:
    file = desk.runs[0] / "dispatch/waiting"
    return file.read_text() if file.exists() else ""
