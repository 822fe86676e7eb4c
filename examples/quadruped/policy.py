"""A policy: a small network that turns an observation into twelve joint targets, and its checkpoint file.

15 inputs (11 observations and a clock of two harmonics), two hidden layers of 64 tanh units, 12 linear
outputs: three matrix products, for which numpy is enough.
"""

from __future__ import annotations

import math
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from robot import ABDUCTION, JOINT_COUNT, LEGS, inverse_kinematics

Array = npt.NDArray[np.float64]
Weights = npt.NDArray[np.float32]

OBSERVATION_SIZE = 11
INPUT_SIZE = OBSERVATION_SIZE + 4
HIDDEN_SIZE = 64
ACTION_SCALE = 0.5  # rad of joint target per unit of output
CONTROL_PERIOD = 0.02  # s: the policy acts at 50 Hz
STANDING_HEIGHT = 0.46  # m from hip joint to foot centre

_STANDING_LEGS = [inverse_kinematics(leg.side, 0.0, leg.side * ABDUCTION, -STANDING_HEIGHT) for leg in LEGS]
STANDING = np.array(_STANDING_LEGS).ravel()  # (12,) rad, what outputs of zero ask for

SHAPES = {
    "w0": (INPUT_SIZE, HIDDEN_SIZE),
    "b0": (HIDDEN_SIZE,),
    "w1": (HIDDEN_SIZE, HIDDEN_SIZE),
    "b1": (HIDDEN_SIZE,),
    "w2": (HIDDEN_SIZE, JOINT_COUNT),
    "b2": (JOINT_COUNT,),
    "mu": (INPUT_SIZE,),
    "sd": (INPUT_SIZE,),
    "freq": (),
}


class CheckpointError(Exception):
    """A checkpoint file that can't be used; the message names the file and the reason in one line."""


@dataclass(frozen=True)
class Network:
    """What a checkpoint holds, all float32: weights `w`, biases `b`, the inputs' mean `mu` and standard
    deviation `sd`, and the clock's frequency `freq` (Hz).
    """

    w0: Weights
    b0: Weights
    w1: Weights
    b1: Weights
    w2: Weights
    b2: Weights
    mu: Weights
    sd: Weights
    freq: Weights

    def forward(self, inputs: npt.NDArray[np.floating]) -> Weights:
        """Outputs of shape (..., 12) for inputs of shape (..., 15)."""
        hidden: Weights = (inputs.astype(np.float32) - self.mu) / self.sd
        hidden = np.tanh(hidden @ self.w0 + self.b0)
        hidden = np.tanh(hidden @ self.w1 + self.b1)
        outputs: Weights = hidden @ self.w2 + self.b2
        return outputs


class Policy:
    """A network with its clock: one `act` per control step, `reset` before each episode."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.frequency = float(network.freq)
        self.phase = 0.0

    def reset(self) -> None:
        self.phase = 0.0

    def act(self, observation: Array) -> Array:
        """Joint targets (12,) in radians for an observation (11,)."""
        outputs = self.network.forward(np.concatenate((observation, clock(self.phase))))
        self.phase = (self.phase + self.frequency * CONTROL_PERIOD) % 1.0
        return STANDING + ACTION_SCALE * outputs.astype(np.float64)


def clock(phase: float) -> tuple[float, float, float, float]:
    """The gait phase (0 to 1) as two harmonics, so that its end meets its beginning."""
    angle = math.tau * phase
    return math.sin(angle), math.cos(angle), math.sin(2 * angle), math.cos(2 * angle)


def load(path: Path) -> Network:
    """Read a checkpoint; CheckpointError tells what is wrong with it."""
    try:
        # np.load leaves a damaged file that it opened itself open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in SHAPES}
    except FileNotFoundError:
        raise CheckpointError(f"no checkpoint at {path}") from None
    except KeyError as error:
        raise CheckpointError(f"checkpoint {path} lacks an array: {error}") from None
    except OSError as error:
        raise CheckpointError(f"can't read checkpoint {path}: {error.strerror or error}") from None
    # AttributeError and TypeError: an .npy file, which np.load returns as a bare array.
    except (ValueError, EOFError, zipfile.BadZipFile, AttributeError, TypeError):
        raise CheckpointError(f"checkpoint {path} is not an intact .npz file") from None
    for name, shape in SHAPES.items():
        array = arrays[name]
        if array.shape != shape or array.dtype != np.float32:
            found = f"{array.dtype}{array.shape}"
            raise CheckpointError(f"checkpoint {path}: {name} is {found}, expected float32{shape}")
        if not np.isfinite(array).all():
            raise CheckpointError(f"checkpoint {path}: {name} has values that are not finite")
    return Network(**arrays)


def save(network: Network, path: Path) -> None:
    """Write a checkpoint beside its place and rename it there, so that a reader never sees half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:
        np.savez(file, **asdict(network))
    partial.replace(path)
