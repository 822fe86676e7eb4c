"""The terrains: what an episode's random draws make of the ground.

Obstacles lie in x 1-7.5 m, |y| < 1.3 m, so the robot starts and finishes on the flat.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from robot import vector

# A terrain's place in this tuple enters every episode's seed: append, never reorder.
TERRAINS = ("flat", "friction", "grass", "boulder", "stairs")

FIRST_X, LAST_X, HALF_WIDTH = 1.0, 7.5, 1.3
SOFT_GROUND = 'solref=".035 1" solimp=".5 .95 .03"'
EARTH, ROCK, CONCRETE = ".55 .5 .43 1", ".5 .5 .52 1", ".66 .66 .68 1"
TURF, TUSSOCK, ICE = ".42 .58 .3 1", ".36 .52 .25 1", ".7 .8 .87 1"


@dataclass(frozen=True)
class Terrain:
    """One sampled terrain: its geoms as XML and, for grass, the drag of the blades on the feet."""

    name: str
    friction: float
    geoms: str
    drag: float = 0.0  # N.s/m on a foot at the blades' roots
    blade_height: float = 0.0  # m


def sample_terrain(name: str, rng: np.random.Generator, level: float = 1.0) -> Terrain:
    """Draw one terrain. `level` scales heights and drag and divides friction: above 1 is harder."""
    return _SAMPLERS[name](rng, level)


def _draw_friction(rng: np.random.Generator, low: float, high: float, level: float) -> float:
    # Capped: a foot that sticks to the ground trips the robot, which would make easy levels hard.
    return min(1.0, rng.uniform(low, high) / level)


def _geom(kind: str, friction: float, attributes: str) -> str:
    # Priority 1: the terrain's friction and softness decide a contact, not a mixture with the robot's.
    return (
        f'\n    <geom type="{kind}" contype="1" conaffinity="0" condim="3" priority="1"'
        f' friction="{friction:.6f} .005 .0001" {attributes}/>'
    )


def _ground(friction: float, rgba: str, softness: str = "") -> str:
    return _geom("plane", friction, f'name="ground" size="40 40 1" rgba="{rgba}" {softness}')


def _flat(rng: np.random.Generator, level: float) -> Terrain:
    friction = _draw_friction(rng, 0.4, 1.0, level)
    return Terrain("flat", friction, _ground(friction, CONCRETE))


def _friction(rng: np.random.Generator, level: float) -> Terrain:
    friction = _draw_friction(rng, 0.015, 0.45, level)
    return Terrain("friction", friction, _ground(friction, ICE))


def _grass(rng: np.random.Generator, level: float) -> Terrain:
    """Soft ground, 70 tussocks (buried spheres that show as low domes) and blades that drag on the shanks."""
    friction = _draw_friction(rng, 0.45, 0.8, level)
    drag, blade_height = rng.uniform(5.0, 50.0) * level, rng.uniform(0.06, 0.16) * level
    geoms = [_ground(friction, TURF, SOFT_GROUND)]
    for _ in range(70):
        x, y = rng.uniform(FIRST_X, LAST_X), rng.uniform(-HALF_WIDTH, HALF_WIDTH)
        radius, shows = rng.uniform(0.15, 0.35), rng.uniform(0.01, 0.06) * level
        place = f'pos="{vector(x, y, shows - radius)}" size="{vector(radius)}" rgba="{TUSSOCK}"'
        geoms.append(_geom("sphere", friction, f"{place} {SOFT_GROUND}"))
    return Terrain("grass", friction, "".join(geoms), drag, blade_height)


def _boulder(rng: np.random.Generator, level: float) -> Terrain:
    """120 rocks, half of them buried spheres, half tilted boxes, up to an episode's own greatest height."""
    friction = _draw_friction(rng, 0.6, 0.9, level)
    greatest = rng.uniform(0.03, 0.17) * level
    geoms = [_ground(friction, EARTH)]
    for rock in range(120):
        x, y = rng.uniform(FIRST_X, LAST_X), rng.uniform(-HALF_WIDTH, HALF_WIDTH)
        height = rng.uniform(0.3, 1.0) * greatest
        if rock % 2 == 0:
            radius = rng.uniform(0.12, 0.25)
            place = f'pos="{vector(x, y, height - radius)}" size="{vector(radius)}" rgba="{ROCK}"'
            geoms.append(_geom("sphere", friction, place))
        else:
            length, width = rng.uniform(0.06, 0.2, 2)
            yaw, tilt = rng.uniform(0.0, np.pi), rng.uniform(-0.2, 0.2)
            # Centred on the ground: the upper half shows, the lower half keeps a tilted rock from floating.
            place = f'pos="{vector(x, y, 0)}" size="{vector(length, width, height)}"'
            geoms.append(_geom("box", friction, f'{place} euler="{vector(0, tilt, yaw)}" rgba="{ROCK}"'))
    return Terrain("boulder", friction, "".join(geoms))


def _stairs(rng: np.random.Generator, level: float) -> Terrain:
    """Six steps up, a landing of 1 m, six steps down: boxes stacked like a pyramid."""
    friction = _draw_friction(rng, 0.6, 0.9, level)
    rise, tread = rng.uniform(0.02, 0.17) * level, rng.uniform(0.28, 0.36)
    first = rng.uniform(1.1, 1.5)
    steps, landing = 6, 1.0
    last = first + 2 * (steps - 1) * tread + landing
    geoms = [_ground(friction, EARTH)]
    for step in range(steps):
        front, back = first + step * tread, last - step * tread
        centre = vector((front + back) / 2, 0, (step + 0.5) * rise)
        size = vector((back - front) / 2, 1.7, rise / 2)
        geoms.append(_geom("box", friction, f'pos="{centre}" size="{size}" rgba="{CONCRETE}"'))
    return Terrain("stairs", friction, "".join(geoms))


_SAMPLERS: dict[str, Callable[[np.random.Generator, float], Terrain]] = {
    "flat": _flat,
    "friction": _friction,
    "grass": _grass,
    "boulder": _boulder,
    "stairs": _stairs,
}
