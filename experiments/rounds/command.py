"""``rounds``: a campaign played over HTTP on this machine, from the document to the map."""

import asyncio
import os
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import ceil, floor
from pathlib import Path

import click
import numpy as np

from client_sdk import Device, Grid, NotAskedError
from client_sdk.rounds import Ask, Campaign, Participant
from experiments.end_to_end.service import HOST, LDPSPATIAL
from experiments.rounds.visitors import take_part
from experiments.tables import markdown
from ldpspatial.metrics import l1
from ldpspatial.release.release import Released
from ldpspatial.service.rounds.accounts import SENT, RoundAccount, accounts
from ldpspatial.service.rounds.directory import open_directory
from ldpspatial.service.rounds.server import TICK_S, open_campaign, released
from ldpspatial.service.rounds.tables import make_round_tables
from ldpspatial.service.store import make_store, open_store
from ldpspatial.validate import MICRO

GRID = Grid.from_center(lat=52.52, lon=13.405, side_m=10_000, cells=32)
SESSION = 30  # most people of a secure sum
LEAST_HONEST = 15
TOLERATED = 0.25
COLLUDING_PPM = 50_000
LEAD_S = 8  # for the server to start before the first round


@click.command("rounds")
@click.option("--people", default=240, show_default=True, help="Who take part in all rounds.")
@click.option("--rounds", "number", default=4, show_default=True)
@click.option("--seconds", default=90, show_default=True, help="Length of a round.")
@click.option("--epsilon", default=4.0, show_default=True)
@click.option("--failing", default=0.05, show_default=True, help="Share who fail at some request.")
@click.option("--kills", default=2, show_default=True, help="How often the server is killed.")
@click.option("--seed", default=1, show_default=True)
def play_rounds(
    people: int, number: int, seconds: int, epsilon: float, failing: float, kills: int, seed: int
) -> None:
    """Play a campaign of the recommended levels: devices with ledgers, a server, the map.

    Everybody draws one of the rounds, enrols with the directory, and answers the five steps of a
    secure sum with a position of a synthetic city. The server is killed on the way, and started
    again.
    """
    rng = np.random.default_rng(seed)
    cells = city(rng, people)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        since = time.time()
        installed = [a_device(folder / str(n), epsilon) for n in range(people)]
        # They join when the first round's time is known, which is about as much work.
        begin = int(time.time() + LEAD_S + 3 * (time.time() - since))
        campaign = a_campaign(people, number, begin, seconds, epsilon)
        directory = asyncio.run(opened(folder / "rounds.db", campaign, people))
        ends = np.full(people, np.inf)
        who = rng.random(people) < failing
        ends[who] = rng.integers(0, 14, int(who.sum()))
        with socket.create_server((HOST, 0)) as probe:
            port: int = probe.getsockname()[1]
        server = Server(folder / "rounds.db", port)
        devices = [joined(device, campaign, epsilon) for device in installed]
        with ThreadPoolExecutor(people) as pool:
            playing = [
                pool.submit(played, device, position(cell), directory, port, failing_after(end))
                for device, cell, end in zip(devices, cells, ends.tolist(), strict=True)
            ]
            for moment in np.linspace(begin, begin + number * seconds, kills + 2)[1:-1].tolist():
                time.sleep(max(moment - time.time(), 0))
                server.again()
            found = [each.result() for each in playing]
        time.sleep(2 * TICK_S)  # the last round is over at the server's next look
        server.stop()
        made, rounds = asyncio.run(mapped(folder / "rounds.db", campaign.digest))
        spent = [device.spent() for device in devices]
    truth = np.bincount(cells, minlength=GRID.cells**2).reshape(GRID.cells, GRID.cells) / people
    click.echo(report(made, rounds, found, spent, l1(truth, made.density)))


def a_campaign(people: int, number: int, begin: int, seconds: int, epsilon: float) -> Campaign:
    """Return the campaign: of so few people that one session has no room, sessions are smaller."""
    clients = min(SESSION, people // number)
    sure = clients - floor(TOLERATED * clients) - ceil(COLLUDING_PPM * clients / MICRO)
    return Campaign(
        "a synthetic city", GRID, number, begin, seconds,
        micro_epsilon=round(epsilon * MICRO), sensitivity=1, most_length=4096,
        most_clients=clients, least_honest=min(LEAST_HONEST, sure), colluding_ppm=COLLUDING_PPM,
    )  # fmt: skip


def report(
    made: Released, rounds: list[RoundAccount], found: list[str], spent: list[int], error: float
) -> str:
    """Return what came of it: of each round, and of all."""
    heads = ["round", "came", "seats", *SENT.values(), "in sums", "why without"]
    steps = [
        [str(each) for each in (a.number, a.came, a.asked, *a.heard, a.survivors)]
        + ["; ".join(a.without)]
        for a in rounds
    ]
    rows = [
        ["people", str(len(found))],
        *([ending, str(times)] for ending, times in Counter(found).most_common()),
        ["who spent epsilon, once", str(sum(each > 0 for each in spent))],
        *([name, str(value)] for name, value in made.facts.items()),
        ["L1 between map and people", f"{error:.2f}"],
        ["claim", str(made.claim)],
    ]
    return markdown(heads, steps) + "\n\n" + markdown(["", "value"], rows)


class Server:
    """``ldpspatial serve`` as a process."""

    def __init__(self, store: Path, port: int) -> None:
        self._command = [*LDPSPATIAL, "serve", str(store), "--port", str(port), "--rate", "0"]
        self._process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL)

    def again(self) -> None:
        """Kill it, and start it again."""
        self._process.kill()
        self._process.wait()
        self._process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL)

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()


async def opened(store: Path, campaign: Campaign, people: int) -> bytes:
    """Open the campaign in a new store; return the public key of its directory."""
    made = await make_store(store)
    await make_round_tables(made.database)
    directory = await open_directory(made.database, campaign.digest, 2 * people)
    await open_campaign(made.database, campaign, directory, people, TOLERATED)
    await made.close()
    return directory


async def mapped(store: Path, digest: str) -> tuple[Released, list[RoundAccount]]:
    """Return the map of the campaign, and what became of its rounds."""
    held = await open_store(store)
    try:
        _, found = await released(held.database, digest)
        return found, await accounts(held.database, digest)
    finally:
        await held.close()


def city(rng: np.random.Generator, people: int) -> np.ndarray:
    """Return the cells of people: most of them in two quarters."""
    centres = np.array([[10, 9], [22, 20]])[rng.integers(2, size=people)]
    at = np.clip(rng.normal(centres, 2.5), 0, GRID.cells - 1).astype(int)
    found: np.ndarray = at[:, 0] * GRID.cells + at[:, 1]
    return found


def position(cell: int) -> tuple[float, float]:
    """Return the middle of a cell."""
    return GRID.center(cell // GRID.cells, cell % GRID.cells)


def a_device(folder: Path, epsilon: float) -> Device:
    """Return a new device."""
    os.mkdir(folder)
    return Device.install(folder, cap_epsilon=epsilon)


def joined(device: Device, campaign: Campaign, epsilon: float) -> Participant:
    """Let a device join the campaign."""
    text = campaign.to_json()
    return Participant.join(device, text, digest=campaign.digest, max_epsilon=epsilon)


def failing_after(requests: float) -> Callable[[Ask], bool]:
    """Return what lets a device fail after so many requests that the server had an answer to."""
    made = 0

    def is_gone(ask: Ask) -> bool:
        nonlocal made
        made += not ask.wait_s
        return made > requests

    return is_gone


def played(
    participant: Participant, where: tuple[float, float], directory: bytes, port: int,
    is_gone: Callable[[Ask], bool],
) -> str:  # fmt: skip
    """Wait for the round and take part in it; return how that ended."""
    time.sleep(max(participant.campaign.start(participant.number) - time.time(), 0))
    try:
        return take_part(participant, where, directory, port, is_gone)
    except NotAskedError:
        return "whose round was over before their turn came"
