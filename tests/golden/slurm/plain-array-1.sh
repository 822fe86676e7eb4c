#!/usr/bin/env bash
# one session a task: what the cluster gives a job that asks for nothing
#   sbatch --array=0-LAST FILE RUN BATCH
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --signal=B:USR1@60
#SBATCH --requeue
#SBATCH --open-mode=append
read -r python <"$1/dispatch/python"
[[ -x $python ]] || { source "$1/lib/find_python.sh" && python_or_leave ""; }
exec "$python" -I -S "$1/lib/comborun_host" task "$@"
