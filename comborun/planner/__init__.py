"""From a grid to a plan, and from a session to sessions for parts of its episodes. All of it is pure."""

from comborun.planner.knowledge import NOTHING_KNOWN, Knowledge, Pace, pace_key
from comborun.planner.laying import lay_out, lay_out_on_slurm, not_held
from comborun.planner.program import absent_gpus, hydra_overrides, rooms
from comborun.planner.ranges import digest_of, distinct, first_episodes, range_session, session_digest

__all__ = [
    "NOTHING_KNOWN",
    "Knowledge",
    "Pace",
    "absent_gpus",
    "digest_of",
    "distinct",
    "first_episodes",
    "hydra_overrides",
    "lay_out",
    "lay_out_on_slurm",
    "not_held",
    "pace_key",
    "range_session",
    "rooms",
    "session_digest",
]
