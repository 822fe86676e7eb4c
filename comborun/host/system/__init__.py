"""What the host program asks of the operating system: files, processes, events, the machine, the driver."""
