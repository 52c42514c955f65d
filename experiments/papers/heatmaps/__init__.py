"""The experiments of three papers on central heat maps, one file a figure or table."""
