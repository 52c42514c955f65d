"""Sparse aggregation under the earth mover's distance (Ghazi et al., AAAI 2023, section 3)."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from client_sdk.shared import Entropy
from ldpspatial.errors import InputError
from ldpspatial.places.quadtree import Quadtree
from ldpspatial.places.users import UserCells
from ldpspatial.release.central.central_release import CentralRelease, claim_of, with_noise
from ldpspatial.release.central.pyramid import Pyramid
from ldpspatial.release.central.quantise import unit_sums
from ldpspatial.release.central.reconstruct import MeasuredLevel, reconstruct
from ldpspatial.release.release import Fact, Released
from ldpspatial.validate import number_in, whole_number

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Ask = Callable[[int, Ints, int], Ints]

MOST_KEPT = 1 << 16


@dataclass(frozen=True)
class SparseEmd(CentralRelease):
    """Noisy sums in a quadtree, followed where they are largest, and the map that fits them best.

    Facts of a run: the epsilon of each measured level in millionths, coarsest first; how many
    noisy sums were taken; variables and minimum of the program. All follow from noisy sums.

    Attributes
    ----------
    keep : int in [1, 65536]
        Nodes followed on each level, w in the paper.
    decay : float in (0, 1]
        A level's epsilon is proportional to decay^|level - first|, where the first level is the
        last one with at most ``keep`` nodes (or that of the cells).

    Raises
    ------
    InputError
        A parameter breaks its rule.

    Examples
    --------
    >>> from ldpspatial.places.users import cells_by_user
    >>> people = cells_by_user(range(1000), [7] * 1000, (16, 16))
    >>> run = SparseEmd().release(people, 1.0, np.random.default_rng(1))
    >>> bool(run.density[0, 7] > 0.9), run.claim.epsilon, run.facts["micro epsilons"]
    (True, 1.0, '453083 320377 226540')
    """

    name: ClassVar[str] = "sparse-emd"

    keep: int = 20
    decay: float = 1 / sqrt(2)

    def __post_init__(self) -> None:
        whole_number("keep", self.keep, 1, MOST_KEPT)
        number_in("decay", self.decay, "(0, 1]")

    def _run(self, users: UserCells, micro_epsilon: int, source: Entropy) -> Released:
        tree = Quadtree(users.shape)
        budget = self.split(micro_epsilon, tree.depth)
        measured = self.measure(Pyramid(tree, *unit_sums(users)), budget, source)
        density, facts = fitted(tree, budget, measured)
        return Released(density, claim_of(sum(budget)), facts)

    def split(self, micro_epsilon: int, levels: int) -> tuple[int, ...]:
        """Divide epsilon among the measured levels, in whole millionths and in no float.

        Shares are rounded down, and what is left over goes to the first level.

        Parameters
        ----------
        micro_epsilon : int
            The whole, in millionths.
        levels : int
            Level of the leaves.

        Returns
        -------
        tuple of int
            Millionths for each level, from the first that is measured to the leaves.

        Raises
        ------
        InputError
            A share is below one millionth.
        """
        first = min((int(self.keep).bit_length() - 1) // 2, levels)  # floor(log2 sqrt(keep))
        parts = [Fraction(float(self.decay)) ** step for step in range(levels - first + 1)]
        shares = tuple(int(micro_epsilon * part / sum(parts)) for part in parts)
        if min(shares) == 0:
            raise InputError(
                f"epsilon must leave each of {len(shares)} levels 0.000001, "
                f"got {micro_epsilon} millionths: {shares}"
            )
        return micro_epsilon - sum(shares[1:]), *shares[1:]

    def measure(
        self, pyramid: Pyramid, budget: tuple[int, ...], source: Entropy
    ) -> list[MeasuredLevel]:
        """Measure level by level: the output depends on the users through this alone.

        Noise is drawn only for nodes that the algorithm looks at. It is independent from node to
        node, so had it been drawn for all nodes first, as in the paper, these would be the same.

        Parameters
        ----------
        pyramid : Pyramid
            Of users' units.
        budget : tuple of int
            As :meth:`split` gives it.
        source : callable
            Entropy, number of bytes -> bytes.
        """

        def ask(level: int, nodes: Ints, micro_epsilon: int) -> Ints:
            # Disjoint nodes, known from noisy sums alone: one query of sensitivity MASS a level.
            return with_noise(pyramid.sums(level, nodes), micro_epsilon, source)

        return self.follow(pyramid.tree, budget, ask)

    def follow(self, tree: Quadtree, budget: tuple[int, ...], ask: Ask) -> list[MeasuredLevel]:
        """Ask level by level, below the nodes of largest noisy sums.

        Parameters
        ----------
        tree : Quadtree
        budget : tuple of int
            As :meth:`split` gives it.
        ask : callable
            Level, nodes and millionths of epsilon -> their noisy sums in units of 1 / MASS.
        """
        first = tree.depth + 1 - len(budget)
        nodes = tree.numbers(first)
        measured: list[MeasuredLevel] = []
        for level, micro_epsilon in enumerate(budget, first):
            if measured:
                nodes = tree.numbers_below(level, nodes[measured[-1].chosen])
            noisy = ask(level, nodes, micro_epsilon)
            chosen = np.zeros(len(nodes), bool)
            chosen[np.argsort(-noisy, kind="stable")[: self.keep]] = True
            measured.append(MeasuredLevel(level, nodes, noisy, chosen))
        return measured


def fitted(
    tree: Quadtree, budget: tuple[int, ...], measured: list[MeasuredLevel]
) -> tuple[Array, dict[str, Fact]]:
    """Return the density that fits noisy sums best, uniform where none is positive, and facts."""
    found = reconstruct(tree, measured)
    total = found.masses.sum()
    density = found.masses / total if total > 0 else np.full(tree.shape, 1 / found.masses.size)
    return density, {
        "micro epsilons": " ".join(map(str, budget)),
        "noisy sums": sum(len(level.nodes) for level in measured),
        "variables": found.variables,
        "objective": found.objective,
    }
