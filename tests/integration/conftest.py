"""Fixtures that several test modules share."""

from box import any_box, box, screen_box, small_disk_box, usual_box
from boxes import boxes
from desk import desk, ended
from slurm import slurm
from slurm_box import slurm_box
from sshd import own_sshd, place, ssh_place, ssh_user, sshd

__all__ = [
    "any_box",
    "box",
    "boxes",
    "desk",
    "ended",
    "own_sshd",
    "place",
    "screen_box",
    "slurm",
    "slurm_box",
    "small_disk_box",
    "ssh_place",
    "ssh_user",
    "sshd",
    "usual_box",
]
