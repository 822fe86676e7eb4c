"""The simulation: the robot on a sampled terrain, advanced one control step at a time.

Whoever builds a Simulation has drawn the terrain and the start, and hands the generator on for the sensor
noise: ten normal draws per control step.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import mujoco
import numpy as np
from policy import CONTROL_PERIOD, STANDING, Array
from robot import FOOT_RADIUS, JOINT_COUNT, LEGS, actuator_xml, body_xml, default_xml
from terrain import Terrain

SUBSTEPS = 5
TIMESTEP = CONTROL_PERIOD / SUBSTEPS
START_HEIGHT = 0.52  # m, a little above standing: the robot drops onto its feet
SETTLING_STEPS = 40
RAMP_TIME = 1.2  # s over which the commanded speed rises from 0 to its full value
SHOVE_TIME = 0.2  # s
LOW_PASS = 0.15  # weight of the newest velocity measurement
# Standard deviations: world-up (3), gyro (3, rad/s), velocity (2, m/s), yaw (rad), y (m).
SENSOR_NOISE = np.array([0.01] * 3 + [0.05] * 3 + [0.05] * 2 + [0.01, 0.01])

FREE_POSITION, FREE_VELOCITY = 7, 6  # of qpos and qvel, the trunk's share


@dataclass(frozen=True)
class Start:
    """How an episode begins and when it is disturbed."""

    y: float  # m
    yaw: float  # rad
    joint_offsets: Array  # (12,) rad
    payload: float  # kg
    shove_times: Array  # (2,) s
    shove_forces: Array  # (2, 2) N, along the world's x and y


def sample_start(rng: np.random.Generator) -> Start:
    """Draw the start, in the order of the fields."""
    return Start(
        y=rng.uniform(-0.1, 0.1),
        yaw=rng.uniform(-0.15, 0.15),
        joint_offsets=rng.normal(0.0, 0.02, JOINT_COUNT),
        payload=rng.uniform(-2.0, 4.0),
        shove_times=rng.uniform(2.0, 10.0, 2),
        shove_forces=rng.uniform(-80.0, 80.0, (2, 2)),
    )


def scene_xml(terrain: Terrain, payload: float) -> str:
    """The whole model. 50 and 20 solver iterations cost nothing and converge on every MuJoCo from 3.3."""
    return f"""
<mujoco model="quadruped">
  <compiler angle="radian"/>
  <option timestep="{TIMESTEP:g}" integrator="implicitfast" cone="pyramidal"
          iterations="50" ls_iterations="20"/>
  <visual><quality shadowsize="0"/><global offwidth="640" offheight="480"/></visual>
  <asset>
    <texture type="skybox" builtin="gradient" rgb1=".75 .84 .93" rgb2=".93 .95 .97" width="32" height="32"/>
  </asset>
  <default>{default_xml()}</default>
  <worldbody>
    <light pos="3 -4 6" dir="0 .5 -1" directional="true" castshadow="false"/>
    {terrain.geoms}
    {body_xml(payload)}
  </worldbody>
  <actuator>{actuator_xml()}
  </actuator>
</mujoco>"""


class Simulation:
    """One robot on one terrain. Call `settle` once, then alternate `observe` and `step`."""

    def __init__(self, terrain: Terrain, start: Start, rng: np.random.Generator) -> None:
        self.terrain, self.start, self.rng = terrain, start, rng
        self.xml = scene_xml(terrain, start.payload)
        self.model = mujoco.MjModel.from_xml_string(self.xml)
        self.data = mujoco.MjData(self.model)
        self.time = 0.0  # s since the robot settled
        self.work = 0.0  # J, the absolute mechanical work of all joints
        self._velocity = np.zeros(2)
        self._trunk = self.model.body("trunk").id
        self._trunk_geom = self.model.geom("trunk").id
        self._shanks = [self.model.body(f"{leg.name}_shank").id for leg in LEGS]
        self._feet = [self.model.geom(f"{leg.name}_foot").id for leg in LEGS]
        self._place_at_start()

    def _place_at_start(self) -> None:
        yaw = self.start.yaw
        self.data.qpos[:3] = 0.0, self.start.y, START_HEIGHT
        self.data.qpos[3:FREE_POSITION] = math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)
        self.data.qpos[FREE_POSITION:] = STANDING + self.start.joint_offsets

    def fingerprint(self) -> str:
        """A short hash of all that an episode starts from: equal for two policies given the same seed."""
        blades = (self.terrain.drag, self.terrain.blade_height)
        digest = hashlib.sha256(self.xml.encode())
        for values in (self.data.qpos, self.start.shove_times, self.start.shove_forces, blades):
            digest.update(np.asarray(values, dtype="<f8").tobytes())
        return digest.hexdigest()[:12]

    def settle(self) -> None:
        """Drop to the ground and stand, before the clock starts."""
        self.data.ctrl[:] = STANDING
        mujoco.mj_step(self.model, self.data, SETTLING_STEPS * SUBSTEPS)

    def step(self, targets: Array) -> None:
        """Hold the twelve joint targets (rad) for one control period."""
        self.data.ctrl[:] = targets
        self._apply_shoves()
        if self.terrain.drag:
            self._apply_drag()
        mujoco.mj_step(self.model, self.data, SUBSTEPS)
        self.time += CONTROL_PERIOD
        power = self.data.actuator_force * self.data.qvel[FREE_VELOCITY:]
        self.work += float(np.abs(power).sum()) * CONTROL_PERIOD

    def observe(self) -> Array:
        """The eleven observations: noisy sensors, the velocity low-passed, and the command.

        World-up in the body frame (3), gyro (3), forward and sideways velocity in the heading frame (2), yaw,
        y, command.
        """
        rotation = self.data.xmat[self._trunk]
        yaw = math.atan2(rotation[3], rotation[0])
        vx, vy = self.data.qvel[:2]
        cosine, sine = math.cos(yaw), math.sin(yaw)
        observation = np.empty(11)
        observation[0:3] = rotation[6:9]
        observation[3:6] = self.data.qvel[3:6]
        observation[6:10] = cosine * vx + sine * vy, cosine * vy - sine * vx, yaw, self.data.qpos[1]
        observation[:10] += SENSOR_NOISE * self.rng.standard_normal(10)
        self._velocity += LOW_PASS * (observation[6:8] - self._velocity)
        observation[6:8] = self._velocity
        observation[10] = min(1.0, self.time / RAMP_TIME)
        return observation

    @property
    def x(self) -> float:
        return float(self.data.qpos[0])

    @property
    def y(self) -> float:
        return float(self.data.qpos[1])

    def uprightness(self) -> float:
        """The vertical share of the trunk's up vector: 1 upright, 0 on its side."""
        return float(self.data.xmat[self._trunk, 8])

    def trunk_touches_ground(self) -> bool:
        return bool(self.data.ncon) and bool((self.data.contact.geom == self._trunk_geom).any())

    def _apply_shoves(self) -> None:
        force = self.data.xfrc_applied[self._trunk]
        force[:2] = 0.0
        for begin, shove in zip(self.start.shove_times, self.start.shove_forces, strict=True):
            if begin <= self.time < begin + SHOVE_TIME:
                force[:2] += shove

    def _apply_drag(self) -> None:
        """Blades resist a foot in proportion to its velocity and to how deep it is in them."""
        velocity = np.zeros(6)  # angular, then linear
        for shank, foot in zip(self._shanks, self._feet, strict=True):
            height = self.data.geom_xpos[foot, 2] - FOOT_RADIUS
            depth = min(1.0, max(0.0, 1.0 - height / self.terrain.blade_height))
            kind = mujoco.mjtObj.mjOBJ_GEOM
            mujoco.mj_objectVelocity(self.model, self.data, kind, foot, velocity, 0)
            self.data.xfrc_applied[shank, :3] = -self.terrain.drag * depth * velocity[3:]
