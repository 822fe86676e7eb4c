# shellcheck shell=bash
# shellcheck disable=SC2154 # the generated script holds the data
# hook.sh: run the grid's `notify` command, which reads one notice as JSON on its standard input. Sourced by the
# generated dispatch/notify.sh, which holds the data: variables, workdir, command. The caller bounds its time.

hook_run=$(cd -- "${BASH_SOURCE[1]%/*}/.." && pwd) || exit 66
read -r COMBORUN_RUN 2>/dev/null <"$hook_run/id" || exit 66
export COMBORUN_RUN COMBORUN_RUN_DIR=$hook_run COMBORUN_RESULTS_DIR=$hook_run/results

hook::run() {
  unset COMBORUN_SESSION TMUX TMUX_PANE STY
  [[ ! ${variables+set} ]] || export -- "${variables[@]}"
  if [[ ${workdir-} ]]; then
    cd -- "$workdir" || exit 78
  fi
  exec -- "${command[@]}"
}
