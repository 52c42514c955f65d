"""Histograms that grow where people are."""
