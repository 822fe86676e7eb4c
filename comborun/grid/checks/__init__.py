"""What is wrong with the keys of a grid together: each check yields the mistakes, or the warnings, of a draft."""

from comborun.grid.checks import axes, commands, program, resources, results, servers, stopping

PROBLEMS = (
    *(axes.axis_problems, commands.command_problems, program.program_problems, program.placement_problems),
    *(resources.resource_problems, resources.display_problems, resources.launch_problems, servers.server_problems),
    *(results.progress_problems, results.naming_problems, results.judging_problems),
    *(stopping.cut_problems, stopping.seed_problems, stopping.stopping_problems),
)
WARNINGS = (
    *(commands.command_warnings, program.program_warnings, program.placement_warnings, results.count_warnings),
    *(resources.resource_warnings, resources.display_warnings, servers.server_warnings, results.judging_warnings),
)
