#!/usr/bin/env bash
# after: runs once, when all sessions have ended
name=after
unit=step
first=0
count=0
results=()
source "${0%session.sh}../../lib/session.sh"
session::prepare "$@"
command=(
  python
  report.py
  "$COMBORUN_RESULTS_DIR"
)
session::run
