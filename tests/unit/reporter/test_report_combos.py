"""Results in a folder that nobody planned: each file's combo, and never two runs as one."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING

import pytest
from report_runs import write_rows

from comborun.reporter.collect import collect_folder
from comborun.reporter.pages.answer import answer
from comborun.reporter.records.collected import Collected
from comborun.reporter.records.path_parts import combo_of_path
from comborun.reporter.records.reading import Reading
from comborun.reporter.report import report_folder
from comborun.reporter.summary import summarize

if TYPE_CHECKING:
    from pathlib import Path

GOOD, BAD = "TTTT", "FFFF"
Table = dict[tuple[str, str], tuple[int, int]]


def client_log(outcomes: str) -> str:
    told = (f"Success: {letter == 'T'}\n# episodes completed so far: {n}\n" for n, letter in enumerate(outcomes, 1))
    return "".join(told)


def counted(successes: int) -> str:
    return f"eval_success_once_mean={successes / 8}\nEvaluated 50 steps resulting in 8 episodes\n"


def listed(environment: str, outcomes: str) -> str:
    return f"results:  ('{environment}', {[letter == 'T' for letter in outcomes]}, {{}})\n"


def rows(outcomes: str, first: int = 0, **fields: float) -> str:
    named = {"policy": "pi0", "environment": "libero", **fields}
    told = ({**named, "episode": n, "success": letter == "T"} for n, letter in enumerate(outcomes, first))
    return "".join(f"{json.dumps(row)}\n" for row in told)


def collected(root: Path, files: dict[str, str]) -> Collected:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return collect_folder(root)


def table(found: Collected) -> Table:
    """(policy, environment) -> successes and completed episodes"""
    combos = summarize(found).summary.combos
    counts = {(combo.policy, combo.environment): combo.counts for combo in combos}
    return {combo: (count.successes, count.completed) for combo, count in counts.items() if count}


@pytest.mark.parametrize(
    "name",
    [
        *("client.log", "nohup.out", "slurm-123.out", "slurm-123_4.out", "job.log", "job-7.log", "main.log"),
        *("console.txt", "eval.log", "0.log", "seed3.log", "run1/eval.log", "run1/seed0/log"),
    ],
)
def test_a_name_that_every_program_gives_names_no_environment(tmp_path: Path, name: str) -> None:
    files = {f"pi0/libero/{name}": client_log(GOOD), f"pi05/libero/{name}": client_log(BAD)}
    assert table(collected(tmp_path, files)) == {("pi0", "libero"): (4, 4), ("pi05", "libero"): (0, 4)}


@pytest.mark.parametrize("text", [client_log(GOOD), "episode,success\n0,1\n1,1\n"])
def test_a_file_name_that_every_folder_has_names_no_environment(tmp_path: Path, text: str) -> None:
    names = ("flat", "grass"), ("flat", "stairs"), ("rough", "grass"), ("rough", "stairs")
    suffix = "log" if "Success" in text else "csv"
    found = collected(tmp_path, {f"{policy}/{environment}/r.{suffix}": text for policy, environment in names})
    assert {*table(found)} == {*names}


def test_a_file_name_in_folders_of_one_level_is_kept(tmp_path: Path) -> None:
    found = collected(tmp_path, {f"{policy}/stairs.log": client_log(GOOD) for policy in ("flat", "rough")})
    assert {*table(found)} == {("flat", "stairs"), ("rough", "stairs")}


@pytest.mark.parametrize("other", [BAD, GOOD])
def test_two_runs_that_look_like_one_combo_are_told_apart_by_their_folders(tmp_path: Path, other: str) -> None:
    found = collected(
        tmp_path,
        {
            "pi0/libero/openpi.log": client_log(GOOD),
            "pi05/libero/openpi.log": client_log(other),
            "gr00t/serving.log": client_log("TF"),
        },
    )
    assert table(found) == {
        ("gr00t", "serving"): (1, 2),
        ("libero (pi0)", "openpi"): (4, 4),
        ("libero (pi05)", "openpi"): (4 * (other == GOOD), 4),
    }
    told = {defect.path: defect.reason for defect in found.defects if "not of one run" in defect.reason}
    same, called = "libero × openpi, and not of one run", "its policy is called"
    assert told == {
        "pi0/libero/openpi.log": f"of one combo with pi05/libero/openpi.log, {same}: {called} 'libero (pi0)'; are these"
        " runs of one policy? Then call their files or folders seed0 and seed1, or give a field `train_seed`",
        "pi05/libero/openpi.log": f"of one combo with pi0/libero/openpi.log, {same}: {called} 'libero (pi05)'",
    }


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        (("pi0/libero/1/log", "pi0/libero/2/log"), ("pi0 (1)", "pi0 (2)")),
        (("pi0/libero/run.log", "pi0/libero/run2/run.log"), ("pi0 (run)", "pi0 (run2)")),
    ],
)
@pytest.mark.parametrize("kind", ["episodes", "counts"])
def test_what_the_paths_differ_in_is_the_name(
    tmp_path: Path, files: tuple[str, str], wanted: tuple[str, str], kind: str
) -> None:
    texts = (client_log(GOOD), client_log(BAD)) if kind == "episodes" else (counted(4), counted(0))
    found = table(collected(tmp_path, dict(zip(files, texts, strict=True))))
    assert {policy: successes for (policy, _), (successes, _) in found.items()} == dict(
        zip(wanted, (4, 0), strict=True)
    )


@pytest.mark.parametrize(
    ("folders", "wanted"),
    [
        ([("new", 1), ("new", 2), ("old", 1), ("old", 2)], {"agent (new)": (2, 2), "agent (old)": (2, 2)}),
        ([("shard1", 1), ("shard2", 2)], {"agent": (2, 2)}),
    ],
)
def test_folders_per_episode_are_told_apart_as_a_whole_and_shards_are_one_combo(
    tmp_path: Path, folders: list[tuple[str, int]], wanted: dict[str, tuple[int, int]]
) -> None:
    steps = json.dumps([{"step": 1, "info": {"task_success": 1.0}, "done": True}])
    found = collected(tmp_path, {f"{run}/agent/EB/episode_{n}/cosmos_log.json": steps for run, n in folders})
    assert table(found) == {(policy, "EB"): counts for policy, counts in wanted.items()}
    assert not any("number their episodes alike" in defect.reason for defect in found.defects)


def test_counts_and_episodes_of_two_folders_are_two_runs(tmp_path: Path) -> None:
    files = {"a/pi0/libero/client.log": client_log(GOOD), "b/pi0/libero/eval.log": counted(2)}
    assert table(collected(tmp_path, files)) == {("pi0 (a)", "libero"): (4, 4), ("pi0 (b)", "libero"): (2, 8)}


@pytest.mark.parametrize(
    ("files", "counts"),
    [
        ({"pi0/libero/eval.log": client_log(GOOD), "pi0/libero/stdout": client_log(GOOD)}, (4, 4)),
        ({"pi0/libero/eval.log": client_log(GOOD), "pi0/libero/stdout": client_log("TT")}, (4, 4)),
        ({"pi0/libero/client.log": client_log(GOOD), "pi0/libero/eval.log": counted(4)}, (4, 4)),
        ({"pi0/libero/eval_embodiment.log": counted(4), "pi0/libero/metrics.log": counted(4)}, (4, 8)),
        ({"x/episodes.jsonl": rows(GOOD), "backup/x/episodes.jsonl": rows(GOOD)}, (4, 4)),
        ({"shard0/episodes.jsonl": rows("TT"), "shard1/episodes.jsonl": rows("TT", first=2)}, (4, 4)),
        ({"s/attempt-1/e.jsonl": rows("FF"), "s/attempt-2/e.jsonl": rows(GOOD)}, (2, 4)),
    ],
)
def test_views_copies_shards_and_attempts_of_one_run_stay_one_combo(
    tmp_path: Path, files: dict[str, str], counts: tuple[int, int]
) -> None:
    assert table(collected(tmp_path, files)) == {("pi0", "libero"): counts}


@pytest.mark.parametrize("other", [GOOD, BAD])
@pytest.mark.parametrize("files", [("seed1.log", "seed2.log"), ("seed1/run.log", "seed2/run.log")])
def test_seeds_of_one_policy_are_runs_of_it_that_are_joined(tmp_path: Path, files: tuple[str, str], other: str) -> None:
    texts = {f"pi0/libero/{name}": client_log(text) for name, text in zip(files, (GOOD, other), strict=True)}
    found = collected(tmp_path, texts)
    assert table(found) == {("pi0", "libero"): (8 if other == GOOD else 4, 8)}
    assert found.runs == {("pi0", "libero"): {"seed1": range(4), "seed2": range(4, 8)}}


def test_seeds_that_are_only_counted_are_two_runs(tmp_path: Path) -> None:
    found = table(collected(tmp_path, {f"pi0/libero/seed{seed}.log": counted(4) for seed in (1, 2)}))
    assert set(found) == {("pi0 (seed1)", "libero"), ("pi0 (seed2)", "libero")}


@pytest.mark.parametrize("again", [rows("TTTF"), rows(GOOD, distance_m=2.5)])
def test_records_that_name_their_combo_and_contradict_each_other_are_two_runs(tmp_path: Path, again: str) -> None:
    found = table(collected(tmp_path, {"monday/e.jsonl": rows(GOOD), "tuesday/e.jsonl": again}))
    assert set(found) == {("pi0 (monday)", "libero"), ("pi0 (tuesday)", "libero")}
    assert {count for _, count in found.values()} == {4}


@pytest.mark.parametrize(
    ("path", "environment", "policy"),
    [
        ("gr00t/out.log", "env/pick", "gr00t"),
        ("gr00t/pick/out.log", "env/pick", "gr00t"),
        ("gr00t/Pick/seed0/out.log", "env/pick", "gr00t"),
        ("rollouts/arena/gr00t/out.log", "env/pick", "gr00t"),
        ("pick.log", "env/pick", "pick"),
    ],
)
def test_the_folder_of_a_task_is_no_policy(tmp_path: Path, path: str, environment: str, policy: str) -> None:
    assert table(collected(tmp_path, {path: listed(environment, "TF")})) == {(policy, environment): (1, 2)}


@pytest.mark.parametrize(
    ("path", "combo"),
    [
        ("logs/vla/libero_goal/EVAL-libero_goal-openvla-2026_06_15-10_00_00.txt", ("vla", "libero_goal")),
        ("pi0/reach/Reach.json", ("pi0", "Reach")),
        ("reach/reach.json", ("unnamed", "reach")),
    ],
)
def test_a_folder_called_like_the_environment_in_it_is_no_policy(path: str, combo: tuple[str, str]) -> None:
    assert combo_of_path(path) == combo


def test_a_folder_that_other_files_know_as_an_environment_is_no_policy(tmp_path: Path) -> None:
    episodes = json.dumps({"per_episode": [{"episode_ix": 0, "success": True}]})
    tasks = json.dumps({"per_task": [{"task_group": "libero", "metrics": {"successes": [True, False]}}]})
    files = {"act/pusht/eval_info.json": episodes, "dp/pusht/eval_info.json": tasks}
    assert table(collected(tmp_path, files)) == {("act", "pusht"): (1, 1), ("dp", "libero"): (1, 2)}


def test_a_report_beside_the_results_is_no_result(tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").write_text(rows(GOOD))
    for output in (tmp_path / "report", tmp_path / "runs/first"):
        report_folder(tmp_path, output)
    assert table(collect_folder(tmp_path)) == {("pi0", "libero"): (4, 4)}
    (tmp_path / "summary.csv").write_text("policy,environment,episode,success\npi1,libero,0,1\n")
    assert ("pi1", "libero") in table(collect_folder(tmp_path)), "only in the folder of a report"


def test_two_runs_of_many_combos_are_told_apart_in_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = []
    monkeypatch.setattr(Reading, "rename", lambda *told: passes.append(told))
    one = "".join(rows(GOOD).replace("libero", f"task{number}") for number in range(20))
    collected(tmp_path, {"a/rows.jsonl": one, "b/rows.jsonl": one.replace("true", "false")})
    assert len(passes) == 2


@pytest.mark.parametrize("verdicts", [((True, False), (False, False)), ((True, False), (True, False))])
def test_what_processes_of_one_run_wrote_is_one_policy(tmp_path, verdicts):
    for rank, own in enumerate(verdicts):
        (tmp_path / f"eval_rank{rank}").mkdir()
        rows = ({"policy": "p", "environment": "e", "episode": at, "success": one} for at, one in enumerate(own))
        write_rows(tmp_path / f"eval_rank{rank}" / "r.jsonl", rows)
    found = collect_folder(tmp_path).records
    assert {record.combo for record in found} == {("p", "e")}
    assert sorted(record.episode for record in found) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"pi0/stairs/client.log": client_log(GOOD)}, ["policy 'pi0' and environment 'stairs' guessed from its path"]),
        ({"pi0/rows.jsonl": rows(GOOD), "other/rows.jsonl": rows(BAD, first=4)}, []),
        ({"out.log": listed("stairs", GOOD)}, []),
        (
            {f"{name}/out.log": listed("stairs", GOOD) for name in "abc"},
            ["policy 'a' guessed from its path, like those of 2 other files"],
        ),
        (
            {f"pi0/seed{at}/stairs/client.log": client_log(GOOD) for at in range(2)},
            ["policy 'pi0' and environment 'stairs' guessed from its path, like those of 1 other file"],
        ),
        ({"pi0/libero/eval.log": counted(3)}, ["policy 'pi0' and environment 'libero' guessed from its path"]),
        (
            {"pi0/eval_info.json": json.dumps({"per_group": {"pick": {"pc_success": 50.0, "n_episodes": 4}}})},
            ["policy 'pi0' guessed from its path"],
        ),
        ({"pi0/pick/success_obj_episode_0.mp4": ""}, ["policy 'pi0' and environment 'pick' guessed from its path"]),
    ],
)
def test_names_that_only_a_path_gives_are_told_once(tmp_path: Path, files: dict[str, str], said: list[str]) -> None:
    found = collected(tmp_path, files)
    assert [one.reason.partition(";")[0] for one in found.defects if "guessed" in one.reason] == said
    assert all(("--grid" in one.reason) is (" and " in one.reason) for one in found.defects if "guessed" in one.reason)


@pytest.mark.parametrize(
    ("column", "value", "combo"),
    [("env", "Lift", ("octo", "Lift")), ("model", "OCTO", ("octo", "Lift")), ("model", "other", ("Lift", "octo"))],
)
def test_a_column_of_some_rows_says_in_which_order_paths_name(
    tmp_path: Path, column: str, value: str, combo: tuple[str, str]
) -> None:
    rows = [{"episode": at, "success": at % 2 == 0} for at in range(4)]
    files = {"Lift/octo/rows.jsonl": [{**row, column: value} for row in rows], "Can/octo/rows.jsonl": rows}
    found = collected(tmp_path, {name: "".join(f"{json.dumps(row)}\n" for row in own) for name, own in files.items()})
    other = tuple("Can" if name == "Lift" else name for name in combo)
    assert {record.combo for record in found.records} == {combo, other}


def bare(outcomes: str) -> str:
    told = ({"episode": n, "success": letter == "T"} for n, letter in enumerate(outcomes))
    return "".join(f"{json.dumps(row)}\n" for row in told)


@pytest.mark.parametrize(
    ("paths", "unknown"),
    [
        (("outputs/eval/A/eval_info.json", "outputs/eval/B/eval_info.json"), ("A", "B")),
        (("A/episodes.jsonl", "B/per_episode_results.jsonl"), ("A", "B")),
        (("A/pick_results.jsonl", "A/place_results.jsonl"), ()),
        (("part1/pick.jsonl", "part2/place.jsonl"), ("pick", "place")),
        (("A.jsonl", "B.jsonl"), ("A", "B")),
        (("seed0.jsonl", "seed1.jsonl"), ("seed0", "seed1")),
        (("2026-11-02.jsonl", "2026-11-03.jsonl"), ("2026-11-02", "2026-11-03")),
        (("out/2026-11-02/10-30-00/r.jsonl", "out/2026-11-02/10-31-00/r.jsonl"), ("r (10-30-00)", "r (10-31-00)")),
        (("multirun/0/results.jsonl", "multirun/1/results.jsonl"), ("0", "1")),
        (
            ("wandb/run-20261102_103001-a1/files/rows.jsonl", "wandb/run-20261102_103002-b2/files/rows.jsonl"),
            ("run-20261102_103001-a1", "run-20261102_103002-b2"),
        ),
        (("A/pick.jsonl", "A/place.jsonl"), ()),
        (("A.jsonl",), ()),
    ],
    ids=str,
)
def test_of_one_level_of_names_nothing_is_claimed_and_a_person_is_asked(
    paths: tuple[str, ...], unknown: tuple[str, ...], tmp_path: Path
) -> None:
    listed = json.dumps({"per_episode": [{"episode_ix": n, "success": n > 1} for n in range(4)]})
    summary = summarize(
        collected(tmp_path, {path: bare(GOOD) if "jsonl" in path else listed for path in paths})
    ).summary
    assert summary.of_unknown_level == unknown
    asked = [one.what for one in summary.quality.findings if one.where == "names"]
    assert [all(name in one for name in unknown) for one in asked] == [True] * bool(unknown)
    if unknown:
        assert not summary.macro_means
        assert all(name in answer(summary) for name in unknown)


@pytest.mark.parametrize("policies", [("rt1x", "octo"), ("octo",)])
def test_of_three_levels_the_outermost_is_the_policy_and_a_person_is_asked(
    policies: tuple[str, ...], tmp_path: Path
) -> None:
    names = [*product(policies, ("near", "can"), ("base", "light"))] if policies[1:] else [(*policies, "near", "base")]
    found = collected(tmp_path, {f"{a}/{b}/{c}.jsonl": bare(GOOD) for a, b, c in names})
    assert {*table(found)} == {(a, f"{b}/{c}") for a, b, c in names}
    assert any("'octo'" in one.reason and "--grid" in one.reason for one in found.defects)


@pytest.mark.parametrize("folder", ["a/debug", "debug/a", "a/anything"])
def test_a_file_in_one_folder_more_than_its_namesake_is_set_aside_and_named(folder: str, tmp_path: Path) -> None:
    found = collected(
        tmp_path, {"a/pick.jsonl": bare(GOOD), "b/pick.jsonl": bare(BAD), f"{folder}/pick.jsonl": bare("T")}
    )
    assert table(found) == {("a", "pick"): (4, 4), ("b", "pick"): (0, 4)}
    assert any(one.path == f"{folder}/pick.jsonl" and "a/pick.jsonl" in one.reason for one in found.defects)


@pytest.mark.parametrize(
    "form",
    [
        "20261102_{}/{}.jsonl",
        "{}_2026-11-02/{}_2026-11-02_10-30-00.jsonl",
        "out/2026-11-02/10-30-00/env={1},policy={0}/results.jsonl",
        "policy={0}/task={1}/r.jsonl",
        "{}/{}/results-00000-of-00001.jsonl",
        "eval/{}/{}/demo_clean/ckpt_600/2026-11-02 10:30:00/rows.jsonl",
        "runs/{1}__{0}__1__1730510000/r.jsonl",
        "out/policy.name={},+task={},eval.n=20/r.jsonl",
        "{}/{}/success.jsonl",
    ],
)
def test_dates_pairs_shards_and_levels_that_all_paths_share_are_no_names(tmp_path: Path, form: str) -> None:
    combos = {*product(("pi0", "act"), ("pick", "lift"))}
    found = collected(tmp_path, {form.format(*names): bare("TTF") for names in combos})
    assert table(found) == dict.fromkeys(combos, (2, 3))


def test_an_environment_of_rows_that_is_both_names_of_the_path_is_taken_apart(tmp_path: Path) -> None:
    job = '{"job_name": "%s_%s", "env_id": 0, "episode_in_env": 0, "success": true}\n'
    combos = {*product(("gr00t", "pi0"), ("pick", "lift"))}
    found = collected(tmp_path, {f"{a}/{b}/episode_results.jsonl": job % (a, b) for a, b in combos})
    assert table(found) == dict.fromkeys(combos, (1, 1))


@pytest.mark.parametrize(
    "form", ["{}/pick/2026-11-02/r", "{}/pick/r", "sim/{}/pick", "{}/pick", "{}/pick/2026-11-02/results", "x/y/{}/pick"]
)
def test_where_only_policies_differ_the_environment_is_what_they_share(tmp_path: Path, form: str) -> None:
    found = collected(tmp_path, {f"{form.format(policy)}.jsonl": bare("TTF") for policy in ("pi0", "act")})
    assert {*table(found)} == {("pi0", "pick"), ("act", "pick")}


@pytest.mark.parametrize("form", ["{0}/{1}/pick/r", "{0}/pick/{1}/r", "x/{0}/{1}/pick"])
@pytest.mark.parametrize("environments", [("pick",), ("pick", "lift")])
def test_steps_of_a_training_among_the_levels_are_the_policys(
    tmp_path: Path, form: str, environments: tuple[str, ...]
) -> None:
    combos = [*product(("pi0", "act"), ("checkpoint_1000", "checkpoint_2000"), environments)]
    paths = {f"{form.format(a, b).replace('pick', c)}.jsonl": bare("TTF") for a, b, c in combos}
    found = collected(tmp_path, paths)
    assert {*table(found)} == {(f"{a}/{b}", c) for a, b, c in combos}
    assert not [one.reason for one in found.defects if "levels" in one.reason]


def test_names_that_a_program_gives_files_come_before_levels(tmp_path: Path) -> None:
    names = [f"logs/vla/{suite}/EVAL-{suite}-openvla-2026_06_15-10_00_00.jsonl" for suite in ("goal", "long")]
    assert {*table(collected(tmp_path, {name: bare("TTF") for name in names}))} == {("vla", "goal"), ("vla", "long")}


@pytest.mark.parametrize(
    ("paths", "told"),
    [
        (("pi0/pick", "act/v2/pick"), "3 levels and others have fewer"),
        (("sim/pi0/pick", "sim/act/v2/pick"), "3 levels and others have fewer"),
        (("pi0/pick/results", "act/pick"), ""),
        (("sim/pi0/pick", "sim/act"), ""),
    ],
)
def test_a_path_with_more_levels_than_others_is_told(tmp_path: Path, paths: tuple[str, str], told: str) -> None:
    found = collected(tmp_path, {f"{path}.jsonl": bare("TTF") for path in paths})
    assert [told in one.reason for one in found.defects if "levels" in one.reason] == [True] * bool(told)


@pytest.mark.parametrize(
    ("paths", "runs"),
    [
        (("act_2026-05-01/x", "act_20260502T1010/x"), ["2026-05-01", "20260502T1010"]),
        (("act-01.05.2026/x", "act-02.05.2026/x"), ["01.05.2026", "02.05.2026"]),
        (
            ("2026-05-01T10:10:10Z_act/x", "2026-05-01T12:10:10Z_act/x"),
            ["2026-05-01T10:10:10Z", "2026-05-01T12:10:10Z"],
        ),
        (("act_1777600000/x", "act_1777700000/x"), ["1777600000", "1777700000"]),
        (("act/x_2026-05-01", "act/x_2026-05-02"), ["2026-05-01", "2026-05-02"]),
        (("act/x/2026-05-01", "act/x/2026-05-02"), ["2026-05-01", "2026-05-02"]),
        (("2026-05-01/act/x", "2026-05-02/act/x"), ["2026-05-01", "2026-05-02"]),
        (("act_2026-05-01", "act_2026-05-02"), ["2026-05-01", "2026-05-02"]),
    ],
    ids=str,
)
def test_runs_that_differ_by_a_date_are_joined(tmp_path: Path, paths: tuple[str, ...], runs: list[str]) -> None:
    found = collected(tmp_path, {f"{path}.jsonl": bare(text) for path, text in zip(paths, (GOOD, BAD), strict=True)})
    assert len(table(found)) == 1
    assert [[*one] for one in found.runs.values()] == [runs]


@pytest.mark.parametrize("paths", [("act_v1/x", "act_v2/x"), ("act_10000/x", "act_20000/x"), ("1/r", "2/r")], ids=str)
def test_names_that_differ_by_no_date_are_not_joined(tmp_path: Path, paths: tuple[str, ...]) -> None:
    found = collected(tmp_path, {f"{path}.jsonl": bare(text) for path, text in zip(paths, (GOOD, BAD), strict=True)})
    assert len(table(found)) == 2
    assert not found.runs


@pytest.mark.parametrize("runs", [("seed0", "seed1"), ("run_1", "run_2"), ("2026-11-02", "2026-11-03")])
@pytest.mark.parametrize("text", [bare(GOOD), rows(GOOD)], ids=["named by paths", "named by rows"])
def test_two_runs_that_went_alike_are_no_copies(tmp_path: Path, runs: tuple[str, str], text: str) -> None:
    found = collected(tmp_path, {f"pi0/pick/{run}/results.jsonl": text for run in runs})
    assert sum(counts[1] for counts in table(found).values()) == 8


@pytest.mark.parametrize(
    ("paths", "doubted"),
    [
        (("a/x", "a/y", "a_rerun/x", "a_rerun/y"), ["'a_rerun' beside 'a'"]),
        (("a/x", "a/y", "b/x", "b/y", "debug/x"), ["'debug', in fewer environments"]),
        (("a/x", "a/y", "b/x", "b/y", "b/debug"), ["'debug', in fewer policies"]),
        (("a/x", "a/y", "b/x", "b/x_resumed"), ["'x_resumed' beside 'x'"]),
        (("v1/x", "v1.5/x", "v1/y", "v1.5/y"), []),
        (("act/x", "act_lora/x", "act/x_top", "act_lora/x_top"), []),
        (("ab/x", "a/x", "a/y"), []),
    ],
    ids=str,
)
def test_names_of_paths_that_may_be_none_are_told(tmp_path: Path, paths: tuple[str, ...], doubted: list[str]) -> None:
    found = collected(tmp_path, {f"{path}.jsonl": bare("TTF") for path in paths})
    told = [one.reason for one in found.defects if "of their own" in one.reason]
    assert len(told) == len(doubted)
    assert all(words in one for words, one in zip(doubted, told, strict=True))


@pytest.mark.parametrize(
    ("files", "combos"),
    [
        ({"r.jsonl": ("policy", "A", "env", ("cup", "mug"))}, {("A", "cup"), ("A", "mug")}),
        ({"A.jsonl": ("note", "", "env_name", ("cup", "mug"))}, {("A", "cup"), ("A", "mug")}),
        (
            {"A.jsonl": ("note", "", "env", ("cup", "mug")), "B.jsonl": ("note", "", "env", ("cup", "mug"))},
            {("A", "cup"), ("A", "mug"), ("B", "cup"), ("B", "mug")},
        ),
        ({"r.jsonl": ("policy", "A", "env", ("cup",))}, {("A", "cup")}),
        ({"r.jsonl": ("policy", "A", "env", ("0", "1"))}, {("A", "r")}),
        (
            {"A/pick.jsonl": ("note", "", "env", ("Libero",)), "A/place.jsonl": ("note", "", "env", ("Libero",))},
            {("A", "pick"), ("A", "place")},
        ),
    ],
    ids=["several", "policy of the path", "policies of paths", "one", "numbers", "of all"],
)
def test_a_column_of_another_name_names_the_environment_where_paths_tell_none_apart(
    files: dict[str, tuple[str, str, str, tuple[str, ...]]], combos: set[tuple[str, str]], tmp_path: Path
) -> None:
    texts = {}
    for path, (field, name, column, values) in files.items():
        rows = ({field: name, column: one, "episode": at, "success": at > 0} for one in values for at in range(3))
        texts[path] = "".join(f"{json.dumps(row)}\n" for row in rows)
    assert {record.combo for record in collected(tmp_path, texts).records} == combos
