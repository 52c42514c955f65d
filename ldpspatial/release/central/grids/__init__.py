"""Counts in rectangles: one grid, or a second one inside each block of the first."""
