"""Every format that the host counts: what real programs wrote, and what nothing may make of it."""

from __future__ import annotations

import io
import json
import sqlite3
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adapter_samples import sample

from comborun.rules.results import formats
from comborun.rules.results.fields import Identity, ResultRules
from comborun.rules.results.formats import look, reader
from comborun.rules.results.proposals import propose
from comborun.rules.results.tally import Rows
from comborun.words import say

IDENTITY = Identity("flat", "stairs")
TEN = [True, True, False, True, True, True, True, True, True, False]


def read(kind: str, data: bytes | str, success: str = "success", episode: str = "episode", pattern: str = "") -> Rows:
    rules = ResultRules(success=success, episode=episode, pattern=pattern)
    rows = Rows(reader(kind, Identity("flat", "stairs", rules)))
    rows.feed(data.encode() if isinstance(data, str) else data)
    return rows.last()


def told(rows: Rows) -> dict[int, bool | None]:
    return {**rows.episodes, **rows.numbered}


def why(rows: Rows) -> str:
    return "; ".join(say(one.why) for one in rows.refused.values() if one.why)


def test_the_monitor_file_of_stable_baselines_is_a_table_with_a_comment() -> None:
    data = sample("sb3/cartpole.monitor.csv")
    assert list(told(read(formats.TABLE, data, "is_success", "line")).values()) == TEN
    by_return = read(formats.TABLE, data, '{"field": "r", "at_least": 40}', "line")
    assert [at for at, verdict in told(by_return).items() if verdict] == [3, 8]
    assert "no field 'episode'" in why(read(formats.TABLE, data))


def test_the_last_of_several_evaluations_in_an_archive_counts() -> None:
    rows = read(formats.ARRAYS, sample("sb3/evaluations.npz"))
    assert list(told(rows).values()) == TEN
    assert rows.samples[3] == {"episode": 3, "return": 52.0, "length": 52, "success": True}


@pytest.mark.parametrize(
    ("beside", "planned", "episodes", "runs"),
    [
        ({"timesteps": [100, 200]}, 0, {0: True, 1: False}, {None}),
        ({"timesteps": [100, 200]}, 4, {0: True, 1: False}, {None}),
        ({"train_seeds": [7, 8]}, 0, {0: True, 1: True}, {7, 8}),
        ({}, 4, {0: True, 1: True, 2: True, 3: False}, {None}),
        ({}, 2, {}, set()),  # steps of 2 episodes, say
        ({"seeds": [7, 8]}, 2, {0: True, 1: True}, {7, 8}),
        ({}, 0, {}, set()),
        ({"seeds": [7, 8, 9]}, 0, {}, set()),
    ],
)
def test_rows_of_outcomes_are_evaluations_or_runs_as_an_array_beside_them_says(
    beside: dict[str, list[int]], planned: int, episodes: dict[int, bool], runs: set[int | None]
) -> None:
    rows = Rows(reader(formats.ARRAYS, Identity("flat", "stairs", ResultRules(), planned)))
    rows.feed(npz(success=[[True, True], [True, False]], **beside))
    last = rows.last()
    assert told(last) == episodes
    assert ("nothing says whether the 2 are" in why(last)) is (not episodes)
    assert {row.get("train_seed") for row in last.samples} == runs


@pytest.mark.parametrize(
    ("comment", "fields"),
    [
        ("# note: kitchen, seen", {"note": "kitchen, seen"}),
        ("# sim=mujoco, max_steps=300", {"sim": "mujoco", "max_steps": "300"}),
        ("# policy: other, environment: x", {}),
        ("# success: 0.5", {}),
        ("# 20 episodes, mean: 0.5", {}),
        ('#{"t_start": 1.5, "env_id": "CartPole-v1"}', {}),
    ],
)
def test_comments_before_a_header_state_fields_of_all_rows(comment: str, fields: dict[str, str]) -> None:
    rows = read(formats.TABLE, f"{comment}\nepisode,success\n0,1\n1,0\n")
    assert told(rows) == {0: True, 1: False}
    assert rows.samples[1] == {"episode": 1, "success": 0, **fields}


def test_one_cell_that_is_called_as_its_column_is_no_header() -> None:
    rows = read(formats.TABLE, "state,note\nstate,\nnote,\n,note\n", '{"field": "state", "any_of": ["state"]}', "line")
    assert rows.taken == 3


@pytest.mark.parametrize("name", ["match.json", "match.eval"])
def test_a_sample_of_inspect_that_failed_has_no_verdict(name: str) -> None:
    rows = read(formats.INSPECT, sample(f"inspect/{name}"))
    assert told(rows) == {0: True, 1: False, 2: True, 3: False, 4: True, 5: None}


@pytest.mark.skipif(hasattr(zipfile, "ZIP_ZSTANDARD"), reason="this Python reads it")
def test_an_archive_that_this_python_cannot_unpack_says_what_to_do() -> None:
    rows = read(formats.INSPECT, sample("inspect/zstd.eval"))
    assert "zstd" in why(rows)
    assert "as JSON" in why(rows)


def test_the_tasks_of_a_vla_eval_document_follow_each_other() -> None:
    rows = read(formats.EPISODES, sample("vla_eval/libero.json"))
    assert told(rows) == {**{at: at % 2 == 0 for at in range(5)}, 5: False, 6: True, 7: False, 8: True, 9: None}
    assert rows.samples[7]["task"] == "task_1"


def test_what_the_infrastructure_broke_off_has_no_verdict_though_vla_eval_wrote_one() -> None:
    document = json.loads(sample("vla_eval/libero.json"))
    document["tasks"][0]["episodes"][1]["failure_reason"] = "timeout"
    assert told(read(formats.EPISODES, json.dumps(document)))[1] is None
    del document["harness_version"]  # elsewhere such a field says why a policy failed
    assert told(read(formats.EPISODES, json.dumps(document)))[1] is False


ROW = [{"episode": at, "success": at == 1} for at in range(3)]
DOCUMENTS: dict[str, Any] = {
    "a list": ROW,
    "a list under a name": {"episodes": ROW},
    "a list that is deep": {"run": {"results": [{"part": {"rollouts": ROW}}]}},
    "without an index": {"episodes": [{"success": row["success"]} for row in ROW]},
    "verdicts among the metrics": {"episodes": [{"info": {"success": row["success"]}} for row in ROW]},
    "an array": {"successes": [0, 1, 0], "returns": [1.0, 2.0, 3.0]},
    "a list of tasks with arrays": [{"task": "a", "success": [False, True]}, {"task": "b", "success": [False]}],
    "tasks by name": {"pick": {"successes": [0.0, 1.0], "mean": 0.5}, "place": {"successes": [0.0]}},
    "arrays by name": {"success": {"pick": [False, True], "place": [False]}},
}


@pytest.mark.parametrize("case", DOCUMENTS)
def test_a_document_may_have_its_episodes_anywhere(case: str) -> None:
    rows = read(formats.EPISODES, json.dumps(DOCUMENTS[case], indent=1))
    assert told(rows) == {0: False, 1: True, 2: False}


def test_arrays_beside_the_verdicts_are_fields() -> None:
    rows = read(formats.EPISODES, json.dumps({"successes": [0, 1], "returns": [1.5, 2.5], "model": "pi0"}))
    assert rows.samples[1]["returns"] == 2.5
    assert rows.samples[1]["model"] == "pi0"


def test_lines_of_a_log_are_records_where_the_pattern_matches() -> None:
    log = "begun\nEpisode 1 took 3 s: success, return 2.5\r\n\x1b[32mEpisode 2: fail, return -1e3\x1b[0m\nEpisode 3"
    pattern = r"Episode (?P<episode>\d+).*?(?P<verdict>success|fail).*return (?P<score>[-\d.e]+)"
    rows = read(formats.LOG_PATTERN, log, "success", '{"field": "episode", "from": 1}', pattern=pattern)
    assert told(rows) == {0: True, 1: False}
    assert [row["score"] for row in rows.samples] == [2.5, -1000.0]
    assert told(read(formats.LOG_PATTERN, "ok\nno\nok\n", pattern=r"(?P<verdict>ok|no)")) == {
        0: True,
        1: False,
        2: True,
    }


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("episode,success\n1,true\n2,tr", "the last line is cut off"),
        ("episode,success\n1,true,3\n", "3 cells, where the header has 2"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(text: str, sentence: str) -> None:
    assert sentence in why(read(formats.TABLE, text))


def test_cells_may_hold_line_breaks_and_other_separators() -> None:
    rows = read(formats.TABLE, 'episode;note;success\r\n0;"a;\nb";TRUE\r\n1;;0\r\n')
    assert told(rows) == {0: True, 1: False}
    assert rows.samples[0]["note"] == "a;\nb"


def test_of_a_history_only_rows_with_the_verdict_are_episodes() -> None:
    data = sample("wandb/history.jsonl")
    rows = read(formats.HISTORY, data, "eval/success")
    assert told(rows) == {at: at % 3 != 0 for at in range(10)}
    assert rows.samples[0]["eval/length"] == 40
    without = read(formats.HISTORY, data)
    assert (told(without), why(without)) == ({}, "none of 20 rows of a history has the field 'success'")
    assert propose(without.samples, IDENTITY, (0, 10)) == {"success": "eval/success"}


@pytest.mark.parametrize(
    ("name", "kind"), [("lift.log", "log-rollout-stats"), ("PnPCounterToCab.json", "rollout-stats")]
)
def test_statistics_of_rollouts_are_a_count(name: str, kind: str) -> None:
    (found,) = read(kind, sample(f"robomimic/{name}")).counted
    assert found
    assert (found.successes, found.episodes, found.metrics["Return"]) == (7, 10, 0.7)


def database(path: Path, identity: Identity = IDENTITY) -> Rows:
    with path.open("rb") as stream:
        rows = Rows(look(stream, path.name, identity).reader(identity, path.name))
    rows.finish()
    return rows


def test_the_table_with_the_episodes_is_read_and_nothing_is_written_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    path.write_bytes(sample("sqlite/results.db"))
    tmp_path.chmod(0o500)
    try:
        rows = database(path)
    finally:
        tmp_path.chmod(0o700)
    assert told(rows) == {**{at: at % 3 != 0 for at in range(9)}, 9: None}
    assert [one.name for one in tmp_path.iterdir()] == ["results.db"]


def test_a_database_that_is_being_written_counts_what_is_there_and_is_not_disturbed(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE runs (episode INTEGER, success INTEGER)")
    base.execute("INSERT INTO runs VALUES (0, 1)")
    base.commit()
    base.execute("INSERT INTO runs VALUES (1, 1)")
    assert told(database(path)) == {0: True}
    base.commit()
    assert told(database(path)) == {0: True, 1: True}
    base.close()


ENDLESS = """CREATE VIEW runs AS WITH RECURSIVE n(episode, success) AS (
    SELECT 0, 1 UNION ALL SELECT episode + 1, 1 FROM n) SELECT * FROM n"""


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ("CREATE TABLE config (name TEXT); INSERT INTO config VALUES ('a')", "tables (config) hold no episodes"),
        (ENDLESS, "tables (none) hold no episodes"),
    ],
)
def test_a_database_without_episodes_is_named(tmp_path: Path, schema: str, sentence: str) -> None:
    base = sqlite3.connect(tmp_path / "r.db")
    base.executescript(schema)
    base.close()
    assert sentence in why(database(tmp_path / "r.db"))


def test_half_a_database_is_being_written_or_cut_off(tmp_path: Path) -> None:
    data = sample("sqlite/results.db")
    (tmp_path / "r.db").write_bytes(data[: len(data) // 2])
    assert "being written, or cut off" in why(database(tmp_path / "r.db"))


def test_a_quote_that_never_ends_is_one_row_that_was_cut_off_and_takes_no_time() -> None:
    began = time.process_time()
    rows = read(formats.TABLE, 'episode,success\n0,true\n1,"' + "x\n" * 400_000)
    assert (told(rows), why(rows)) == ({0: True}, "cut off: a quote in line 3 has no end")
    assert time.process_time() - began < 10


def npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


UNREADABLE = {
    "half an archive": (formats.ARRAYS, npz(successes=[1, 0])[:-30], "cut off"),
    "objects": (formats.ARRAYS, npz(successes=np.array([None, {}], dtype=object)), "never unpickled"),
    "other arrays": (formats.ARRAYS, npz(weights=[1.0]), "weights: none with an episode's outcome"),
    "half a document": (formats.EPISODES, b'{"episodes": [{"success": tr', "half-written"),
    "no document": (formats.EPISODES, b"{]}", "not JSON"),
    "too deep": (formats.EPISODES, b"[" * 200_000 + b"]" * 200_000, "nested too deeply"),
    "too long a number": (formats.EPISODES, b"[" + b"9" * 100_000 + b"]", "a number too long"),
    "nothing": (formats.EPISODES, b'{"episodes": []}', "it holds no episode: episodes is empty"),
    "another document": (formats.EPISODES, b'{"learning_rate": 0.1}', "of no format that is known"),
    "a log without samples": (formats.INSPECT, b'{"eval": {}, "version": 2}', "without samples"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_file_that_cannot_be_read_gets_a_sentence(case: str) -> None:
    kind, data, sentence = UNREADABLE[case]
    began = time.process_time()
    assert sentence in why(read(kind, data))
    assert time.process_time() - began < 10
