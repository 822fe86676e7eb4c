#!/usr/bin/env bash
# host.sh NAME ADDRESS FOLDER: become a whole test host in the network namespace that this is started in: own processes,
# users, /tmp, /run, /home, host name and boot id, sshd on port 22. What starts it holds its power: KILL this process and
# everything on the host is gone at once; start it again with the same folder and it has booted anew.
#
# FOLDER/etc is its /etc, and holds testbed/hostkey and testbed/authorized_keys; FOLDER/home, tmp and var-tmp stay over a
# boot.
set -euo pipefail
name=$1 address=$2 folder=$3

mkdir -p "$folder"/{tmp,var-tmp,home,root/.ssh}
chmod 1777 "$folder"/{tmp,var-tmp}
chmod 700 "$folder"/root{,/.ssh}
rm -rf -- "${folder:?}"/tmp/.[!.]* "${folder:?}"/tmp/* # as most systems do when they boot
cat /proc/sys/kernel/random/uuid >"$folder/boot_id"
cat >"$folder/etc/testbed/sshd_config" <<CONFIG
ListenAddress $address
HostKey /etc/testbed/hostkey
PidFile none
AuthorizedKeysFile /etc/testbed/authorized_keys
StrictModes no
UsePAM no
UseDNS no
PrintMotd no
PasswordAuthentication no
MaxStartups 200:30:400
Subsystem sftp internal-sftp
CONFIG

# shellcheck disable=SC2016 # for the shell inside
exec unshare --mount --uts --ipc --pid --fork --kill-child bash -c '
  set -euo pipefail
  name=$1 folder=$2
  mount --make-rprivate /
  mount -t proc proc /proc
  hostname "$name"
  mount --bind "$folder/boot_id" /proc/sys/kernel/random/boot_id
  mount --bind "$folder/etc" /etc # as a whole: a mount on a single file goes when somebody outside replaces that file
  mount --bind "$folder/home" /home
  mount --bind "$folder/root" /root
  mount --bind "$folder/var-tmp" /var/tmp
  for place in /dev/shm /var/log /run; do mount -t tmpfs tmpfs "$place"; done
  mkdir -m 755 /run/sshd
  mount --bind "$folder/tmp" /tmp # last: the folder itself may be below it
  cd /
  exec /usr/sbin/sshd -D -e -f /etc/testbed/sshd_config
' _ "$name" "$folder"
