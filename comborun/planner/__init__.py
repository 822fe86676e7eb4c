"""From a grid to a plan, and from a session to sessions for parts of its episodes. All of it is pure."""
