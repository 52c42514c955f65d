"""What OUE, OLH, subset selection and k-RR share: sets, their channel, and local privacy."""

from collections.abc import Callable
from fractions import Fraction
from itertools import chain
from math import exp

import numpy as np
import pytest
from numpy.typing import DTypeLike, NDArray

from client_sdk import Grid, response_table
from ldpspatial import StampChannel, estimate, wasserstein
from ldpspatial.channels.dense import MatrixChannel
from ldpspatial.datasets import synthetic_maps
from ldpspatial.errors import InputError
from ldpspatial.estimation import cell_intervals, goodness_of_fit
from ldpspatial.places.users import cells_by_user, user_cells
from ldpspatial.privacy.local_privacy import cell_distances, local_privacy
from ldpspatial.privacy.whole_draws import two_weights
from ldpspatial.release.local.disks.randomized_response import KRr
from ldpspatial.release.local.local_release import LocalRelease
from ldpspatial.release.local.sets.difference_sets import DifferenceSets
from ldpspatial.release.local.sets.local_hashing import Olh
from ldpspatial.release.local.sets.set_reports import (
    MOST_ENTRIES,
    SetChannel,
    SetReports,
    cells_privacy,
    on_simplex,
)
from ldpspatial.release.local.sets.subset_selection import SubsetSelection
from ldpspatial.release.local.sets.unary import Oue
from tests.support import naive_local_sets as naive

Array = NDArray[np.float64]
LAWS: dict[str, Callable[[int, Fraction], naive.Law]] = {
    "k-rr": naive.krr_law,
    "oue": naive.oue_law,
    "subset-selection 1": lambda size, e: naive.subset_law(size, 1, e),
    "subset-selection 2": lambda size, e: naive.subset_law(size, 2, e),
    "olh 2": lambda size, e: naive.olh_law(size, 2, e),
    "olh 3": lambda size, e: naive.olh_law(size, 3, e),
}
BOTH = [
    kind(estimator=how)
    for kind in (KRr, Oue, Olh, SubsetSelection, DifferenceSets)
    for how in ("em", "projection")
]
every_law = pytest.mark.parametrize("name", list(LAWS))
# With 3 hash values, 9 cells have 19,683 functions: 4 cells will do.
every_law_and_side = pytest.mark.parametrize(
    ("name", "side"),
    [(name, side) for name in LAWS for side in (2, 3) if (name, side) != ("olh 3", 3)],
)
every_release = pytest.mark.parametrize(
    "release", BOTH, ids=lambda release: f"{release.name} {release.estimator}"
)


def flat(sets: list[list[int]], kind: DTypeLike) -> NDArray[np.unsignedinteger]:
    return np.fromiter(chain.from_iterable(sets), kind)


def drawn(sets: list[list[int]], size: int, epsilon: float, lift: float = 0.3) -> SetReports:
    starts = np.cumsum([0, *map(len, sets)])
    return SetReports(starts, flat(sets, np.uint16), size, two_weights(epsilon), lift)


@every_law_and_side
def test_a_report_is_e_to_the_epsilon_times_as_probable_under_a_value_in_it(
    name: str, side: int
) -> None:
    e = Fraction(22, 7)
    law = LAWS[name](side**2, e)
    columns = list(zip(*law.values(), strict=True))
    assert [sum(column) for column in columns] == [1] * len(columns)
    for report, row in law.items():
        inside = {p for x, p in enumerate(row) if x in report}
        outside = {p for x, p in enumerate(row) if x not in report}
        assert len(inside) <= 1
        assert len(outside) <= 1
        if inside and outside:
            assert inside.pop() == e * outside.pop()


@pytest.mark.parametrize("size", [4, 300, 70_000])
def test_the_channel_is_its_definition_in_loops(size: int) -> None:
    rng = np.random.default_rng(size)
    lengths = [0, 1, 2, 3, 4, 7, 0]
    sets = [rng.choice(size, min(k, size), replace=False).tolist() for k in lengths]
    kind = np.min_scalar_type(size - 1)
    starts = np.cumsum([0, *map(len, sets)])
    reports = SetReports(starts, flat(sets, kind), size, two_weights(1.3), 0.3)
    channel = SetChannel(reports, (1, size))
    density, ratio = rng.dirichlet(np.ones(size)), rng.random(len(sets))
    rows = np.ones((len(sets), size))
    for row, chosen in zip(rows, sets, strict=True):
        row[chosen] = exp(1.3)
    np.testing.assert_allclose(channel.forward(density[None]), rows @ density, rtol=1e-12)
    np.testing.assert_allclose(channel.adjoint(ratio)[0], ratio @ rows, rtol=1e-12)
    assert channel.support.tolist() == [True] * len(sets)


@every_law
@pytest.mark.parametrize("weights", [[1, 0, 0, 0], [0.2, 0.9, 0, 0.5], [1, 1, 1, 1]])
def test_the_score_of_a_report_is_the_weight_of_its_user_on_average(
    name: str, weights: list[float]
) -> None:
    law = LAWS[name](4, Fraction(7, 2))
    dense = naive.matrix(law)
    holds = np.array([[x in report for x in range(4)] for report in law])
    held = holds.T @ dense  # probability that a set holds one value under another
    lift = held[0, 0] - held[0, 1]
    np.testing.assert_allclose(held, held[0, 1] + lift * np.eye(4), rtol=1e-12)
    channel = SetChannel(drawn([sorted(report) for report in law], 4, 1.2, lift), (2, 2))
    scores = channel.scores(np.reshape(weights, (2, 2)))
    np.testing.assert_allclose(scores @ dense, weights, atol=1e-12)
    assert channel.score_step == 1 / lift


@every_law
def test_em_on_the_reports_is_em_on_the_channel_of_all_reports(name: str) -> None:
    epsilon = 1.5
    law = LAWS[name](4, Fraction(exp(epsilon)))
    dense = naive.matrix(law)
    rng = np.random.default_rng(1)
    counts = rng.multinomial(500, dense @ [0.5, 0.3, 0.2, 0.0])
    sets = [sorted(report) for report, c in zip(law, counts, strict=True) for _ in range(c)]
    rng.shuffle(sets)  # type: ignore[arg-type]
    one_by_one = estimate(SetChannel(drawn(sets, 4, epsilon), (2, 2)), np.ones(500), "em")
    together = estimate(MatrixChannel(dense, (2, 2), epsilon), counts, "em")
    assert one_by_one.iterations == together.iterations > 1
    np.testing.assert_allclose(one_by_one.density, together.density, atol=1e-12)
    growth = [found.log_likelihood - found.trace[0] for found in (one_by_one, together)]
    assert growth[0] == pytest.approx(growth[1])  # the constant is gone
    assert np.abs(one_by_one.density.ravel() - [0.5, 0.3, 0.2, 0.0]).max() < 0.2


@every_law_and_side
@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 3.0, 20.0])
def test_local_privacy_is_the_sum_over_all_reports(name: str, side: int, epsilon: float) -> None:
    law = LAWS[name](side**2, Fraction(exp(epsilon)))
    sizes = np.zeros(side**2 + 1)
    for report, row in law.items():
        sizes[len(report)] += float(sum(row)) / side**2
    distances = cell_distances((side, side))
    expected = naive.privacy(law, distances)
    assert naive.exchangeable_privacy(distances, epsilon, sizes) == pytest.approx(expected)
    assert cells_privacy(side, epsilon, sizes) == pytest.approx(expected, rel=1e-9)
    # Groups: as nodes of a tree, whose own cells are apart too.
    groups = distances + np.diag(np.linspace(0.3, 0.7, side**2))
    expected = naive.privacy(law, groups)
    assert naive.exchangeable_privacy(groups, epsilon, sizes) == pytest.approx(expected)


@pytest.mark.parametrize("side", [1, 2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.1, 1.4, 7.0])
def test_releases_give_the_local_privacy_of_their_laws(side: int, epsilon: float) -> None:
    e, size, distances = Fraction(exp(epsilon)), side**2, cell_distances((side, side))
    table = response_table("dam", epsilon, side, 0)
    krr = KRr().local_privacy(side, epsilon)
    assert krr == pytest.approx(local_privacy(StampChannel(table)), rel=1e-9, abs=1e-15)
    if side > 3:
        return
    oue = naive.privacy(naive.oue_law(size, e), distances)
    assert Oue().local_privacy(side, epsilon) == pytest.approx(oue, rel=1e-9, abs=1e-15)
    k = int(SubsetSelection().design(size, epsilon)["subset_size"])
    subset = naive.privacy(naive.subset_law(size, k, e), distances)
    assert SubsetSelection().local_privacy(side, epsilon) == pytest.approx(subset, abs=1e-12)
    if epsilon == 0.1:  # g = 2
        olh = naive.privacy(naive.olh_law(size, 2, e), distances)
        assert Olh().local_privacy(side, epsilon) == pytest.approx(olh, abs=1e-12)


@every_release
def test_it_finds_the_map(release: LocalRelease) -> None:
    law = synthetic_maps()["normal"]
    grid = Grid.plane(law.y0, law.x0, law.side, 8)
    points = law.draw(50_000, np.random.default_rng(1))
    truth = user_cells(points, grid).density
    found = release.run(points, grid, 4.0, np.random.default_rng(2))
    assert wasserstein(truth, found.density) < 0.4
    assert wasserstein(truth, np.full((8, 8), 1 / 64)) > 1.5
    em = release.estimator == "em"  # type: ignore[attr-defined]
    assert found.facts["estimator"] == ("em" if em else "projection")
    assert (found.estimate is not None) == em == ("iterations" in found.facts)


@every_release
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 20.0])
@pytest.mark.parametrize("side", [1, 2, 3, 10])
@pytest.mark.parametrize("n", [1, 40])
def test_any_side_epsilon_and_number(
    release: LocalRelease, epsilon: float, side: int, n: int
) -> None:
    users = cells_by_user(np.arange(n), np.arange(n) * 7 % side**2, (side, side))
    before = users.visits.copy()
    first, again = (release.release(users, epsilon, np.random.default_rng(3)) for _ in range(2))
    assert first.claim == release.claim(epsilon)
    assert (first.claim.model, first.claim.epsilon, first.claim.delta) == ("local", epsilon, 0)
    assert (first.density == again.density).all()
    assert first.density.min() >= 0
    assert first.density.sum() == pytest.approx(1, abs=1e-12)
    assert (users.visits != before).nnz == 0
    assert (
        0
        <= release.local_privacy(side, epsilon)
        <= cells_privacy(side, 1e-9, np.eye(1, side**2 + 1)[0])
    )


def test_local_privacy_of_a_large_map_needs_no_table_of_pairs() -> None:
    for release in BOTH:
        assert 100 < release.local_privacy(256, 2.0) < 140


def test_what_needs_the_law_of_all_reports_is_refused() -> None:
    found = estimate(SetChannel(drawn([[0], [1, 2], []], 4, 1.0), (2, 2)), np.ones(3), "em")
    with pytest.raises(InputError, match="method must not be fisher where the channel knows only"):
        cell_intervals(found, method="fisher")
    with pytest.raises(InputError, match="method must not be posterior where"):
        cell_intervals(found)
    with pytest.raises(InputError, match="goodness_of_fit needs a channel that knows all"):
        goodness_of_fit(found)


def test_the_projection_is_the_closest_density() -> None:
    rng = np.random.default_rng(4)
    shares = rng.normal(0.1, 0.3, (3, 4))
    found = on_simplex(shares)
    assert found.min() == 0
    assert found.sum() == pytest.approx(1)
    # On the support it is the shares less one number, which is no less than the others.
    cut = (shares - found)[found > 0]
    assert np.ptp(cut) < 1e-12
    assert (shares[found == 0] <= cut[0] + 1e-12).all()
    density = rng.dirichlet(np.ones(12)).reshape(3, 4)
    np.testing.assert_allclose(on_simplex(density), density, atol=1e-15)


def test_reports_that_would_not_fit_are_refused_before_they_are_drawn() -> None:
    n = MOST_ENTRIES // 5000 + 100
    users = cells_by_user(np.arange(n), np.zeros(n, int), (100, 100))
    for release in (Oue(estimator="em"), Olh(estimator="em"), SubsetSelection()):
        with pytest.raises(InputError, match=r'about 2.69e\+08: use estimator="projection"'):
            release.release(users, 1e-6, np.random.default_rng(1))


@every_release
def test_bad_input(release: LocalRelease) -> None:
    users = cells_by_user([0], [0], (2, 3))
    with pytest.raises(InputError, match=f"{release.name} needs a square map, got 2 x 3 cells"):
        release.release(users, 1.0, np.random.default_rng(1))
    square = cells_by_user([0], [0], (2, 2))
    with pytest.raises(InputError, match="epsilon must"):
        release.release(square, 20.5, np.random.default_rng(1))


def test_bad_arrays() -> None:
    reports = drawn([[3], [1, 2]], 4, 1.0)
    assert repr(reports) == "SetReports(2 sets of 4 values, epsilon 1)"
    with pytest.raises(InputError, match=r"input_shape must hold 4 cells, got \(3, 3\)"):
        SetChannel(reports, (3, 3))
    channel = SetChannel(reports, (2, 2))
    with pytest.raises(InputError, match=r"density must be .* of shape \(2, 2\)"):
        channel.forward(np.ones((2, 3)))
    with pytest.raises(InputError, match=r"weights must be .* of shape \(2, 2\), got .*\(3,\)"):
        channel.scores(np.ones(3))
    with pytest.raises(InputError, match=r"ratio must be .* of shape \(2,\), got .*\(3,\)"):
        channel.adjoint(np.ones(3))
