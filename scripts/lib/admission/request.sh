# shellcheck shell=bash
# shellcheck disable=SC2034 # values are handed on through variables that the callers name
# request.sh: what sessions, and others that take a part of the host, ask of it. To be sourced. Who asks for the same is
# of one kind, so a look at the whole queue costs as much as there are kinds. Kind 0 asks for nothing.

declare -gA kind_of=() # session (or whoever takes a part) -> its kind
declare -gA kind_at=() # the request as text -> its kind
kinds=1                # how many there are
asked_gpus=(0)         # kind -> GPUs
asked_mib=(0)          # on each of them; 0: not said, and then it has them alone unless `per_gpu` says otherwise
asked_cpus=(0)         # cores
asked_memory=(0)       # MiB
asked_tokens=('')      # ray,vulkan: names of what only one on the host may have
asked_group=('')       # what the caps count
cap_gpu=(0)            # of its group on a GPU, at most
cap_host=(0)           # of its group on the host, at most
asked_only=('')        # 4,5: no other GPUs will do

request::read() { # <who> <GPUs> [MIB CORES MIB TOKENS GROUP PER_GPU PER_HOST ONLY SERVERS]: columns of queue.tsv
  local who=$1 key text=("${6-}" "${7-}" "${10-}" "${11-}") number=("${2-}" "${3-}" "${4-}" "${5-}" "${8-}" "${9-}") i
  for i in "${!number[@]}"; do
    [[ ${number[i]} =~ ^[0-9]{1,9}$ ]] && number[i]=$((10#${number[i]})) || number[i]=0
  done
  for i in "${!text[@]}"; do [[ ${text[i]} =~ ^[A-Za-z0-9_][A-Za-z0-9_,-]*$ ]] || text[i]=''; done
  [[ ${text[2]} =~ ^[0-9]{1,4}(,[0-9]{1,4})*$ ]] || text[2]=''
  ((number[0])) || number[1]=0 text[2]='' text[3]='' # without a GPU there is no memory of it
  [[ ${text[1]} ]] || number[4]=0 number[5]=0
  key="${number[*]} ${text[0]:--} ${text[1]:--} ${text[2]:--} ${text[3]:--}" # not every GPU has its servers
  [[ $key != '0 0 0 0 0 0 - '* ]] || key=''                                  # a group without a cap is none
  kind_of[$who]=0
  [[ $key ]] || return 0
  [[ ${kind_at[$key]-} ]] || request::add
  kind_of[$who]=${kind_at[$key]}
}

request::add() { # a kind that is new: `key`, `number` and `text` say what it is
  kind_at[$key]=$kinds
  asked_gpus[kinds]=${number[0]} asked_mib[kinds]=${number[1]}
  asked_cpus[kinds]=${number[2]} asked_memory[kinds]=${number[3]}
  asked_tokens[kinds]=${text[0]} asked_group[kinds]=${text[1]} asked_only[kinds]=${text[2]}
  cap_gpu[kinds]=${number[4]} cap_host[kinds]=${number[5]}
  kinds=$((kinds + 1))
}
