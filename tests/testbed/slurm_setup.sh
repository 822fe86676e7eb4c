#!/usr/bin/env bash
# slurm_setup.sh FOLDER [NODES] [GPUS] [PORT]: a real Slurm as plain processes of this machine: munged with a key of its
# own, slurmctld, and NODES slurmd that each claim 8 CPUs, 8 GB and GPUS generic resources, which are device files of our
# own. Needs root, slurmctld, slurmd, slurm-client and munge. PORT is the controller's; the nodes take the next NODES
# ports, so that two can run side by side. All that it starts has FOLDER on its command line.
#
# The partition `urgent` preempts `main`, whose jobs are then requeued. Memory limits are enforced without control
# groups, by what slurmd gathers every second.
#
#   0: all nodes are idle; prints the setting that every Slurm command wants    1: they are not, and the logs tell why
set -euo pipefail
folder=${1:?folder} nodes=${2:-1} gpus=${3:-4} port=${4:-16817}
host=$(hostname -s)

mkdir -p "$folder"/{etc,log,run,state,dev}
chmod 755 "$folder" "$folder"/*
[[ -f $folder/etc/munge.key ]] || head -c 1024 /dev/urandom >"$folder/etc/munge.key"
chmod 400 "$folder/etc/munge.key"

slurm::nodes() { # lines of slurm.conf on standard output
  local n
  for ((n = 1; n <= nodes; n++)); do
    printf 'NodeName=n%d NodeHostname=%s NodeAddr=127.0.0.1 Port=%d CPUs=8 RealMemory=8000 Gres=gpu:fake:%d State=UNKNOWN\n' \
      "$n" "$host" $((port + n)) "$gpus"
  done
}

slurm::devices() { # and lines of gres.conf on standard output; a count without files is refused
  local n g
  for ((n = 1; n <= nodes; n++)); do
    for ((g = 0; g < gpus; g++)); do
      [[ -e $folder/dev/n$n-gpu$g ]] || mknod -m 666 "$folder/dev/n$n-gpu$g" c 1 3
    done
    printf 'NodeName=n%d Name=gpu Type=fake File=%s/dev/n%d-gpu[0-%d]\n' "$n" "$folder" "$n" $((gpus - 1))
  done
}

slurm::idle() { # whether every node is
  [[ $(timeout 5 sinfo -h -N -p main -t idle -o %N 2>/dev/null | wc -l) -eq $nodes ]]
}

{
  cat <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/run/munge.sock
CredType=cred/munge
SlurmctldPort=$port
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/run/spool-%n
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd-%n.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=100
GresTypes=gpu
KillWait=8
MinJobAge=600
SlurmctldTimeout=30
SlurmdTimeout=5
InactiveLimit=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
MaxArraySize=10001
CONF
  slurm::nodes
  printf 'PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1\n'
  printf 'PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=2 PreemptMode=OFF\n'
} >"$folder/etc/slurm.conf"
slurm::devices >"$folder/etc/gres.conf"
: >"$folder/etc/cgroup.conf"
export SLURM_CONF=$folder/etc/slurm.conf

munged --force --key-file="$folder/etc/munge.key" --socket="$folder/run/munge.sock" \
  --pid-file="$folder/run/munged.pid" --log-file="$folder/log/munged.log" --seed-file="$folder/run/munge.seed"
slurmctld -c -f "$SLURM_CONF"
for ((n = 1; n <= nodes; n++)); do
  mkdir -p "$folder/run/spool-n$n"
  slurmd -N "n$n" -f "$SLURM_CONF"
done
for ((i = 0; i < 600; i++)); do
  slurm::idle && printf 'SLURM_CONF=%s\n' "$SLURM_CONF" && exit
  sleep 0.05
done
printf 'slurm_setup: not all of %s nodes are idle; see %s/log\n' "$nodes" "$folder" >&2
exit 1
