"""Every code has words: tests/golden/words.txt shows them on one page, words/endings.txt those of ends, and
tests/unit/words/test_reasons.py has those of rows. Times of day are UTC.
"""

from __future__ import annotations

import ast
import importlib
import os
import string
import time
from collections.abc import Iterator
from pathlib import Path

from structure import CHECKOUT, modules

from comborun.rules.facts import Fact
from comborun.rules.findings import Found
from comborun.rules.holds import HoldReason, Notice, ServerStop, TaskLeft
from comborun.rules.host import Denial, FolderFlaw, Lack, Limit
from comborun.rules.machines import Elsewhere
from comborun.rules.room.waits import Never, Wait, WarmedUp
from comborun.rules.slurm_variables import Variable
from comborun.words import MODULES, endings, fill, rows, say, tables
from comborun.words.doctor import advice
from comborun.words.times import FORMS

os.environ["TZ"] = "UTC"
time.tzset()
GOLDEN = CHECKOUT / "tests/golden/words.txt"
NOON = 1785326400.0
WHEN = {"at": NOON, "in_s": 240}
LACK = {"lack": 3, "never": 1, "sessions": 6}
ROOM = {"needs_mib": 9000, "free_mib": 3000, "total_mib": 24000, "others_mib": 5000, "reserve_mib": 6000}
WHY = Fact(HoldReason.BY_PERSON, words="the training job needs the GPU").as_data()
CLOSED = {"gpus": [1, 2], "failures": ["gpu_fault", "gpu_fault"]}
CRASHED = {"cause": "exited", "exit_code": 3, "failure": "error"}
SPACE = {"free_bytes": 3 << 30, "total_bytes": 128 << 30}
GPU = {"gpu": 0, "name": "RTX 4090", "free_bytes": 1000 << 20, "total_bytes": 24 << 30}
SPENT = {"failure": "error", "made": 1, "most": 3}
EXAMPLES: dict[str, list[dict[str, object]]] = {
    "trained_to": [
        {"step": 4096, "steps": 100_000, "unit": "steps", "reward": 12.345, "success": 0.4, "length": 61.0},
        {"step": 12, "unit": "iterations", "success": 250.0},
        {"step": 0.5, "unit": "epochs"},
        {"step": 7, "unit": "iterations", "reward": 2.5, "late": 5.0},
    ],
    "trained_again": [{"attempt": 2, "step": 4096, "unit": "steps"}],
    "following": [
        {"evaluated": 0},
        {"evaluated": 3, "last": "step_9", "alive": True, "held": 1, "skipped": 2, "changed": 1},
        {"evaluated": 1, "ended": True, "refused": 2, "refusals": [{"code": "checkpoint_empty"}]},
    ],
    Denial.DEAL_UNREADABLE: [
        {"path": "boxes/deal.json", "session": "", "taken": ""},
        {"path": "moves/maze_act.0.0.1.out", "session": "maze_act", "taken": "moves/maze_act.0.0.1.in"},
    ],
    Wait.TOKEN_TAKEN: [
        {"token": "ray", "session": "maze_act"},
        {"token": "ray", "session": "maze_act", "run": "walkers-20260729T101500Z-ab12"},
    ],
    Wait.CORES_TAKEN: [{"needs": 4, "held": 60, "of": 64}, {"needs": 4, "held": 50, "of": 64, "foreign": 8, "kept": 4}],
    Wait.MEMORY_TAKEN: [{**ROOM, "held_mib": 4000}],
    Wait.GPU_MEMORY_TAKEN: [
        {**ROOM, "gpu": 0, "sessions": 2, "held_mib": 8000, "foreign_mib": 2000, "headroom_mib": 128},
        {**ROOM, "gpu": 1, "tenth": True, "reserve_mib": 0, "headroom_mib": 128},
    ],
    Wait.STARTS_APART: [{"seconds": 20.0}, {"seconds": 20.0, "gpu": 1}],
    Wait.LEASES_UNUSABLE: [{"flaw": {"code": "folder_open_to_others", "path": "/tmp/comborun-7", "mode": "777"}}],
    Wait.NO_PROCESSES: [{"limit": {"code": "process_limit", "most": 4096}}],
    Never.GPUS_TOO_MANY: [{"gpus": 2, "may_use": 1, "only": [0, 1]}],
    Never.GPU_MEMORY_TOO_MUCH: [
        {"mib": 90000, "gpus": 2, "totals_mib": {"0": 81559, "1": None}, "reserve_mib": 0, "headroom_mib": 128}
    ],
    HoldReason.BY_PERSON: [{"words": "the training job needs the GPU"}, {}],
    HoldReason.FAILURES_IN_A_ROW: [{"failure": "crashed", "times": 3, "host": "gpu-box", "note": "its log says: bye"}],
    HoldReason.TOO_MANY_FAILED: [
        {"failed": 2, "sessions": 6, "limit": 2, "percent": 0},
        {"failed": 2, "sessions": 6, "percent": 30},
    ],
    HoldReason.TOO_FEW_GPUS_LEFT: [{"session": "maze_act", "gpus": 2, "usable": 1, "allowed": 4}],
    HoldReason.SMOKE_TEST_UNPROVEN: [{"sessions": ["maze_act", "maze_pi"], "whys": [[], [{"code": "wrote_nothing"}]]}],
    HoldReason.SERVER_ENDS: [
        {"server": "vlm", "times": 3, "attempt": 3, "cause": "gpu_memory"},
        {"server": "vlm", "times": 3, "attempt": 3, "cause": "error", "exit_code": "1"},
    ],
    Notice.RUN_HALTED: [{"reason": WHY}],
    Notice.NO_PROGRESS: [{"session": "maze_act", "ending": [{"code": "no_progress", "seconds": 700}]}],
    Notice.VANISHED: [{"sessions": ["maze_act", "maze_pi"]}],
    Notice.SERVER_ENDED: [{"server": "vlm", "cause": "exited", "exit_code": "1", "note": "its log says: bye"}],
    Found.TMUX: [{"version": "tmux 3.4", "runs": True}, {"version": "tmux 3.4"}],
    Found.NO_MULTIPLEXER: [{"multiplexers": ["tmux", "screen"]}],
    Found.DRIVER_FAILS: [{"exit": 77}, {"exit": 9, "said": "SAID"}],
    Found.GPU_ROOM: [
        {**GPU, "users": [{"owner": "bob", "program": "python3", "pid": 77, "bytes": 9 << 30}]},
        {**GPU, "users": []},
        GPU,
    ],
    Found.EGL_DIFFERS: [{"devices": [[0, 1], [1, 0]]}],
    Found.VULKAN_WITHOUT_DRIVER: [{"paths": ["/etc/vulkan/icd.d/nvidia*", "/usr/share/vulkan/icd.d/nvidia*"]}],
    Found.VULKAN_CANNOT_CHOOSE: [{"gpu": 1, "reason": {"code": "vulkan_gpu_not_seen"}}],
    Found.ROOM: [{"folder": "/data", "free_bytes": 5 << 30, "total_bytes": 100 << 30, "mount": "/my data"}],
    Found.INODES: [{"folder": "/data", "free": 1999, "total": 60000000, "mount": "/data"}],
    Found.MEMORY: [SPACE, {**SPACE, "allowed_bytes": 2 << 30}],
    Found.LOAD: [{"load": 48.5, "cpus": 32}],
    Found.OPEN_FILES: [{"most": 512, "hard": 4096}, {"most": 65536}, {}],
    Found.PROCESSES: [{"used": 412, "allowed": 1024}, {"used": 412}],
    Found.CLOCK: [{"off_s": -60.0, "doubt_s": 0.1}],
    Found.CLOCK_FAR_OFF: [{"off_s": 3600.0, "doubt_s": 0.1}],
    Denial.USAGE: [{"usage": "RUN SECONDS"}, {"usage": "RUN [--parallel N]", "given": "--paralel"}],
    Denial.RUN_UNREADABLE: [
        {"run": "RUN", "path": "run.json"},
        {"run": "RUN", "path": "run.json", "empty": True},
        {"run": "RUN", "path": "run.json", "error": "Permission denied"},
    ],
    Denial.UNWRITABLE: [{"path": "/data/run"}, {"path": "/data/run", "error": "Permission denied"}],
    Denial.FAULT: [
        {"error": "Is a directory", "path": "/data/run/id"},
        {"error": {"code": "open_files_limit"}},
    ],
    Lack.FOLDER: [{"folder": "~/projct", "near": "project"}, {"folder": "~/new"}],
    Lack.FILE: [
        {"path": "~/policy.pt"},
        {"path": "evl.py", "below": "~/project"},
        {"path": "evl.py", "near": "eval.py"},
    ],
    Lack.RELATIVE: [
        {"paths": ["eval.py"], "sync_from": ".", "sync_to": "~/new"},
        {"paths": ["eval.py", "./run"], "folder": "~/laptop"},
    ],
    Lack.ENVIRONMENT: [{"name": "isac", "near": "isaac"}, {"name": "isac", "known": ["base", "ray"]}, {"name": "isac"}],
    Lack.PROGRAM: [{"program": "./run"}],
    Lack.ON_PATH: [{"program": "pyton", "near": "python"}, {"program": "qzx8"}],
    "task_held": [{"hold": "paused", "reason": WHY}],
    "run_held": [
        {"run": "RUN", "hold": "draining", "reason": WHY, "sessions_continue": True},
        {"run": "RUN", "hold": "halted", "reason": WHY, **LACK},
        {"run": "RUN", "hold": "paused", "words": "as a former version said it"},
    ],
    "held": [{"hold": "draining", "reason": WHY, "sessions_continue": True}],
    "run_was_stopped": [{"run": "RUN", **LACK}, {"run": "RUN", **LACK, "never": 3}],
    "slurm_holds_tasks": [{"tasks": 2, "arrays": ["12", "13"], "host": "login1"}],
    "quarantine_advice": [
        {"run": "RUN", "quarantine": {"code": "gpus_in_quarantine", "gpus": [1], "failures": ["killed"]}}
    ],
    "environments_closed": [{"environments": ["push", "pour"], "failures": ["killed", "killed"]}],
    "environments_are_closed": [{"environments": ["push"], "failures": ["gpu_memory"]}],
    "gpus_in_quarantine": [{"gpus": [1, 2], "failures": ["gpu_fault", "gpu_fault"]}],
    "notices_fail": [
        {"run": "RUN", "exit_code": 127, "ago_s": 120},
        {"run": "RUN", "exit_code": 124, "timed_out": True, "ago_s": 120},
    ],
    "host_held": [{"run": "RUN", "host": "box2", "hold": "draining", "sessions_continue": True}],
    "loss_not_ended": [
        {"run": "RUN", "hosts": ["box2"]},
        {"run": "RUN", "hosts": ["box2", "box3"], "answer": ["box3"]},
        {"run": "RUN", "hosts": []},
    ],
    "sessions_moved": [{"moved": 1, "sessions": ["a"]}, {"moved": 9, "sessions": list("abcdefghi")}],
    "ends_about": [{"earliest": NOON, "in_s": 480, "latest": NOON + 480}],
    "host_back": [
        {"host": "gpu-box", "seconds": 185, "at": NOON, "gone": False, "changes": {"failed": 2, "not_needed": 1}},
        {"host": "gpu-box", "seconds": 4, "at": NOON, "gone": True, "changes": {}},
    ],
    "host_rebooted": [{"host": "gpu-box", "sessions": 8, "at": NOON}, {"host": "gpu-box", "sessions": 1}],
    "environment_differs": [
        {"changed": {"PATH": ["/a:/bin", "/b:/bin"], "VIRTUAL_ENV": ["/a", ""]}},
        {"changed": {"CONDA_PREFIX": ["", "/c"], "PATH": ["/a:/bin", "/bin:/a"]}, "sessions": 2},
    ],
    "all_sessions_vanished": [{"host": "gpu-box", "sessions": 8, "at": NOON}],
    "slurm_is_silent": [{}, {"ago_s": 754, "said": "Unable to contact slurm controller"}],
    "slurm_summary": [
        {"pending": 3, "reasons": {"Resources": 2, "": 1}, "running": 4, "nodes": ["n1", "n2"]},
        {"pending": 1, "reasons": {"Priority": 1}, "running": 9, "nodes": ["n1", "n2", "n3", "n4", "n5"]},
        {},
    ],
    "nothing_starts_until_resume": [{"run": "RUN"}, {"run": "RUN", "at": NOON, "in_s": -120}],
    "starts_again": [
        {"held": True, "failure": "gpu_memory", "attempt": 2, "of": 3},
        {"waits_for": "retry", "in_s": 40, "failure": "gpu_memory", "attempt": 2, "of": 3},
        {"waits_for": "token", "failure": "error", "attempt": 2},
        {"waits_for": "retry", "reason": Fact(Wait.RETRY_ASKED, attempt=1).as_data()},
    ],
    "waits": [
        {"waits_for": "gpu", "reason": Fact(Wait.GPU_USED_ALONE, gpu=1).as_data()},
        {"waits_for": "stagger", "reason": Fact(Wait.STARTS_APART, seconds=20).as_data()},
        {"waits_for": "of_next_year"},
    ],
    "waits_for_room": [{"waits_for": "gpu_memory"}],
    "waits_for_next_start": [
        {"attempt": 1, "start": {"code": "starts_again", "waits_for": "retry", "in_s": 40}},
        {"attempt": 1, "stopped": True, "start": {"code": "starts_again"}},
    ],
    "waits_for_smoke_test": [{"counts": {"running": 1, "succeeded": 3}}],
    "waits_for_server": [
        {"server": "vlm", "state": {"code": "server_state", "state": "loading", "since_s": 200}},
        {"server": "vlm", "state": {"code": "server_state", "state": "queued"}, "reason": {"code": "no_gpu_for_it"}},
    ],
    "has_not_begun": [{"reason": {"code": "its_turn"}}],
    "task_is_queued": [{"job": "12_2", "task": {"code": "task_held_by_slurm", "reason": "JobHeldUser"}}],
    "attempt_waits": [{"attempt": 2, "task": {"code": "task_waits", "reason": "Resources"}}],
    "needs_gpus": [{"gpus": 1, "of": [0, 1]}, {"gpus": 2, "of": [0, 1], "memory_mib": 8000, "per_gpu": 4}],
    "gpu_is_held": [{"gpu": 0, "servers": ["vlm"], "sessions": ["a_b", "a_c", "a_d", "a_e"], "count": 7}],
    "sessions_before_it": [{"count": 6, "sessions": ["a_b", "a_c", "a_d", "a_e"]}],
    "is_tried_at": [WHEN],
    "slurm_expects_start": [WHEN],
    "next_to_end": [{"session": "maze_act", **WHEN}],
    "expected_to_end": [WHEN],
    "attempt_starts": [{"attempt": 1, "gpus": [0], "node": "n1", "task": "12_2", "slurm": True}, {"attempt": 1}],
    "attempt_runs": [{"attempt": 1, "gpus": [0, 1], "seconds": 600}],
    "work_done": [
        {"done": 60, "planned": 100, "unit": "episode", "successes": 50, "recorded": 60},
        {"done": 60, "planned": 100, "unit": "step"},
    ],
    "is_being_ended": [
        {"ending": [{"code": "ran_too_long", "limit_s": 3}]},
        {"note": "as a former version said it"},
    ],
    "time_limit": [{"seconds": 7200, "in_s": 6600}, {"seconds": 7200, "in_s": -5}],
    "rows_not_counted": [{"reasons": [{"code": "wrote_nothing"}]}],
    "command_ended": [
        {**CRASHED, "ending": [{"code": "log_says", "said": "bye"}]},
        {"cause": "signal", "signal": 9, "exit_code": 137, "failure": "gpu_memory"},
        {"cause": "stopped", "note": "as a former version said it"},
        {"cause": "of_next_year"},
    ],
    "ended_after_results": [CRASHED],
    "announced_steps_reached": [{"steps": 400, "planned": 204800}],
    "results_are_missing": [
        {"records": 60, "planned": 100, "unit": "episode"},
        {"records": 100, "planned": 100, "unit": "episode"},
        {"records": 100, "planned": 100, "unit": "episode", "line": "^done$", "files": ["all.json"]},
        {"records": 0, "planned": 400, "unit": "step", "steps": True},
        {},
    ],
    "attempt_ended": [
        {"attempt": 1, "at": NOON, "seconds": 600, "how": [{"code": "command_ended", **CRASHED}]},
        {"attempt": 1, "at": None, "how": []},
    ],
    "attempt_was_called_off": [{"attempt": 1, "at": NOON, "how": [{"code": "command_ended", "cause": "stopped"}]}],
    "earlier_attempt": [
        {"attempt": 1, "how": {"code": "command_ended", **CRASHED}, "done": 3, "unit": "episode"},
        {"attempt": 1, "unit": "step"},
    ],
    "evidence_needed": [
        {"records": 100, "record_files": ["*.jsonl"], "line": "^done$", "files": ["all.json"]},
        {},
    ],
    "peak_memory": [{"bytes": 3 << 30}],
    "starts_left": [{**SPENT, "left": 2, "held": True}, {**SPENT, "left": 1, "renewed": True}],
    "no_start_left": [{**SPENT, "retries": 0}, {**SPENT, "retries": 1}, {**SPENT, "made": 3, "retries": 2}],
    "ordered_by": [
        {"order": "stop", "user": "ann", "origin": "10.0.0.7", "at": 1785321000.0},
        {"order": "pause", "user": "ann"},
    ],
    "mend_failure": [{"failure": "gpu_memory"}, {"failure": "a_class_of_a_later_version"}],
    "after_ended": [{"seconds": 600, "how": [{"code": "command_ended", **CRASHED}]}],
    "server_state": [
        {"state": "loading", "since_s": 200},
        {"state": "ended", "since_s": 200, "cause": "signal", "ending": [{"code": "rebooted"}]},
        {"state": "ended", "since_s": 200, "cause": "signal", "note": "as a former version said it"},
    ],
    "server_is": [{"server": {"code": "server_state", "state": "ready"}, "gpus": [0], "port": 31337}],
    "server_waits": [{"reason": {"code": "gpu_used_alone", "gpu": 1}}],
    "server_is_used": [{"sessions": 1}, {"sessions": 2}],
    "server_start": [{"attempt": 2, "restarts": 3}],
    "stop_ends": [{"run": "RUN", "host": "gpu-box", "sessions": ["a_b", "a_c"]}, {"run": "RUN", "host": "gpu-box"}],
    "resume_repeats": [{"episodes": 3, "sessions": ["a_b", "a_c"]}],
    "nothing_to_resume": [{"run": "RUN", "coming": 2}, {"run": "RUN", "futile": True}, {"run": "RUN"}],
    "another_attempt": [
        {"session": "a_b", "count": 1, "episodes": "5"},
        {"session": "a_b", "count": 3, "episodes": "3-5", "repeated": 2, "ranged": True},
        {"session": "a_b", "repeated": 1},
    ],
    "new_session": [{"session": "a_b", "policy": "b", "environment": "a", "count": 2, "episodes": "4-5"}],
    "sessions_coming": [{"count": 2}, {"count": 1, "stopped": True}],
    "no_longer_held": [{"hold": "paused", "reason": WHY}],
    "column_for_each": [{"columns": ["pick", "open"], "cell": "17/20"}],
    "several_rows_per_episode": [
        {"least": 5, "most": 5, "contested": 74, "by": "step"},
        {"least": 1, "most": 3, "contested": 1, "keys": [{"key": "episode", "value": "line"}]},
        {
            "least": 2,
            "most": 2,
            "contested": 9,
            "names": [["policy", "model"], ["environment", "task"]],
            "keys": [{"key": "episode", "value": "line"}],
        },
    ],
    "unlike_kinds": [{"policies": ["a", "b"], "fields": ["failure", ""], "kinds": ["fall", "stuck"]}],
    "runs_by_field": [{"combo": ["A", "stairs"], "field": "train_seed", "runs": 3, "length": 50}],
    "steps_of_episodes": [
        {"least": 5, "most": 9, "by": "step", "episodes": 2, "left_out": ["reward", "step"]},
        {"least": 5, "most": 5, "by": "step", "episodes": 1},
    ],
    "means_of_trials": [{"least": 50, "most": 50, "trials": "n", "field": "success_rate"}],
    "arrays_not_read": [{"path": "stats.npz", "files": 1}, {"path": "stats.npz", "files": 3}],
    "futile_to_repeat": [
        {"session": "a_b", "count": 1, "episodes": "5", "reason": {"code": "complete_without_records"}}
    ],
    "levels_guessed": [{"levels": 3, "policies": ["octo", "rt1x"], "environment": "move_near/base"}],
    "axis_unnamed": [{"kind": "environment", "files": files, "known": ["pick", "open"]} for files in (1, 2)],
    "names_in_doubt": [
        {"kind": "policy", "longer": [["act_rerun", "act"]], "fewer": []},
        {"kind": "environment", "longer": [["pick_old", "pick"], ["lift 2", "lift"]], "fewer": ["debug"]},
    ],
    "one_level_of_names": [{"names": ["A", "B"]}, {"names": ["1", "2", "3", "4", "5", "6", "7"]}],
}
"""code -> fields, where the name of a field does not do as its value"""


def examples(code: str) -> list[Fact]:
    words = tables()[code]
    if code in EXAMPLES or callable(words):
        return [Fact(code, **fields) for fields in EXAMPLES[code]]
    values = {**dict.fromkeys(FORMS, 120.0), "class": "gpu_memory"}
    fields = {name: values.get(form, 2) if form else name.upper() for _, name, form, _ in parts(words) if name}
    return [Fact(code, **fields)]


def parts(words: str) -> Iterator[tuple[str, str | None, str | None, str | None]]:
    return iter(string.Formatter().parse(words))


def test_the_words_of_every_code_are_those_of_the_golden_page() -> None:
    lines = []
    for code in sorted(set(tables()) - set(endings.WORDS) - set(rows.WORDS)):
        facts = examples(code)
        lines += [code, *(f"    {say(fact)}" for fact in facts)]
        cost, fix = advice(facts[0])
        lines += [f"        cost: {cost}"] * bool(cost) + [f"        fix: {fix}"] * bool(fix)
    page = "".join(f"{line}\n" for line in lines)
    if os.environ.get("COMBORUN_WRITE_GOLDEN"):
        GOLDEN.write_text(page)
    assert page == GOLDEN.read_text()
    page = page.replace("(?P<", "")  # a pattern
    assert page.count("?") == page.count("did you mean") + 1, "an example lacks a field"


def test_no_code_is_in_two_tables() -> None:
    count = sum(len(importlib.import_module(f"comborun.words.{name}").WORDS) for name in MODULES)
    assert count == len(tables())


def test_every_code_that_a_fact_is_made_with_has_words() -> None:
    """Looks at calls of `Fact` whose code is a literal or a member of an enumeration, and at the enumerations."""
    known = {str(code) for code in tables()}
    for kind in (
        Wait,
        WarmedUp,
        Never,
        HoldReason,
        TaskLeft,
        ServerStop,
        Notice,
        Limit,
        FolderFlaw,
        Lack,
        Elsewhere,
        Variable,
        Denial,
        Found,
    ):
        assert {member.value for member in kind} <= known
    found = [path for name, path in modules().items() if not name.startswith("comborun.words")]
    made = {code: path for path in found for code in codes_in(path)}
    assert {code: str(path) for code, path in made.items() if code not in known} == {}
    assert len(made) > 50, "the calls are found"


def codes_in(path: Path) -> Iterator[str]:
    text = path.read_text()
    for node in ast.walk(ast.parse(text)) if "Fact(" in text else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Fact" and node.args:
            for part in ast.walk(node.args[0]):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


def test_what_stands_in_brackets_stays_only_with_its_fields_and_names_with_brackets_are_kept() -> None:
    words = "{name}[ on GPU {gpu}][: {why}[ ({exit})]| was stopped{stopped:if}| is fine]"
    assert fill(words, Fact("x", name="[{a}|b]", gpu=0, why="", stopped=True)) == "[{a}|b] on GPU 0 was stopped"
    assert fill(words, Fact("x", name="a", gpu=None, why="[no]")) == "a: [no]"
    assert fill(words, Fact("x", name="a", why="no", exit=7)) == "a: no (7)"
    assert fill(words, Fact("x", name="a", stopped=False)) == "a is fine"


def test_a_template_with_a_form_that_does_not_exist_counts_with_it() -> None:
    assert say(Fact(Wait.GPU_FULL, gpu=1, sessions=1, per_gpu=1)) == "GPU 1 has 1 session, and limits.per_gpu is 1"


def test_what_is_in_brackets_is_left_out_with_its_field() -> None:
    fields: dict[str, object] = {"attempt": 1, "at": NOON, "seconds": 0.0, "how": [{"code": "of_next_year"}]}
    assert say(Fact("attempt_ended", **fields)) == "attempt 1 ended at 12:00:00 after 0 s: of_next_year"
    assert say(Fact("attempt_ended", attempt=1, how=[])) == "attempt 1 ended"
    assert say(Fact("attempt_ended", attempt=1, how=["[x {at}"])) == "attempt 1 ended: [x {at}"
