#!/usr/bin/env bash
# Starts this run, or resumes it; safe to repeat.
#   bash run_parallel.sh [--parallel N] [--multiplexer tmux|screen]
#   bash run_parallel.sh resume | pause [WHY] | drain [WHY] | slots N | retry SESSION... | stop [SESSION]...
run=${0%run_parallel.sh}.
source "$run/lib/find_python.sh"
python_of_run "$run" start "$@"
