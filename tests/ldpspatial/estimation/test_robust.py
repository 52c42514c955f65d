"""The robust estimator: nothing is lost where nothing is forged, much is won where something is."""

from dataclasses import asdict

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk import response_table
from ldpspatial import StampChannel
from ldpspatial.estimation import EM, Field, Robust
from ldpspatial.estimation.forgery import forged
from ldpspatial.estimation.forgery.forged import MOST, OUTPUTS, without_forged
from ldpspatial.estimation.robust import NOTHING
from ldpspatial.metrics import wasserstein

Array = NDArray[np.float64]
CHANNEL = StampChannel(response_table("dam", 2.0, 8))
N = 50_000


def crowd() -> Array:
    """Return two crowds with soft edges, and nobody in a corner."""
    rows, cols = np.indices((8, 8))
    density = np.exp(-((rows - 2) ** 2 + (cols - 5) ** 2) / 2)
    density += 0.4 * np.exp(-((rows - 6) ** 2 + (cols - 2) ** 2) / 2)
    density[density < 1e-3] = 0
    return density / density.sum()


def counts_of(shape: Array | None = None, share: float = 0.05, seed: int = 1) -> Array:
    """Return counts of which a share follows a shape, and the rest the channel."""
    rng = np.random.default_rng(seed)
    law = CHANNEL.forward(crowd())
    if shape is not None:
        law = (1 - share) * law + share * shape / shape.sum()
    return np.asarray(rng.multinomial(N, law.ravel() / law.sum()).reshape(law.shape), np.float64)


def one_output() -> Array:
    shape = np.zeros(CHANNEL.output_shape)
    shape[CHANNEL.table.radius, -CHANNEL.table.radius - 2] = 1
    return shape


def margin() -> Array:
    radius = CHANNEL.table.radius
    return CHANNEL.support * (1.0 - np.pad(np.ones((8, 8)), radius))


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_taken_out_of_genuine_counts(seed: int) -> None:
    """The check alarms once in ten thousand genuine collections: in one of these below 1e-3."""
    counts = counts_of(seed=seed)
    found = without_forged(CHANNEL, counts)
    assert (found.counts == counts).all()
    assert found.share == 0
    assert found.shapes == ()


def test_without_forgeries_it_is_the_field() -> None:
    counts = counts_of()
    robust = Robust().fit(CHANNEL, counts)
    plain = Field().fit(CHANNEL, counts)
    assert (robust.density == plain.density).all()
    assert robust.details is not None
    assert plain.details is not None
    told = asdict(robust.details)
    assert (told.pop("taken_out"), told.pop("taken_shapes")) == (0, NOTHING)
    assert told == asdict(plain.details)


def test_reports_of_one_output_are_taken_out() -> None:
    counts = counts_of(one_output())
    robust = Robust().fit(CHANNEL, counts)
    plain = Field().fit(CHANNEL, counts)
    honest = Field().fit(CHANNEL, np.round(counts * (1 - one_output())))
    assert robust.details is not None
    assert robust.details.taken_shapes == OUTPUTS  # type: ignore[attr-defined]
    assert robust.details.taken_out == pytest.approx(0.05, abs=0.01)  # type: ignore[attr-defined]
    error = wasserstein(crowd(), robust.density)
    assert error < 0.6 * wasserstein(crowd(), plain.density)
    assert error < 1.5 * wasserstein(crowd(), honest.density)
    # The check still sees all reports.
    assert (robust.counts == counts).all()


def test_a_shape_that_the_check_names_is_taken_out() -> None:
    counts = counts_of(margin(), 0.1)
    found = without_forged(CHANNEL, counts)
    assert found.shapes == ("the margin",)
    assert found.share == pytest.approx(0.1, abs=0.02)
    forged = EM().fit(CHANNEL, counts).density
    cleaned = EM().fit(CHANNEL, found.counts).density
    assert wasserstein(crowd(), cleaned) < 0.6 * wasserstein(crowd(), forged)


def test_honest_reports_of_a_place_where_nobody_was_stay() -> None:
    corner = np.zeros((8, 8))
    corner[0, 0] = 1
    counts = counts_of(CHANNEL.forward(corner))
    assert without_forged(CHANNEL, counts).share == 0


def test_what_is_left_are_whole_numbers_and_no_more_than_came() -> None:
    for shape in (one_output(), margin()):
        counts = counts_of(shape, 0.1)
        left = without_forged(CHANNEL, counts).counts
        assert (left == np.round(left)).all()
        assert (left >= 0).all()
        assert (left <= counts).all()


def test_equal_counts_give_equal_answers() -> None:
    counts = counts_of(one_output())
    assert (without_forged(CHANNEL, counts).counts == without_forged(CHANNEL, counts).counts).all()


def test_where_most_reports_are_forged_none_is_taken_out() -> None:
    counts = counts_of(one_output(), 0.9)
    found = without_forged(CHANNEL, counts)
    assert MOST < 0.9
    assert (found.counts == counts).all()
    alone = np.where(one_output() > 0, 1e6, 0)
    assert (without_forged(CHANNEL, alone).counts == alone).all()


def test_few_reports_are_left_alone() -> None:
    counts = 19 * one_output()
    assert (without_forged(CHANNEL, counts).counts == counts).all()


def test_windows_are_cleaned_one_by_one() -> None:
    windows = [counts_of(), counts_of(one_output())]
    found = Robust("mean").fit_windows(CHANNEL, windows)
    shares = [each.details.taken_out for each in found]  # type: ignore[union-attr]
    assert shares[0] == 0
    assert shares[1] == pytest.approx(0.05, abs=0.01)
    assert [each.n for each in found] == [N, N]


def test_it_is_made_again_from_what_a_file_holds() -> None:
    found = Robust().fit(CHANNEL, counts_of(one_output()))
    estimator, told = Robust.restored("robust", found.facts)
    assert estimator == Robust()
    assert estimator != Field()
    assert told == found.details
    with pytest.raises(ValueError, match="share"):
        Robust.restored("robust", {**found.facts, "taken_out": 2.0})


def test_a_file_knows_that_the_map_alone_was_wanted() -> None:
    found = Robust(map_alone=True).fit(CHANNEL, counts_of(one_output()))
    estimator, told = Robust.restored("robust", found.facts)
    assert estimator == Robust(map_alone=True)
    assert told == found.details
    before = {name: fact for name, fact in found.facts.items() if name != "fit"}
    assert Robust.restored("robust", before)[0] == Robust()


def test_parts_of_reports_become_whole_ones_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounded down, each output cell would lose half a report in the mean."""
    channel = StampChannel(response_table("dam", 3.5, 6))
    law = channel.forward(np.full((6, 6), 1 / 36))
    counts = np.zeros(channel.support.shape)
    counts[channel.support] = np.round(1_000 * law[channel.support])
    shape = np.zeros(counts.shape)
    shape[channel.support] = 1 / channel.support.sum()
    drawn = []
    for seed in range(50):
        monkeypatch.setattr(
            forged, "generator_of", lambda _, seed=seed: np.random.default_rng(seed)
        )
        drawn.append(forged._taken_out(channel, counts, {"the same everywhere": shape}).counts)
    parts = np.array(drawn)[:, channel.support]
    more = parts - parts.min(0)
    assert more.max() == 1  # of each part one of two whole numbers
    assert 0.3 < more.mean() < 0.7
