"""The exact solver of optimal transport on grids, and its certificate."""
