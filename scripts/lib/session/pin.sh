# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# pin.sh: which GPUs a session's command sees, and by which numbers it knows them. To be sourced by session.sh. The grant
# names GPUs by nvidia-smi's indexes and, where they are known, by UUID; the script says how the command finds them:
#
#   pin          CUDA_VISIBLE_DEVICES      {gpu} {gpus}
#   cvd          the granted ones          indexes of the host
#   device-arg   unset                     indexes of the host: the command is told by an argument
#   both         the granted ones          0 1 ...: their places among those that it sees
#   none         as it was                 indexes of the host: the program finds its GPUs in its own way
#
# CUDA counts as nvidia-smi does only in the order of the bus, so that order goes with every index of the host.

session_gpus='' # indexes of the host, whatever the command is told

pin::grant() { # <gpus> <uuids> : as the grant has them
  local count=0 i numbers=''
  session_gpus='' pin_visible=''
  [[ $1 =~ ^[0-9]{1,4}(,[0-9]{1,4})*$ ]] && session_gpus=$1
  if [[ $session_gpus ]]; then
    local commas=${session_gpus//[^,]/}
    count=$((${#commas} + 1)) pin_visible=$session_gpus
    pin::told "$2" "$count" && pin_visible=$2
  fi
  numbers=$session_gpus
  if [[ ${pin-} == both ]]; then
    numbers=''
    for ((i = 0; i < count; i++)); do numbers+=${numbers:+,}$i; done
  fi
  export COMBORUN_GPUS=$numbers COMBORUN_GPU=${numbers%%,*} COMBORUN_GPU_COUNT=$count
}

pin::told() { # <uuids> <how many> : whether these are as many UUIDs; one that is missing would shift the others
  local commas=${1//[^,]/}
  [[ $1 =~ ^(GPU|MIG)-[A-Za-z0-9/-]{8,80}(,(GPU|MIG)-[A-Za-z0-9/-]{8,80})*$ ]] && ((${#commas} + 1 == $2))
}

pin::export() { # in the command's process
  [[ $session_gpus ]] || return 0
  case ${pin:-cvd} in
    cvd | both) export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=$pin_visible ;;
    device-arg)
      unset CUDA_VISIBLE_DEVICES # of whoever started the run: it would give the indexes another meaning
      export CUDA_DEVICE_ORDER=PCI_BUS_ID
      ;;
  esac
}
