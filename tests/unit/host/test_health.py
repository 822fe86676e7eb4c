"""A model server's readiness and health, and what its clients see of it: real servers on real ports."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from pathlib import Path

import pytest
from watched import Watched

from comborun.host.record import clients
from comborun.host.record.clients import listens_elsewhere, request, taken_by_another
from comborun.host.supervise.health import Health
from comborun.host.system import files, process
from comborun.host.verb_errors import Refusal
from comborun.rules import records
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.facts import Fact
from comborun.rules.host import Denial

PROGRAM = """
import http.server, os, sys, time
from pathlib import Path
where = Path(sys.argv[2])
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with (where / "asked").open("a") as file:
            file.write(f"{self.command} {self.path}\\n")
        self.send_response(503 if (where / "broken").exists() else 200)
        body = b'{"data": [{"id": "tiny"}]}'
        if not (where / "open").exists():
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_POST = do_GET
    def log_message(self, *_): pass
while (where / "slow").exists():
    time.sleep(0.02)
if (where / "titled").exists():  # as setproctitle overwrites the environment
    fields = open("/proc/self/stat", "rb").read().rpartition(b") ")[2].split()
    start, size = int(fields[47]), int(fields[48]) - int(fields[47])
    os.pwrite(os.open("/proc/self/mem", os.O_RDWR), bytes(size), start)
print("loaded", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_a_program_that_listens_on_another_address_is_named():
    with socket.socket(socket.AF_INET6) as one, socket.socket() as two:
        try:
            one.bind(("::1", 0))
        except OSError:
            pytest.skip("there is no IPv6 here")
        port = one.getsockname()[1]
        assert listens_elsewhere(port) == ""
        one.listen()
        assert listens_elsewhere(port) == f"[::1]:{port}"
        two.bind(("127.0.0.1", port))
        two.listen()
        assert listens_elsewhere(port) == ""


class Serving(Watched):
    """A server in a run."""

    def __init__(self, folder, *checks, marker="", **data):
        self.folder, self.port = folder, free_port()
        words = ["-c", PROGRAM, str(self.port), str(folder)]
        fields = {"data": {"ready": checks, **data}, "port": str(self.port)}
        super().__init__(folder / "run", "grid-1", "servers/tiny", Health, words, marker, **fields)

    @property
    def asked(self):
        file = self.folder / "asked"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def serve(tmp_path, monkeypatch):
    monkeypatch.setenv("COMBORUN_WATCH_S", "0.1")
    monkeypatch.setenv("COMBORUN_ANSWER_S", "1")
    started = []

    def start(*checks, **settings):
        started.append(Serving(tmp_path, *checks, **settings))
        return started[-1]

    yield start
    for one in started:
        one.end()


def told(path):
    return Path(path).read_text()


def test_a_server_is_ready_when_all_checks_hold_and_has_had_its_warm_up(serve, tmp_path):
    (tmp_path / "slow").touch()
    warm_up = ("POST", "/act", "application/json", 5, '{"warm": 1}')
    one = serve("line ^load", "http 200 /health", "http 200 /v1/models tiny", "tcp", warm_up=warm_up)
    one.until(lambda: one.watch.peak_kib > 0)
    assert not Path(one.at.ready).exists()
    (tmp_path / "slow").unlink()
    assert one.until(lambda: one.said) is None
    url = f"http://127.0.0.1:{one.port}"
    ready = files.read(one.at.ready)
    assert (ready["url"], ready["port"], ready["path"]) == (url, str(one.port), "/health")
    assert told(tmp_path / "run/servers/tiny/url") == f"{url}\n"
    assert one.asked[-1] == "POST /act"
    assert one.said == ["ready"]
    assert "comborun:" not in told(one.at.log)


@pytest.mark.parametrize("check", ["http 200 /v1/models large", "http 404 /", "line ^never said", "line ("])
def test_while_a_check_does_not_hold_the_server_is_not_ready(serve, check):
    one = serve(check, ready_within_s=1)
    assert one.until(lambda: False) == ("timed_out", fact(Evidence.NOT_READY, limit_s=1, check=check))
    assert files.read(one.at.verdict)["cause"] == "timed_out"


def test_a_server_that_refuses_is_unhealthy_and_then_given_up(serve, tmp_path):
    one = serve("http 200 /health", health_s=0.1, health_misses=3)
    one.until(lambda: one.said)
    (tmp_path / "broken").touch()
    one.until(lambda: Path(one.at.unhealthy).exists())
    (tmp_path / "broken").unlink()
    one.until(lambda: one.said == ["ready", "ready"])
    assert not Path(one.at.unhealthy).exists()
    (tmp_path / "broken").touch()
    silent = fact(Evidence.NO_ANSWER, path="/health", misses=3, every_s=0.1)
    assert one.until(lambda: False) == ("stalled", silent)


def test_a_server_that_somebody_stops_gets_no_verdict_and_wakes_nobody(serve):
    one = serve("http 200 /health", health_s=0.1, health_misses=2)
    one.until(lambda: one.said)
    pid, start, boot = (process.identity()[key] for key in ("pid", "start", "boot"))
    files.write(one.at.stop, [("pid", pid), ("start", start), ("boot", boot)])
    os.kill(one.child.pid, signal.SIGSTOP)
    assert select.select(one.watch.descriptors(), [], [], 20)[0], "its thread has a verdict"
    assert one.watch.look() is None
    assert not select.select(one.watch.descriptors(), [], [], 0)[0]


def test_a_server_that_sets_its_title_is_no_other_program(serve, tmp_path):
    (tmp_path / "titled").touch()
    one = serve("tcp")
    one.until(lambda: one.said == ["ready"])
    assert process.marker_of(one.child.pid) == ""


def test_a_port_that_another_program_has_taken_makes_no_server_ready(serve):
    one = serve("tcp", marker="nobody")
    assert one.until(lambda: False) == ("launch_failed", fact(Evidence.PORT_TAKEN, port=one.port))
    assert taken_by_another(one.port, [])
    assert not taken_by_another(one.port, [one.child.pid])
    assert not taken_by_another(free_port(), [])


def test_a_connection_that_stays_open_ends_with_its_time_and_was_an_answer(serve, tmp_path):
    (tmp_path / "open").touch()
    one = serve("tcp", health_s=0)
    one.until(lambda: one.said)
    answer = request(one.port, 2, "/health")
    assert (answer.status, answer.body) == (200, b'{"data": [{"id": "tiny"}]}')
    os.kill(one.child.pid, signal.SIGSTOP)
    began = time.monotonic()
    assert one.until(lambda: time.monotonic() > began + 1) is None, "no health checks: nothing ends what is ready"


# what clients see


def record(path, **fields):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(records.render(fields.items()))


def test_a_session_is_told_where_its_servers_are(tmp_path):
    grant = {"server_tiny-vla": "http://127.0.0.1:8001"}
    assert clients.environment(str(tmp_path), ["tiny-vla"], "0", grant) == {
        "COMBORUN_SERVER_TINY_VLA_URL": "http://127.0.0.1:8001",
        "COMBORUN_SERVER_TINY_VLA_HOST": "127.0.0.1",
        "COMBORUN_SERVER_TINY_VLA_PORT": "8001",
    }
    with pytest.raises(Refusal) as refused:
        clients.environment(str(tmp_path), ["tiny"], "0", {})
    assert refused.value.fact == Fact(Denial.NO_SERVER, server="tiny")
    for gpu in (0, 1):
        url = tmp_path / f"servers/tiny-gpu{gpu}/url"
        url.parent.mkdir(parents=True)
        url.write_text(f"http://127.0.0.1:800{gpu}\n")
    assert clients.environment(str(tmp_path), ["tiny"], "1,0", {})["COMBORUN_SERVER_TINY_PORT"] == "8001"
    assert clients.environment(str(tmp_path), ["tiny"], "7", {})["COMBORUN_SERVER_TINY_PORT"] == "8000"


def test_a_server_that_ended_or_whose_processes_are_gone_is_lost(tmp_path):
    at = tmp_path / "servers/tiny/attempt-2"
    pid, start, boot = (process.identity()[key] for key in ("pid", "start", "boot"))
    record(at / "claim", supervisor=pid, supervisor_start=start, boot=boot)
    (tmp_path / "id").write_text("grid-1\n")
    assert clients.lost(str(tmp_path), "tiny/2") is None
    record(at / "begin", supervisor=pid, supervisor_start="1", pid=pid, pid_start=start, boot=boot)
    assert clients.lost(str(tmp_path), "tiny/2") is None
    record(at / "begin", supervisor=pid, supervisor_start="1", pid=pid, pid_start="1", boot=boot)
    assert clients.lost(str(tmp_path), "tiny/2") == fact(Evidence.SERVER_ENDED, server="tiny")
    record(at / "end", cause="signal", code=137)
    assert clients.lost(str(tmp_path), "tiny/2") == fact(
        Evidence.SERVER_ENDED, server="tiny", cause="signal", exit="137"
    )
    assert clients.lost(str(tmp_path), "") is None


def test_a_server_that_answers_with_an_error_or_not_at_all_is_silent(serve, tmp_path):
    one = serve("http 200 /health")
    one.until(lambda: one.said)
    run = str(tmp_path / "run")
    assert clients.silent(run, "tiny/1", 1.0) is None
    (tmp_path / "broken").touch()
    assert clients.silent(run, "tiny/1", 1.0) == fact(Evidence.SERVER_SILENT, server="tiny")
    os.kill(one.child.pid, signal.SIGSTOP)
    assert clients.silent(run, "tiny/1", 0.2) == fact(Evidence.SERVER_SILENT, server="tiny")
    assert clients.silent(run, "tiny/7", 0.2) is None, "one that was never ready has nothing to be asked"
