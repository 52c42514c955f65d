"""Reports on whole trajectories."""
