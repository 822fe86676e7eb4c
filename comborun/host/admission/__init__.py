"""Which session may start now, and what this user's runs have leased."""
