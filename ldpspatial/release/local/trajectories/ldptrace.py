"""LDPTrace: trajectories synthesised from a Markov model that is collected under local privacy.

Du et al., LDPTrace (PVLDB 16(8), 2023), with the number of reports made constant: as published, a
user sends one report a move, so that their number tells the length of the trajectory. By default
a user reports one slot of the trajectory and no other.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import count, takewhile
from math import ceil
from typing import ClassVar, Literal

import numpy as np

from ldpspatial.places.users import Trails, UserCells
from ldpspatial.privacy.claims import PrivacyClaim
from ldpspatial.release.local.local_release import LocalRelease
from ldpspatial.release.local.sets.set_reports import cells_privacy
from ldpspatial.release.local.sets.unary import (
    OWN_BIT,
    counts_of_holders,
    other_bit,
    oue_counts,
    oue_frequencies,
    oue_variance,
    size_law,
)
from ldpspatial.release.local.trajectories.heard_law import heard_law
from ldpspatial.release.local.trajectories.move_model import MarkovModel, MoveDomain, synthesise
from ldpspatial.release.local.trajectories.trajectory_release import (
    Array,
    Ints,
    Weigh,
    adjacent_moves,
    check_share,
    density_of,
    share_of,
    trails_of,
    trajectory_claim,
    without_stays,
)
from ldpspatial.release.release import Fact, Released
from ldpspatial.validate import one_of, true_or_false, whole_number

LENGTH_PART = Fraction(1, 10)
MOVES_PART = Fraction(9, 10)
QUANTILE = 0.9
MOST_POINTS = 65_536
START, MOVE, END = 0, 1, 2  # kinds of reports
# How often the one slot of a user is of each kind: most of a map is where trajectories start, and
# of slots that are drawn alike hardly any would be the first. Measured on maps of other cities
# than those of the docs.
OFTEN = (4, 1, 1)


@dataclass(frozen=True)
class LdpTrace(LocalRelease):
    """LDPTrace with a public number of reports a user.

    Phase 1: the bin of the trajectory's length by OUE, at epsilon / 10; the server publishes L, the
    upper end of the bin that holds the 90 % quantile. Phase 2, at nine tenths of epsilon: the
    trajectory, resampled to moves between cells that touch and cut to L points, has L + 1 slots:
    first cell, L - 1 moves, last cell, where a slot beyond the end holds the symbol "none". What
    is in one of them, or in all, is reported by OUE. A move is a pair of cells, so that the counts
    of moves are a first-order Markov model. As many trajectories as users are then drawn from it,
    and the map is theirs.

    Attributes
    ----------
    slots : {"one", "all"}
        Every user reports one slot, at 9/10 epsilon, or all of them, at 9/10 epsilon / (L + 1)
        each. The one is drawn without a look at the trajectory: in four of six cases the first
        cell, in one any of the moves, in one the last cell (L = 1: in four of five, in one).
    weigh : {"user", "visit"}
        Whether trajectories or their points weigh the same in the map.
    most_points : int in [1, 65536], optional
        Public length at which trajectories are cut before anything is reported; by default the
        number of cells, as in the published code.
    stays : bool
        Whether a visit to the cell of the visit before is a move. By default it is dropped, as in
        the published code: trajectories are shorter, and reports fewer.
    """

    name: ClassVar[str] = "ldptrace"
    slots: Literal["one", "all"] = "one"
    weigh: Weigh = "user"
    most_points: int | None = None
    stays: bool = False

    def __post_init__(self) -> None:
        one_of("slots", self.slots, ("one", "all"))
        one_of("weigh", self.weigh, ("user", "visit"))
        if self.most_points is not None:
            self._keep_whole("most_points", 1, MOST_POINTS)
        object.__setattr__(self, "stays", true_or_false("stays", self.stays))

    @property
    def privacy_of_all_reports(self) -> bool:
        """False: local privacy is of the report on the first cell."""
        return False

    def claim(self, epsilon: float) -> PrivacyClaim:
        """Return eps-LDP of the trajectory: 1/10 for the length, 9/10 over the slots."""
        cut = "one point a cell" if self.most_points is None else f"{self.most_points} points"
        claim = trajectory_claim(
            epsilon,
            f"trajectories are cut at a public length: {cut}",
            "slots and their domains follow from public numbers and the noisy lengths alone",
        )
        self._check_shares(epsilon, self.most_points or 1)
        return claim

    def longest(self, cells: int) -> int:
        """Return the public length at which trajectories are cut on cells x cells cells.

        Raises
        ------
        InputError
            A number of cells that is no whole number from 1 on.
        """
        cells = whole_number("cells", cells, 1)
        return min(cells**2, MOST_POINTS) if self.most_points is None else self.most_points

    def report_part(self, longest: int) -> Fraction:
        """Return the part of epsilon of one report of phase 2, ``longest`` points kept.

        Raises
        ------
        InputError
            A number of points that is no whole number from 1 on.
        """
        longest = whole_number("longest", longest, 1)
        return MOVES_PART / (longest + 1 if self.slots == "all" else 1)

    def _check_shares(self, epsilon: float, longest: int) -> None:
        """Refuse an epsilon whose smallest share no report can be drawn at."""
        check_share(epsilon, min(LENGTH_PART, self.report_part(longest)))

    def _local_privacy(self, cells: int, epsilon: float) -> float:
        """Return how far off a guess of the first cell is from its report alone, in cells.

        The OUE report of the first cell at the public greatest length. It is a property of that
        one report: the others tell of the first cell too where people move little.
        """
        spent = share_of(epsilon, self.report_part(self.longest(cells)))
        sizes = size_law(cells**2, float(OWN_BIT), float(other_bit(spent)))
        return cells_privacy(cells, spent, sizes)

    def _release(self, users: UserCells, epsilon: float, rng: np.random.Generator) -> Released:
        """Collect lengths, then moves, and draw trajectories from what was estimated."""
        claim = self.claim(epsilon)
        trails = trails_of(self.name, users)
        side = users.shape[0]
        n = len(users)
        most = self.longest(side)
        self._check_shares(epsilon, most)
        walks = adjacent_moves(trails if self.stays else without_stays(trails), side, most)
        bins = length_bins(most)
        law = _length_law(walks.lengths, bins, share_of(epsilon, LENGTH_PART), rng)
        longest = published_length(law, bins)
        spent = share_of(epsilon, self.report_part(longest))
        slot = None if self.slots == "all" else drawn_slots(n, longest, rng)
        # Cells of walks touch already, so this only cuts them at L.
        domain = MoveDomain(side, self.stays)
        model = collect(adjacent_moves(walks, side, longest), domain, longest, slot, spent, rng)
        lengths = np.minimum(_drawn_lengths(law, bins, n, rng), longest)
        walked = synthesise(model, lengths, rng)
        facts: dict[str, Fact] = {
            "estimator": "projection or clipping, synthesis",
            "length": longest,
            "reports_per_user": 1 + (longest + 1 if self.slots == "all" else 1),
            "epsilon_per_report": spent,
        }
        return Released(
            density_of(walked, side * side, self.weigh).reshape(side, side), claim, facts
        )


def length_bins(most: int) -> Ints:
    """Return the upper ends of the public bins of lengths: 1, 2, 3, 4, 6, 8, 12, ... ``most``."""
    ends = takewhile(lambda end: end < most, (ceil(2 ** (k / 2)) for k in count()))
    return np.unique([*ends, most]).astype(np.int64)


def published_length(law: Array, bins: Ints) -> int:
    """Return the upper end of the bin that holds the 90 % quantile of the estimated lengths."""
    reached = np.cumsum(law) >= QUANTILE * law.sum()
    return int(bins[np.argmax(reached)])


def drawn_slots(n: int, longest: int, rng: np.random.Generator) -> Ints:
    """Draw the one slot of each of ``n`` users, of the slots 0 to ``longest``."""
    often = np.array(OFTEN, np.float64)
    if longest == 1:  # without a move
        often[MOVE] = 0
    kinds = rng.choice(len(OFTEN), size=n, p=often / often.sum())
    # For L = 1 the bounds hold no slot, but one is drawn for all kinds.
    moves = rng.integers(1, max(longest, 2), size=n)
    return np.asarray(np.select([kinds == START, kinds == END], [0, longest], moves))


def slot_values(walks: Trails, domain: MoveDomain, slot: int, longest: int) -> tuple[int, Ints]:
    """Return the kind of a slot and what every user holds in it, whatever their length.

    Parameters
    ----------
    walks : Trails
        Of at most ``longest`` points, successive cells touching.
    domain : MoveDomain
    slot : int in [0, longest]
        0 for the first cell, ``longest`` for the last, moves between.
    longest : int

    Returns
    -------
    kind : {START, MOVE, END}
    values : (users,) array
        A cell, or a symbol of the domain.
    """
    first = walks.starts[:-1]
    beyond = walks.starts[1:]
    if slot == 0:
        return START, walks.cells[first]
    if slot == longest:
        return END, walks.cells[beyond - 1]
    values = np.full(len(walks), domain.none)
    moving = first + slot < beyond
    at = (first + slot)[moving]
    values[moving] = domain.of(walks.cells[at - 1], walks.cells[at])
    return MOVE, values


def collect(
    walks: Trails,
    domain: MoveDomain,
    longest: int,
    slot: Ints | None,
    spent: float,
    rng: np.random.Generator,
) -> MarkovModel:
    """Collect the slots, all of every user or the given one of each, and estimate the model."""
    cells = domain.side**2
    held = [np.zeros(size, np.int64) for size in (cells, domain.none + 1, cells)]
    sent = [0, 0, 0]
    for k in range(longest + 1) if slot is None else np.unique(slot).tolist():
        kind, values = slot_values(walks, domain, k, longest)
        values = values if slot is None else values[slot == k]
        held[kind] += np.bincount(values, minlength=len(held[kind]))
        sent[kind] += len(values)
    # Reports of a kind have one epsilon: their counts are drawn together, whatever the slot.
    counts = [counts_of_holders(h, n, spent, rng) for h, n in zip(held, sent, strict=True)]
    starts, moves, ends = (_law(c, n, spent) for c, n in zip(counts, sent, strict=True))
    inside = domain.targets >= 0
    # Symbol -1, beyond the edge, would index "none", and the law that _law makes up of no report
    # would be a model: both are set to 0.
    table = np.where(inside, moves[domain.symbols], 0.0) * (sent[MOVE] > 0)
    return MarkovModel(domain, starts, table, ends)


def _length_law(lengths: Ints, bins: Ints, epsilon: float, rng: np.random.Generator) -> Array:
    """Collect the bins of the lengths and return their estimated shares."""
    counts = oue_counts(np.searchsorted(bins, lengths), len(bins), epsilon, rng)
    return _law(counts, len(lengths), epsilon)


def _drawn_lengths(law: Array, bins: Ints, n: int, rng: np.random.Generator) -> Ints:
    """Draw lengths: a bin by its share, and every length of the bin alike."""
    chosen = rng.choice(len(bins), size=n, p=law)
    below = np.concatenate([[0], bins[:-1]])
    return rng.integers(below[chosen], bins[chosen]) + 1


def _law(counts: Ints, n: int, epsilon: float) -> Array:
    """Return the law that the counts speak for; uniform where nobody reported."""
    if n == 0:
        return np.full(len(counts), 1 / len(counts))
    return heard_law(oue_frequencies(counts, n, epsilon), oue_variance(n, epsilon))
