"""Follows a training: finds its checkpoints, keeps them by links, and adds their sessions to the run."""
