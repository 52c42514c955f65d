"""Run HDG as its authors published it: rows and columns of people in, a map out.

Arguments: the clone, a file with ``rows`` and ``columns`` (npz), the file to write, epsilon, cells
a side (a power of two), a seed. Needs numpy. Their module of frequency oracles imports xxhash, for
one that HDG as published does not call: an empty module stands in for it.
"""

import sys
from argparse import Namespace
from importlib import import_module
from types import ModuleType

import numpy as np

ROUNDS = 100  # their default, of consistency and of the weighted update


def main() -> None:
    """Take the steps of their example for two attributes, and write the response matrix."""
    clone, given, found, epsilon, cells, seed = sys.argv[1:]
    sys.path.insert(0, clone)
    sys.modules.setdefault("xxhash", ModuleType("xxhash"))
    grids = import_module("HDG").AG_Uniform_Grid_1_2_way_optimal
    np.random.seed(int(seed))  # noqa: NPY002 - what their code draws from
    held = np.load(given)
    people = np.column_stack([held["rows"], held["columns"]])
    np.random.shuffle(people)  # noqa: NPY002
    hdg = grids(
        Namespace(
            user_num=len(people), attribute_num=2, domain_size=int(cells), epsilon=float(epsilon),
            consistency_iteration_num_max=ROUNDS, weighted_update_iteration_num_max=ROUNDS,
        )
    )  # fmt: skip
    hdg.group_attribute()
    hdg.construct_Grid_set()
    hdg.get_LDP_Grid_set_divide_user(people.tolist())
    hdg.get_consistent_Grid_set()
    hdg.get_weight_update_for_2_way_group()
    (both,) = (grid for grid in hdg.Grid_set if len(grid.attribute_set) == 2)
    matrix = both.weighted_update_matrix
    np.savez(found, density=matrix / matrix.sum())


if __name__ == "__main__":
    main()
