"""What the reporter needs from a host, in a mirror on this machine."""
