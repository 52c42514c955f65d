"""Quadtrees: all levels, trees that divide where people are, partitions, wavelets."""
