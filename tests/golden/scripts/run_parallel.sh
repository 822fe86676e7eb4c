#!/usr/bin/env bash
# Starts this run's dispatcher, or resumes it; safe to repeat.
#   bash run_parallel.sh [--parallel N] [--multiplexer tmux|screen]
exec bash "${0%run_parallel.sh}lib/start.sh" "${0%run_parallel.sh}." "$@"
