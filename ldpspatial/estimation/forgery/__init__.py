"""Forged reports: how far they can move a map, and a map without them."""
