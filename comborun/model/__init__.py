"""What a plan is made of. Imports rules only."""
