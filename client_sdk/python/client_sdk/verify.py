"""What a device checks before it trusts a table, whoever made it (docs/protocol.md, section 3)."""

from fractions import Fraction
from itertools import pairwise

from client_sdk.errors import CollectionError
from client_sdk.exact import BITS, exp_below
from client_sdk.response import Octant, ResponseTable, half_widths
from client_sdk.validate import WEIGHT_LIMIT, shown


def verify_table(table: ResponseTable, epsilon: Fraction) -> None:
    """Check that a table is epsilon-LDP, whoever made it and whatever it calls itself.

    The weights lie between the base and base x e^epsilon; the disk narrows from its centre row
    outwards and is its own mirror image, so the output domain (the union of the disks) holds
    every disk; the total fits in 53 bits. Sizes and totals follow from these by arithmetic.
    """
    base = table.base_weight
    if type(base) is not int or base < 1 or base & (base - 1):
        raise CollectionError(f"base_weight must be a power of two, got {shown(base)}")
    check_shape(table.octant)
    bound = exp_below(epsilon)
    for x, row in enumerate(table.octant):
        for y, weight in enumerate(row):
            if type(weight) is not int or not base <= weight or weight << BITS > base * bound:
                raise CollectionError(
                    f"weights[{x}][{y}] must lie between base_weight and "
                    f"base_weight * e^{float(epsilon):g}, got {shown(weight)}: not epsilon-LDP"
                )
    if table.total_weight >= WEIGHT_LIMIT:
        raise CollectionError(f"total_weight must be below 2^53, got {table.total_weight}")


def check_shape(octant: Octant) -> None:
    """Check that an octant is one of a disk whose rows narrow away from row 0."""
    lengths_fit = all(1 <= len(row) <= x + 1 for x, row in enumerate(octant))
    if not octant or not lengths_fit:
        raise CollectionError("weights[x] must hold 1 to x + 1 numbers for x = 0..radius")
    widths = half_widths(octant)
    if not all(a >= b for a, b in pairwise(widths)):
        raise CollectionError("weights must be one octant of a disk that narrows from row 0 on")
