"""Shares of the noise, drawn by clients."""
