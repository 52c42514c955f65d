"""Measurements behind the figures in the docs: ``python -m experiments NAME``."""
