"""Where people are: users on a grid, maps of cells, regions."""
