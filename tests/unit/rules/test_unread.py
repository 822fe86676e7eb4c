"""What a program wrote that its grid does not read: each proposal of a line for `results:` is one that counts it."""

import gzip

import pytest

from comborun.rules.results.counts import EITHER, Counts
from comborun.rules.results.fields import Identity, ResultRules
from comborun.rules.results.log_patterns import LOG_PATTERNS, LogPattern
from comborun.rules.results.result_files import Folder
from comborun.rules.results.tally import tally
from comborun.rules.results.unread import name_unread, unread
from comborun.words import say
from comborun.words.rows import flow, proposed, why_not_counted


def said(folder, files, log="", count=2):
    output = folder / "out"
    output.mkdir(exist_ok=True)
    (folder / "log").write_text(log)
    for name, text in files.items():
        (output / name).write_text(text)
    return unread(Folder(str(output), ["**/*.jsonl"], Identity("p", "e"), ""), (0, count), f"{folder}/log")


def line(fact):
    """What is proposed, as a grid has it, without the braces."""
    return flow(proposed(fact))[1:-1]


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("r.json", '[{"episode": 0, "success": true}, {"episode": 1, "success": false}]', 'files: "**/*.json"'),
        ("r.json", '{"all": [{"ep": 1, "success": true}, {"ep": 2, "success": false}]}', 'files: "**/*.json"'),
        ("r.json", '[{"policy": "q", "episode": 0, "success": true}]', 'files: "**/*.json", policy: ignore'),
        ("r.csv", "reward,frames\n0.5,3\n0.25,4\n", 'files: "**/*.csv", episode: line, success: none'),
        ("r.ndjson", '{"episode": 0, "solved": true}\n{"episode": 1, "solved": false}\n', "success: solved"),
    ],
)
def test_a_file_that_no_pattern_takes_comes_with_the_line_that_counts_it(tmp_path, name, text, wanted):
    assert wanted in line(said(tmp_path, {name: text}))


def test_a_log_that_tells_of_episodes_comes_with_the_pattern_that_finds_them(tmp_path):
    logs = [
        ("[trial #0] done, success=True", "[trial #1] done, success=False"),
        ("Episode 0: return=12.5 -> solved", "Episode 1: return=3 -> not solved"),
        ("Episode 0: success (12 s)", "Episode 1: fail"),
        ("[1/2] robot A success: True", "[2/2] robot B success: False"),
        ("(1/2) solved", "(2/2) timeout"),
        ("success: True", "success: False"),
        ("\x1b[92mSuccess!\x1b[0m", "\x1b[91mFail!\x1b[0m"),
        ("lift | Success rate: 1/1 => 100%", "lift | Success rate: 1/2 => 50%"),
        ("Task 0: 1/1 successes", "Task 1: 0/1 successes"),
        ("Final: 1 successes out of 2 trials",),
        ("episode 0 | steps 12 | return -3.5", "episode 1 | steps 9 | return 12"),
        ("trial 0: S", "trial 1: F"),
        ("[1/2] success: 1", "[2/2] success: 2"),
        ("results: [True, False]",),
        ("outcomes: SF",),
    ]
    assert len(LOG_PATTERNS) == len(logs)
    for lines, pattern in zip(logs, LOG_PATTERNS):
        assert pattern in line(said(tmp_path, {}, "\n".join(("starting", *lines, "")))), lines


@pytest.mark.parametrize("text", ["4/4 [00:05<00:01, success_rate=0.5]", "Episode 3: success count: 2"])
def test_neither_a_progress_bar_nor_a_count_so_far_is_a_result(tmp_path, text):
    assert said(tmp_path, {}, f"start\n{text}\n", count=4) is None


def test_behind_a_number_of_successes_stands_no_verdict_of_that_episode(tmp_path):
    found = said(tmp_path, {}, "start\nFinal: 37 / 50 succeeded\n", count=50)
    assert "<episode>" not in line(found)
    assert "<successes>" in line(found)


def test_a_word_that_is_denied_is_no_success():
    for words in ("not solved", "unsolved", "no success", "not a success", "unsuccessful", "failed"):
        log = f"Episode 3: {words}\nEpisode 4: solved\n".encode()
        entries = LogPattern(Identity("p", "e", ResultRules(pattern=LOG_PATTERNS[2]))).feed(log)
        assert [row["success"] for _, row, _, _ in entries] == [False, True], words


def test_rows_of_numbers_come_with_how_one_of_them_decides(tmp_path):
    found = said(tmp_path, {"r.csv": "rollout,length,reward\n0,5.0,0.5\n1,4.0,0.25\n"})
    assert "`success: {field: reward, at_least: NUMBER}`" in say(found)


def test_files_that_hold_no_episode_are_named_only_where_results_are_written_so(tmp_path):
    files = {"config.yaml": "a: 1\n", "note.txt": "hello\n"}
    assert said(tmp_path, files) is None
    assert say(said(tmp_path, {**files, "config.json": '{"a": 1}'})).endswith("the pattern takes **/*.jsonl")


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ({}, "no file is below {output_dir}"),
        (
            {"out.json": '[{"episode": 0}, {"episode": 1}]', "b/data.txt": "hello\n"},
            "out.json: all 2 rows without a verdict: no field 'success'; the pattern takes *.jsonl",
        ),
        ({"data.txt": "hello\n"}, "no file matches *.jsonl: it wrote data.txt"),
        ({"r.jsonl": "", "data.txt": "hello\n"}, "no episode is in r.jsonl, which is empty"),
    ],
)
def test_without_any_results_it_is_said_what_was_written(tmp_path, written, sentence):
    counts = Counts()
    for path, text in written.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    name_unread(counts, Folder(str(tmp_path), ["*.jsonl"], Identity("p", "e"), ""), (0, 2))
    said = why_not_counted(counts.facts)
    assert said.partition(", where no results are found")[0].partition(": have the program")[0] == sentence
    assert ("from: log" in said) is not any(name in written for name in ("out.json", "r.jsonl"))


def test_of_a_program_whose_log_is_read_other_results_are_named_too(tmp_path):
    (tmp_path / "log").write_text("hello\n")
    identity = Identity("p", "e", ResultRules(pattern=r"done (?P<episode>\d+)"))
    for sentence in ("no episode is in its log", "r.jsonl: 1 episode, but the log is read"):
        counts = Counts()
        name_unread(counts, Folder(str(tmp_path), [], identity, "", "log"), (0, 2))
        assert why_not_counted(counts.facts).startswith(sentence)
        (tmp_path / "r.jsonl").write_text('{"episode": 0, "success": true}\n')


@pytest.mark.parametrize("told", ["pick: 2 of 3 succeeded", "pick: 2 out of 3 trials successful", "2/3 succeeded"])
def test_counts_that_a_log_tells_in_words_come_with_their_pattern(tmp_path, told):
    assert LOG_PATTERNS[8] in line(said(tmp_path, {}, f"starting\n{told}\n", count=3))


def test_of_a_session_that_lacks_episodes_each_file_that_can_not_be_read_is_named(tmp_path):
    rows = "".join(f'{{"episode": {at}, "success": true}}\n' for at in range(4))
    (tmp_path / "a.jsonl").write_text(rows)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(rows.encode())[:-9])
    (tmp_path / "c.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd\0\0\0")
    (tmp_path / "d.csv").write_text("episode,success\n4,tr")
    (tmp_path / "config.json").write_text('{"lr": 0.1, "layers": [1, 2]}')
    folder = Folder(str(tmp_path), ["**/*.jsonl"], Identity("p", "e"), "")
    for planned, named in (6, ["b.jsonl.gz", "c.jsonl.zst", "d.csv"]), (4, []):
        counts = tally(folder.read(), folder.identity, (0, planned), over=True)
        name_unread(counts, folder, (0, planned))
        assert [fact.text("file") for fact in counts.facts] == named


@pytest.mark.parametrize(
    ("at_end", "rivals"),
    [(["true", "true"], []), (["true", "false"], [{"field": "success_at_end", "rows": 1, "of": 2}])],
)
def test_a_proposed_verdict_comes_with_those_that_disagree(tmp_path, at_end, rivals):
    rows = [f'{{"episode": {at}, "success_once": true, "success_at_end": {end}}}\n' for at, end in enumerate(at_end)]
    fact = said(tmp_path, {"r.ndjson": "".join(rows)})
    assert proposed(fact)["success"] == "success_once"
    assert fact.fields.get("rivals", []) == rivals
    assert all(one["field"] in say(fact) for one in rivals)


@pytest.mark.parametrize(
    ("text", "count", "successes"),
    [
        ("results: [True, False, True]", 3, 2),
        ("Success: [1 0 1]", 3, 2),
        ("successes = array([ True, False, False])", 3, 1),
        ("is_success: tensor([1., 0., 1., 1.])", 4, 3),
        ("success: [np.True_, np.False_]", 2, 1),
        ("outcome SFSSF", 5, 3),
        ("passed ✓✗✓", 3, 2),
        ("Success: [True, False]\nSuccess: [True, True]", 4, 3),
        ("results: [True, False]\nresults: [True, False, False]", 3, 1),
        ("results: [True, False]\nresults: [False, True]\nresults: [True, False, False, True]", 4, 2),
    ],
)
def test_each_verdict_of_a_list_that_a_log_prints_is_an_episode(tmp_path, text, count, successes):
    found = said(tmp_path, {}, text + "\n", count)
    rules = ResultRules(pattern=proposed(found)["pattern"])
    identity = Identity("p", "e", rules, count)
    counts = tally(Folder(str(tmp_path), ["log"], identity, "").read(), identity, (0, count))
    assert (found.count("episodes"), counts.records, counts.successes, counts.refused) == (count, count, successes, {})


@pytest.mark.parametrize(
    "text", ["results: [0.5, 1, 0]", "success_ids: [0, 1, 1]", "success rate: [1, 0, 1]", "result: [1, 2, 0]"]
)
def test_a_list_of_other_things_is_none_of_verdicts(tmp_path, text):
    assert not said(tmp_path, {}, text + "\n", 3)


def test_what_is_no_verdict_in_a_list_costs_only_itself(tmp_path):
    rules = ResultRules(pattern=r"done \[(?P<verdicts>.*)\]")
    reader = LogPattern(Identity("p", "e", rules, 3))
    rows = [row for _, row, _, _ in (*reader.feed(b"done [True, maybe, False]\n"), *reader.finish())]
    assert [row["success"] for row in rows] == [True, "maybe", False]


@pytest.mark.parametrize(("values", "fit"), [("001111", True), ("111111", True), ("000000", True), ("010101", False)])
def test_a_number_behind_a_counter_that_may_be_a_verdict_or_a_count_is_asked_about(tmp_path, values, fit):
    log = "".join(f"[{at}/6] success: {value}\n" for at, value in enumerate(values, 1))
    found = said(tmp_path, {}, log, 6)
    assert (found.code == EITHER) == fit == (not proposed(found))
    if fit:
        assert f"6 lines that may be verdicts ({values.count('1')} with success)" in say(found)
        assert f"a count that goes on ({values[-1]} with success), so none counts" in say(found)
        assert say(found).count("results: {from: log, pattern:") == 2


def test_a_count_that_goes_on_behind_a_counter_is_not_the_word_success(tmp_path):
    log = "".join(f"[{at}/6] success: {at // 2}\n" for at in range(1, 7))
    rules = ResultRules(pattern=proposed(said(tmp_path, {}, log, 6))["pattern"])
    identity = Identity("p", "e", rules, 6)
    counts = tally(Folder(str(tmp_path), ["log"], identity, "").read(), identity, (0, 6))
    assert (counts.records, counts.successes) == (6, 3)


def test_of_a_session_that_lacks_episodes_a_file_that_repeats_others_is_named_without_a_line(tmp_path):
    (tmp_path / "a.jsonl").write_text("".join(f'{{"episode": {at}, "success": true}}\n' for at in range(4)))
    (tmp_path / "b.csv").write_text("episode,success\n0,0\n1,0\n")
    folder = Folder(str(tmp_path), ["**/*.jsonl"], Identity("p", "e"), "")
    counts = tally(folder.read(), folder.identity, (0, 6), over=True)
    name_unread(counts, folder, (0, 6))
    assert why_not_counted(counts.facts) == "b.csv: 2 episodes, but the pattern takes **/*.jsonl"
    assert not counts.proposes
