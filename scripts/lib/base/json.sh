# shellcheck shell=bash
# shellcheck disable=SC2034 # values are handed on through variables that the callers name
# json.sh: text as JSON. To be sourced. What comes from a program's log is anything but text: bytes that are no UTF-8 and
# control characters are left out.

json_utf8=$'^([\x01-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf][\x80-\xbf]'
json_utf8+=$'|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2})+'

json::text() { # <text> -> json: a string, with its quotes
  local LC_ALL=C valid
  json::valid "$1"
  valid=${valid//\\/\\\\}
  valid=${valid//\"/\\\"}
  valid=${valid//$'\n'/\\n}
  valid=${valid//$'\t'/\\t}
  json=\"${valid//[[:cntrl:]]/}\"
}

json::valid() { # <text> -> valid: without the bytes that are no UTF-8; wants LC_ALL=C
  local rest=$1
  valid=''
  while [[ $rest ]]; do
    if [[ $rest =~ $json_utf8 ]]; then
      valid+=${BASH_REMATCH[0]} rest=${rest:${#BASH_REMATCH[0]}}
    else
      rest=${rest:1}
    fi
  done
}

json::list() { # [text]... -> json
  local word words=''
  for word in "$@"; do
    json::text "$word"
    words+=${words:+, }$json
  done
  json="[$words]"
}
