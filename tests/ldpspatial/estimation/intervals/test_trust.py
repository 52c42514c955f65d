"""How much public weights are trusted: right maps, shifted ones, and too few reports to tell.

Counts are expected ones, so that nothing is left to chance, but for sets.
"""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad

from client_sdk import Grid, response_table
from ldpspatial import Estimate, StampChannel
from ldpspatial.errors import InputError
from ldpspatial.estimation import estimate
from ldpspatial.estimation.intervals.area import people_in_area
from ldpspatial.estimation.intervals.trust import learned_trust
from ldpspatial.estimation.robust import Cleaned, Robust, honest_counts
from ldpspatial.places.within import Within
from ldpspatial.release.local import SubsetSelection
from ldpspatial.release.local.sets.set_reports import SetChannel

Array = NDArray[np.float64]

SIDE, FINER = 12, 8
GRID = Grid.plane(0, 0, SIDE, SIDE)


def streets(seed: int = 1) -> Array:
    """Weights of a town: a few busy places on an eighth of the finer cells."""
    rng = np.random.default_rng(seed)
    fine = rng.gamma(0.5, size=(SIDE * FINER,) * 2)
    return np.asarray(fine * (rng.random(fine.shape) < 0.125))


def in_cells(fine: Array) -> Array:
    people = fine.reshape(SIDE, FINER, SIDE, FINER).sum((1, 3))
    return np.asarray(people / people.sum())


def expected(density: Array, n: float, epsilon: float = 3.0) -> Estimate:
    """Return EM's estimate from what n people report on average."""
    channel = StampChannel(response_table("dam", epsilon, len(density)))
    counts = np.where(channel.support, np.round(n * channel.forward(density)), 0)
    return estimate(channel, counts, "em")


def test_a_right_map_is_trusted_and_a_shifted_or_foreign_one_is_not() -> None:
    found = expected(in_cells(streets()), 1e6)
    assert learned_trust(found, Within(GRID, streets())) > 0.8
    shifted = np.roll(streets(), (3 * FINER, 5 * FINER), (0, 1))
    assert learned_trust(found, Within(GRID, shifted)) < 0.1
    assert learned_trust(found, Within(GRID, streets(2))) < 0.1


def test_what_was_taken_for_forged_says_nothing_of_a_map() -> None:
    """Before, reports that a robust estimate had left out took the trust of a right map away."""
    honest = expected(in_cells(streets()), 1e5)
    counts = honest.counts.copy()
    counts[9, 0] += round(0.08 * counts.sum())  # where the map has next to nobody
    found = Robust(map_alone=True).fit(honest.channel, counts)
    assert isinstance(found.details, Cleaned)
    assert 0.05 < found.details.taken_out < 0.1
    assert honest_counts(found).sum() < 0.95 * found.n
    assert (honest_counts(honest) == honest.counts).all()
    within = Within(GRID, streets())
    known = replace(found, density=honest.density)  # so that the counts alone differ
    assert learned_trust(known, within) > 0.7
    assert learned_trust(replace(known, details=None), within) < 0.01


def test_a_map_of_the_people_in_an_area_is_refused() -> None:
    found, _ = people_in_area(expected(in_cells(streets()), 1e5), np.eye(SIDE) > -1)
    assert found.of_all == 1
    inside, _ = people_in_area(found, np.arange(SIDE)[:, None] + np.zeros(SIDE) < SIDE / 2)
    with pytest.raises(InputError, match="within must be left out for a map of the people in an a"):
        learned_trust(inside, Within(GRID, streets()))


def test_reports_that_are_sets_tell_it_too() -> None:
    """100,000 sets: over eight seeds the trust is .992 +- .003 of the right map, .05 +- .02 else.

    Either bound is more than ten standard deviations away: no false alarm in 10^6 seeds. Maps that
    are mixed up are noticed.
    """
    density = in_cells(streets())
    rng = np.random.default_rng(5)
    people = rng.choice(density.size, 100_000, p=density.ravel())
    sets = SubsetSelection().reports(people, density.size, 3.0, rng)
    found = estimate(SetChannel(sets, density.shape), np.ones(len(people)), "em")
    assert learned_trust(found, Within(GRID, streets())) > 0.9
    assert learned_trust(found, Within(GRID, streets(2))) < 0.3


def test_few_reports_leave_it_open() -> None:
    found = expected(in_cells(streets()), 2_000, epsilon=0.3)
    for public in (streets(), streets(2)):
        assert 0.4 < learned_trust(found, Within(GRID, public)) < 0.6


@pytest.mark.parametrize("share", [0.0, 0.3, 0.8, 1.0])
def test_people_of_whom_a_share_is_as_public_weights_say_have_this_trust(share: float) -> None:
    """The density is exact, so the posterior of 10^8 reports is narrow, and around the share."""
    within = Within(GRID, streets())
    rng = np.random.default_rng(2)
    blocks = rng.random((SIDE // 2, SIDE // 2)).repeat(2, 0).repeat(2, 1)
    density = blocks * (share * within.block_parts() + (1 - share) / 4)
    density /= density.sum()
    found = replace(expected(density, 1e8), density=density)
    assert learned_trust(found, within) == pytest.approx(share, abs=0.01)


def test_it_is_the_mean_of_the_posterior() -> None:
    grid = Grid.plane(0, 0, 2, 2)
    fine = np.zeros((8, 8))
    fine[1, 1], fine[2, 6], fine[6, 6] = 6, 2, 1
    within = Within(grid, fine)
    density = np.array([[0.4, 0.2], [0.1, 0.3]])
    found = expected(density, 200)
    channel, counts = found.channel, found.counts

    def likelihood(trust: float) -> float:
        law = channel.forward(trust * within.block_parts() + (1 - trust) * np.full((2, 2), 0.25))
        came = counts > 0
        return float(np.exp((counts[came] * np.log(law[came] * channel.support.sum())).sum()))

    first = quad(lambda t: t * likelihood(t), 0, 1)[0]
    mean = first / quad(likelihood, 0, 1)[0]
    assert 0.05 < mean < 0.95
    assert learned_trust(found, within) == pytest.approx(mean, abs=0.005)


@pytest.mark.parametrize("cells", [1, 5])
def test_maps_of_an_odd_side_have_a_trust(cells: int) -> None:
    fine = np.random.default_rng(3).random((cells * 4,) * 2)
    within = Within(Grid.plane(0, 0, 5, cells), fine)
    found = expected(np.full((cells, cells), 1 / cells**2), 1000)
    trust = learned_trust(found, within)
    assert 0 < trust < 1
    assert cells > 1 or trust == 0.5


def test_weights_of_another_grid_are_refused() -> None:
    found = expected(in_cells(streets()), 1000)
    other = Within(Grid.plane(0, 0, 5, 5), np.eye(20))
    with pytest.raises(InputError, match="within must be of the estimate's grid of 12 x 12 cells"):
        learned_trust(found, other)
    with pytest.raises(InputError, match="within must be a Within"):
        learned_trust(found, "streets")  # type: ignore[arg-type]
