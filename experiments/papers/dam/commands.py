"""All commands of this folder, in the order of the paper."""

from experiments.papers.dam.figure8 import figure8
from experiments.papers.dam.figure9 import figure9
from experiments.papers.dam.figure13 import figure13

COMMANDS = (figure8, figure9, figure13)

__all__ = ["COMMANDS"]
