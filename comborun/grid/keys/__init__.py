"""What may stand in a grid file and in a preset, typed. What is wrong with it together is in comborun/grid/checks."""
