"""``serve``: the collection server on a store."""

import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from ldpspatial.cli.opened_store import needs_extra, store_argument, with_store
from ldpspatial.errors import InputError


@click.command()
@store_argument
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port", type=click.IntRange(1, 65535), default=8000, show_default=True, help="Port."
)
@click.option(
    "--rate", type=click.IntRange(0), default=600, show_default=True,
    help="Requests that one address may make in a minute; 0: no limit.",
)  # fmt: skip
@click.option(
    "--max-bytes", type=click.IntRange(1024, 1 << 28), default=1 << 21, show_default=True,
    help="Bytes of a request, as sent and as unpacked.",
)  # fmt: skip
@click.option(
    "--max-lines", type=click.IntRange(1, 10**6), default=10_000, show_default=True,
    help="Lines of a request, a report each.",
)  # fmt: skip
@click.option(
    "--proxy", default=None, metavar="ADDRESS",
    help="IP address of the reverse proxy: its X-Forwarded-For says whom the rate limit counts.",
)  # fmt: skip
@click.option(
    "--outlines", type=click.Path(path_type=Path), default=None,
    help="GeoJSON of borders, rivers or streets, which the pages draw over their maps.",
)  # fmt: skip
def serve(
    store: str, host: str, port: int, proxy: str | None, outlines: Path | None, **options: Any
) -> None:
    """Take reports from devices and keep them in STORE.

    STORE is a file that "ldpspatial store new" made, or postgresql://USER@HOST/DATABASE. Devices
    send to /reports and fetch documents from /collections/DIGEST; operators use
    /operator/collections with a token from "ldpspatial store token". A report is acknowledged when
    it is on the disk. No address, user agent or time is stored or logged. Put a reverse proxy with
    TLS in front, and let it log no addresses either.

    In a browser, / is the page of operators, and /participate/DIGEST that of who takes part. All
    requests are described at /openapi.json; /health and /metrics are for who watches the service.

    Interrupt it to stop: what arrived is stored and put in order first. "ldpspatial store" works
    while the server runs: "store add" opens a collection, "store close" ends it.

    \b
    Examples:
      ldpspatial serve berlin.db
      ldpspatial serve berlin.db --port 8080 --proxy 127.0.0.1 --rate 60
    """
    with needs_extra():
        from ldpspatial.service.app import make_app  # noqa: PLC0415  (an extra)
        from ldpspatial.service.limits import Limits  # noqa: PLC0415
        from ldpspatial.service.server import listening, make_server  # noqa: PLC0415
    limits = Limits(
        body_bytes=options["max_bytes"],
        lines=options["max_lines"],
        requests_a_minute=options["rate"],
    )
    with_store(store, lambda opened: opened.check_writable())  # or one line says why it cannot be
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    server = make_server(make_app(store, limits, outlines), limits, host, port, proxy)
    sockets = listening(host, port)
    click.echo(f"Serving {store} at http://{host}:{port}", err=True)
    # An interrupt comes once the server has stopped, an exit where it did not start.
    with suppress(KeyboardInterrupt, SystemExit):
        server.run(sockets)
    if not server.started:
        raise InputError(f"the service did not start at {host}:{port}: the lines above say why")
