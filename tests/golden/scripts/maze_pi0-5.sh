#!/usr/bin/env bash
# maze_pi0-5: policy 'pi0.5 '"'"'new'"'"'' in environment maze, steps as the program decides
name=maze_pi0-5
unit=step
first=0
count=0
results=()
success='"success" *: *(true|1(\.0*)?|" *[Tt][Rr][Uu][Ee] *") *[,}]'
source "${0%session.sh}../../lib/session.sh"
session::prepare "$@"
command=(
  train
  'pi0.5 '"'"'new'"'"''
  --seed 3
)
session::run
