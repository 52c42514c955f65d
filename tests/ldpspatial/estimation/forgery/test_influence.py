"""The influence of forged reports: no optimised forgery passes what is said of it."""

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk import response_table
from experiments.optimised_forgers import ascended, far_from, fitting
from ldpspatial import EM, Field, StampChannel, wasserstein
from ldpspatial.estimation import influence
from ldpspatial.estimation.forgery.attacks import law_with
from ldpspatial.estimation.forgery.proofs import _slack
from ldpspatial.estimation.forgery.regions import RegionAttack
from ldpspatial.estimation.limit_fits import LimitFits
from tests.support.forgeries import fitted, least_share

Array = NDArray[np.float64]

SIDE = 5


def maps(side: int) -> dict[str, Array]:
    rows, cols = np.indices((side, side)) / side
    spots = np.zeros((side, side))
    spots[1, 1] = 0.7
    spots[3, 2] = 0.3
    found = {
        "even": np.ones((side, side)),
        "hill": np.exp(-((rows - 0.3) ** 2 + (cols - 0.4) ** 2) / 0.08),
        "crowded": spots,
    }
    return {name: each / each.sum() for name, each in found.items()}


def forgeries(channel: StampChannel, density: Array, share: float) -> list[Array]:
    """Return what forgers may send, as distributions over the output cells."""
    matrix = channel.matrix()
    exact = fitting(channel, density, share)
    table = channel.table
    cells = np.array(table.output_cells())
    ends = [(-table.radius, -table.radius), (0, 0), (table.cells - 1, table.cells + 1)]
    single = [np.eye(len(cells))[((cells - end) ** 2).sum(1).argmin()] for end in ends]
    honest = [matrix[:, 0], matrix[:, -1]]
    aim = far_from(density)
    improved = [ascended(channel, density, share, aim, each)[0] for each in (exact[0], single[0])]
    return [*exact, *single, *honest, *improved]


@pytest.mark.parametrize("epsilon", [1.0, 3.5, 6.0])
@pytest.mark.parametrize("share", [0.01, 0.1])
@pytest.mark.parametrize("name", ["even", "hill", "crowded"])
def test_no_forgery_moves_the_fit_or_a_region_farther(
    epsilon: float, share: float, name: str
) -> None:
    channel = StampChannel(response_table("dam", epsilon, SIDE))
    matrix = channel.matrix()
    density = maps(SIDE)[name]
    found = influence(channel, density, share)
    region = np.linspace(0, 1, SIDE * SIDE).reshape(SIDE, SIDE)
    if share > 0.05:
        region = (region < 0.35).astype(float)
    told = found.region(region)
    farthest = 0.0
    for forged in forgeries(channel, density, share):
        law = (1 - share) * (matrix @ density.ravel()) + share * forged
        fit = fitted(matrix, law).reshape(SIDE, SIDE)
        farthest = max(farthest, wasserstein(density, fit))
        assert told.least <= (region * fit).sum() <= told.most
    assert farthest <= found.w2
    assert found.w2 <= found.proven
    # An attack is known that is nearly as bad: the bound says something.
    assert found.w2 < 1.5 * max(farthest, found.reached)


@pytest.mark.parametrize("epsilon", [1.0, 3.5, 6.0])
@pytest.mark.parametrize("estimator", [EM(), Field()], ids=["em", "field"])
def test_estimators_that_stop_or_smooth_move_no_farther(
    epsilon: float, estimator: EM | Field
) -> None:
    channel = StampChannel(response_table("dam", epsilon, SIDE))
    density = maps(SIDE)["hill"]
    honest = np.round(50_000 * channel.forward(density))
    found = influence(channel, density, 0.05)
    forged = honest.copy()
    radius = channel.table.radius
    for row, col in found.cells:
        forged[row + radius, col + radius] += round(honest.sum() * 0.05 / 0.95 / len(found.cells))
    before = estimator.fit(channel, honest).density
    moved = wasserstein(before, estimator.fit(channel, forged).density)
    assert 0.5 * found.reached < moved <= found.w2


@pytest.mark.parametrize("sign", [-1, 1])
def test_an_optimised_attack_on_a_region_comes_near_what_is_proved(sign: int) -> None:
    channel = StampChannel(response_table("dam", 3.5, SIDE))
    density = maps(SIDE)["even"]
    corner = np.zeros((SIDE, SIDE))
    corner[:3, :3] = sign
    size = int(channel.support.sum())
    attack = RegionAttack(corner, channel, density, 0.05)
    for start in (np.full(size, 1 / size), np.eye(size)[0], np.eye(size)[-1]):
        attack.ascend(start, 60)
    told = influence(channel, density, 0.05).region(abs(corner))
    share = sign * attack.best
    assert told.least <= share <= told.most
    # What a region's own short ascents find is nearly as bad.
    short = told.upper if sign > 0 else told.lower
    assert abs(short - told.share) > 0.9 * abs(share - told.share)
    proved = told.most - told.share if sign > 0 else told.share - told.least
    assert proved <= 1.5 * abs(share - told.share)


@pytest.mark.parametrize(
    ("epsilon", "cells", "share", "crowded", "corner", "sent"),
    [
        (6.0, 17, 0.05, (1, 0), (0, 12), (1, 13)),
        (6.0, 17, 0.01, (4, 9), (2, 13), (3, 14)),
        (7.0, 22, 0.01, (18, 7), (8, 9), (9, 10)),
    ],
)
def test_no_output_cell_alone_does_more_to_a_small_region(
    epsilon: float,
    cells: int,
    share: float,
    crowded: tuple[int, int],
    corner: tuple[int, int],
    sent: tuple[int, int],
) -> None:
    """Where nobody is, and the gradient of the share does not say which output cell tells most."""
    channel = StampChannel(response_table("dam", epsilon, cells))
    density = np.zeros((cells, cells))
    density[crowded] = 1
    region = np.zeros((cells, cells))
    region[corner[0] : corner[0] + 3, corner[1] : corner[1] + 3] = 1
    fit = LimitFits(channel).fit(law_with(channel, density, share, sent), density)
    told = influence(channel, density, share).region(region)
    assert told.most > told.upper > 0.999 * (region * fit).sum() > share


@pytest.mark.parametrize("seed", range(4))
def test_no_attack_on_a_peaked_map_passes_the_proof(seed: int) -> None:
    """Where plain EM takes longest to empty cells."""
    channel = StampChannel(response_table("disk", 3, 4, squared_radius=0))
    density = np.random.default_rng(seed).permutation(1 / np.arange(1, 17.0) ** 2).reshape(4, 4)
    density /= density.sum()
    half = np.zeros((4, 4))
    half[:2] = 1
    told = influence(channel, density, 0.5)
    found = told.region(half)
    assert found.least <= found.lower <= found.upper <= found.most
    law = law_with(channel, density, 0.5, *told.cells)
    slow = fitted(channel.matrix(), law[channel.support], 20_000)
    assert told.reached == pytest.approx(wasserstein(density, slow.reshape(4, 4)), abs=1e-2)


@pytest.mark.parametrize(
    ("cells", "epsilon", "squared", "share"),
    [(4, 7.0, 8, 0.02), (6, 3.5, 2, 0.01), (8, 7.0, 4, 0.02)],
)
def test_where_people_are_spread_out_mirror_images_go_farther_together(
    cells: int, epsilon: float, squared: int, share: float
) -> None:
    """What four corners reach together was up to 1.17 times w2 while one cell alone was tried."""
    channel = StampChannel(response_table("disk", epsilon, cells, squared_radius=squared))
    density = np.full((cells, cells), 1 / cells**2)
    found = influence(channel, density, share)
    limits, last = LimitFits(channel), cells - 1
    alone = farthest = 0.0
    for row, col in channel.table.output_cells():
        corners = [(row, col), (last - row, col), (row, last - col), (last - row, last - col)]
        for sent in (corners[:1], corners[:2], corners[::2], corners[::3], corners):
            fit = limits.fit(law_with(channel, density, share, *sent), density)
            moved = wasserstein(density, fit)
            alone = max(alone, moved if len(sent) == 1 else 0.0)
            farthest = max(farthest, moved)
    assert found.reached > 1.25 * alone
    assert found.reached > 0.95 * farthest
    assert farthest <= found.w2
    assert len(found.cells) in (4, 8)


def test_nothing_forged_moves_nothing() -> None:
    channel = StampChannel(response_table("dam", 3.5, SIDE))
    found = influence(channel, maps(SIDE)["hill"], 0)
    assert (found.w2, found.reached, found.proven) == (0, 0, 0)
    told = found.region(np.eye(SIDE))
    assert told.least == told.lower == told.share == told.upper == told.most


def test_more_forgers_move_the_map_farther() -> None:
    channel = StampChannel(response_table("dam", 3.5, SIDE))
    density = maps(SIDE)["even"]
    reached = [influence(channel, density, share).reached for share in (0.01, 0.05, 0.2)]
    assert reached == sorted(reached)
    assert reached[0] > 0


def test_randomized_response_on_an_even_map_is_known() -> None:
    """The fit is linear: f = f0 - s (f0 + 1 / (e^eps - 1)), and all that is missing in a corner."""
    share = 0.05
    channel = StampChannel(response_table("dam", 6.0, SIDE))
    assert channel.table.radius == 0
    density = maps(SIDE)["even"]
    found = influence(channel, density, share)
    known = density - share * (density + 1 / (float(channel.table.max_ratio()) - 1))
    known[0, 0] += 1 - known.sum()
    assert found.reached == pytest.approx(wasserstein(density, known), rel=1e-6)
    assert found.proven <= 1.1 * found.reached
    corner = np.zeros((SIDE, SIDE))
    corner[0, 0] = 1
    told = found.region(corner)
    assert told.upper == pytest.approx(known[0, 0], rel=1e-6)
    assert told.upper <= told.most <= 1.15 * told.upper


@pytest.mark.parametrize(("epsilon", "share"), [(1.0, 0.02), (3.5, 0.01), (3.5, 0.1), (6.0, 0.02)])
def test_the_proof_for_a_region_is_as_sharp_as_linear_programs(
    epsilon: float, share: float
) -> None:
    channel = StampChannel(response_table("dam", epsilon, 4))
    density = maps(4)["hill"]
    region = np.zeros((4, 4))
    region[:2] = 1
    told = influence(channel, density, share).region(region)
    matrix = channel.matrix()
    law = matrix @ density.ravel()
    least = least_share(matrix, region.ravel(), law, share, 60)
    most = -least_share(matrix, -region.ravel(), law, share, 60)
    # Programs of cuts and points of the dual are both outside of the set, and meet at its edge.
    assert told.least == pytest.approx(least, abs=0.005)
    assert told.most == pytest.approx(most, abs=0.005)


@pytest.mark.parametrize("name", ["even", "hill", "crowded"])
def test_the_worst_output_cell_is_found_where_reports_tell_most(name: str) -> None:
    channel = StampChannel(response_table("dam", 7.0, 6))
    density = maps(6)[name]
    limits = LimitFits(channel)
    farthest = 0.0
    for cell in channel.table.output_cells():
        law = law_with(channel, density, 0.2, cell)
        farthest = max(farthest, wasserstein(density, limits.fit(law, density)))
    # As squared W2 is convex and randomised response fits linearly, none does better.
    assert influence(channel, density, 0.2).reached == pytest.approx(farthest, rel=0.02)


def test_the_slack_of_a_proof_is_what_the_weights_leave() -> None:
    """A fit explains a report of a forger by a weight of the largest ratio less at the worst."""
    table = response_table("dam", 2.0, 6)
    found = _slack(StampChannel(table), 0.05)
    assert found == pytest.approx((1 - 0.05 / float(table.max_ratio())) / 0.95)
