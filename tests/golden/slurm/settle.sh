#!/usr/bin/env bash
# judges what was lost, submits what is due again, ends the run
#   sbatch --dependency=afterany:JOB FILE RUN, as lib/slurm_submit.sh does
#SBATCH --partition=cpu
#SBATCH --account=robots
#SBATCH --qos=normal
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --time=120
#SBATCH --requeue
#SBATCH --open-mode=append
exec bash "$1/lib/slurm_settle.sh" "$@"
