"""What is wrong with the keys of a grid together: each check yields the mistakes, or the warnings, of a draft."""

from comborun.grid.checks.axes import axis_problems
from comborun.grid.checks.commands import command_problems, command_warnings
from comborun.grid.checks.program import placement_problems, placement_warnings, program_problems, program_warnings
from comborun.grid.checks.resources import (
    display_problems,
    display_warnings,
    launch_problems,
    resource_problems,
    resource_warnings,
)
from comborun.grid.checks.results import (
    count_warnings,
    judging_problems,
    judging_warnings,
    naming_problems,
    progress_problems,
)
from comborun.grid.checks.servers import server_problems, server_warnings
from comborun.grid.checks.stopping import cut_problems, seed_problems, stopping_problems

PROBLEMS = (
    *(axis_problems, command_problems, resource_problems, placement_problems, program_problems, display_problems),
    *(launch_problems, server_problems, judging_problems, progress_problems, naming_problems, cut_problems),
    *(seed_problems, stopping_problems),
)
WARNINGS = (
    *(command_warnings, count_warnings, resource_warnings, display_warnings),
    *(placement_warnings, server_warnings, program_warnings, judging_warnings),
)
