"""Rivals beside the public code of their authors, run from clones: nothing of it is kept here."""
