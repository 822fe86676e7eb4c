#!/usr/bin/env bash
# releases.sh RELEASE [argument of pytest]... : the tests of what runs on a host, with the bash, tmux, screen, coreutils
# and sshd of another release of Debian. Wants root and debootstrap.
#
#   sudo bash tests/testbed/releases.sh bullseye
#   sudo bash tests/testbed/releases.sh sid tests/integration/test_stop.py -k screen
#
# The release is made once, below $COMBORUN_RELEASES, and takes 1 to 2 GiB there. What is committed is what is tested. It
# runs in namespaces of its own: its processes and mounts go with it, so the folder can simply be removed afterwards.
set -euo pipefail

release=${1:?usage: releases.sh RELEASE [argument of pytest]...}
shift
checkout=$(cd -- "$(dirname -- "$0")/../.." && pwd -P)
root=${COMBORUN_RELEASES:-/var/tmp/comborun-releases}/$release
mirror=${COMBORUN_MIRROR:-http://deb.debian.org/debian}
proofs=(tests/integration/test_{dispatch,dispatch_kills,start_script,starts,stop,control,orphans,watchdog,replace}.py
  tests/integration/test_{session_script,session_ends,doctor,secrets,host_flow,sync,fetch,transport,control_commands}.py
  tests/faults/test_{killed,twice,prefixes,programs,records}.py)

inside() { # <command>...
  # shellcheck disable=SC2016 # for the shell inside
  unshare --mount --uts --ipc --pid --fork --kill-child bash -c '
    set -e
    root=$1
    shift
    mount --make-rprivate /
    mount -t proc proc "$root/proc"
    for place in /dev /sys; do mount --rbind "$place" "$root$place"; done
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    exec chroot "$root" env -i HOME=/root LANG=C.UTF-8 TERM=xterm DEBIAN_FRONTEND=noninteractive PYTHONDONTWRITEBYTECODE=1 \
      PATH=/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
  ' _ "$root" "$@"
}

packages() { # <package>...
  inside apt-get install -yq --no-install-recommends "$@"
}

make() {
  mkdir -p "$root"
  debootstrap --variant=minbase "$release" "$root" "$mirror"
  packages tmux screen openssh-server openssh-client procps iproute2 git ca-certificates python3 python3-venv
  inside python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || make_python
  if [[ -f /etc/ssl/certs/ca-certificates.crt ]]; then # those that this machine trusts, a proxy's too
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  fi
  touch "$root/.made"
}

make_python() { # the oldest that comborun knows, from the sources of a release that has it
  packages gcc make libc6-dev zlib1g-dev libssl-dev libffi-dev libbz2-dev liblzma-dev libsqlite3-dev dpkg-dev
  printf 'deb-src %s bookworm main\n' "$mirror" >"$root/etc/apt/sources.list.d/python.list"
  cp /usr/share/keyrings/debian-archive-keyring.gpg "$root/etc/apt/trusted.gpg.d/"
  inside apt-get update -q
  # shellcheck disable=SC2016 # for the shell inside
  inside bash -ec 'cd /usr/src && apt-get source -q --download-only python3.11 && tar xzf python3.11_*.orig.tar.gz && cd Python-3.11*/ && ./configure -q --disable-test-modules
    make -sj "$(nproc)" && make -s install && ln -sf /usr/local/bin/python3.11 /usr/bin/python3'
}

if [[ ! -e $root/.made ]]; then make; fi
rm -rf -- "$root/comborun"
git clone -q --no-hardlinks "$checkout" "$root/comborun"
[[ -x $root/opt/venv/bin/pip ]] || inside python3 -m venv /opt/venv
inside env PIP_CERT=/etc/ssl/certs/ca-certificates.crt pip install -q -e '/comborun[example]' \
  pytest pytest-timeout pytest-xdist hypothesis jsonschema hatchling fastapi uvicorn statsmodels scikit-posthocs

# shellcheck disable=SC2016 # for the shell inside
inside bash -c 'printf "bash %s, %s, %s, %s\n" "$BASH_VERSION" "$(tmux -V)" "$(screen -v)" "$(stat --version | head -n 1)"'
cd /
(($#)) || set -- "${proofs[@]}"
inside bash -c 'cd /comborun && python -m pytest -q "$@"' _ "$@"
