# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034 # values are handed on through variables that the callers name
# signatures.sh: lines by which programs tell why they failed: `CLASS ERE`, in the order in which they are looked at. To
# be sourced. They advise: they give a failure that is known from its evidence a name, and make nothing fail. A line that
# matches an `ignore` is looked at by no other pattern: such lines are found in good runs too. Nor is a line after which
# the program went on: what it counts has grown since.

source "${BASH_SOURCE[0]%/*}/counter.sh"

builtin_signatures=(
  'ignore ERROR_INCOMPATIBLE_DRIVER|vkCreateInstance failed|Failed to create any GPU devices'
  'ignore Disabling key-value database because another kit process is locking it'

  'gpu_memory CUDA out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation'
  'gpu_memory torch\.(cuda\.)?OutOfMemoryError|CUBLAS_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED: Out of memory'
  'gpu_memory ERROR_OUT_OF_DEVICE_MEMORY|is less than desired GPU memory utilization'

  'gpu_fault ERROR_DEVICE_LOST|A GPU crash occurred|GPU crash is detected|GPU is lost|has fallen off the bus'
  'gpu_fault CUDA error: (an illegal memory access|unspecified launch failure|uncorrectable ECC error)|NVRM: Xid'
  'gpu_fault Skipping NVIDIA GPU due CUDA being in bad state'

  'disk_full No space left on device|Disk quota exceeded|database or disk is full'

  'host_memory ^MemoryError|std::bad_alloc|Cannot allocate memory|[Oo]ut of memory: Killed process|oom-kill'
  'host_memory Unable to allocate [0-9.]+ [KMGT]iB for an array|DefaultCPUAllocator: (can.t|not enough)'
  'host_memory DataLoader worker .* is killed by signal: Killed'

  'server_lost EngineDeadError|Still waiting for server|Connection refused|RayActorError'

  'launch_failed [Aa]ddress already in use|EADDRINUSE|has failed to listen on any local network address'
  'launch_failed Server is already active for display|Failed to acquire exclusive lock to data store'

  'crashed FIFO server failed to connect to Unity in time|^Error: signal 11|Segmentation fault|core dumped'
)

signature::lines() { # <log> <pattern>... -> lines: the last of its lines that match any, as they were written
  local log=$1 words=() pattern line_number
  shift
  for pattern in "$@"; do words+=(-e "$pattern"); done
  counter::advanced "$log"
  mapfile -t lines < <(counter::tail "$log" | tail -n +$((line_number + 1)) | LC_ALL=C grep -aE "${words[@]}" 2>/dev/null | tail -n 200)
}

signature::usable() { # <signature>... -> usable flaws: without those whose pattern is no regular expression
  local entry pattern
  usable=() flaws=''
  for entry in "$@"; do
    pattern=${entry#* }
    [[ '' =~ $pattern ]]
    (($? < 2)) && usable+=("$entry") && continue
    flaws+=" the signature ${pattern@Q} is no regular expression"
  done
}

signature::find() { # <log> [signature of the grid]... -> signature line flaws: the class of the first that matches, and
  # the last line that does; 1 when none does
  local log=$1 known usable entry candidate pattern lines kept=() LC_ALL=C
  shift
  signature='' line=''
  signature::known
  signature::usable "$@" "${known[@]}"
  signature::lines "$log" "${usable[@]#* }"
  for candidate in "${lines[@]}"; do
    signature::ignored "$candidate" || kept+=("$candidate")
  done
  ((${#kept[@]})) || return
  for entry in "${usable[@]}"; do
    pattern=${entry#* }
    for candidate in "${kept[@]}"; do
      [[ ${candidate::4096} =~ $pattern ]] && signature=${entry%% *} line=$candidate
    done
    [[ $signature ]] && return
  done
  return 1
}

signature::known() { # -> known: those of the table; what has left records was launched, and a port in use is another's
  local entry
  known=()
  for entry in "${builtin_signatures[@]}"; do
    ((${records:-0})) && [[ $entry == 'launch_failed '* ]] || known+=("$entry")
  done
}

signature::ignored() { # <line> : reads usable
  local entry pattern
  for entry in "${usable[@]}"; do
    pattern=${entry#* }
    [[ $entry == 'ignore '* && ${1::4096} =~ $pattern ]] && return
  done
  return 1
}
