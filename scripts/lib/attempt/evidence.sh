# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# evidence.sh: what the result files of an attempt say. To be sourced.
# A record is a line that is one whole JSON object; a torn last line is none. The same line twice is one record: a
# program that writes its file again must not look as if it had done more. reporter/collect.py reads the same files.

evidence_record='^[[:space:]]*\{.*\}[[:space:]]*$'

evidence::files() { # <directory> <glob>... -> files, each once, wherever a link leads; nothing hidden
  local directory=$1 glob file inner IFS=
  local -A seen=()
  shift
  files=() broken=() # broken: links that lead nowhere
  shopt -s nullglob globstar
  for glob in "$@"; do
    for file in "$directory"/$glob; do # the pattern is meant to be one
      inner=/${file#"$directory"/}
      inner=${inner//\/.\///} # the pattern may hold a ./
      file=$directory$inner
      [[ ! ${seen[$file]-} && $inner != */.* ]] || continue
      [[ $glob == *'**'* ]] && evidence::through_link "$directory" "$file" && continue
      seen[$file]=1
      [[ -f $file && (-s $file || ${evidence_empty-}) ]] && files+=("$file")
      [[ -L $file && ! -e $file ]] && broken+=("$file")
    done
  done
  shopt -u nullglob globstar
}

evidence::through_link() { # <directory> <file> : whether a folder between them is a link, which `**` does not enter
  local folder=${2%/*}
  while [[ $folder != "$1" ]]; do
    [[ -L $folder ]] && return
    folder=${folder%/*}
  done
  return 1
}

evidence::lines() { # <file>... : the distinct records, without the CR that some programs write
  local i
  for ((i = 1; i <= $#; i += 500)); do
    grep -ahE -- "$evidence_record" "${@:i:500}" 2>/dev/null
  done | tr -d '\r' | LC_ALL=C sort -u
}

evidence::count() { # <success pattern> <file>... -> records successes; 1 when the pattern is no pattern
  local success=$1 counted rc
  shift
  records=0 successes=0
  (($#)) || return 0
  records=$(evidence::lines "$@" | wc -l)
  [[ $success ]] && ((records)) || return 0
  counted=$(evidence::lines "$@" | grep -acE -- "$success" 2>/dev/null)
  rc=$?
  ((rc < 2)) && successes=$counted
}

evidence::episodes() { # <field> <file>... -> episodes: the index in each distinct record; 1 when one can't be told for certain
  local field=$1 found=() text
  shift
  episodes=()
  (($#)) || return 0
  mapfile -t found < <(evidence::lines "$@" | evidence::field "$field")
  for text in "${found[@]}"; do
    [[ $text =~ ([0-9]{1,15})(\.0*)?[[:space:]]*\"?[[:space:]]*[,}]$ ]] || return 1
    episodes+=($((10#${BASH_REMATCH[1]})))
  done
  ((${#episodes[@]} == $(evidence::lines "$@" | wc -l)))
}

evidence::field() { # <name> : of each record on standard input, the value as it is written; none, or two, tell that it is
  # not as simple as that
  local name=$1 escaped='' i
  # shellcheck disable=SC1003 # a backslash is meant
  for ((i = 0; i < ${#name}; i++)); do # whatever it is called, it is meant literally
    case ${name:i:1} in
      '[' | ']' | '{' | '}' | '(' | ')' | '|' | '.' | '*' | '+' | '?' | '^' | '$' | '\') escaped+='\' ;;
    esac
    escaped+=${name:i:1}
  done
  grep -aoE -- "\"$escaped\" *: *(\"[^\"\\\\]*[0-9]\"|[0-9]+(\.0+)?) *[,}]" | grep -aoE -- ' *("[^"]*"|[0-9.]+) *[,}]$'
}

evidence::due() { # <field> <first> <count> <file>... -> due: how many of so many episodes have a record, each counted once; 1
  # when it can't be told for certain
  local first=$2 end=$(($2 + $3)) number episodes
  local -A seen=()
  evidence::episodes "$1" "${@:4}" || return
  for number in "${episodes[@]}"; do
    ((number < first || number >= end)) || seen[$number]=1
  done
  due=${#seen[@]}
}

evidence::line_there() { # <pattern> <log> : whether a line of the log matches; 2 when the pattern is no pattern
  [[ -r $2 ]] && grep -aqE -- "$1" < <(tr '\r\0' '\n' <"$2") 2>/dev/null
}

evidence::judge() { # <planned> <exit code, empty when unknown> <records are evidence: 0 or 1> <other evidence that is
  # named> <how much of that holds> [0 when there are no results at all, and should be] -> completeness; reads records, and
  # due: how many of them are of what was planned, where that is told
  local planned=$1 code=$2 counted=$3 others=$4 held=$5 results=${6:-1} enough=1
  completeness=none
  ((records > 0)) && completeness=partial
  if ((counted + others == 0)); then # no evidence is named, so the exit code has to do
    [[ $code == 0 ]] && ((results)) && completeness=complete
    return 0
  fi
  if ((counted)); then # nothing planned: the program decides, so that only its end or other evidence can vouch
    enough=$((planned > 0 ? ${due:-$records} >= planned : records > 0 && (others > 0 || ${code:-1} == 0)))
  fi
  ((enough && results && held == others)) && completeness=complete
  return 0
}
