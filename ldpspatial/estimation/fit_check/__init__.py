"""Whether any density can have given the counts, and how often that could be noticed."""
