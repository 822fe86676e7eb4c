"""The example's parts one by one: policy, episode, training, drawing."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("mujoco", reason="the example's simulator is not installed")
pytest.importorskip("PIL", reason="Pillow is not installed")

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "quadruped"
MODULES = (
    "robot",
    "terrain",
    "policy",
    "gait",
    "simulation",
    "episode",
    "results",
    "sideview",
    "video",
    "search",
    "distil",
    "evaluate",
)


@pytest.fixture(scope="module")
def quadruped() -> Iterator[SimpleNamespace]:
    """The example's modules by name; they are a program's own, so none of them stays imported afterwards."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    finally:
        sys.path.remove(str(EXAMPLE))
        for name in MODULES:
            sys.modules.pop(name, None)


def shipped(quadruped: SimpleNamespace, name: str):
    return quadruped.policy.Policy(quadruped.policy.load(EXAMPLE / "checkpoints" / f"{name}.npz"))


def small_network(quadruped: SimpleNamespace, seed: int = 0):
    inputs = np.random.default_rng(seed).normal(size=(50, 15)).astype(np.float32)
    return quadruped.distil.untrained(inputs, 2.0, np.random.default_rng(seed))


# Policy


def test_a_saved_network_loads_unchanged(quadruped, tmp_path):
    network, path = small_network(quadruped), tmp_path / "new" / "policy.npz"

    quadruped.policy.save(network, path)
    loaded = quadruped.policy.load(path)

    for name in quadruped.policy.SHAPES:
        assert np.array_equal(getattr(loaded, name), getattr(network, name))
    assert [entry.name for entry in path.parent.iterdir()] == ["policy.npz"]


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({}, "not an intact .npz"),
        ({"w1": np.array([{}], dtype=object)}, "not an intact .npz"),
        ({"w1": None}, "lacks an array: 'w1"),
        ({"w1": np.zeros((64, 63), np.float32)}, r"w1 is float32\(64, 63\), expected float32\(64, 64\)"),
        ({"w1": np.full((64, 64), np.nan, np.float32)}, "w1 has values that are not finite"),
    ],
)
def test_a_damaged_checkpoint_is_refused_with_its_reason(quadruped, tmp_path, changed, complaint):
    path = tmp_path / "policy.npz"
    quadruped.policy.save(small_network(quadruped), path)
    if changed:
        np.savez(path, **{name: array for name, array in {**np.load(path), **changed}.items() if array is not None})
    else:
        content = bytearray(path.read_bytes())
        content[3000] ^= 0xFF
        path.write_bytes(bytes(content))

    with pytest.raises(quadruped.policy.CheckpointError, match=complaint) as caught:
        quadruped.policy.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


# Simulation and episode


@pytest.mark.parametrize(
    ("state", "steps", "verdict"),
    [
        ({}, 799, None),
        ({}, 800, "timeout"),
        ({"x": 8.0}, 800, "goal"),
        ({"x": 7.999}, 100, None),
        ({"y": -1.51}, 100, "left_course"),
        ({"up": 0.49, "x": 8.1}, 100, "fell"),
        ({"contact": True}, 100, "fell"),
        ({"contact": True}, 101, None),
    ],
)
def test_an_episode_ends_by_goal_fall_course_or_time(quadruped, state, steps, verdict):
    simulation = SimpleNamespace(
        x=state.get("x", 3.0),
        y=state.get("y", 0.0),
        uprightness=lambda: state.get("up", 1.0),
        trunk_touches_ground=lambda: state.get("contact", False),
    )

    assert quadruped.episode.judge(simulation, steps) == verdict


def test_the_ranking_of_the_shipped_policies_crosses(quadruped):
    """Flat wins on ice, rough on rocks and stairs. Loose on purpose: MuJoCo versions differ."""
    policies = {name: shipped(quadruped, name) for name in ("flat", "rough")}
    lead = {}
    for environment, count in {"friction": 8, "boulder": 6, "stairs": 6}.items():
        flat, rough = (
            [quadruped.episode.run_episode(policy, environment, 1000 + index) for index in range(count)]
            for policy in policies.values()
        )
        lead[environment] = sum(one.success for one in flat) - sum(one.success for one in rough)
        starts = [one.initial_state for one in flat]
        assert len(set(starts)) == count
        assert starts == [one.initial_state for one in rough], "paired: both policies met the same episodes"
    assert lead["friction"] > 0
    assert max(lead["boulder"], lead["stairs"]) < -1


# Training


def test_fitting_a_network_makes_it_agree_with_its_teacher(quadruped, monkeypatch):
    monkeypatch.setattr(quadruped.distil, "BATCH", 128)
    rng = np.random.default_rng(3)
    inputs = rng.normal(size=(2000, 15)).astype(np.float32)
    labels = np.tanh(inputs @ rng.normal(size=(15, 12)) / 4).astype(np.float32)
    student = quadruped.distil.untrained(inputs, 2.0, rng)

    fitted = quadruped.distil.fit(student, inputs, labels, 150, rng)

    before, after = (np.mean((network.forward(inputs) - labels) ** 2) for network in (student, fitted))
    assert after < before / 10


# Drawing


def test_a_side_view_is_a_gif_of_every_fourth_step_and_changes_nothing(quadruped, tmp_path):
    from PIL import Image

    view = quadruped.sideview.SideView("flat on boulder")
    policy = shipped(quadruped, "flat")

    watched = quadruped.episode.run_episode(policy, "boulder", 1005, watch=view)
    view.save(tmp_path / "episode.gif")

    assert watched == quadruped.episode.run_episode(policy, "boulder", 1005)
    with Image.open(tmp_path / "episode.gif") as gif:
        assert gif.size == (320, 240)
        assert gif.n_frames == pytest.approx(math.ceil(watched.steps / 4), abs=3)  # equal frames are merged


def test_a_video_is_h264_at_25_frames_per_second(quadruped, tmp_path, monkeypatch):
    av = pytest.importorskip("av")
    monkeypatch.setenv("MUJOCO_GL", "egl")
    try:
        quadruped.video.require_video()
    except quadruped.video.VideoError as reason:
        pytest.skip(str(reason))
    video = quadruped.video.Video("caption")
    simulation = quadruped.episode.start_episode("boulder", 1003)
    simulation.settle()
    for _ in range(10):
        video(simulation)
    video.save(tmp_path / "episode.mp4")

    with av.open(str(tmp_path / "episode.mp4")) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.average_rate) == ("h264", 25)
        assert len(list(container.decode(stream))) == 5
    assert video.frames[0].std() > 20, "not a blank picture"
