"""What is wrong with the keys of a grid together: each check yields the mistakes, or the warnings, of a draft."""

from comborun.grid.checks import axes, commands, hosts, program, results, together

PROBLEMS = (
    *(axes.axis_problems, commands.command_problems, program.program_problems, program.placement_problems),
    *(program.resource_problems, program.display_problems, program.launch_problems, commands.server_problems),
    *(results.progress_problems, results.naming_problems, results.nominal_problems, results.judging_problems),
    *(axes.cut_problems, axes.seed_problems, axes.stopping_problems),
    *(together.together_problems, hosts.hosts_problems),
)
WARNINGS = (
    *(commands.command_warnings, program.program_warnings, program.placement_warnings, results.count_warnings),
    *(program.resource_warnings, program.display_warnings, commands.server_warnings, results.judging_warnings),
)
