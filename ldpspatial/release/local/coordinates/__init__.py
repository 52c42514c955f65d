"""Reports of one coordinate at a time."""
