"""Model servers with real processes: when they start, what is told, what follows when they die, and their end."""

from __future__ import annotations

import json
import shlex
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from box import PYTHON, Box, Script, alive, bash, kill, python, until
from nvidia import Gpus
from recorded import record

from comborun.model.attempt import Begin, End
from comborun.rules.facts import Fact
from comborun.rules.holds import HoldReason
from comborun.rules.records import parse
from comborun.rules.room.capacity import Request
from comborun.rules.room.waits import Wait

SERVER = """
import http.server, os, pathlib, time
where = pathlib.Path(os.environ["COMBORUN_RUN_DIR"])
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with (where / "asked").open("a") as file:
            file.write(f"{self.command} {self.path} {os.getpid()}\\n")
        broken = (where / "broken").exists() and os.environ["COMBORUN_ATTEMPT"] == "1"
        self.send_response(503 if broken else 200)
        body = b'{"data": [{"id": "tiny"}]}'
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_POST = do_GET
while (where / "slow").exists():
    time.sleep(0.02)
print("loaded", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["COMBORUN_PORT"])), Answer).serve_forever()
"""
"""answers everything with 200, once the file `slow` is gone; with 503 while `broken` is there, in its first attempt"""

CLIENT = """
import os, pathlib, sys, time, urllib.request
where = pathlib.Path(os.environ["COMBORUN_RUN_DIR"])
url = os.environ["COMBORUN_SERVER_TINY_URL"]
assert url == f"http://{os.environ['COMBORUN_SERVER_TINY_HOST']}:{os.environ['COMBORUN_SERVER_TINY_PORT']}"
urllib.request.urlopen(url + "/act", timeout=5).read()
pathlib.Path(os.environ["COMBORUN_OUTPUT_DIR"], "url").write_text(url)
while (where / "wait").exists():
    %s
    time.sleep(0.05)
"""
ASKING = CLIENT % "urllib.request.urlopen(url + '/act', timeout=5).read()"
"""fails when its server does not answer"""
QUIET = f"""
import sys, traceback
sys.excepthook = lambda *_: None
{ASKING}
"""
"""fails as well, and says nothing"""
STUBBORN = CLIENT % "pass"
"""does not notice"""

HTTP = {"ready": ("http 200 /health", "http 200 /v1/models tiny"), "health_s": 1, "misses": 2}

TINY = {"kind": "tiny", "gpus": 0, "restarts": 2}


def server(program: str = SERVER, **more: object) -> Script:
    return Script(
        (shlex.quote(PYTHON), "-c", shlex.quote(program)),
        count=0,
        more={**HTTP, **more},
    )


def client(program: str = ASKING) -> Script:
    return python(program, more={"servers": (("tiny", ""),)})


def lay_out(
    box: Box,
    sessions: Mapping[str, Script],
    servers: Mapping[str, Script],
    rows: Mapping[str, Mapping[str, object]] | None = None,
    **limits: object,
) -> None:
    """A run whose sessions with `servers` ask them; rows: what servers.jsonl says beside the name."""
    box.plan(dict(sessions), policy={"retry_server_lost": 2, "wait_server_lost_ms": 50}, attempts=3, **limits)  # type: ignore[arg-type]
    box.environment.update(
        {
            "COMBORUN_WATCH_S": "0.2",
            "COMBORUN_SERVER_GRACE_S": "1",
            "COMBORUN_ANSWER_S": "1",
            "COMBORUN_SERVER_WAIT_MS": "50",
        }
    )
    for name, script in servers.items():
        box.lay(name, script, "servers")
    asked = {name: "servers" in script.more for name, script in sessions.items()}
    queue = [json.loads(line) for line in (box.directory / "dispatch/queue.jsonl").read_text().splitlines()]
    box.write("dispatch/queue.jsonl", "".join(record(**row, servers=["tiny"] * asked[row["name"]]) for row in queue))
    said = {name: (rows or {}).get(name, TINY) for name in servers}
    box.write("dispatch/servers.jsonl", "".join(record(name=name, **row) for name, row in said.items()))


def at(box: Box, number: int = 1, name: str = "tiny") -> Path:
    return box.directory / "servers" / name / f"attempt-{number}"


def begun(box: Box, number: int = 1, name: str = "tiny") -> Begin:
    until((at(box, number, name) / "begin").exists, f"the server has begun; this happened:\n{box.happened}")
    return Begin.parse((at(box, number, name) / "begin").read_text())


def ready(box: Box, number: int = 1, name: str = "tiny") -> Mapping[str, str]:
    until((at(box, number, name) / "ready").exists, f"the server is ready; this happened:\n{box.happened}")
    return parse((at(box, number, name) / "ready").read_text())


def ended(box: Box, number: int = 1, name: str = "tiny") -> End:
    until((at(box, number, name) / "end").exists, f"the server has ended; this happened:\n{box.happened}")
    return End.parse((at(box, number, name) / "end").read_text())


def state_told(box: Box) -> str:
    """The probe's word for where the server is."""
    return next(str(one["state"]) for one in box.look()["servers"] if one["name"] == "tiny")


def test_sessions_that_ask_a_server_wait_until_it_is_ready_and_others_do_not(box: Box) -> None:
    warm = ("POST", "/act", "application/json", 5, '{"warm": 1}')
    lay_out(box, {"env_a": client(), "env_b": client(), "env_free": bash("true")}, {"tiny": server(warm_up=warm)})
    box.write("slow", "")
    assert box.start().returncode == 0
    box.ended("env_free")
    begun(box)
    told = Fact(Wait.SERVER_NOT_READY, server="tiny")
    until(lambda: box.waiting.get("env_a") == told, "it is told what they wait for")
    assert state_told(box) == "loading"
    assert box.begin("env_a") is None
    (box.directory / "slow").unlink()
    box.await_done()
    url = ready(box)["url"]
    assert [path.read_text() for name in ("env_a", "env_b") for path in box.outputs(name)] == [url, url]
    asked = (box.directory / "asked").read_text().splitlines()
    assert [line.rpartition(" ")[0] for line in asked].index("POST /act") < [
        line.rpartition(" ")[0] for line in asked
    ].index("GET /act"), "the warm-up comes before the first client"
    assert ended(box).cause == "stopped"
    assert box.done["succeeded"] == "3"
    assert not box.marked()
    assert [line.split()[0] for line in box.told(" servers/tiny")][-1] == "ended"


def test_a_server_that_was_killed_comes_again_and_its_clients_count_as_server_lost(box: Box) -> None:
    clients = {"env_a": client(), "env_quiet": client(QUIET), "env_stubborn": client(STUBBORN)}
    lay_out(box, clients, {"tiny": server()})
    box.write("wait", "")
    box.start()
    until(lambda: all(box.outputs(name) for name in clients), "all ask it")
    kill(begun(box).pid, signal.SIGKILL)
    first = [box.ended(name) for name in clients]
    assert [(end.failure, end.cause) for end in first] == [("server_lost", "server_lost")] * 3
    # its end is written a moment after it has gone
    gone = ("its server tiny ended (signal, code 137)", "its server tiny does not answer")
    assert all(any(one in end.note for one in gone) for end in first), [end.note for end in first]
    assert gone[0] in first[-1].note, "the watch ends who does not notice, when it sees the end"
    ready(box, 2)
    (box.directory / "wait").unlink()
    box.await_done()
    assert box.done["succeeded"] == "3"
    assert box.ended("env_a", 2).cause == "exited"


def test_a_server_that_hangs_is_ended_after_several_misses_and_comes_again(box: Box) -> None:
    lay_out(box, {"env_a": client(), "env_stubborn": client(STUBBORN)}, {"tiny": server()})
    box.write("wait", "")
    box.start()
    until(lambda: box.outputs("env_a") and box.outputs("env_stubborn"), "both ask it")
    kill(begun(box).pid, signal.SIGSTOP)
    until((at(box) / "unhealthy").exists, "that it does not answer is on record")
    assert state_told(box) == "silent"
    end = ended(box)
    assert (end.cause, "did not answer /health: 2 looks in a row" in end.note) == ("stalled", True)
    assert {box.ended(name).failure for name in ("env_a", "env_stubborn")} == {"server_lost"}
    (box.directory / "wait").unlink()
    box.await_done(40)
    assert box.done["succeeded"] == "2"


def test_without_a_server_that_starts_the_rest_is_done_and_the_run_is_halted(box: Box) -> None:
    lay_out(
        box, {"env_a": client(), "env_free": bash("true")}, {"tiny": server(program="import sys; sys.exit('no GPU')")}
    )
    box.start()
    until(lambda: box.fields("dispatch/hold"), "the run is halted", 40)
    assert box.hold_reason
    told = {"server": "tiny", "times": 3, "cause": "error", "exit_code": "1"}
    assert told.items() <= {**box.hold_reason.fields, "cause": "error"}.items()
    assert box.hold_reason.code == HoldReason.SERVER_ENDS
    assert box.ended("env_free").cause == "exited"
    assert (box.begin("env_a"), "no GPU" in (at(box, 3) / "log").read_text()) == (None, True)
    until(lambda: not box.dispatcher_lives, "the dispatcher leaves")
    assert not at(box, 4).exists()
    box.lay("tiny", server(), "servers")
    box.program("control", "resume")
    box.start()
    box.await_done()
    assert (box.done["succeeded"], ended(box, 4).cause) == ("2", "stopped")


@pytest.mark.parametrize("moment", ["loading", "ready"])
def test_the_next_dispatcher_adopts_servers_and_there_are_never_two(box: Box, moment: str) -> None:
    lay_out(box, {"env_a": client()}, {"tiny": server()})
    box.write("wait", "")
    if moment == "loading":
        box.write("slow", "")
    box.start()
    pid = begun(box).pid
    if moment == "ready":
        until(lambda: box.outputs("env_a"), "it asks")
    box.kill_dispatcher()
    (box.directory / "slow").unlink(missing_ok=True)
    ready(box)
    box.start()
    until(lambda: box.outputs("env_a"), "it asks")
    (box.directory / "wait").unlink()
    box.await_done()
    assert ended(box).cause == "stopped"
    assert not at(box, 2).exists()
    assert not alive(pid)


def test_a_dispatcher_killed_between_the_grant_and_the_window_is_followed_by_one_that_starts_it(box: Box) -> None:
    lay_out(box, {"env_a": client()}, {"tiny": server()})
    (at(box) / "out").mkdir(parents=True)
    (at(box) / "grant").write_text('{"gpus": "", "server": "tiny"}')
    box.start()
    box.await_done()
    assert not at(box, 2).exists()


def test_stop_ends_clients_first_and_then_their_servers(box: Box) -> None:
    lay_out(box, {"env_a": client(), "env_b": client()}, {"tiny": server()})
    box.write("wait", "")
    box.start()
    until(lambda: box.outputs("env_a") and box.outputs("env_b"), "both ask it")
    done = box.stop()
    assert done.returncode == 0, done.stdout + done.stderr
    assert {box.ended(name).cause for name in box.names} == {"stopped"}
    assert ended(box).cause == "stopped"
    assert "the server tiny: stopped" in done.stdout
    assert "INT to 1 server, " in done.stderr
    assert ended(box).ended > max(box.ended(name).ended for name in box.names)
    assert not box.marked()


def test_an_orphaned_server_is_still_watched(box: Box) -> None:
    lay_out(box, {"env_a": client(STUBBORN)}, {"tiny": server()})
    box.write("wait", "")
    box.start()
    until(lambda: box.outputs("env_a"), "it asks")
    claim = parse((at(box) / "claim").read_text())
    kill(int(claim["supervisor"]), signal.SIGKILL)
    kill(begun(box).pid, signal.SIGSTOP)
    ended(box)
    assert box.ended("env_a").failure == "server_lost"
    (box.directory / "wait").unlink()
    box.await_done(40)
    assert box.done["succeeded"] == "1"


def test_a_server_is_admitted_before_sessions_that_would_take_its_room(box: Box, tmp_path: Path) -> None:
    gpus = Gpus(box, tmp_path / "bin")
    gpus.cards(10000)
    gpus.taken(5000)  # by others: the server has to wait, and small sessions need not
    holding = bash(f"hold-gpu 6000 --for 60 & exec {shlex.quote(PYTHON)} -c {shlex.quote(SERVER)}")
    started = replace(server(), command=holding.command)
    small, big = (bash(f"hold-gpu {mib} --for 0", gpus=1, request=Request(gpu_memory=mib)) for mib in (1000, 6000))
    rows = {"tiny": {"kind": "tiny", "gpus": 1, "gpu_memory": 6000, "restarts": 2}}
    sessions = {"env_big": big, "env_small": small, "env_a": client()}
    lay_out(box, sessions, {"tiny": started}, rows, gpus="0")
    box.start()
    assert box.ended("env_small").cause == "exited"
    until(lambda: box.waits_for("tiny") == "gpu_memory", "it is told what the server waits for")
    assert (box.begin("env_big"), at(box).exists()) == (None, False)
    gpus.taken(0)
    begun(box)
    assert box.begin("env_big") is None
    box.await_done(40)
    assert box.done["succeeded"] == "3"
    assert gpus.peak(0) <= 10000
    assert (box.ended("env_big").started or 0) > ended(box).ended


def test_a_session_gets_the_server_of_its_gpu(box: Box) -> None:
    rows = {f"tiny-gpu{gpu}": {**TINY, "gpu": gpu, "gpus": 1, "only": [gpu]} for gpu in (0, 1)}
    sessions = {f"env_{index}": python(ASKING, more={"servers": (("tiny", ""),)}, gpus=1) for index in range(4)}
    lay_out(box, sessions, {name: server() for name in rows}, rows, gpus="0,1", per_gpu=3)
    box.start()
    box.await_done()
    urls = {gpu: ready(box, 1, f"tiny-gpu{gpu}")["url"] for gpu in (0, 1)}
    assert {begun(box, 1, f"tiny-gpu{gpu}").gpus for gpu in (0, 1)} == {"0", "1"}
    for name in box.names:
        gpu = int(box.begun(name).gpus)
        assert box.outputs(name)[0].read_text() == urls[gpu]
    assert box.done["succeeded"] == "4"
