"""``ldpspatial ranges`` on estimates with a smoothing, a rule of one's own, a crowded cell."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from client_sdk import Collection, Grid
from ldpspatial.channels.disk import StampChannel
from ldpspatial.collecting.results import read_estimate, write_npz
from ldpspatial.errors import InputError
from ldpspatial.estimation import EM, Estimate, estimate, five_point, region_share
from ldpspatial.estimation.smoothing import SMOOTHERS
from ldpspatial.places.regions import rectangle
from tests.support.command_line import refusal, run, succeed
from tests.support.files import write_file

Array = NDArray[np.float64]
REGIONS = "name,south,west,north,east\ncentre,1,1,3,3\neverywhere,0,0,6,6\n"
SQUARE = Collection.create("square", Grid.plane(0, 0, 6, 6), 3.0)


def counted(collection: Collection, density: Array, n: int) -> Array:
    """Return counts of n reports, drawn from a fixed seed."""
    channel = StampChannel(collection.table)
    law = channel.forward(density)[channel.support]
    counts = np.zeros(channel.support.shape)
    counts[channel.support] = np.random.default_rng(1).multinomial(n, law / law.sum())
    return counts


def slope() -> Array:
    weights = np.exp(-np.add.outer(np.arange(6), np.arange(6)) / 3)
    return np.asarray(weights / weights.sum())


COUNTS = counted(SQUARE, slope(), 2_000)


def kept(folder: Path, found: Estimate, collection: Collection = SQUARE) -> tuple[Path, Path]:
    """Write an estimate and a file of regions."""
    write_npz(folder / "estimate.npz", collection, found)
    return folder / "estimate.npz", write_file(folder, "regions.csv", REGIONS)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize("smoothing", [None, *SMOOTHERS])
def test_the_shares_of_a_file_are_those_of_its_counts(
    smoothing: str | None, tmp_path: Path
) -> None:
    found = estimate(StampChannel(SQUARE.table), COUNTS, "em", smoothing)
    files = kept(tmp_path, found)
    with np.load(files[0]) as held:
        assert held["smoothing"] == found.facts["smoothing"] == (smoothing or "none")
    assert read_estimate(files[0])[1].estimator == found.estimator
    out = tmp_path / "shares.csv"
    succeed("ranges", *files, "--csv", out)
    centre, everywhere = rows_of(out)
    share = region_share(found, rectangle(SQUARE.grid, 1, 1, 3, 3))
    assert (float(centre["lower"]), float(centre["upper"])) == (share.lower, share.upper)
    assert [everywhere[key] for key in ("share", "lower", "upper")] == ["1"] * 3


def test_the_options_of_simulate_reach_ranges(tmp_path: Path) -> None:
    setting = ("--map", "normal", "--people", 500, "--cells", 5, "--epsilon", 3, "--radius", 1)
    way = ("--smoothing", "five-point", "--intervals", "none", "--out", tmp_path / "r")
    assert run("simulate", *setting, *way).exit_code == 0
    assert read_estimate(tmp_path / "r")[1].estimator == EM(smoothing="five-point")


class Own:
    """A stopping rule that the package does not know."""

    name = "own"

    def done(self, gain: float, before: Array, after: Array) -> bool:
        return gain < 0.1


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (
            lambda channel: estimate(channel, COUNTS, smoothing=five_point(0.1)),
            "its smoothing is a function, which no file holds",
        ),
        (
            lambda channel: estimate(channel, COUNTS, Own()),
            "it is of another package, or has choices",
        ),
    ],
    ids=["smoothing", "rule"],
)
def test_a_file_that_cannot_hold_how_to_estimate_again_is_read_and_says_so(
    make: Callable[[StampChannel], Estimate], why: str, tmp_path: Path
) -> None:
    files = kept(tmp_path, make(StampChannel(SQUARE.table)))
    for method in ("auto", "fisher"):
        succeed("ranges", *files, "--method", method)
    _, found = read_estimate(files[0])
    with pytest.raises(InputError, match="cannot be made again from the name in a file: " + why):
        found.estimator.fit(found.channel, found.counts)


def test_an_older_file_has_no_smoothing(tmp_path: Path) -> None:
    files = kept(tmp_path, estimate(StampChannel(SQUARE.table), COUNTS, "em"))
    with np.load(files[0]) as held:
        older = {name: held[name] for name in held if name != "smoothing"}
    np.savez(files[0], **older)
    assert read_estimate(files[0])[1].facts == {"smoothing": "none"}
    succeed("ranges", *files, "--method", "fisher")


@pytest.fixture(scope="module")
def by_field() -> Estimate:
    return estimate(StampChannel(SQUARE.table), COUNTS, "field")


@pytest.mark.parametrize(
    "spoilt",
    [
        {"verdict": "fine"}, {"verdict": None}, {"point": "middle"}, {"point": None},
        {"spread": "wide"}, {"spread": None}, {"exponent": None}, {"windows": None},
        {"iterations": 0}, {"iterations": -3}, {"iterations": 10**9}, {"log_likelihood": 5.0},
    ],
    ids=str,
)  # fmt: skip
def test_a_posterior_that_is_never_found_is_refused(
    spoilt: dict[str, float | str | None], by_field: Estimate, tmp_path: Path
) -> None:
    files = kept(tmp_path, by_field)
    with np.load(files[0]) as held:
        entries = {**held, **spoilt}
    np.savez(files[0], **{name: held for name, held in entries.items() if held is not None})
    for method in ("auto", "fisher"):
        error = refusal("ranges", *files, "--method", method)
        assert "ESTIMATE must be an estimate.npz of simulate or estimate" in error


def test_a_density_that_does_not_sum_to_1_is_refused(tmp_path: Path) -> None:
    found = estimate(StampChannel(SQUARE.table), COUNTS, "em")
    files = kept(tmp_path, found)
    with np.load(files[0]) as held:
        doubled = {**held, "density": 2 * held["density"]}
    np.savez(files[0], **doubled)
    assert "density must sum to 1, got 2 in" in refusal("ranges", *files)


@pytest.mark.filterwarnings("ignore::client_sdk.DesignWarning")
def test_shares_outside_of_their_intervals_are_counted_below_the_table(tmp_path: Path) -> None:
    # All people in one cell: noise in the others, which hold no fewer than 0, adds up.
    collection = Collection.create("crowd", Grid.plane(0, 0, 6, 6), 2.0, radius=0)
    crowd = np.zeros((6, 6))
    crowd[1, 1] = 1
    counts = counted(collection, crowd, 10_000)
    files = kept(tmp_path, estimate(StampChannel(collection.table), counts, "em"), collection)
    write_file(tmp_path, "regions.csv", REGIONS + "crowd,1,1,2,2\n")
    lines = succeed("ranges", *files, "--method", "fisher").stdout.splitlines()
    assert lines[-1].startswith("Shares outside of their intervals: 1 of 3. The counts speak")
    assert "outside" not in succeed("ranges", *files, "--method", "posterior").stdout
