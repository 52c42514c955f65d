"""Reports that are sets of cells, or one of all cells."""
