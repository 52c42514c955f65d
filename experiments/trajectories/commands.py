"""All commands of this folder."""

from experiments.trajectories.figure14 import figure14

COMMANDS = (figure14,)

__all__ = ["COMMANDS"]
