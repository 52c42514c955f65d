"""``rounds``: campaigns of secure sums, of which a server learns noisy totals and nothing else."""

import dataclasses
import time
from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from client_sdk import Grid
from client_sdk.rounds import Campaign
from ldpspatial.cli.documents import blamed, read_document
from ldpspatial.cli.opened_store import needs_extra, store_argument, with_store
from ldpspatial.cli.options import Finite, grid_options, make_grid
from ldpspatial.cli.output import result_folder, show, show_table
from ldpspatial.cli.output_files import check_new, write_document
from ldpspatial.cli.series import Length, Moment
from ldpspatial.collecting.region_shares import RegionShares, level_region_shares
from ldpspatial.collecting.region_tables import write_csv, write_geojson
from ldpspatial.collecting.results import write_json
from ldpspatial.errors import InputError
from ldpspatial.estimation.intervals import Interval
from ldpspatial.estimation.intervals.levels import OPEN_PARTS, level_intervals
from ldpspatial.files.regions import read_regions
from ldpspatial.validate import MICRO, micro_epsilons

if TYPE_CHECKING:
    from ldpspatial.release.release import Released
    from ldpspatial.service.rounds.accounts import RoundAccount
    from ldpspatial.service.store import Store

MAP_FILES = (
    "campaign.json", "density.npy", "lower.npy", "upper.npy", "regions.csv", "regions.geojson",
    "heatmap.png", "summary.json",
)  # fmt: skip
document_argument = click.argument("document", metavar="CAMPAIGN", type=click.Path(path_type=Path))


class PublicKey(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """The public key of a directory: 64 hexadecimal digits."""

    name = "key"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> bytes:
        """Return 32 bytes."""
        try:
            key = bytes.fromhex(str(value))
        except ValueError:
            key = b""
        if len(key) != 32:
            self.fail('must be 64 hexadecimal digits, as "rounds directory" shows them')
        return key


@click.group()
def rounds() -> None:
    """Open campaigns of secure sums, and map what they come to.

    In a campaign each person takes part in one round, whose server learns the noisy sum of many
    people's vectors and nothing else of them. "ldpspatial serve" runs the rounds of the campaigns
    of its store, and takes up new ones while it runs; started on a store without any campaign or
    directory, it has to be started anew for the first.
    """


@rounds.command("new")
@click.argument("name")
@grid_options
@click.option("--cells", type=int, default=64, show_default=True,
              help="Cells along a side, a power of two.")  # fmt: skip
@click.option("--epsilon", type=Finite(1 / MICRO, 20), required=True,
              help="What one person loses at most, in whole millionths.")  # fmt: skip
@click.option("--start", type=Moment(), required=True, help="When the first round opens.")
@click.option("--every", type=Length(), required=True,
              help="How long a round is open: 90s, 30min, 6h, 1d.")  # fmt: skip
@click.option("--rounds", "number", type=int, default=20, show_default=True,
              help="Number of rounds, each of other people.")  # fmt: skip
@click.option("--clients", type=int, default=100, show_default=True,
              help="Most people of one secure sum.")  # fmt: skip
@click.option("--colluding", type=Finite(0, 1, max_open=True), default=0.1, show_default=True,
              help="Share of them who may collude with the server.")  # fmt: skip
@click.option("--least", type=int, default=None,
              help="Fewest honest people of a sum; by default half of --clients.")  # fmt: skip
@click.option("--longest", type=int, default=4096, show_default=True,
              help="Most numbers that a person sends.")  # fmt: skip
@click.option("--honest-server", is_flag=True,
              help="Trust the server to follow the protocol: for sums of thousands.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), required=True, help="File to write.")
def new(name: str, out: Path, **options: Any) -> None:
    """Write a new campaign document.

    It is final: its id is the SHA-256 of its text, and apps ship it. It holds against any server,
    unless --honest-server says otherwise: of more than 256 people each then talks to some dozens
    of neighbours and not to all. What a round asks may depend on the sums of those before it, and
    a device checks that it keeps these limits.

    \b
    Example:
      ldpspatial rounds new "noon in Berlin" --center 52.52,13.405 --side-km 20 --epsilon 1 \\
          --start 2030-01-01T11:00Z --every 1h --rounds 20 --out campaign.json
    """
    square = [options[key] for key in ("center", "side_km", "bounds", "plane")]
    grid: Grid | None = make_grid(options["cells"], *square)
    if grid is None:
        raise click.UsageError("Give the square: --center and --side-km, --bounds, or --plane.")
    check_new(out)
    if options["start"] + options["number"] * options["every"] <= time.time():
        raise InputError("--start must leave a round that is not over yet: documents are final")
    clients = options["clients"]
    made = Campaign(
        name, grid, options["number"], options["start"], options["every"],
        micro_epsilon=micro_epsilons(options["epsilon"]),
        sensitivity=1,
        most_length=options["longest"],
        most_clients=clients,
        least_honest=clients // 2 if options["least"] is None else options["least"],
        colluding_ppm=ceil(Fraction(str(options["colluding"])) * MICRO),
        server="honest" if options["honest_server"] else "any",
    )  # fmt: skip
    honest = clients - ceil(Fraction(made.colluding_ppm * clients, MICRO))
    if made.least_honest > honest:
        raise InputError(
            f"--least must be at most {honest} of {clients} clients, as {clients - honest} may "
            f"collude, got {made.least_honest}: no round could be held"
        )
    write_document(out, made.to_json())
    show(made.name, {
        "id": made.digest,
        "epsilon": f"{made.micro_epsilon / MICRO:g} of each person, "
        f"in one of {made.rounds} rounds",
        "sums": f"of at most {clients} people, who send at most {made.most_length} numbers each",
    })  # fmt: skip
    click.echo(f"Written to {out}")


@rounds.command("directory")
@store_argument
@document_argument
@click.option("--most", type=click.IntRange(2), required=True, help="Most people who may enrol.")
def directory(store: str, document: Path, most: int) -> None:
    """Make the directory of CAMPAIGN in STORE, and show its public key.

    The directory enrols people and signs who they are; "ldpspatial serve" serves it. Apps ship its
    public key. Against a server that may do anything it has to be somebody else's, in a store of
    theirs: whoever has it can invent people.

    \b
    Example:
      ldpspatial rounds directory directory.db campaign.json --most 100000
    """
    campaign = _read(document)

    async def act(opened: "Store") -> bytes:
        from ldpspatial.service.rounds.directory import open_directory  # noqa: PLC0415

        await _with_tables(opened)
        return await open_directory(opened.database, campaign.digest, most)

    click.echo(f"Directory: {with_store(store, act).hex()}")


@rounds.command("open")
@store_argument
@document_argument
@click.option("--directory", "key", type=PublicKey(), required=True,
              help="Public key of the directory.")  # fmt: skip
@click.option("--people", type=click.IntRange(1), required=True,
              help="How many people are expected in all rounds together.")  # fmt: skip
@click.option("--tolerated", type=Finite(0, 1, max_open=True), default=0.1, show_default=True,
              help="Share of a sum's people who may fail.")  # fmt: skip
@click.option("--release", default="distributed-levels", show_default=True,
              metavar="NAME[:PARAMETER=VALUE]", help="What sums are for, see below.")  # fmt: skip
def open_(
    store: str, document: Path, key: bytes, people: int, tolerated: float, release: str
) -> None:
    """Put CAMPAIGN into STORE; "ldpspatial serve" runs its rounds.

    \b
    Releases that rounds collect:
      distributed-levels           where people are, with intervals: the recommended one
      distributed-levels:aim=cells how many there are in single cells
      adaptive-hierarchical:c=0.1  a histogram that grows where people are, without intervals

    \b
    Example:
      ldpspatial rounds open rounds.db campaign.json --people 20000 --directory \\
          d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a
    """
    campaign = _read(document)

    async def act(opened: "Store") -> int:
        from ldpspatial.release.distributed.campaigns import campaign_plan  # noqa: PLC0415
        from ldpspatial.service.rounds.server import open_campaign  # noqa: PLC0415

        await _with_tables(opened)
        await open_campaign(opened.database, campaign, key, people, tolerated, release)
        return campaign_plan(campaign, people, tolerated, release).threshold

    threshold = with_store(store, act)
    click.echo(f"Open: {campaign.digest}")
    cohort = people / campaign.rounds
    if cohort * (1 - tolerated) < threshold:
        click.echo(
            f"Warning: a round has about {cohort:.0f} people, and a sum needs {threshold}, whoever "
            "fails on the way: with fewer --clients or --rounds more rounds come to sums",
            err=True,
        )


@rounds.command("status")
@store_argument
@click.argument("digest")
def status(store: str, digest: str) -> None:
    """Show the rounds of a campaign: who was heard at which step, and why there is no sum.

    Numbers of people: who had asked for seats, who got one, who was heard in each of the five
    steps, and whose vectors are in sums.

    \b
    Example:
      ldpspatial rounds status rounds.db \\
          0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
    """

    async def act(opened: "Store") -> list["RoundAccount"]:
        from ldpspatial.service.rounds.accounts import accounts  # noqa: PLC0415
        from ldpspatial.service.rounds.tables import has_rounds  # noqa: PLC0415

        known = "SELECT digest FROM round_campaigns WHERE digest = $1"
        here = await has_rounds(opened.database) and await opened.database.read(known, digest)
        if not here:
            raise InputError(f"digest must be of a campaign that the store has, got {digest!r}")
        return await accounts(opened.database, digest)

    found = with_store(store, act)
    if not found:
        click.echo("No round of this campaign has begun.")
        return
    from ldpspatial.service.rounds.accounts import SENT  # noqa: PLC0415

    rows = [
        [str(each) for each in (a.number, a.state, a.came, a.asked, *a.heard, a.survivors)]
        for a in found
    ]
    show_table("Rounds", ["round", "state", "came", "seats", *SENT.values(), "in sums"], rows)
    for account in found:
        for why in account.without:
            click.echo(f"Round {account.number}: {why}.")


@rounds.command("map")
@store_argument
@click.argument("digest")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder of the map.")
@click.option("--regions", type=click.Path(path_type=Path),
              help="File of regions: tell the share of the people in each.")  # fmt: skip
@click.option("--level", type=Finite(0, 1, min_open=True, max_open=True), default=0.95,
              show_default=True, help="How often one interval is to hold.")  # fmt: skip
@click.option("--open-parts", type=click.Choice(OPEN_PARTS), default=OPEN_PARTS[0],
              show_default=True,
              help="With --regions, where people may be in squares that a region cuts. together: "
              "all on one side of its border, which holds whatever the people. apart: in each "
              "square by itself, narrower, and holds where borders do not follow the people. "
              "learned: and as crowded as sums of larger squares say, a model that is narrower "
              "still, and far too narrow where all people of a square are at one "
              "address.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace an earlier map there.")
def map_(
    store: str,
    digest: str,
    out: Path,
    regions: Path | None,
    level: float,
    open_parts: str,
    overwrite: bool,
) -> None:
    """Make the map of a campaign from the sums that it has come to, with its claim.

    \b
    Writes into --out:
      campaign.json      the campaign's document
      density.npy        the share of the people in each cell, first row in the south
      lower.npy, upper.npy
                         ends of an interval for each, about the people who were counted
      heatmap.png        the map
      summary.json       the claim, and how many were asked and counted
      regions.csv, regions.geojson
                         with --regions: shares of the people, with intervals
    A campaign that grows a histogram has no intervals: its noise is known, but not what nodes that
    were not divided hide.

    \b
    Example:
      ldpspatial rounds map rounds.db \\
          0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef --out map
    """

    async def act(opened: "Store") -> Any:
        from ldpspatial.service.rounds.server import released  # noqa: PLC0415
        from ldpspatial.service.rounds.tables import has_rounds  # noqa: PLC0415

        if not await has_rounds(opened.database):
            raise InputError(f"digest must be of a campaign that the store has, got {digest!r}")
        return await released(opened.database, digest)

    campaign, found = with_store(store, act)
    from ldpspatial.plotting.heat_map import save_figure, window_maps_figure  # noqa: PLC0415

    shares = _shares(campaign, found, regions, level, open_parts)
    inputs = [] if regions is None else [regions]
    with result_folder(out, overwrite, inputs, MAP_FILES) as folder:
        (folder / "campaign.json").write_text(campaign.to_json(), encoding="utf-8")
        np.save(folder / "density.npy", found.density)
        held: dict[str, Any] = {}
        if found.levels is not None:
            sure = level_intervals(found.levels, level)
            np.save(folder / "lower.npy", sure.lower)
            np.save(folder / "upper.npy", sure.upper)
            held = {"interval_level": level}
        if shares is not None:
            held["open_parts"] = open_parts
            write_csv(folder / "regions.csv", shares)
            write_geojson(folder / "regions.geojson", campaign.grid, shares)
        figure = window_maps_figure(campaign.grid, {campaign.name: found.density})
        save_figure(figure, folder / "heatmap.png")
        claim = {**dataclasses.asdict(found.claim), "conditions": list(found.claim.conditions)}
        summary = {"campaign": campaign.digest, "claim": claim, **held, **found.facts}
        write_json(folder / "summary.json", summary)
    show(campaign.name, {"claim": str(found.claim), "counted": _counted(found.facts)})
    if shares is not None:
        rows = [[row.region.name, *_in_words(row.share)] for row in shares.rows]
        show_table(
            "Shares of the people", ["region", "share", f"interval of {100 * level:g} %"], rows
        )
    click.echo(f"Written to {out}")


def _counted(facts: Mapping[str, Any]) -> str:
    """Return how many people are in the sums, and that a map of nobody says nothing."""
    people, rounds = (int(facts.get(name, 0)) for name in ("survivors", "rounds"))
    if not people:
        return "nobody yet: the map is even, and says nothing"
    return f"{people} people, in the sums of {rounds} round{'s' * (rounds != 1)}"


def _shares(
    campaign: Campaign, found: "Released", regions: Path | None, level: float, open_parts: str
) -> RegionShares | None:
    """Return the shares of the regions in a file, where one is given."""
    if regions is None:
        if open_parts != OPEN_PARTS[0]:
            raise InputError("--open-parts must go with --regions: it is of their intervals")
        return None
    if found.levels is None:
        raise InputError(
            "--regions must be left out of a campaign that grows a histogram: it has no intervals"
        )
    with blamed("--regions", regions):
        asked = read_regions(regions, campaign.grid)
        return level_region_shares(found.levels, asked, level, open_parts)


def _in_words(share: Interval) -> tuple[str, str]:
    return f"{share.estimate:.2%}", f"{share.lower:.2%} to {share.upper:.2%}"


def _read(document: Path) -> Campaign:
    with blamed("CAMPAIGN", document):
        return Campaign.from_json(read_document(document))


async def _with_tables(opened: "Store") -> None:
    with needs_extra():
        from ldpspatial.service.rounds.tables import has_rounds, make_round_tables  # noqa: PLC0415
    if not await has_rounds(opened.database):
        await make_round_tables(opened.database)
