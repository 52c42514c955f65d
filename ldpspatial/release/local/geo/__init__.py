"""Mechanisms under geo-indistinguishability."""
