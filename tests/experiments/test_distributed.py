"""Experiments on distributed heat maps: end to end on a tiny synthetic folder, and their parts."""

import gzip
import json
from pathlib import Path

import click
import numpy as np
import pytest

from experiments.means import mean_and_half_width, shown, span
from experiments.papers.distributed import figure8 as figure8_module
from experiments.papers.distributed import table1 as table1_module
from experiments.papers.distributed.figure5 import figure5
from experiments.papers.distributed.figure6 import figure6
from experiments.papers.distributed.figure7 import figure7
from experiments.papers.distributed.figure8 import figure8
from experiments.papers.distributed.figure9 import SPREAD, Survey, figure9
from experiments.papers.distributed.places import (
    Place,
    chicago_place,
    manhattan_place,
    tokyo_place,
    tokyo_users,
)
from experiments.papers.distributed.runs import Case, Runs, adaptive, drawn, play_all, randomness
from experiments.papers.distributed.table1 import ADAPTIVE, table1
from experiments.papers.distributed.table2 import table2
from experiments.papers.distributed.table3 import table3
from experiments.setup import Setup
from experiments.sources import CHICAGO, CHICAGO_SQUARE, MANHATTAN, TOKYO
from ldpspatial.metrics import l1, mean_squared_error
from ldpspatial.release.distributed.adaptive.adaptive_hierarchical import AdaptiveHierarchical
from ldpspatial.release.distributed.adaptive.non_private_tree import NonPrivateTree
from ldpspatial.release.distributed.adaptive.side_data import SideData
from ldpspatial.release.distributed.levels.flat import Flat
from ldpspatial.release.distributed.sums.cohort import Cohort
from tests.support.experiment_runs import run_and_resume

SMALL = ["--side", "32"]
COMMANDS: dict[str, tuple[click.Command, list[str], list[str]]] = {  # options, figures of docs
    "distributed-table1": (table1, [*SMALL, "--few", "500", "--many", "900"], []),
    "distributed-table2": (table2, ["--side", "8"], []),
    "distributed-table3": (table3, [*SMALL, "--users", "500"], []),
    "distributed-figure5": (figure5, [*SMALL, "--cells", "16", "--users", "500"], ["-chicago"]),
    "distributed-figure6": (figure6, ["--cells", "16", "--users", "500"], [""]),
    "distributed-figure7": (figure7, [*SMALL, *(f"--users={n}" for n in (50, 100, 200))], [""]),
    "distributed-figure8": (figure8, [*SMALL, "--few", "300", "--many", "600"], [""]),
    "distributed-figure9": (figure9, [*SMALL, "--cells", "16", "--users", "800"], ["-chicago"]),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the columns of the real files, and nothing else of them."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(1)
    north, west = np.mgrid[0:216, 0:216] / 216
    luminosity = 1 + 250 * np.exp(-((north - 0.8) ** 2 + (west - 0.3) ** 2) / 0.05)
    np.savez(folder / MANHATTAN, luminosity=luminosity.astype(np.float32))
    users = np.sort(rng.integers(0, 60, 400))
    at = rng.normal([35.7, 139.7], [0.05, 0.07], (400, 2))
    rows = [
        f"{user},{y:.6f},{x:.6f},0,0,0" for user, (y, x) in zip(users.tolist(), at, strict=True)
    ]
    _write(folder / TOKYO, ["user,lat,lon,seq,session,poi", *rows])
    south, west_edge, side = CHICAGO_SQUARE
    at = np.array([south, west_edge]) + side * rng.beta(3, 2, (300, 2))
    rows = [f"2010-01-01 00:05,{y:.4f},{x:.4f},street" for y, x in at]
    _write(folder / CHICAGO, ["date,lat,lon,loc_cat", *rows, "2010-01-01 00:06,,,street"])
    return folder


def _write(path: Path, lines: list[str]) -> None:
    with gzip.open(path, "wt") as stream:
        stream.write("\n".join(lines) + "\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_runs_resumes_and_writes_the_docs(
    name: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, options, figures = COMMANDS[name]
    given = ("--data", data, "--repeats", 2, *options)
    found = run_and_resume(command, name, given, "| ", tmp_path, monkeypatch)
    assert found.text.startswith("| ")
    assert found.text.endswith(" |\n") or name == "distributed-table1"
    # What Manhattan looks like may stay in --out, never in docs.
    assert {p.name for p in found.docs.rglob("*.png")} == {f"{name}{end}.png" for end in figures}


def test_more_repeats_keep_the_first(data: Path, tmp_path: Path) -> None:
    place = manhattan_place(data, 16)
    cases = [Case("adaptive", adaptive(), 300), Case("flat", Flat(), 300)]
    few = play_all(place, cases, _setup(data, tmp_path, repeats=1), "one")
    more = play_all(place, cases[::-1], _setup(data, tmp_path, repeats=3), "one")
    alone = play_all(place, cases[1:], _setup(data, tmp_path, repeats=3), "other")
    for case in cases:
        assert more.of(case).rows[0] == few.of(case).rows[0]
    # A run does not depend on what else is played.
    assert (alone.of(cases[1]).values("mse") == more.of(cases[1]).values("mse")).all()
    assert len(set(more.of(cases[0]).values("mse"))) == 3


def test_settings_share_their_people_and_not_their_noise(data: Path) -> None:
    place = manhattan_place(data, 16)
    one, other = Case("flat", Flat(), 200), Case("adaptive", adaptive(), 200)
    cells = [
        drawn(place, case, "ab", repeat).visits.indices
        for case in (one, other)
        for repeat in (0, 1)
    ]
    assert (cells[0] == cells[2]).all()
    assert (cells[1] == cells[3]).all()
    assert (cells[0] != cells[1]).any()
    numbers = [randomness(case, "ab").random() for case in (one, other, one)]
    assert numbers[0] == numbers[2] != numbers[1]


def test_a_folder_of_another_place_is_refused(data: Path, tmp_path: Path) -> None:
    case, setup = [Case("flat", Flat(), 100)], _setup(data, tmp_path, repeats=1)
    play_all(manhattan_place(data, 8), case, setup, "one")
    with pytest.raises(ValueError, match="digest"):
        play_all(manhattan_place(data, 16), case, setup, "one")


@pytest.mark.parametrize(
    "release",
    [adaptive(calibration=1.0), NonPrivateTree(), Flat()],
    ids=["adaptive", "no noise", "flat"],
)
def test_a_row_holds_the_errors_of_the_published_map(
    data: Path, release: AdaptiveHierarchical | NonPrivateTree | Flat
) -> None:
    place = manhattan_place(data, 32)
    people = place.draw(2000, np.random.default_rng(3))
    row = Case("x", release, 2000, others=("l1",)).play(place, people, np.random.default_rng(4))
    published = release.release(people, 1.0, np.random.default_rng(4))
    assert row["mse"] == mean_squared_error(place.density, published.density)
    assert row["l1"] == l1(place.density, published.density)
    assert row["best"]["mse"] == min(row["mse_by_round"]) <= row["mse"]
    assert row["vector_length"] == published.facts["vector_length"]
    assert sum(step["length"] for step in row["by_round"]) in (0, row["vector_length"])


def test_without_survivors_the_row_is_the_uniform_map(data: Path) -> None:
    place = manhattan_place(data, 16)
    release = adaptive(Cohort(drop_out=0.9))
    people = place.draw(50, np.random.default_rng(3))
    row = Case("x", release, 50).play(place, people, np.random.default_rng(4))
    uniform = np.full((16, 16), 1 / 256)
    assert row["survivors"] == 0
    assert row["mse"] == mean_squared_error(place.density, uniform)


def test_manhattan_repeats_pixels_and_begins_in_the_south(data: Path) -> None:
    with np.load(data / MANHATTAN) as held:
        luminosity = held["luminosity"][::-1].astype(np.float64)
    assert np.allclose(manhattan_place(data, 216).density, luminosity / luminosity.sum())
    large = manhattan_place(data, 432).density
    assert np.allclose(large, np.kron(luminosity, np.ones((2, 2))) / (4 * luminosity.sum()))
    row, _ = np.unravel_index(large.argmax(), large.shape)
    assert row < 216  # the brightest place is in the south, the last rows of the file


def test_tokyo_s_box_holds_every_check_in(data: Path) -> None:
    people, checkins = tokyo_users(data, 8), tokyo_place(data, 8)
    assert people.people is not None
    assert int(people.people.visits.sum()) == 400
    assert people.density.sum() == pytest.approx(1)
    # All users weigh the same in the one, all check-ins in the other.
    assert checkins.density.sum() == pytest.approx(1)
    assert not np.allclose(people.density, checkins.density)
    for edge in (people.density[0], people.density[-1], people.density.T[0], people.density.T[-1]):
        assert edge.any()
    assert chicago_place(data, 4).density.sum() == pytest.approx(1)


def test_nobody_is_drawn_from_a_map_without_a_number() -> None:
    with pytest.raises(ValueError, match="users"):
        Place("nowhere", np.ones((2, 2)) / 4).draw(None, np.random.default_rng(1))


def test_intervals_are_student_s() -> None:
    mean, half = mean_and_half_width([1.0, 2.0, 3.0])
    assert mean == 2
    assert half == pytest.approx(4.302653 / np.sqrt(3), abs=1e-6)
    assert np.isnan(mean_and_half_width([5.0])[1])
    assert (shown([5.0]), shown([1234.5, 1234.5], 1)) == ("5.00", "1,234.5 ± 0.0")
    assert (span([3, 1, 2]), span([1000])) == ("1-3", "1,000")


def test_the_order_is_told_with_the_paper_s_where_it_differs() -> None:
    column = table1_module.columns(10_000, 100_000)[0]
    cases = [Case(label, Flat(), 1) for label in column.paper]
    paper = {label: mse for label, (mse, _) in column.paper.items()}

    def told(errors: dict[str, float]) -> str:
        runs = Runs(
            [
                {"label": case.label, "users": 1, "epsilon": 1.0, "mse": errors[case.label] / 1e13}
                for case in cases
                for _ in range(2)
            ]
        )
        return table1_module.order(column, cases, runs)

    assert "The paper has the same order. From the adaptive method to the next, spatial" in told(
        paper
    )
    assert ": 0.68 ± 0.00." in told(paper)  # 8.56 - 7.88
    grid_second = told({**paper, table1_module.GRID: 8.0})
    assert (
        f"{ADAPTIVE} < {table1_module.GRID} < spatial decomposition < hierarchical <" in grid_second
    )
    assert "The paper: non-private < adaptive hierarchical < spatial" in grid_second


def test_the_flat_histogram_is_last_and_the_adaptive_one_next_to_no_noise(
    data: Path, tmp_path: Path
) -> None:
    place = manhattan_place(data, 128)
    cases = [
        Case(label, release, 5000)
        for label, release in table1_module.releases(place, Cohort()).items()
        if not label.startswith("count-min")
    ]
    runs = play_all(place, cases, _setup(data, tmp_path, repeats=3), "one")
    means = {case.label: runs.of(case).values("mse").mean() for case in cases}
    ranked = sorted(means, key=means.__getitem__)
    assert ranked[:2] == [table1_module.NON_PRIVATE, ADAPTIVE]
    assert ranked[-1] == "flat"


def test_the_fixed_tree_asks_for_64_squares_once(data: Path) -> None:
    place = manhattan_place(data, 32)
    case = figure8_module.shard_lines(place, 1000, 2000)["1,000 users"][1000]
    people = place.draw(1000, np.random.default_rng(1))
    row = case.play(place, people, np.random.default_rng(2))
    assert (row["rounds"], row["vector_length"], row["depth"], case.epsilon) == (1, 64, 3, 0.1)


def test_drop_outs_beyond_what_is_tolerated_are_no_case(data: Path) -> None:
    lines = figure8_module.drop_out_lines(manhattan_place(data, 32), 10_000)
    assert max(lines["20 % drop out"]) == 8000
    assert set(lines["20 % drop out"]) < set(lines["0 % drop out"])
    cohort = lines["20 % drop out"][7800].release.cohort  # type: ignore[attr-defined]
    assert (cohort.drop_out, cohort.threshold(10_000)) == (0.2, 7800)


def test_infection_falls_from_the_focus_as_a_gaussian_does() -> None:
    survey = Survey("x", SideData(), 10, focus=(0.5, 0.25))
    chance = survey.chance((64, 128))
    at = np.unravel_index(chance.argmax(), chance.shape)
    assert abs(at[0] - 31.5) <= 0.5
    assert abs(at[1] - 31.5) <= 0.5
    assert chance.max() == pytest.approx(1, abs=2e-2)
    expected = np.exp(-((0.5 / 64) ** 2 + (0.5 / 128 + SPREAD) ** 2) / (2 * SPREAD**2))
    assert chance[32, 32 + round(SPREAD * 128)] == pytest.approx(expected)


def test_intervals_of_proportions_hold_the_truth(data: Path) -> None:
    place = manhattan_place(data, 32)
    survey = Survey("x", SideData(width=0.3), 20_000, focus=(0.2, 0.3))
    people = place.draw(20_000, np.random.default_rng(5))
    row = survey.play(place, people, np.random.default_rng(6))
    wrong = Survey("x", SideData(width=0.3), 20_000, focus=(0.8, 0.7))
    assert row["covered"] > 0.85
    assert row["error"] < 0.15
    assert 0 < row["people_within_width"] <= 1
    # The same answers compared with another focus miss: the check can fail.
    found = survey.run(place, people, np.random.default_rng(6))
    chance = wrong.chance(place.density.shape)
    assert place.density[(found.lower <= chance) & (chance <= found.upper)].sum() < 0.5


def test_rows_say_what_was_promised(data: Path, tmp_path: Path) -> None:
    setup = _setup(data, tmp_path, repeats=1)
    play_all(manhattan_place(data, 16), [Case("flat", Flat(), 100)], setup, "one")
    (line,) = (tmp_path / "one" / "runs.jsonl").read_text().splitlines()
    row = json.loads(line)["row"]
    assert "distributed differential privacy, epsilon 1" in row["claim"]
    assert "1 disjoint shards" in row["claim_conditions"]
    assert {"root", "versions", "seconds", "setting"} <= set(row)


def _setup(data: Path, out: Path, repeats: int) -> Setup:
    return Setup("test", data, out, repeats, jobs=1, seed=1, write=False)
