"""The trajectories of the DAM paper (Du et al., arXiv 2412.06541, appendix D), measured again."""
