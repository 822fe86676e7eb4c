"""Replicas of what evaluation programs write, 5 successes of 10: host and report count them alike, at once, with the
lines that are proposed, or not at all.
"""

import json

import pytest
from both_sides import both_sides

from comborun.rules.results.counts import keys_of
from comborun.rules.results.fields import LOG, Identity, ResultRules

TOLD = [at % 2 == 0 for at in range(10)]
LERO = {"pc_success": 50.0, "n_episodes": 10}
OPENVLA = "".join(
    f"Task: put bowl\nStarting episode {at + 1}...\nSuccess: {one}\n# episodes completed so far: {at + 1}\n"
    for at, one in enumerate(TOLD)
)
BEHAVIOR = {f"turning_{at}_0.json": {"q_score": {"final": 0.4}, "success": one} for at, one in enumerate(TOLD)}
REPLICAS = {
    "Arena 0.4": {
        "arena_experiment_result.json": {"jobs": {"a": {"metrics": {"success_rate": 0.5, "num_episodes": 10}}}}
    },
    "BEHAVIOR 2026": BEHAVIOR,
    "CALVIN": {
        "results.json": {"0": {"task_info": {"a": {"success": 3, "total": 5}, "b": {"success": 2, "total": 5}}}}
    },
    "MolmoSpaces": {"r.csv": "house,episode,success\n" + "".join(f"h,{at},{one}\n" for at, one in enumerate(TOLD))},
    "robocasa": {"stats.json": {"Success_Rate": 0.5, "Num_Episode": 10, "Num_Success": 5.0}},
    "lerobot 0.3": {
        "eval_info.json": {"per_episode": [{"episode_ix": at, "success": one} for at, one in enumerate(TOLD)]}
    },
    "lerobot 0.4": {"eval_info.json": {"per_task": [{"task_id": 0, "metrics": {"successes": TOLD}}], "overall": LERO}},
    "openvla-oft": {"log": OPENVLA},
    "ManiSkill": {"r.json": {"success_once": 0.5, "success_at_end": 0.4, "num_trajectories": 10}},
    "Habitat, episodes": {
        "r.json": {f"scene{at}_{at}": {"success": float(one), "spl": 0.5} for at, one in enumerate(TOLD)}
    },
    "VLABench": {"detail_info.json": [{"success": one, "consumed_step": 7} for one in TOLD]},
    "EmbodiedBench": {f"episode_{at + 1}_final_res.json": {"task_success": float(one)} for at, one in enumerate(TOLD)},
    "THOR rearrange": {
        "metrics.json": [{"id": f"t{at}", "unshuffle/success": float(one)} for at, one in enumerate(TOLD)]
    },
    "GR00T": {"log": f"results:  ('env', [{', '.join(f'np.{one}_' for one in TOLD)}], {{}})\nsuccess rate:  0.5\n"},
    "MetaWorld": {"r.json": {name: {"success": good, "n_episodes": 5} for name, good in (("reach", 3), ("push", 2))}},
    "RoboDojo": {
        "r.json": {"summary": {"success_count": 5, "total": 10}, "details": [{"success": one} for one in TOLD]}
    },
    "a printed list": {"log": f"episode results: {TOLD}\n"},
    "letters": {"log": f"results: {''.join('SF'[not one] for one in TOLD)}\n"},
    "rows that count on": {
        "r.jsonl": "".join(f'{{"episode": {at}, "successes": {at // 2 + 1}, "total": {at + 1}}}\n' for at in range(10))
    },
    "a log that counts on": {"log": "".join(f"[{at}/10] success: {at // 2}\n" for at in range(1, 11))},
}
REFUSED = {
    "Habitat, the mean": {"r.json": {"num_episodes": 10, "success": 0.5, "spl": 0.3}},
    "RoboTwin": {"_result.txt": "Instruction Type: seen\n\n0.5\n"},
    "VLABench, rates": {"metrics.json": {"select_fruit": {"success_rate": 0.5, "progress_score": 0.7}}},
    "RLBench": {"r.csv": "task,success rate,length,total_transitions\nopen,50.0,25,100\n"},
    "Habitat, all or one": {"r.json": {"num_episodes": 10, "success": 1.0, "spl": 0.5}},
    "Habitat, a log": {"log": "Average episode reward: 1.2\nAverage episode success: 0.5000\n"},
    "a run that goes on": {"r.json": {"status": "running", "success": 5, "total": 10}},
    "verdicts, or a count": {"log": "".join(f"[{at}/10] success: {int(at > 5)}\n" for at in range(1, 11))},
}


def alike(folder, written, rules):
    files = {name: one if isinstance(one, str) else json.dumps(one) for name, one in written.items() if name != "log"}
    judged, reported = both_sides(folder, files, 10, rules, written.get("log", ""))
    assert (judged.counts.successes, judged.counts.verdicts) == (reported.successes, reported.completed)
    return judged.counts


@pytest.mark.parametrize("name", REPLICAS)
def test_what_programs_write_is_read_right_or_with_the_lines_that_are_proposed(tmp_path, name):
    rules = ResultRules(files=("**/*.json", "**/*.jsonl", "**/*.csv"))
    for at in range(4):
        counts = alike(tmp_path / str(at), REPLICAS[name], rules)
        if counts.verdicts:
            break
        keys = next(keys_of(fact) for fact in counts.facts if keys_of(fact))
        source = keys.pop("from", rules.source)
        files = (keys.pop("files"),) if "files" in keys else () if source == LOG else rules.files
        rules = Identity("p", "e", rules).by(**keys).rules.replace(source=source, files=files)
    assert (counts.successes, counts.verdicts) == (5, 10)


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_tell_its_episodes_counts_nowhere(tmp_path, name):
    counts = alike(tmp_path, REFUSED[name], ResultRules(files=("**/*.json", "**/*.jsonl", "**/*.csv")))
    assert not counts.verdicts
    assert counts.facts
