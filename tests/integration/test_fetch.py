"""fetch.sh and the mirror together, over a transport that is real and is counted."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from comborun.errors import HostError
from comborun.library import scripts_directory
from comborun.transport import Completed
from remote.fetch.answer import Skipped
from remote.fetch.transfer import Fetched, fetch
from remote.local import LocalTransport

OLD = 1_700_000_000


class Link(LocalTransport):
    """The way to this machine; counts what travels, and cuts it when told to."""

    def __init__(self, cut: int | None = None) -> None:
        self.cut = cut
        self.sent: list[int] = []
        self.received: list[int] = []

    def run(self, script: str, *args: str, stdin: bytes = b"", **options: Any) -> Completed:
        done = super().run(script, *args, stdin=stdin, **options)
        assert done.stderr == b""
        self.sent.append(len(stdin) + len(script) + sum(map(len, args)))
        self.received.append(len(done.stdout))
        return Completed(done.code, done.stdout[: self.cut], done.stderr)


@dataclass
class Run:
    """A run directory as the host has it."""

    path: Path
    names: list[str] = field(default_factory=list)

    def put(self, name: str, content: str | bytes = "") -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def attempt(self, name: str, results: dict[str, str | bytes], number: int = 1, rules: str = "*.jsonl") -> Path:
        if name not in self.names and name != "after":
            self.names.append(name)
            self.put("dispatch/queue.tsv", "".join(f"{each}\t0\n" for each in self.names))
        at = f"sessions/{name}/attempt-{number}"
        claim = "".join(f"results={rule}\n" for rule in rules.split("|"))
        self.put(f"{at}/claim", f"supervisor=1\ncount=9\nsuccess=x\n{claim}{'':1000}\n")
        self.put(f"{at}/grant", "gpus=\n")
        self.put(f"{at}/begin", "attempt=1\nstarted=1.5\n")
        self.put(f"{at}/log", "much\n" * 1000)
        for leaf, content in results.items():
            self.put(f"{at}/out/{leaf}", content)
        return self.path / at

    def end(self, name: str, number: int = 1) -> None:
        self.put(f"sessions/{name}/attempt-{number}/end", "attempt=1\ncause=exited\n")

    def files(self, *ignored: str) -> dict[str, bytes]:
        return contents(self.path, "lib/", "/log", "/lock", *ignored)


def contents(directory: Path, *ignored: str) -> dict[str, bytes]:
    files = {path.relative_to(directory).as_posix(): path for path in directory.rglob("*") if path.is_file()}
    return {
        name: path.read_bytes()
        for name, path in files.items()
        if name != ".fetch.lock" and not any(part in f"{name}/" or name.endswith(part) for part in ignored)
    }


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = Run(tmp_path / "box with space" / "grid-20260101T000000Z-abcd")
    shutil.copytree(scripts_directory() / "lib", run.path / "lib")
    run.put("id", "grid-20260101T000000Z-abcd\n")
    run.put("digest", "digest=1\n")
    run.put("run.json", "{}\n")
    run.put("plan-1.json", "{}\n")
    run.put("plan-2.json", "{}\n")
    run.put("grid.yaml", "name: grid\n")
    run.put("dispatch/slots", "4\n")
    run.put("dispatch/multiplexer", "tmux\n")
    run.put("dispatch/journal", "1.0 launch\n")
    run.put("dispatch/usage.tsv", "1.0\t0.5\t2\t9\t4\n")
    run.attempt("e_p", {"a.jsonl": '{"episode": 0}\n'})
    return run


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    return tmp_path / "data" / "mirror"


def get(run: Run, mirror: Path, link: Link | None = None, **options: Any) -> Fetched:
    return fetch(link or Link(), str(run.path), mirror, **options)


def test_a_mirror_has_the_records_and_results_and_nothing_else(run: Run, mirror: Path) -> None:
    run.end("e_p")
    run.put("sessions/e_p/attempt-1/out/video.mp4", b"\0" * 1000)
    run.put("sessions/e_p/attempt-1/out/.draft.jsonl", "half")
    run.put("sessions/e_p/lock")
    run.put("dispatch/done", "at=1\n")
    link = Link()
    fetched = get(run, mirror, link)
    assert contents(mirror) == run.files("video.mp4", ".draft.jsonl")
    assert fetched == Fetched(len(contents(mirror)), sum(map(len, contents(mirror).values())), 0)
    assert len(link.sent) == 1


def test_the_second_time_nothing_travels(run: Run, mirror: Path) -> None:
    run.attempt("e_q", {"a.jsonl": "{}\n"})
    run.end("e_p")
    get(run, mirror)
    link = Link()
    assert get(run, mirror, link) == Fetched(0, 0, 0)
    assert (len(link.received), link.received[0] < 60) == (1, True)


def test_eight_hundred_sessions_that_have_ended_cost_one_small_round_trip(run: Run, mirror: Path) -> None:
    for number in range(800):
        name = f"environment-{number}_policy"
        at = f"sessions/{name}/attempt-1"
        run.names.append(name)
        run.put(f"{at}/claim", "count=1\nresults=*.jsonl\n")
        run.put(f"{at}/out/a.jsonl", f'{{"episode": {number}}}\n')
        run.put(f"{at}/end", "cause=exited\n")
    run.put("dispatch/queue.tsv", "".join(f"{name}\t0\n" for name in run.names))
    first = Link()
    assert get(run, mirror, first).files >= 2400
    assert len(first.sent) == 1
    link = Link()
    before = time.monotonic()
    assert get(run, mirror, link).files == 0
    assert time.monotonic() - before < 10
    assert (len(link.sent), link.sent[0] < 4000, link.received[0] < 60) == (1, True, True)


@pytest.mark.parametrize(
    "leaf",
    ["new\nline.jsonl", 'it\'s "$(touch x)" `id` \\.jsonl', "$x [a] *?.jsonl", "%0A%25.jsonl", "-n.jsonl", "ä .jsonl"],
)
def test_any_name_and_any_bytes_arrive_unchanged(run: Run, mirror: Path, leaf: str) -> None:
    run.attempt("e_q", {leaf: bytes(range(256)) * 9 + b"\0over 0\0", f"deep/{leaf}": b""}, rules="**/*.jsonl|*.jsonl")
    for growing in (False, True):
        if growing:
            with (run.path / "sessions/e_q/attempt-1/out" / leaf).open("ab") as file:
                file.write(b"\r\n\0more")
        get(run, mirror)
        expected = run.files()
        expected.pop(f"sessions/e_q/attempt-1/out/deep/{leaf}")  # an empty file is no result
        assert contents(mirror) == expected
        assert get(run, mirror) == Fetched(0, 0, 0)
    run.end("e_q")
    get(run, mirror)
    link = Link()
    assert get(run, mirror, link).files == 0
    assert len(link.sent) == 1


def test_names_that_are_no_text_arrive_too(run: Run, mirror: Path) -> None:
    folder = os.fsencode(run.attempt("e_q", {"a.jsonl": "1"}) / "out")
    Path(os.fsdecode(folder + b"/\xff\xfe.jsonl")).write_bytes(b"{}\n")
    get(run, mirror)
    assert contents(mirror) == run.files()
    assert get(run, mirror).files == 0


def test_of_a_file_that_grows_only_the_new_bytes_travel(run: Run, mirror: Path) -> None:
    result = run.put("sessions/e_p/attempt-1/out/a.jsonl", b"x" * 100_000)
    get(run, mirror)
    with result.open("ab") as file:
        file.write(b"{}\n")
    with (run.path / "dispatch/journal").open("a") as file:
        file.write("2.0 more\n")
    with (run.path / "dispatch/usage.tsv").open("a") as file:
        file.write("2.0\t0.7\t2\t9\t4\n")
    assert get(run, mirror) == Fetched(3, 26, 0)
    assert contents(mirror) == run.files()


def test_a_file_that_was_written_anew_and_is_longer_comes_whole(run: Run, mirror: Path) -> None:
    result = run.put("sessions/e_p/attempt-1/out/a.jsonl", b"x" * 1000)
    get(run, mirror)
    result.write_bytes(b"y" * 2000)
    link = Link()
    get(run, mirror, link)
    assert contents(mirror) == run.files()
    assert len(link.sent) == 2


def test_a_file_of_the_same_size_that_was_written_later_comes_again(run: Run, mirror: Path) -> None:
    run.end("e_p")
    get(run, mirror)
    result = run.put("sessions/e_p/attempt-1/out/a.jsonl", '{"episode": 1}\n')
    os.utime(result, (OLD, OLD))
    assert get(run, mirror).files == 1
    assert contents(mirror) == run.files()


def test_a_file_that_is_shorter_now_is_shorter_in_the_mirror(run: Run, mirror: Path) -> None:
    result = run.put("sessions/e_p/attempt-1/out/a.jsonl", b"long" * 100)
    get(run, mirror)
    result.write_bytes(b"{}\n")
    get(run, mirror)
    assert contents(mirror) == run.files()


def test_a_result_of_an_ended_attempt_that_changed_is_noticed(run: Run, mirror: Path) -> None:
    run.end("e_p")
    get(run, mirror)
    with (run.path / "sessions/e_p/attempt-1/out/a.jsonl").open("a") as file:
        file.write("{}\n")
    link = Link()
    assert get(run, mirror, link) == Fetched(1, 3, 0)
    assert len(link.sent) == 2


def test_new_attempts_and_an_after_session_are_found(run: Run, mirror: Path) -> None:
    run.end("e_p")
    get(run, mirror)
    run.attempt("e_p", {"a.jsonl": "{}\n"}, number=2)
    run.attempt("after", {}, rules="")
    run.end("after")
    get(run, mirror)
    assert contents(mirror) == run.files()


def test_an_end_that_a_mirror_holds_means_that_its_results_are_there(run: Run, mirror: Path) -> None:
    """However the stream is cut: first the results, then the end, and `done` after all ends."""
    for number in range(4):
        run.attempt(f"s{number}_p", {f"{leaf}.jsonl": b"{}\n" * 500 for leaf in "ab"})
        run.end(f"s{number}_p")
    run.end("e_p")
    run.put("dispatch/done", "at=1\n")
    link = Link()
    get(run, mirror.with_name("whole"), link)
    for cut in range(16, link.received[0], 997):
        here = mirror / str(cut)
        with pytest.raises(HostError, match=r"cut off|could not be fetched"):
            get(run, here, Link(cut))
        held = contents(here)
        assert held.items() <= run.files().items(), "whole files only"
        ends = [name for name in held if name.endswith("/end")]
        for end in ends:
            assert {f"{end[:-3]}out/{path.name}" for path in (run.path / end).with_name("out").iterdir()} <= held.keys()
        if "dispatch/done" in held:
            assert len(ends) == 5
        get(run, here)
        assert contents(here) == run.files()


def test_what_ends_while_the_host_looks_has_not_ended_yet(run: Run, mirror: Path) -> None:
    with (run.path / "lib/attempt/attempt.sh").open("a") as library:
        library.write("""
eval "$(declare -f attempt::rules | sed '1s/.*/rules_as_they_are ()/')"
attempt::rules() { # the session and the whole run end at this very moment
  printf 'cause=exited\\n' >"$1/end"
  printf 'at=1\\n' >dispatch/done
  rules_as_they_are "$@"
}
""")
    get(run, mirror)
    assert not {"dispatch/done", "sessions/e_p/attempt-1/end"} & contents(mirror).keys()
    get(run, mirror)
    assert {"dispatch/done", "sessions/e_p/attempt-1/end"} <= contents(mirror).keys()


def test_a_limit_is_kept_by_asking_again_and_a_big_file_comes_in_parts(run: Run, mirror: Path) -> None:
    big = os.urandom(300_000)
    run.attempt("e_q", {"big.jsonl": big, "small.jsonl": b"{}\n" * 5000})
    link = Link()
    fetched = get(run, mirror, link, limit=64_000)
    assert contents(mirror) == run.files()
    assert fetched.files == len(contents(mirror))
    assert len(link.sent) >= 6
    assert max(link.received) < 70_000
    with (run.path / "sessions/e_q/attempt-1/out/big.jsonl").open("ab") as file:
        file.write(big)
    assert get(run, mirror, limit=64_000) == Fetched(1, 300_000, 0)
    assert contents(mirror) == run.files()


def test_a_big_file_that_vanishes_between_two_parts_is_given_up(run: Run, mirror: Path) -> None:
    result = run.attempt("e_q", {"big.jsonl": b"x" * 200_000}) / "out/big.jsonl"

    class Vanishing(Link):
        def run(self, script: str, *args: str, **options: Any) -> Completed:
            done = super().run(script, *args, **options)
            if len(self.sent) == 2:
                result.unlink()
            return done

    get(run, mirror, Vanishing(), limit=50_000)
    assert contents(mirror) == run.files()
    assert not list(mirror.rglob(".fetch-*"))


def test_files_that_are_written_all_the_time_are_taken_as_far_as_they_were(run: Run, mirror: Path) -> None:
    at = run.attempt("e_q", {"a.jsonl": "{}\n"})
    writer = subprocess.Popen(
        [
            "bash",
            "-c",
            'i=0; while ((i < 200000)); do printf "{\\"episode\\": %d}\\n" $((i++)); done >"$0"',
            at / "out/a.jsonl",
        ]
    )
    try:
        sizes = []
        deadline = time.monotonic() + 20
        while len(sizes) < 5 and time.monotonic() < deadline:
            fetched = get(run, mirror)
            assert fetched.skipped == ()
            held = contents(mirror).get("sessions/e_q/attempt-1/out/a.jsonl", b"")
            assert (at / "out/a.jsonl").read_bytes().startswith(held)
            if held and (not sizes or len(held) > sizes[-1]):
                sizes.append(len(held))
        assert len(sizes) == 5
    finally:
        writer.kill()
        writer.wait()
    get(run, mirror)
    assert contents(mirror) == run.files()


def test_two_fetches_at_once_into_one_mirror_do_not_hurt_each_other(run: Run, mirror: Path) -> None:
    for number in range(30):
        run.attempt(f"s{number}_p", {"a.jsonl": os.urandom(20_000)})
    outcomes: list[Fetched] = []
    threads = [threading.Thread(target=lambda: outcomes.append(get(run, mirror))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert contents(mirror) == run.files()
    assert sorted(fetched.files > 0 for fetched in outcomes) == [False, False, False, True]


def test_results_are_brought_from_wherever_a_link_leads(run: Run, mirror: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    (scratch / "deep").mkdir(parents=True)
    (scratch / "s.jsonl").write_text("{}\n" * 9)
    (scratch / "deep/b.jsonl").write_text("{}\n" * 5)
    output = run.attempt("e_p", {"a.jsonl": '{"episode": 0}\n'}, rules="*.jsonl|sub/*.jsonl") / "out"
    (output / "s.jsonl").symlink_to(scratch / "s.jsonl")
    (output / "in.jsonl").symlink_to("a.jsonl")
    (output / "sub").symlink_to(scratch / "deep")
    for ended in (False, True):
        if ended:
            run.end("e_p")
        assert get(run, mirror).skipped == ()
        copy = mirror / output.relative_to(run.path)
        assert contents(copy) == contents(output) | {"sub/b.jsonl": b"{}\n" * 5}
        assert not any(path.is_symlink() for path in copy.rglob("*"))
    assert get(run, mirror) == Fetched(0, 0, 0)


def test_what_a_link_leads_to_may_grow_after_the_end(run: Run, mirror: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "s.jsonl"
    scratch.write_text("{}\n")
    (run.path / "sessions/e_p/attempt-1/out/s.jsonl").symlink_to(scratch)
    run.end("e_p")
    get(run, mirror)
    with scratch.open("a") as file:
        file.write('{"late": 1}\n')
    assert get(run, mirror) == Fetched(1, 12, 0)
    assert (mirror / "sessions/e_p/attempt-1/out/s.jsonl").read_bytes() == scratch.read_bytes()


def test_a_link_that_leads_nowhere_is_told_each_time(run: Run, mirror: Path, tmp_path: Path) -> None:
    output = run.path / "sessions/e_p/attempt-1/out"
    (output / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    (output / "round.jsonl").symlink_to("round.jsonl")
    (output / ".hidden.jsonl").symlink_to(tmp_path / "nowhere")
    run.end("e_p")
    for _ in range(2):
        at = PurePosixPath("sessions/e_p/attempt-1/out")
        told = {Skipped(at / leaf, "a link that leads nowhere") for leaf in ("gone.jsonl", "round.jsonl")}
        assert set(get(run, mirror).skipped) == told


def test_no_record_is_read_through_a_link(run: Run, mirror: Path, tmp_path: Path) -> None:
    """What the run itself consists of is never elsewhere."""
    (tmp_path / "secret").write_text("secret")
    run.put("digest").unlink()
    (run.path / "digest").symlink_to(tmp_path / "secret")
    get(run, mirror)
    assert "digest" not in contents(mirror)


def test_pipes_and_folders_among_the_results_are_passed_over(run: Run, mirror: Path) -> None:
    output = run.attempt("e_q", {"a.jsonl": "{}\n"}) / "out"
    os.mkfifo(output / "pipe.jsonl")
    (output / "folder.jsonl").mkdir()
    get(run, mirror)
    assert contents(mirror) == run.files()


@pytest.mark.parametrize("rule", ["../log", "../../../../id", "/etc/passwd", ".*", "sub//x.jsonl"])
def test_rules_that_point_elsewhere_bring_nothing_from_there(run: Run, mirror: Path, rule: str) -> None:
    run.attempt("e_q", {"sub/x.jsonl": "{}\n"}, rules=rule)
    get(run, mirror)
    below = [name for name in contents(mirror) if name.startswith("sessions/e_q/") and "/out/" in name]
    assert below == (["sessions/e_q/attempt-1/out/sub/x.jsonl"] if rule == "sub//x.jsonl" else [])


def test_what_a_resumed_run_took_back_goes_and_what_was_deleted_to_save_room_stays(run: Run, mirror: Path) -> None:
    run.end("e_p")
    run.put("dispatch/done", "at=1\n")
    run.put("dispatch/stopped")
    get(run, mirror)
    (run.path / "dispatch/done").unlink()
    (run.path / "dispatch/stopped").unlink()
    (run.path / "sessions/e_p/attempt-1/out/a.jsonl").unlink()
    assert get(run, mirror).kept == 1
    expected = {**run.files(), "sessions/e_p/attempt-1/out/a.jsonl": b'{"episode": 0}\n'}
    assert contents(mirror) == expected


def test_a_fetch_starts_a_handful_of_processes_however_many_sessions_there_are(
    run: Run, mirror: Path, tmp_path: Path
) -> None:
    for number in range(60):
        run.attempt(f"s{number}_p", {"a.jsonl": "{}\n"})
        run.end(f"s{number}_p")
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for program in ("stat", "sha256sum", "cat", "dd", "head", "sort", "realpath"):
        real = shutil.which(program)
        (bin_ / program).write_text(f'#!/bin/bash\necho {program} >>"{tmp_path}/started"\nexec {real} "$@"\n')
        (bin_ / program).chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")
        get(run, mirror)
        first = (tmp_path / "started").read_text().split()
        (tmp_path / "started").unlink()
        get(run, mirror)
    assert len(first) <= 12, first
    assert len((tmp_path / "started").read_text().split()) <= 6


def test_a_folder_that_is_no_run_is_told(run: Run, mirror: Path, tmp_path: Path) -> None:
    with pytest.raises(HostError, match="could not be fetched"):
        fetch(LocalTransport(), str(tmp_path), mirror)
    (run.path / "id").unlink()
    with pytest.raises(HostError) as caught:
        fetch(LocalTransport(), str(run.path), mirror)
    assert "is no run directory" in caught.value.hint
