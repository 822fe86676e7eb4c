"""What lies in a directory: result files, what is missing of them, how busy the machine was."""
