"""Noise on wavelet coefficients: sums over large parts of the map add up little noise.

Privelet (Xiao, Wang and Gehrke, "Differential Privacy via Wavelet Transforms", ICDE 2010, section
IV for a line, section VI for several dimensions) draws noise for the Haar coefficients, in inverse
proportion to their weights. A weight is the number of cells that a coefficient averages over, so a
coefficient times its weight is a whole number: the sum of one half less that of the other. Noise of
one scale for all of these is Privelet. Both bases here are such sums and differences:

- ``tensor``: differences along rows of differences along columns, as Privelet has it. A unit of
  mass is in (1 + levels)^2 of them, once each, for ``levels`` halvings along either side.
- ``square``: the sum of all, and for each node of a quadtree the three differences of its
  quadrants: south less north, west less east, and one diagonal less the other. A unit is in
  1 + 3 levels of them.

Coefficients that a unit is in once each form a group of sensitivity MASS. Groups may have shares of
epsilon of their own: a matrix mechanism (Li et al., PODS 2010) whose strategy is that basis.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from client_sdk.shared import Entropy
from ldpspatial.places.quadtree import MAX_DEPTH, Quadtree
from ldpspatial.places.users import UserCells
from ldpspatial.release.central.budget_parts import geometric, in_proportion
from ldpspatial.release.central.central_release import CentralRelease, claim_of, with_noise
from ldpspatial.release.central.masses import Negatives, density_of_masses
from ldpspatial.release.central.pyramid import Pyramid
from ldpspatial.release.central.quantise import unit_sums
from ldpspatial.release.release import Released
from ldpspatial.validate import number_in, one_of, whole_number

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Basis = Literal["square", "tensor"]


class Group(NamedTuple):
    """Coefficients of which every unit of mass changes exactly one, by one."""

    level: int  # its share of epsilon is growth^level
    values: Ints


@dataclass(frozen=True)
class Wavelets(CentralRelease):
    """Noise on Haar coefficients of the sums in the nodes of one level of a quadtree.

    Sums that come back are spread evenly over their cells.

    Attributes
    ----------
    depth : int in [1, 14]
        The level; that of the cells where the map has fewer.
    basis : {"square", "tensor"}
        Three differences a node of the quadtree, or differences of differences (Privelet).
    growth : float in (0, 16]
        Epsilon of a group over that of the next coarser one; 1 is Privelet.
    negatives : {"zero", "nearest"}
        They are zero, or the map is the nearest one without any that has the same sum
        (:func:`ldpspatial.release.central.masses.density_of_masses`).

    Raises
    ------
    InputError
        A field breaks its rule.

    Examples
    --------
    >>> from ldpspatial.places.users import cells_by_user
    >>> users = cells_by_user(range(1000), [7] * 1000, (16, 16))
    >>> run = Wavelets().release(users, 1.0, np.random.default_rng(1))
    >>> run.facts["groups"], run.claim.epsilon, bool(run.density[0, 7] > 0.3)
    (13, 1.0, True)
    """

    name: ClassVar[str] = "wavelets"

    depth: int = 5
    basis: Basis = "square"
    growth: float = 1.0
    negatives: Negatives = "zero"

    def __post_init__(self) -> None:
        whole_number("depth", self.depth, 1, MAX_DEPTH)
        one_of("basis", self.basis, get_args(Basis))
        number_in("growth", self.growth, "(0, 16]")
        one_of("negatives", self.negatives, get_args(Negatives))

    def _run(self, users: UserCells, micro_epsilon: int, source: Entropy) -> Released:
        tree = Quadtree(users.shape)
        level = min(self.depth, tree.depth)
        sums = _padded(_node_sums(tree, level, users), self.basis)
        square = self.basis == "square"
        groups = square_groups(sums) if square else tensor_groups(sums)
        powers = geometric(self.growth, 1 + max(group.level for group in groups))
        budget = in_proportion(micro_epsilon, [powers[group.level] for group in groups])
        noisy = [
            _noisy(group.values, micro, source) for group, micro in zip(groups, budget, strict=True)
        ]
        rows, columns = tree.sides(level)
        found = squares_of(noisy) if square else tensor_of(noisy, sums.shape)
        heights = found[:rows, :columns] / tree.areas(level)
        places = tree.numbers(level)
        masses = tree.spread(level, places, heights.ravel()[tree.positions(level, places)])
        density = density_of_masses(masses, self.negatives)
        return Released(density, claim_of(micro_epsilon), {"groups": len(groups)})


def _node_sums(tree: Quadtree, level: int, users: UserCells) -> Ints:
    """Return the units in each node of a level, shape ``tree.sides(level)``."""
    nodes = tree.numbers(level)
    sums = np.zeros(tree.sides(level), np.int64)
    pyramid = Pyramid(tree, *unit_sums(users))
    sums.ravel()[tree.positions(level, nodes)] = pyramid.sums(level, nodes)
    return sums


def _padded(sums: Ints, basis: Basis) -> Ints:
    """Return sums with zeros up to powers of two, to one of both sides for the square basis."""
    sides = [1 << (side - 1).bit_length() for side in sums.shape]
    if basis == "square":
        sides = [max(sides)] * 2
    padded = np.zeros(sides, np.int64)
    padded[: sums.shape[0], : sums.shape[1]] = sums
    return padded


def _noisy(values: Ints, micro: int, source: Entropy) -> Array:
    """Return a group with noise; without a millionth for it, zeros: what was never looked at."""
    if not micro:
        return np.zeros(values.shape)
    noisy = with_noise(values.ravel(), micro, source)
    return noisy.reshape(values.shape).astype(np.float64)


def square_groups(sums: Ints) -> list[Group]:
    """Return the sum of all, and three differences for each node of each level, coarse to fine."""
    groups: list[Group] = []
    level = (len(sums) - 1).bit_length()
    while level:
        # South-west, south-east, north-west, north-east.
        sw, se, nw, ne = (sums[row::2, column::2] for row in (0, 1) for column in (0, 1))
        differences = (sw + se - nw - ne, sw - se + nw - ne, sw - se - nw + ne)
        groups = [*(Group(level, each) for each in differences), *groups]
        sums = sw + se + nw + ne
        level -= 1
    return [Group(0, sums), *groups]


def squares_of(groups: list[Array]) -> Array:
    """Return the sums of which :func:`square_groups` are the groups."""
    sums = groups[0]
    for first in range(1, len(groups), 3):
        north, east, diagonal = groups[first : first + 3]
        finer = np.empty((2 * len(sums), 2 * len(sums)))
        finer[0::2, 0::2] = sums + north + east + diagonal
        finer[0::2, 1::2] = sums + north - east - diagonal
        finer[1::2, 0::2] = sums - north + east - diagonal
        finer[1::2, 1::2] = sums - north - east + diagonal
        sums = finer / 4
    return sums


def tensor_groups(sums: Ints) -> list[Group]:
    """Return one group for each pair of a level of rows and one of columns, coarse to fine."""
    return [
        Group(down + across, part)
        for down, rows in enumerate(_halves(sums))
        for across, part in enumerate(part.T for part in _halves(rows.T))
    ]


def tensor_of(groups: list[Array], shape: tuple[int, ...]) -> Array:
    """Return the sums of a shape of which :func:`tensor_groups` are the groups."""
    across = shape[1].bit_length()  # levels of columns, the sum among them
    rows = [
        _joined([part.T for part in groups[first : first + across]]).T
        for first in range(0, len(groups), across)
    ]
    return _joined(rows)


def _halves(values: Ints) -> list[Ints]:
    """Return the sum along the first axis, then differences of neighbours, coarse to fine."""
    parts: list[Ints] = []
    while len(values) > 1:
        parts.insert(0, values[0::2] - values[1::2])
        values = values[0::2] + values[1::2]
    return [values, *parts]


def _joined(parts: list[Array]) -> Array:
    """Return the values of which :func:`_halves` are the parts."""
    values = parts[0]
    for part in parts[1:]:
        finer = np.empty((2 * len(values), *values.shape[1:]))
        finer[0::2] = (values + part) / 2
        finer[1::2] = (values - part) / 2
        values = finer
    return values
