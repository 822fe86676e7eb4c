"""The example's parts one by one: robot, terrain, gait, policy, simulation, episode, training, drawing."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Iterator
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


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("x", [-0.2, 0.0, 0.25])
@pytest.mark.parametrize("outward", [-0.05, 0.0, 0.1])
@pytest.mark.parametrize("z", [-0.56, -0.46, -0.3])
def test_forward_kinematics_undo_inverse_kinematics(quadruped, side, x, outward, z):
    foot = (x, side * (quadruped.robot.ABDUCTION + outward), z)

    angles = quadruped.robot.inverse_kinematics(side, *foot)

    assert quadruped.robot.forward_kinematics(side, *angles) == pytest.approx(foot, abs=1e-9)
    assert angles[2] < 0, "the knee bends backwards"


def test_a_foot_out_of_reach_becomes_a_straight_leg_that_points_at_it(quadruped):
    robot = quadruped.robot

    angles = robot.inverse_kinematics(1, 3.0, robot.ABDUCTION, -4.0)

    x, y, z = robot.forward_kinematics(1, *angles)
    assert (x / z, y) == pytest.approx((-3.0 / 4.0, robot.ABDUCTION))
    assert math.hypot(x, z) == pytest.approx(robot.THIGH_LENGTH + robot.SHANK)


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


def test_the_robot_weighs_50_kilograms_and_its_payload(quadruped):
    simulation = quadruped.episode.start_episode("flat", 4)

    assert simulation.model.body_mass.sum() == pytest.approx(50.34 + simulation.start.payload, abs=1e-3)


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


@pytest.mark.parametrize(
    ("terrain", "low", "high"),
    [
        ("flat", 0.4, 1.0),
        ("friction", 0.015, 0.45),
        ("grass", 0.45, 0.8),
        ("boulder", 0.6, 0.9),
        ("stairs", 0.6, 0.9),
    ],
)
def test_friction_keeps_to_its_range_and_fills_it(quadruped, terrain, low, high):
    rng = np.random.default_rng(0)
    frictions = [quadruped.terrain.sample_terrain(terrain, rng).friction for _ in range(60)]

    assert low <= min(frictions) < low + 0.2 * (high - low)
    assert high - 0.2 * (high - low) < max(frictions) <= high


@pytest.mark.parametrize("terrain", ["grass", "boulder", "stairs"])
def test_obstacles_leave_the_start_and_the_goal_flat(quadruped, terrain):
    model = quadruped.episode.start_episode(terrain, 3).model
    obstacles = (model.geom_bodyid == 0) & (model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE)
    top = model.geom_pos[obstacles, 2] + model.geom_size[obstacles].max(axis=1)

    assert obstacles.sum() == {"grass": 70, "boulder": 120, "stairs": 6}[terrain]
    assert (top > 0).all()
    assert model.geom_pos[obstacles, 0].min() >= 1.0
    assert model.geom_pos[obstacles, 0].max() <= 7.5


def test_a_higher_level_has_taller_grass_and_less_grip_but_no_level_has_sticky_ground(quadruped):
    def sample(level):
        return quadruped.terrain.sample_terrain("grass", np.random.default_rng(5), level)

    normal, hard, easy = sample(1.0), sample(2.0), sample(0.1)

    assert (hard.drag, hard.blade_height) == pytest.approx((2 * normal.drag, 2 * normal.blade_height))
    assert hard.friction == pytest.approx(normal.friction / 2)
    assert easy.friction == 1.0


# Gait


def test_a_swinging_foot_rises_once_from_the_ground_and_returns(quadruped):
    for peak in (0.25, 0.5, 0.75):
        heights = [quadruped.gait.swing_height(i / 200, peak) for i in range(201)]
        top = heights.index(max(heights))

        assert (heights[0], heights[-1], max(heights)) == pytest.approx((0, 0, 1), abs=1e-9)
        assert top / 200 == pytest.approx(peak)
        assert heights[: top + 1] == sorted(heights[: top + 1])
        assert heights[top:] == sorted(heights[top:], reverse=True)


def test_a_foot_moves_without_jumps_through_its_stride(quadruped):
    gait = quadruped.gait.from_unit_box(np.zeros(19))
    feedback = quadruped.gait.Feedback(0.8, 0.3, 0.01, 0.01, 0.05, 0.05)
    leg = quadruped.robot.LEGS[0]
    track = np.array([quadruped.gait.foot_position(gait, leg, i / 1000 % 1, feedback) for i in range(1001)])

    assert np.abs(np.diff(track, axis=0)).max() < 0.003
    assert track[0] == pytest.approx(track[-1], abs=1e-9)


def test_a_foot_in_stance_moves_backwards_at_the_commanded_speed(quadruped):
    gait = quadruped.gait.from_unit_box(np.zeros(19))
    feedback = quadruped.gait.Feedback(0.8, 0.0, 0.0, 0.0, 0.0, 0.0)
    leg = quadruped.robot.LEGS[0]
    begin, end = (quadruped.gait.foot_position(gait, leg, phase, feedback)[0] for phase in (0.1, 0.3))

    assert (end - begin) / (0.2 / gait.freq) == pytest.approx(-0.8)


def test_the_box_of_the_search_spans_the_bounds_of_the_gait(quadruped):
    low, high = quadruped.gait.from_unit_box(-np.ones(19)), quadruped.gait.from_unit_box(np.ones(19))

    assert {name: (getattr(low, name), getattr(high, name)) for name in quadruped.gait.BOUNDS} == {
        name: pytest.approx(bounds) for name, bounds in quadruped.gait.BOUNDS.items()
    }
    assert quadruped.gait.from_unit_box(5 * np.ones(19)) == high, "points outside the box are clipped"


def test_an_untuned_trot_crosses_flat_ground(quadruped):
    trot = quadruped.gait.Trot(quadruped.gait.from_unit_box(np.zeros(19)))

    assert quadruped.episode.run_episode(trot, "flat", 5000).success


# Policy


def test_a_network_gives_twelve_float32_outputs_for_each_row(quadruped):
    network = small_network(quadruped)
    rows = np.random.default_rng(1).normal(size=(7, 15))

    outputs = network.forward(rows)

    assert (outputs.shape, outputs.dtype) == ((7, 12), np.float32)
    assert network.forward(rows[3]) == pytest.approx(outputs[3], rel=1e-4, abs=1e-6)


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


def test_standing_puts_every_foot_46_centimetres_below_its_hip(quadruped):
    for leg, joints in zip(quadruped.robot.LEGS, quadruped.policy.STANDING.reshape(4, 3), strict=True):
        foot = quadruped.robot.forward_kinematics(leg.side, *joints)
        assert foot == pytest.approx((0.0, leg.side * quadruped.robot.ABDUCTION, -0.46))


def test_a_saved_network_loads_unchanged(quadruped, tmp_path):
    network, path = small_network(quadruped), tmp_path / "new" / "policy.npz"

    quadruped.policy.save(network, path)
    loaded = quadruped.policy.load(path)

    for name in quadruped.policy.SHAPES:
        assert np.array_equal(getattr(loaded, name), getattr(network, name))
    assert [entry.name for entry in path.parent.iterdir()] == ["policy.npz"]


@pytest.mark.parametrize("name", ["flat", "rough"])
def test_a_shipped_checkpoint_holds_5964_weights(quadruped, name):
    network = quadruped.policy.load(EXAMPLE / "checkpoints" / f"{name}.npz")

    assert sum(getattr(network, field).size for field in quadruped.distil.WEIGHTS) == 5964
    assert 1.0 < network.freq < 3.0


def broken_checkpoint(quadruped: SimpleNamespace, path: Path, damage: str) -> None:
    """Write a good checkpoint, then damage it in one way."""
    quadruped.policy.save(small_network(quadruped), path)
    arrays = dict(np.load(path))
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:5000])
    elif damage == "flipped":
        content = bytearray(path.read_bytes())
        content[3000] ^= 0xFF
        path.write_bytes(bytes(content))
    elif damage == "text":
        path.write_text("not a checkpoint")
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "one array":
        with path.open("wb") as file:
            np.save(file, arrays["w0"])
    elif damage == "pickle":
        with path.open("wb") as file:
            np.savez(file, **{**arrays, "w1": np.array([{}], dtype=object)})
    else:
        changes = {
            "lacking": {"w1": None},
            "wrong shape": {"w1": np.zeros((64, 63), np.float32)},
            "wrong type": {"w1": arrays["w1"].astype(np.float64)},
            "not finite": {"w1": np.full((64, 64), np.nan, np.float32)},
        }[damage]
        kept = {name: array for name, array in {**arrays, **changes}.items() if array is not None}
        np.savez(path, **kept)


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ("truncated", "not an intact .npz"),
        ("flipped", "not an intact .npz"),
        ("text", "not an intact .npz"),
        ("empty", "not an intact .npz"),
        ("one array", "not an intact .npz"),
        ("pickle", "not an intact .npz"),
        ("lacking", "lacks an array: 'w1"),
        ("wrong shape", r"w1 is float32\(64, 63\), expected float32\(64, 64\)"),
        ("wrong type", "w1 is float64"),
        ("not finite", "w1 has values that are not finite"),
    ],
)
def test_a_damaged_checkpoint_is_refused_with_its_reason(quadruped, tmp_path, damage, complaint):
    path = tmp_path / "policy.npz"
    broken_checkpoint(quadruped, path, damage)

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


def test_the_initial_state_tells_terrains_with_equal_starts_apart(quadruped):
    rng = np.random.default_rng(0)
    start = quadruped.simulation.sample_start(rng)
    terrains = [quadruped.terrain.sample_terrain("boulder", rng) for _ in range(2)]

    def fingerprint(terrain):
        return quadruped.simulation.Simulation(terrain, start, rng).fingerprint()

    first, other, again = fingerprint(terrains[0]), fingerprint(terrains[1]), fingerprint(terrains[0])

    assert first == again != other


def test_a_trunk_on_the_ground_is_noticed(quadruped):
    simulation = quadruped.episode.start_episode("flat", 1)
    contacts = []
    for height in (0.05, 0.52):
        simulation.data.qpos[2] = height
        mujoco.mj_forward(simulation.model, simulation.data)
        contacts.append(simulation.trunk_touches_ground())

    assert contacts == [True, False]


def test_a_robot_that_stands_still_runs_out_of_time(quadruped):
    standing = SimpleNamespace(reset=lambda: None, act=lambda _: quadruped.policy.STANDING)

    result = quadruped.episode.run_episode(standing, "flat", 1)

    assert (result.termination, result.steps, result.time_s, result.success) == ("timeout", 800, 16.0, False)
    assert abs(result.distance_m) < 0.5


def test_a_robot_that_folds_its_legs_has_fallen(quadruped):
    folded = np.tile([0.0, 1.9, -0.25], 4)
    crouching = SimpleNamespace(reset=lambda: None, act=lambda _: folded)

    result = quadruped.episode.run_episode(crouching, "flat", 1)

    assert result.termination == "fell"
    assert result.time_s < 2.0


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


def test_shoves_push_the_trunk_at_their_times_only(quadruped):
    simulation = quadruped.episode.start_episode("flat", 9)
    begin = simulation.start.shove_times[0]
    pushes = []
    for time in (begin - 0.01, begin + 0.01, begin + 0.19, begin + 0.21):
        simulation.time = time
        simulation.step(quadruped.policy.STANDING)
        pushes.append(simulation.data.xfrc_applied[simulation.model.body("trunk").id, :2].copy())

    assert pushes[1] == pytest.approx(simulation.start.shove_forces[0])
    assert pushes[2] == pytest.approx(simulation.start.shove_forces[0])
    assert not np.any([pushes[0], pushes[3]])


def test_grass_resists_a_foot_in_proportion_to_its_velocity(quadruped):
    simulation = quadruped.episode.start_episode("grass", 9)
    simulation.settle()
    shanks = [simulation.model.body(f"{leg}_shank").id for leg in ("fl", "hr")]
    for speed in (0.0, 1.0):
        simulation.data.qvel[:] = 0.0
        simulation.data.qvel[0] = speed
        mujoco.mj_forward(simulation.model, simulation.data)
        simulation._apply_drag()
        forces = simulation.data.xfrc_applied[shanks, 0]
        assert (forces <= -0.5 * simulation.terrain.drag * speed).all()
        assert (forces >= -simulation.terrain.drag * speed - 1e-9).all()


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


def test_the_gradient_is_the_slope_of_the_error(quadruped):
    rng = np.random.default_rng(2)
    network = small_network(quadruped)
    weights = {name: getattr(network, name).astype(np.float64) for name in quadruped.distil.WEIGHTS}
    inputs, labels = rng.normal(size=(20, 15)), rng.normal(size=(20, 12))

    def error() -> float:
        hidden = np.tanh(np.tanh(inputs @ weights["w0"] + weights["b0"]) @ weights["w1"] + weights["b1"])
        return 0.5 * float(np.mean((hidden @ weights["w2"] + weights["b2"] - labels) ** 2))

    slopes = quadruped.distil.gradient(weights, inputs, labels)

    places = {"w0": (3, 5), "b0": (7,), "w1": (1, 2), "b1": (9,), "w2": (4, 11), "b2": (0,)}
    for name, place in places.items():
        kept, errors = weights[name][place], []
        for shift in (1e-5, -1e-5):
            weights[name][place] = kept + shift
            errors.append(error())
        weights[name][place] = kept
        assert slopes[name][place] == pytest.approx((errors[0] - errors[1]) / 2e-5, rel=1e-3, abs=1e-9)


def test_fitting_a_network_makes_it_agree_with_its_teacher(quadruped, monkeypatch):
    monkeypatch.setattr(quadruped.distil, "BATCH", 128)
    rng = np.random.default_rng(3)
    inputs = rng.normal(size=(2000, 15)).astype(np.float32)
    labels = np.tanh(inputs @ rng.normal(size=(15, 12)) / 4).astype(np.float32)
    student = quadruped.distil.untrained(inputs, 2.0, rng)

    fitted = quadruped.distil.fit(student, inputs, labels, 150, rng)

    before, after = (np.mean((network.forward(inputs) - labels) ** 2) for network in (student, fitted))
    assert after < before / 10


def test_the_score_rewards_distance_then_success_then_speed(quadruped):
    def scored(termination, distance, time):
        result = quadruped.episode.EpisodeResult(termination, distance, time, round(time * 50), 3000.0, "")
        return quadruped.search.score(result)

    ranked = [
        scored("fell", 2.0, 4.0),
        scored("timeout", 2.0, 16.0),
        scored("timeout", 7.9, 16.0),
        scored("goal", 8.0, 15.0),
        scored("goal", 8.0, 8.0),
    ]

    assert ranked == sorted(ranked)
    assert len(set(ranked)) == len(ranked)
    assert scored("goal", 8.0, 16.0) - scored("timeout", 8.0, 16.0) == pytest.approx(1.0)


def test_a_lesson_records_the_teacher_while_the_student_drives(quadruped):
    gait = quadruped.gait.from_unit_box(np.zeros(19))
    student = quadruped.policy.Policy(small_network(quadruped))
    lesson = quadruped.distil.Lesson(quadruped.gait.Trot(gait), student, 0.0, np.random.default_rng(0))
    observation = np.array([0, 0, 1, 0, 0, 0, 0.5, 0, 0, 0, 1.0])

    lesson.reset()
    targets = lesson.act(observation)

    student.reset()
    assert np.array_equal(targets, student.act(observation))
    assert np.array_equal(lesson.labels[0], quadruped.gait.Trot(gait).act(observation))
    assert lesson.inputs[0].shape == (15,)


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


@pytest.mark.parametrize("y", [-0.8, 0.0, 0.8])
def test_stairs_are_in_the_picture_wherever_the_robot_is_on_them(quadruped, y):
    simulation = quadruped.episode.start_episode("stairs", 1005)
    simulation.data.qpos[:3] = 3.3, y, 1.3
    mujoco.mj_kinematics(simulation.model, simulation.data)

    picture = np.asarray(quadruped.sideview.draw(simulation, "")).astype(int)

    stairs = picture[180:200, 100:200].mean(axis=(0, 1))  # below the robot, half a metre above the ground
    assert stairs == pytest.approx([170, 170, 174], abs=15)


def test_the_hull_of_a_square_with_points_inside_is_its_corners(quadruped):
    corners = [(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0)]

    hull = quadruped.sideview.convex_hull([(1.0, 1.0), *corners, (0.5, 1.2), (1.0, 0.0)])

    assert sorted(hull) == sorted(corners)


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
