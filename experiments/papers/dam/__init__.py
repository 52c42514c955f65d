"""Figures 8, 9 and 13 of the DAM paper (Du et al., arXiv 2412.06541, section VII, appendix C)."""
