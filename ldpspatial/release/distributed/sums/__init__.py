"""Sums over clients that hide their terms."""
