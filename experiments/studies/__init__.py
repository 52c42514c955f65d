"""Measurements of our own that the docs quote."""
