# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# held.sh: what keeps sessions of a run from starting, as lines of the probe's header. To be sourced by probe.sh.

probe::plan() { # -> plan: the number of the newest one
  local file number
  plan=''
  for file in plan-*.json; do
    number=${file#plan-}
    number=${number%.json}
    [[ $number =~ ^[0-9]{1,6}$ ]] && ((10#$number > ${plan:-0})) && plan=$((10#$number))
  done
  return 0
}

probe::held() { # hold, a notice that was not taken, quarantine, waiting: the free text is the last of a line
  local hold hold_why gpu class at name what until detail
  hold::look
  [[ ! $hold ]] || printf 'hold kind=%s at=%s why=%s\n' "$hold" "${record[at]-}" "$hold_why"
  if [[ -e dispatch/notify.sh && dispatch/notify.failed -nt dispatch/notify.sh ]] && record::read dispatch/notify.failed; then
    printf 'notice_code=%s notice_at=%s\n' "${record[code]-}" "${record[at]-}"
  fi
  while IFS=$'\t' read -r gpu class at; do
    [[ $gpu =~ ^[0-9]+$ ]] && printf 'quarantine gpu=%s class=%s at=%s\n' "$gpu" "$class" "$at"
  done 2>/dev/null <dispatch/quarantine
  while IFS='' read -r name; do
    IFS=$'\037' read -r name what until detail <<<"${name//$'\t'/$'\037'}" # a tab that follows a tab is an empty field
    [[ $name ]] && printf 'waiting session=%s for=%s until=%s detail=%s\n' "$name" "$what" "$until" "$detail"
  done 2>/dev/null <dispatch/waiting
  return 0
}
