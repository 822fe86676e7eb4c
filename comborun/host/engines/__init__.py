"""The engines of a run: a program with windows on this machine, or Slurm."""
