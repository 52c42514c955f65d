"""``store``: make, fill, close and release the store of a collection server."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from client_sdk import Collection
from ldpspatial.cli.documents import read_collection, read_series
from ldpspatial.cli.estimator_options import chosen_rule, estimator_options, side_files
from ldpspatial.cli.opened_store import needs_extra, store_argument, with_store
from ldpspatial.cli.output import progress, result_folder, show
from ldpspatial.cli.output_files import check_output, placed
from ldpspatial.cli.series import series_facts
from ldpspatial.collecting.verdicts import verdicts
from ldpspatial.errors import InputError
from ldpspatial.validate import shown

if TYPE_CHECKING:
    from ldpspatial.service.closing import Counted
    from ldpspatial.service.progress import Progress
    from ldpspatial.service.store import Held, Store
    from ldpspatial.service.windows import HeldSeries

SHORTEST_DIGEST = 8
digest_argument = click.argument("digest", metavar="DIGEST")


@click.group()
@click.pass_context
def store(context: click.Context) -> None:
    """Make, fill, close and release the store of a collection server.

    STORE is a file, or postgresql://USER@HOST/DATABASE. All of this also works while the server
    runs on it.
    """
    context.with_resource(_ended_in_order())


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Let SIGTERM end a command as an error does: what it left unfinished is removed.

    Without this, reports would lie in hidden files long after they were to be deleted.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals come to that one
        return

    def end(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@store.command("new")
@store_argument
def new(store: str) -> None:
    """Make an empty store.

    \b
    Examples:
      ldpspatial store new berlin.db
      ldpspatial store new postgresql://collector@localhost/berlin
    """

    async def act() -> None:
        with needs_extra():
            from ldpspatial.service.store import make_store  # noqa: PLC0415

            made = await make_store(store)
        await made.close()

    asyncio.run(act())
    click.echo(f"Made {store}")


@store.command("add")
@store_argument
@click.argument("document", metavar="COLLECTION", type=click.Path(path_type=Path))
@click.option(
    "--minimum", type=click.IntRange(1), required=True,
    help="Reports that must count before the collection is released.",
)  # fmt: skip
def add(store: str, document: Path, minimum: int) -> None:
    """Open a COLLECTION for reports.

    The minimum is set once: a map of few reports says little, and an estimate of few can be read
    as being about them.

    \b
    Example:
      ldpspatial store add berlin.db berlin.json --minimum 1000
    """
    collection = read_collection(document)
    held = with_store(store, lambda opened: opened.add(collection, minimum))
    click.echo(f"Open: {held.digest}")


@store.command("add-series")
@store_argument
@click.argument("document", metavar="SERIES", type=click.Path(path_type=Path))
@click.option(
    "--minimum", type=click.IntRange(1), required=True,
    help="Reports that must count before a window is released.",
)  # fmt: skip
@click.option(
    "--leeway", type=click.IntRange(0), default=86_400, show_default=True,
    help="Seconds for which a window takes reports before it begins and after it ends.",
)  # fmt: skip
def add_series(store: str, document: Path, minimum: int, leeway: int) -> None:
    """Add a SERIES, a collection that repeats.

    Each window is a collection, which the service opens and closes by its own clock while it runs.
    The leeway is for clocks of devices that are wrong and for reports that wait on their device. A
    window that was over before the service came to look is never opened.

    \b
    Example:
      ldpspatial store add-series berlin.db week.json --minimum 1000 --leeway 7200
    """
    series = read_series(document)

    async def act(opened: "Store") -> str:
        from ldpspatial.service import windows  # noqa: PLC0415

        return (await windows.add_series(opened, series, minimum, leeway)).digest

    click.echo(f"Added: {with_store(store, act)}")


@store.command("list")
@store_argument
def list_collections(store: str) -> None:
    """Show the collections of a store and how far they are, and its series.

    Last, how many reports were refused that name no collection of the store.

    \b
    Example:
      ldpspatial store list berlin.db
    """

    async def told(opened: "Store") -> "tuple[list[Progress], list[HeldSeries], dict[str, int]]":
        from ldpspatial.service.progress import progress_of_all, refused_for_none  # noqa: PLC0415
        from ldpspatial.service.windows import all_series  # noqa: PLC0415

        found = await progress_of_all(opened, await opened.collections())
        return found, await all_series(opened), await refused_for_none(opened)

    found, series, refused = with_store(store, told)
    for each in found:
        show(each.name, _facts(each))
    for held in series:
        made = held.series()
        leeway = f"{held.leeway_s} s before and after each window"
        released = f"each window from {held.minimum} reports on"
        show(made.name, {**series_facts(made), "leeway": leeway, "released": released})
    if refused:
        show("Reports of no collection here", {"refused": _by_reason(refused)})
    if not found and not series:
        click.echo(f"{store} holds no collection: add one with ldpspatial store add")


@store.command("close")
@store_argument
@digest_argument
def close(store: str, digest: str) -> None:
    """Take no more reports, leave out repeated ones, and count.

    From then on devices are told that the collection is closed: they forget what they have not
    sent. DIGEST may be its first digits. It cannot be opened again.

    \b
    Example:
      ldpspatial store close berlin.db 68d11b74
    """
    _change(store, digest, "close_collection")


@store.command("release")
@store_argument
@digest_argument
def release(store: str, digest: str) -> None:
    """Delete the reports of a closed collection, and keep its counts.

    Once, and only where as many reports count as the minimum asks for. Export the reports before
    if they are to be kept. "ldpspatial store estimate" makes the map from the counts.

    \b
    Example:
      ldpspatial store release berlin.db 68d11b74
    """
    _change(store, digest, "release")


@store.command("drop")
@store_argument
@digest_argument
def drop(store: str, digest: str) -> None:
    """Delete all that a closed collection holds, reports and counts.

    For one that is not to be released: where fewer reports count than the minimum asks for, or in a
    restored store whose collection had been released before.

    \b
    Example:
      ldpspatial store drop berlin.db 68d11b74
    """
    _change(store, digest, "drop")


@store.command("export")
@store_argument
@digest_argument
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Parquet file.")
@click.option("--overwrite", is_flag=True, help="Replace the earlier file in --out.")
def export(store: str, digest: str, out: Path, overwrite: bool) -> None:
    """Write the different reports of a closed collection as Parquet.

    "ldpspatial estimate" and count_reports read it, and count what the store counts.

    \b
    Example:
      ldpspatial store export berlin.db 68d11b74 --out reports.parquet
    """
    check_output("out", out, (".parquet",), overwrite, _files(store))

    async def write(opened: "Store") -> int:
        from ldpspatial.service.exporting import write_parquet  # noqa: PLC0415

        return await write_parquet(opened, (await _found(opened, digest)).digest, file)

    with placed("out", out, overwrite) as file:
        number = with_store(store, write)
    click.echo(f"Written to {out}: {number} reports")


@store.command("backup")
@store_argument
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
def backup(store: str, path: Path) -> None:
    """Write a checked copy of STORE to a new FILE.

    Safe while the server runs. The copy holds what was acknowledged when it began, and no tokens;
    its owner alone may read it. The same command makes a store of a back-up. A PostgreSQL database
    is copied with pg_dump.

    \b
    Examples:
      ldpspatial store backup berlin.db berlin.backup
      ldpspatial store backup berlin.backup restored.db
    """

    async def write(opened: "Store") -> None:
        from ldpspatial.service.backup import back_up  # noqa: PLC0415

        await back_up(opened, path)

    with progress("backup"):
        with_store(store, write)
    click.echo(f"Written to {path}")


@store.command("estimate")
@store_argument
@digest_argument
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder of results.")
@click.option("--overwrite", is_flag=True, help="Replace the earlier result in --out.")
@estimator_options
def estimate(store: str, digest: str, out: Path, overwrite: bool, **options: Any) -> None:
    """Estimate the map from the counts of a released collection.

    Writes what "ldpspatial estimate" writes, and how far the map is to be expected from the
    truth: on the maps that "ldpspatial plan" plays, and on the map that came out.

    \b
    Example:
      ldpspatial store estimate berlin.db 68d11b74 --out map
    """

    async def counts(opened: "Store") -> "tuple[Held, Counted]":
        from ldpspatial.service.closing import released_counts  # noqa: PLC0415

        held = await _found(opened, digest)
        return held, await released_counts(opened, held.digest)

    held, counted = with_store(store, counts)
    collection = Collection.from_json(held.document)
    with (
        progress("estimate") as (stage, advance),
        result_folder(out, overwrite, (*_files(store), *side_files(options))) as folder,
    ):
        from ldpspatial.service.map_making import make_map  # noqa: PLC0415

        summary = make_map(
            folder, collection, counted, chosen_rule(options, collection.grid),
            options["smoothing"], options["method"], stage, advance,
        )  # fmt: skip
    show(
        f"{counted.n} reports, each {collection.epsilon:g}-LDP",
        {
            **{name: str(value) for name, value in counted.facts().items()},
            "error to expect": _error_to_expect(summary),
            **verdicts(summary),
        },
    )
    click.echo(f"Written to {out}: see heatmap.png")


@store.command("token")
@store_argument
@click.argument("name", required=False)
@click.option("--revoke", is_flag=True, help="Make the token of this name useless.")
def token(store: str, name: str | None, revoke: bool) -> None:
    """Make a token for an operator, or revoke it; without NAME list the names.

    The token is shown once; the store holds a hash of it. It is sent as "Authorization: Bearer".

    \b
    Examples:
      ldpspatial store token berlin.db laptop
      ldpspatial store token berlin.db laptop --revoke
    """

    async def act(opened: "Store") -> list[str]:
        from ldpspatial.service import tokens  # noqa: PLC0415

        if name is None:
            return await tokens.token_names(opened)
        if revoke:
            await tokens.revoke_token(opened, name)
            return [f"Revoked {name}"]
        return [await tokens.make_token(opened, name)]

    if name is None and revoke:
        raise click.UsageError("--revoke needs the NAME of a token.")
    for line in with_store(store, act):
        click.echo(line)


def _files(store: str) -> list[Path]:
    """Return the files in which a store lies, and those that SQLite keeps beside it."""
    if "://" in store:
        return []
    return [Path(os.path.realpath(store) + end) for end in ("", "-wal", "-shm", "-journal")]


def _change(location: str, digest: str, verb: str) -> None:
    """Close or release a collection, and show what it counts."""

    async def act(opened: "Store") -> "Progress":
        from ldpspatial.service import closing  # noqa: PLC0415
        from ldpspatial.service.progress import progress_of  # noqa: PLC0415

        held = await _found(opened, digest)
        await getattr(closing, verb)(opened, held.digest)
        return await progress_of(opened, await opened.held(held.digest))

    with progress(verb.partition("_")[0]):
        found = with_store(location, act)
    show(found.name, _facts(found))


async def _found(opened: "Store", digest: str) -> "Held":
    """Return the one collection whose digest begins so."""
    matching = [held for held in await opened.collections() if held.digest.startswith(digest)]
    if len(matching) != 1 or len(digest) < SHORTEST_DIGEST:
        raise InputError(
            f"digest must be the first {SHORTEST_DIGEST} digits or more of one collection of the "
            f"store, got {shown(digest)}, which fits {len(matching)}"
        )
    return matching[0]


def _error_to_expect(summary: dict[str, Any]) -> str:
    """Return one line on W2 between the truth and such a map."""
    error = summary["expected_error"]
    (before,) = error["foretold"].values()  # plans are made on one map
    means = (each["mean"] for each in (error["this_map"], before))
    here, foretold = (f"{float(f'{mean:.3g}'):,.10g} {error['unit']}" for mean in means)
    return (
        f"W2 about {here}, as if this map were the truth; before the collection, on the synthetic "
        f"city of plans, {foretold} is foretold for so many reports"
    )


def _facts(found: "Progress") -> dict[str, str]:
    facts = {
        "id": found.digest,
        "state": f"{found.state}, released from {found.minimum} reports on",
        "received": f"{found.received}",
        "refused": _by_reason(found.refused),
    }
    if found.counted is not None:
        facts["counted"] = (
            f"{found.counted} ({found.repeated} repeated, {found.conflicting} conflicting)"
        )
    return facts


def _by_reason(refused: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {reason}" for reason, n in sorted(refused.items())) or "none"
