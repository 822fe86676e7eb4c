"""Variables of the caller do not override what a grid asks of Slurm."""

from __future__ import annotations

from comborun.rules.slurm_variables import facts, harmless, options_of, standing

SCRIPT = "#!/bin/bash\n#SBATCH --partition=main\n#SBATCH --mem=200M\n#SBATCH --nodes=1\necho\n"
CALLER = {
    "SBATCH_PARTITION": "urgent",
    "SBATCH_MEM_PER_CPU": "50M",
    "SBATCH_TIMELIMIT": "1",
    "SBATCH_ACCOUNT": "lab",
    "SBATCH_WAIT": "1",
}


def test_a_variable_counts_only_where_the_script_gives_no_such_option() -> None:
    given = options_of(SCRIPT)
    assert given == ["--partition=main", "--mem=200M", "--nodes=1"]
    assert standing(CALLER, given) == ["--account=lab", "--time=1"]
    assert standing(CALLER, given, settle=True) == ["--account=lab"]
    told = {fact.text("name"): fact.code for fact in facts(CALLER, given)}
    counts = {name for name, code in told.items() if code == "slurm_variable_counts"}
    assert counts == {"SBATCH_ACCOUNT", "SBATCH_TIMELIMIT"}
    assert told.keys() == CALLER.keys()


def test_slurms_commands_get_no_variable_that_changes_their_answers() -> None:
    variables = {"SQUEUE_USERS": "x", "SLURM_TIME_FORMAT": "relative", "SBATCH_WAIT": "1", "SLURM_CONF": "c", "A": "b"}
    assert harmless(variables) == {"SLURM_CONF": "c", "A": "b"}
