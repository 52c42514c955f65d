"""Prefix trees pixel by pixel: the obvious twin of prefix_tree in ldpspatial.

Nothing of ldpspatial is used. A tree is a set of prefixes, texts of the digits 0 to 3 (twice the
bit of the row plus the bit of the column, from the coarsest bit on), the root "" among them.
"""

import itertools
from collections import Counter

Shape = tuple[int, int]


def levels(shape: Shape) -> int:
    return next(level for level in itertools.count() if 2**level >= max(shape))


def path(row: int, column: int, depth: int) -> str:
    """All digits of a pixel."""
    rows, columns = (format(number, f"0{depth}b") if depth else "" for number in (row, column))
    return "".join(str(2 * int(r) + int(c)) for r, c in zip(rows, columns, strict=True))


def longest_prefix(tree: set[str], row: int, column: int, shape: Shape) -> str:
    digits = path(row, column, levels(shape))
    return next(digits[:k] for k in range(len(digits), -1, -1) if digits[:k] in tree)


def cover(tree: set[str], shape: Shape) -> dict[tuple[int, int], str]:
    """The node that counts each pixel."""
    pixels = itertools.product(range(shape[0]), range(shape[1]))
    return {pixel: longest_prefix(tree, *pixel, shape) for pixel in pixels}


def areas(tree: set[str], shape: Shape) -> Counter[str]:
    return Counter(cover(tree, shape).values())


def split(tree: set[str], prefix: str, shape: Shape) -> set[str]:
    """With the four children, less those that no pixel of the map begins with."""
    depth = levels(shape)
    pixels = itertools.product(range(shape[0]), range(shape[1]))
    inside = {path(*pixel, depth)[: len(prefix) + 1] for pixel in pixels}
    return tree | {prefix + digit for digit in "0123" if prefix + digit in inside}


def collapse(tree: set[str], prefix: str) -> set[str]:
    return tree - {prefix} | {""}


def density(tree: set[str], counts: dict[str, float], shape: Shape) -> dict[tuple[int, int], float]:
    """Counts clipped at 0, spread over the pixels of their nodes, divided by their sum."""
    sizes, nodes = areas(tree, shape), cover(tree, shape)
    total = sum(max(counts[node], 0.0) for node in sizes)
    if total == 0:
        return {pixel: 1 / len(nodes) for pixel in nodes}
    return {pixel: max(counts[node], 0.0) / sizes[node] / total for pixel, node in nodes.items()}


def counted(tree: set[str], people: list[tuple[int, int]], shape: Shape) -> Counter[str]:
    """How many people each node with pixels of its own counts, none included."""
    found = Counter(longest_prefix(tree, *person, shape) for person in people)
    return Counter({node: found[node] for node in areas(tree, shape)})


def grown(tree: set[str], counts: Counter[str], threshold: float, shape: Shape) -> set[str]:
    """One update of a tree: every node is looked at for itself, as it was before the update."""
    after = set(tree)
    for node, count in counts.items():
        if count > threshold and len(node) < levels(shape):
            after |= split(tree, node, shape)
    for node, count in counts.items():
        if count <= threshold / 4:
            after = collapse(after, node)
    return after


def exact_run(
    people: list[tuple[int, int]], threshold: float, rounds: int, shape: Shape
) -> list[set[str]]:
    """The trees that counts without noise grow, until an update adds no node."""
    trees = [split({""}, "", shape)]
    while len(trees) < rounds:
        after = grown(trees[-1], counted(trees[-1], people, shape), threshold, shape)
        if after <= trees[-1]:
            break
        trees.append(after)
    return trees
