"""The command line: one verb, one file; parse, call, print."""

from ldpspatial.cli.main import main

__all__ = ["main"]
