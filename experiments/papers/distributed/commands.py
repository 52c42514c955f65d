"""All commands of this folder, in the order of the papers."""

from experiments.papers.distributed.figure5 import figure5
from experiments.papers.distributed.figure6 import figure6
from experiments.papers.distributed.figure7 import figure7
from experiments.papers.distributed.figure8 import figure8
from experiments.papers.distributed.figure9 import figure9
from experiments.papers.distributed.table1 import table1
from experiments.papers.distributed.table2 import table2
from experiments.papers.distributed.table3 import table3

COMMANDS = (table1, table2, table3, figure5, figure6, figure7, figure8, figure9)

__all__ = ["COMMANDS"]
