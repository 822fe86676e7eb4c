#!/usr/bin/env bash
# slurmdbd_setup.sh FOLDER PORT: accounting for the Slurm that slurm_setup.sh has made in FOLDER: a MariaDB and a slurmdbd
# of its own, on PORT and the one after. Needs root, mariadb-server and slurmdbd. The controller is started again.
#
#   0: sacct answers    1: it does not, and the logs tell why
set -euo pipefail
folder=${1:?folder} port=${2:?port}
host=$(hostname -s)
export SLURM_CONF=$folder/etc/slurm.conf

dbd::until() { # <command>... : it succeeds, within ten seconds
  local i
  for ((i = 0; i < 200; i++)); do
    "$@" >/dev/null 2>&1 && return
    sleep 0.05
  done
  printf 'slurmdbd_setup: still not: %s; see %s/log\n' "$*" "$folder" >&2
  return 1
}

dbd::sql() { mariadb --no-defaults --socket="$folder/db/my.sock" --user=root --execute="$1"; }

mkdir -p "$folder/db"
chown mysql:mysql "$folder/db"
chmod 755 "$folder/db"
mariadb-install-db --no-defaults --user=mysql --datadir="$folder/db/data" --auth-root-authentication-method=normal \
  >"$folder/log/mariadb-install.log" 2>&1
mariadbd --no-defaults --user=mysql --datadir="$folder/db/data" --socket="$folder/db/my.sock" \
  --pid-file="$folder/db/my.pid" --port="$((port + 1))" --bind-address=127.0.0.1 --innodb-buffer-pool-size=64M \
  --innodb-flush-log-at-trx-commit=2 >"$folder/log/mariadb.log" 2>&1 &
dbd::until dbd::sql 'select 1'
dbd::sql "create database slurm_acct_db; create user 'slurm'@'localhost' identified by 'x';
  create user 'slurm'@'127.0.0.1' identified by 'x'; grant all on slurm_acct_db.* to 'slurm'@'localhost';
  grant all on slurm_acct_db.* to 'slurm'@'127.0.0.1'"
cat >"$folder/etc/slurmdbd.conf" <<CONF
AuthType=auth/munge
AuthInfo=socket=$folder/run/munge.sock
DbdHost=$host
DbdAddr=127.0.0.1
DbdPort=$port
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$((port + 1))
StorageUser=slurm
StoragePass=x
StorageLoc=slurm_acct_db
LogFile=$folder/log/slurmdbd.log
PidFile=$folder/run/slurmdbd.pid
CONF
chmod 600 "$folder/etc/slurmdbd.conf"
sed -i "s#^AccountingStorageType=.*#AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\n\
AccountingStoragePort=$port\nAccountingStoragePass=$folder/run/munge.sock#" "$SLURM_CONF"
slurmdbd # it looks for its configuration beside SLURM_CONF
dbd::until sacctmgr -n -P list cluster
kill "$(cat "$folder/run/slurmctld.pid")"
dbd::until test ! -e "$folder/run/slurmctld.pid"
sacctmgr -i add cluster test >/dev/null 2>&1 || true
slurmctld -c -f "$SLURM_CONF"
dbd::until sacct -n
dbd::until sinfo -h
