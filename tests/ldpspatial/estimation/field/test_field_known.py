"""What is known beside the reports: support, public map, windows."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage

from client_sdk import Collection, Grid, response_table
from ldpspatial import (
    Field,
    InputError,
    StampChannel,
    cell_intervals,
    share_change,
    wasserstein,
)
from ldpspatial.collecting.results import read_estimate, write_npz
from ldpspatial.errors import InputWarning
from ldpspatial.estimation import Robust
from ldpspatial.estimation.field import estimator, unlike
from ldpspatial.estimation.field.outside import gain_of_outside
from tests.support.fields import CHANNEL, D, N, drawn, reports

Array = NDArray[np.float64]


def city(rng: np.random.Generator) -> Array:
    """Return a map of 10 x 10 cells with crowds."""
    crowds = np.exp(2 * ndimage.gaussian_filter(rng.standard_normal((10, 10)), 1) / 0.3)
    return np.asarray(crowds / crowds.sum())


def test_nobody_is_put_where_nobody_can_be() -> None:
    rng = np.random.default_rng(12)
    support = np.ones((D, D))
    support[:, :2], support[0, 2] = 0, 0.5
    truth = support / support.sum()
    found = Field(support=support).fit(CHANNEL, reports(truth, N, rng, CHANNEL))
    assert found.samples is not None
    assert found.density[:, :2].max() == 0
    assert found.samples[:, :, :2].max() == 0
    np.testing.assert_allclose(found.samples.sum((1, 2)), 1)
    assert found.density.sum() == pytest.approx(1)
    assert (found.details.possible, found.details.exponent) == (24, 0)  # type: ignore[union-attr]


def test_blocks_are_cut_by_the_support() -> None:
    """A block of which a part is possible holds its people there."""
    channel = StampChannel(response_table("dam", 0.5, 72, radius=30))
    support = np.ones((72, 72))
    support[:, :31] = 0
    truth = support / support.sum()
    counts = reports(truth, 5_000, np.random.default_rng(13), channel)
    found = Field(support=support).fit(channel, counts)
    assert found.details.block > 1  # type: ignore[union-attr]
    assert found.density[:, :31].max() == 0
    assert found.density.sum() == pytest.approx(1)


def test_a_public_map_helps_and_another_does_no_harm() -> None:
    """Five crowds of a few cells: with it, W2 was .7 of that without; with another's, 1.0."""
    rng = np.random.default_rng(14)
    channel = StampChannel(response_table("dam", 2.0, 10, radius=2))
    errors = []
    for _ in range(5):
        truth = rng.gamma(0.3, size=(10, 10))
        truth /= truth.sum()
        counts = reports(truth, 3_000, rng, channel)
        public = truth * rng.gamma(4, size=truth.shape)
        fits = [Field(prior=prior).fit(channel, counts) for prior in (None, public, public[::-1])]
        errors.append([wasserstein(found.density, truth) for found in fits])
        assert fits[1].details.exponent > fits[2].details.exponent  # type: ignore[union-attr]
    alone, helped, misled = np.mean(errors, axis=0)
    assert helped < 0.85 * alone
    assert misled < 1.15 * alone


@pytest.mark.slow
def test_windows_lend_each_other_what_they_have_in_common() -> None:
    """Five windows of one city that does not change: W2 was .7 of that of each alone."""
    rng = np.random.default_rng(16)
    channel = StampChannel(response_table("dam", 2.0, 10, radius=2))
    truth = city(rng)
    counts = [reports(truth, 2_000, rng, channel) for _ in range(5)]
    together = Field().fit_windows(channel, counts)
    alone = [Field().fit(channel, each) for each in counts]
    first, second = (
        np.mean([wasserstein(found.density, truth) for found in fits]) for fits in (together, alone)
    )
    assert first < 0.85 * second
    assert [found.n for found in together] == [2_000] * 5
    told = together[0].details
    assert told is not None
    assert told.windows == 5
    assert told.correlation > 0.8
    assert all(found.details == told for found in together)


def test_a_small_window_unlike_its_large_neighbours_is_fitted_alone() -> None:
    """Together its map is theirs, 2.7 cells away; alone 1.4."""
    channel = StampChannel(response_table("dam", 2.0, 10, radius=2))
    rng = np.random.default_rng(2)
    large = city(rng)
    small = large[::-1]
    counts = [
        reports(law, n, rng, channel)
        for law, n in ((large, 2_000_000), (small, 1_000), (large, 2_000_000))
    ]
    with pytest.warns(InputWarning, match=r"windows\[1\]: its reports speak against"):
        first, middle, last = Field().fit_windows(channel, counts)
    np.testing.assert_array_equal(middle.density, Field().fit(channel, counts[1]).density)
    assert [found.facts["windows"] for found in (first, middle, last)] == [2, 1, 2]
    pair = Field().fit_windows(channel, [counts[0], counts[2]])
    np.testing.assert_array_equal(first.density, pair[0].density)
    assert first.facts["fit"] == last.facts["fit"] != middle.facts["fit"]
    assert wasserstein(middle.density, small) < 2 < wasserstein(large, small)
    assert max(wasserstein(each.density, large) for each in (first, last)) < 0.4
    west = np.broadcast_to(np.arange(10) < 5, (10, 10)).astype(float)
    north = west.T
    for region in (north, west):
        change = share_change(first, middle, region, level=0.999)
        assert change.lower <= (region * (small - large)).sum() <= change.upper


def test_small_windows_unlike_the_large_ones_and_alike_are_fitted_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether chains take the small ones for the large windows' like depends on the last digits."""
    channel = StampChannel(response_table("dam", 2.0, 10, radius=2))
    rng = np.random.default_rng(2)
    large = city(rng)
    small = large[::-1]
    counts = [
        reports(large if k % 2 else small, 1000 ** (1 + k % 2), rng, channel) for k in range(4)
    ]
    asked: set[bytes] = set()

    def with_the_large_ones(channel: object, counts: Array, *_: object) -> bool:
        first = counts.tobytes() not in asked
        asked.add(counts.tobytes())
        return first and float(counts.sum()) < 10_000

    monkeypatch.setattr(estimator, "is_unlike", with_the_large_ones)
    with pytest.warns(InputWarning, match="windows") as warned:
        found = Field().fit_windows(channel, counts)
    assert [str(each.message)[:33] for each in warned] == [
        f"windows[{k}]: its reports speak aga" for k in (0, 2)
    ]
    assert [each.facts["windows"] for each in found] == [2, 2, 2, 2]
    assert found[0].facts["fit"] == found[2].facts["fit"] != found[1].facts["fit"]
    pair = Field().fit_windows(channel, [counts[0], counts[2]])
    np.testing.assert_array_equal(found[0].density, pair[0].density)


def test_a_small_window_is_like_the_others_where_the_support_leaves_out_people_of_all() -> None:
    """By itself its map was 1.8 times as far off."""
    channel = StampChannel(response_table("dam", 2.0, 10, radius=2))
    rng = np.random.default_rng(6)
    law = city(rng)
    possible = (np.indices((10, 10)).sum(0) > 4).astype(float)
    counts = [reports(law, n, rng, channel) for n in (300_000, 500, 300_000)]
    field = Field(support=possible)
    with pytest.warns(InputWarning, match="windows") as warned:
        found = field.fit_windows(channel, counts)
    assert [str(each.message)[:30] for each in warned] == [
        "windows[0]: support leaves out",
        "windows[1]: it is fitted with ",
        "windows[2]: support leaves out",
    ]
    assert [each.facts["windows"] for each in found] == [3, 3, 3]
    assert [each.facts["verdict"] == "untrusted" for each in found] == [True, False, True]
    # A window as large in which that is not seen by itself makes it clearer what the others say.
    pair = [reports(law, 40_000, np.random.default_rng(k), channel) for k in range(40)]
    gains = [gain_of_outside(channel, each, possible) for each in pair]
    of_both = [pair[int(np.argmax(gains))], pair[gains.index(0)]]
    assert gain_of_outside(channel, of_both[0] + of_both[1], possible) > max(gains) + 3
    with pytest.warns(InputWarning, match="windows") as warned:
        both = field.fit_windows(channel, of_both)
    assert [each.facts["windows"] for each in both] == [2, 2]
    assert [str(each.message)[:30] for each in warned] == [
        "windows[0]: support leaves out",
        "windows[1]: it is fitted with ",
    ]
    alone = field.fit(channel, counts[1])
    assert wasserstein(found[1].density, law) < 0.7 * wasserstein(alone.density, law)


def test_windows_of_people_outside_the_support_are_fitted_apart() -> None:
    """And the others as if these were not there; each is warned of where the caller is."""
    west = np.zeros((D, D))
    west[:, : D // 2] = 1
    rng = np.random.default_rng(26)
    inside, outside = west / west.sum(), west[:, ::-1] / west.sum()
    counts = [reports(law, N, rng, CHANNEL) for law in (inside, outside, inside, outside)]
    field = Field(support=west)
    with pytest.warns(InputWarning, match="windows") as warned:
        found = field.fit_windows(CHANNEL, counts)
    assert [str(each.message)[:34] for each in warned] == [
        f"windows[{k}]: support leaves out peo" for k in (1, 3)
    ]
    assert {each.filename for each in warned} == {__file__}
    assert [each.facts["verdict"] == "untrusted" for each in found] == [False, True] * 2
    assert [each.facts["outside"] > 0 for each in found] == [False, True] * 2  # type: ignore[operator]
    assert [each.converged for each in found[1::2]] == [False, False]
    held = field.fit_windows(CHANNEL, counts[::2])
    for alone, among in zip(held, found[::2], strict=True):
        np.testing.assert_array_equal(alone.density, among.density)
        assert alone.details == among.details
    robust = Robust(support=west)
    with pytest.warns(InputWarning, match="windows") as warned:
        pair = robust.fit_windows(CHANNEL, counts[1:3])
    assert [each.facts["windows"] for each in pair] == [1, 1]
    assert [str(each.message)[:34] for each in warned] == [
        "windows[0]: support leaves out peo",
        "windows[1]: the other windows are ",  # that none is left for it is said, too
    ]


def test_reports_of_a_map_speak_against_it_at_most_as_often_as_is_said() -> None:
    """400 draws: more than four standard errors above what is said is an alarm here."""
    rng = np.random.default_rng(19)
    truth = np.exp(-np.add.outer(np.arange(D) ** 2, (np.arange(D) - 2) ** 2) / 8)
    truth /= truth.sum()
    drawn = [reports(truth, 400, rng, CHANNEL) for _ in range(400)]
    alarms = [unlike.is_unlike(CHANNEL, each, truth, rng) for each in drawn]
    said = unlike.FALSE_ALARM
    assert np.mean(alarms) < said + 4 * np.sqrt(said * (1 - said) / len(drawn))
    others = [unlike.is_unlike(CHANNEL, each, truth[::-1], rng) for each in drawn[:100]]
    assert np.mean(others) > 0.9


def test_what_is_different_on_a_small_scale_is_noticed_too() -> None:
    """3,000 reports of stripes of two cells, held against the stripes between these."""
    channel = StampChannel(response_table("dam", 3.5, 12, radius=1))
    stripes = np.broadcast_to(np.where(np.arange(12) // 2 % 2, 1.0, 0.02), (12, 12))
    stripes = stripes / stripes.sum()
    rng = np.random.default_rng(20)
    counts = reports(stripes, 3_000, rng, channel)
    assert unlike.is_unlike(channel, counts, stripes[:, ::-1], rng)
    assert not unlike.is_unlike(channel, counts, stripes, rng)


def test_few_reports_speak_against_nothing() -> None:
    rng = np.random.default_rng(21)
    one = np.zeros(CHANNEL.support.shape)
    one[tuple(np.argwhere(CHANNEL.support)[0])] = 1
    uniform = np.full((D, D), 1 / D**2)
    assert not any(unlike.is_unlike(CHANNEL, one, uniform, rng) for _ in range(9))


def test_one_window_is_a_map_like_any_other() -> None:
    counts = reports(np.full((D, D), 1 / D**2), N, np.random.default_rng(3), CHANNEL)
    (window,) = Field().fit_windows(CHANNEL, [counts])
    np.testing.assert_array_equal(window.density, Field().fit(CHANNEL, counts).density)


def test_what_a_field_knew_is_in_its_file_as_far_as_it_is_told(tmp_path: Path) -> None:
    collection = Collection.create("noon", Grid.from_bounds(52.0, 13.0, 0.1, D), 2)
    channel = StampChannel(collection.table)
    counts = reports(np.full((D, D), 1 / D**2), N, np.random.default_rng(9), channel)
    with pytest.warns(InputWarning, match="support leaves out people: .* nats better"):
        found = Field(support=np.eye(D)).fit(channel, counts)
    write_npz(tmp_path / "estimate.npz", collection, found)
    _, read = read_estimate(tmp_path / "estimate.npz")
    assert read.details == found.details
    assert read.details.possible == D
    assert read.details.outside > 0
    assert not read.converged


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"support": np.zeros((D, D))}, "support must hold at least one cell, got none"),
        ({"support": np.full((D, D), 2)}, r"support must hold numbers in \[0, 1\], got 2"),
        ({"support": np.ones(D)}, "support must be an array of numbers of shape"),
        ({"prior": -np.ones((D, D))}, "prior must hold numbers in"),
        ({"prior": np.zeros((D, D))}, "prior must be above 0 somewhere, got 0 everywhere"),
        ({"prior": np.eye(D), "support": 1 - np.eye(D)}, "somewhere where support is"),
        ({"prior": np.eye(2), "support": np.eye(3)}, r"prior must have the shape \(3, 3\)"),
    ],
)
def test_side_information_that_says_nothing_is_refused(
    given: dict[str, Array], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Field(**given)


def test_side_information_of_another_grid_is_refused() -> None:
    counts = np.where(CHANNEL.support, 10.0, 0.0)
    with pytest.raises(InputError, match=r"support must have the map's shape \(6, 6\), got \(2"):
        Field(support=np.eye(2)).fit(CHANNEL, counts)


@pytest.mark.parametrize("windows", [[], "counts", None, [0] * 101])
def test_windows_that_are_none_or_too_many_are_refused(windows: object) -> None:
    with pytest.raises(InputError, match="windows must be a list of 1 to 100 arrays of counts"):
        Field().fit_windows(CHANNEL, windows)  # type: ignore[arg-type]


def test_the_window_with_bad_counts_is_named() -> None:
    counts = np.where(CHANNEL.support, 10.0, 0.0)
    with pytest.raises(InputError, match=r"windows\[1\]: counts must hold 1 to"):
        Field().fit_windows(CHANNEL, [counts, 0 * counts])


def test_a_file_holds_what_the_map_was_made_with(tmp_path: Path) -> None:
    """Or intervals of a map alone, which a field from its counts has, would be of another map."""
    rng = np.random.default_rng(24)
    support = np.ones((D, D), bool)
    support[0, :2] = False
    truth = drawn(rng) * support
    counts = reports(truth / truth.sum(), N, rng, CHANNEL)
    collection = Collection.create("noon", Grid.from_bounds(52.0, 13.0, 0.1, D), 2)
    public = np.arange(1.0, D * D + 1).reshape(D, D)
    for field in (Field(map_alone=True, support=support), Field(map_alone=True, prior=public)):
        found = field.fit(CHANNEL, counts)
        write_npz(tmp_path / "map.npz", collection, found)
        _, read = read_estimate(tmp_path / "map.npz")
        assert read.estimator == field
        before, after = (cell_intervals(each, method="posterior") for each in (found, read))
        np.testing.assert_array_equal(before.upper, after.upper)
