"""Run a central release of DPComp: counts of a map in, the noisy map out.

Arguments: the clone, a file with ``counts`` (npz), the file to write, epsilon, the release, a seed.
Needs numpy; DAWA scipy and a C++ compiler too. ``old_div`` is division of true numbers and floors
whole ones, as in Python 2; the package that they take it from is not needed for more. What their
package imports beside the release is left out. Negatives are zero, and the map has the sum 1.

DAWA is tuned to queries: here to the cells of the map, each alone. In place of a release,
``first-alone`` and a number of runs count how often DAWA's partition of a line leaves the first
cell alone, from seeds that follow the given one: the file has ``lines``, one a row, and that of
each is written as ``alone``. Epsilon is that of all of DAWA, of which a quarter is the partition's.
"""

import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from numbers import Integral
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

ENGINES = {
    "uniform-grid": ("UG", "UG_engine"),
    "adaptive-grid": ("AG", "AG_engine"),
    "quadtree": ("QuadTree", "QuadTree_engine"),
    "privelet": ("privelet2D", "privelet2D_engine"),
    "dawa": ("dawa", "dawa2D_engine"),
}
PACKAGES = ("dpcomp_core", "dpcomp_core.algorithm")
PARTITION = "_Z18L1partition_approxPiiPdiddl"  # L1partition_approx(int*, int, double*, ..., long)
RATIO = 0.25  # of epsilon, for the partition: DAWA's default in two dimensions

Partition = Callable[[int, Any, float, float, int], Any]


def main() -> None:
    """Run the release once, or the partition as often as asked."""
    clone, given, found, epsilon, release, *numbers = sys.argv[1:]
    with np.load(given) as arrays:
        sent = dict(arrays)
    if release == "first-alone":
        runs, seed = map(int, numbers)
        partition = compiled_partition(clone)
        seeds = range(seed, seed + runs)
        alone = [first_alone(partition, line, float(epsilon), seeds) for line in sent["lines"]]
        np.savez(found, alone=alone)
        return
    noisy = noisy_map(clone, release, sent["counts"], float(epsilon), int(numbers[0]))
    masses = np.maximum(noisy, 0.0)
    np.savez(found, density=masses / masses.sum())


def noisy_map(clone: str, release: str, counts: Any, epsilon: float, seed: int) -> Any:
    """Return what their release makes of counts."""
    for name in PACKAGES:  # without what they run when they are imported
        package = ModuleType(name)
        package.__path__ = [str(Path(clone, *name.split(".")))]
        sys.modules[name] = package
    stand_in("past.builtins", str=str, unicode=str)
    stand_in("past.utils", old_div=old_div)
    stand_in("past", utils=sys.modules["past.utils"])
    if release == "dawa":
        cutil = SimpleNamespace(L1partition_approx=compiled_partition(clone))
        stand_in("dpcomp_core.algorithm.dawa.cutils", cutil=cutil)
    module, engine = ENGINES[release]
    theirs = getattr(import_module(f"dpcomp_core.algorithm.{module}"), engine)()
    return np.asarray(theirs.Run(each_cell(len(counts)), counts, epsilon, seed), float)


def stand_in(name: str, **content: object) -> None:
    """Let an import find a module with this content."""
    sys.modules[name] = ModuleType(name)
    vars(sys.modules[name]).update(content)


def old_div(over: Any, under: Any) -> Any:
    """Divide as Python 2 did."""
    are_whole = isinstance(over, Integral) and isinstance(under, Integral)
    return over // under if are_whole else over / under


def each_cell(side: int) -> SimpleNamespace:
    """Return the workload that asks for each cell."""
    cells = np.eye(side * side).reshape(-1, side, side)
    return SimpleNamespace(
        query_list=[SimpleNamespace(asArray=lambda _, cell=cell: cell) for cell in cells]
    )


def compiled_partition(clone: str) -> Partition:
    """Compile their C++ without SWIG, and return the partition as their Python calls it."""
    folder = Path(clone, "dpcomp_core/algorithm/dawa/cutils")
    with tempfile.TemporaryDirectory() as place:
        library = Path(place) / "cutil.so"
        compiler = ["c++", "-O2", "-shared", "-fPIC", "-w", "-o", str(library)]
        subprocess.run([*compiler, *map(str, folder.glob("*.cpp"))], check=True)
        theirs = getattr(ctypes.CDLL(str(library)), PARTITION)
    array, number = ctypes.c_void_p, ctypes.c_double
    theirs.argtypes = (array, ctypes.c_int, array, ctypes.c_int, number, number, ctypes.c_long)
    theirs.restype = None

    def partition(length: int, line: Any, epsilon: float, ratio: float, seed: int) -> Any:
        ends, values = np.zeros(length, np.intc), np.array(line, float)
        theirs(ends.ctypes.data, length, values.ctypes.data, len(values), epsilon, ratio, seed)
        return ends

    return partition


def first_alone(partition: Partition, line: Any, epsilon: float, seeds: range) -> int:
    """Return in how many partitions the first bucket ends behind the first cell."""
    ends = (partition(len(line) + 1, line, epsilon, RATIO, seed) for seed in seeds)
    return sum(bool((each == 1).any()) for each in ends)


if __name__ == "__main__":
    main()
