"""The keys of a grid file and their values: how each is written, and what an editor is told."""
