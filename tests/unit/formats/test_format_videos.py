"""Videos: episodes told by their names, files that can be played, and whose they are."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from adapter_samples import by_episode, combos, complaints, verdicts

from comborun.model.attempt import EpisodeRecord, Verdict, packed
from comborun.reporter.records.files import read_names
from comborun.reporter.records.reading import Context, Reading
from comborun.reporter.records.videos import Links, Video, index, key
from comborun.rules.results.filename_results import groups

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ENV = "logs/octo-small/Scene-v1/arm_pd/PickCan-v0"


def box(kind: bytes, size: int = 0, *, claims: int | None = None) -> bytes:
    return struct.pack(">I4s", 8 + size if claims is None else claims, kind) + bytes(size)


WHOLE = box(b"ftyp", 16) + box(b"mdat", 100) + box(b"moov", 50)


def read(*names: str, folder: str = ENV) -> Reading:
    ((root, found),) = groups(f"{folder}/{name}" for name in names).items()
    return read_names(found, Context(root))


# episodes that are file names


def test_numbered_videos_are_episodes_with_what_their_names_say() -> None:
    reading = read("rob_0_1_rot_0_0_0_rgb_overlay_x/success_obj_episode_3_moved_obj_True_qpos_0.25.mp4")
    record = by_episode(reading)[3]
    assert record.verdict is Verdict.SUCCESS
    assert (record.metrics, record.extra["moved_obj"]) == ({"qpos": 0.25}, True)
    assert combos(reading) == {("octo-small", "Scene-v1/arm_pd/PickCan-v0")}
    assert record.source.endswith("qpos_0.25.mp4")
    assert not reading.unpaired


def test_two_outcomes_of_one_episode_are_none() -> None:
    reading = read("success_obj_episode_3.mp4", "failure_obj_episode_3_x_1.mp4", "failure_obj_episode_4.mp4")
    assert verdicts(reading) == {3: "errored", 4: "failure"}
    assert "the files don't say which was first" in complaints(reading)[0]
    assert len(by_episode(reading)[3].extra["videos"]) == 2  # type: ignore[arg-type]


def test_the_same_outcome_twice_counts_once() -> None:
    reading = read("success_obj_episode_3.mp4", "success_obj_episode_3_x_1.mp4")
    assert verdicts(reading) == {3: "success"}
    assert complaints(reading) == ["2 files tell of the same episode, and the same"]


def test_places_are_numbered_by_their_rank_and_a_gap_forbids_pairing() -> None:
    places = [f"success_obj_{x}_{y}.mp4" for x in (-0.2, 0.1) for y in (0, 10.5)]
    whole = read(*places)
    assert [(r.extra["obj_x"], r.extra["obj_y"]) for r in whole.records] == [
        ("-0.2", "0.0"),
        ("-0.2", "10.5"),
        ("0.1", "0.0"),
        ("0.1", "10.5"),
    ]
    assert not whole.unpaired
    assert read(*places[1:]).unpaired


def test_poses_of_the_robot_are_of_one_environment() -> None:
    names = [f"rob_{pose}/failure_obj_{x}_0.mp4" for pose in "ab" for x in (1, 2)]
    reading = read(*names)
    assert [(record.episode, record.extra["pose"]) for record in reading.records] == [
        (0, "rob_a"),
        (1, "rob_a"),
        (2, "rob_b"),
        (3, "rob_b"),
    ]
    assert not reading.unpaired


def test_other_files_are_no_episodes() -> None:
    assert groups(["a/success.mp4", "a/success_obj_x.mp4", "b/failure_obj_1_2.txt"]) == {}


# what can be played


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (WHOLE, ""),
        (box(b"ftyp", 16) + box(b"moov", 50) + box(b"mdat", 9), ""),
        (box(b"ftyp", 16) + struct.pack(">I4sQ", 1, b"mdat", 16 + 20) + bytes(20) + box(b"moov"), ""),
        (b"", "empty"),
        (box(b"ftyp", 16) + box(b"mdat", 100), "no moov box: its program was ended before it closed the file"),
        (
            box(b"ftyp", 16) + box(b"mdat", 100, claims=0),
            "no moov box: its program was ended before it closed the file",
        ),
        (box(b"ftyp", 16) + box(b"mdat", 9, claims=3), "no moov box: its program was ended before it closed the file"),
        (WHOLE[:-1], "cut off within its moov box"),
        (b"moov moov moov moov", "no mp4 file"),
        (b"xx", "no mp4 file"),
    ],
)
def test_an_mp4_can_be_played_only_with_its_moov_box(tmp_path: Path, content: bytes, fault: str) -> None:
    (tmp_path / "a.mp4").write_bytes(content)
    assert index(tmp_path, ["a.mp4", "notes.txt"]) == (Video("a.mp4", len(content), fault),)


def test_a_video_that_is_gone_is_told(tmp_path: Path) -> None:
    assert index(tmp_path, ["a.mp4"])[0].fault == "can't be read: No such file or directory"


# whose a video is


def record(episode: int, verdict: Verdict = Verdict.SUCCESS, **fields: object) -> EpisodeRecord:
    extra = {"video": fields.pop("video")} if "video" in fields else fields.pop("extra", {})
    values: dict[str, object] = {"policy": "p", "environment": "e", "path": "run/a/rows.jsonl:1", **packed(extra=extra)}
    return EpisodeRecord(episode=episode, verdict=verdict, **{**values, **fields})  # type: ignore[arg-type]


def linked(paths: list[str], records: list[EpisodeRecord]) -> tuple[dict[int, str], list[str]]:
    links = Links([Video(path, 9, "") for path in paths], records)
    assert len({key(record) for record in records}) == len(records)
    return (
        {found.episode: links.of[key(found)] for found in records if key(found) in links.of},
        [finding.reason for finding in links.findings],
    )


@pytest.mark.parametrize(
    ("name", "episode"),
    [
        ("videos/eval_episode_2.mp4", 2),
        ("2026_02_03-04_05_06--episode=3--success=True--task=turn_on.mp4", 2),
        ("episode_3/video.mp4", 2),
        ("base/video/video_episode_3_steps_12.mp4", 2),
        ("stairs_flat_ep0002.mp4", 2),
        ("task0000_ep0002_success.mp4", 2),
    ],
)
def test_a_number_in_the_name_links_a_video(name: str, episode: int) -> None:
    assert linked([f"run/a/{name}"], [record(n) for n in range(5)]) == ({episode: f"run/a/{name}"}, [])


def test_a_video_belongs_to_the_records_nearest_to_it() -> None:
    records = [record(0), record(0, environment="f", path="run/b/rows.jsonl:1")]
    assert linked(["run/b/eval_episode_0.mp4"], records)[0] == {0: "run/b/eval_episode_0.mp4"}
    assert linked(["eval_episode_0.mp4"], records) == ({}, []), "nobody can tell whose it is"


def test_what_a_record_says_of_its_video_goes_before_names() -> None:
    records = [record(n, video=f"/host/out/videos/t_{n}/eval_episode_0.mp4") for n in range(2)]
    paths = [f"run/a/videos/t_{n}/eval_episode_0.mp4" for n in range(2)]
    assert linked(paths, records) == (dict(enumerate(paths)), [])


@pytest.mark.parametrize("contrary", ["x_ep0001_failure", "failure_ep1", "failure-task_ep0001"])
def test_missing_contradicting_and_overwritten_videos_are_named(contrary: str) -> None:
    found = linked(
        ["run/a/rollout_open_success.mp4", f"run/a/{contrary}.mp4", "run/a/one.mp4"],
        [record(0, video="gone.mp4"), record(1), record(2, video="one.mp4"), record(3, video="one.mp4")],
    )
    assert found[0] == {2: "run/a/one.mp4", 3: "run/a/one.mp4"}
    assert found[1] == [
        "overwritten by every episode of its task that went alike: no episode's video",
        "its name says failure, but episode 1 is recorded as success: overwritten, or of another attempt",
        "the video of episode 0 is missing",
        "2 episodes name the same video: the last one is in it",
    ]


def test_a_gap_between_videos_is_told_and_the_first_few_alone_are_not() -> None:
    records = [record(n) for n in range(10)]
    assert linked([f"run/a/eval_episode_{n}.mp4" for n in (0, 1, 3)], records)[1] == [
        "no video of 2, between episodes that have one"
    ]
    assert linked([f"run/a/eval_episode_{n}.mp4" for n in (0, 1, 2)], records)[1] == []
    assert linked([f"run/a/eval_episode_{n}.mp4" for n in (0, 4, 8)], records)[1] == []


@pytest.mark.parametrize(
    ("filmed", "recorded", "complaint"),
    [
        (range(9), range(10), ["no video of episode 9, the last one"]),
        (range(4), range(5), ["no video of episode 4, the last one"]),
        (range(0, 40, 10), range(50), ["no video of episode 40, the last one"]),
        (
            (0, 1, 2, 3, 5, 6),
            range(8),
            ["no video of 4, between episodes that have one", "no video of episode 7, the last one"],
        ),
        (range(8), range(10), []),
        (range(10), range(11), []),
        (range(3), range(4), []),
        (range(0, 40, 10), range(40), []),
        (range(0, 40, 10), range(90), []),
        ((0, 1, 8, 27), range(65), []),
    ],
)
def test_the_last_video_is_missing_where_all_before_it_lead_to_expect_it(
    filmed: Sequence[int], recorded: Sequence[int], complaint: list[str]
) -> None:
    assert linked([f"run/a/eval_episode_{n}.mp4" for n in filmed], [record(n) for n in recorded])[1] == complaint


def test_a_last_episode_that_went_unlike_all_with_a_video_may_have_none() -> None:
    records = [*(record(n) for n in range(9)), record(9, verdict=Verdict.FAILURE)]
    assert linked([f"run/a/eval_episode_{n}.mp4" for n in range(9)], records)[1] == []


def test_a_video_that_can_not_be_played_is_named_and_linked_all_the_same() -> None:
    links = Links([Video("run/a/eval_episode_0.mp4", 9, "no moov box")], [record(0)])
    assert [finding.reason for finding in links.findings] == ["a video that can't be played: no moov box"]
    assert len(links.of) == 1


def test_attempts_share_no_videos() -> None:
    """A path within an attempt ends alike in all of them, and a verdict of one says nothing of another's video."""
    folders = ["sessions/s/attempt-1", "sessions/s/attempt-2", "sessions/t/attempt-1"]
    sources = [f"{folder}/out/rows.jsonl" for folder in folders]
    claiming = [record(0, path=f"{source}:1", video="videos/one.mp4") for source in sources]
    paths = [f"{folder}/out/videos/one.mp4" for folder in folders]
    links = Links([Video(path, 9, "") for path in paths], claiming)
    assert [links.of[key(found)] for found in claiming] == paths
    assert not links.findings, "the same episode of two attempts is not two that share a video"
    assert Links([Video(path, 9, "") for path in paths[:2]], claiming[2:]).of == {}
    numbered = [Video("sessions/s/attempt-1/out/x_ep0000.mp4", 9, "")]
    assert Links(numbered, [record(0, session="s", attempt=2, path=f"{sources[1]}:1")]).of == {}


def test_a_video_outside_of_every_attempt_belongs_to_the_records_nearest_to_it() -> None:
    beside = record(0, path="run/rows.jsonl:1")
    within = record(0, environment="f", path="run/attempt-1/rows.jsonl:1")
    assert Links([Video("run/attempt-1/x_ep0000.mp4", 9, "")], [beside]).of == {
        key(beside): "run/attempt-1/x_ep0000.mp4"
    }
    assert Links([Video("run/x_ep0000.mp4", 9, "")], [within]).of == {key(within): "run/x_ep0000.mp4"}
    named = record(1, path="run/attempt-1/rows.jsonl:2", video="/gone/videos/one.mp4")
    assert Links([Video("run/videos/one.mp4", 9, "")], [named]).of == {key(named): "run/videos/one.mp4"}


@pytest.mark.parametrize("claimed", [False, True], ids=["by name", "by the record"])
@pytest.mark.parametrize("attempt", ["", "attempt-1/"], ids=["in folders", "in attempts"])
def test_the_work_of_linking_grows_with_the_records_and_not_with_their_square(*, claimed: bool, attempt: str) -> None:
    def work(combos: int) -> int:
        records, videos = [], []
        for combo in range(combos):
            place = f"sessions/{combo}/{attempt}out"
            for episode in range(3):
                extra = {"video": f"/box/{place}/ep{episode}.mp4"} if claimed else {}
                source = f"{place}/rows.jsonl:{episode}"
                records.append(record(episode, environment=f"e{combo}", path=source, extra=extra))
                videos.append(Video(f"{place}/ep{episode}.mp4", 9, ""))
        found, calls = counted(lambda: Links(videos, records))
        assert [found.of[key(one)] for one in records] == [video.path for video in videos]
        return calls

    assert work(120) < 3 * work(60)


def counted(act: Callable[[], Links]) -> tuple[Links, int]:
    """What it gives, and how many calls it took."""
    calls = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        found = act()
    finally:
        sys.setprofile(before)
    return found, calls
