"""All that one user of a local release sends on either of two inputs, and what it tells of which.

For an attack that has power. A map is made of everybody's reports and shows little of one; an
observer has the reports themselves. Nobody can tell two inputs apart better than by the ratio of
the probabilities of all that was sent (Neyman and Pearson), so this is what an attack looks at.
Here are two inputs far apart for each release, draws of what a user sends on either, by the code
that the release runs, and the logarithm of that ratio, from the whole weights.

Where a user sends many reports, all of them point the same way too seldom to be counted. But each
is drawn by itself once those before are known. So the probability of one sequence of reports is a
product, and its factors are counted one by one (:class:`Part`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from math import log

import numpy as np
from numpy.typing import NDArray

from client_sdk import ResponseTable
from ldpspatial.channels.playing import draw_reports
from ldpspatial.compiled import compiled
from ldpspatial.errors import InputError
from ldpspatial.places.users import Trails
from ldpspatial.privacy.whole_draws import coins
from ldpspatial.release.local.coordinates.mdsw import Mdsw, MdswJoint
from ldpspatial.release.local.coordinates.square_wave import (
    SquareWave,
    SquareWaveTable,
    square_wave_table,
)
from ldpspatial.release.local.disk_and_sets import DiskAndSets
from ldpspatial.release.local.disks.dam import DiskRelease
from ldpspatial.release.local.geo.planar_laplace import PlanarLaplace, planar_laplace_noise
from ldpspatial.release.local.geo.sem_geo_i import SemGeoI
from ldpspatial.release.local.local_release import LocalRelease
from ldpspatial.release.local.matched import Matched
from ldpspatial.release.local.recommended import Recommended
from ldpspatial.release.local.sets.local_hashing import Olh
from ldpspatial.release.local.sets.set_reports import SetRelease, SetReports
from ldpspatial.release.local.sets.unary import bit_weights, counts_of_holders
from ldpspatial.release.local.trajectories import ldptrace
from ldpspatial.release.local.trajectories.dam_trajectory import DamTrajectory
from ldpspatial.release.local.trajectories.ldptrace import LENGTH_PART, LdpTrace, length_bins
from ldpspatial.release.local.trajectories.move_model import MoveDomain
from ldpspatial.release.local.trajectories.pivot_law import log_chances
from ldpspatial.release.local.trajectories.pivot_reports import (
    block_around,
    block_cells,
    cells_towards,
    middle,
    near_cell,
    nearness,
    randomised_value,
    reach,
    sector,
)
from ldpspatial.release.local.trajectories.pivottrace import PivotTrace, radii
from ldpspatial.release.local.trajectories.trajectory_release import share_of
from ldpspatial.release.local.trees import hdg
from ldpspatial.release.local.trees.ahead import Ahead
from ldpspatial.release.local.trees.halving_tree import assign_groups, full_depth, full_tree
from ldpspatial.release.local.trees.hio import Hio

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Rng = np.random.Generator
Draw = Callable[[int, int, Rng], Array]

ALMOST = 1e-9
POINTS = 2  # of the longer trajectory: the fewer reports, the more often all of them tell


@dataclass(frozen=True)
class Part:
    """One report, given all that were sent before it: how often it is the one that tells most.

    Attributes
    ----------
    hits : callable (which, runs, rng) -> int
        Draws the report on input 0 or 1, that often, and counts.
    log_ratio : float
        Logarithm of the ratio of the two probabilities of that report, by the law.
    """

    hits: Callable[[int, int, Rng], int]
    log_ratio: float


@dataclass(frozen=True)
class WorstPair:
    """Two inputs of one user.

    Attributes
    ----------
    log_ratios : callable (which, runs, rng) -> (runs,) array
        Draws what the user sends on input 0 or 1, that often, and returns how much more probable
        it is on input 0, as a logarithm.
    parts : sequence of Part
        The reports of one telling sequence, where there are many.
    """

    log_ratios: Draw
    parts: Sequence[Part] = ()


@singledispatch
def worst_pair(release: LocalRelease, cells: int, epsilon: float) -> WorstPair:
    """Return two inputs of a release that are as hard to hide as any, on a map of so many cells.

    Cells are opposite corners of the map, or neighbours where the loss grows with distance.
    Trajectories differ in length and in every report.

    Parameters
    ----------
    release : LocalRelease
    cells : int >= 2
        Along a side.
    epsilon : float > 0

    Raises
    ------
    InputError
        Of this release nobody has written down what a user sends.
    """
    raise InputError(f"release {release.name} has no law of what a user sends")


@worst_pair.register
def _(release: DiskRelease, cells: int, epsilon: float) -> WorstPair:
    return WorstPair(_of_table(release.table(cells, epsilon)))


@worst_pair.register
def _(release: Recommended, cells: int, epsilon: float) -> WorstPair:
    return worst_pair(release.chosen(cells, epsilon), cells, epsilon)


@worst_pair.register
def _(release: DiskAndSets, cells: int, epsilon: float) -> WorstPair:
    on_disk = _of_table(release.table(cells, epsilon))
    by_sets = worst_pair(release.others, cells, epsilon).log_ratios

    def log_ratios(which: int, runs: int, rng: Rng) -> Array:
        # A report says of which kind it is, whose chance is the same on both inputs.
        disks = int(coins(Fraction(release.share), runs, rng).sum())
        kinds = on_disk(which, disks, rng), by_sets(which, runs - disks, rng)
        return np.asarray(rng.permutation(np.concatenate(kinds)))

    return WorstPair(log_ratios)


@worst_pair.register
def _(release: DamTrajectory, cells: int, epsilon: float) -> WorstPair:
    # A stay in one corner: all slots are on visits there.
    table = release.table(cells, epsilon)
    once = _of_table(table)
    most = log(table.max_ratio())

    def log_ratios(which: int, runs: int, rng: Rng) -> Array:
        return np.asarray(sum(once(which, runs, rng) for _ in range(release.slots)))

    def hits(which: int, runs: int, rng: Rng) -> int:
        return int((once(which, runs, rng) > most - ALMOST).sum())

    return WorstPair(log_ratios, [Part(hits, most)] * release.slots)


@worst_pair.register
def _(release: Matched, cells: int, epsilon: float) -> WorstPair:
    match = release.match(epsilon)
    return worst_pair(match.inner, cells, match.epsilon)


@worst_pair.register
def _(release: SetRelease, cells: int, epsilon: float) -> WorstPair:
    pair = 0, cells**2 - 1

    def log_ratios(which: int, runs: int, rng: Rng) -> Array:
        values = np.full(runs, pair[which])
        return _of_sets(release.reports(values, cells**2, epsilon, rng), *pair)

    return WorstPair(log_ratios)


@worst_pair.register
def _(release: SquareWave, cells: int, epsilon: float) -> WorstPair:
    return WorstPair(_of_wave(square_wave_table(cells, epsilon)))


@worst_pair.register
def _(release: Mdsw, cells: int, epsilon: float) -> WorstPair:
    # Opposite corners differ as much in the one coordinate as in the other, whichever is asked.
    return WorstPair(_of_wave(square_wave_table(cells, epsilon)))


@worst_pair.register
def _(release: MdswJoint, cells: int, epsilon: float) -> WorstPair:
    one = _of_wave(square_wave_table(cells, epsilon, parts=2))
    return WorstPair(lambda *drawn: one(*drawn) + one(*drawn))


@worst_pair.register
def _(release: Hio, cells: int, epsilon: float) -> WorstPair:
    return WorstPair(_of_parts(_levels(cells), epsilon, _hashed))


@worst_pair.register
def _(release: hdg.Hdg, cells: int, epsilon: float) -> WorstPair:
    parts = hdg._axes(cells, release.usual_users, epsilon).partitions()
    return WorstPair(_of_parts(parts, epsilon, _hashed))


@worst_pair.register
def _(release: Ahead, cells: int, epsilon: float) -> WorstPair:
    # Given the rounds before, a round is OUE of the leaves: here of the tree that was split most.
    return WorstPair(_of_parts(_levels(cells), epsilon, _bits))


@worst_pair.register
def _(release: SemGeoI, cells: int, epsilon: float) -> WorstPair:
    law = release.law(cells, epsilon)
    # By the place of the nearest cell of the set, and the empty report last.
    logs = np.array([float(Fraction(weight, law.total)) for weight in law.weights])
    steps = law.steps

    def log_ratios(which: int, runs: int, rng: Rng) -> Array:
        sets = law.draw(which, runs, rng)
        empty = sets[:, 0] < 0
        near = [np.where(empty, 0, steps[cell][sets].min(axis=1)) for cell in (0, 1)]
        here, there = (np.where(empty, law.empty[c], logs[near[c]]) for c in (0, 1))
        return np.asarray(np.log(here) - np.log(there))

    return WorstPair(log_ratios)


@worst_pair.register
def _(release: PlanarLaplace, cells: int, epsilon: float) -> WorstPair:
    # Raw noised positions, which tell more than the cells that they are put into afterwards.
    pair = np.array([[0.0, 0.0], [1.0, 0.0]])[:, :, np.newaxis]

    def log_ratios(which: int, runs: int, rng: Rng) -> Array:
        noised = pair[which] + planar_laplace_noise(runs, rng) / epsilon
        here, there = (np.hypot(*(noised - at)) for at in pair)
        return np.asarray(epsilon * (there - here))

    return WorstPair(log_ratios)


@worst_pair.register
def _(release: LdpTrace, cells: int, epsilon: float) -> WorstPair:
    # The server has published L = 2, which lengths and noise of others decide.
    longest = min(release.longest(cells), POINTS)
    corner = cells**2 - 1
    pair = [_trail(0), _trail(*[corner, corner - 1][:longest])]
    ends = length_bins(release.longest(cells))
    lengths = [int(np.searchsorted(ends, len(trail.cells))) for trail in pair]
    slots = [_slots(trail, MoveDomain(cells, release.stays), longest) for trail in pair]
    spent = share_of(epsilon, release.report_part(longest))
    of_length = share_of(epsilon, LENGTH_PART)

    def log_ratios(which: int, runs: int, rng: Rng) -> Array:
        found = _bits(lengths[which], len(ends), lengths, of_length, runs, rng)
        if len(slots[0]) != len(slots[1]):  # the number of reports tells all
            return np.full(runs, np.inf if which == 0 else -np.inf)
        asked = ldptrace.drawn_slots(runs, longest, rng)
        for k, each in enumerate(zip(*slots, strict=True)):
            size = each[0][0]
            values = [value for _, value in each]
            one = _bits(values[which], size, values, spent, runs, rng)
            found += one if release.slots == "all" else np.where(asked == k, one, 0.0)
        return found

    if release.slots == "one" or len(slots[0]) != len(slots[1]):
        return WorstPair(log_ratios)
    parts = [_bit_part(lengths, len(ends), of_length)]
    for (size, one), (_, other) in zip(*slots, strict=True):
        parts.append(_bit_part((one, other), size, spent))
    return WorstPair(log_ratios, parts)


@worst_pair.register
def _(release: PivotTrace, cells: int, epsilon: float) -> WorstPair:
    # To and fro in the one corner row and in the other, so that centres, pivots, directions and
    # targets differ.
    low = np.zeros((release.pivots, 2), np.int64)
    low[1::2, 1] = cells - 1
    pair = low, np.array([cells - 1, cells - 1]) - low
    weights = release.weights(cells, epsilon)

    def log_ratios(which: int, runs: int, rng: Rng) -> Array:
        points = np.broadcast_to(pair[which], (runs, *low.shape)).copy()
        sent = release.reports(points, cells, epsilon, rng)
        public = radii(cells), cells, release.sectors, *weights
        here, there = (log_chances(points, sent, *public) for points in pair)
        return np.asarray(here - there)

    return WorstPair(log_ratios, _pivot_parts(pair, cells, release.sectors, *weights))


def _of_table(table: ResponseTable) -> Draw:
    """Return the log-ratios of reports from a disk table, from opposite corners."""
    last = table.cells - 1
    far = last + table.radius
    offsets = range(-far, far + 1)
    logs = np.log([[float(table.probability(up, east)) for east in offsets] for up in offsets])

    def log_ratios(which: int, runs: int, rng: Rng) -> Array:
        at = np.full(runs, which * last)
        rows, columns = draw_reports(table, at, at, rng)
        here, there = (logs[rows - c + far, columns - c + far] for c in (0, last))
        return np.asarray(here - there)

    return log_ratios


def _of_wave(table: SquareWaveTable) -> Draw:
    """Return the log-ratios of reports of a coordinate, from both ends."""
    last = table.cells - 1
    logs = np.log([table.base_weight, table.band_weight])

    def log_ratios(which: int, runs: int, rng: Rng) -> Array:
        reports = table.draw(np.full(runs, which * last), rng)
        near = [(np.abs(reports - at) <= table.radius).astype(int) for at in (0, last)]
        return np.asarray(logs[near[0]] - logs[near[1]])

    return log_ratios


def _of_sets(reports: SetReports, here: int, there: int) -> Array:
    """Return the log-ratios of set reports under two values."""
    who = np.repeat(np.arange(len(reports)), np.diff(reports.starts))
    held = [np.bincount(who[reports.cells == v], minlength=len(reports)) for v in (here, there)]
    return np.asarray((held[0] - held[1]) * reports.weights.loss)


def _hashed(
    value: int, size: int, pair: Sequence[int], epsilon: float, runs: int, rng: Rng
) -> Array:
    """Return the log-ratios of OLH reports on one of two values."""
    return _of_sets(Olh().reports(np.full(runs, value), size, epsilon, rng), *pair)


def _bits(value: int, size: int, pair: Sequence[int], epsilon: float, runs: int, rng: Rng) -> Array:
    """Return the log-ratios of OUE reports on one of two values, drawn as counts of one user."""
    holders = np.tile(np.arange(size) == value, runs).astype(np.int64)
    bits = counts_of_holders(holders, 1, epsilon, rng).reshape(runs, size)
    return np.asarray((bits[:, pair[0]] - bits[:, pair[1]]) * bit_weights(epsilon).loss)


def _of_parts(parts: Sequence[Ints], epsilon: float, oracle: Callable[..., Array]) -> Draw:
    """Return the log-ratios of reports on one of several partitions, from two corners."""

    def log_ratios(which: int, runs: int, rng: Rng) -> Array:
        found = np.empty(runs)
        group = assign_groups(runs, len(parts), rng)
        for k, part in enumerate(parts):
            asked = group == k
            pair = int(part[0]), int(part[-1])
            size = int(part.max()) + 1
            found[asked] = oracle(pair[which], size, pair, epsilon, int(asked.sum()), rng)
        return found

    return log_ratios


def _levels(cells: int) -> list[Ints]:
    """Return the parts of the cells on each level of the full tree."""
    tree = full_tree(cells, full_depth(cells))
    return [tree.partition(level) for level in range(1, tree.depth + 1)]


def _bit_part(pair: Sequence[int], size: int, epsilon: float) -> Part:
    """Return a report by OUE: it tells most where the one bit is 1 and the other 0."""
    loss = bit_weights(epsilon).loss if pair[0] != pair[1] else 0.0

    def hits(which: int, runs: int, rng: Rng) -> int:
        return int((_bits(pair[which], size, pair, epsilon, runs, rng) > 0).sum())

    return Part(hits, loss)


def _pivot_parts(
    pair: tuple[Ints, Ints], side: int, sectors: int, around: Ints, copies: Ints
) -> list[Part]:
    """Return the reports of PivotTrace, each the one that tells most after those before."""
    parts: list[Part] = []

    def cell(truths: Sequence[Ints], candidates: Ints, weights: Ints) -> Ints:
        each = [nearness(*truth, candidates, weights) for truth in truths]
        logs = np.log(each[0] / each[0].sum()) - np.log(each[1] / each[1].sum())
        best = int(logs.argmax())

        def hits(which: int, runs: int, rng: Rng) -> int:
            return int(_cell_hits(*truths[which], candidates, weights, best, runs, rng))

        parts.append(Part(hits, float(logs[best])))
        return np.asarray(candidates[best])

    def value(truths: Sequence[int], size: int, weights: Ints) -> int:
        loss = float(np.log(weights[1] / weights[0])) if truths[0] != truths[1] else 0.0

        def hits(which: int, runs: int, rng: Rng) -> int:
            return int(_value_hits(truths[which], size, weights, truths[0], runs, rng))

        parts.append(Part(hits, loss))
        return truths[0]

    sizes = radii(side)
    everywhere = block_cells(np.array([0, side - 1, 0, side - 1]))
    centre = cell([np.array(middle(points)) for points in pair], everywhere, around[0])
    size = value([reach(points, centre, sizes) for points in pair], len(sizes), around[1])
    cells = block_cells(block_around(centre, sizes[size], side))
    last = len(pair[0]) - 1
    for first, weights in enumerate(copies):
        noisy = np.zeros_like(pair[0])
        for j in range(first, last + 1, 2):
            noisy[j] = cell([points[j] for points in pair], cells, weights[0])
        for j in range(1 - first, last + 1, 2):
            pivots = noisy[[k for k in (j - 1, j + 1) if 0 <= k <= last]]
            heard = [
                value([sector(*points[j], *pivot, sectors) for points in pair], sectors, weights[1])
                for pivot in pivots
            ]
            towards = cells_towards(cells, pivots, np.array(heard), sectors)
            noisy[j] = cell([points[j] for points in pair], towards, weights[2])
    # A report that is the same on both inputs tells nothing, however often it is drawn.
    return [part for part in parts if part.log_ratio > 0]


@compiled
def _cell_hits(row, column, candidates, weights, wanted, runs, rng):  # type: ignore[no-untyped-def]
    hits = 0
    for _ in range(runs):
        hits += near_cell(row, column, candidates, weights, rng) == wanted
    return hits


@compiled
def _value_hits(value, size, weights, wanted, runs, rng):  # type: ignore[no-untyped-def]
    hits = 0
    for _ in range(runs):
        hits += randomised_value(value, size, weights, rng) == wanted
    return hits


def _trail(*cells: int) -> Trails:
    return Trails(np.array([0, len(cells)]), np.array(cells))


def _slots(trail: Trails, domain: MoveDomain, longest: int) -> list[tuple[int, int]]:
    """Return for each report of a trajectory how many values there are, and its own."""
    sizes = domain.side**2, domain.none + 1, domain.side**2
    found = []
    for k in range(longest + 1):
        kind, values = ldptrace.slot_values(trail, domain, k, longest)
        found += [(sizes[kind], int(value)) for value in values]
    return found
