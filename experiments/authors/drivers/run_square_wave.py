"""Run square wave with EMS as its authors published it: values in, densities out.

Arguments: the clone, a file with values in [0, 1], ``down`` and ``across`` (npz), the file to
write, epsilon, cells a coordinate, a seed. Needs numpy and scipy.
"""

import sys
from importlib import import_module

import numpy as np


def main() -> None:
    """Estimate each coordinate on the authors' 1,024 bins and sum those of a cell."""
    clone, given, found, epsilon, cells, seed = sys.argv[1:]
    sys.path.insert(0, clone)
    sw = import_module("primitive").sw
    np.random.seed(int(seed))  # noqa: NPY002 - what their code draws from
    values = np.load(given)
    densities = {}
    for name in ("down", "across"):
        bins = sw(values[name].copy(), 0, 1, float(epsilon), smoothing=True)
        # Bin by bin; one that a border of cells cuts is parted by length.
        ends = np.linspace(0, 1, len(bins) + 1)
        mass = np.interp(
            np.linspace(0, 1, int(cells) + 1), ends, np.concatenate([[0], np.cumsum(bins)])
        )
        densities[name] = np.diff(mass) / mass[-1]
    np.savez(found, **densities)


if __name__ == "__main__":
    main()
