"""What the three papers and their systems measured, measured again."""
