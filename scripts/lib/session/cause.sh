# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR source-path=SCRIPTDIR/..
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# cause.sh: why an attempt failed that is not complete: what its supervisor saw first, then what the host knows, and last
# what its log says. To be sourced by session.sh, and only then: most sessions never need it.

source "${BASH_SOURCE[0]%/*}/../base/driver.sh"
source "${BASH_SOURCE[0]%/*}/../base/host.sh"
source "${BASH_SOURCE[0]%/*}/signatures.sh"

cause::refine() { # <attempt directory> -> cause signature note: reads code cause, and counts of the claim
  local line flaws
  signature=''
  signature::find "$1/log" "${signatures[@]}"
  local told=$signature
  signature=''
  if [[ $cause == @(exited|signal) ]] && ! cause::host "$1"; then
    signature=$told
    cause::name "$told"
  fi
  [[ ! ${served_by-} ]] || cause::server
  [[ $line ]] && note+="${note:+; }its log says: ${line::160}"
  note+=$flaws
}

cause::server() { # -> cause signature note: whatever its log says, without its model server it could not work
  local why
  [[ $cause == @(exited|signal|server_lost|stalled|hung) ]] || return 0
  if ! served::lost; then
    source "$session_library/servers/ready.sh"
    [[ $cause != @(stalled|hung) && ${signature:-server_lost} == server_lost ]] && served::silent || return 0
  fi
  cause=server_lost signature=server_lost
  [[ $note == *"$why"* ]] || note+="${note:+; }$why"
}

cause::name() { # <class that the log told> -> cause: where there is a cause of that name which leaves traces in a log only
  [[ $1 == @(gpu_memory|gpu_fault|host_memory|disk_full|server_lost|launch_failed) ]] && cause=$1
}

cause::host() { # <attempt directory> -> cause note; 1 when the host knows nothing that explains it
  cause::killed_for_memory || cause::disk_full "$1" || cause::gpu_fault
}

cause::killed_for_memory() { # the kernel counts whom it kills; that it was this one shows in the signal
  local killed where memory
  pressure::since "$group_kills" "$host_kills" || return
  host::memory
  note="processes killed for memory $where since it began: $killed; KiB of memory available now: ${memory##*=}"
  ((code == 137)) && cause=host_memory
}

cause::disk_full() { # <attempt directory> : less than a buffer is free where it writes
  local disk free
  host::disk "$1/out"
  free=${disk##*=}
  [[ $free ]] && ((free < 64)) || return
  note="$free KiB are free on the file system of its output" cause=disk_full
}

cause::gpu_fault() { # an Xid of a GPU of its own, where the kernel log can be read
  local line uptime stamp='^\[ *([0-9]+)\.[0-9]+\] (.*NVRM: Xid \(PCI:([0-9A-Fa-f:]+)[^)]*\): ([0-9]+).*)$' lines
  [[ $session_gpus ]] || return
  mapfile -t lines < <(timeout -k 1 2 dmesg 2>/dev/null | grep -aF 'NVRM: Xid' | tail -n 50)
  for line in "${lines[@]}"; do
    [[ $line =~ $stamp ]] || continue
    local at=${BASH_REMATCH[1]} text=${BASH_REMATCH[2]} bus=${BASH_REMATCH[3]} kind=${BASH_REMATCH[4]}
    ((at >= began_s && kind != 45)) || continue # 45 tells of the clean-up after a process that was killed
    cause::its_bus "$bus" || continue
    note=${text::160} cause=gpu_fault
    return
  done
  return 1
}

cause::its_bus() { # <bus address as the kernel writes it> : of a GPU that was granted; a GPU that is lost may not answer
  local row found=0 bus=${1,,} answer
  driver::ask '' --format=csv,noheader --query-gpu=index,pci.bus_id
  driver::hear
  for row in "${answer[@]}"; do
    [[ ,$session_gpus, == *",${row%%,*},"* ]] || continue
    found=1
    [[ ${row,,} == *"${bus#*:}"* ]] && return
  done
  ((!found))
}
