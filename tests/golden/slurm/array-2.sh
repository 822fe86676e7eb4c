#!/usr/bin/env bash
# one session a task: 2 a100 GPUs, 4 CPUs, 16384 MiB, 1 h 35 min
#   sbatch --array=0-LAST FILE RUN BATCH
#SBATCH --partition=gpu,long
#SBATCH --account=robots
#SBATCH --qos=normal
#SBATCH --reservation=icra
#SBATCH --constraint=a100|h100
#SBATCH --exclude=n[1-3],n9
#SBATCH --mail-user=me@example.org
#SBATCH --mail-type=END,FAIL
#SBATCH --licenses=sim:1
#SBATCH --nice
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gres=gpu:a100:2
#SBATCH --cpus-per-task=4
#SBATCH --mem=16384M
#SBATCH --time=95
#SBATCH --signal=B:USR1@60
#SBATCH --requeue
#SBATCH --open-mode=append
read -r python <"$1/dispatch/python"
[[ -x $python ]] || { source "$1/lib/find_python.sh" && python_or_leave ""; }
exec "$python" -I -S "$1/lib/comborun_host" task "$@"
