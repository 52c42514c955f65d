"""What secure aggregation costs a client: time, and bytes beside the published formula."""

import os
import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np

from experiments.progress import tracked
from experiments.tables import DOCS, markdown, replace_block
from ldpspatial.release.distributed.sums.secure_aggregation import (
    Client,
    Neighbours,
    Outcome,
    Step,
    Terms,
    choose_neighbours,
    enrol,
    play,
)

KEY_BITS, SHARE_BITS = 8 * 32, 8 * 16  # an X25519 public key, a number of our field
DROP_OUTS = (0, 10, 20, 30)  # percent
LENGTH, BITS = 1000, 32


def published_bits(holders: int, length: int, bits: int, key: int, share: int) -> int:
    """Return what a client sends and receives by Bonawitz et al. (CCS 2017, section 7).

    With ``holders`` clients among whom secrets are shared, itself included: 2 public keys out and
    2 (holders - 1) in; 2 (holders - 1) encrypted shares out and as many in; ``holders`` shares out
    in the last round; and the vector.

    Examples
    --------
    >>> bits = published_bits(2**10, 2**20, 26, 256, 256)
    >>> round(bits / (16 * 2**20), 2)  # the paper: 1.73 times what vectors of 16 bits would take
    1.73
    """
    return 2 * holders * key + (5 * holders - 4) * share + length * bits


class Timed(Client):
    """A client that adds up the processor time it takes."""

    seconds = 0.0

    def _timed(self, answer: Callable[..., Any], *given: Any) -> Any:
        begin = time.process_time()
        try:
            return answer(*given)
        finally:
            self.seconds += time.process_time() - begin

    def advertise(self) -> Any:
        """Round 0."""
        return self._timed(super().advertise)

    def share(self, *given: Any) -> Any:
        """Round 1."""
        return self._timed(super().share, *given)

    def mask(self, *given: Any) -> Any:
        """Round 2."""
        return self._timed(super().mask, *given)

    def confirm(self, *given: Any) -> Any:
        """Round 3."""
        return self._timed(super().confirm, *given)

    def reveal(self, *given: Any) -> Any:
        """Round 4."""
        return self._timed(super().reveal, *given)


def measure(
    clients: int, threshold: int, drop_out: int, neighbours: Neighbours | None
) -> list[object]:
    """Play one session; return a row of the table."""
    session, is_circle = os.urandom(16), neighbours is not None
    terms = Terms(session, clients, threshold, BITS, LENGTH, neighbours, honest_server=is_circle)
    rng = np.random.default_rng(drop_out)
    vectors = rng.integers(0, terms.modulus, (clients, LENGTH))
    failed = rng.choice(clients, clients * drop_out // 100, replace=False)
    begin = time.process_time()
    people, server = enrol(terms, client=Timed)
    outcome = play(people, server, vectors, dict.fromkeys(failed.tolist(), Step.MASK))
    seconds = time.process_time() - begin
    here = np.isin(np.arange(clients), failed, invert=True)
    if outcome.total is None or (outcome.total != vectors[here].sum(axis=0) % terms.modulus).any():
        raise click.ClickException(f"no sum, or a wrong one: {outcome.aborted}")
    own = np.array([client.seconds for client in people if isinstance(client, Timed)])
    return [
        clients,
        "all" if neighbours is None else neighbours.degree,
        terms.shares,
        f"{drop_out} %",
        f"{1000 * own[here].mean():.0f} ({1000 * own[here].max():.0f})",
        f"{seconds - own.sum():.1f}",
        *_traffic(outcome, here, terms),
    ]


def _traffic(outcome: Outcome, here: "np.ndarray[Any, Any]", terms: Terms) -> list[object]:
    sent, received = (float(b.sum(axis=0)[here].mean()) for b in (outcome.sent, outcome.received))
    holders = min(terms.degree + 1, terms.clients)
    formula = published_bits(holders, terms.length, terms.bits, KEY_BITS, SHARE_BITS) / 8
    both = sent + received
    return [f"{sent:,.0f}", f"{received:,.0f}", f"{formula:,.0f}", f"{both / formula:.2f}"]


@click.command("secure-aggregation")
@click.option("--clients", default=1000, show_default=True)
@click.option("--threshold", default=0.7, show_default=True, help="Share that has to be left.")
@click.option("--colluding", default=0.1, show_default=True, help="Share that may collude.")
@click.option("--complete", default=300, show_default=True, help="Clients on the complete graph.")
@click.option("--write", is_flag=True, help="Put the table into docs/secure-aggregation.md.")
def secure_aggregation(
    clients: int, threshold: float, colluding: float, complete: int, write: bool
) -> None:
    """Time and bytes a client, on a circle of neighbours and on the complete graph."""
    least = round(threshold * clients)
    chosen = choose_neighbours(clients, least, round(colluding * clients))
    cases = [(clients, least, drop_out, chosen) for drop_out in DROP_OUTS]
    cases += [(complete, round(threshold * complete), drop_out, None) for drop_out in (0, 30)]
    rows = [measure(*case) for case in tracked(cases, "sessions")]
    header = ["clients", "neighbours", "shares needed", "drop-outs", "CPU ms a client, mean (most)"]
    header += ["CPU s for all else", "bytes sent", "received", "published formula", "ratio"]
    table = markdown(header, rows)
    click.echo(table)
    if write:
        replace_block(DOCS / "secure-aggregation.md", "secure-aggregation", table)
