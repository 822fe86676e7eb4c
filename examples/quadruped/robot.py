"""The robot: a 12-joint Spot-class quadruped as MuJoCo XML.

Dimensions and masses are those of the Clearpath Spot URDF (BSD-3-Clause); the trunk's moments of inertia,
the joint damping and the actuator gains are this example's own. Metres, kilograms, radians, newton metres.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

HIP_X = 0.29785  # hip joint from the trunk's centre, forward
HIP_Y = 0.055  # hip joint from the trunk's centre, sideways
ABDUCTION = 0.1108  # from the hip's roll axis (hx) out to its pitch axis (hy)
KNEE_X = 0.025  # knee from the hy axis, forward
THIGH = 0.32  # knee from the hy axis, down
SHANK = 0.3365  # foot centre from the knee, down
FOOT_RADIUS = 0.036
# The knee sits KNEE_X ahead of the hy axis: at hy = 0 the line from axis to knee leans forward by THIGH_TILT.
THIGH_LENGTH = math.hypot(THIGH, KNEE_X)
THIGH_TILT = math.atan2(KNEE_X, THIGH)

TRUNK_MASS = 32.86
TRUNK_HALF_SIZE = (0.38, 0.105, 0.075)
JOINTS_PER_LEG = ("hx", "hy", "kn")
JOINT_LIMITS = ((-0.785, 0.785), (-0.899, 2.24), (-2.79, -0.25))
TORQUE_LIMITS = (60.0, 60.0, 115.0)
KP = 500.0  # N.m/rad; 220 is too soft, the feet drag
KV = 10.0  # N.m.s/rad


@dataclass(frozen=True)
class Leg:
    """One leg: `front` and `side` are +1 for front and left, -1 for hind and right."""

    name: str
    front: int
    side: int

    @property
    def origin(self) -> tuple[float, float]:
        """Where the straight leg meets the ground plan of the trunk: (x, y) in the trunk's frame."""
        return self.front * HIP_X, self.side * (HIP_Y + ABDUCTION)


LEGS = (Leg("fl", 1, 1), Leg("fr", 1, -1), Leg("hl", -1, 1), Leg("hr", -1, -1))
JOINT_COUNT = len(LEGS) * len(JOINTS_PER_LEG)


def vector(*values: float) -> str:
    """Numbers as an XML attribute, to a millionth."""
    return " ".join(f"{value:.6f}" for value in values)


def _leg_xml(leg: Leg) -> str:
    hx, hy, kn = (vector(*limits) for limits in JOINT_LIMITS)
    return f"""
      <body name="{leg.name}_hip" pos="{vector(leg.front * HIP_X, leg.side * HIP_Y, 0)}">
        <joint name="{leg.name}_hx" axis="1 0 0" range="{hx}"/>
        <inertial pos="0 {vector(leg.side * ABDUCTION / 2)} 0" mass="1.68" diaginertia=".003 .003 .003"/>
        <body name="{leg.name}_thigh" pos="0 {vector(leg.side * ABDUCTION)} 0">
          <joint name="{leg.name}_hy" axis="0 1 0" range="{hy}"/>
          <inertial pos="{vector(KNEE_X / 2, 0, -THIGH / 2)}" mass="2.34" diaginertia=".022 .022 .003"/>
          <geom class="robot" name="{leg.name}_thigh" type="capsule" size=".04"
                fromto="0 0 0 {vector(KNEE_X, 0, -THIGH)}" rgba=".93 .75 .2 1"/>
          <body name="{leg.name}_shank" pos="{vector(KNEE_X, 0, -THIGH)}">
            <joint name="{leg.name}_kn" axis="0 1 0" range="{kn}"/>
            <inertial pos="0 0 {vector(-SHANK / 2)}" mass=".35" diaginertia=".004 .004 .0002"/>
            <geom class="robot" name="{leg.name}_shank" type="capsule" size=".022"
                  fromto="0 0 0 0 0 {vector(-SHANK)}" rgba=".25 .26 .28 1"/>
            <geom class="robot" name="{leg.name}_foot" type="sphere" size="{FOOT_RADIUS}"
                  pos="0 0 {vector(-SHANK)}" rgba=".12 .12 .13 1"/>
          </body>
        </body>
      </body>"""


def body_xml(payload: float) -> str:
    """The robot's bodies. `payload` (kg, may be negative) is added to the trunk's mass."""
    return f"""
    <body name="trunk" pos="0 0 .52">
      <freejoint/>
      <inertial pos="0 0 0" mass="{vector(TRUNK_MASS + payload)}" diaginertia=".2 .95 1.05"/>
      <geom class="robot" name="trunk" type="box" size="{vector(*TRUNK_HALF_SIZE)}" rgba=".96 .79 .24 1"/>
      <geom class="looks" type="box" pos=".4 0 .005" size=".05 .085 .055" rgba=".2 .21 .23 1"/>
      <geom class="looks" type="box" pos="-.06 0 .08" size=".24 .075 .012" rgba=".2 .21 .23 1"/>
      {"".join(_leg_xml(leg) for leg in LEGS)}
    </body>"""


def default_xml() -> str:
    """Defaults: robot geoms collide with terrain only, `looks` geoms with nothing."""
    return f"""
    <joint damping="1" armature=".05" frictionloss=".2"/>
    <position kp="{KP:g}" kv="{KV:g}"/>
    <default class="robot"><geom contype="0" conaffinity="1"/></default>
    <default class="looks"><geom contype="0" conaffinity="0"/></default>"""


def actuator_xml() -> str:
    """Twelve position servos, ordered leg by leg as in LEGS and JOINTS_PER_LEG."""
    return "".join(
        f'\n    <position joint="{leg.name}_{joint}" forcerange="{vector(-limit, limit)}"/>'
        for leg in LEGS
        for joint, limit in zip(JOINTS_PER_LEG, TORQUE_LIMITS, strict=True)
    )


def inverse_kinematics(side: int, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Joint angles (hx, hy, kn) that put a foot's centre at (x, y, z) metres from its hip joint.

    Closed form for one roll axis and two parallel pitch axes, knee bent backwards. A point out of reach gives
    the straight leg that points at it; joint limits are left to the simulator.
    """
    offset = side * ABDUCTION
    drop = math.sqrt(max(y * y + z * z - offset * offset, 1e-6))
    hx = math.remainder(math.atan2(z, y) - math.atan2(-drop, offset), math.tau)
    reach_squared = x * x + drop * drop
    cosine = (reach_squared - THIGH_LENGTH**2 - SHANK**2) / (2 * THIGH_LENGTH * SHANK)
    bend = -math.acos(min(1.0, max(-1.0, cosine)))
    swing = math.atan2(-x, drop) - math.atan2(SHANK * math.sin(bend), THIGH_LENGTH + SHANK * math.cos(bend))
    return hx, swing + THIGH_TILT, bend - THIGH_TILT
