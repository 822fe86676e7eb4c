"""The example's parts one by one: robot, terrain, gait, policy, simulation, episode, training, drawing."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco", reason="the example's simulator is not installed")
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
TERRAINS = ("flat", "friction", "grass", "boulder", "stairs")


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


# Robot


def test_forward_kinematics_undo_inverse_kinematics(quadruped):
    for side, x, outward, z in product((1, -1), (-0.2, 0.25), (-0.05, 0.1), (-0.56, -0.3)):
        foot = (x, side * (quadruped.robot.ABDUCTION + outward), z)
        angles = quadruped.robot.inverse_kinematics(side, *foot)
        assert quadruped.robot.forward_kinematics(side, *angles) == pytest.approx(foot, abs=1e-9)
        assert angles[2] < 0, "the knee bends backwards"


def test_the_kinematics_are_those_of_the_simulated_robot(quadruped):
    simulation = quadruped.episode.start_episode("flat", 4)
    rng = np.random.default_rng(0)
    low, high = np.array(quadruped.robot.JOINT_LIMITS).T
    angles = rng.uniform(low, high, (4, 3))
    simulation.data.qpos[:7] = 0, 0, 2, 1, 0, 0, 0
    simulation.data.qpos[7:] = angles.ravel()
    mujoco.mj_kinematics(simulation.model, simulation.data)

    for leg, joints in zip(quadruped.robot.LEGS, angles, strict=True):
        foot = simulation.data.geom(f"{leg.name}_foot").xpos - simulation.data.body(f"{leg.name}_hip").xpos
        assert foot == pytest.approx(quadruped.robot.forward_kinematics(leg.side, *joints), abs=1e-5)


def test_the_robot_touches_terrain_but_never_itself(quadruped):
    model = quadruped.episode.start_episode("boulder", 4).model
    robot, terrain = model.geom_bodyid > 0, model.geom_bodyid == 0
    touches = model.geom_contype[:, None] & model.geom_conaffinity[None, :]
    touches |= touches.T

    assert not touches[np.ix_(robot, robot)].any()
    assert not touches[np.ix_(terrain, terrain)].any()
    for part in ("trunk", "fl_thigh", "fr_shank", "hl_foot"):
        assert touches[model.geom(part).id][terrain].all()


# Terrain


@pytest.mark.parametrize("terrain", TERRAINS)
def test_every_terrain_compiles_to_a_robot_that_stands(quadruped, terrain):
    simulation = quadruped.episode.start_episode(terrain, 7)
    simulation.settle()

    assert (simulation.model.nu, simulation.model.nq) == (12, 19)
    assert simulation.uprightness() > 0.95
    assert simulation.data.qpos[2] == pytest.approx(0.46 + 0.036, abs=0.06)
    assert not simulation.trunk_touches_ground()


@pytest.mark.parametrize("terrain", TERRAINS)
def test_a_terrain_is_decided_by_its_seed(quadruped, terrain):
    def sample(seed):
        return quadruped.terrain.sample_terrain(terrain, np.random.default_rng(seed))

    assert sample(1) == sample(1)
    assert sample(1) != sample(2)


@pytest.mark.parametrize("terrain", ["grass", "boulder", "stairs"])
def test_obstacles_leave_the_start_and_the_goal_flat(quadruped, terrain):
    model = quadruped.episode.start_episode(terrain, 3).model
    obstacles = (model.geom_bodyid == 0) & (model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE)
    top = model.geom_pos[obstacles, 2] + model.geom_size[obstacles].max(axis=1)

    assert obstacles.sum() == {"grass": 70, "boulder": 120, "stairs": 6}[terrain]
    assert (top > 0).all()
    assert model.geom_pos[obstacles, 0].min() >= 1.0
    assert model.geom_pos[obstacles, 0].max() <= 7.5


# Gait


def test_an_untuned_trot_crosses_flat_ground(quadruped):
    trot = quadruped.gait.Trot(quadruped.gait.from_unit_box(np.zeros(19)))

    assert quadruped.episode.run_episode(trot, "flat", 5000).success


# Policy


def test_a_policy_acts_in_radians_around_standing_and_remembers_nothing_but_its_phase(quadruped):
    policy = quadruped.policy.Policy(small_network(quadruped))
    observation = np.linspace(-1, 1, 11)

    first, second = policy.act(observation), policy.act(observation)
    policy.reset()

    assert (first.shape, first.dtype) == ((12,), np.float64)
    assert not np.array_equal(first, second)
    assert np.array_equal(policy.act(observation), first)
    inputs = np.concatenate((observation, [0, 1, 0, 1]))
    assert first == pytest.approx(quadruped.policy.STANDING + 0.5 * policy.network.forward(inputs), abs=1e-6)


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


def test_a_missing_checkpoint_and_a_folder_are_refused_by_name(quadruped, tmp_path):
    with pytest.raises(quadruped.policy.CheckpointError, match=r"no checkpoint at .*absent\.npz"):
        quadruped.policy.load(tmp_path / "absent.npz")
    with pytest.raises(quadruped.policy.CheckpointError, match="Is a directory"):
        quadruped.policy.load(tmp_path)


# Simulation and episode


def test_two_policies_meet_the_same_episode(quadruped):
    standing = SimpleNamespace(reset=lambda: None, act=lambda _: quadruped.policy.STANDING)
    run = quadruped.episode.run_episode

    walked, stood = run(shipped(quadruped, "flat"), "boulder", 12), run(standing, "boulder", 12)
    others = (run(standing, "boulder", 13), run(standing, "stairs", 12))

    assert walked.initial_state == stood.initial_state
    assert walked.distance_m != stood.distance_m
    assert len({result.initial_state for result in (stood, *others)}) == 3


def test_a_robot_that_stands_still_runs_out_of_time(quadruped):
    standing = SimpleNamespace(reset=lambda: None, act=lambda _: quadruped.policy.STANDING)

    result = quadruped.episode.run_episode(standing, "flat", 1)

    assert (result.termination, result.steps, result.time_s, result.success) == ("timeout", 800, 16.0, False)
    assert abs(result.distance_m) < 0.5


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


def test_observations_are_the_state_within_sensor_noise(quadruped):
    simulation = quadruped.episode.start_episode("flat", 9)
    simulation.settle()
    rows = np.array([simulation.observe() for _ in range(400)])
    settled = rows[100:]  # the low-pass has forgotten its start

    yaw = simulation.start.yaw
    assert settled[:, :3].mean(axis=0) == pytest.approx([0, 0, 1], abs=0.03)
    assert settled[:, 8].mean() == pytest.approx(yaw, abs=0.02)
    assert settled[:, 9].mean() == pytest.approx(simulation.y, abs=0.003)
    assert settled[:, 3:6].std(axis=0) == pytest.approx([0.05] * 3, rel=0.2)
    assert settled[:, 6:8].std(axis=0) == pytest.approx([0.05 * math.sqrt(0.15 / 1.85)] * 2, rel=0.5)
    assert (rows[:, 10] == 0).all(), "no command before the clock starts"


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


def test_a_frame_shows_the_robot_in_its_colours_where_it_stands(quadruped):
    simulation = quadruped.episode.start_episode("flat", 9)
    simulation.settle()
    picture = np.asarray(quadruped.sideview.draw(simulation, "")).astype(int)

    yellow = (picture[..., 0] - picture[..., 2] > 100) & (picture[..., 1] > 140)
    rows, columns = np.nonzero(yellow)
    trunk_row = 120 - (simulation.data.qpos[2] - 0.72) * 125
    assert yellow.sum() > 1000
    assert np.median(rows) == pytest.approx(trunk_row, abs=15)
    assert np.median(columns) == pytest.approx(160 - 0.15 * 125, abs=15)


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
