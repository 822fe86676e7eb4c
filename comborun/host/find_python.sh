# shellcheck shell=bash
# find_python.sh: the only bash that the host program needs. Sourced, or sent in front of a call; plain enough for bash 3.2.
# As a program it takes a run and prints its interpreter. A candidate is asked itself what it is, so a shim leads to the
# interpreter behind it, and that one is remembered.

python='' looked=''
python_check='
import os, sys
lacks = []
for name in ("json", "ctypes", "zlib", "select", "fcntl", "hashlib"):
    try:
        __import__(name)
    except Exception:
        lacks.append(name)
number = "%d.%d.%d" % sys.version_info[:3]
if sys.version_info < (3, 8):
    print("is " + number)
elif lacks:
    print("is " + number + " and lacks " + ", ".join(lacks))
else:
    print("fits " + os.path.realpath(sys.executable))
'
python_gone='
import json, os, sys
if os.environ.get("COMBORUN_JSON_NOTES"):
    print(json.dumps({"comborun_python": sys.argv[1:]}))
else:
    print("comborun: %s, the Python of this run, is gone; it goes on with %s" % tuple(sys.argv[1:]))
'

python_fits() { # <interpreter> [1 where somebody named it] -> python; looked gets a line where it does not fit
  local said=''
  case $'\n'$looked in *$'\n'"$1 "*) return 1 ;; esac
  if [[ -f $1 && -x $1 ]]; then
    said=$(timeout -k 1 10 "$1" -I -S -c "$python_check" 2>/dev/null </dev/null)
    case $? in 0 | 124 | 137) ;; *) said=$("$1" -I -S -c "$python_check" 2>/dev/null </dev/null) ;; esac
    said=${said##*$'\n'}
    [[ $said ]] || said='is no Python 3 that runs'
  elif [[ ${2-} ]]; then
    said='is not there'
  else
    return 1
  fi
  if [[ $said == 'fits /'* ]]; then
    python=${said#fits }
    return 0
  fi
  looked+="$1 $said"$'\n'
  return 1
}

python_places() { # a line each
  type -aP python3
  printf '%s\n' /usr/bin/python3* /usr/local/bin/python3* /opt/python*/bin/python3
  printf '%s\n' ~/{mini,ana}conda3/bin/python3 ~/{miniforge3,mambaforge,micromamba}/bin/python3
  printf '%s\n' /opt/{conda,miniconda3,anaconda3,miniforge3}/bin/python3
  printf '%s\n' ~/.pyenv/versions/*/bin/python3 ~/.local/share/uv/python/*/bin/python3 ~/.local/bin/python3*
}

find_python() { # [runs' folder]... -> python; what other runs remember comes before the usual places. 1: none fits
  local place root
  for root; do
    [[ $root == [~] || $root == [~]/* ]] && root=$HOME${root:1}
    for place in "$root"/*/dispatch/python; do
      [[ -f $place ]] && IFS= read -r place <"$place" && python_fits "$place" && return
    done
  done
  while IFS= read -r place; do
    case ${place##*/} in python3 | python3.[0-9] | python3.[0-9][0-9]) python_fits "$place" && return ;; esac
  done < <(python_places)
  # last, for it may take long: what a login shell finds, such as a module that the user loads there
  place=$(timeout -k 1 20 bash -lc 'type -P python3 >&3' 3>&1 >/dev/null 2>&1 </dev/null)
  [[ $place ]] && python_fits "${place##*$'\n'}"
}

python_or_leave() { # <interpreter that was named, or nothing> [runs' folder]... -> python
  local named=$1
  shift
  [[ $named == [~]/* ]] && named=$HOME${named:1}
  if [[ $named ]]; then
    python_fits "$named" 1 && return
  else
    find_python "$@" && return
  fi
  printf '%s' "$looked" >&2
  exit 253
}

python_of() { # <run> -> python: the one that it remembers, else one that is found, which is remembered and told
  local before=''
  { IFS= read -r before <"$1/dispatch/python"; } 2>/dev/null
  python=$before
  [[ ! -x $python ]] || return 0
  python_or_leave '' "${1%/*}"
  if printf '%s\n' "$python" >"$1/dispatch/.python.$$"; then
    mv -f -- "$1/dispatch/.python.$$" "$1/dispatch/python"
  fi 2>/dev/null
  [[ ! $before ]] || "$python" -I -S -c "$python_gone" "$before" "$python" >&2
}

python_of_run() { # <run> <verb> [argument]... : becomes the host program of a run
  local run=$1 verb=$2
  shift 2
  python_of "$run"
  unset COMBORUN_JSON_NOTES
  exec "$python" -I -S "$run/lib/comborun_host" "$verb" "$run" "$@"
}

if [[ ${BASH_SOURCE[0]-} && ${BASH_SOURCE[0]-} == "$0" ]]; then
  python_of "$1"
  printf '%s\n' "$python"
fi
