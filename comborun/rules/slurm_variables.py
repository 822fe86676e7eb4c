"""Variables of the caller that change what Slurm's commands do. Pure.

sbatch prefers them to the options in a job script, so all options are given on its command line. A variable counts
only where the grid gives no such option, and only if it says where jobs go or how large a task is. The first submission
by a person records those that count: later ones come from nodes, and all tasks of a run ask for the same.
"""

from __future__ import annotations

from comborun.rules.facts import Fact
from comborun.rules.vocabulary import Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Mapping

_PREFIXES = ("SLURM_", "SLURMD_", "SBATCH_", "SALLOC_", "SRUN_", "SQUEUE_", "SCANCEL_", "SCONTROL_", "SINFO_", "SACCT_")
_KEPT = frozenset(("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_JWT"))
"""they say which cluster is asked, and by whom"""
_PLACES = {
    "SBATCH_ACCOUNT": "--account",
    "SBATCH_PARTITION": "--partition",
    "SBATCH_QOS": "--qos",
    "SBATCH_RESERVATION": "--reservation",
    "SBATCH_CLUSTERS": "--clusters",
    "SBATCH_WCKEY": "--wckey",
}
_SIZES = {
    "SBATCH_CONSTRAINT": "--constraint",
    "SBATCH_TIMELIMIT": "--time",
    "SBATCH_MEM_PER_NODE": "--mem",
    "SBATCH_MEM_PER_CPU": "--mem-per-cpu",
    "SBATCH_MEM_PER_GPU": "--mem-per-gpu",
}
_MEMORY = frozenset(("--mem", "--mem-per-cpu", "--mem-per-gpu"))
"""options that exclude each other"""


class Variable(Word):
    """What a variable of the caller does. `name`, `value`."""

    COUNTS = "slurm_variable_counts"  # option: that the grid does not give
    IGNORED = "slurm_variable_ignored"


def harmless(variables: Mapping[str, str]) -> dict[str, str]:
    """An environment for Slurm's commands."""
    return {name: value for name, value in variables.items() if name in _KEPT or not name.startswith(_PREFIXES)}


def options_of(script: str) -> list[str]:
    """The options in the text of a job script."""
    return [line[8:].strip() for line in script.splitlines() if line.startswith("#SBATCH ")]


def standing(variables: Mapping[str, str], given: Iterable[str], *, settle: bool = False) -> list[str]:
    """The options that variables of the caller add to those that a job script gives. `settle`: it is the small job."""
    return [f"{option}={value}" for _, option, value in _counting(variables, given, settle)]


def facts(variables: Mapping[str, str], given: Iterable[str]) -> list[Fact]:
    """What becomes of each such variable; of tasks, not of the small job."""
    counts = {name: option for name, option, _ in _counting(variables, given, settle=False)}
    found = sorted((name, value) for name, value in variables.items() if name.startswith("SBATCH_"))
    return [
        Fact(Variable.COUNTS, name=name, value=value, option=counts[name])
        if name in counts
        else Fact(Variable.IGNORED, name=name, value=value)
        for name, value in found
    ]


def _counting(variables: Mapping[str, str], given: Iterable[str], settle: bool) -> list[tuple[str, str, str]]:
    taken = {option.partition("=")[0] for option in given}
    taken |= _MEMORY if taken & _MEMORY else set()
    found = []
    for name, option in {**_PLACES, **({} if settle else _SIZES)}.items():
        if variables.get(name) and option not in taken:
            found.append((name, option, variables[name]))
            taken |= _MEMORY if option in _MEMORY else {option}
    return found
