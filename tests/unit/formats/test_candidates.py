"""Documents whose episodes lie where no format says: what counts of them is decided by the number of planned ones."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from both_sides import host_counts

from comborun.reporter.collect import collect_folder
from comborun.rules.facts import Fact
from comborun.rules.results.candidates import episodes
from comborun.rules.results.counts import Counts
from comborun.rules.results.episodes import plain
from comborun.rules.results.fields import Identity, RefusedError, ResultRules
from comborun.rules.results.result_files import Folder
from comborun.rules.results.tally import tally
from comborun.words.rows import proposed

TEN = [at % 3 != 0 for at in range(10)]
"""verdicts of ten episodes, six of them good"""


def counted(folder: Path, files: dict[str, Any], planned: int, **rules: Any) -> Counts:
    """What a host counts of documents, and what it says of others."""
    for name, value in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(value if isinstance(value, str) else json.dumps(value))
    return host_counts(folder, ResultRules(**{"files": ("**/*.json",), **rules}), planned)


def told(counts: Counts) -> tuple[int, int, int]:
    return counts.successes, counts.verdicts, counts.records


def rows(verdicts: list[bool], **more: Any) -> list[dict[str, Any]]:
    return [{"success": one, "steps": 100 + at, **more} for at, one in enumerate(verdicts)]


def keyed(name: str, verdicts: list[bool] = TEN, first: int = 0) -> dict[str, Any]:
    return {name.format(first + at): row for at, row in enumerate(rows(verdicts))}


TASK = {"successes": TEN[:5], "sum_rewards": [1.0] * 5}
EVALUATION = {"per_task": [{"task_group": "e", "task_id": at, "metrics": TASK} for at in (0, 1)], "overall": {}}
DOCUMENTS: dict[str, Any] = {
    "keys that are indexes": keyed("{}"),
    "keys that end in indexes": keyed("episode_{}"),
    "deep, beside numbers": {"success_rate": 0.6, "eval": {"details": keyed("rollout-{}"), "seconds": 12}},
    "beside a mean": {**keyed("ep{}"), "mean": 0.6},
    "behind an object that sums them up": {"average": {"success": 0.6, "steps": 104}, **keyed("ep_{}")},
    "names behind the sum": {"Overall": rows([True])[0], **dict(zip("abcdefghij", rows(TEN), strict=True))},
    "names": dict(zip("abcdefghij", rows(TEN), strict=True)),
    "tasks with lists": {"tasks": {"0": {"per_episode": rows(TEN[:5])}, "1": {"per_episode": rows(TEN[5:])}}},
    "lists by task": {"open": TEN[:5], "close": TEN[5:]},
    "a warm-up beside them": {"warmup": rows(TEN[:2]), "measured": rows(TEN)},
    "two copies": {"rollouts": rows(TEN), "results": rows(TEN)},
    "as known, deeper": {
        "run": {"step_400": {**EVALUATION, "per_task": [{"task_id": 0, "metrics": {"successes": TEN}}]}}
    },
    "k of n": {"success": 6, "total": 10},
    "k of n for each task": {"task_info": {"open": {"success": 4, "total": 5}, "lift": {"success": 2, "total": 5}}},
    "k of n, and of all": {
        "per_task": {"a": {"num_success": 3, "n": 5}, "b": {"num_success": 3, "n": 5}},
        "n": 10,
        "num_success": 6,
    },
    "a map of indexes": {"results": {f"ep_{at}": one for at, one in enumerate(TEN)}},
    "a map of words": {str(at): "success" if one else "failure" for at, one in enumerate(TEN)},
    "a list of verdicts": TEN,
    "pairs": [[at, one] for at, one in enumerate(TEN)],
    "a table of pandas": {"columns": ["episode", "success"], "data": [[at, one] for at, one in enumerate(TEN)]},
    "columns of pandas": {
        "success": {str(at): one for at, one in enumerate(TEN)},
        "steps": {str(at): 9 + at for at in range(10)},
    },
    "a rate": {"result": {"episodes": 10, "metrics": {"eval/success_rate": 0.6}}},
    "a percentage": {"n_episodes": 10, "success_rate": 60.0},
}


@pytest.mark.parametrize("case", DOCUMENTS)
def test_the_plan_tells_what_counts_of_a_document(tmp_path: Path, case: str) -> None:
    counts = counted(tmp_path, {"r.json": DOCUMENTS[case]}, 10)
    for fact in filter(proposed, counts.facts):  # words are proposed only
        counts = counted(tmp_path, {}, 10, **proposed(fact))
    assert told(counts) == (6, 10, 10)


@pytest.mark.parametrize("zeros", [True, False])
def test_verdicts_with_nothing_beside_them_come_with_the_line_that_says_they_are_no_settings(
    tmp_path: Path, zeros: bool
) -> None:
    document = {name: {"success": int(one) if zeros else one} for name, one in zip("abcdefghij", TEN, strict=True)}
    counts = counted(tmp_path, {"r.json": document}, 10)
    assert not counts.records
    (line,) = (line for fact in counts.facts if (line := proposed(fact)))
    assert told(counted(tmp_path, {}, 10, **line)) == (6, 10, 10)


def test_steps_of_an_episode_that_has_a_verdict_are_no_episodes(tmp_path: Path) -> None:
    steps = [{"reward": 0.5, "success": False}] * 10
    for at, one in enumerate(TEN):
        keyed_steps = {str(step): row for step, row in enumerate(steps)}
        (tmp_path / f"traj_{at}.json").write_text(
            json.dumps({"success": one, "steps": keyed_steps if at % 2 else steps})
        )
    assert told(counted(tmp_path, {}, 10)) == (6, 10, 10)
    whole = {"episodes": [{"success": one, "frames": steps} for one in TEN]}
    (tmp_path / "all").mkdir()
    assert told(counted(tmp_path / "all", {"r.json": whole}, 10)) == (6, 10, 10)


RETURNS: dict[str, Any] = {
    "a list called returns": {"returns": [0.5 * at for at in range(10)], "lengths": [9] * 10},
    "a bare list of as many as planned": [1.5] * 10,
    "lists by task": {"open": [1.5] * 4, "lift": [0.5] * 6},
}


@pytest.mark.parametrize("case", RETURNS)
def test_lists_of_returns_come_with_the_line_that_counts_numbers(tmp_path: Path, case: str) -> None:
    counts = counted(tmp_path, {"r.json": RETURNS[case]}, 10)
    assert [proposed(fact) for fact in counts.facts if proposed(fact)] == [{"success": "none"}]
    assert counted(tmp_path, {}, 10, success="none").records == 10


def test_two_evaluations_of_one_file_are_two_policies_unless_a_plan_says_otherwise(tmp_path: Path) -> None:
    document = {"step_400": EVALUATION, "step_800": EVALUATION}
    assert counted(tmp_path, {"r.json": document}, 20).records == 20
    found = {(record.policy, record.environment) for record in collect_folder(tmp_path).records}
    assert found == {("step_400", "e"), ("step_800", "e")}


FOLDERS: dict[str, dict[str, Any]] = {
    "in the name of the file": {f"episode_{at}.json": row for at, row in enumerate(rows(TEN))},
    "in the name of the folder": {f"trial-{at:03}/result.json": row for at, row in enumerate(rows(TEN))},
    "the name is a number": {f"{at:04}.json": row for at, row in enumerate(rows(TEN))},
    "in its field": {f"seed{at + 40}.json": {"episode": at, **row} for at, row in enumerate(rows(TEN))},
    "verdicts further in": {f"ep{at}.json": {"metrics": row} for at, row in enumerate(rows(TEN))},
}


@pytest.mark.parametrize("case", FOLDERS)
def test_a_document_that_is_one_episode_has_its_index_in_a_field_or_a_name(tmp_path: Path, case: str) -> None:
    assert told(counted(tmp_path, FOLDERS[case], 10)) == (6, 10, 10)


def test_documents_without_an_index_come_with_the_line_that_numbers_them(tmp_path: Path) -> None:
    files = {f"turning_on_radio_{at}_0.json": row for at, row in enumerate(rows(TEN))}
    counts = counted(tmp_path, files, 10)
    assert [proposed(fact) for fact in counts.facts if proposed(fact)] == [{"episode": "line"}]
    assert told(counted(tmp_path, {}, 10, episode="line")) == (6, 10, 10)


def test_documents_that_count_from_one_come_with_the_line_that_says_so(tmp_path: Path) -> None:
    counts = counted(tmp_path, {f"episode_{at + 1}.json": row for at, row in enumerate(rows(TEN))}, 10)
    assert [proposed(fact) for fact in counts.facts if proposed(fact)] == [{"episode": {"field": "episode", "from": 1}}]
    line = {"field": "episode", "from": 1}
    assert told(counted(tmp_path, {}, 10, episode=line)) == (6, 10, 10)


@pytest.mark.parametrize("name", ["success.json", "r.json"])
def test_a_flag_of_settings_is_no_verdict_but_one_that_a_name_tells_is(tmp_path: Path, name: str) -> None:
    assert counted(tmp_path, {name: {"headless": True}}, 1).records == (name == "success.json")


def test_numbers_of_zero_and_one_under_any_name_are_no_verdicts(tmp_path: Path) -> None:
    assert not counted(tmp_path, {"r.json": {"seeds": [0, 1]}}, 2).verdicts
    assert counted(tmp_path, {"r.json": {"p": [0, 1]}}, 2).verdicts  # the policy's name


REFUSED: dict[str, tuple[Any, str]] = {
    "two lists that differ": ({"a": rows(TEN), "b": rows([not one for one in TEN])}, "several_candidates"),
    "two lists of bare verdicts": ({"reach": TEN, "push": TEN}, "several_candidates"),
    "one task of two": ({"a": rows(TEN), "b": rows(TEN[:9])}, "several_candidates"),
    "counts of other numbers": ({"a": {"success": 3, "total": 7}, "b": {"success": 3, "total": 9}}, "several_counts"),
    "one verdict for all": ({"success": True, "message": "finished"}, "no_index_field"),
    "an evaluation that has not begun": ({"episodes": [], "success_rate": None}, "empty_list"),
    "an empty list": ([], "empty_list"),
    "a configuration": ({"seed": 1, "model": {"lr": 0.1}}, "unknown_document"),
    "as many flags as episodes": (dict.fromkeys("abcdefghij", True), "unknown_document"),
    "flags of settings": ({"config": dict.fromkeys("abcdefghij", True)}, "unknown_document"),
    "a list of flags": ({"cameras": TEN, "seed": 3}, "unknown_document"),
    "lists of flags": ({"cameras": TEN[:2], "robots": TEN[:2]}, "unknown_document"),
    "lists of flags in settings": ({"config": {"cameras": TEN[:5], "robots": TEN[5:]}}, "unknown_document"),
    "lists of flags that differ in length": ({"cameras": TEN[:3], "robots": TEN[3:]}, "unknown_document"),
    "a setting in each of several objects": ({one: {"success": 1} for one in "abcdefghij"}, "perhaps_settings"),
    "one setting": ({"cfg": {"success": True}}, "perhaps_settings"),
    "numbered devices": ({f"gpu_{at}": one for at, one in enumerate(TEN)}, "unknown_document"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_plan_does_not_decide_counts_nothing_and_is_described(tmp_path: Path, case: str) -> None:
    document, code = REFUSED[case]
    counts = counted(tmp_path, {"r.json": document}, 10)
    assert not counts.records
    assert code in {Fact.of(fact.fields.get("why")).code for fact in counts.facts if fact.fields.get("why")}  # type: ignore[union-attr]


def test_without_a_plan_a_count_of_no_known_format_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "pi0" / "lift").mkdir(parents=True)
    (tmp_path / "pi0" / "lift" / "r.json").write_text(json.dumps({"success": 6, "total": 10}))
    assert not collect_folder(tmp_path).aggregates


def test_episodes_whose_verdict_has_another_name_come_with_the_line(tmp_path: Path) -> None:
    document = {"rollouts": {f"rollout_{at}": {"task_success": one} for at, one in enumerate(TEN)}}
    counts = counted(tmp_path, {"r.json": document}, 10)
    assert [proposed(fact) for fact in counts.facts if proposed(fact)] == [{"success": "task_success"}]
    assert told(counted(tmp_path, {}, 10, success="task_success")) == (6, 10, 10)


@pytest.mark.parametrize("planned", [1, 10])
def test_a_document_of_one_episode_is_read_alike_by_a_try_and_a_run(tmp_path: Path, planned: int) -> None:
    """The verdict may lie in the only object of the document, beside a list of steps."""
    steps = [{"t": 0, "reward": 0.0}, {"t": 1, "reward": 1.0}]
    documents = {
        f"{at:04d}.json": {"episode": {"id": at, "outcome": {"success": one}}, "frames": steps}
        for at, one in enumerate(TEN[:planned])
    }
    assert told(counted(tmp_path, documents, planned)) == (sum(TEN[:planned]), planned, planned)


def test_a_document_of_one_episode_may_hold_several_objects(tmp_path: Path) -> None:
    for at, one in enumerate(TEN):
        value = {"meta": {"task": "lift"}, "outcome": {"success": one, "steps": 12}}
        (tmp_path / f"ep_{at:04d}").mkdir()
        (tmp_path / f"ep_{at:04d}/result.json").write_text(json.dumps(value))
    assert told(counted(tmp_path, {}, 10)) == (6, 10, 10)
    for at in range(10):
        value = {"meta": {"episode": at}, "outcome": {"success": at < 3}, "timing": {"s": 1.5}}
        (tmp_path / f"ep_{at:04d}/result.json").unlink()
        (tmp_path / f"ep_{at:04d}/x{'x' * at}.json").write_text(json.dumps(value))
    assert told(counted(tmp_path, {}, 10)) == (3, 10, 10)


def test_of_several_verdicts_in_a_document_none_is_chosen(tmp_path: Path) -> None:
    value = {"train": {"success": True}, "eval": {"success": False}, "meta": {"episode": 0}}
    assert told(counted(tmp_path, {"ep_0.json": value}, 10)) == (0, 0, 0)


def test_what_a_program_was_told_is_no_verdict_of_its_episode(tmp_path: Path) -> None:
    for name in ("notify", "termination", "reward_weights", "eval_config", "warmup"):
        documents = {}
        for at, one in enumerate(TEN):
            documents[f"episode_{at}/a.json"] = {"env": {"name": "lift"}, name: {"success": True, "note": "x"}}
            documents[f"episode_{at}/result.json"] = {"success": one, "steps": 12}
        assert told(counted(tmp_path, documents, 10)) == (6, 10, 10), name


@pytest.mark.parametrize(
    "value",
    [
        {"task": {"success_rate": [{"success_rate": 0}, 1, None, {}]}},
        {"task": [{"result": "ko", "seed": 3}, True, None]},
    ],
)
def test_a_list_of_objects_and_others_without_a_verdict_is_refused(tmp_path: Path, value: object) -> None:
    with pytest.raises(RefusedError) as refused:
        episodes(value, Identity("p", "e", planned=4), "r.json")
    assert refused.value.fact.code in {"unknown_document", "verdict_elsewhere"}
    assert told(counted(tmp_path, {"r.json": value}, 4))[1] == 0


def test_a_number_beside_steps_is_no_verdict_of_a_document(tmp_path: Path) -> None:
    document = {"config": {"limits": {"success": 0.5}}, "frames": [{"t": 0}, {"t": 1}]}
    assert told(counted(tmp_path, {f"{at:04d}.json": document for at in range(10)}, 10)) == (0, 0, 0)


def test_a_verdict_beside_a_degree_of_completion_counts(tmp_path: Path) -> None:
    """The other field is none of the known format then, and what is proposed counts all."""
    lines = [{"episode_id": f"ep{at:03d}", "completion": 0.8, "success": one} for at, one in enumerate(TEN)]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    keys: dict[str, Any] = {}
    for wanted in ((0, 0, 0), (6, 10, 10)):
        identity = Identity("p", "e", ResultRules(files=("*.jsonl",), **keys), 10)
        counts = tally(Folder(str(tmp_path), ["*.jsonl"], identity, "").read(), identity, (0, 10), over=True)
        assert told(counts) == wanted
        keys = next(filter(None, map(proposed, counts.facts)), {})


ZEROS_AND_ONES = [int(one) for one in TEN]


@pytest.mark.parametrize(
    "document",
    [
        {"pick": ZEROS_AND_ONES[:5], "push": ZEROS_AND_ONES[5:]},
        {"results": {"pick": ZEROS_AND_ONES[:5], "push": ZEROS_AND_ONES[5:]}},
        {"pick": ZEROS_AND_ONES[:5], "push": ZEROS_AND_ONES[5:], "n": 10, "checkpoint": "a.pt"},
    ],
)
def test_lists_of_zeros_and_ones_per_task_come_with_the_line_that_takes_them_for_verdicts(
    tmp_path: Path, document: dict[str, Any]
) -> None:
    counts = counted(tmp_path, {"r.json": document}, 10)
    assert counts.verdicts == 0
    assert [proposed(fact) for fact in counts.facts if proposed(fact)] == [{"success": "value"}]
    assert told(counted(tmp_path, {}, 10, success="value")) == (6, 10, 10)


def test_lists_of_other_numbers_are_no_verdicts(tmp_path: Path) -> None:
    assert not counted(tmp_path, {"r.json": {"goal": [1, 2, 3], "place": [0, 0, 1], "n": 6}}, 6).records


def test_of_lists_that_are_called_like_environments_the_own_one_counts(tmp_path: Path) -> None:
    document = {"e": ZEROS_AND_ONES, "push": [1] * 10}
    assert told(counted(tmp_path, {"r.json": document}, 10)) == (6, 10, 10)
    assert not counted(tmp_path, {"r.json": {"pick": ZEROS_AND_ONES, "push": [1] * 10}}, 10).records


@pytest.mark.parametrize("word", ["a", "1", " ", "-", "_", "(", "a.", "1,", "episode "])
def test_a_very_long_word_in_a_document_costs_no_time(word: str) -> None:
    """No pattern begins anew at each of its characters: a name of 20,000 blanks took two seconds."""
    long = word * (20_000 // len(word))
    began = time.process_time()
    assert plain(f"{long}.isSuccess (bool) ") == "is_success"
    plain(f"{long}x")
    assert time.process_time() - began < 0.5
