#!/usr/bin/env bash
# judges what was lost, submits what is due again, ends the run
#   sbatch --dependency=afterany:JOB FILE RUN
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --time=30
#SBATCH --requeue
#SBATCH --open-mode=append
read -r python <"$1/dispatch/python"
[[ -x $python ]] || { source "$1/lib/find_python.sh" && python_or_leave ""; }
exec "$python" -I -S "$1/lib/comborun_host" settle "$@"
