# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# videos.sh: which videos an attempt left, and whether each can be played: `videos.tsv`, a line each with size, what is
# wrong, and path. Videos stay where they are; a report made from a copy of the run says the same. To be sourced; needs
# evidence.sh. An mp4 whose program was ended lacks its index, the `moov` box (reporter/adapters/mp4.py reads it alike).

videos::index() { # <attempt directory> <glob>... -> videos.tsv, complete or absent; unlisted: how many it has no line for
  local at=$1 files broken row size file fault rows=() evidence_empty=1
  shift
  unlisted=0
  evidence::files "$at/out" "$@"
  while IFS= read -r -d '' row; do
    size=${row%% *} file=${row#* } fault=ok
    [[ $size =~ ^[0-9]{1,18}$ ]] || continue
    [[ ${file#"$at/"} != *[[:cntrl:]]* ]] || { unlisted=$((unlisted + 1)) && continue; } # no line can hold a line break
    ((size)) || fault=empty
    [[ $fault != ok || ${file,,} != *.mp4 ]] || videos::fault "$file" "$size"
    rows+=("$size"$'\t'"$fault"$'\t'"${file#"$at/"}")
  done < <(videos::sizes)
  record::write "$at/videos.tsv" "${rows[@]}"
}

videos::sizes() { # reads files; each answer ends with a NUL, which alone no name can hold
  local i
  for ((i = 0; i < ${#files[@]}; i += 500)); do stat -L --printf '%s %n\0' -- "${files[@]:i:500}" 2>/dev/null; done
}

videos::fault() { # <file> <bytes> -> fault: walks the outermost boxes, each of which begins with its length and its kind
  local at=0 length kind first='' box i
  for ((i = 0; i < 100 && at < $2; i++)); do
    read -r -d '' -a box < <(od -A n -t u1 -j "$at" -N 16 -- "$1" 2>/dev/null)
    ((${#box[@]} >= 8)) || break
    length=$((box[0] << 24 | box[1] << 16 | box[2] << 8 | box[3]))
    printf -v kind '\\x%x' "${box[@]:4:4}"
    printf -v kind '%b' "$kind"
    if ((length == 1)); then
      ((${#box[@]} == 16 && box[8] < 128)) || break
      length=$((box[8] << 56 | box[9] << 48 | box[10] << 40 | box[11] << 32 | box[12] << 24 | box[13] << 16 | box[14] << 8 | box[15]))
    fi
    ((length == 0 || length >= 8)) || break
    first=${first:-$kind}
    if [[ $kind == moov ]]; then
      fault=ok
      ((length == 0 || at + length <= $2)) || fault='cut'
      return
    fi
    ((length)) || break
    at=$((at + length))
  done
  fault=no_mp4
  [[ $first != ftyp ]] || fault=no_moov
}
