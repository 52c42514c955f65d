"""Figures: heat maps, and how mass moved between two maps."""
