"""The presets of model servers with replicas of their programs, faults included: one run, a client for each server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from box import until
from desk import CHECKOUT, Desk, desk_at
from nvidia import Gpus

from comborun.rules.records import parse
from comborun.words.endings import said

if TYPE_CHECKING:
    from box import Box

REPLICAS = CHECKOUT / "tests" / "replicas"
MODEL = "Qwen/Qwen2.5-VL-7B-Instruct"
EPISODES = 6
FAULTS = {"good": "", "dies": "dies=3", "full": "full", "taken": "taken", "stalls": "stalls"}
"""what is wrong with a server at its first start; its name is the policy's, too"""

CLIENT = """
import json, os, socket, sys, urllib.error, urllib.request
url, model, first, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])

def ask(episode):
    if url.startswith("tcp://"):
        host, port = url.removeprefix("tcp://").split(":")
        with socket.create_connection((host, int(port)), timeout=5) as server:
            return server.recv(1)[0] == 255
    if url.endswith("/healthz"):
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.read() == b"OK\\n"
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": f"episode {episode}"}]}).encode()
    request = urllib.request.Request(url + "/chat/completions", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=3) as answer:
            return f"episode {episode}" in json.load(answer)["choices"][0]["message"]["content"]
    except urllib.error.HTTPError as error:
        sys.exit(f"openai.InternalServerError: Error code: {error.code} - {error.read().decode()}")

with open(os.path.join(os.environ["COMBORUN_OUTPUT_DIR"], "episodes.jsonl"), "a") as records:
    for episode in range(first, first + count):
        record = {"policy": sys.argv[5], "environment": sys.argv[6], "episode": episode, "success": ask(episode)}
        print(json.dumps(record), file=records, flush=True)
"""
"""an episode is a question; it fails at the first that gets no answer, and repeats what its server said"""


def grid(client: Path) -> str:
    words = "{policy.url} {policy.model} {first_episode} {episodes} {policy} {environment}"
    policies = {name: {"url": f"{{server.{name}.url}}/v1", "model": MODEL} for name in FAULTS}
    servers: dict[str, dict[str, object]] = {
        name: {
            "preset": "vllm",
            "attributes": {"model": MODEL},
            "setup": f"[[ $COMBORUN_ATTEMPT != 1 ]] || export REPLICA='{fault}'",
            "health": {"every": "1 s", "misses": 2},
        }
        for name, fault in FAULTS.items()
    }
    policies["groot"] = {"url": "tcp://{server.groot.host}:{server.groot.port}", "model": "none"}
    policies["pi"] = {"url": "{server.pi.url}/healthz", "model": "none"}
    servers["groot"] = {"preset": "gr00t-server", "attributes": {"model": "m", "tag": "GR1"}}
    servers["pi"] = {"preset": "openpi-server", "attributes": {"config": "pi05_libero", "directory": "gs://a b/pi05"}}
    return json.dumps(
        {
            "command": f"'{sys.executable}' '{client}' {words}",
            "policies": policies,
            "environments": ["home"],
            "episodes": EPISODES,
            "servers": servers,
            "retry": {"server_lost": {"times": 2, "wait": "3 s"}},
            "limits": {"stagger": "0 s", "warm_up": "0 s", "parallel": 7},
            "poll": 0.3,
        }
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a run at its end."""
    with desk_at(tmp_path_factory.mktemp("servers") / "a home") as desk:
        furnish(desk)
        path = desk.home / "grid.yaml"
        path.write_text(grid(desk.home / "client.py"))
        launched = Path(desk.json("launch", path)["directory"])
        until((launched / "dispatch/done").exists, "the run has ended", 60)
        yield launched


def furnish(desk: Desk) -> None:
    """A GPU for each server, and the replicas where the presets look for their programs."""
    programs, groot = desk.home / "bin", desk.home / "Isaac-GR00T/gr00t/eval"
    Gpus(cast("Box", desk), programs).cards(*[81559] * (len(FAULTS) + 2))
    for name, words in {"python": "", "vllm": f' "{REPLICAS}/vllm_serve.py"'}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n')
        (programs / name).chmod(0o755)
    groot.mkdir(parents=True)
    for path in ("scripts/serve_policy.py", "openpi/serving/websocket_policy_server.py"):
        (desk.home / "openpi" / path).parent.mkdir(parents=True)
        (desk.home / "openpi" / path).symlink_to(REPLICAS / "openpi_server.py")
    (programs / "uv").write_text('#!/bin/sh\nshift\nexec "$@"\n')  # uv run python ...
    (programs / "uv").chmod(0o755)
    (groot / "run_gr00t_server.py").symlink_to(REPLICAS / "gr00t_server.py")
    (desk.home / "client.py").write_text(CLIENT)
    knobs = {"COMBORUN_SERVER_WAIT_MS": "50", "COMBORUN_SERVER_GRACE_S": "1", "COMBORUN_ANSWER_S": "2"}
    desk.environment |= {**knobs, "COMBORUN_WATCH_S": "0.5", "COMBORUN_STOP_INT_S": "1", "COMBORUN_GRACE_S": "1"}


def attempts(folder: Path) -> list[dict[str, str]]:
    """The end records of a session or a server, first attempt first."""
    return [dict(parse(file.read_text())) for file in sorted(folder.glob("attempt-*/end"))]


def asked(run: Path, policy: str) -> list[int]:
    """The episodes that have a record, in the order in which they were answered."""
    files = sorted(run.glob(f"sessions/home_{policy}/attempt-*/out/episodes.jsonl"))
    records = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert all(record["success"] for record in records)
    return [record["episode"] for record in records]


def server_log(run: Path, name: str, attempt: int = 1) -> str:
    return (run / f"servers/{name}/attempt-{attempt}/log").read_text()


def test_a_preset_s_server_is_ready_and_answers_its_client(run: Path) -> None:
    lines = {
        "good": "Application startup complete.",
        "groot": "Server is ready and listening on tcp://127.0.0.1:",
        "pi": "server listening on 127.0.0.1:",
    }
    for server, line in lines.items():
        assert asked(run, server) == list(range(EPISODES))
        assert [end["cause"] for end in attempts(run / f"servers/{server}")] == ["stopped"]
        assert line in server_log(run, server)


def test_vllm_is_ready_only_when_its_model_is_there(run: Path) -> None:
    log = server_log(run, "good")
    looks = [log.index(f'"GET {path} HTTP/1.1" 200') for path in ("/health", "/v1/models")]
    assert max(looks) < log.index('"POST /v1/chat/completions HTTP/1.1" 200')


def test_a_vllm_whose_engine_died_is_started_again_and_its_client_ends_what_it_began(run: Path) -> None:
    first, second = attempts(run / "servers/dies")
    assert (first["cause"], second["cause"]) == ("stalled", "stopped")
    assert "did not answer /health" in said(first)
    log = server_log(run, "dies")
    assert "EngineDeadError" in log
    assert '"GET /health HTTP/1.1" 503' in log
    assert asked(run, "dies") == list(range(EPISODES))
    ends = attempts(run / "sessions/home_dies")
    assert [end["class"] for end in ends] == [*["server_lost"] * (len(ends) - 1), ""]


def test_a_vllm_that_can_not_start_is_started_again_before_any_client(run: Path) -> None:
    failures = {
        "full": ("gpu_memory", "ValueError: Free memory on device cuda:0 (10.0/79.1 GiB)"),
        "taken": ("launch_failed", "[Errno 98] address already in use"),
    }
    for server, (kind, line) in failures.items():
        first, second = attempts(run / f"servers/{server}")
        assert line in server_log(run, server)
        assert (first["class"], second["cause"]) == (kind, "stopped")
        assert asked(run, server) == list(range(EPISODES))
        assert len(attempts(run / f"sessions/home_{server}")) == 1


def test_a_vllm_that_stalls_is_healthy_and_its_client_ends_by_its_own_limit(run: Path) -> None:
    assert [end["cause"] for end in attempts(run / "servers/stalls")] == ["stopped"]
    assert asked(run, "stalls") == []
    assert [end["class"] for end in attempts(run / "sessions/home_stalls")] == ["error"]
