"""A trot with feedback, in 19 numbers: the teacher of the policies.

Each foot follows a closed curve below its hip, shifted by what the sensors say: velocity (foot placement as
in Raibert, 1986), attitude, heading and distance from the centre line. Inverse kinematics makes joint targets
of the foot positions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from policy import CONTROL_PERIOD, Array
from robot import ABDUCTION, LEGS, Leg, inverse_kinematics

PHASE_OFFSETS = (0.0, 0.5, 0.5, 0.0)  # of fl, fr, hl, hr: diagonal pairs swing together


@dataclass(frozen=True)
class Gait:
    """The parameters of a trot; lengths in metres, gains per metre, radian or their rates."""

    freq: float  # Hz, strides per second
    duty: float  # share of a stride that a foot is on the ground
    vcmd: float  # m/s, commanded speed
    height: float  # hip above foot
    lift: float  # of a foot in swing
    xf: float  # shift of the front feet, forward
    xr: float  # shift of the hind feet, forward
    width: float  # shift of all feet, outward
    kvx: float  # s, foot placement per error of forward velocity
    kvy: float  # s, foot placement per sideways velocity
    kroll: float
    kpitch: float
    droll: float
    dpitch: float
    kyaw: float  # 1/s, turn rate per error of heading
    ky: float  # rad/m, heading per distance from the centre line
    dyaw: float
    push: float  # depth to which a foot in stance presses
    peak: float  # share of the swing at which the foot is highest


BOUNDS: dict[str, tuple[float, float]] = {
    "freq": (1.2, 2.6),
    "duty": (0.45, 0.75),
    "vcmd": (0.4, 1.3),
    "height": (0.38, 0.54),
    "lift": (0.06, 0.22),
    "xf": (-0.1, 0.1),
    "xr": (-0.1, 0.1),
    "width": (-0.03, 0.08),
    "kvx": (-0.05, 0.3),
    "kvy": (-0.05, 0.35),
    "kroll": (-0.5, 1.5),
    "kpitch": (-0.5, 1.5),
    "droll": (-0.1, 0.2),
    "dpitch": (-0.1, 0.2),
    "kyaw": (0.0, 4.0),
    "ky": (0.0, 2.0),
    "dyaw": (-0.3, 0.6),
    "push": (-0.02, 0.06),
    "peak": (0.25, 0.75),
}


def from_unit_box(point: Array) -> Gait:
    """The gait at a point of [-1, 1]^19, the box in which the parameters are searched."""
    scaled = zip(fields(Gait), np.clip(point, -1.0, 1.0).tolist(), strict=True)
    values = {}
    for field, share in scaled:
        low, high = BOUNDS[field.name]
        values[field.name] = low + (high - low) * (share + 1.0) / 2.0
    return Gait(**values)


@dataclass(frozen=True)
class Feedback:
    """What all four feet have in common at one instant."""

    speed: float  # m/s, commanded
    turn: float  # rad/s, commanded
    forward_shift: float  # m
    sideways_shift: float  # m
    roll_correction: float  # m of foot height per m of leg origin, sideways
    pitch_correction: float  # m of foot height per m of leg origin, forward


class Trot:
    """A gait with its clock: drives the robot as a policy does."""

    def __init__(self, gait: Gait) -> None:
        self.gait = gait
        self.phase = 0.0

    def reset(self) -> None:
        self.phase = 0.0

    def act(self, observation: Array) -> Array:
        """Joint targets (12,) in radians for an observation (11,)."""
        feedback = self._feedback(observation)
        targets: list[float] = []
        for leg, offset in zip(LEGS, PHASE_OFFSETS, strict=True):
            foot = foot_position(self.gait, leg, (self.phase + offset) % 1.0, feedback)
            targets.extend(inverse_kinematics(leg.side, *foot))
        self.phase = (self.phase + self.gait.freq * CONTROL_PERIOD) % 1.0
        return np.array(targets)

    def _feedback(self, observation: Array) -> Feedback:
        gait = self.gait
        up_x, up_y, up_z, roll_rate, pitch_rate, yaw_rate, vx, vy, yaw, y, command = observation.tolist()
        speed = gait.vcmd * command
        heading = clip(-gait.ky * y, 0.5)
        roll, pitch = math.atan2(up_y, up_z), -math.asin(clip(up_x, 1.0))
        return Feedback(
            speed=speed,
            turn=clip(gait.kyaw * (heading - yaw), 0.8) - gait.dyaw * yaw_rate,
            forward_shift=gait.kvx * (vx - speed),
            sideways_shift=gait.kvy * vy,
            roll_correction=gait.kroll * roll + gait.droll * roll_rate,
            pitch_correction=gait.kpitch * pitch + gait.dpitch * pitch_rate,
        )


def foot_position(gait: Gait, leg: Leg, phase: float, feedback: Feedback) -> tuple[float, float, float]:
    """The foot's centre from its hip joint (m) at this phase (0 to 1, stance first) of the leg's stride."""
    origin_x, origin_y = leg.origin
    if phase < gait.duty:
        progress = phase / gait.duty
        along = 1.0 - 2.0 * progress
        z = -gait.height - gait.push * math.sin(math.pi * progress)
    else:
        progress = (phase - gait.duty) / (1.0 - gait.duty)
        along = -math.cos(math.pi * progress)
        z = -gait.height + gait.lift * swing_height(progress, gait.peak)
    # Seconds before (+) or after (-) mid-stance: times a speed, where a foot at rest on the ground is.
    lead = along * gait.duty / gait.freq / 2.0
    shift = gait.xf if leg.front > 0 else gait.xr
    x = lead * (feedback.speed - feedback.turn * origin_y) + feedback.forward_shift + shift
    y = leg.side * (ABDUCTION + gait.width) + lead * feedback.turn * origin_x + feedback.sideways_shift
    z += feedback.roll_correction * origin_y - feedback.pitch_correction * origin_x
    return x, y, z


def swing_height(progress: float, peak: float) -> float:
    """Height of a swinging foot, 0 to 1: two quarter waves that meet at `peak`."""
    if progress < peak:
        return math.sin(math.pi * progress / (2.0 * peak))
    return math.cos(math.pi * (progress - peak) / (2.0 * (1.0 - peak)))


def clip(value: float, limit: float) -> float:
    return min(limit, max(-limit, value))
