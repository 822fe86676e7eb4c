#!/usr/bin/env bash
# one session a task: what the cluster gives a job that asks for nothing
#   sbatch --array=0-LAST FILE RUN BATCH, as lib/slurm_submit.sh does
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --signal=B:USR1@60
#SBATCH --requeue
#SBATCH --open-mode=append
exec bash "$1/lib/slurm_task.sh" "$@"
