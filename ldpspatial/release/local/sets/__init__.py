"""Reports that are sets of cells: OUE, OLH, subset selection."""
