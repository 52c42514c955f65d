"""The server killed at random moments under load: nothing lost, nothing invented, nothing twice."""

import asyncio
import random
import time
from collections.abc import Callable

from tests.support.postgres import PostgresServer
from tests.support.senders import Sender, check, new_store
from tests.support.service import Server, serving

# On two stores: what one kill in nine shows is seen with probability 1 - 1e-6.
KILLS = 60
DATABASE_KILLS = 15  # one in three, 1 - 2e-3; of one in two, 1 - 3e-5
STOPS = 10
CLIENTS = 4


def send_through(server: Server, kills: int, kill_once: Callable[[], None]) -> list[Sender]:
    """Send from several clients while something is killed; return what they sent."""
    senders = [Sender(server, seed) for seed in range(CLIENTS)]
    for sender in senders:
        sender.start()
    for _ in range(kills):
        kill_once()
    for sender in senders:
        sender.stopping.set()
    for sender in senders:
        sender.join(60)
        assert not sender.is_alive()
    return senders


def test_a_killed_server_keeps_what_it_acknowledged(location: str) -> None:
    asyncio.run(new_store(location))
    moments = random.Random(1)  # noqa: S311
    with serving(location) as server:

        def kill_once() -> None:
            time.sleep(moments.uniform(0.0, 0.15))
            server.kill()
            server.start()

        senders = send_through(server, KILLS, kill_once)
    check(location, senders)


def test_a_killed_database_keeps_what_it_acknowledged(postgres: PostgresServer) -> None:
    location = postgres.new_database()
    asyncio.run(new_store(location))
    moments = random.Random(2)  # noqa: S311

    def kill_once() -> None:
        time.sleep(moments.uniform(0.1, 0.4))
        postgres.kill()
        postgres.start()

    with serving(location) as server:
        senders = send_through(server, DATABASE_KILLS, kill_once)
    check(location, senders)


def test_a_server_that_is_told_to_stop_answers_in_full_or_not_at_all(location: str) -> None:
    asyncio.run(new_store(location))
    moments = random.Random(3)  # noqa: S311
    with serving(location) as server:

        def stop_once() -> None:
            time.sleep(moments.uniform(0.05, 0.3))
            server.stop()
            server.start()

        senders = send_through(server, STOPS, stop_once)
    assert [sender.half_answered for sender in senders] == [0] * CLIENTS
    check(location, senders)
