"""``rounds``: from a new campaign to its map, as an operator does it."""

import asyncio
import csv
import json
from pathlib import Path

import numpy as np
import pytest

from client_sdk.rounds import Campaign
from client_sdk.rounds.shared import KEY_BYTES
from ldpspatial.service.database import Statement
from ldpspatial.service.rounds.sessions import SUMMED, new_session, packed
from ldpspatial.service.rounds.tables import has_rounds, make_round_tables
from ldpspatial.service.store import Store, make_store, open_store
from tests.support.command_line import refusal, run, succeed

NEW = ("noon", "--center", "52.52,13.405", "--side-km", 8, "--cells", 8, "--epsilon", 2,
       "--start", "2030-01-01T11:00Z", "--every", "1h", "--rounds", 3)  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "rounds.db"
    succeed("store", "new", path)
    succeed("rounds", "new", *NEW, "--out", tmp_path / "campaign.json")
    return path


def campaign_of(store: Path) -> Campaign:
    return Campaign.from_json(store.with_name("campaign.json").read_text())


def opened(store: Path, *release: str) -> str:
    """Open the campaign, with a directory in the same store; return its digest."""
    document = store.with_name("campaign.json")
    told = succeed("rounds", "directory", store, document, "--most", 1000).output
    key = told.removeprefix("Directory: ").strip()
    assert len(bytes.fromhex(key)) == KEY_BYTES
    start = ("rounds", "open", store, document, "--directory", key, "--people", 300)
    told = succeed(*start, *release).output
    digest = campaign_of(store).digest
    assert told == f"Open: {digest}\n"
    return digest


def test_a_server_is_trusted_by_name_alone(store: Path) -> None:
    assert campaign_of(store).server == "any"
    path = store.with_name("honest.json")
    succeed("rounds", "new", *NEW, "--honest-server", "--out", path)
    assert Campaign.from_json(path.read_text()).server == "honest"


def test_who_expects_too_few_people_for_sums_is_told(store: Path) -> None:
    """100 a sum, of whom 10 may fail: 33 people a round are too few, 100 are not."""
    document = store.with_name("campaign.json")
    told = succeed("rounds", "directory", store, document, "--most", 1000).output
    key = told.removeprefix("Directory: ").strip()
    told = run("rounds", "open", store, document, "--directory", key, "--people", 100)
    assert (told.exit_code, told.stdout) == (0, f"Open: {campaign_of(store).digest}\n")
    assert "Warning: a round has about 33 people, and a sum needs 90" in told.stderr


def hold_a_round(store: Path, digest: str, length: int = 64) -> None:
    """Put a round with one sum into the store, as the service does: all are in the north-east."""

    async def act() -> None:
        held = await open_store(store)
        statements = new_session(digest, 1, {number: bytes(100) for number in range(95)})
        name = statements[0].rows[0][0]
        total = packed(np.array([0] * (length - 1) + [90], dtype=np.int64))
        await held.database.run([
            Statement("INSERT INTO round_rounds (campaign, number, document, state) "
                      "VALUES ($1, 1, '', 'over')", [(digest,)]),
            *statements,
            Statement("UPDATE round_sessions SET state = $2, survivors = 90, total = $3 "
                      "WHERE session = $1", [(name, SUMMED, total)]),
        ])  # fmt: skip
        await held.close()

    asyncio.run(act())


def test_from_a_new_campaign_to_its_map(store: Path, tmp_path: Path) -> None:
    campaign = campaign_of(store)
    assert (campaign.rounds, campaign.micro_epsilon, campaign.round_seconds) == (3, 2 * 10**6, 3600)
    assert (campaign.most_clients, campaign.least_honest, campaign.server) == (100, 50, "any")
    assert "DIGEST must be of a campaign that the store has" in refusal(
        "rounds", "status", store, "0" * 64
    )
    digest = opened(store)
    assert "No round of this campaign" in succeed("rounds", "status", store, digest).output
    hold_a_round(store, digest)
    lines = succeed("rounds", "status", store, digest).output.splitlines()
    assert [line.split() for line in lines[1:]] == [
        [
            "round",
            "state",
            "came",
            "seats",
            "keys",
            "shares",
            "vectors",
            "confirmations",
            "openings",
            "in",
            "sums",
        ],
        ["1", "over", "0", "95", "0", "0", "0", "0", "0", "90"],
    ]
    out = tmp_path / "map"
    told = succeed("rounds", "map", store, digest, "--out", out).output
    assert "distributed differential privacy, epsilon 2, per user" in told
    assert "90 people, in the sums of 1 round\n" in told
    assert {path.name for path in out.iterdir()} == {
        "campaign.json", "density.npy", "lower.npy", "upper.npy", "heatmap.png", "summary.json",
    }  # fmt: skip
    density, lower, upper = (np.load(out / f"{n}.npy") for n in ("density", "lower", "upper"))
    assert density[7, 7] == pytest.approx(1)
    assert 0.5 < lower[7, 7] < density[7, 7] <= upper[7, 7] <= 1
    assert lower[0, 0] == 0 < upper[0, 0]
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["claim"]["epsilon"], summary["survivors"]) == (2.0, 90)
    assert (summary["interval_level"], summary["level"]) == (0.95, 3)
    assert "new or empty folder" in refusal("rounds", "map", store, digest, "--out", out)
    succeed("rounds", "map", store, digest, "--out", out, "--overwrite")


def test_regions_are_told_with_intervals(store: Path, tmp_path: Path) -> None:
    digest = opened(store)
    hold_a_round(store, digest)
    grid = campaign_of(store).grid
    south, west = grid.center(0, 0)  # middles of the outermost cells
    north, east = grid.center(7, 7)
    regions = tmp_path / "regions.csv"
    middle = (south + north) / 2
    regions.write_text(
        "name,south,west,north,east\n"
        f"south,{south},{west},{middle},{east}\n"
        f"north,{middle},{west},{2 * north - middle},{east + 1}\n"
    )
    out = tmp_path / "map"
    start = ("rounds", "map", store, digest, "--regions", regions, "--level", 0.9)
    told = succeed(*start, "--out", out).output
    assert "interval of 90 %" in told
    with (out / "regions.csv").open() as stream:
        rows = {row["name"]: row for row in csv.DictReader(stream)}
    assert float(rows["north"]["share"]) == pytest.approx(1)
    assert 0.5 < float(rows["north"]["lower"]) < 1
    assert float(rows["south"]["upper"]) < 0.5
    assert rows["south"]["method"] == "levels"
    found = json.loads((out / "regions.geojson").read_text())
    assert (found["level"], found["reports"]) == (0.9, 90)
    succeed(*start, "--open-parts", "apart", "--out", tmp_path / "apart")
    told = json.loads((tmp_path / "apart" / "regions.geojson").read_text())
    assert told["method"] == "levels, parts apart"
    summary = json.loads((tmp_path / "apart" / "summary.json").read_text())
    assert summary["open_parts"] == "apart"
    alone = refusal("rounds", "map", store, digest, "--open-parts", "apart", "--out", out)
    assert alone.startswith("--open-parts must go with --regions")
    away = refusal(*start[:-3], tmp_path / "none.csv", "--out", tmp_path / "other")
    assert away.startswith("--regions ")
    assert not (tmp_path / "other").exists()


def test_a_histogram_has_a_map_without_intervals(store: Path, tmp_path: Path) -> None:
    digest = opened(store, "--release", "adaptive-hierarchical:c=1")
    hold_a_round(store, digest, length=4)
    out = tmp_path / "map"
    succeed("rounds", "map", store, digest, "--out", out)
    assert np.load(out / "density.npy")[4:, 4:].sum() == pytest.approx(1)
    assert not (out / "lower.npy").exists()
    told = refusal("rounds", "map", store, digest, "--out", out, "--regions", tmp_path / "x.csv")
    assert told.startswith("--regions must be left out of a campaign that grows a histogram")


@pytest.mark.parametrize("release", ["distributed-levels", "adaptive-hierarchical"])
def test_a_map_of_nobody_is_said_to_be_one(store: Path, tmp_path: Path, release: str) -> None:
    digest = opened(store, "--release", release)
    told = succeed("rounds", "map", store, digest, "--out", tmp_path / "map").output
    assert "nobody yet: the map is even, and says nothing" in told


@pytest.mark.parametrize(
    ("release", "why"),
    [
        ("laplace", "release must be distributed-levels or adaptive-hierarchical, got 'laplace'"),
        ("nowhere:Thing", "release must be distributed-levels or adaptive-hierarchical, got 'nowh"),
        ("distributed-levels:aim=people", "aim must be distance or cells"),
        ("adaptive-hierarchical:asked=every round", "asked must be once"),
    ],
)
def test_only_what_rounds_collect_is_opened(store: Path, release: str, why: str) -> None:
    document = store.with_name("campaign.json")
    start = ("rounds", "open", store, document, "--directory", "2" * 64, "--people", 300)
    assert why in refusal(*start, "--release", release)


def test_what_cannot_be_opened_is_refused(store: Path, tmp_path: Path) -> None:
    document = store.with_name("campaign.json")
    assert "--out must be a new file" in refusal("rounds", "new", *NEW, "--out", document)
    assert "Give the square" in refusal(
        "rounds", "new", "x", "--epsilon", 1, "--start", "2030-01-01T11:00Z", "--every", "1h",
        "--out", tmp_path / "x.json",
    )  # fmt: skip
    assert "--start must leave a round" in refusal(
        "rounds", "new", "x", "--plane", "0,0,8", "--epsilon", 1, "--start", "2020-01-01T11:00Z",
        "--every", "1h", "--out", tmp_path / "x.json",
    )  # fmt: skip
    assert "'--epsilon': 0.0 is not in the range" in refusal(
        "rounds", "new", "x", "--plane", "0,0,8", "--epsilon", 0, "--start", "2030-01-01T11:00Z",
        "--every", "1h", "--out", tmp_path / "x.json",
    )  # fmt: skip
    assert "64 hexadecimal digits" in refusal(
        "rounds", "open", store, document, "--directory", "abc", "--people", 10
    )
    missing = refusal("rounds", "map", store, "0" * 64, "--out", tmp_path / "map")
    assert "DIGEST must be of a campaign that the store has" in missing
    digest = opened(store)
    for key, why in (("0" * 64, "neither zeros"), ("2" * 64, "campaign must be new")):
        assert why in refusal("rounds", "open", store, document, "--directory", key, "--people", 10)
    assert digest == campaign_of(store).digest


def test_numbers_that_are_none_are_refused_and_epsilon_is_told_as_the_document_has_it(
    store: Path, tmp_path: Path
) -> None:
    start = ("rounds", "new", "x", "--plane", "0,0,8", "--start", "2030-01-01T11:00Z", "--every",
             "1h", "--cells", 8, "--out", tmp_path / "x.json")  # fmt: skip
    for option, value in (
        ("--epsilon", "nan"),
        ("--epsilon", "inf"),
        ("--colluding", "nan"),
        ("--colluding", "inf"),
        ("--colluding", "-0.1"),
    ):
        epsilon = () if option == "--epsilon" else ("--epsilon", 1)
        told = refusal(*start, *epsilon, option, value)
        assert f"Invalid value for '{option}': {value}" in told
    for epsilon in ("0.0000015", "1.0000006"):  # rounded to the nearest they would cost more
        assert "whole number of millionths" in refusal(*start, "--epsilon", epsilon)
    for more in (("--colluding", "0.999"), ("--least", 91), ("--colluding", "0.5000001")):
        assert "--least must be at most" in refusal(*start, "--epsilon", 1, *more)
    told = succeed(*start, "--epsilon", "0.000002", "--colluding", "0.1000001").output
    assert "2e-06 of each person" in told
    made = Campaign.from_json((tmp_path / "x.json").read_text())
    assert made.colluding_ppm == 100_001  # more than was asked for, never less
    digest = opened(store, "--release", "adaptive-hierarchical")
    told = refusal("rounds", "map", store, digest, "--out", tmp_path / "m", "--level", "nan")
    assert "Invalid value for '--level': nan" in told


def test_what_is_stored_of_a_campaign_is_what_was_checked(store: Path) -> None:
    """At most 81 of 100 honest: a share that rounds to a tenth leaves 80, and is refused."""
    path = store.with_name("least.json")
    succeed("rounds", "new", *NEW, "--least", 81, "--out", path)
    start = ("rounds", "open", store, path, "--directory", "2" * 64, "--people", 300)
    told = refusal(*start, "--tolerated", "0.0999999999")
    assert "honest must be at least 81" in told


def test_a_back_up_holds_sums_and_nothing_that_people_sent(store: Path, tmp_path: Path) -> None:
    digest = opened(store)
    hold_a_round(store, digest)
    copy = tmp_path / "copy.db"

    async def running(held: Store) -> None:
        await held.database.run(new_session(digest, 2, {number: bytes(100) for number in range(9)}))
        sql = "INSERT INTO round_requests VALUES ($1, 3, 7, $2)"
        await held.database.run([Statement(sql, [(digest, bytes(100))])])

    async def counted(held: Store) -> list[int]:
        found = []
        for table in ("round_seats", "round_messages", "round_campaigns"):
            found += await held.database.read(f"SELECT COUNT(*) FROM {table}")  # noqa: S608
        # That somebody asked for a round stays: a copy that goes on must not ask them again.
        found += await held.database.read("SELECT SUM(LENGTH(certificate)) FROM round_requests")
        return [number for (number,) in found]

    async def on(path: Path, act: object) -> object:
        held = await open_store(path)
        try:
            return await act(held)  # type: ignore[operator]
        finally:
            await held.close()

    asyncio.run(on(store, running))
    succeed("store", "backup", store, copy)
    assert asyncio.run(on(copy, counted)) == [0, 0, 1, 0]
    lines = succeed("rounds", "status", copy, digest).output.splitlines()
    assert lines[-1].split() == ["1", "over", "0", "95", *"00000", "90"]

    async def alone() -> None:
        held = await make_store(tmp_path / "new.db")
        assert not await has_rounds(held.database)
        await make_round_tables(held.database)
        assert await has_rounds(held.database)
        await held.close()

    asyncio.run(alone())
