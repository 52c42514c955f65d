"""Reports on the levels of a tree over the map, or on grids of several widths."""
