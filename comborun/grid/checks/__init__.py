"""What can't work in a grid whose keys are all well written, and what looks like a mistake."""
