"""What is to be expected of a plan on its host, and what was measured there. Stands on the planner."""
