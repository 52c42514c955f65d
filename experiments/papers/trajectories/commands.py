"""All commands of this folder."""

from experiments.papers.trajectories.figure14 import figure14

COMMANDS = (figure14,)

__all__ = ["COMMANDS"]
