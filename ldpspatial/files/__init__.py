"""Files in and out: positions from CSV and Parquet, results in formats that others open."""
