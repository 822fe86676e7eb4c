"""What stands around one command: its arguments, files, GPUs, display, launcher and container."""
