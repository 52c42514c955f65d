"""A disk for where people are, and sets of cells for how many are in each: one report a user.

A disk's report tells much of a neighbourhood and next to nothing of one cell in it: of the finest
waves about a hundredth of what subset selection tells. A set of cells, drawn without regard to
where they are, tells the same of every wave. So some of the people report by a disk and the others
by subset selection, and a coin that looks at nothing decides who does which. What is expected of
each cell is the posterior mean of the disk's field (:mod:`ldpspatial.estimation.field`); how far
cells differ from it is what the sets say (:mod:`ldpspatial.release.local.sets.cell_shares`).

How many report by the disk depends on sigma, the standard deviation of a cell's share if everybody
reported by sets, which follows from cells, epsilon and users. Where sigma is small, sets tell every
cell, and few people are enough for what they do not tell. Where it is large, sets could only tell a
cell that holds most of the people: all report by the disk. So they do where it is a single cell,
which tells as much of each cell as sets do.

To draw subsets of a million cells for millions of people would take hours. There the sets are those
of a cyclic design (:mod:`ldpspatial.release.local.sets.difference_sets`), which tell as much and
are counted by one transform.

And the field is drawn towards the uniform map by what its people's own sigma is. The field's prior
is made for places that are crowded somewhere; where reports tell next to nothing it makes crowds of
noise, and squared errors are least for a flatter map.

The numbers were set on six squares of Chicago and New York, the first of them on four made towns as
well (docs/recommended.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar, Literal, get_args

import numpy as np

from client_sdk import ResponseTable, response_table
from ldpspatial.channels.disk import StampChannel
from ldpspatial.channels.playing import play
from ldpspatial.estimation import Field, estimate
from ldpspatial.estimation.field.estimator import FIELD
from ldpspatial.places.users import UserCells
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.privacy.whole_draws import coins
from ldpspatial.release.local.disks.disk import Disk
from ldpspatial.release.local.disks.disk_radius import disk_squared_radius
from ldpspatial.release.local.local_release import (
    LocalRelease,
    check_rule,
    estimator_name,
    square_side,
)
from ldpspatial.release.local.sets.cell_shares import posterior_shares
from ldpspatial.release.local.sets.difference_sets import DifferenceSets
from ldpspatial.release.local.sets.subset_selection import (
    SubsetSelection,
    subset_size,
    subset_variances,
)
from ldpspatial.release.release import Fact, Released
from ldpspatial.validate import exact_epsilon, number_in, one_of

Sets = Literal["subset-selection", "difference-sets"]

BY_SIGMA = 12.0  # of it is the share of the people who report by the disk
LEAST = 1 / 16  # of the people do
FLAT = 0.09  # sigma of the disk's people at which half of the field is left
MOST_DEALT = 1 << 31  # cells in the subsets of all people: ten seconds to a minute
LONGEST = 16 * MOST_DEALT  # where other sets tell less
NEARLY = 1.15  # times the variance is nearly as much
MOST = 0.97  # of the field is left beside sets: where it has nobody, a cell may yet be crowded


@dataclass(frozen=True)
class DiskAndSets(LocalRelease):
    """Some of the people report by a plain disk, the others by a set of cells.

    What :func:`ldpspatial.recommended` returns for single cells. Each device tosses a coin for
    which of both it takes, and its one report says which. Sets are for comparison: they are
    no mechanism of ``client_sdk``, so no collection carries them (docs/recommended.md).

    Attributes
    ----------
    share : float in (0, 1]
        Chance that a device reports by the disk.
    squared_radius : int >= 0
        Square of the disk's radius in cells.
    rule : str
        How the disk's reports become a map, as in :func:`ldpspatial.estimate`; by default the
        posterior mean of a Bayesian field.
    sets : {"subset-selection", "difference-sets"}
        What the others report: any set of its size, or one of a cyclic design.
    """

    name: ClassVar[str] = "disk-and-sets"
    share: float
    squared_radius: int
    rule: str = FIELD
    sets: Sets = "subset-selection"

    def __post_init__(self) -> None:
        object.__setattr__(self, "share", number_in("share", self.share, "(0, 1]"))
        self._keep_whole("squared_radius", 0)
        check_rule(self.rule)
        one_of("sets", self.sets, get_args(Sets))

    @classmethod
    def chosen(cls, cells: int, epsilon: float, n_users: int, rule: str = FIELD) -> "DiskAndSets":
        """Return what is recommended for this grid, epsilon and number of users.

        Raises
        ------
        InputError
            An argument breaks its rule.

        Examples
        --------
        >>> DiskAndSets.chosen(64, 3.5, 100_000)
        DiskAndSets(share=0.0625, squared_radius=112, rule='field', sets='subset-selection')
        >>> DiskAndSets.chosen(64, 0.5, 1000).share
        1.0
        """
        square = disk_squared_radius(cells, epsilon, n_users)  # checks the arguments as well
        sigma = sqrt(subset_variances(cells**2, n_users, float(epsilon))[0])
        share = min(max(BY_SIGMA * sigma, LEAST), 1.0) if square > 0 else 1.0
        if share < 1:
            square = disk_squared_radius(cells, epsilon, max(round(share * n_users), 1))
        return cls(share, square, rule, sets_for(cells**2, (1 - share) * n_users, float(epsilon)))

    def table(self, cells: int, epsilon: float) -> ResponseTable:
        """Return the table of the disk."""
        return response_table(Disk.name, epsilon, cells, squared_radius=self.squared_radius)

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return eps-LDP: that of the disk and of the sets, and the coin looks at nothing."""
        claim = super().claim(epsilon)
        exact_epsilon(epsilon)
        return claim

    @property
    def others(self) -> SubsetSelection | DifferenceSets:
        """The release whose reports those send who do not report by the disk."""
        return SubsetSelection() if self.sets == SubsetSelection.name else DifferenceSets()

    def _local_privacy(self, cells: int, epsilon: float) -> float:
        """Return the mean distance of an observer's guess, in cells, over both kinds of report."""
        disk = Disk(squared_radius=self.squared_radius)._local_privacy(cells, epsilon)
        sets = self.others._local_privacy(cells, epsilon)
        return self.share * disk + (1 - self.share) * sets

    def _release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Draw one report a user, of either kind, and estimate the density."""
        claim = self.claim(epsilon)
        side = square_side(self.name, users)
        cells = users.one_cell_each(rng)
        on_disk = coins(Fraction(self.share), len(cells), rng)
        table = self.table(side, epsilon)
        facts: dict[str, Fact] = {"radius": table.radius, "on_disk": int(on_disk.sum())}
        density = np.full(users.shape, 1 / side**2)
        if on_disk.any():
            reports = play(table, *np.divmod(cells[on_disk], side), rng)
            rule = Field(point="mean", map_alone=True) if self.rule == FIELD else self.rule
            found = estimate(StampChannel(table), reports, rule)
            facts |= {"estimator": estimator_name(found), "iterations": found.iterations}
            kept = field_kept(side**2, int(on_disk.sum()), epsilon)
            kept = min(kept, MOST) if self.share < 1 else kept
            density = kept * found.density + (1 - kept) * density
        if side > 1 and not on_disk.all():
            shares = self.others.frequencies(cells[~on_disk], side**2, epsilon, rng)
            people = len(cells) - int(on_disk.sum())
            variances = self.others.variances(side**2, people, epsilon)
            density = posterior_shares(shares.reshape(users.shape), variances, density)
        return Released(density, claim, facts)


def sets_for(size: int, n: float, epsilon: float) -> Sets:
    """Return what n people report who report by sets: subsets, unless these take too long."""
    dealt = n * subset_size(size, epsilon)
    if dealt <= MOST_DEALT:
        return "subset-selection"
    ours, others = (
        each.variances(size, 1, epsilon)[0] for each in (DifferenceSets(), SubsetSelection())
    )
    nearly = ours <= NEARLY * others
    return "difference-sets" if nearly or dealt > LONGEST else "subset-selection"


def field_kept(size: int, n: int, epsilon: float) -> float:
    """Return the share of the field that n people's reports leave of it; the rest is uniform."""
    return 1 / (1 + subset_variances(size, n, epsilon)[0] / FLAT**2)
