"""The central rivals of the recommended release, with the parameters among which hindsight chooses.

Not all of them do well: a parameter is here so that nobody can say that a better one was left out.
"""

from collections.abc import Mapping
from types import MappingProxyType

from ldpspatial.release.central import (
    CentralAdaptiveGrid,
    CentralQuadtree,
    Laplace,
    LeastCostPartition,
    PrivTree,
    SparseEmd,
    UniformGrid,
    Wavelets,
)
from ldpspatial.release.central.masses import Negatives
from ldpspatial.release.release import Release

SHARES = (1.0, 1.6)  # of a level over those of the level above
NEGATIVES: tuple[Negatives, ...] = ("zero", "nearest")
CENTRAL_RIVALS: Mapping[str, Mapping[str, Release]] = MappingProxyType(
    {
        "laplace": {"": Laplace()},
        "uniform grid": {
            "rule": UniformGrid(),
            **{f"{2**level} parts": UniformGrid(2**level) for level in range(2, 9)},
            **{
                f"{2**level} parts, nearest": UniformGrid(2**level, negatives="nearest")
                for level in range(5, 9)
            },
        },
        "adaptive grid": {
            f"c2 = {c2:g}, {parts or 'rule'}": CentralAdaptiveGrid(c2=c2, parts=parts)
            for c2 in (2.5, 5.0, 10.0)
            for parts in (None, 16)
        },
        "quadtree, least squares": {
            f"depth {depth}, growth {growth:.2f}, {negatives}": CentralQuadtree(
                depth, growth, negatives
            )
            for depth in range(4, 8)
            for growth in SHARES
            for negatives in NEGATIVES
        },
        "privtree": {f"alpha = {alpha:g}": PrivTree(alpha) for alpha in (0.25, 0.5)},
        "least cost partition": {
            f"alpha = {alpha:g}": LeastCostPartition(alpha) for alpha in (0.25, 0.5)
        },
        "wavelets": {
            **{
                f"depth {depth}, growth {growth:.2f}": Wavelets(depth, "square", growth, "nearest")
                for depth in (4, 5, 6)
                for growth in SHARES
            },
            **{f"privelet, depth {depth}": Wavelets(depth, "tensor") for depth in (4, 5, 6)},
        },
        "sparse emd": {f"w = {keep}": SparseEmd(keep) for keep in (20, 80, 160, 320, 640)},
    }
)
