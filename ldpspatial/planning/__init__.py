"""Before a collection: what epsilon, cells and devices buy."""
