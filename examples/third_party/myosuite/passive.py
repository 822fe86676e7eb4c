"""Policies that look at nothing, as examine_env takes them: a class in a module that Python finds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Constant:
    """The same action at every step, for every muscle or motor."""

    level: float

    def __init__(self, env: Any, _seed: int) -> None:
        self.action = np.full(env.action_space.shape, self.level)

    def get_action(self, _observation: Any) -> tuple[NDArray[np.float64], dict[str, Any]]:
        return self.action, {"evaluation": self.action}


class Rest(Constant):
    """The middle of every actuator's range, which leaves a muscle half excited."""

    level = 0.0


class Full(Constant):
    """Every muscle as strong as it gets."""

    level = 1.0
