# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# leases.sh: what the runs of all users have promised to their sessions on this host, as lib/admission/lease.sh writes it down. To be
# sourced by doctor.sh. Whose a folder is tells its owner, never its name.

probe::leases() {
  local own=${COMBORUN_LEASES:-/tmp/comborun-$UID} directory owner mode name folders=(/tmp/comborun-*)
  [[ " ${folders[*]} " == *" $own "* ]] || folders+=("$own")
  for directory in "${folders[@]}"; do
    [[ -d $directory && ! -L $directory ]] || continue
    read -r owner mode name < <(stat -c '%u %a %U' -- "$directory" 2>/dev/null) || continue
    if [[ $directory == "$own" ]]; then
      fact lease_own "$owner $mode $own"
    elif [[ ${directory##*-} != "$owner" ]]; then
      continue
    fi
    leases::of "$directory" "$name"
  done
  return 0
}

leases::of() { # <folder> <owner>
  local file lines line who gpus mib alone cpus cores memory tokens group since at alive
  for file in "$1"/*.lease; do
    [[ -f $file && ! -L $file ]] || continue
    mapfile -t lines 2>/dev/null <"$file"
    [[ ${lines[-1]-} == . && ${lines[1]-} =~ ^run=([A-Za-z0-9_.-]+)\ .*dispatcher=([0-9]+)\ start=([0-9]+)\ boot=([a-z0-9-]+)$ ]] ||
      continue
    name=${BASH_REMATCH[1]} alive=0
    process::alive "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}" "${BASH_REMATCH[4]}" && alive=1
    for line in "${lines[@]:2:500}"; do
      IFS=$'\t' read -r who gpus mib alone cpus cores memory tokens group since at <<<"$line"
      [[ ${at-} == /* && ! -e $at/end ]] || continue
      fact lease "$2 $name $alive $who $gpus $mib $alone $cpus $memory $tokens $since"
    done
  done
}
