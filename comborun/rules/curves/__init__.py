"""Curves of a training: reward, success and length over its steps, and its checkpoints. Pure but for reading."""
