"""Run LDPTrace's published code: cells of trajectories in, cells of synthesised ones out.

Arguments: the clone, a file with ``starts`` and ``cells`` (npz), the file to write, epsilon, cells
along a side, a seed. Needs numpy. The published program reads a data set and measures itself when
it is imported, so what stands above that is executed alone, in a copy, as it writes a log.
"""

import os
import random
import shutil
import sys
import tempfile
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

BELOW = "logger.info(f'Reading {args.dataset} dataset...')"


def main() -> None:
    """Collect lengths and moves with the authors' functions and synthesise."""
    clone, given, found, epsilon, side, seed = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        code = Path(folder) / "code"
        shutil.copytree(Path(clone) / "LDPTrace" / "code", code)
        os.chdir(code)
        sys.path.insert(0, str(code))
        sys.argv = ["main.py", "--epsilon", epsilon, "--grid_num", side]
        theirs = _functions(code)
        np.random.seed(int(seed))  # noqa: NPY002 - what their code draws from
        random.seed(int(seed))
        trails, length = _synthesised(theirs, np.load(given), float(epsilon), int(side))
    starts = np.cumsum([0, *(len(trail) for trail in trails)])
    cells = [x * int(side) + y for trail in trails for x, y in trail]
    np.savez(found, starts=starts, cells=np.array(cells, np.int64), length=length)


def _functions(code: Path) -> Any:
    above, _, below = (code / "main.py").read_text(encoding="utf-8").partition(BELOW)
    if not below:
        sys.exit(f"main.py has no line {BELOW!r}: another version of the code")
    (code / "above.py").write_text(above, encoding="utf-8")
    return import_module("above")


def _synthesised(
    theirs: Any, users: Any, epsilon: float, side: int
) -> tuple[list[list[tuple[int, int]]], int]:
    theirs.grid_map = theirs.GridMap(side, 0.0, 0.0, 1.0, 1.0)
    starts, cells = users["starts"], users["cells"]
    centres = [((cell // side + 0.5) / side, (cell % side + 0.5) / side) for cell in cells]
    raw = [centres[a:b] for a, b in pairwise(starts)]
    walks = theirs.convert_raw_to_grid(raw)
    lengths, longest = theirs.estimate_max_length(walks, epsilon / 10)
    servers = theirs.update_markov_prob(walks, 9 * epsilon / 10, max_len=longest)
    matrix = theirs.generate_markov_matrix(*(server.adjusted_data for server in servers))
    drawn = theirs.generate_synthetic_database(lengths.adjusted_data, matrix, len(raw))
    return [[cell.index for cell in trail] for trail in drawn], longest


if __name__ == "__main__":
    main()
