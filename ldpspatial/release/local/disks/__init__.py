"""Reports that are a cell near the true one."""
