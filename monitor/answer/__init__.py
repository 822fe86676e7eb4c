"""The probe's answer as values."""
