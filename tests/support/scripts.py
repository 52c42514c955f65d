"""Python scripts that tests run in a process of their own."""

import os
import subprocess
import sys

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


TOO_LONG_S = 300  # for what ends in seconds, on a machine that is not busy


def run(script: str, *arguments: object) -> str:
    """Run a script, with warnings as errors, and return what it prints; it must succeed."""
    command = [sys.executable, "-W", "error", "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TOO_LONG_S)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
